# Value sections of Parquet data pages, straight to hashes.
#
# Source: the Apache Parquet format's Encodings.md. Values are hashed in PLAIN form, so most encodings
# need no decoding at all: what lies in the page is what gets hashed. Nulls have no bytes in a value
# section; only their number matters, and `count_levels` tells it. Every length is checked against the
# page before it is used.

class PageError(ValueError):
    """A page's bytes contradict its header or its encoding."""


cdef const unsigned char* _start(const unsigned char[::1] data, Py_ssize_t pos) except? NULL:
    if pos < 0 or pos > data.shape[0]:
        raise PageError("the page's values run past its end")
    return &data[0] if data.shape[0] else <const unsigned char*>b""


cdef uint64_t* _room(unsigned char[::1] out, Py_ssize_t count) except? NULL:
    if count < 0 or out.shape[0] // 8 < count:
        raise ValueError("the output has no room for the values")
    return <uint64_t*>&out[0] if out.shape[0] else <uint64_t*><void*>b"\0\0\0\0\0\0\0\0"


cdef inline uint32_t _u32(const unsigned char* p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


def count_levels(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t end, int bit_width,
                 Py_ssize_t count, int target):
    """How many of `count` RLE/bit-packed hybrid levels in data[pos:end] equal `target`."""
    cdef Walk w
    cdef Py_ssize_t seen = 0, hits = 0, groups, i, values
    cdef uint64_t head
    cdef int level, width_bytes = (bit_width + 7) // 8, bit
    cdef uint32_t window
    if not 1 <= bit_width <= 16:
        raise ValueError("levels are 1 to 16 bits wide")
    if end > data.shape[0] or pos > end:
        raise PageError("the levels run past the page's end")
    _walk_open(&w, data, pos)
    w.end = end
    with nogil:
        while seen < count:
            pos = _varint(&w, pos, &head)
            if pos < 0:
                break
            if head & 1:
                groups = <Py_ssize_t>(head >> 1)
                # a run may be cut at the page's end where its last groups hold no values
                if groups > (end - pos) // bit_width + 1:
                    groups = (end - pos) // bit_width + 1
                values = min(groups * 8, count - seen)
                for i in range(values):
                    bit = <int>((i * bit_width) & 7)
                    if pos + (i * bit_width + bit_width - 1) // 8 >= end:
                        pos = -1
                        break
                    window = w.data[pos + (i * bit_width) // 8]
                    if bit + bit_width > 8:
                        window |= <uint32_t>w.data[pos + (i * bit_width) // 8 + 1] << 8
                    if bit + bit_width > 16:
                        window |= <uint32_t>w.data[pos + (i * bit_width) // 8 + 2] << 16
                    level = <int>((window >> bit) & ((1 << bit_width) - 1))
                    hits += level == target
                if pos < 0:
                    break
                if values == 0:
                    pos = -1
                    break
                pos += groups * bit_width
                seen += values
            else:
                if pos + width_bytes > end or head >> 1 == 0:
                    pos = -1
                    break
                level = w.data[pos]
                if width_bytes > 1:
                    level |= w.data[pos + 1] << 8
                pos += width_bytes
                values = <Py_ssize_t>min(head >> 1, <uint64_t>(count - seen))
                if level == target:
                    hits += values
                seen += values
    if pos < 0 or seen < count:
        raise PageError("the levels end before the page's last value")
    return hits


def mark_indices(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t count, unsigned char[::1] seen,
                 Py_ssize_t unseen):
    """Set seen[i] to 1 for every dictionary index i among a data page's `count`; returns how many are then 0.

    From `pos` on: a byte with the bit width, then RLE/bit-packed hybrid runs. `unseen` says how many bytes of
    `seen` are 0 before; where none is left, the rest of the indices isn't looked at.
    """
    cdef Walk w
    cdef Py_ssize_t done = 0, size = seen.shape[0], end = data.shape[0], groups, held, values, i, at
    cdef uint64_t head, window, mask, index
    cdef int width, width_bytes, b
    cdef bint bad = False
    _start(data, pos)
    if count <= 0 or (unseen <= 0 and size > 0):
        return unseen
    if pos >= end:
        raise PageError("the page has no bit width for its dictionary indices")
    width = data[pos]
    pos += 1
    if width > 32:
        raise PageError(f"dictionary indices {width} bits wide")
    width_bytes = (width + 7) // 8
    mask = (<uint64_t>1 << width) - 1
    index = 0
    _walk_open(&w, data, pos)
    with nogil:
        while done < count:
            if width == 0:  # all are 0, and take no bytes
                values = count
                head = 0
            else:
                pos = _varint(&w, pos, &head)
                if pos < 0 or head >> 1 == 0:
                    bad = True
                    break
            if head & 1:
                # a run may be cut at the page's end where its last groups hold no values
                held = ((end - pos) * 8) // width
                groups = <Py_ssize_t>min(head >> 1, <uint64_t>(held // 8 + 1))
                values = min(groups * 8, count - done)
                if values > held:
                    bad = True
                    break
                for i in range(values):
                    at = pos + (i * width) // 8
                    if end - at >= 8:
                        window = _load64(w.data + at)
                    else:
                        window = 0
                        for b in range(<int>(end - at)):
                            window |= <uint64_t>w.data[at + b] << (8 * b)
                    index = (window >> ((i * width) & 7)) & mask
                    if index >= <uint64_t>size:
                        break
                    if not seen[index]:
                        seen[index] = 1
                        unseen -= 1
                        if unseen == 0:
                            break
                pos += groups * width
            else:
                if width:
                    if width_bytes > end - pos:
                        bad = True
                        break
                    index = 0
                    for b in range(width_bytes):
                        index |= <uint64_t>w.data[pos + b] << (8 * b)
                    pos += width_bytes
                    values = <Py_ssize_t>min(head >> 1, <uint64_t>(count - done))
                if index < <uint64_t>size and not seen[index]:
                    seen[index] = 1
                    unseen -= 1
            if index >= <uint64_t>size or unseen == 0:
                break
            done += values
    if bad:
        raise PageError("the dictionary indices end before the page's last value")
    if index >= <uint64_t>size:
        raise PageError(f"a dictionary index of {index}, and the dictionary has {size} values")
    return unseen


def hash_plain_binary(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t count, unsigned char[::1] out):
    """XXH64 of `count` PLAIN BYTE_ARRAY values (u32 LE length, bytes) from `pos` on."""
    cdef const unsigned char* p = _start(data, pos)
    cdef uint64_t* hashes = _room(out, count)
    cdef Py_ssize_t end = data.shape[0], i
    cdef uint32_t size
    cdef bint bad = False
    with nogil:
        for i in range(count):
            if end - pos < 4:
                bad = True
                break
            size = _u32(p + pos)
            pos += 4
            if <Py_ssize_t>size > end - pos:
                bad = True
                break
            hashes[i] = _xxh64(p + pos, size)
            pos += size
    if bad:
        raise PageError("a byte array runs past the page's end")


cdef Py_ssize_t _delta_head(Walk* w, Py_ssize_t pos, uint64_t* block, uint64_t* minis, uint64_t* total,
                            uint64_t* first) except -1:
    """The header of DELTA_BINARY_PACKED values; its count is checked against the bytes behind it."""
    pos = _varint(w, pos, block)
    if pos >= 0:
        pos = _varint(w, pos, minis)
    if pos >= 0:
        pos = _varint(w, pos, total)
    if pos >= 0:
        pos = _varint(w, pos, first)
    if pos < 0:
        raise PageError("the delta header is cut off")
    if minis[0] == 0 or block[0] == 0 or block[0] > 8192 or block[0] % minis[0] or (block[0] // minis[0]) % 8:
        raise PageError("the delta header's block sizes can't be")
    # a block takes its smallest delta and its bit widths at least: a byte, and one a miniblock
    if total[0] > 1 + block[0] * (<uint64_t>(w.end - pos) // (1 + minis[0])):
        raise PageError("the delta header's count is larger than its blocks can hold")
    return pos


def delta_count(const unsigned char[::1] data, Py_ssize_t pos):
    """How many values a DELTA_BINARY_PACKED section says it has; no more than its bytes can hold."""
    cdef Walk w
    cdef uint64_t block = 0, minis = 0, total = 0, first = 0
    _walk_open(&w, data, pos)
    _delta_head(&w, pos, &block, &minis, &total, &first)
    return total


def delta_binary_packed(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t limit, unsigned char[::1] out):
    """Decode DELTA_BINARY_PACKED into int64s: (how many, position after them). At most `limit` of them.

    INT32 columns wrap at 32 bits: their values are the low 32 bits of what is written.
    """
    cdef Walk w
    cdef uint64_t block = 0, minis = 0, total = 0, raw = 0, value, min_delta, delta
    cdef uint64_t* values = _room(out, limit)
    cdef Py_ssize_t seen = 0, per_mini, i, m, widths, at
    cdef int width, have, need, bit
    cdef bint bad = False
    _walk_open(&w, data, pos)
    pos = _delta_head(&w, pos, &block, &minis, &total, &raw)
    if total > <uint64_t>limit:
        raise PageError("the delta header's count is larger than the page's")
    per_mini = <Py_ssize_t>(block // minis)
    value = (raw >> 1) ^ (0 - (raw & 1))
    with nogil:
        if total > 0:
            values[0] = value
            seen = 1
        while seen < <Py_ssize_t>total and not bad:
            pos = _varint(&w, pos, &raw)
            if pos < 0 or <uint64_t>(w.end - pos) < minis:
                bad = True
                break
            min_delta = (raw >> 1) ^ (0 - (raw & 1))
            widths = pos
            pos += <Py_ssize_t>minis
            for m in range(<Py_ssize_t>minis):
                if seen >= <Py_ssize_t>total:
                    break
                width = w.data[widths + m]
                if width > 64 or (per_mini // 8) * width > w.end - pos:
                    bad = True
                    break
                for i in range(min(per_mini, <Py_ssize_t>total - seen)):
                    delta = 0
                    have = 0
                    at = pos + (i * width) // 8
                    bit = <int>((i * width) & 7)
                    while have < width:
                        need = min(8 - bit, width - have)
                        delta |= <uint64_t>((w.data[at] >> bit) & ((1 << need) - 1)) << have
                        have += need
                        at += 1
                        bit = 0
                    value += min_delta + delta
                    values[seen] = value
                    seen += 1
                pos += (per_mini // 8) * width
    if bad:
        raise PageError("a delta block runs past the page's end")
    return seen, pos


def hash_lengths(const unsigned char[::1] data, Py_ssize_t pos, const unsigned char[::1] lengths,
                 Py_ssize_t count, unsigned char[::1] out):
    """XXH64 of `count` values that lie back to back from `pos` on, with int64 lengths (DELTA_LENGTH_BYTE_ARRAY)."""
    cdef const unsigned char* p = _start(data, pos)
    cdef uint64_t* hashes = _room(out, count)
    cdef Py_ssize_t end = data.shape[0], i
    cdef int64_t size
    cdef bint bad = False
    if lengths.shape[0] // 8 < count:
        raise ValueError("fewer lengths than values")
    with nogil:
        for i in range(count):
            memcpy(&size, &lengths[i * 8], 8)
            if size < 0 or size > end - pos:
                bad = True
                break
            hashes[i] = _xxh64(p + pos, size)
            pos += size
    if bad:
        raise PageError("a byte array runs past the page's end")


def hash_delta_byte_array(const unsigned char[::1] data, Py_ssize_t pos, const unsigned char[::1] prefixes,
                          const unsigned char[::1] suffixes, Py_ssize_t count, unsigned char[::1] scratch,
                          unsigned char[::1] out):
    """XXH64 of `count` DELTA_BYTE_ARRAY values: int64 prefix and suffix lengths, suffixes from `pos` on.

    `scratch` holds the running value; it needs as many bytes as the suffixes take together.
    """
    cdef const unsigned char* p = _start(data, pos)
    cdef uint64_t* hashes = _room(out, count)
    cdef Py_ssize_t end = data.shape[0], i, last = 0
    cdef int64_t prefix, suffix
    cdef bint bad = False
    cdef unsigned char nothing = 0
    cdef unsigned char* value = &scratch[0] if scratch.shape[0] else &nothing
    if prefixes.shape[0] // 8 < count or suffixes.shape[0] // 8 < count:
        raise ValueError("fewer lengths than values")
    with nogil:
        for i in range(count):
            memcpy(&prefix, &prefixes[i * 8], 8)
            memcpy(&suffix, &suffixes[i * 8], 8)
            if (prefix < 0 or prefix > last or suffix < 0 or suffix > end - pos
                    or prefix + suffix > scratch.shape[0]):
                bad = True
                break
            if suffix:
                memcpy(value + prefix, p + pos, <size_t>suffix)
            last = prefix + suffix
            pos += suffix
            hashes[i] = _xxh64(value, last)
    if bad:
        raise PageError("a byte array runs past the page's end")


def byte_stream_split(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t count, Py_ssize_t width,
                      unsigned char[::1] out):
    """Put the bytes of `count` BYTE_STREAM_SPLIT values of `width` bytes back together."""
    cdef Py_ssize_t i, b
    if pos < 0 or count < 0 or width < 1 or pos > data.shape[0] or (data.shape[0] - pos) // width < count:
        raise PageError("the byte streams run past the page's end")
    if out.shape[0] // width < count:
        raise ValueError("the output has no room for the values")
    with nogil:
        for b in range(width):
            for i in range(count):
                out[i * width + b] = data[pos + b * count + i]


def narrow_int32(const unsigned char[::1] values, Py_ssize_t count, unsigned char[::1] out):
    """The low 32 bits of `count` int64s: what a delta-encoded INT32 column holds."""
    cdef Py_ssize_t i
    if count < 0 or values.shape[0] // 8 < count or out.shape[0] // 4 < count:
        raise ValueError("the buffers have no room for the values")
    with nogil:
        for i in range(count):
            memcpy(&out[i * 4], &values[i * 8], 4)
