# Bloom filters of Hadoop's kind: k hashes of 32 bits, each with the one before it as its seed.
#
# A hash selects the bit |hash % m|, with the sign of Java's remainder. Sources: Hadoop's HashFunction and MurmurHash,
# which extends the sign of the one to three bytes after the last whole word and takes them from the end; JenkinsHash,
# which is Bob Jenkins' lookup3 (hashlittle).

cdef inline uint32_t _java_murmur(const unsigned char* p, Py_ssize_t size, uint32_t seed) noexcept nogil:
    cdef uint32_t h = seed ^ <uint32_t>size, k
    cdef Py_ssize_t at = 0, left = size & 3
    while size - at >= 4:
        k = _load32(p + at) * 0x5BD1E995U
        h = (h * 0x5BD1E995U) ^ ((k ^ (k >> 24)) * 0x5BD1E995U)
        at += 4
    if left:
        if left == 3:
            h ^= <uint32_t><int32_t><signed char>p[size - 3] << 16
        if left >= 2:
            h ^= <uint32_t><int32_t><signed char>p[size - 2] << 8
        h = (h ^ <uint32_t><int32_t><signed char>p[size - 1]) * 0x5BD1E995U
    h = (h ^ (h >> 13)) * 0x5BD1E995U
    return h ^ (h >> 15)


cdef inline uint32_t _rotl32(uint32_t x, int r) noexcept nogil:
    return (x << r) | (x >> (32 - r))


cdef inline uint32_t _lookup3(const unsigned char* p, Py_ssize_t size, uint32_t seed) noexcept nogil:
    cdef uint32_t a = 0xDEADBEEFU + <uint32_t>size + seed, b = a, c = a
    cdef unsigned char[12] last
    while size > 12:
        a += _load32(p)
        b += _load32(p + 4)
        c += _load32(p + 8)
        a = (a - c) ^ _rotl32(c, 4)
        c += b
        b = (b - a) ^ _rotl32(a, 6)
        a += c
        c = (c - b) ^ _rotl32(b, 8)
        b += a
        a = (a - c) ^ _rotl32(c, 16)
        c += b
        b = (b - a) ^ _rotl32(a, 19)
        a += c
        c = (c - b) ^ _rotl32(b, 4)
        b += a
        p += 12
        size -= 12
    memset(last, 0, 12)
    memcpy(last, p, size)
    a += _load32(last)
    b += _load32(last + 4)
    c += _load32(last + 8)
    c = (c ^ b) - _rotl32(b, 14)
    a = (a ^ c) - _rotl32(c, 11)
    b = (b ^ a) - _rotl32(a, 25)
    c = (c ^ b) - _rotl32(b, 16)
    a = (a ^ c) - _rotl32(c, 4)
    b = (b ^ a) - _rotl32(a, 14)
    return (c ^ b) - _rotl32(b, 24)


cdef inline uint32_t _chained_bit(const unsigned char* p, Py_ssize_t size, bint jenkins, int32_t m,
                                  uint32_t* h) noexcept nogil:
    h[0] = _lookup3(p, size, h[0]) if jenkins else _java_murmur(p, size, h[0])
    cdef int32_t rest = <int32_t>h[0] % m
    return <uint32_t>(-rest if rest < 0 else rest)


def chained_bits(const unsigned char[::1] value not None, int m, int k, bint jenkins):
    """Return the first hash of a value of at least one byte, and the k bits that it selects in a filter of m bits."""
    if m < 1 or k < 1 or value.shape[0] < 1:
        raise ValueError("a filter has at least one bit and one hash function, and a value one byte")
    cdef uint32_t h = 0, first
    bits = [_chained_bit(&value[0], value.shape[0], jenkins, m, &h)]
    first = h
    for _ in range(k - 1):
        bits.append(_chained_bit(&value[0], value.shape[0], jenkins, m, &h))
    return first, bits


def chained_check(const unsigned char[::1] bitset not None, int m, int k, bint jenkins,
                  const unsigned char[::1] data not None, const int64_t[::1] offsets not None,
                  unsigned char[::1] out not None):
    """Set out[i] to 1 if the filter has value i. The other bytes of `out` stay, so that filters can be joined."""
    cdef Py_ssize_t count = offsets.shape[0] - 1, i
    cdef int64_t last = 0
    if m < 1 or k < 1 or bitset.shape[0] < (<int64_t>m + 7) // 8:
        raise ValueError("a filter has at least one bit and one hash function, and a byte for eight bits")
    if count < 0 or out.shape[0] < count:
        raise ValueError("no offsets, or an output without room for the answers")
    for i in range(count + 1):
        if offsets[i] < last or offsets[i] > data.shape[0]:
            raise ValueError("offsets outside of the data")
        last = offsets[i]
    if count == 0 or data.shape[0] == 0:
        return
    cdef const unsigned char* p = &data[0]
    cdef const unsigned char* bits = &bitset[0]
    cdef uint32_t h, bit
    cdef int j
    cdef bint found
    with nogil:
        for i in range(count):
            if offsets[i + 1] == offsets[i] or out[i]:
                continue
            h = 0
            found = True
            for j in range(k):
                bit = _chained_bit(p + offsets[i], offsets[i + 1] - offsets[i], jenkins, m, &h)
                if not bits[bit >> 3] >> (bit & 7) & 1:
                    found = False
                    break
            if found:
                out[i] = 1
