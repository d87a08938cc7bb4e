# The least and the greatest of timestamps, and the check of texts' lengths. `Bounds` compares other values.


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
