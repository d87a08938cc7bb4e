# CRC-32C (Castagnoli), as in Hadoop's checksum files. Source: RFC 3720, appendix B.4.
cdef uint32_t[8][256] CRC


cdef void _crc_tables() noexcept:
    cdef uint32_t n, c, k
    for n in range(256):
        c = n
        for k in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
        CRC[0][n] = c
    for n in range(256):
        c = CRC[0][n]
        for k in range(1, 8):
            c = CRC[0][c & 0xFF] ^ (c >> 8)
            CRC[k][n] = c


_crc_tables()


cdef uint32_t _crc32c(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    cdef uint32_t crc = ~<uint32_t>0, low, high
    while size >= 8:
        low = _load32(p) ^ crc
        high = _load32(p + 4)
        crc = (CRC[7][low & 0xFF] ^ CRC[6][(low >> 8) & 0xFF] ^ CRC[5][(low >> 16) & 0xFF] ^ CRC[4][low >> 24]
               ^ CRC[3][high & 0xFF] ^ CRC[2][(high >> 8) & 0xFF] ^ CRC[1][(high >> 16) & 0xFF] ^ CRC[0][high >> 24])
        p += 8
        size -= 8
    while size > 0:
        crc = CRC[0][(crc ^ p[0]) & 0xFF] ^ (crc >> 8)
        p += 1
        size -= 1
    return ~crc


def crc32c_chunks(const unsigned char[::1] data not None, Py_ssize_t size):
    """Return the CRC-32C of each `size` bytes of `data`, big-endian, concatenated."""
    if size < 1:
        raise ValueError("a chunk has at least one byte")
    cdef Py_ssize_t total = data.shape[0], at = 0, n = 0
    size = min(size, max(total, 1))
    result = bytearray(((total + size - 1) // size) * 4)
    if total == 0:
        return bytes(result)
    cdef unsigned char[::1] view = result
    cdef uint32_t crc
    with nogil:
        while at < total:
            crc = _crc32c(&data[at], min(size, total - at))
            view[n] = crc >> 24
            view[n + 1] = (crc >> 16) & 0xFF
            view[n + 2] = (crc >> 8) & 0xFF
            view[n + 3] = crc & 0xFF
            n += 4
            at += size
    return bytes(result)
