# Hashes the value sections of Parquet data pages without decoding them to values.
#
# Source: the Apache Parquet format's Encodings.md. Values are hashed in PLAIN form, so most encodings need no
# decoding: the bytes in the page are the hashed bytes. Nulls have no bytes in a value section; only their number
# matters, which `Levels` counts. Every length is checked against the page before use. A page may come in windows, and
# each call does a bounded amount of work.

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


cdef struct Hybrid:
    # the state of RLE/bit-packed hybrid runs, which continue at the end of a window
    uint64_t left    # remaining values
    uint64_t groups  # of 8 values each, of a bit-packed run
    uint64_t times   # of an RLE run
    uint64_t value


cdef Py_ssize_t _begin(Hybrid* h, Walk* w, Py_ssize_t pos, int width, bint* bad) noexcept nogil:
    """Start the run at `pos`. Return the position after its header and value; -1 if the window doesn't contain
    them."""
    cdef uint64_t head = 0
    cdef int b, size = (width + 7) // 8
    cdef Py_ssize_t at = _varint(w, pos, &head)
    if at < 0 or head >> 1 == 0:
        bad[0] = at >= 0 or w.fault == WALK_VARINT
        return -1
    if head & 1:
        h.groups = head >> 1
        return at
    if size > w.end - at:
        return -1
    h.value = 0
    for b in range(size):
        h.value |= <uint64_t>w.data[at + b] << (8 * b)
    h.times = head >> 1
    return at + size


cdef Py_ssize_t _grouped(Hybrid* h, Py_ssize_t held, int width, bint final) noexcept nogil:
    """Return the number of values of a bit-packed run that `held` bytes contain; -1 if the page has too few bytes."""
    cdef Py_ssize_t whole = held // width
    # a run may be cut off at the end of the page if its last groups have no values
    cdef uint64_t want = h.left if h.groups > h.left // 8 else h.groups * 8
    if <uint64_t>whole * 8 >= want:
        return <Py_ssize_t>want
    if not final:
        return whole * 8
    return <Py_ssize_t>want if <uint64_t>(held * 8 // width) >= want else -1


cdef enum:
    UNPACKED = 1024  # values of a bit-packed run that are read at once, a multiple of 8


cdef Py_ssize_t _read_on(Hybrid* h, Walk* w, Py_ssize_t pos, int width, bint final, uint32_t* values,
                         Py_ssize_t* count, int64_t highest, int64_t* above, bint* bad) noexcept nogil:
    """Start the run at `pos`, or read the next values of a bit-packed run, of at most 32 bits. Return the position
    after that; -1 if the window ends before. `above`: the first value above `highest`, or -1. `bad`: it can't
    continue."""
    cdef Py_ssize_t i, n, whole, left = w.end - pos
    cdef uint64_t mask = _mask(width)
    cdef const unsigned char* p = w.data + pos
    cdef uint32_t greatest = 0
    count[0] = 0
    above[0] = -1
    if not h.groups:
        pos = _begin(h, w, pos, width, bad)
        bad[0] |= pos < 0 and final
        return pos
    n = min(_grouped(h, left, width, final), UNPACKED)
    if n <= 0:
        bad[0] = n < 0
        return -1
    whole = min(n, ((left - 8) * 8 + 7) // width + 1) if left >= 8 else 0
    for i in range(whole):  # values whose 8 bytes can be loaded
        values[i] = <uint32_t>((_load64(p + (i * width >> 3)) >> (i * width & 7)) & mask)
        greatest = max(greatest, values[i])
    for i in range(whole, n):
        values[i] = <uint32_t>_last_bits(p + (i * width >> 3), <int>(i * width & 7), width)
        greatest = max(greatest, values[i])
    count[0] = n
    for i in range(n if <int64_t>greatest > highest else 0):
        if <int64_t>values[i] > highest:
            above[0] = values[i]
            break
    h.left -= <uint64_t>n
    h.groups -= min(h.groups, <uint64_t>((n + 7) // 8))
    return pos + min(((n + 7) // 8) * width, left)


cdef class Levels:
    """Counts levels: RLE/bit-packed hybrid runs, which may come in windows.

    `hits` is the number of levels that are `counted`, by default `highest`, and `left` the number of remaining levels
    of `count`. `marks`: gets a 1 for each level that is counted.
    """

    cdef Hybrid h
    cdef int width
    cdef uint64_t highest, counted
    cdef unsigned char[::1] marks
    cdef Py_ssize_t marked
    cdef readonly Py_ssize_t hits

    def __cinit__(self, Py_ssize_t count, int highest, int counted=-1, unsigned char[::1] marks=None):
        if not 1 <= highest <= 0xFFFF:
            raise ValueError("levels are 1 to 16 bits wide")
        self.width = 0
        while highest >> self.width:
            self.width += 1
        self.highest = <uint64_t>highest
        self.counted = self.highest if counted < 0 else <uint64_t>counted
        self.h.left = <uint64_t>max(count, 0)
        if marks is not None and marks.shape[0] < count:
            raise ValueError("each level has a mark")
        self.marks, self.marked = marks, 0

    @property
    def left(self):
        """The number of remaining levels."""
        return self.h.left

    def feed(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t end, bint final):
        """Count the levels in data[pos:end], the last window if `final`. Return the position after the counted
        levels."""
        cdef Walk w
        cdef Py_ssize_t i, n, at, hits = 0
        cdef uint64_t level = 0, highest = self.highest, counted = self.counted
        cdef uint32_t[UNPACKED] values
        cdef int64_t beyond = -1
        cdef bint bad = False, above = False
        cdef unsigned char* marks = &self.marks[0] if self.marks is not None and self.marks.shape[0] else NULL
        if end > data.shape[0] or pos > end:
            raise PageError("the levels run past the page's end")
        _walk_open(&w, data, pos)
        w.end = end
        with nogil:
            while self.h.left:
                if self.h.times:
                    n = <Py_ssize_t>min(self.h.times, self.h.left)
                    if self.h.value > highest:
                        above, level = True, self.h.value
                        break
                    if self.h.value == counted:
                        hits += n
                    if marks != NULL:
                        memset(marks + self.marked, self.h.value == counted, <size_t>n)
                        self.marked += n
                    self.h.times = 0
                    self.h.left -= <uint64_t>n
                    continue
                at = _read_on(&self.h, &w, pos, self.width, final, values, &n, <int64_t>highest, &beyond, &bad)
                if at < 0:
                    break
                pos = at
                if beyond >= 0:
                    above, level = True, <uint64_t>beyond
                    break
                for i in range(n):
                    hits += values[i] == counted
                    if marks != NULL:
                        marks[self.marked + i] = values[i] == counted
                self.marked += n
        self.hits += hits
        if above:
            raise PageError(f"a level of {level}, but the highest is {highest}")
        if bad:
            raise PageError("the levels end before the page's last value")
        return pos


cdef class Indices:
    """Marks dictionary indices: a byte with the bit width, then RLE/bit-packed hybrid runs, which may come in
    windows.

    `unseen` is the number of bytes of `seen` that are 0. When it reaches 0, the other indices aren't read, unless the
    use of `entries` is measured.
    """

    cdef Hybrid h
    cdef int width
    cdef unsigned char[::1] seen
    cdef readonly Py_ssize_t unseen
    cdef Entries entries

    def __cinit__(
        self, Py_ssize_t count, unsigned char[::1] seen not None, Py_ssize_t unseen, Entries entries=None
    ):
        if entries is not None and entries.count != seen.shape[0]:
            raise ValueError("each entry has a mark")
        self.entries = entries
        self.width = -1
        self.seen = seen
        self.unseen = unseen
        self.h.left = <uint64_t>max(count, 0)

    @property
    def done(self):
        """Whether all indices are read, or all entries are marked."""
        return self.h.left == 0 or (self.unseen <= 0 and self.seen.shape[0] > 0 and self.entries is None)

    def feed(self, const unsigned char[::1] data not None, Py_ssize_t pos, bint final):
        """Mark the indices in `data` from `pos` on. Return the position after them."""
        cdef Walk w
        cdef Py_ssize_t i, n, at, size = self.seen.shape[0], end = data.shape[0]
        cdef uint64_t index = 0
        cdef int width = self.width
        cdef bint bad = False, outside = False
        cdef unsigned char* seen = &self.seen[0] if size else NULL
        cdef Py_ssize_t unseen = self.unseen
        cdef Entries entries = self.entries
        cdef bint measured = entries is not None
        cdef Bounds bounds = entries.bounds if measured else None
        cdef uint32_t[UNPACKED] found
        cdef int64_t beyond = -1
        _start(data, pos)
        if self.done:
            return pos
        if width < 0:
            if pos >= end:
                if not final:
                    return pos
                raise PageError("the page has no bit width for its dictionary indices")
            width = data[pos]
            pos += 1
            if width > 32:
                raise PageError(f"dictionary indices {width} bits wide")
            self.width = width
            if width == 0:  # all indices are 0 and take no bytes
                self.h.times, self.h.value = self.h.left, 0
        _walk_open(&w, data, pos)
        with nogil:
            if measured:
                entries._begin()
            while self.h.left and (unseen > 0 or size == 0 or measured):
                if self.h.times:
                    n = <Py_ssize_t>min(self.h.times, self.h.left)
                    index = self.h.value
                    if index >= <uint64_t>size:
                        outside = True
                        break
                    unseen -= not seen[index]
                    seen[index] = 1
                    if measured:
                        found[0] = <uint32_t>index
                        entries._use(bounds, found, 1, <uint64_t>n)
                    self.h.times = 0
                    self.h.left -= <uint64_t>n
                    continue
                at = _read_on(&self.h, &w, pos, width, final, found, &n, size - 1, &beyond, &bad)
                if at < 0:
                    break
                pos = at
                if beyond >= 0:
                    outside, index = True, <uint64_t>beyond
                    break
                for i in range(n if unseen else 0):
                    unseen -= not seen[found[i]]
                    seen[found[i]] = 1
                if measured and n:
                    entries._use(bounds, found, n, 1)
        self.unseen = unseen
        if measured:
            bounds._checked()
        if outside:
            raise PageError(f"a dictionary index of {index}, but the dictionary has {size} values")
        if bad:
            raise PageError("the dictionary indices end before the page's last value")
        return pos


cdef inline Py_ssize_t _hash_fixed(const unsigned char* p, Py_ssize_t count, Py_ssize_t width, bint every,
                                   uint64_t* hashes) noexcept nogil:
    """Hash values as `hash_plain_fixed` does. The usual widths are constants where this is called."""
    cdef Py_ssize_t i, n = 0
    for i in range(count):
        if every or i == 0 or memcmp(p, p - width, <size_t>width):
            hashes[n] = _xxh64_8(p) if width == 8 else _xxh64_4(p) if width == 4 else _xxh64(p, width)
            n += 1
        p += width
    return n


def hash_plain_fixed(const unsigned char[::1] data, Py_ssize_t width, Py_ssize_t count, unsigned char[::1] out,
                     bint every):
    """Compute the XXH64 of `count` values of `width` bytes, equal neighbours only once unless `every`. Return the number
    of hashes."""
    cdef uint64_t* hashes = _room(out, count)
    cdef Py_ssize_t n
    cdef const unsigned char* p
    if width < 1 or data.shape[0] // width < count:
        raise PageError(f"{count} values of {width} bytes don't fit in {data.shape[0]}")
    if count == 0:
        return 0
    p = &data[0]
    with nogil:
        if width == 8:
            n = _hash_fixed(p, count, 8, every, hashes)
        elif width == 4:
            n = _hash_fixed(p, count, 4, every, hashes)
        else:
            n = _hash_fixed(p, count, width, every, hashes)
    return n


def hash_plain_binary(const unsigned char[::1] data, Py_ssize_t pos, bint final, unsigned char[::1] out,
                      Py_ssize_t limit, Py_ssize_t most, bint every, Bounds bounds=None):
    """Compute the XXH64 of up to `most` PLAIN BYTE_ARRAY values (u32 LE length, bytes) from `pos` on, and add them to
    the bounds.

    Equal neighbours are hashed once, unless `every` is true, and nothing if the bounds are wanted alone. Stops earlier
    after `limit` hashes, or if `data` ends within a value, which is an error if `final`. Returns (number of values,
    number of hashes, position after them).
    """
    cdef const unsigned char* p = _start(data, pos)
    cdef uint64_t* hashes = _room(out, limit)
    cdef Py_ssize_t end = data.shape[0], n = 0, taken = 0, budget = 1 << 26, before = -1, size
    cdef uint64_t found
    cdef bint bad = False, measured = bounds is not None, hashed = not (measured and bounds.alone)
    with nogil:
        while n < limit and taken < most and (budget > 0 or every):  # a dictionary is hashed at once
            if end - pos < 4:
                bad = final
                break
            size = <Py_ssize_t>_u32(p + pos)
            if size > end - pos - 4:
                bad = final
                break
            pos += 4
            if hashed and (every or size or before):
                found = _xxh64(p + pos, size)
                if every or before < 0 or found != hashes[n - 1]:
                    hashes[n] = found
                    n += 1
            if measured:
                bounds.size += <uint64_t>size
                bounds._take(p + pos, size)
            before = size
            pos += size
            budget -= size
            taken += 1
    if measured:
        bounds._checked()
    if bad:
        raise PageError("a byte array runs past the page's end")
    return taken, n, pos


def plain_at(const unsigned char[::1] data, Py_ssize_t pos, Py_ssize_t width, Py_ssize_t index, bint every):
    """Return the start and the size of the PLAIN value whose hash is the one at `index`, from `pos` on.

    `width` is 0 for BYTE_ARRAY. Equal neighbours have one hash, unless `every` is true.
    """
    cdef const unsigned char* p = _start(data, pos)
    cdef Py_ssize_t end = data.shape[0], before = -1, last = 0, size = width, head = 0 if width else 4
    if width < 0 or index < 0:
        raise ValueError("a value has a width and an index")
    with nogil:
        while end - pos >= head:
            if not width:
                size = <Py_ssize_t>_u32(p + pos)
            pos += head
            if size > end - pos:
                break
            if every or before != size or memcmp(p + pos, p + last, size):
                if not index:
                    break
                index -= 1
            before, last = size, pos
            pos += size
        else:
            index = -1
    if index or size > end - pos:
        raise PageError("the page's values end before this one")
    return pos, size
