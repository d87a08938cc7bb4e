# Hashes DELTA_BYTE_ARRAY values, and values that are longer than the input of one call.
#
# Source: the Apache Parquet format's Encodings.md.

cdef class DeltaByteArrayHasher:
    """Hashes DELTA_BYTE_ARRAY values. A value shares a prefix with the previous one, which is therefore kept.

    `longest`: the maximum size of a value in bytes. `width`: the size of every value of a fixed-length column; -1 for
    other columns. `hashed`: the total size of the hashed values.
    """

    cdef unsigned char* value
    cdef Py_ssize_t room, last, longest, width
    cdef bint started
    cdef readonly uint64_t hashed

    def __cinit__(self, Py_ssize_t longest, Py_ssize_t width):
        self.longest = longest
        self.width = width

    def __dealloc__(self):
        free(self.value)

    @property
    def before(self):
        """The previous value, which contains the next one's prefix."""
        return self.value[:self.last] if self.last else b""

    cdef bint _grow(self, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t room = max(size, min(self.room * 2, self.longest), 64)
        cdef void* found = realloc(self.value, <size_t>room)
        if found == NULL:
            return False
        self.value = <unsigned char*>found
        self.room = room
        return True

    def hash(self, Deltas prefixes not None, Deltas suffixes not None, const unsigned char[::1] data, Py_ssize_t pos,
             bint final, unsigned char[::1] out, unsigned char[::1] shapes, Py_ssize_t limit,
             Bounds bounds=None):
        """Compute the XXH64 of up to `limit` values whose suffixes start at `pos`, equal neighbours only once, and add
        them to the bounds.

        Writes hashes to `out`, and each value's prefix and suffix lengths as int64s to `shapes`. Returns (number of
        values, position after them, status).
        """
        cdef const unsigned char* p = _start(data, pos)
        cdef uint64_t* hashes = _room(out, limit)
        cdef uint64_t* shape = _room(shapes, limit * 2)
        cdef Py_ssize_t end = data.shape[0], n = 0, budget = SLICE_BYTES, size
        cdef int64_t prefix = 0, suffix = 0
        cdef uint64_t times = 0, also = 0
        cdef int status = READ_SLICE
        cdef bint other = False, memory = True, measured = bounds is not None
        with nogil:
            while n < limit and budget > 0:
                status = prefixes._peek(&prefix, &times)
                if status:
                    status = READ_PREFIXES if status == READ_MORE else status
                    break
                status = suffixes._peek(&suffix, &also)
                if status:
                    status = READ_LENGTHS if status == READ_MORE else status
                    break
                if prefix < 0 or prefix > self.last or suffix < 0:
                    status = READ_BAD
                    break
                if suffix == 0 and prefix == self.last and self.started:
                    times = min(times, also)
                    prefixes._take(times)
                    suffixes._take(times)
                    if measured:
                        bounds._again(self.value, self.last, times)
                    continue
                if suffix > self.longest - prefix:
                    status = READ_LONG
                    break
                if suffix > end - pos:
                    status = READ_BAD if final else READ_MORE
                    break
                size = <Py_ssize_t>(prefix + suffix)
                if self.width >= 0 and size != self.width:
                    other = True
                    break
                if size > self.room and not self._grow(size):
                    memory = False
                    break
                if suffix:
                    memcpy(self.value + prefix, p + pos, <size_t>suffix)
                pos += suffix
                self.last = size
                self.started = True
                hashes[n] = _xxh64(self.value, size) if size else _xxh64(<const unsigned char*>b"", 0)
                shape[2 * n] = <uint64_t>prefix
                shape[2 * n + 1] = <uint64_t>suffix
                n += 1
                budget -= size
                self.hashed += <uint64_t>size
                if measured:
                    bounds._next(self.value, size)
                prefixes._take(1)
                suffixes._take(1)
        if not memory:
            raise MemoryError
        if measured:
            bounds._checked()
        if other:
            raise PageError(f"a value of {prefix + suffix} bytes in a column of {self.width}")
        if status == READ_BAD:
            raise PageError("a byte array runs past the page's end")
        return n, pos, status


cdef class Hasher:
    """XXH64 of one value with seed 0, computed in parts."""

    cdef uint64_t v1, v2, v3, v4, size
    cdef unsigned char[32] held

    def __cinit__(self):
        self.v1 = 0x60EA27EEADC0B5D6ULL
        self.v2 = 0xC2B2AE3D27D4EB4FULL
        self.v3 = 0
        self.v4 = 0 - <uint64_t>0x9E3779B185EBCA87ULL
        self.size = 0

    cdef const unsigned char* _stripes(self, const unsigned char* p, Py_ssize_t size) noexcept nogil:
        while size >= 32:
            self.v1 = _round(self.v1, _load64(p))
            self.v2 = _round(self.v2, _load64(p + 8))
            self.v3 = _round(self.v3, _load64(p + 16))
            self.v4 = _round(self.v4, _load64(p + 24))
            p += 32
            size -= 32
        return p

    def update(self, const unsigned char[::1] data not None):
        """Add the next part."""
        cdef Py_ssize_t held = <Py_ssize_t>(self.size & 31), size = data.shape[0], more
        cdef const unsigned char* p
        cdef const unsigned char* rest
        if size == 0:
            return
        p = &data[0]
        self.size += <uint64_t>size
        with nogil:
            if held:
                more = min(32 - held, size)
                memcpy(&self.held[held], p, <size_t>more)
                p += more
                size -= more
                if held + more == 32:
                    self._stripes(self.held, 32)
            if size:
                rest = self._stripes(p, size)
                memcpy(self.held, rest, <size_t>(size & 31))

    def digest(self):
        """Return the hash of all parts so far."""
        cdef uint64_t h
        cdef const unsigned char* p = self.held
        cdef const unsigned char* end = p + (self.size & 31)
        if self.size < 32:
            return _xxh64(p, <Py_ssize_t>self.size)
        h = _rotl(self.v1, 1) + _rotl(self.v2, 7) + _rotl(self.v3, 12) + _rotl(self.v4, 18)
        h = _merge(_merge(_merge(_merge(h, self.v1), self.v2), self.v3), self.v4) + self.size
        return _finish(h, p, end)


def longest_delta_byte_array(Deltas prefixes not None, Deltas suffixes not None):
    """Return the size of the longest DELTA_BYTE_ARRAY value of a page, and about the size of all of them, as a float
    because it may be very large. The page's bytes must be complete; no value is decoded."""
    cdef int64_t prefix = 0, suffix = 0, last = 0, longest = 0
    cdef double together = 0
    cdef uint64_t times = 0, also = 0
    cdef int status = READ_SLICE
    with nogil:
        while True:
            status = prefixes._peek(&prefix, &times)
            if status:
                break
            status = suffixes._peek(&suffix, &also)
            if status:
                break
            if prefix < 0 or prefix > last or suffix < 0 or suffix > 0x7FFFFFFF:
                status = READ_BAD
                break
            last = prefix + suffix
            longest = max(longest, last)
            times = min(times, also)
            together += <double>last * <double>times
            prefixes._take(times)
            suffixes._take(times)
    if status != READ_DONE:
        raise PageError("a delta block runs past the page's end")
    return longest, together


def longest_plain(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count):
    """Return the size of the longest of PLAIN byte arrays, which follow their length in 4 bytes."""
    cdef const unsigned char* p = _start(data, pos) + pos
    cdef Py_ssize_t left = data.shape[0] - pos, n
    cdef int64_t size, longest = 0
    cdef bint good = True
    with nogil:
        for n in range(count):
            if left < 4:
                good = False
                break
            size = <int64_t>p[0] | <int64_t>p[1] << 8 | <int64_t>p[2] << 16 | <int64_t>p[3] << 24
            p += 4
            left -= 4
            if size > left:
                good = False
                break
            longest = max(longest, size)
            p += size
            left -= size
    if not good:
        raise PageError("a byte array runs past the page's end")
    return longest
