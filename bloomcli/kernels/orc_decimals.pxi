# ORC's decimals: each is an unbounded zigzag varint with a scale in another stream. Their text is hashed.
#
# Sources: the Apache ORC specification, Decimal Columns; orc-core's DecimalTreeReader, HiveDecimal.toString; ORC
# C++'s Decimal64ColumnReader and Decimal128ColumnReader, which convert every value to the column's scale.

cdef enum:
    MOST_VARINT = 19       # bytes of 128 bits
    MOST_DIGITS = 80       # of 128 bits (39), with as many zeros before or after them
    MOST_DECIMAL_TEXT = 96


cdef uint64_t TEN_38_HIGH = 0x4B3B4CA85A86C47AULL, TEN_38_LOW = 0x098A224000000000ULL
"""10^38 in 128 bits."""


cdef struct Decimal128:
    uint64_t low
    uint64_t high          # of the magnitude
    int64_t scale
    bint negative


cdef struct DecimalShape:
    int lead               # digits before the point; if negative, zeros between the point and the first other digit
    int fraction           # digits after the point, without trailing zeros
    int digits             # of the stored magnitude


cdef inline Py_ssize_t _decimal_varint(const unsigned char* p, Py_ssize_t size, Decimal128* d) noexcept nogil:
    """Read a zigzag varint of up to 128 bits. Return its size in bytes, CUT_OFF, or MALFORMED."""
    cdef uint64_t low = 0, high = 0
    cdef Py_ssize_t i = 0
    while True:
        if i == size:
            return CUT_OFF
        if i == MOST_VARINT:
            return MALFORMED
        if i < 9:
            low |= <uint64_t>(p[i] & 0x7F) << (7 * i)
        elif i == 9:
            low |= <uint64_t>(p[i] & 0x7F) << 63
            high = (p[i] & 0x7F) >> 1
        else:
            if i == MOST_VARINT - 1 and p[i] > 3:
                return MALFORMED
            high |= <uint64_t>(p[i] & 0x7F) << (7 * i - 64)
        i += 1
        if p[i - 1] < 0x80:
            break
    d.negative = low & 1
    d.low = (low >> 1) | (high << 63)
    d.high = high >> 1
    if d.negative:
        d.low += 1
        d.high += d.low == 0
    return i


cdef inline int _decimal_digits(Decimal128* d, unsigned char* digits) noexcept nogil:
    """Write the magnitude's digits, least significant first, and return their number: 0 for zero."""
    cdef uint32_t[4] limbs
    cdef uint64_t low = d.low, rest
    cdef int i, top, count = 0
    if d.high == 0:
        while low >= 100:
            rest = low % 100
            low //= 100
            digits[count] = <unsigned char>(48 + rest % 10)
            digits[count + 1] = <unsigned char>(48 + rest // 10)
            count += 2
        while low:
            digits[count] = <unsigned char>(48 + low % 10)
            low //= 10
            count += 1
        return count
    limbs[0] = <uint32_t>d.low
    limbs[1] = <uint32_t>(d.low >> 32)
    limbs[2] = <uint32_t>d.high
    limbs[3] = <uint32_t>(d.high >> 32)
    top = 3
    while top >= 0:
        if limbs[top] == 0:
            top -= 1
            continue
        rest = 0
        for i in range(top, -1, -1):
            rest = (rest << 32) | limbs[i]
            limbs[i] = <uint32_t>(rest // 1000000000)
            rest %= 1000000000
        for i in range(9):
            digits[count] = <unsigned char>(48 + rest % 10)
            rest //= 10
            count += 1
    while digits[count - 1] == 48:
        count -= 1
    return count


cdef Py_ssize_t _decimal_text(Decimal128* d, unsigned char* text, DecimalShape* shape) noexcept nogil:
    """Write a decimal as HiveDecimal prints it, and return the size in bytes. MALFORMED if it has more than 38 digits
    before or after the point. `text` has room for MOST_DECIMAL_TEXT."""
    cdef unsigned char[MOST_DIGITS] digits
    cdef int count = _decimal_digits(d, digits), scale, first = 0, n
    cdef Py_ssize_t size = 0
    shape.digits = count
    shape.lead = shape.fraction = 0
    if count == 0:
        text[0] = 48
        return 1
    if not -38 <= d.scale <= 38 + 39:
        return MALFORMED
    scale = <int>d.scale
    if scale < 0:
        if count - scale > 38:
            return MALFORMED
        for n in range(count - 1, -1, -1):
            digits[n - scale] = digits[n]
        for n in range(-scale):
            digits[n] = 48
        count -= scale
        scale = 0
    while first < scale and first < count and digits[first] == 48:
        first += 1
    shape.lead = count - scale
    shape.fraction = scale - first
    if shape.fraction > 38:
        return MALFORMED
    while count <= scale:
        digits[count] = 48
        count += 1
    if d.negative:
        text[0] = 45
        size = 1
    for n in range(count - 1, first - 1, -1):
        if n == scale - 1:
            text[size] = 46
            size += 1
        text[size] = digits[n]
        size += 1
    return size


def orc_hash_decimals(const unsigned char[::1] values not None, Py_ssize_t count, int scale,
                      unsigned char[::1] out not None):
    """Compute ORC's hash of `count` decimals of one scale (0 to 38), 16 bytes each as `orc_decimals` writes them: of
    their text without trailing zeros. Equal neighbours are hashed once."""
    if count < 0 or not 0 <= scale <= 38:
        raise ValueError("an invalid scale or number of values")
    if values.shape[0] // 16 < count or out.shape[0] // 8 < count:
        raise ValueError("fewer values than requested, or no room for the hashes")
    if count == 0:
        return
    cdef const unsigned char* p = &values[0]
    cdef unsigned char* o = &out[0]
    cdef unsigned char[MOST_DECIMAL_TEXT] text
    cdef DecimalShape shape
    cdef Decimal128 d
    cdef Py_ssize_t i
    cdef uint64_t h = 0
    d.scale = scale
    with nogil:
        for i in range(count):
            if not i or memcmp(p + i * 16, p + i * 16 - 16, 16) != 0:
                d.low = _load64(p + i * 16)
                d.high = _load64(p + i * 16 + 8)
                d.negative = d.high >> 63
                if d.negative:
                    d.low = 0 - d.low
                    d.high = ~d.high + (d.low == 0)
                h = _orc_murmur(text, _decimal_text(&d, text, &shape))
            memcpy(o + i * 8, &h, 8)


cdef inline void _times_ten(Decimal128* d) noexcept nogil:
    cdef uint64_t low = <uint64_t><uint32_t>d.low * 10
    cdef uint64_t middle = (d.low >> 32) * 10 + (low >> 32)
    d.low = (middle << 32) | <uint64_t><uint32_t>low
    d.high = d.high * 10 + (middle >> 32)


cdef inline void _tenth(Decimal128* d) noexcept nogil:
    cdef uint64_t rest = d.high % 10, upper
    d.high //= 10
    rest = (rest << 32) | (d.low >> 32)
    upper = rest // 10
    rest = ((rest % 10) << 32) | <uint64_t><uint32_t>d.low
    d.low = (upper << 32) | (rest // 10)


cdef bint _rescaled(Decimal128* d, int scale, int most) noexcept nogil:
    """Give a decimal the column's scale. False if it doesn't fit the column."""
    cdef unsigned char[MOST_DECIMAL_TEXT] text
    cdef DecimalShape shape
    if d.scale == scale:  # the usual case: only the number of digits matters
        if most == 18:
            return d.high == 0 and d.low < 1000000000000000000ULL
        return d.high < TEN_38_HIGH or (d.high == TEN_38_HIGH and d.low < TEN_38_LOW)
    # with 18 digits readers compute in 64 bits, even before the conversion to the column's scale
    if _decimal_text(d, text, &shape) < 0 or shape.fraction > scale or (shape.digits and shape.lead + scale > most) \
            or (most == 18 and shape.digits > 18):
        return False
    if shape.digits == 0:
        return True
    while d.scale < scale:
        _times_ten(d)
        d.scale += 1
    while d.scale > scale:
        _tenth(d)
        d.scale -= 1
    return True


def orc_decimals(const unsigned char[::1] data not None, Py_ssize_t pos, const unsigned char[::1] scales not None,
                 Py_ssize_t first, Py_ssize_t count, int scale, int most, unsigned char[::1] out not None):
    """Decode contiguous decimals to 16 bytes each, little-endian two's complement, in the column's scale.

    Readers disagree about values that don't fit the column, so these are errors. Stops at the first value that isn't
    complete in `data`.

    Args:
        data: the values.
        pos: the position of the first value to decode.
        scales: the values' scales, as int64s.
        first: the index of the first value to decode.
        count: the number of values.
        scale: the column's scale.
        most: the maximum number of digits of the column's values, 18 or 38.
        out: the decimals.

    Returns:
        The index and the position of the value at which it stopped.
    """
    if pos < 0 or pos > data.shape[0] or not 0 <= first <= count or not 0 <= scale <= 38:
        raise ValueError("an invalid position, scale or number of values")
    if scales.shape[0] // 8 < count or out.shape[0] // 16 < count:
        raise ValueError("fewer scales than values, or no room for the decimals")
    if count == 0:
        return 0, pos
    cdef Py_ssize_t size = data.shape[0], got = 1
    cdef const unsigned char* p = &data[0] if size else <const unsigned char*>b""
    cdef const unsigned char* ss = &scales[0]
    cdef unsigned char* o = &out[0]
    cdef Decimal128 d
    cdef bint bad = False
    with nogil:
        while first < count:
            got = _decimal_varint(p + pos, size - pos, &d)
            if got <= 0:
                break
            d.scale = <int64_t>_load64(ss + first * 8)
            if not _rescaled(&d, scale, most):
                bad = True
                break
            if d.negative:
                d.low = 0 - d.low
                d.high = ~d.high + (d.low == 0)
            memcpy(o + first * 16, &d.low, 8)
            memcpy(o + first * 16 + 8, &d.high, 8)
            pos += got
            first += 1
    if got == MALFORMED:
        raise RunError("a decimal of more than 128 bits")
    if bad:
        raise RunError("a decimal with more digits than its column allows")
    return first, pos
