# ORC's hashes of fixed-width values and of bytes, and Kirsch-Mitzenmacher filters.
#
# Sources: orc-core's BloomFilter.getLongHash (Thomas Wang's mix, signed shifts), Murmur3.hash64 (one lane,
# seed 104729); Kirsch and Mitzenmacher, "Less Hashing, Same Performance".

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


cdef inline uint64_t _orc_finish(uint64_t h, uint64_t size) noexcept nogil:
    h ^= size
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDULL
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53ULL
    return h ^ (h >> 33)


cdef uint64_t _orc_murmur(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    cdef uint64_t h = 104729, tail = 0
    cdef Py_ssize_t at = 0, i
    while size - at >= 8:
        h = _rotl(h ^ _orc_lane(_load64(p + at)), 27) * 5 + 0x52DCE729
        at += 8
    if at < size:
        if size >= 8:  # the value's last 8 bytes, without those hashed already
            tail = _load64(p + size - 8) >> (8 * (8 - (size - at)))
        else:
            for i in range(size):
                tail |= <uint64_t>p[i] << (8 * i)
        h ^= _orc_lane(tail)
    return _orc_finish(h, <uint64_t>size)


cdef class OrcMurmur:
    """ORC's 64-bit Murmur3 of one value, computed in pieces."""

    cdef uint64_t h
    cdef uint64_t size
    cdef unsigned char[8] rest   # bytes after the last whole lane

    def __cinit__(self):
        self.h = 104729
        self.size = 0

    def update(self, const unsigned char[::1] data not None):
        """Add the next bytes."""
        cdef Py_ssize_t n = data.shape[0], at = 0
        cdef const unsigned char* p = &data[0] if n else <const unsigned char*>b""
        cdef uint64_t h = self.h
        cdef int have = <int>(self.size & 7)
        self.size += <uint64_t>n
        with nogil:
            while have and at < n:
                self.rest[have] = p[at]
                at += 1
                have = (have + 1) & 7
                if have == 0:
                    h = _rotl(h ^ _orc_lane(_load64(self.rest)), 27) * 5 + 0x52DCE729
            while n - at >= 8:
                h = _rotl(h ^ _orc_lane(_load64(p + at)), 27) * 5 + 0x52DCE729
                at += 8
            while at < n:
                self.rest[have & 7] = p[at]  # fewer than 8 bytes are left
                at += 1
                have += 1
        self.h = h

    def digest(self):
        """Return the hash of all bytes so far."""
        cdef uint64_t tail = 0
        cdef int i, have = <int>(self.size & 7)
        for i in range(have):
            tail |= <uint64_t>self.rest[i] << (8 * i)
        return _orc_finish(self.h ^ _orc_lane(tail) if have else self.h, self.size)


def orc_hash_bytes(const unsigned char[::1] data not None):
    """Return ORC's 64-bit Murmur3 of one value."""
    if data.shape[0] == 0:
        return _orc_murmur(<const unsigned char*>b"", 0)
    return _orc_murmur(&data[0], data.shape[0])


def orc_hash_long(const unsigned char[::1] values not None, int width, Py_ssize_t offset, Py_ssize_t length,
                  unsigned char[::1] out not None):
    """Compute ORC's hash of signed integers of 1, 4 or 8 bytes. Writes uint64s in native byte order to `out`."""
    _check_range(offset, length)
    if width not in (1, 4, 8) or values.shape[0] // width - length < offset:
        raise ValueError("fewer values than requested, or not an integer width")
    if out.shape[0] // 8 < length:
        raise ValueError("the output has no room for the hashes")
    if length == 0:
        return
    cdef const unsigned char* p = &values[0] + offset * width
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i
    cdef int64_t value, before = 0
    cdef uint64_t h = _wang(0)  # the hash of `before`: equal neighbours are hashed once
    with nogil:
        for i in range(length):
            if width == 8:
                value = <int64_t>_load64(p + i * 8)
            elif width == 4:
                value = <int32_t>_load32(p + i * 4)
            else:
                value = <signed char>p[i]
            if value != before:
                h = _wang(<uint64_t>value)
                before = value
            memcpy(o + i * 8, &h, 8)


def orc_hash_double(const unsigned char[::1] values not None, int width, Py_ssize_t offset, Py_ssize_t length,
                    unsigned char[::1] out not None):
    """Compute ORC's hash of floats (widened) and doubles: of their bits as a long, with every NaN as the canonical
    NaN. Writes uint64s in native byte order to `out`."""
    _check_range(offset, length)
    if width not in (4, 8) or values.shape[0] // width - length < offset:
        raise ValueError("fewer values than requested, or not a floating-point width")
    if out.shape[0] // 8 < length:
        raise ValueError("the output has no room for the hashes")
    if length == 0:
        return
    cdef const unsigned char* p = &values[0] + offset * width
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i
    cdef float narrow
    cdef double value
    cdef uint64_t bits, before = 0, h = _wang(0)  # the hash of `before`: equal neighbours are hashed once
    with nogil:
        for i in range(length):
            if width == 8:
                memcpy(&value, p + i * 8, 8)
            else:
                memcpy(&narrow, p + i * 4, 4)
                value = narrow
            if value != value:
                bits = 0x7FF8000000000000ULL
            else:
                memcpy(&bits, &value, 8)
            if bits != before:
                h = _wang(bits)
                before = bits
            memcpy(o + i * 8, &h, 8)


cdef uint32_t _km_bits(Py_ssize_t nbytes, int k) except 0:
    if nbytes <= 0 or nbytes > (1 << 27):
        raise ValueError("a bitset has 1 byte to 128 MiB")
    if not 1 <= k <= 1024:
        raise ValueError("a filter has 1 to 1024 hash functions")
    return <uint32_t>(nbytes * 8)


cdef struct Modulus:
    uint32_t bits
    int shift
    uint64_t magic


cdef Modulus _modulus(uint32_t bits) noexcept nogil:
    """Return the constants that replace a division by `bits` (at most 2^30).

    With 2^(l-1) < bits <= 2^l, magic is 2^(31+l) / bits, rounded up. magic * bits - 2^(31+l) is in 1..2^l, so
    c * magic >> (31+l) is c // bits for every c of 31 bits (Granlund and Montgomery, "Division by Invariant Integers
    using Multiplication", theorem 4.2). magic is at most 2^32 + 1, and the product is below 2^64.
    """
    cdef Modulus m
    cdef int l = 0
    while (<uint32_t>1 << l) < bits:
        l += 1
    m.bits = bits
    m.shift = 31 + l
    m.magic = (<uint64_t>1 << m.shift) // bits + 1
    return m


cdef inline uint32_t _km_bit(uint32_t combined, Modulus m) noexcept nogil:
    """Return the bit of h1 + i h2: complemented if negative, modulo the filter's bits. No division, no branch."""
    combined ^= 0 - (combined >> 31)
    return combined - <uint32_t>((combined * m.magic) >> m.shift) * m.bits


def km_insert(unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None, Py_ssize_t count, int k):
    """Insert `count` hashes, `k` bits each; equal neighbours once."""
    cdef Modulus m = _modulus(_km_bits(bitset.shape[0], k))
    if count < 0 or hashes.shape[0] // 8 < count:
        raise ValueError("fewer hashes than requested")
    if count == 0:
        return
    cdef unsigned char* b = &bitset[0]
    cdef const unsigned char* hs = &hashes[0]
    cdef Py_ssize_t n
    cdef uint32_t combined, step, bit
    cdef int i
    with nogil:
        for n in range(count):
            if n and _load64(hs + n * 8) == _load64(hs + n * 8 - 8):
                continue
            combined = _load32(hs + n * 8)
            step = _load32(hs + n * 8 + 4)
            for i in range(k):
                combined += step
                bit = _km_bit(combined, m)
                b[bit >> 3] |= <unsigned char>(1 << (bit & 7))


def km_check(const unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None, Py_ssize_t count,
             int k, unsigned char[::1] out not None):
    """Look up `count` hashes and set out[i] to 1 for "maybe", 0 for "absent". Return how many are absent."""
    cdef Modulus m = _modulus(_km_bits(bitset.shape[0], k))
    if count < 0 or hashes.shape[0] // 8 < count or out.shape[0] < count:
        raise ValueError("fewer hashes than requested, or no room for the answers")
    if count == 0:
        return 0
    cdef const unsigned char* b = &bitset[0]
    cdef const unsigned char* hs = &hashes[0]
    cdef Py_ssize_t n, absent = 0
    cdef uint32_t combined, step, bit
    cdef int i
    cdef unsigned char hit
    with nogil:
        for n in range(count):
            combined = _load32(hs + n * 8)
            step = _load32(hs + n * 8 + 4)
            hit = 1
            for i in range(k):
                combined += step
                bit = _km_bit(combined, m)
                if not (b[bit >> 3] >> (bit & 7)) & 1:
                    hit = 0
                    break
            out[n] = hit
            absent += 1 - hit
    return absent
