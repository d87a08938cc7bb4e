# Measures the least and the greatest value of a column, in the column's order, while its values are hashed.
#
# Source: ColumnOrder of the Parquet format's parquet.thrift.

cdef enum:
    ORDER_NONE = 0      # values are only counted
    ORDER_SIGNED = 1    # little-endian integers; of one byte: booleans
    ORDER_UNSIGNED = 2
    ORDER_FLOAT = 3     # IEEE 754 total order; NaN is counted and left out
    ORDER_BYTES = 4     # unsigned bytes
    ORDER_DECIMAL = 5   # big-endian two's complement, of any length
    ORDER_INT96 = 6     # days, then nanoseconds of the day

NO_ORDER = ORDER_NONE
SIGNED = ORDER_SIGNED
UNSIGNED = ORDER_UNSIGNED
FLOATING = ORDER_FLOAT
BYTEWISE = ORDER_BYTES
DECIMAL = ORDER_DECIMAL
INT96 = ORDER_INT96


cdef inline int64_t _key(const unsigned char* p, Py_ssize_t width, int order) noexcept nogil:
    """Return a number that compares as the value of 8, 4, 2 or 1 bytes does."""
    cdef int64_t eight
    cdef int32_t four
    cdef int32_t below = 0x7FFFFFFF if width == 4 else 0x7FFF  # the bits below the sign
    if width == 8:
        eight = <int64_t>_load64(p)
        if order == ORDER_UNSIGNED:
            return <int64_t>(_load64(p) ^ (<uint64_t>1 << 63))
        return eight ^ ((eight >> 63) & 0x7FFFFFFFFFFFFFFFLL) if order == ORDER_FLOAT else eight
    if width == 4:
        if order == ORDER_UNSIGNED:
            return <int64_t>_load32(p)
        four = <int32_t>_load32(p)
    elif width == 2:
        four = <int32_t>(<uint32_t>(p[0] | (p[1] << 8)) << 16) >> 16
    else:
        return p[0]
    return four ^ ((four >> 31) & below) if order == ORDER_FLOAT else four


cdef inline uint64_t _raw(int64_t key, Py_ssize_t width, int order) noexcept nogil:
    """Return the value's bytes, little-endian, of its key."""
    if order == ORDER_UNSIGNED and width == 8:
        return <uint64_t>key ^ (<uint64_t>1 << 63)
    return <uint64_t>(key ^ ((key >> 63) & <int64_t>(~<uint64_t>0 >> (65 - 8 * width))) if order == ORDER_FLOAT else key)


cdef inline uint64_t _prefix(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    """Return the first 8 bytes as a big-endian number, filled up with zeros."""
    cdef uint64_t found = 0
    cdef int b
    if size >= 8:
        found = _load64(p)
        found = ((found & 0x00FF00FF00FF00FFULL) << 8) | ((found >> 8) & 0x00FF00FF00FF00FFULL)
        found = ((found & 0x0000FFFF0000FFFFULL) << 16) | ((found >> 16) & 0x0000FFFF0000FFFFULL)
        return (found << 32) | (found >> 32)
    for b in range(<int>size):
        found |= <uint64_t>p[b] << (56 - 8 * b)
    return found


cdef int _order_of(const unsigned char* a, Py_ssize_t m, const unsigned char* b, Py_ssize_t n, int order) noexcept nogil:
    """Compare two values: less than 0, 0, or more than 0."""
    cdef int sign, other, found
    cdef int64_t left, right
    if order == ORDER_INT96:
        if m != 12 or n != 12:
            return 0
        left, right = <int32_t>_load32(a + 8), <int32_t>_load32(b + 8)
        if left == right:
            left, right = <int64_t>_load64(a), <int64_t>_load64(b)
        return (left > right) - (left < right)
    if order == ORDER_DECIMAL:
        sign = 0xFF if m and a[0] & 0x80 else 0
        other = 0xFF if n and b[0] & 0x80 else 0
        if sign != other:
            return -1 if sign else 1
        while m and a[0] == sign:
            a += 1
            m -= 1
        while n and b[0] == sign:
            b += 1
            n -= 1
        if m != n:  # more bytes are farther from zero
            return (1 if m > n else -1) * (-1 if sign else 1)
        return memcmp(a, b, <size_t>m) if m else 0
    found = memcmp(a, b, <size_t>min(m, n)) if m and n else 0
    return found if found else (m > n) - (m < n)


cdef struct Kept:
    # a value of a type that isn't a number of at most 8 bytes
    unsigned char* data
    Py_ssize_t size, room
    uint64_t prefix


@cython.final
cdef class Bounds:
    """The least and the greatest of the values since `reset`, in the column's order.

    Args:
        order: the column's order, one of the constants above.
        width: the bytes of a value; 0 for BYTE_ARRAY.
        tracked: whether to find out if the values rise or fall.

    Attributes:
        nans: the number of values that are NaN, since `reset`.
        size: the bytes of values of BYTE_ARRAY columns, since `reset`.
        rises, falls: no value since the start is less, or greater, than the one before it.
        unknown: a value was too long to be compared.
        alone: only the bounds are wanted, and no hashes of the values.
    """

    cdef int order
    cdef Py_ssize_t width
    cdef bint numbers, some, tracked, begun, memory
    cdef int64_t low, high, last, infinite
    cdef Kept least, most, before
    cdef readonly int64_t nans
    cdef readonly uint64_t size
    cdef readonly bint rises, falls
    cdef public bint unknown, alone

    def __cinit__(self, int order, Py_ssize_t width, bint tracked=False):
        self.order, self.width, self.tracked = order, width, tracked
        self.numbers = order in (ORDER_SIGNED, ORDER_UNSIGNED, ORDER_FLOAT)
        if self.numbers and width not in (1, 2, 4, 8):
            raise ValueError("numbers have 1, 2, 4 or 8 bytes")
        self.infinite = 0x7FF0000000000000LL if width == 8 else 0x7F800000 if width == 4 else 0x7C00
        self.rises = self.falls = self.memory = True
        self.some = self.begun = self.unknown = self.alone = False
        self.nans, self.size = 0, 0

    def __dealloc__(self):
        free(self.least.data)
        free(self.most.data)
        free(self.before.data)

    def reset(self):
        """Forget the least and the greatest value and the counts."""
        self.some = False
        self.nans, self.size = 0, 0

    @property
    def least_and_greatest(self):
        """The least and the greatest value as PLAIN bytes; (None, None) if there are none."""
        if not self.some:
            return None, None
        if self.numbers:
            low, high = _raw(self.low, self.width, self.order), _raw(self.high, self.width, self.order)
            return low.to_bytes(8, "little")[:self.width], high.to_bytes(8, "little")[:self.width]
        return (
            self.least.data[:self.least.size] if self.least.size else b"",
            self.most.data[:self.most.size] if self.most.size else b"",
        )

    cdef bint _is_nan(self, int64_t key) noexcept nogil:
        return self.order == ORDER_FLOAT and (key > self.infinite or key < -self.infinite - 1)

    cdef void _number(self, int64_t key) noexcept nogil:
        cdef int64_t at
        if self.tracked:
            at = 0 if self.order == ORDER_FLOAT and key == -1 else key  # rows are sorted with zeros of both signs mixed
            if self.begun:
                self.rises = self.rises and at >= self.last
                self.falls = self.falls and at <= self.last
            self.last, self.begun = at, True
        if not self.some:
            self.low = self.high = key
            self.some = True
        elif key < self.low:
            self.low = key
        elif key > self.high:
            self.high = key

    cdef void _keep(self, Kept* kept, const unsigned char* p, Py_ssize_t size, uint64_t prefix) noexcept nogil:
        cdef void* found
        if size > kept.room:
            found = realloc(kept.data, <size_t>max(size, 2 * kept.room, 64))
            if found == NULL:
                self.memory = False
                return
            kept.data, kept.room = <unsigned char*>found, max(size, 2 * kept.room, 64)
        if size:
            memcpy(kept.data, p, <size_t>size)
        kept.size, kept.prefix = size, prefix

    cdef void _take(self, const unsigned char* p, Py_ssize_t size) noexcept nogil:
        """Compare a value that isn't a number."""
        cdef uint64_t prefix = 0
        cdef int found
        if self.order == ORDER_NONE:
            return
        if self.order == ORDER_BYTES:
            prefix = _prefix(p, size)
        if self.tracked:
            if self.begun:
                found = _order_of(p, size, self.before.data, self.before.size, self.order)
                self.rises = self.rises and found >= 0
                self.falls = self.falls and found <= 0
            self._keep(&self.before, p, size, prefix)
            self.begun = True
        if not self.some:
            self._keep(&self.least, p, size, prefix)
            self._keep(&self.most, p, size, prefix)
            self.some = True
        elif prefix < self.least.prefix or (
            prefix == self.least.prefix and _order_of(p, size, self.least.data, self.least.size, self.order) < 0
        ):
            self._keep(&self.least, p, size, prefix)
        elif prefix > self.most.prefix or (
            prefix == self.most.prefix and _order_of(p, size, self.most.data, self.most.size, self.order) > 0
        ):
            self._keep(&self.most, p, size, prefix)

    cdef void _next(self, const unsigned char* p, Py_ssize_t size) noexcept nogil:
        """Add a value of any type."""
        cdef int64_t key
        if not self.width:
            self.size += <uint64_t>size
        if not self.numbers:
            self._take(p, size)
            return
        key = _key(p, self.width, self.order)
        if self._is_nan(key):
            self.nans += 1
        else:
            self._number(key)

    cdef void _again(self, const unsigned char* p, Py_ssize_t size, uint64_t times) noexcept nogil:
        """Count the value that was added last `times` times more."""
        if not self.width:
            self.size += times * <uint64_t>size
        elif self.order == ORDER_FLOAT and self._is_nan(_key(p, self.width, self.order)):
            self.nans += <int64_t>times

    cdef int _checked(self) except -1:
        if not self.memory:
            raise MemoryError
        return 0

    def fixed(self, const unsigned char[::1] values not None, Py_ssize_t count):
        """Add `count` values of a fixed width."""
        cdef const unsigned char* p = _start(values, 0)
        cdef Py_ssize_t i, width = self.width
        cdef int order = self.order
        cdef int64_t key, low, high, infinite = self.infinite, nans = 0
        if count <= 0 or order == ORDER_NONE:
            return
        if width < 1 or values.shape[0] // width < count:
            raise ValueError("fewer values than requested")
        with nogil:
            if not self.numbers:
                for i in range(count):
                    self._take(p + i * width, width)
            elif self.tracked:
                for i in range(count):
                    key = _key(p + i * width, width, order)
                    if self._is_nan(key):
                        nans += 1
                    else:
                        self._number(key)
            else:
                high = <int64_t>(<uint64_t>1 << 63)  # the least number
                low = ~high
                if order == ORDER_FLOAT:
                    for i in range(count):
                        key = _key(p + i * width, width, ORDER_FLOAT)
                        if key > infinite or key < -infinite - 1:
                            nans += 1
                        else:
                            low, high = min(low, key), max(high, key)
                elif width == 8 and order == ORDER_SIGNED:
                    for i in range(count):
                        key = _key(p + i * 8, 8, ORDER_SIGNED)
                        low, high = min(low, key), max(high, key)
                elif width == 4 and order == ORDER_SIGNED:
                    for i in range(count):
                        key = _key(p + i * 4, 4, ORDER_SIGNED)
                        low, high = min(low, key), max(high, key)
                else:
                    for i in range(count):
                        key = _key(p + i * width, width, order)
                        low, high = min(low, key), max(high, key)
                if nans < count:
                    self._number(low)
                    self._number(high)
            self.nans += nans
        self._checked()

    def sized(self, const unsigned char[::1] data not None, Py_ssize_t pos, const unsigned char[::1] sizes not None,
              Py_ssize_t count):
        """Add `count` byte arrays from `pos` on, whose sizes are int64s."""
        cdef const unsigned char* p = _start(data, pos)
        cdef Py_ssize_t end = data.shape[0], i
        cdef int64_t size
        cdef bint bad = count < 0 or sizes.shape[0] // 8 < count
        with nogil:
            for i in range(0 if bad else count):
                size = <int64_t>_load64(&sizes[i * 8])
                if size < 0 or size > end - pos:
                    bad = True
                    break
                self.size += <uint64_t>size
                self._take(p + pos, <Py_ssize_t>size)
                pos += <Py_ssize_t>size
        if bad:
            raise PageError("a byte array runs past the page's end")
        self._checked()

    def too_long(self, uint64_t size):
        """Add a byte array of `size` bytes that isn't in memory."""
        self.size += size
        self.unknown = True


cdef struct Entry:
    uint64_t key   # a number's key; the first bytes of a byte array, if these are compared first
    uint32_t size
    uint32_t page  # the last page that uses the entry, counted from 1


@cython.final
cdef class Entries:
    """The entries of a dictionary, whose use by each page `Indices` measures.

    Args:
        bounds: takes the entries that a page uses.
        count: the number of entries.
    """

    cdef Bounds bounds
    cdef list held
    cdef const unsigned char** starts
    cdef Entry* entries
    cdef bint every
    cdef Py_ssize_t room
    cdef uint32_t page
    cdef readonly Py_ssize_t count

    def __cinit__(self, Bounds bounds not None, Py_ssize_t count):
        self.bounds, self.held = bounds, []
        self.room, self.count, self.page = max(count, 0), 0, 0
        self.every = bounds.tracked or bounds.order == ORDER_FLOAT  # the order of values and NaNs are counted
        self.starts = <const unsigned char**>malloc(<size_t>max(self.room, 1) * sizeof(void*))
        self.entries = <Entry*>calloc(<size_t>max(self.room, 1), sizeof(Entry))
        if self.starts == NULL or self.entries == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.starts)
        free(self.entries)

    def add(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count):
        """Add `count` entries in PLAIN encoding from `pos` on."""
        cdef const unsigned char* p = _start(data, pos)
        cdef Py_ssize_t end = data.shape[0], i, size = self.bounds.width, head = 0 if self.bounds.width else 4
        if count < 0 or count > self.room - self.count:
            raise ValueError("more entries than announced")
        self.held.append(data)
        for i in range(count):
            if end - pos < head:
                raise PageError("a byte array runs past the page's end")
            if head:
                size = <Py_ssize_t>_u32(p + pos)
            pos += head
            if size > end - pos:
                raise PageError("a byte array runs past the page's end")
            self.starts[self.count], self.entries[self.count].size = p + pos, <uint32_t>size
            if self.bounds.numbers:
                self.entries[self.count].key = <uint64_t>_key(p + pos, size, self.bounds.order)
            elif self.bounds.order == ORDER_BYTES:
                self.entries[self.count].key = _prefix(p + pos, size)
            self.count += 1
            pos += size

    def add_long(self, Py_ssize_t size):
        """Add an entry that isn't in memory."""
        if self.count >= self.room:
            raise ValueError("more entries than announced")
        self.starts[self.count], self.entries[self.count].size = NULL, <uint32_t>size
        self.count += 1

    def next_page(self):
        """Measure another page."""
        self.page += 1

    @property
    def used(self):
        """The number of entries that pages have used."""
        cdef Py_ssize_t i, found = 0
        for i in range(self.count):
            found += self.entries[i].page != 0
        return found

    cdef inline void _use(self, Bounds bounds, uint64_t index, uint64_t times) noexcept nogil:
        """Add an entry that a page uses `times` times."""
        cdef Entry* entry = &self.entries[index]
        cdef bint again = entry.page == self.page
        cdef int64_t key = <int64_t>entry.key
        entry.page = self.page
        if not bounds.width:
            bounds.size += times * entry.size
        if bounds.some and not self.every:
            if bounds.numbers:
                if bounds.low <= key and key <= bounds.high:
                    return
            elif again or (bounds.least.prefix < entry.key and entry.key < bounds.most.prefix):
                return
        if bounds.numbers:
            if bounds._is_nan(key):
                bounds.nans += <int64_t>times
            else:
                bounds._number(key)
        elif self.starts[index] == NULL:
            bounds.unknown = True
        else:
            bounds._take(self.starts[index], <Py_ssize_t>entry.size)
