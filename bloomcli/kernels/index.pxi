# Reads and writes the bits of an index of filters. Each block of the common size has 256 rows; a row has a bitmap of
# the units, and its XXH64. bloomcli/index/format.md describes the layout.

cdef enum:
    BLOCK_ROWS = 256       # the bits of a block: 8 words of 32
    CHECKSUM_BYTES = 8
    LANES = 64             # units in a word of a row


cdef inline bint _read_at(int fd, unsigned char* to, Py_ssize_t size, int64_t at) noexcept nogil:
    cdef Py_ssize_t found
    while size > 0:
        found = bloom_pread(fd, to, size, at)
        if found <= 0:
            return False
        to += found
        at += found
        size -= found
    return True


def sbbf_gather(int fd, const int64_t[::1] offsets not None, const int32_t[::1] sizes not None, Py_ssize_t blocks,
                Py_ssize_t first, Py_ssize_t count, unsigned char[::1] out not None):
    """Read blocks of many filters from an open file, each folded or replicated to `blocks` blocks, as by
    `sbbf_resized`.

    Args:
        offsets: the starts of the filters in the file.
        sizes: their numbers of blocks.
        out: receives `count` blocks, from `first` on, of each filter.

    Returns the position of the first filter that can't be read, for which the caller finds the error; -1 if all can.
    """
    cdef Py_ssize_t n = offsets.shape[0], i, low, high, longest = 0
    if sizes.shape[0] != n or out.shape[0] // 32 // max(count, 1) < n:
        raise ValueError("there is no room for the blocks")
    _check_blocks(blocks)
    if first < 0 or count < 1 or first > blocks - count:
        raise ValueError("there are no such blocks")
    cdef uint64_t least = _least_hash(first, blocks), most = _least_hash(first + count, blocks) - 1
    for i in range(n):
        _check_blocks(sizes[i])
        longest = max(longest, <Py_ssize_t>((most * sizes[i] >> 32) + 1 - (least * sizes[i] >> 32)))
    if n == 0:
        return -1
    held = bytearray(longest * 32)
    cdef unsigned char[::1] held_view = held
    cdef unsigned char* part = &held_view[0]
    cdef unsigned char* o
    cdef Py_ssize_t wrong = -1
    with nogil:
        for i in range(n):
            o = &out[i * count * 32]
            low, high = <Py_ssize_t>(least * sizes[i] >> 32), <Py_ssize_t>(most * sizes[i] >> 32) + 1
            if not _read_at(fd, o if sizes[i] == blocks else part, (high - low) * 32, offsets[i] + low * 32):
                wrong = i
                break
            if sizes[i] != blocks:
                _resize(part, sizes[i], blocks, first, count, o)
    return wrong


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
