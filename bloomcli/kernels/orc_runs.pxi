# Decodes ORC's run-length encodings, and hashes values by the decoded lengths and indexes.
#
# Source: the Apache ORC specification (ORC v1), "Run Length Encoding". A stream arrives in pieces (its decompressed
# chunks), so the decoders process whole runs: a run that is cut off at the end of a piece is left for the next call,
# which gets all of it. A run has at most 8 KiB and 512 values. Every length is checked against the piece before use.

class RunError(ValueError):
    """A stream's bytes contradict their encoding."""


cdef enum:
    CUT_OFF = 0          # the run is incomplete: more bytes are needed
    MALFORMED = -1       # the run is invalid
    MOST_VALUES = 512    # of one run, in any of the encodings
    MOST_BYTE_RUN = 130

# bit widths by their five-bit code
cdef int[32] RUN_WIDTHS
RUN_WIDTHS[:] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56, 64]


cdef inline int _closest_width(int bits) noexcept nogil:
    """Return the smallest width of at least `bits` that has a code."""
    cdef int i
    for i in range(32):
        if RUN_WIDTHS[i] >= bits:
            return RUN_WIDTHS[i]
    return 64


cdef inline uint64_t _unzigzag(uint64_t v) noexcept nogil:
    return (v >> 1) ^ (0 - (v & 1))


cdef inline uint64_t _big64(const unsigned char* p) noexcept nogil:
    """Read eight bytes, big-endian. Compilers reduce this to one load and one swap."""
    return (<uint64_t>p[0] << 56 | <uint64_t>p[1] << 48 | <uint64_t>p[2] << 40 | <uint64_t>p[3] << 32
            | <uint64_t>p[4] << 24 | <uint64_t>p[5] << 16 | <uint64_t>p[6] << 8 | <uint64_t>p[7])


cdef inline uint64_t _big(const unsigned char* p, int nbytes) noexcept nogil:
    cdef uint64_t v = 0
    cdef int i
    for i in range(nbytes):
        v = v << 8 | p[i]
    return v


cdef inline uint64_t _packed(const unsigned char* p, Py_ssize_t size, int width, Py_ssize_t i) noexcept nogil:
    """Return value `i` of big-endian bit-packed values; `size` bytes from `p` on can be read and contain the
    value."""
    cdef Py_ssize_t at = (i * width) >> 3
    cdef int bit = <int>((i * width) & 7), have
    cdef uint64_t v
    if at + 8 <= size and (width <= 56 or bit == 0):
        return (_big64(p + at) << bit) >> (64 - width)
    v = p[at] & (0xFF >> bit)
    have = 8 - bit
    while have < width:
        at += 1
        v = v << 8 | p[at]
        have += 8
    return v >> (have - width)


cdef inline Py_ssize_t _base128(const unsigned char* p, Py_ssize_t size, uint64_t* value) noexcept nogil:
    """Read a base-128 varint of up to 64 bits. Return its size in bytes, CUT_OFF, or MALFORMED."""
    cdef Py_ssize_t i
    value[0] = 0
    for i in range(10):
        if i >= size:
            return CUT_OFF
        value[0] |= <uint64_t>(p[i] & 0x7F) << (7 * i)
        if p[i] < 0x80:
            return i + 1
    return MALFORMED


def message_parts(const unsigned char[::1] data not None, Py_ssize_t most):
    """Return the number of fields of a protobuf message, without those of nested messages; at most `most` + 1.

    Source: the Protocol Buffers encoding. Bytes that aren't a message end the count.
    """
    cdef Py_ssize_t size = data.shape[0], at = 0, got, count = 0
    cdef const unsigned char* p = &data[0] if size else <const unsigned char*>b""
    cdef uint64_t tag = 0, value = 0
    with nogil:
        while at < size and count <= most:
            got = _base128(p + at, size - at, &tag)
            if got <= 0:
                break
            at += got
            count += 1
            if tag & 7 == 1:
                value = 8
            elif tag & 7 == 5:
                value = 4
            elif tag & 7 in (0, 2):
                got = _base128(p + at, size - at, &value)
                if got <= 0:
                    break
                at += got
                value = value if tag & 7 == 2 else 0
            else:
                break
            if value > <uint64_t>(size - at):
                break
            at += <Py_ssize_t>value
    return count


cdef Py_ssize_t _run_v1(const unsigned char* p, Py_ssize_t size, bint signed_, uint64_t* out,
                        Py_ssize_t* used) noexcept nogil:
    """Decode a run of RLE version 1: 3 to 130 values with a constant step, or 1 to 128 varints."""
    cdef uint64_t value = 0, step
    cdef Py_ssize_t got, at, count, i
    if size < 1:
        return CUT_OFF
    if p[0] < 0x80:
        if size < 2:
            return CUT_OFF
        got = _base128(p + 2, size - 2, &value)
        if got <= 0:
            return got
        count = p[0] + 3
        step = <uint64_t><int64_t><signed char>p[1]
        value = _unzigzag(value) if signed_ else value
        for i in range(count):
            out[i] = value
            value += step
        used[0] = 2 + got
        return count
    count = 256 - p[0]
    at = 1
    for i in range(count):
        got = _base128(p + at, size - at, &value)
        if got <= 0:
            return got
        out[i] = _unzigzag(value) if signed_ else value
        at += got
    used[0] = at
    return count


cdef Py_ssize_t _run_patched(const unsigned char* p, Py_ssize_t size, int width, Py_ssize_t count, uint64_t* out,
                             Py_ssize_t* used) noexcept nogil:
    """Decode PATCHED_BASE: a base, narrow offsets from it, and a list of (gap, upper bits) for the wide offsets."""
    cdef int base_bytes, patch_width, gap_width, patches, entry_width
    cdef Py_ssize_t data, listed, i, at = 0
    cdef uint64_t base, entry, patch
    if size < 4:
        return CUT_OFF
    base_bytes = (p[2] >> 5) + 1
    patch_width = RUN_WIDTHS[p[2] & 31]
    gap_width = (p[3] >> 5) + 1
    patches = p[3] & 31
    if patches == 0 or patch_width + gap_width > 64 or width == 64:
        return MALFORMED
    entry_width = _closest_width(patch_width + gap_width)
    data = 4 + base_bytes
    listed = data + (count * width + 7) // 8
    used[0] = listed + (patches * entry_width + 7) // 8
    if used[0] > size:
        return CUT_OFF
    base = _big(p + 4, base_bytes)
    if base >> (base_bytes * 8 - 1):  # sign and magnitude
        base = 0 - (base & ~(<uint64_t>1 << (base_bytes * 8 - 1)))
    for i in range(count):
        out[i] = _packed(p + data, size - data, width, i)
    for i in range(patches):
        entry = _packed(p + listed, size - listed, entry_width, i)
        at += <Py_ssize_t>((entry >> patch_width) & 0xFF)  # a gap starts at the previous patch and is at most 255
        patch = entry & ((<uint64_t>1 << patch_width) - 1)
        if patch:  # without a patch, a gap of 255 continues with the next gap
            if at >= count:
                return MALFORMED
            out[at] |= patch << width
    for i in range(count):
        out[i] += base
    return count


cdef Py_ssize_t _run_v2(const unsigned char* p, Py_ssize_t size, bint signed_, uint64_t* out,
                        Py_ssize_t* used) noexcept nogil:
    """Decode a run of RLE version 2: SHORT_REPEAT, DIRECT, PATCHED_BASE or DELTA, by the upper two bits of its first
    byte."""
    cdef int kind, width, code
    cdef Py_ssize_t count, i, got, at
    cdef uint64_t value = 0, step = 0
    if size < 1:
        return CUT_OFF
    kind = p[0] >> 6
    if kind == 0:
        width = ((p[0] >> 3) & 7) + 1
        if size < 1 + width:
            return CUT_OFF
        value = _big(p + 1, width)
        value = _unzigzag(value) if signed_ else value
        count = (p[0] & 7) + 3
        for i in range(count):
            out[i] = value
        used[0] = 1 + width
        return count
    if size < 2:
        return CUT_OFF
    code = (p[0] >> 1) & 31
    width = RUN_WIDTHS[code]
    count = ((<Py_ssize_t>p[0] & 1) << 8 | p[1]) + 1
    if kind == 2:
        return _run_patched(p, size, width, count, out, used)
    if kind == 1:
        used[0] = 2 + (count * width + 7) // 8
        if used[0] > size:
            return CUT_OFF
        if signed_:
            for i in range(count):
                out[i] = _unzigzag(_packed(p + 2, size - 2, width, i))
        else:
            for i in range(count):
                out[i] = _packed(p + 2, size - 2, width, i)
        return count
    at = 2
    got = _base128(p + at, size - at, &value)
    if got <= 0:
        return got
    at += got
    got = _base128(p + at, size - at, &step)
    if got <= 0:
        return got
    at += got
    value = _unzigzag(value) if signed_ else value
    step = _unzigzag(step)  # signed, also for unsigned values
    if code == 0:  # here it means 0 bits, not 1: all steps are equal
        for i in range(count):
            out[i] = value
            value += step
        used[0] = at
        return count
    if count < 2:
        return MALFORMED
    used[0] = at + ((count - 2) * width + 7) // 8
    if used[0] > size:
        return CUT_OFF
    out[0] = value
    value += step
    out[1] = value
    for i in range(count - 2):  # all steps have the sign of the first
        if <int64_t>step < 0:
            value -= _packed(p + at, size - at, width, i)
        else:
            value += _packed(p + at, size - at, width, i)
        out[i + 2] = value
    return count


cdef enum:
    STARTS_KEPT = 1024   # more runs than hold the values that a writer buffers, and those decoded beyond the requested


cdef class RunStarts:
    """Where the last runs of a stream start. A writer buffers up to 512 values before it writes them in runs, so a
    row index counts a row group's first value from a run that may be several runs before it."""

    cdef int64_t[STARTS_KEPT] offsets
    cdef int64_t[STARTS_KEPT] values
    cdef Py_ssize_t count

    cdef inline void add(self, int64_t offset, int64_t value) noexcept nogil:
        self.offsets[self.count % STARTS_KEPT] = offset
        self.values[self.count % STARTS_KEPT] = value
        self.count += 1

    def value_at(self, int64_t offset):
        """Return the number of values before the run that starts at a byte of the stream; -1 if no run is known to
        start there."""
        cdef Py_ssize_t i
        for i in range(self.count - 1, max(self.count - STARTS_KEPT, 0) - 1, -1):
            if self.offsets[i % STARTS_KEPT] == offset:
                return self.values[i % STARTS_KEPT]
        return -1


def orc_runs(const unsigned char[::1] data not None, Py_ssize_t pos, int version, bint signed_,
             unsigned char[::1] out not None, Py_ssize_t have, Py_ssize_t want, RunStarts starts=None,
             int64_t offset=0, int64_t value=0):
    """Decode runs of integers to int64s.

    Decodes only whole runs, so there may be more than `want` values, or fewer at the end of the data.

    Args:
        data: the encoded runs.
        pos: the position of the first run.
        version: 1 or 2, the version of the encoding.
        signed_: the values are zigzag-encoded.
        out: the values; it needs room for `want` + 511.
        have: the number of values in `out`.
        want: the number of values in `out` at which to stop.
        starts: gets the start of each run; None: nothing does.
        offset, value: the bytes of the stream before `data`, and its values before `out`, for `starts`.

    Returns:
        The number of values in `out`, and the position after the last run.
    """
    if pos < 0 or pos > data.shape[0] or have < 0 or want < 0 or version not in (1, 2):
        raise ValueError("a position or a number of values that can't be")
    if out.shape[0] // 8 - MOST_VALUES < max(have, want) - 1:
        raise ValueError("the output has no room for the values")
    cdef Py_ssize_t size = data.shape[0], got = 1, used = 0
    cdef const unsigned char* p = &data[0] if size else <const unsigned char*>b""
    cdef uint64_t* o = <uint64_t*>&out[0]
    with nogil:
        while have < want:
            if version == 1:
                got = _run_v1(p + pos, size - pos, signed_, o + have, &used)
            else:
                got = _run_v2(p + pos, size - pos, signed_, o + have, &used)
            if got <= 0:
                break
            if starts is not None:
                starts.add(offset + pos, value + have)
            have += got
            pos += used
    if got == MALFORMED:
        raise RunError("an invalid run of integers")
    return have, pos


def orc_byte_runs(const unsigned char[::1] data not None, Py_ssize_t pos, unsigned char[::1] out not None,
                  Py_ssize_t have, Py_ssize_t want, RunStarts starts=None, int64_t offset=0, int64_t value=0):
    """Decode runs of bytes, like `orc_runs` for integers. `out` needs room for `want` + 129."""
    if pos < 0 or pos > data.shape[0] or have < 0 or want < 0:
        raise ValueError("a position or a number of values that can't be")
    if out.shape[0] - MOST_BYTE_RUN < max(have, want) - 1:
        raise ValueError("the output has no room for the values")
    cdef Py_ssize_t size = data.shape[0], count
    cdef const unsigned char* p = &data[0] if size else <const unsigned char*>b""
    cdef unsigned char* o = &out[0]
    with nogil:
        while have < want and pos < size:
            if p[pos] < 0x80:
                if size - pos < 2:
                    break
                count = p[pos] + 3
                memset(o + have, p[pos + 1], <size_t>count)
                if starts is not None:
                    starts.add(offset + pos, value + have)
                pos += 2
            else:
                count = 256 - p[pos]
                if size - pos < 1 + count:
                    break
                memcpy(o + have, p + pos + 1, <size_t>count)
                if starts is not None:
                    starts.add(offset + pos, value + have)
                pos += 1 + count
            have += count
    return have, pos


def orc_fit(const unsigned char[::1] values not None, Py_ssize_t count, int width):
    """Return whether all of `count` int64s fit in signed integers of `width` bytes."""
    if count < 0 or values.shape[0] // 8 < count or width not in (1, 2, 4, 8):
        raise ValueError("fewer values than requested, or not an integer width")
    cdef uint64_t half = <uint64_t>1 << (width * 8 - 1), over = 0
    cdef const unsigned char* p = &values[0] if values.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i
    if width == 8:
        return True
    with nogil:
        for i in range(count):
            over |= (_load64(p + i * 8) + half) >> (width * 8)
    return over == 0


def orc_sum(const unsigned char[::1] values not None, Py_ssize_t count):
    """Return the sum of `count` int64s. Raises RunError if one is negative or exceeds 31 bits."""
    if count < 0 or values.shape[0] // 8 < count:
        raise ValueError("fewer values than requested")
    cdef const unsigned char* p = &values[0] if values.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i
    cdef uint64_t total = 0, over = 0, value
    with nogil:
        for i in range(count):
            value = _load64(p + i * 8)
            over |= value >> 31
            total += value
    if over:
        raise RunError("a length below 0, or of 2 GiB or more")
    return total


def orc_hash_lengths(const unsigned char[::1] data not None, const unsigned char[::1] lengths not None,
                     Py_ssize_t count, unsigned char[::1] out not None):
    """Compute ORC's hash of `count` contiguous values with int64 lengths. Equal neighbours are hashed once."""
    cdef const unsigned char* ls = _lengths(data, lengths, count)
    if out.shape[0] // 8 < count:
        raise ValueError("no room for the hashes")
    cdef const unsigned char* p = &data[0] if data.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i
    cdef int64_t length, before = -1   # of the value with the hash `h`
    cdef uint64_t h = 0
    with nogil:
        for i in range(count):
            length = <int64_t>_load64(ls + i * 8)
            if length != before or memcmp(p - length, p, <size_t>length) != 0:
                h = _orc_murmur(p, length)
                before = length
            memcpy(&out[i * 8], &h, 8)
            p += length


def orc_gather(const unsigned char[::1] table not None, const unsigned char[::1] indexes not None, Py_ssize_t count,
               unsigned char[::1] out not None):
    """Write to `out` the hash in `table` at each of `count` int64 indexes."""
    if count < 0 or indexes.shape[0] // 8 < count or out.shape[0] // 8 < count:
        raise ValueError("fewer indexes than requested, or no room for the hashes")
    cdef uint64_t entries = <uint64_t>(table.shape[0] // 8), index = 0
    cdef const unsigned char* t = &table[0] if table.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i
    cdef bint bad = False
    with nogil:
        for i in range(count):
            index = _load64(&indexes[i * 8])
            if index >= entries:
                bad = True
                break
            memcpy(&out[i * 8], t + index * 8, 8)
    if bad:
        raise RunError(f"entry {index} of a dictionary with {entries} entries")
