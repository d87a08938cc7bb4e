# Reads and writes the bits of an index of filters. Each block of the common size has 256 rows; a row has a bitmap of
# the units, and its XXH64. bloomcli/index/format.md describes the layout.

cdef enum:
    BLOCK_ROWS = 256       # the bits of a block: 8 words of 32
    CHECKSUM_BYTES = 8
    LANES = 64             # units in a word of a row


cdef inline void _transpose(uint32_t* a) noexcept nogil:
    """Transpose 8 matrices of 32 by 32 bits, one for each word of 32 blocks: bit i of word w of block r becomes bit r
    of word w of block i. The words are processed in parallel. Source: Hacker's Delight, 7-3."""
    cdef uint32_t mask = 0x0000FFFF, t
    cdef int j = 16, k, w
    cdef uint32_t* x
    cdef uint32_t* y
    while j != 0:
        k = 0
        while k < 32:
            x = a + k * 8
            y = a + (k + j) * 8
            for w in range(8):
                t = ((x[w] >> j) ^ y[w]) & mask
                x[w] ^= t << j
                y[w] ^= t
            k = (k + j + 1) & ~j
        j >>= 1
        mask ^= mask << j


cdef _check_window(Py_ssize_t nbytes, Py_ssize_t stride, Py_ssize_t blocks):
    if stride < CHECKSUM_BYTES * 2 or stride % 8 or stride > 1 << 32 or not 0 < blocks <= 1 << 30:
        raise ValueError("a row has whole words and a checksum, a window has blocks")
    if nbytes // stride // BLOCK_ROWS < blocks:
        raise ValueError("the window is shorter than its rows")


def index_set(unsigned char[::1] window not None, Py_ssize_t stride, Py_ssize_t blocks, const int64_t[::1] words not None,
              const int32_t[::1] lanes not None, const unsigned char[::1] bitsets not None):
    """Set the bits of units in a window of rows.

    Args:
        window: `blocks` times 256 rows of `stride` bytes.
        words: distinct positions of 64-bit words in the rows.
        lanes: the number of the bitset of the unit, for each of these words and each of its 64 bits; -1 for none.
        bitsets: the blocks of the units in the window, `blocks` times 32 bytes each.
    """
    _check_window(window.shape[0], stride, blocks)
    cdef Py_ssize_t n = words.shape[0], i, b, k, lane, size = blocks * 32, count = bitsets.shape[0] // size
    if lanes.shape[0] != n * LANES:
        raise ValueError("each word has 64 lanes")
    for i in range(n):
        if not 0 <= words[i] < stride // 8 - 1:
            raise ValueError("a word outside of the rows")
    for i in range(n * LANES):
        if not -1 <= lanes[i] < count:
            raise ValueError("a lane without a bitset")
    if n == 0 or count == 0:
        return
    cdef const unsigned char* p = &bitsets[0]
    cdef unsigned char* o
    cdef uint32_t[512] units
    cdef uint64_t word
    cdef int r
    with nogil:
        for b in range(blocks):
            for i in range(n):
                for k in range(LANES):
                    lane = lanes[i * LANES + k]
                    if lane < 0:
                        memset(units + k * 8, 0, 32)
                    else:
                        memcpy(units + k * 8, p + lane * size + b * 32, 32)
                _transpose(units)
                _transpose(units + 256)
                o = &window[b * BLOCK_ROWS * stride] + words[i] * 8
                for k in range(8):
                    for r in range(32):
                        word = _load64(o) | units[r * 8 + k] | <uint64_t>units[256 + r * 8 + k] << 32
                        memcpy(o, &word, 8)
                        o += stride


def index_checksums(const unsigned char[::1] rows not None, Py_ssize_t stride, Py_ssize_t first):
    """Return the checksum of each row of `stride` bytes, as uint64s: the XXH64 of its bits, which are in front of its
    last 8 bytes, with its number as the seed.

    Args:
        first: the number of the first row in the blob.
    """
    if stride < CHECKSUM_BYTES * 2 or stride % 8:
        raise ValueError("a row has whole words and a checksum")
    cdef Py_ssize_t i, count = rows.shape[0] // stride
    result = bytearray(count * 8)
    cdef unsigned char[::1] view = result
    cdef uint64_t found
    with nogil:
        for i in range(count):
            found = _xxh64_seeded(&rows[i * stride], stride - CHECKSUM_BYTES, first + i)
            memcpy(&view[i * 8], &found, 8)
    return result
