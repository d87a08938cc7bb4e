# Decodes DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY to integers and to hashes, in slices.
#
# Source: the Apache Parquet format's Encodings.md. A block of bit width 0 repeats a delta thousands of times in two
# bytes, so a count says nothing about the number of bytes. Therefore no allocation depends on a count, a run of equal
# values is one value with a count, and each call does a bounded amount of work. The input may come in windows: a
# kernel that needs bytes beyond the window returns a status, and continues when it gets them.

from libc.stdlib cimport free, realloc

cdef enum:
    DELTA_BLOCK_MAX = 8192
    DELTA_MINIS_MAX = 1024  # a miniblock has a multiple of 8 values
    SLICE_BYTES = 1 << 26   # bytes hashed in one call: about 10 ms

cdef enum:
    READ_SLICE = 0
    READ_DONE = 1
    READ_MORE = 2     # bytes beyond the window are needed
    READ_BAD = 3
    READ_PREFIXES = 4  # like READ_MORE, for the prefix lengths
    READ_LENGTHS = 5   # like READ_MORE, for the lengths
    READ_LONG = 6      # a value exceeds the size limit

SLICE_DONE = READ_SLICE
ALL_DONE = READ_DONE
MORE_BYTES = READ_MORE
MORE_PREFIXES = READ_PREFIXES
MORE_LENGTHS = READ_LENGTHS
TOO_LONG = READ_LONG


cdef inline void _write(uint64_t* values, Py_ssize_t at, uint64_t value, bint narrow) noexcept nogil:
    if narrow:
        (<uint32_t*>values)[at] = <uint32_t>value
    else:
        values[at] = value


cdef class Deltas:
    """A reader of DELTA_BINARY_PACKED values: `feed` sets its input, and the kernels consume its values.

    `count` is the number of values according to the header, and -1 before the header is read. `position` is the
    position of the next byte in the last input. `every`: equal neighbours aren't read as one value.
    """

    cdef const unsigned char[::1] view
    cdef Walk w
    cdef readonly Py_ssize_t position
    cdef readonly int64_t count
    cdef public bint every
    cdef bint final, started
    cdef uint64_t block, minis, left, min_delta, value, run
    cdef Py_ssize_t per_mini, mini, at, have
    cdef unsigned char[1024] widths
    cdef uint64_t[8192] decoded

    def __cinit__(self):
        self.count = -1
        self.minis = 0
        self.mini = 0
        self.every = False

    def feed(self, const unsigned char[::1] data not None, Py_ssize_t pos, bint final):
        """Continue at `pos` of `data`. `final`: `data` is the last window."""
        _walk_open(&self.w, data, pos)
        self.view = data
        self.position = pos
        self.final = final

    cdef int _short(self) noexcept nogil:
        return READ_BAD if self.final or self.w.fault == WALK_VARINT else READ_MORE

    cdef int _open(self) noexcept nogil:
        cdef uint64_t block = 0, minis = 0, total = 0, first = 0
        cdef Py_ssize_t pos = _varint(&self.w, self.position, &block)
        if pos >= 0:
            pos = _varint(&self.w, pos, &minis)
        if pos >= 0:
            pos = _varint(&self.w, pos, &total)
        if pos >= 0:
            pos = _varint(&self.w, pos, &first)
        if pos < 0:
            return self._short()
        if (minis == 0 or block == 0 or block > DELTA_BLOCK_MAX or block % minis or (block // minis) % 8
                or total > 0x7FFFFFFF):
            self.w.fault = WALK_SIZE
            return READ_BAD
        self.position = pos
        self.block, self.minis, self.mini = block, minis, <Py_ssize_t>minis
        self.per_mini = <Py_ssize_t>(block // minis)
        self.value = (first >> 1) ^ (0 - (first & 1))
        self.count = <int64_t>total
        self.run = 1 if total else 0
        self.left = total - self.run
        return READ_SLICE

    cdef int _block(self) noexcept nogil:
        """Read a block's smallest delta and its bit widths."""
        cdef uint64_t raw
        cdef Py_ssize_t pos = _varint(&self.w, self.position, &raw)
        if pos < 0:
            return self._short()
        if <uint64_t>(self.w.end - pos) < self.minis:
            return READ_BAD if self.final else READ_MORE
        self.min_delta = (raw >> 1) ^ (0 - (raw & 1))
        memcpy(self.widths, self.w.data + pos, <size_t>self.minis)
        self.position = pos + <Py_ssize_t>self.minis
        self.mini = 0
        return READ_SLICE

    cdef int _fill(self) noexcept nogil:
        """Read the next run or miniblock. Called only when the previous one is consumed."""
        cdef int status, width
        cdef Py_ssize_t n, size
        cdef uint64_t mask, delta
        cdef Py_ssize_t i
        if self.count < 0:
            status = self._open()
            if status:
                return status
        while self.left:
            if self.mini == <Py_ssize_t>self.minis:
                status = self._block()
                if status:
                    return READ_SLICE if self.run else status
            width = self.widths[self.mini]
            n = <Py_ssize_t>min(<uint64_t>self.per_mini, self.left)
            if width == 0 and self.min_delta == 0:
                self.run += <uint64_t>n
                self.left -= <uint64_t>n
                self.mini += 1
                continue
            if self.run:
                return READ_SLICE
            size = (self.per_mini // 8) * width
            if width > 64:
                return READ_BAD
            if size > self.w.end - self.position:
                return READ_BAD if self.final else READ_MORE
            mask = _mask(width)
            for i in range(n):
                delta = _packed_bits(self.w.data + self.position, self.w.end - self.position, i * width, width)
                self.value += self.min_delta + (delta & mask)
                self.decoded[i] = self.value
            self.position += size
            self.left -= <uint64_t>n
            self.mini += 1
            self.at, self.have = 0, n
            return READ_SLICE
        return READ_SLICE if self.run else READ_DONE

    cdef int _peek(self, int64_t* value, uint64_t* times) noexcept nogil:
        """Return the next value, and the number of its consecutive repetitions, without consuming it."""
        cdef int status
        if self.at == self.have and not self.run:
            status = self._fill()
            if status:
                return status
        if self.at < self.have:
            value[0] = <int64_t>self.decoded[self.at]
            times[0] = 1
        else:
            value[0] = <int64_t>self.value
            times[0] = self.run
        return READ_SLICE

    cdef void _take(self, uint64_t times) noexcept nogil:
        if self.at < self.have:
            self.at += 1
        else:
            self.run -= times

    def length(self):
        """Return the next value without consuming it."""
        cdef int64_t value = 0
        cdef uint64_t times = 0
        if self._peek(&value, &times):
            raise PageError("a delta block runs past the page's end")
        return value

    def take(self):
        """Consume one value."""
        self.length()
        self._take(1)

    def skip(self):
        """Skip all values without decoding them. Return a status."""
        cdef int status = READ_SLICE
        cdef Py_ssize_t n
        with nogil:
            if self.count < 0:
                status = self._open()
            while status == READ_SLICE and self.left:
                if self.mini == <Py_ssize_t>self.minis:
                    status = self._block()
                    if status:
                        break
                if self.widths[self.mini] > 64:
                    status = READ_BAD
                    break
                n = (self.per_mini // 8) * self.widths[self.mini]
                if n > self.w.end - self.position:
                    status = READ_BAD if self.final else READ_MORE
                    break
                self.position += n
                self.left -= min(<uint64_t>self.per_mini, self.left)
                self.mini += 1
        if status == READ_BAD:
            self._refuse()
        return READ_MORE if status == READ_MORE else READ_DONE

    def read(self, unsigned char[::1] out not None, Py_ssize_t limit, bint narrow=False):
        """Write up to `limit` values to `out` as int64s, or their lower halves if `narrow`: equal neighbours only once
        unless `every`. Return (their number, status)."""
        if limit < 0 or out.shape[0] // (4 if narrow else 8) < limit:
            raise ValueError("the output has no room for the values")
        cdef uint64_t* values = _room(out, 0)
        cdef Py_ssize_t n = 0, size, i
        cdef int status = READ_SLICE
        with nogil:
            while n < limit:
                if self.at < self.have:
                    size = min(self.have - self.at, limit - n)
                    for i in range(size):
                        _write(values, n + i, self.decoded[self.at + i], narrow)
                    self.at += size
                    n += size
                    self.started = True
                elif self.run:
                    size = 0 if self.started else 1
                    if self.every:
                        size = min(<Py_ssize_t>self.run, limit - n)
                    for i in range(size):
                        _write(values, n + i, self.value, narrow)
                    n += size
                    self.started = True
                    self.run = self.run - <uint64_t>size if self.every else 0
                else:
                    status = self._fill()
                    if status:
                        break
        if status == READ_BAD:
            self._refuse()
        return n, status

    cdef _refuse(self):
        if self.count < 0 and self.w.fault == WALK_SIZE:
            raise PageError("the delta header has invalid block sizes or an invalid count")
        if self.count < 0:
            raise PageError("the delta header is cut off")
        raise PageError("a delta block runs past the page's end")


cdef inline uint64_t _mask(int width) noexcept nogil:
    return ~<uint64_t>0 if width == 64 else (<uint64_t>1 << width) - 1


cdef inline uint64_t _packed_bits(const unsigned char* p, Py_ssize_t size, Py_ssize_t bit, int width) noexcept nogil:
    """Return the `width` bits from `bit` on of `size` bytes that contain them, and perhaps higher bits, which don't
    belong to them."""
    cdef Py_ssize_t at = bit >> 3
    cdef int shift = <int>(bit & 7)
    cdef uint64_t found
    if size - at < 9:
        return _last_bits(p + at, shift, width)
    found = _load64(p + at) >> shift
    return found | <uint64_t>p[at + 8] << (64 - shift) if shift + width > 64 else found


cdef uint64_t _last_bits(const unsigned char* p, int shift, int width) noexcept nogil:
    """Return `width` bits from bit `shift` on, if fewer than 9 bytes can be read."""
    cdef uint64_t found = 0
    cdef int have = 0, need
    while have < width:
        need = min(8 - shift, width - have)
        found |= <uint64_t>((p[0] >> shift) & ((1 << need) - 1)) << have
        have += need
        p += 1
        shift = 0
    return found


def hash_lengths(Deltas lengths not None, const unsigned char[::1] data, Py_ssize_t pos, bint final,
                 unsigned char[::1] out, unsigned char[::1] sizes, Py_ssize_t limit, Bounds bounds=None):
    """Compute the XXH64 of up to `limit` contiguous values, from `pos` on (DELTA_LENGTH_BYTE_ARRAY).

    Consecutive empty values have one hash. Writes hashes to `out`, and lengths as int64s to `sizes`, and adds the values
    to the bounds. Returns (number of hashes, position after the values, status).
    """
    cdef const unsigned char* p = _start(data, pos)
    cdef uint64_t* hashes = _room(out, limit)
    cdef uint64_t* widths = _room(sizes, limit)
    cdef Py_ssize_t end = data.shape[0], n = 0, budget = SLICE_BYTES
    cdef int64_t size = 0
    cdef uint64_t times = 0
    cdef int status = READ_SLICE
    cdef bint measured = bounds is not None
    with nogil:
        while n < limit and budget > 0:
            status = lengths._peek(&size, &times)
            if status:
                status = READ_LENGTHS if status == READ_MORE else status
                break
            if size < 0:
                status = READ_BAD
                break
            if size > end - pos:
                status = READ_BAD if final else READ_MORE
                break
            hashes[n] = _xxh64(p + pos, size)
            widths[n] = <uint64_t>size
            n += 1
            pos += size
            budget -= size
            times = times if size == 0 else 1
            lengths._take(times)
            if measured:
                bounds._next(p + pos - size, size)
                bounds._again(p + pos - size, size, times - 1)
    if measured:
        bounds._checked()
    if status == READ_BAD:
        raise PageError("a byte array runs past the page's end")
    return n, pos, status
