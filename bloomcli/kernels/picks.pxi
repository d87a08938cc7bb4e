# Picks the values at some positions out of Parquet pages, without decoding the other values.
#
# Positions are ascending int64s; -1 stands for a null, whose value is zeros or empty. Every position and every length
# is checked against the page.


from cpython.bytearray cimport PyByteArray_AS_STRING

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define BLOOM_ONES(byte) __builtin_popcount(byte)
    #else
    static int BLOOM_ONES(unsigned byte) { int n = 0; for (; byte; byte &= byte - 1) n++; return n; }
    #endif
    """
    int BLOOM_ONES(unsigned int byte) noexcept nogil


def positions_within(const int64_t[::1] rows not None, Py_ssize_t start, Py_ssize_t end, int64_t first):
    """Return rows[start:end] minus `first`: int64s."""
    if not 0 <= start <= end <= rows.shape[0]:
        raise ValueError("a range of the rows is within them")
    cdef bytearray out = bytearray(8 * (end - start))
    cdef int64_t[::1] found = memoryview(out).cast("q") if end > start else None
    cdef Py_ssize_t i
    for i in range(start, end):
        found[i - start] = rows[i] - first
    return out


def pick_levels(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t end, int64_t[::1] at not None):
    """Replace ascending positions of values by their positions among the non-null values, and by -1 for nulls.

    data[pos:end] has definition levels of one bit: RLE/bit-packed hybrid runs.
    """
    cdef Walk w
    cdef Py_ssize_t i = 0, n = at.shape[0], held, done
    cdef uint64_t head = 0
    cdef int64_t first = 0, rank = 0, count, bit
    cdef unsigned int byte
    cdef bint bad = False
    if not 0 <= pos <= end <= data.shape[0]:
        raise PageError("the levels run past the page's end")
    _walk_open(&w, data, pos)
    w.end = end
    with nogil:
        while i < n and not bad:
            pos = _varint(&w, pos, &head)
            if pos < 0 or head >> 1 == 0 or head >> 40:
                bad = True
            elif head & 1:
                count, done = <int64_t>(head >> 1) * 8, 0
                held = min(<Py_ssize_t>(head >> 1), end - pos)
                while i < n and at[i] < first + count:
                    bit = at[i] - first
                    if bit < 0 or bit >> 3 >= held:
                        bad = True
                        break
                    while done < bit >> 3:
                        rank += BLOOM_ONES(w.data[pos + done])
                        done += 1
                    byte = w.data[pos + done]
                    if (byte >> (bit & 7)) & 1:
                        at[i] = rank + BLOOM_ONES(byte & ((1U << (bit & 7)) - 1))
                    else:
                        at[i] = -1
                    i += 1
                while done < held:
                    rank += BLOOM_ONES(w.data[pos + done])
                    done += 1
                pos += held
                first += count
            elif pos >= end or w.data[pos] > 1:
                bad = True
            else:
                count = <int64_t>(head >> 1)
                while i < n and at[i] < first + count:
                    if at[i] < first:
                        bad = True
                        break
                    at[i] = rank + at[i] - first if w.data[pos] else -1
                    i += 1
                rank += count if w.data[pos] else 0
                first += count
                pos += 1
    if bad:
        raise PageError("the levels end before the page's last value")


def pick_indices(const unsigned char[::1] data not None, Py_ssize_t pos, int64_t limit, int64_t[::1] at not None):
    """Replace ascending positions by the dictionary indices at them.

    data[pos:] has a byte with the bit width, then RLE/bit-packed hybrid runs. Indices are less than `limit`.
    """
    cdef Walk w
    cdef Py_ssize_t i = 0, n = at.shape[0], size, start, end = data.shape[0], byte
    cdef uint64_t head = 0, window
    cdef int64_t first = 0, count, index = 0, before = -1
    cdef int width, b, bits
    cdef bint bad = False
    _start(data, pos)
    if pos >= end or data[pos] > 32:
        raise PageError("the page has no bit width for its dictionary indices")
    width = data[pos]
    size = (width + 7) // 8
    pos += 1
    _walk_open(&w, data, pos)
    with nogil:
        while i < n and not bad:
            if at[i] < 0:
                i += 1
                continue
            if width == 0:  # all indices are 0 and take no bytes
                head, count = 0, at[i] + 1
            else:
                pos = _varint(&w, pos, &head)
                if pos < 0 or head >> 1 == 0 or head >> 40:
                    bad = True
                    break
                count = <int64_t>(head >> 1) * (8 if head & 1 else 1)
            if not head & 1:
                if size > end - pos:
                    bad = True
                    break
                index = 0
                for b in range(<int>size):
                    index |= <int64_t>w.data[pos + b] << (8 * b)
                pos += size
            while i < n and at[i] < first + count:
                if at[i] < 0:
                    i += 1
                    continue
                if at[i] <= before:
                    bad = True
                    break
                before = at[i]
                if head & 1:
                    bits = <int>((at[i] - first) * width & 7)
                    start = pos + <Py_ssize_t>((at[i] - first) * width >> 3)
                    if start + (bits + width + 7) // 8 > end:
                        bad = True
                        break
                    window = 0
                    for byte in range(start, start + (bits + width + 7) // 8):
                        window |= <uint64_t>w.data[byte] << (8 * (byte - start))
                    index = <int64_t>((window >> bits) & ((<uint64_t>1 << width) - 1))
                if index >= limit:
                    bad = True
                    break
                at[i] = index
                i += 1
            if head & 1:
                pos = <Py_ssize_t>min(<int64_t>end, pos + <int64_t>(head >> 1) * width)
            first += count
    if bad:
        raise PageError("a dictionary index isn't there, or isn't the dictionary's")


def pick_fixed(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t width,
               const int64_t[::1] at not None):
    """Return the PLAIN values of `width` bytes at these positions, concatenated."""
    cdef const unsigned char* p = _start(data, pos) + pos
    cdef Py_ssize_t i, n = at.shape[0], room
    cdef bint bad = False
    if width < 1:
        raise ValueError("a value has a width")
    room = (data.shape[0] - pos) // width
    cdef bytearray found = bytearray(n * width)
    cdef char* out = PyByteArray_AS_STRING(found)
    with nogil:
        for i in range(n):
            if at[i] >= room:
                bad = True
                break
            if at[i] < 0:
                continue
            if width == 8:
                memcpy(out + i * 8, p + at[i] * 8, 8)
            elif width == 4:
                memcpy(out + i * 4, p + at[i] * 4, 4)
            else:
                memcpy(out + i * width, p + at[i] * width, <size_t>width)
    if bad:
        raise PageError("the page's values end before this one")
    return found


def pick_bits(const unsigned char[::1] data not None, Py_ssize_t pos, const int64_t[::1] at not None):
    """Return the PLAIN booleans at these positions: a byte for each, 0 or 1."""
    cdef const unsigned char* p = _start(data, pos) + pos
    cdef Py_ssize_t i, n = at.shape[0], room = data.shape[0] - pos
    cdef bytearray found = bytearray(n)
    cdef char* out = PyByteArray_AS_STRING(found)
    for i in range(n):
        if at[i] >> 3 >= room:
            raise PageError("the page's values end before this one")
        if at[i] >= 0:
            out[i] = (p[at[i] >> 3] >> (at[i] & 7)) & 1
    return found


def binary_places(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count):
    """Return the starts of `count` PLAIN byte arrays, from `pos` on, as int64s. A start is that of the length."""
    cdef const unsigned char* p = _start(data, pos)
    cdef Py_ssize_t end = data.shape[0], i, size
    if count < 0 or count > (end - pos) // 4:
        raise PageError("the page's values end before the last one")
    cdef bytearray found = bytearray(count * 8)
    cdef int64_t* out = <int64_t*>PyByteArray_AS_STRING(found)
    cdef bint bad = False
    with nogil:
        for i in range(count):
            if end - pos < 4:
                bad = True
                break
            size = <Py_ssize_t>_u32(p + pos)
            if size > end - pos - 4:
                bad = True
                break
            out[i] = pos
            pos += 4 + size
    if bad:
        raise PageError("a byte array runs past the page's end")
    return found


def binary_starts(const unsigned char[::1] data not None, Py_ssize_t pos, int64_t[::1] at not None):
    """Replace ascending positions of PLAIN byte arrays, from `pos` on, by their starts: those of their lengths."""
    cdef const unsigned char* p = _start(data, pos)
    cdef Py_ssize_t end = data.shape[0], i, n = at.shape[0], size
    cdef int64_t number = 0
    cdef bint bad = False
    with nogil:
        for i in range(n):
            if at[i] < 0:
                continue
            if at[i] < number:
                bad = True
                break
            while True:
                if end - pos < 4:
                    bad = True
                    break
                size = <Py_ssize_t>_u32(p + pos)
                if size > end - pos - 4:
                    bad = True
                    break
                if number == at[i]:
                    break
                pos += 4 + size
                number += 1
            if bad:
                break
            at[i] = pos
            pos += 4 + size
            number += 1
    if bad:
        raise PageError("a byte array runs past the page's end")


def pick_binary(const unsigned char[::1] data not None, const int64_t[::1] starts not None, Py_ssize_t most,
                int64_t[::1] sizes not None):
    """Return the byte arrays at `starts`, concatenated, and write their sizes to `sizes`; None if they have more than
    `most` bytes in total."""
    cdef const unsigned char* p = _start(data, 0)
    cdef Py_ssize_t end = data.shape[0], i, n = starts.shape[0], whole = 0, size
    cdef bint bad = False, many = False
    if sizes.shape[0] < n:
        raise ValueError("the output has no room for the sizes")
    with nogil:
        for i in range(n):
            sizes[i] = 0
            if starts[i] < 0:
                continue
            if starts[i] > end - 4:
                bad = True
                break
            size = <Py_ssize_t>_u32(p + starts[i])
            if size > end - 4 - starts[i]:
                bad = True
                break
            if size > most - whole:
                many = True
                break
            sizes[i] = size
            whole += size
    if bad:
        raise PageError("a byte array runs past the page's end")
    if many:
        return None
    cdef bytearray found = bytearray(whole)
    cdef char* out = PyByteArray_AS_STRING(found)
    with nogil:
        for i in range(n):
            if sizes[i]:
                memcpy(out, p + starts[i] + 4, <size_t>sizes[i])
                out += sizes[i]
    return found


def offsets_of(const int64_t[::1] sizes not None, int width):
    """Return the starts of values of these sizes, and the end of the last one: integers of `width` bytes, 4 or 8."""
    cdef Py_ssize_t i, n = sizes.shape[0]
    cdef int64_t whole = 0
    cdef bytearray found = bytearray((n + 1) * width)
    cdef char* out = PyByteArray_AS_STRING(found)
    if width not in (4, 8):
        raise ValueError("offsets have 4 or 8 bytes")
    with nogil:
        for i in range(n):
            whole += sizes[i]
            memcpy(out + (i + 1) * width, &whole, <size_t>width)
    if width == 4 and whole > 0x7FFFFFFF:
        raise ValueError("the values have too many bytes for offsets of 4")
    return found


def decimals_of(const unsigned char[::1] values not None, Py_ssize_t width, bint big_endian):
    """Return integers of 1 to 16 bytes in two's complement as 16 bytes, little-endian."""
    if not 1 <= width <= 16 or values.shape[0] % width:
        raise ValueError("decimals have 1 to 16 bytes")
    cdef Py_ssize_t i, b, n = values.shape[0] // width
    cdef bytearray found = bytearray(n * 16)
    cdef unsigned char* out = <unsigned char*>PyByteArray_AS_STRING(found)
    cdef const unsigned char* p
    for i in range(n):
        p = &values[i * width]
        for b in range(width):
            out[b] = p[width - 1 - b] if big_endian else p[b]
        memset(out + width, 0xFF if out[width - 1] & 0x80 else 0, 16 - <size_t>width)
        out += 16
    return found


def validity_of(const int64_t[::1] at not None):
    """Return a bitmap of the positions that aren't nulls, and the number of nulls."""
    cdef Py_ssize_t i, n = at.shape[0], nulls = 0
    cdef bytearray found = bytearray((n + 7) // 8)
    cdef unsigned char* out = <unsigned char*>PyByteArray_AS_STRING(found)
    for i in range(n):
        if at[i] < 0:
            nulls += 1
        else:
            out[i >> 3] |= <unsigned char>(1 << (i & 7))
    return found, nulls
