# Finds values in Parquet pages: returns the positions of the values that are in a table of the values to find.
#
# Values are compared byte by byte. A value is first looked up in a bitmap by a mix of its first and last bytes, so
# that most values need neither a hash nor a lookup in the table. One in 30 to 60 other values is in the bitmap by
# chance; it is then looked up in a second bitmap by another mix.


cdef inline uint64_t _mixed(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    """Mix bytes of a value; the high bits of the result are used."""
    cdef uint64_t found = 0
    if size >= 8:
        found = _load64(p)
        if size > 8:
            found = found * 0xC2B2AE3D27D4EB4FULL ^ _load64(p + size - 8) ^ <uint64_t>size
    elif size >= 4:
        found = _load32(p) ^ (<uint64_t>_load32(p + size - 4) << 32)
    else:
        for i in range(size):
            found = (found << 8) | p[i]
    return found * 0x9E3779B185EBCA87ULL


cdef inline uint64_t _mixed_again(uint64_t mixed) noexcept nogil:
    """Mix the same bytes in another way."""
    return (mixed ^ (mixed >> 29)) * 0xC2B2AE3D27D4EB4FULL


cdef class ValueTable:
    """A table of the values to find, which are numbered from 0. For equal values, the first number is returned.

    Args:
        hashes: the XXH64 of each value, uint64s in native order.
        values: their concatenated bytes.
        offsets: the start of each value, and the end of the last one; None for values of `width` bytes.
        width: the size of each value.
    """

    cdef const unsigned char[::1] values
    cdef const int64_t[::1] offsets
    cdef const unsigned char[::1] hashes
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t width
    cdef uint64_t mask
    cdef int bitmap_shift
    cdef uint32_t* slots
    cdef unsigned char* bitmap
    cdef unsigned char* second           # half of the bitmap's memory

    def __cinit__(self, const unsigned char[::1] hashes not None, const unsigned char[::1] values not None,
                  const int64_t[::1] offsets, Py_ssize_t width):
        cdef Py_ssize_t i, count = hashes.shape[0] // 8, size
        cdef int bits = 16
        cdef uint64_t slot, mixed
        cdef const unsigned char* p
        self.hashes, self.values, self.offsets, self.count, self.width = hashes, values, offsets, count, width
        if count > 0x3FFFFFFF:
            raise ValueError("too many values for a table")
        if offsets is None:
            if width < 1 or values.shape[0] // width < count:
                raise ValueError("there are fewer values than hashes")
        elif offsets.shape[0] < count + 1:
            raise ValueError("there are fewer values than hashes")
        else:
            for i in range(count):
                if not 0 <= offsets[i] <= offsets[i + 1] <= values.shape[0]:
                    raise ValueError("an offset is outside the data")
        self.mask = 1
        while self.mask < <uint64_t>count * 2:
            self.mask *= 2
        while (<uint64_t>1 << bits) < <uint64_t>count * 32:
            bits += 1
        self.bitmap_shift = 64 - bits
        self.slots = <uint32_t*>malloc(self.mask * 4)
        self.bitmap = <unsigned char*>malloc((<size_t>1 << bits) // 4)
        if self.slots == NULL or self.bitmap == NULL:
            raise MemoryError
        memset(self.slots, 0, self.mask * 4)
        memset(self.bitmap, 0, (<size_t>1 << bits) // 4)
        self.second = self.bitmap + (<size_t>1 << bits) // 8
        self.mask -= 1
        for i in range(count):
            p = self._value(i, &size)
            mixed = _mixed(p, size)
            slot = mixed >> self.bitmap_shift
            self.bitmap[slot >> 3] |= <unsigned char>(1 << (slot & 7))
            slot = _mixed_again(mixed) >> self.bitmap_shift
            self.second[slot >> 3] |= <unsigned char>(1 << (slot & 7))
            slot = _load64(&hashes[i * 8]) & self.mask
            # equal values take one slot: otherwise a value that occurs a million times would take as many steps
            while self.slots[slot] and not self._equal(self.slots[slot] - 1, i):
                slot = (slot + 1) & self.mask
            if not self.slots[slot]:
                self.slots[slot] = <uint32_t>i + 1

    def __dealloc__(self):
        free(self.slots)
        free(self.bitmap)

    cdef inline const unsigned char* _value(self, Py_ssize_t i, Py_ssize_t* size) noexcept nogil:
        cdef Py_ssize_t at
        if self.offsets is None:
            at, size[0] = i * self.width, self.width
        else:
            at, size[0] = <Py_ssize_t>self.offsets[i], <Py_ssize_t>(self.offsets[i + 1] - self.offsets[i])
        return &self.values[0] + at if size[0] else <const unsigned char*>b""

    cdef bint _equal(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t size, other
        cdef const unsigned char* value = self._value(i, &size)
        cdef const unsigned char* another = self._value(j, &other)
        return size == other and memcmp(value, another, <size_t>size) == 0

    cdef int64_t _find(self, const unsigned char* p, Py_ssize_t size) noexcept nogil:
        """Return the number of a value; -1 if it isn't in the table."""
        cdef uint64_t mixed = _mixed(p, size), slot = mixed >> self.bitmap_shift, h
        cdef Py_ssize_t own, i
        cdef const unsigned char* value
        if not (self.bitmap[slot >> 3] >> (slot & 7)) & 1:
            return -1
        slot = _mixed_again(mixed) >> self.bitmap_shift
        if not (self.second[slot >> 3] >> (slot & 7)) & 1:
            return -1
        h = _xxh64_8(p) if size == 8 else _xxh64_4(p) if size == 4 else _xxh64(p, size)
        slot = h & self.mask
        while self.slots[slot]:
            i = self.slots[slot] - 1
            if _load64(&self.hashes[i * 8]) == h:
                value = self._value(i, &own)
                if own == size and memcmp(value, p, <size_t>size) == 0:
                    return i
            slot = (slot + 1) & self.mask
        return -1

    def fixed(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t width, Py_ssize_t count):
        """Return the positions of those of `count` PLAIN values of `width` bytes that are in the table, and their
        numbers: int64s."""
        cdef const unsigned char* p = _start(data, pos) + pos
        cdef Positions rows, numbers
        cdef bint enough
        if width < 1 or count < 0 or count > (data.shape[0] - pos) // width:
            raise PageError("the page's values end before the last one")
        memset(&rows, 0, sizeof(Positions))
        memset(&numbers, 0, sizeof(Positions))
        with nogil:
            enough = self._find_fixed(p, width, count, 0, &rows, &numbers)
        return _both(&rows, &numbers, enough)

    cdef bint _find_fixed(self, const unsigned char* p, Py_ssize_t width, Py_ssize_t count, int64_t first,
                          Positions* rows, Positions* numbers) noexcept nogil:
        """Append the positions of values in the table, each added to `first`, and their numbers; False without
        memory."""
        cdef Py_ssize_t i
        cdef int64_t found
        cdef uint64_t slot
        cdef const unsigned char* bitmap = self.bitmap
        cdef int shift = self.bitmap_shift
        for i in range(count):
            if width == 8:
                slot = (_load64(p + i * 8) * 0x9E3779B185EBCA87ULL) >> shift  # as `_mixed`
                if not (bitmap[slot >> 3] >> (slot & 7)) & 1:
                    continue
            found = self._find(p + i * width, width)
            if found >= 0 and not (_append(rows, first + i) and _append(numbers, found)):
                return False
        return True

    def binary(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count):
        """Do what `fixed` does for PLAIN byte arrays."""
        cdef const unsigned char* p = _start(data, pos)
        cdef Py_ssize_t i, size, end = data.shape[0]
        cdef int64_t found
        cdef Positions rows, numbers
        cdef bint enough = True, bad = False
        if count < 0:
            raise PageError("the page's values end before the last one")
        memset(&rows, 0, sizeof(Positions))
        memset(&numbers, 0, sizeof(Positions))
        with nogil:
            for i in range(count):
                if end - pos < 4:
                    bad = True
                    break
                size = <Py_ssize_t>_u32(p + pos)
                pos += 4
                if size > end - pos:
                    bad = True
                    break
                found = self._find(p + pos, size)
                if found >= 0:
                    enough = _append(&rows, i) and _append(&numbers, found)
                    if not enough:
                        break
                pos += size
        if bad:
            free(rows.items)
            free(numbers.items)
            raise PageError("a byte array runs past the page's end")
        return _both(&rows, &numbers, enough)


cdef tuple _both(Positions* rows, Positions* numbers, bint enough_memory):
    cdef bytes first
    try:
        first = _positions_as_bytes(rows, enough_memory)
    except MemoryError:
        free(numbers.items)
        raise
    return first, _positions_as_bytes(numbers, True)


def match_indices(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count,
                  const int64_t[::1] numbers not None):
    """Return the positions of those of `count` dictionary indices whose entry of `numbers` isn't negative, and these
    entries: int64s.

    data[pos:] has a byte with the bit width, then RLE/bit-packed hybrid runs of indices into `numbers`.
    """
    cdef Walk w
    cdef Hybrid h
    cdef Py_ssize_t i, n, at, size = numbers.shape[0], end = data.shape[0], done = 0
    cdef uint64_t window, mask, index = 0
    cdef int width, b
    cdef bint bad = False, enough = True
    cdef Positions rows, found
    _start(data, pos)
    if pos >= end or data[pos] > 32 or count < 0:
        raise PageError("the page has no bit width for its dictionary indices")
    memset(&h, 0, sizeof(Hybrid))
    memset(&rows, 0, sizeof(Positions))
    memset(&found, 0, sizeof(Positions))
    width = data[pos]
    pos += 1
    h.left = <uint64_t>count
    if width == 0:  # all indices are 0 and take no bytes
        h.times = h.left
    mask = (<uint64_t>1 << width) - 1
    _walk_open(&w, data, pos)
    with nogil:
        while h.left and not bad and enough:
            if h.times:
                n = <Py_ssize_t>min(h.times, h.left)
                if h.value >= <uint64_t>size:
                    bad = True
                    break
                if numbers[h.value] >= 0:
                    for i in range(n):
                        enough = _append(&rows, done + i) and _append(&found, numbers[h.value])
                        if not enough:
                            break
                h.times = 0
            elif h.groups:
                n = _grouped(&h, end - pos, width, True)
                if n <= 0:
                    bad = True
                    break
                for i in range(n):
                    at = pos + (i * width) // 8
                    if end - at >= 8:
                        window = _load64(w.data + at)
                    else:
                        window = 0
                        for b in range(<int>(end - at)):
                            window |= <uint64_t>w.data[at + b] << (8 * b)
                    index = (window >> ((i * width) & 7)) & mask
                    if index >= <uint64_t>size:
                        bad = True
                        break
                    if numbers[index] >= 0:
                        enough = _append(&rows, done + i) and _append(&found, numbers[index])
                        if not enough:
                            break
                h.groups -= min(h.groups, <uint64_t>((n + 7) // 8))
                pos += min(((n + 7) // 8) * width, end - pos)
            else:
                at = _begin(&h, &w, pos, width, &bad)
                if at < 0:
                    bad = True
                    break
                pos = at
                continue
            h.left -= <uint64_t>n
            done += n
    if bad:
        free(rows.items)
        free(found.items)
        raise PageError("a dictionary index isn't there, or isn't the dictionary's")
    return _both(&rows, &found, enough)


def place_values(const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t end, int64_t[::1] at not None):
    """Replace ascending positions among the non-null values by their positions among all values.

    data[pos:end] has definition levels of one bit: RLE/bit-packed hybrid runs.
    """
    cdef Walk w
    cdef Py_ssize_t i = 0, n = at.shape[0], held, k
    cdef uint64_t head = 0
    cdef int64_t first = 0, rank = 0, count
    cdef unsigned int byte, b
    cdef bint bad = False
    if not 0 <= pos <= end <= data.shape[0]:
        raise PageError("the levels run past the page's end")
    _walk_open(&w, data, pos)
    w.end = end
    with nogil:
        while i < n and not bad:
            pos = _varint(&w, pos, &head)
            if pos < 0 or head >> 1 == 0 or head >> 40:
                bad = True
            elif head & 1:
                held = min(<Py_ssize_t>(head >> 1), end - pos)
                for k in range(held):
                    byte = w.data[pos + k]
                    if i >= n:
                        break
                    if at[i] >= rank + BLOOM_ONES(byte):
                        rank += BLOOM_ONES(byte)
                        continue
                    for b in range(8):
                        if (byte >> b) & 1:
                            if i < n and at[i] == rank:
                                at[i] = first + k * 8 + b
                                i += 1
                            rank += 1
                pos += held
                first += <int64_t>(head >> 1) * 8
            elif pos >= end or w.data[pos] > 1:
                bad = True
            else:
                count = <int64_t>(head >> 1)
                if w.data[pos]:
                    while i < n and at[i] < rank + count:
                        if at[i] < rank:
                            bad = True
                            break
                        at[i] = first + at[i] - rank
                        i += 1
                    rank += count
                first += count
                pos += 1
    if bad:
        raise PageError("the levels end before the page's last value")
