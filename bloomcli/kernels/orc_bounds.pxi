# The least and the greatest of a column's decoded values, in the order of ORC's statistics.
#
# Each function returns the indexes of both, or -1 and -1 if no value is compared: of equal values, the first.


def orc_extremes(const unsigned char[::1] values not None, int width, Py_ssize_t count):
    """Compare signed integers of 1, 8 or 16 bytes, little-endian."""
    if count < 0 or width not in (1, 8, 16) or values.shape[0] // width < count:
        raise ValueError("fewer values than requested, or not an integer width")
    if count == 0:
        return -1, -1
    cdef const unsigned char* p = &values[0]
    cdef Py_ssize_t i, least = 0, greatest = 0
    cdef int64_t low = 0, high = 0, value
    cdef uint64_t low_rest = 0, high_rest = 0, rest = 0   # the lower 8 of 16 bytes
    with nogil:
        for i in range(count):
            if width == 16:
                value, rest = <int64_t>_load64(p + i * 16 + 8), _load64(p + i * 16)
            else:
                value = <int64_t>_load64(p + i * 8) if width == 8 else <signed char>p[i]
            if i == 0:
                low, low_rest, high, high_rest = value, rest, value, rest
            elif value < low or (value == low and rest < low_rest):
                low, low_rest, least = value, rest, i
            elif value > high or (value == high and rest > high_rest):
                high, high_rest, greatest = value, rest, i
    return least, greatest


def orc_float_extremes(const unsigned char[::1] values not None, int width, Py_ssize_t count):
    """Compare floats (4 bytes) or doubles (8), without NaN. Also returns the number of NaN: (least, greatest, NaN)."""
    if count < 0 or width not in (4, 8) or values.shape[0] // width < count:
        raise ValueError("fewer values than requested, or not a floating-point width")
    cdef const unsigned char* p = &values[0] if values.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i, least = -1, greatest = -1, nans = 0
    cdef double low = 0, high = 0, value
    cdef float single
    with nogil:
        for i in range(count):
            if width == 8:
                memcpy(&value, p + i * 8, 8)
            else:
                memcpy(&single, p + i * 4, 4)
                value = single
            if value != value:
                nans += 1
            elif least < 0:
                low = high = value
                least = greatest = i
            elif value < low:
                low, least = value, i
            elif value > high:
                high, greatest = value, i
    return least, greatest, nans


cdef inline int _compare(const unsigned char* a, int64_t a_size, const unsigned char* b, int64_t b_size) noexcept nogil:
    """Return a number below 0, 0, or above 0, as the first text is less than, equal to or greater than the second."""
    cdef int64_t at = 0, size = min(a_size, b_size)
    cdef int order
    while size - at >= 8:  # most texts differ in the first words, where a call of memcmp takes longer
        if _load64(a + at) != _load64(b + at):
            return 1 if _big64(a + at) > _big64(b + at) else -1
        at += 8
    order = memcmp(a + at, b + at, <size_t>(size - at))
    return order if order else (a_size > b_size) - (a_size < b_size)


def orc_text_extremes(const unsigned char[::1] data not None, const unsigned char[::1] lengths not None,
                      Py_ssize_t count):
    """Compare contiguous texts with int64 lengths, byte by byte. Returns the position and length of each instead of
    its index: ((position, length), (position, length)), or (None, None)."""
    cdef const unsigned char* p = &data[0] if data.shape[0] else <const unsigned char*>b""
    cdef Py_ssize_t i, at = 0, low = 0, high = 0
    cdef int64_t size, low_size = 0, high_size = 0
    cdef const unsigned char* ls = _lengths(data, lengths, count)
    if count == 0:
        return None, None
    low_size = high_size = at = <int64_t>_load64(ls)
    with nogil:
        for i in range(1, count):
            size = <int64_t>_load64(ls + i * 8)
            if _compare(p + at, size, p + low, low_size) < 0:
                low, low_size = at, size
            elif _compare(p + at, size, p + high, high_size) > 0:
                high, high_size = at, size
            at += size
    return (low, low_size), (high, high_size)


def orc_ascending(const unsigned char[::1] data not None, const unsigned char[::1] lengths not None, Py_ssize_t count):
    """Return whether none of contiguous texts with int64 lengths is less than the one before."""
    cdef const unsigned char* p = &data[0] if data.shape[0] else <const unsigned char*>b""
    cdef const unsigned char* ls = _lengths(data, lengths, count)
    cdef Py_ssize_t i, at = 0
    cdef int64_t before = 0, size
    cdef bint ascending = True
    with nogil:
        for i in range(count):
            size = <int64_t>_load64(ls + i * 8)
            if i and _compare(p + at, size, p + at - before, before) < 0:
                ascending = False
                break
            at += size
            before = size
    return ascending


cdef const unsigned char* _lengths(const unsigned char[::1] data, const unsigned char[::1] lengths,
                                   Py_ssize_t count) except NULL:
    """Return the lengths, which were checked."""
    if count < 0 or lengths.shape[0] // 8 < count:
        raise ValueError("fewer lengths than requested")
    cdef const unsigned char* ls = &lengths[0] if lengths.shape[0] else <const unsigned char*>b""
    cdef uint64_t left = <uint64_t>data.shape[0], size
    cdef Py_ssize_t i
    cdef bint bad = False
    with nogil:
        for i in range(count):
            size = _load64(ls + i * 8)
            bad = bad or size > left
            left -= size
            if bad:
                break
    if bad:
        raise ValueError("a length that can't be")
    return ls


cdef int64_t OFFSETS_DIFFER = 4 * 86400        # more seconds than two offsets from UTC differ, and readings of one second
cdef int64_t MOST_SECONDS = <int64_t>1 << 62


def orc_moment_extremes(const unsigned char[::1] seconds not None, const unsigned char[::1] nanos not None,
                        Py_ssize_t count, WriterZone zone not None):
    """Compare timestamps (see `orc_hash_moments`) in the writer's local time, without those that some reader may read
    differently."""
    if count < 0 or seconds.shape[0] // 8 < count or nanos.shape[0] // 8 < count:
        raise ValueError("fewer values than requested")
    cdef Zone* z = &zone.zone
    cdef const unsigned char* ss = &seconds[0] if count else <const unsigned char*>b""
    cdef const unsigned char* ns = &nanos[0] if count else <const unsigned char*>b""
    cdef Py_ssize_t i, at, least = -1, greatest = -1
    cdef int64_t low = 0, high = 0, millis, rest, low_rest = 0, high_rest = 0, second
    cdef int64_t inside_low = 1, inside_high = 0   # seconds between which no value is an extreme, whatever its offset
    cdef uint64_t offset
    cdef Moment m
    with nogil:
        for i in range(count):
            second = <int64_t>_load64(ss + i * 8)
            if inside_low < second < inside_high or (i and _equal_moments(ss, ns, i)):
                continue
            m = _moment(_load64(ss + i * 8), _load64(ns + i * 8), z.base)
            at = _interval(z, m.second)
            offset = _load64(z.firsts + at * 8)
            if m.bad or (not z.exact and (
                    _other_from(z, at) < <int64_t>_load64(z.ends + at * 8)
                    or (m.fraction and (m.negative != (<int64_t>(m.seconds + offset) < 0)
                                        or _interval(z, <int64_t>m.seconds) != at)))):
                continue
            millis = <int64_t>(m.millis + offset * 1000)
            rest = m.nanos - <int64_t>m.part * 1000000
            if least < 0 or millis < low or (millis == low and rest < low_rest):
                low, low_rest, least = millis, rest, i
                inside_low = second + OFFSETS_DIFFER if second < MOST_SECONDS else second
            if greatest < 0 or millis > high or (millis == high and rest > high_rest):
                high, high_rest, greatest = millis, rest, i
                inside_high = second - OFFSETS_DIFFER if second > -MOST_SECONDS else second
    return least, greatest
