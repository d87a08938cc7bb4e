# Reads and writes the bits of an index of filters. Each block of the common size has 256 rows; a row has a bitmap of
# the units, and its XXH64. bloomcli/index/format.md describes the layout.

from cpython.bytearray cimport PyByteArray_AS_STRING

cdef enum:
    BLOCK_ROWS = 256       # the bits of a block: 8 words of 32
    CHECKSUM_BYTES = 8
    LANES = 64             # units in a word of a row


ctypedef const unsigned char* Row


cdef inline Py_ssize_t _first_in(Py_ssize_t block, uint64_t blocks, uint64_t others) noexcept nogil:
    """Return the first of `others` blocks that shares hashes with this one of `blocks` blocks."""
    cdef uint64_t lowest = ((<uint64_t>block << 32) + blocks - 1) / blocks
    return <Py_ssize_t>(lowest * others >> 32)


cdef inline Py_ssize_t _last_in(Py_ssize_t block, uint64_t blocks, uint64_t others) noexcept nogil:
    """Return the last of `others` blocks that shares hashes with this one of `blocks` blocks."""
    cdef uint64_t highest = ((<uint64_t>(block + 1) << 32) + blocks - 1) / blocks - 1
    return <Py_ssize_t>(highest * others >> 32)


cdef _check_blocks(Py_ssize_t blocks):
    if not 0 < blocks <= 1 << 30:
        raise ValueError(f"a filter can't have {blocks} blocks")


def sbbf_source(Py_ssize_t blocks, Py_ssize_t source, Py_ssize_t first, Py_ssize_t count):
    """Return the first block and the end of the blocks, in a filter of `source` blocks, that share hashes with
    `count` blocks of a filter of `blocks` blocks, from `first` on."""
    _check_blocks(blocks)
    _check_blocks(source)
    if first < 0 or count < 1 or first > blocks - count:
        raise ValueError("there are no such blocks")
    return _first_in(first, blocks, source), _last_in(first + count - 1, blocks, source) + 1


def sbbf_spread(const unsigned char[::1] part not None, Py_ssize_t part_first, Py_ssize_t source, Py_ssize_t blocks,
                Py_ssize_t first, Py_ssize_t count, unsigned char[::1] out not None, Py_ssize_t at):
    """Convert a filter of `source` blocks to one of `blocks` blocks, and write `count` of its blocks, from `first`
    on.

    Each new block is the OR of all old blocks that share hashes with it: smaller filters are replicated, larger ones
    folded. The result contains every value of the old filter.

    Args:
        part: blocks of the old filter, from `part_first` on, at least those of `sbbf_source`.
        at: the position in `out`, in bytes.
    """
    low, high = sbbf_source(blocks, source, first, count)
    if low < part_first or part.shape[0] // 32 < high - part_first or at < 0 or at > out.shape[0] - count * 32:
        raise ValueError("the part has other blocks, or there is no room for the new ones")
    with nogil:
        _spread(&part[0], part_first, source, blocks, first, count, &out[at])


cdef void _spread(const unsigned char* part, Py_ssize_t part_first, Py_ssize_t source, Py_ssize_t blocks,
                  Py_ssize_t first, Py_ssize_t count, unsigned char* out) noexcept nogil:
    cdef Py_ssize_t b, s, last, j
    cdef uint64_t[4] bits
    cdef const unsigned char* block
    for b in range(count):
        s = _first_in(first + b, blocks, source)
        last = _last_in(first + b, blocks, source)
        memcpy(bits, part + (s - part_first) * 32, 32)
        for s in range(s + 1, last + 1):
            block = part + (s - part_first) * 32
            for j in range(4):
                bits[j] |= _load64(block + j * 8)
        memcpy(out + b * 32, bits, 32)


cdef extern from *:
    """
    #if defined(_WIN32)
    #define BLOOM_PREAD(fd, to, size, at) (-1)
    #else
    #include <unistd.h>
    #define BLOOM_PREAD(fd, to, size, at) pread((fd), (to), (size), (off_t)(at))
    #endif
    """
    Py_ssize_t BLOOM_PREAD(int fd, void* to, size_t size, int64_t at) noexcept nogil


cdef inline bint _read_at(int fd, unsigned char* to, Py_ssize_t size, int64_t at) noexcept nogil:
    cdef Py_ssize_t found
    while size > 0:
        found = BLOOM_PREAD(fd, to, size, at)
        if found <= 0:
            return False
        to += found
        at += found
        size -= found
    return True


def sbbf_gather(int fd, const int64_t[::1] offsets not None, const int32_t[::1] sizes not None, Py_ssize_t blocks,
                Py_ssize_t first, Py_ssize_t count, unsigned char[::1] out not None):
    """Read blocks of many filters from an open file, each folded or replicated to `blocks` blocks, like
    `sbbf_spread`.

    Args:
        offsets: the starts of the filters in the file.
        sizes: their numbers of blocks.
        out: receives `count` blocks, from `first` on, of each filter.

    Returns the position of the first filter that can't be read, for which the caller finds the error; -1 if all can.
    """
    cdef Py_ssize_t n = offsets.shape[0], i, low, high, longest = 0
    if sizes.shape[0] != n or out.shape[0] // 32 // max(count, 1) < n:
        raise ValueError("there is no room for the blocks")
    sbbf_source(blocks, 1, first, count)
    for i in range(n):
        _check_blocks(sizes[i])
        longest = max(longest, _last_in(first + count - 1, blocks, sizes[i]) + 1 - _first_in(first, blocks, sizes[i]))
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
            low = _first_in(first, blocks, sizes[i])
            high = _last_in(first + count - 1, blocks, sizes[i]) + 1
            if not _read_at(fd, o if sizes[i] == blocks else part, (high - low) * 32, offsets[i] + low * 32):
                wrong = i
                break
            if sizes[i] == blocks:
                continue
            _spread(part, low, sizes[i], blocks, first, count, o)
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


def index_mask(unsigned char[::1] window not None, Py_ssize_t stride, Py_ssize_t blocks,
               const unsigned char[::1] keep, const unsigned char[::1] ones):
    """Clear the bits of units that aren't in the bitmap `keep`, and set those of units in `ones`; None has no
    effect."""
    _check_window(window.shape[0], stride, blocks)
    cdef Py_ssize_t width = stride - CHECKSUM_BYTES, row, i
    if (keep is not None and keep.shape[0] < width) or (ones is not None and ones.shape[0] < width):
        raise ValueError("a bitmap is as long as a row")
    cdef const unsigned char* k = NULL
    cdef const unsigned char* s = NULL
    cdef unsigned char* o
    cdef uint64_t word
    if keep is not None:
        k = &keep[0]
    if ones is not None:
        s = &ones[0]
    with nogil:
        for row in range(blocks * BLOCK_ROWS):
            o = &window[row * stride]
            i = 0
            while i < width:
                word = _load64(o + i)
                if k != NULL:
                    word &= _load64(k + i)
                if s != NULL:
                    word |= _load64(s + i)
                memcpy(o + i, &word, 8)
                i += 8


def index_copy(const unsigned char[::1] old not None, Py_ssize_t old_stride, Py_ssize_t old_first, Py_ssize_t old_blocks,
               unsigned char[::1] window not None, Py_ssize_t stride, Py_ssize_t first, Py_ssize_t count,
               Py_ssize_t blocks):
    """Copy the bits of rows from an old index: block b of `blocks` gets those of block b * old_blocks / blocks.

    Args:
        old: rows of the old index, from its block `old_first` on; the index has `old_blocks` blocks.
        window: `count` blocks of the new index, from `first` on.
    """
    _check_blocks(blocks)
    _check_blocks(old_blocks)
    _check_window(window.shape[0], stride, count)
    if first < 0 or first > blocks - count:
        raise ValueError("there are no such blocks")
    cdef Py_ssize_t low = first * old_blocks // blocks, high = (first + count - 1) * old_blocks // blocks
    if low < old_first:
        raise ValueError("the old rows have other blocks")
    _check_window(old.shape[0], old_stride, high - old_first + 1)
    cdef Py_ssize_t width = min(stride, old_stride) - CHECKSUM_BYTES, b, r, source
    with nogil:
        for b in range(count):
            source = (first + b) * old_blocks // blocks - old_first
            for r in range(BLOCK_ROWS):
                memcpy(&window[(b * BLOCK_ROWS + r) * stride], &old[(source * BLOCK_ROWS + r) * old_stride], width)


def index_seal(unsigned char[::1] rows not None, Py_ssize_t stride, Py_ssize_t first):
    """Write the checksum of each row of `stride` bytes: the XXH64 of its bits, with its number as the seed.

    Args:
        first: the number of the first row in the blob.
    """
    if stride < CHECKSUM_BYTES * 2 or stride % 8:
        raise ValueError("a row has whole words and a checksum")
    cdef Py_ssize_t i, width = stride - CHECKSUM_BYTES
    cdef uint64_t found
    with nogil:
        for i in range(rows.shape[0] / stride):
            found = _xxh64_seeded(&rows[i * stride], width, first + i)
            memcpy(&rows[i * stride + width], &found, 8)


def index_check(const unsigned char[::1] rows not None, Py_ssize_t stride, Py_ssize_t first):
    """Return the position of the first row with a wrong checksum, of those that `index_seal` writes; -1 if there is
    none."""
    if stride < CHECKSUM_BYTES * 2 or stride % 8:
        raise ValueError("a row has whole words and a checksum")
    cdef Py_ssize_t i, width = stride - CHECKSUM_BYTES, wrong = -1
    with nogil:
        for i in range(rows.shape[0] / stride):
            if _xxh64_seeded(&rows[i * stride], width, first + i) != _load64(&rows[i * stride + width]):
                wrong = i
                break
    return wrong


def index_order(const unsigned char[::1] hashes not None, Py_ssize_t blocks):
    """Return the positions of hashes, as int64s, sorted (stably) by the blocks that they select."""
    _check_blocks(blocks)
    cdef Py_ssize_t count = hashes.shape[0] // 8, i, at
    starts = bytearray((blocks + 1) * 8)
    result = bytearray(count * 8)
    if count == 0:
        return result
    cdef unsigned char[::1] starts_view = starts, view = result
    cdef int64_t* s = <int64_t*>&starts_view[0]
    cdef int64_t* o = <int64_t*>&view[0]
    cdef const unsigned char* h = &hashes[0]
    with nogil:
        for i in range(count):
            s[_block(_load64(h + i * 8), blocks) + 1] += 1
        for i in range(blocks):
            s[i + 1] += s[i]
        for i in range(count):
            at = _block(_load64(h + i * 8), blocks)
            o[s[at]] = i
            s[at] += 1
    return result


def index_groups(const unsigned char[::1] hashes not None, const int64_t[::1] order not None, Py_ssize_t blocks):
    """Return the blocks that hashes select, as int64s: the number of each block, and the position in `order` of its
    first hash."""
    _check_blocks(blocks)
    cdef Py_ssize_t count = order.shape[0], i, n = 0
    cdef int64_t block, before = -1
    for i in range(count):
        if not 0 <= order[i] < hashes.shape[0] // 8:
            raise ValueError("there is no such hash")
    result = bytearray(min(count, blocks) * 16)
    if count == 0:
        return result
    cdef unsigned char[::1] view = result
    cdef int64_t* o = <int64_t*>&view[0]
    with nogil:
        for i in range(count):
            block = _block(_load64(&hashes[order[i] * 8]), blocks)
            if block < before:
                n = -1
                break
            if block > before:
                o[n * 2] = block
                o[n * 2 + 1] = i
                n += 1
                before = block
    if n < 0:
        raise ValueError("the hashes aren't in the order of their blocks")
    del view
    return result[:n * 16]


cdef inline void _rows_of(uint64_t h, const unsigned char* slab, Py_ssize_t stride,
                          Row* rows) noexcept nogil:
    """Select the 8 rows of a hash from the rows of its block."""
    cdef int j
    for j in range(8):
        rows[j] = slab + (j * 32 + (<uint32_t>(<uint32_t>h * SALT[j]) >> 27)) * stride


cdef inline uint64_t _all_of(Row* rows, Py_ssize_t i) noexcept nogil:
    return (_load64(rows[0] + i) & _load64(rows[1] + i) & _load64(rows[2] + i) & _load64(rows[3] + i)
            & _load64(rows[4] + i) & _load64(rows[5] + i) & _load64(rows[6] + i) & _load64(rows[7] + i))


def index_any(const unsigned char[::1] window not None, Py_ssize_t stride, Py_ssize_t first, Py_ssize_t blocks,
              const unsigned char[::1] hashes not None, const int64_t[::1] order not None, Py_ssize_t start,
              Py_ssize_t end, unsigned char[::1] out not None):
    """Set the bits of the units that may have one of the hashes in the bitmap `out`.

    Args:
        window: whole blocks, from the block `first` of `blocks` on.
        stride: bytes of a row.
        hashes: uint64s in native order.
        order: positions of hashes, in the order of their blocks; those from `start` to `end` are looked up.
        out: a bitmap as long as a row's bits.
    """
    _check_blocks(blocks)
    cdef Py_ssize_t width = stride - CHECKSUM_BYTES, i, b, at, count = hashes.shape[0] // 8
    if first < 0 or not 0 <= start <= end <= order.shape[0] or out.shape[0] < width:
        raise ValueError("there are no such hashes, or there is no room for the answers")
    _check_window(window.shape[0], stride, 1)
    cdef Py_ssize_t held = window.shape[0] // stride // BLOCK_ROWS
    cdef Row[8] rows
    cdef unsigned char* o = &out[0]
    cdef uint64_t h, word
    cdef bint bad = False
    with nogil:
        for i in range(start, end):
            if not 0 <= order[i] < count:
                bad = True
                break
            h = _load64(&hashes[order[i] * 8])
            b = _block(h, blocks) - first
            if not 0 <= b < held:
                bad = True
                break
            _rows_of(h, &window[b * BLOCK_ROWS * stride], stride, rows)
            at = 0
            while at < width:
                word = _load64(o + at) | _all_of(rows, at)
                memcpy(o + at, &word, 8)
                at += 8
    if bad:
        raise ValueError("a hash selects a block outside of the window")


def index_units(const int32_t[::1] files not None, const int32_t[::1] row_groups not None,
                const unsigned char[::1] states not None, const float[::1] rates not None,
                const int64_t[::1] counts not None):
    """Check the units of a column. `counts`: the number of row groups of each file of the index.

    Returns 0, or the number of the first fault. 1: a file that isn't in the index. 2: an unknown state. 3: a free
    slot with a file, or a unit without one. 4: a rate below 0 or above 1. 5: a row group that its file doesn't have.
    6: a row group that occurs twice.
    """
    cdef Py_ssize_t n = files.shape[0], m = counts.shape[0], i
    cdef int64_t total = 0
    if row_groups.shape[0] != n or states.shape[0] != n or rates.shape[0] != n:
        raise ValueError("the columns differ in length")
    starts = bytearray(8 * (m + 1))
    cdef int64_t* start = <int64_t*>PyByteArray_AS_STRING(starts)
    for i in range(m):
        if not 0 <= counts[i] <= (1 << 40) - total:
            raise ValueError("there can't be so many row groups")
        start[i] = total
        total += counts[i]
    for i in range(n):
        if not -1 <= files[i] < m:
            return 1
    for i in range(n):
        if states[i] > 3:
            return 2
    for i in range(n):
        if (states[i] == 0) != (files[i] == -1):
            return 3
    for i in range(n):
        if not 0.0 <= rates[i] <= 1.0:
            return 4
    for i in range(n):
        if files[i] >= 0 and not 0 <= row_groups[i] < counts[files[i]]:
            return 5
    seen = bytearray(total)
    cdef char* s = PyByteArray_AS_STRING(seen)
    for i in range(n):
        if files[i] >= 0:
            if s[start[files[i]] + row_groups[i]]:
                return 6
            s[start[files[i]] + row_groups[i]] = 1
    return 0


def index_moments(const unsigned char[::1] moments not None, Py_ssize_t count, unsigned char[::1] out not None):
    """Convert timestamps of `orc_moments`, 12 bytes each, to nanoseconds: 16 bytes each, little-endian two's
    complement."""
    if count < 0 or moments.shape[0] // 12 < count or out.shape[0] // 16 < count:
        raise ValueError("fewer timestamps than requested, or no room for them")
    if count == 0:
        return
    cdef const unsigned char* p = &moments[0]
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i
    cdef uint64_t millis, part, low, high, half = 0xFFFFFFFF
    cdef bint negative
    with nogil:
        for i in range(count):
            millis = _load64(p + i * 12)
            negative = millis >> 63
            if negative:
                millis = 0 - millis
            part = (millis & half) * 1000000
            high = (millis >> 32) * 1000000 + (part >> 32)
            low = high << 32 | (part & half)
            high >>= 32
            if negative:
                low = 0 - low
                high = ~high + (low == 0)
            low += _load32(p + i * 12 + 8)
            high += low < _load32(p + i * 12 + 8)
            memcpy(o + i * 16, &low, 8)
            memcpy(o + i * 16 + 8, &high, 8)
