# ORC's hashes over Arrow buffers, and Kirsch-Mitzenmacher filters.
#
# Sources: orc-core's BloomFilter.getLongHash (Thomas Wang's mix, signed shifts), Murmur3.hash64 (one lane,
# seed 104729), HiveDecimal.toString; Kirsch and Mitzenmacher, "Less Hashing, Same Performance".

cdef inline uint64_t _wang(uint64_t key) noexcept nogil:
    key = ~key + (key << 21)
    key ^= <uint64_t>(<int64_t>key >> 24)
    key = key + (key << 3) + (key << 8)
    key ^= <uint64_t>(<int64_t>key >> 14)
    key = key + (key << 2) + (key << 4)
    key ^= <uint64_t>(<int64_t>key >> 28)
    return key + (key << 31)


cdef inline uint64_t _orc_lane(uint64_t lane) noexcept nogil:
    return _rotl(lane * 0x87C37B91114253D5ULL, 31) * 0x4CF5AD432745937FULL


cdef uint64_t _orc_murmur(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    cdef uint64_t h = 104729, tail = 0
    cdef Py_ssize_t at = 0, i
    while size - at >= 8:
        h = _rotl(h ^ _orc_lane(_load64(p + at)), 27) * 5 + 0x52DCE729
        at += 8
    if at < size:
        if size >= 8:  # the value's last 8 bytes, without those that were seen
            tail = _load64(p + size - 8) >> (8 * (8 - (size - at)))
        else:
            for i in range(size):
                tail |= <uint64_t>p[i] << (8 * i)
        h ^= _orc_lane(tail)
    h ^= <uint64_t>size
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDULL
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53ULL
    return h ^ (h >> 33)


def orc_hash_bytes(const unsigned char[::1] data not None):
    """ORC's 64-bit Murmur3 of one value's bytes."""
    if data.shape[0] == 0:
        return _orc_murmur(<const unsigned char*>b"", 0)
    return _orc_murmur(&data[0], data.shape[0])


def orc_hash_long(const unsigned char[::1] values not None, int width, int64_t divisor, Py_ssize_t offset,
                  Py_ssize_t length, const unsigned char[::1] validity, unsigned char[::1] out not None):
    """ORC's hash of signed integers of 1, 2, 4 or 8 bytes, each divided by `divisor` (floor); nulls are left out."""
    _check_range(offset, length)
    if width not in (1, 2, 4, 8) or values.shape[0] // width - length < offset or divisor < 1:
        raise ValueError("fewer values than asked for, or not an integer width")
    if out.shape[0] // 8 < length:
        raise ValueError("the output has no room for the hashes")
    if length == 0:
        return 0
    cdef const unsigned char* bitmap = _bitmap(validity, offset, length)
    cdef const unsigned char* p = &values[0] + offset * width
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i, n = 0
    cdef int64_t value, rest
    cdef uint64_t h
    with nogil:
        for i in range(length):
            if not _valid(bitmap, offset + i):
                continue
            if width == 8:
                value = <int64_t>_load64(p + i * 8)
            elif width == 4:
                value = <int32_t>_load32(p + i * 4)
            elif width == 2:
                value = p[i * 2] | (<int64_t><signed char>p[i * 2 + 1] << 8)
            else:
                value = <signed char>p[i]
            if divisor > 1:
                rest = value % divisor
                value = value // divisor - (1 if rest < 0 else 0)
            h = _wang(<uint64_t>value)
            memcpy(o + n * 8, &h, 8)
            n += 1
    return n


def orc_hash_double(const unsigned char[::1] values not None, int width, Py_ssize_t offset, Py_ssize_t length,
                    const unsigned char[::1] validity, unsigned char[::1] out not None):
    """ORC's hash of floats (widened) and doubles: their bits as a long, every NaN as the canonical one."""
    _check_range(offset, length)
    if width not in (4, 8) or values.shape[0] // width - length < offset:
        raise ValueError("fewer values than asked for, or not a floating-point width")
    if out.shape[0] // 8 < length:
        raise ValueError("the output has no room for the hashes")
    if length == 0:
        return 0
    cdef const unsigned char* bitmap = _bitmap(validity, offset, length)
    cdef const unsigned char* p = &values[0] + offset * width
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i, n = 0
    cdef float narrow
    cdef double value
    cdef uint64_t h
    with nogil:
        for i in range(length):
            if not _valid(bitmap, offset + i):
                continue
            if width == 8:
                memcpy(&value, p + i * 8, 8)
            else:
                memcpy(&narrow, p + i * 4, 4)
                value = narrow
            if value != value:
                h = 0x7FF8000000000000ULL
            else:
                memcpy(&h, &value, 8)
            h = _wang(h)
            memcpy(o + n * 8, &h, 8)
            n += 1
    return n


cdef Py_ssize_t _decimal_text(const unsigned char* p, int scale, unsigned char* text) noexcept nogil:
    """A 128-bit two's complement integer as HiveDecimal prints it; `text` has room for 96 bytes."""
    cdef uint32_t[4] limbs
    cdef unsigned char[80] digits   # least significant first
    cdef int i, top, count = 0, first = 0, n
    cdef uint64_t rest
    cdef bint negative = p[15] >> 7
    cdef Py_ssize_t size = 0
    for i in range(4):
        limbs[i] = _load32(p + i * 4)
    if negative:
        rest = 1
        for i in range(4):
            rest += <uint32_t>~limbs[i]
            limbs[i] = <uint32_t>rest
            rest >>= 32
    top = 3
    while True:
        while top >= 0 and limbs[top] == 0:
            top -= 1
        if top < 0:
            break
        rest = 0
        for i in range(top, -1, -1):
            rest = (rest << 32) | limbs[i]
            limbs[i] = <uint32_t>(rest // 1000000000)
            rest %= 1000000000
        for i in range(9):
            digits[count] = <unsigned char>(48 + rest % 10)
            rest //= 10
            count += 1
    while count > 0 and digits[count - 1] == 48:
        count -= 1
    if count == 0:
        text[0] = 48
        return 1
    while count <= scale:
        digits[count] = 48
        count += 1
    while first < scale and digits[first] == 48:
        first += 1
    if negative:
        text[0] = 45
        size = 1
    n = count - 1
    while n >= first:
        if n == scale - 1:
            text[size] = 46
            size += 1
        text[size] = digits[n]
        size += 1
        n -= 1
    return size


def orc_decimal_text(const unsigned char[::1] value not None, int scale):
    """A decimal (16 bytes, little-endian two's complement) as the text that ORC hashes: zeros trimmed."""
    if value.shape[0] != 16 or not 0 <= scale <= 38:
        raise ValueError("a decimal has 16 bytes and a scale of 0 to 38")
    cdef unsigned char[96] text
    cdef Py_ssize_t size = _decimal_text(&value[0], scale, text)
    return text[:size]


def orc_hash_decimal(const unsigned char[::1] values not None, int scale, Py_ssize_t offset, Py_ssize_t length,
                     const unsigned char[::1] validity, unsigned char[::1] out not None):
    """ORC's hash of Arrow decimal128 values: their text as bytes; nulls are left out."""
    _check_range(offset, length)
    if values.shape[0] // 16 - length < offset or not 0 <= scale <= 38:
        raise ValueError("fewer values than asked for, or not a scale")
    if out.shape[0] // 8 < length:
        raise ValueError("the output has no room for the hashes")
    if length == 0:
        return 0
    cdef const unsigned char* bitmap = _bitmap(validity, offset, length)
    cdef const unsigned char* p = &values[0] + offset * 16
    cdef unsigned char* o = &out[0]
    cdef unsigned char[96] text
    cdef Py_ssize_t i, n = 0, size
    cdef uint64_t h
    with nogil:
        for i in range(length):
            if _valid(bitmap, offset + i):
                size = _decimal_text(p + i * 16, scale, text)
                h = _orc_murmur(text, size)
                memcpy(o + n * 8, &h, 8)
                n += 1
    return n


cdef uint32_t _km_bits(Py_ssize_t nbytes, int k) except 0:
    if nbytes <= 0 or nbytes % 8 or nbytes > (1 << 27):
        raise ValueError("a bitset is a positive multiple of 8 bytes, 128 MiB at most")
    if not 1 <= k <= 1024:
        raise ValueError("a filter has 1 to 1024 hash functions")
    return <uint32_t>(nbytes * 8)


cdef struct Modulus:
    uint32_t bits
    int shift
    uint64_t magic


cdef Modulus _modulus(uint32_t bits) noexcept nogil:
    """What stands for a division by `bits` (at most 2^30): with 2^(l-1) < bits <= 2^l, magic is 2^(31+l) / bits, up.

    magic * bits - 2^(31+l) lies in 1..2^l, so c * magic >> (31+l) is c // bits for every c of 31 bits (Granlund and
    Montgomery, "Division by Invariant Integers using Multiplication", theorem 4.2). magic is 2^32 + 1 at most, and
    the product stays below 2^64.
    """
    cdef Modulus m
    cdef int l = 0
    while (<uint32_t>1 << l) < bits:
        l += 1
    m.bits = bits
    m.shift = 31 + l
    m.magic = (<uint64_t>1 << m.shift) // bits + 1
    return m


cdef inline uint32_t _km_place(uint32_t combined, Modulus m) noexcept nogil:
    """The bit of h1 + i h2: flipped where it is negative, modulo the filter's bits. No division, no branch."""
    combined ^= 0 - (combined >> 31)
    return combined - <uint32_t>((combined * m.magic) >> m.shift) * m.bits


def km_insert(unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None, Py_ssize_t count, int k):
    """Insert `count` hashes, `k` bits each. The bitset is longs, little-endian."""
    cdef Modulus m = _modulus(_km_bits(bitset.shape[0], k))
    if count < 0 or hashes.shape[0] // 8 < count:
        raise ValueError("fewer hashes than asked for")
    if count == 0:
        return
    cdef unsigned char* b = &bitset[0]
    cdef const unsigned char* hs = &hashes[0]
    cdef Py_ssize_t n
    cdef uint32_t combined, step, place
    cdef int i
    with nogil:
        for n in range(count):
            combined = _load32(hs + n * 8)
            step = _load32(hs + n * 8 + 4)
            for i in range(k):
                combined += step
                place = _km_place(combined, m)
                b[place >> 3] |= <unsigned char>(1 << (place & 7))


def km_check(const unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None, Py_ssize_t count,
             int k, unsigned char[::1] out not None):
    """Look up `count` hashes: out[i] is 1 for "maybe", 0 for "absent". Returns how many are absent."""
    cdef Modulus m = _modulus(_km_bits(bitset.shape[0], k))
    if count < 0 or hashes.shape[0] // 8 < count or out.shape[0] < count:
        raise ValueError("fewer hashes than asked for, or no room for the answers")
    if count == 0:
        return 0
    cdef const unsigned char* b = &bitset[0]
    cdef const unsigned char* hs = &hashes[0]
    cdef Py_ssize_t n, absent = 0
    cdef uint32_t combined, step, place
    cdef int i
    cdef unsigned char hit
    with nogil:
        for n in range(count):
            combined = _load32(hs + n * 8)
            step = _load32(hs + n * 8 + 4)
            hit = 1
            for i in range(k):
                combined += step
                place = _km_place(combined, m)
                if not (b[place >> 3] >> (place & 7)) & 1:
                    hit = 0
                    break
            out[n] = hit
            absent += 1 - hit
    return absent
