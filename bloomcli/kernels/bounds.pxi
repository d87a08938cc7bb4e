# Measures the least and the greatest value of a column, in the column's order, while its values are hashed, and how
# each row compares with the row before it.
#
# Source: ColumnOrder of the Parquet format's parquet.thrift.

cdef enum:
    ORDER_NONE = 0      # values are only counted
    ORDER_SIGNED = 1    # little-endian integers
    ORDER_UNSIGNED = 2
    ORDER_FLOAT = 3     # IEEE 754 total order; NaN is counted and left out
    ORDER_BYTES = 4     # unsigned bytes
    ORDER_DECIMAL = 5   # big-endian two's complement, of any length
    ORDER_INT96 = 6     # days, then nanoseconds of the day
    ORDER_WIDE = 7      # little-endian integers of 16 bytes

NO_ORDER = ORDER_NONE
SIGNED = ORDER_SIGNED
UNSIGNED = ORDER_UNSIGNED
FLOATING = ORDER_FLOAT
BYTEWISE = ORDER_BYTES
DECIMAL = ORDER_DECIMAL
INT96 = ORDER_INT96
WIDE = ORDER_WIDE


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
        return <signed char>p[0]
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
    if order == ORDER_WIDE:
        left, right = <int64_t>_load64(a + 8), <int64_t>_load64(b + 8)
        if left == right:  # the lower halves have no sign
            left, right = <int64_t>(_load64(a) ^ (<uint64_t>1 << 63)), <int64_t>(_load64(b) ^ (<uint64_t>1 << 63))
        return (left > right) - (left < right)
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


cdef enum:
    # how a row compares with the row before it; 0: they are equal
    STEP_UP = 1
    STEP_DOWN = 2
    STEP_APART = 3       # one of them is NaN
    STEP_TO_NULL = 4
    STEP_FROM_NULL = 8

UP = STEP_UP
DOWN = STEP_DOWN
TO_NULL = STEP_TO_NULL
FROM_NULL = STEP_FROM_NULL


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
        tracked: whether to find out if the values rise or fall, and how each row compares with the one before it.

    Attributes:
        rows: the number of rows that are compared, if `tracked`.
        nans: the number of values that are NaN, since `reset`.
        size: the bytes of values of BYTE_ARRAY columns, since `reset`.
        rises, falls: no value since the start is less, or greater, than the one before it.
        unknown: a value was too long to be compared.
        alone: only the bounds are wanted, and no hashes of the values.
    """

    cdef int order
    cdef Py_ssize_t width
    cdef bint numbers, some, begun, memory, after_nan, after_null
    cdef int64_t low, high, last, infinite
    cdef Kept least, most, before
    cdef unsigned char* row_steps  # half a byte for each row
    cdef const unsigned char[::1] defined
    cdef Py_ssize_t room, place
    cdef readonly Py_ssize_t rows
    cdef readonly int64_t nans
    cdef readonly uint64_t size
    cdef readonly bint tracked, rises, falls
    cdef public bint unknown, alone

    def __cinit__(self, int order, Py_ssize_t width, bint tracked=False):
        self.order, self.width, self.tracked = order, width, tracked
        self.numbers = order in (ORDER_SIGNED, ORDER_UNSIGNED, ORDER_FLOAT)
        if self.numbers and width not in (1, 2, 4, 8) or order == ORDER_WIDE and width != 16:
            raise ValueError("numbers have 1, 2, 4, 8 or 16 bytes")
        self.infinite = 0x7FF0000000000000LL if width == 8 else 0x7F800000 if width == 4 else 0x7C00
        self.rises = self.falls = self.memory = True
        self.some = self.begun = self.unknown = self.alone = self.after_nan = self.after_null = False
        self.nans, self.size = 0, 0
        self.row_steps, self.rows, self.room = NULL, 0, 0
        self.nulls(b"")

    def __dealloc__(self):
        free(self.least.data)
        free(self.most.data)
        free(self.before.data)
        free(self.row_steps)

    def nulls(self, const unsigned char[::1] defined not None):
        """Say which rows of the page have a value, as bytes that aren't 0, before these are added. By default all do."""
        self.defined, self.place = defined, 0

    def reset(self):
        """Forget the least and the greatest value and the counts: the page is finished."""
        self.some = False
        self.nans, self.size = 0, 0
        self._leave_nulls()
        self._checked()
        self.nulls(b"")

    cdef void _row(self, int step) noexcept nogil:
        cdef Py_ssize_t room
        cdef void* found
        if self.rows >= 2 * self.room:
            room = max(4096, 2 * self.room)
            found = realloc(self.row_steps, <size_t>room)
            if found == NULL:
                self.memory = False
                return
            self.row_steps = <unsigned char*>found
            memset(self.row_steps + self.room, 0, <size_t>(room - self.room))
            self.room = room
        if self.rows:
            self.row_steps[self.rows >> 1] |= <unsigned char>(step << (4 * (self.rows & 1)))
        self.rows += 1

    cdef void _leave_nulls(self) noexcept nogil:
        """Add the rows without a value in front of the next one."""
        while self.place < self.defined.shape[0] and not self.defined[self.place]:
            self._row(0 if self.after_null else STEP_TO_NULL)
            self.after_null = True
            self.place += 1

    cdef void _step(self, int step) noexcept nogil:
        """Add a row with a value, which compares with the value before it as `step`."""
        if self.defined.shape[0]:
            self._leave_nulls()
            self.place += 1
        self._row(STEP_FROM_NULL if self.after_null else step)
        self.after_null = False

    @property
    def steps(self):
        """How each row compares with the row before it: half a byte for each, the first row in the lower half. 0: they
        are equal; UP, DOWN, both if one is NaN; or TO_NULL, FROM_NULL."""
        return self.row_steps[:(self.rows + 1) // 2] if self.rows else b""

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

    cdef void _nan(self, uint64_t times) noexcept nogil:
        cdef uint64_t i
        self.nans += <int64_t>times
        if self.tracked:
            for i in range(times):
                self._step(STEP_APART)
            self.after_nan = True

    cdef void _compare(self, int found) noexcept nogil:
        """Add a row with a value that is less than the one before it, or equal, or more, as `found` than 0."""
        if self.begun:
            self.rises = self.rises and found >= 0
            self.falls = self.falls and found <= 0
        self._step(STEP_APART if self.after_nan else STEP_UP if found > 0 else STEP_DOWN if found < 0 else 0)
        self.begun, self.after_nan = True, False

    cdef void _number(self, int64_t key) noexcept nogil:
        cdef int64_t at
        if self.tracked:
            at = 0 if self.order == ORDER_FLOAT and key == -1 else key  # rows are sorted with zeros of both signs mixed
            self._compare((at > self.last) - (at < self.last))
            self.last = at
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
        if self.order == ORDER_NONE:
            return
        if self.order == ORDER_BYTES:
            prefix = _prefix(p, size)
        if self.tracked:
            self._compare(_order_of(p, size, self.before.data, self.before.size, self.order) if self.begun else 0)
            self._keep(&self.before, p, size, prefix)
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
            self._nan(1)
        else:
            self._number(key)

    cdef void _again(self, const unsigned char* p, Py_ssize_t size, uint64_t times) noexcept nogil:
        """Count the value that was added last `times` times more."""
        cdef uint64_t i
        if not self.width:
            self.size += times * <uint64_t>size
        elif self.order == ORDER_FLOAT and self._is_nan(_key(p, self.width, self.order)):
            self._nan(times)
            return
        for i in range(times if self.tracked and self.order != ORDER_NONE else 0):
            self._compare(0)

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
                        self._nan(1)
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
    cdef int64_t* keys    # a number's key; of a byte array, the bytes after those that all entries begin with
    cdef uint32_t* sizes
    cdef uint32_t* marks  # the last call of `Indices.feed` that compared the entry
    cdef Py_ssize_t room
    cdef uint32_t call
    cdef uint64_t last
    cdef bint every       # each use counts: the order of values is measured, or there are NaNs
    cdef bint keyed
    cdef readonly Py_ssize_t count

    def __cinit__(self, Bounds bounds not None, Py_ssize_t count):
        cdef size_t room = <size_t>max(count, 1)
        self.bounds, self.held = bounds, []
        self.room, self.count, self.call = max(count, 0), 0, 0
        self.every, self.keyed = bounds.tracked, bounds.numbers
        self.keys = <int64_t*>calloc(room, sizeof(int64_t))
        if not bounds.numbers:
            self.starts = <const unsigned char**>malloc(room * sizeof(void*))
            self.sizes = <uint32_t*>malloc(room * sizeof(uint32_t))
            self.marks = <uint32_t*>calloc(room, sizeof(uint32_t))
        if self.keys == NULL or not bounds.numbers and (self.starts == NULL or self.sizes == NULL or self.marks == NULL):
            raise MemoryError

    def __dealloc__(self):
        free(self.starts)
        free(self.keys)
        free(self.sizes)
        free(self.marks)

    def add(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count):
        """Add `count` entries in PLAIN encoding from `pos` on."""
        cdef const unsigned char* p = _start(data, pos)
        cdef Py_ssize_t end = data.shape[0], i, size = self.bounds.width, head = 0 if size else 4
        cdef int order = self.bounds.order
        cdef int64_t* keys = self.keys + self.count
        cdef bint bad = False, nan = False
        if count < 0 or count > self.room - self.count:
            raise ValueError("more entries than announced")
        with nogil:
            if self.bounds.numbers:
                bad = (end - pos) // size < count
                for i in range(0 if bad else count):
                    keys[i] = _key(p + pos + i * size, size, order)
                    nan |= self.bounds._is_nan(keys[i])
                self.count += count
                self.every = self.every or nan
                count = 0
            for i in range(count):
                if end - pos < head:
                    bad = True
                    break
                if head:
                    size = <Py_ssize_t>_u32(p + pos)
                pos += head
                if size > end - pos:
                    bad = True
                    break
                self.starts[self.count], self.sizes[self.count] = p + pos, <uint32_t>size
                self.count += 1
                pos += size
        if bad:
            raise PageError("a byte array runs past the page's end")
        if not self.bounds.numbers:
            self.held.append(data)

    cdef void _begin(self) noexcept nogil:
        """Begin to measure more indices."""
        cdef Py_ssize_t i, at, common = 0
        self.call += 1
        self.last = <uint64_t>self.count
        if self.keyed or self.every or self.bounds.order != ORDER_BYTES:
            return
        self.keyed = True  # what all entries begin with, as URLs do, doesn't tell them apart
        for i in range(self.count):
            at = 0
            common = min(common if i else self.sizes[0], <Py_ssize_t>self.sizes[i])
            while at < common and self.starts[0][at] == self.starts[i][at]:
                at += 1
            common = at
        for i in range(self.count):
            self.keys[i] = <int64_t>(
                _prefix(self.starts[i] + common, <Py_ssize_t>self.sizes[i] - common) ^ (<uint64_t>1 << 63)
            )

    cdef void _use(self, Bounds bounds, const uint32_t* indices, Py_ssize_t count, uint64_t times) noexcept nogil:
        """Add entries that a page uses, each `times` times. They exist."""
        cdef Py_ssize_t i
        cdef uint32_t at, least = indices[0], most = indices[0]
        cdef int64_t key, low = self.keys[least], high = low
        if self.every or bounds.order == ORDER_NONE:
            for i in range(count):
                self._add(bounds, indices[i], times)
        elif bounds.numbers:
            for i in range(1, count):
                key = self.keys[indices[i]]
                low, high = min(low, key), max(high, key)
            bounds._number(low)
            bounds._number(high)
        else:
            for i in range(count):
                at = indices[i]
                if not bounds.width:
                    bounds.size += times * self.sizes[at]
                key = self.keys[at]
                if low < key < high or at == least or at == most or self.marks[at] == self.call:
                    continue
                self.marks[at] = self.call
                if key < low or (key == low and self._before(at, least)):
                    low, least = key, at
                if key > high or (key == high and self._before(most, at)):
                    high, most = key, at
            bounds._take(self.starts[least], <Py_ssize_t>self.sizes[least])
            bounds._take(self.starts[most], <Py_ssize_t>self.sizes[most])

    cdef bint _before(self, uint32_t a, uint32_t b) noexcept nogil:
        cdef Py_ssize_t m = self.sizes[a], n = self.sizes[b]
        return _order_of(self.starts[a], m, self.starts[b], n, self.bounds.order) < 0

    cdef void _add(self, Bounds bounds, uint32_t at, uint64_t times) noexcept nogil:
        """Add one entry, `times` times."""
        cdef uint64_t i
        if bounds.numbers:
            if bounds._is_nan(self.keys[at]):
                bounds._nan(times)
                return
            for i in range(times if bounds.tracked else 1):
                bounds._number(self.keys[at])
        else:
            if at != self.last:  # else it is the entry before it
                bounds._next(self.starts[at], <Py_ssize_t>self.sizes[at])
                times -= 1
            bounds._again(self.starts[at], <Py_ssize_t>self.sizes[at], times)
            self.last = at
