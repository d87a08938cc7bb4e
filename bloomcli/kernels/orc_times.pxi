# ORC's timestamps: converts seconds since 2015 in the writer's zone, and nanoseconds, to the hashed milliseconds.
#
# Sources: the Apache ORC specification, Timestamp Columns; orc-core's TimestampTreeReader (readTimestamp, parseNanos)
# and SerializationUtils.convertToUtc, ORC C++'s TimestampColumnReader.

cdef int64_t GREGORIAN_CYCLE = 12622780800   # seconds of 400 years, after which all rules repeat
cdef int64_t[8] TRAILING = [1, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000]   # by the zeros' code


cdef struct Zone:
    const unsigned char* starts   # the first second of each interval, ascending; the first is the smallest int64
    const unsigned char* firsts   # the offset of each interval that bloom uses
    const unsigned char* ends     # the end of its other offsets in `more`; they start at the previous interval's end
    const unsigned char* more
    Py_ssize_t size
    int64_t base                  # the instant of 2015-01-01 00:00
    int64_t cycle                 # from this second on, offsets repeat every 400 years
    bint exact                    # all readers agree


cdef struct Moment:
    uint64_t seconds              # since 1970, as stored: rounded towards zero
    int64_t nanos                 # negative before 1970 in files of Arrow C++
    uint64_t part                 # whole milliseconds of the nanoseconds, rounded down
    uint64_t millis               # the instant, rounded down
    int64_t second                # the instant, rounded down
    bint negative
    bint fraction                 # the nanoseconds are at least a millisecond: a negative second is then one too late
    bint bad


cdef inline Moment _moment(uint64_t seconds, uint64_t code, int64_t base) noexcept nogil:
    cdef Moment m
    m.nanos = <int64_t>code >> 3
    m.bad = not -1000000000 < m.nanos < 1000000000
    m.nanos = 0 if m.bad else m.nanos * TRAILING[code & 7]
    m.bad = m.bad or not -1000000000 < m.nanos < 1000000000
    m.fraction = m.nanos > 999999
    m.part = <uint64_t>(m.nanos // 1000000 if m.nanos >= 0 else -((999999 - m.nanos) // 1000000))
    m.seconds = seconds + <uint64_t>base
    m.millis = m.seconds * 1000 + m.part
    m.negative = <int64_t>m.millis < 0
    m.second = <int64_t>(m.seconds - (m.nanos < 0))
    if m.negative and m.fraction:
        m.millis -= 1000
        m.second = <int64_t>(m.seconds - 1)
    return m


cdef inline Py_ssize_t _interval(Zone* z, int64_t second) noexcept nogil:
    """Return the last interval that starts at or before a second."""
    cdef Py_ssize_t low = 0, left = z.size, half
    if second >= z.cycle:
        second = z.cycle + (second - z.cycle) % GREGORIAN_CYCLE
    while left > 1:
        half = left >> 1
        if <int64_t>_load64(z.starts + (low + half) * 8) <= second:
            low += half
        left -= half
    return low


cdef inline int64_t _other_from(Zone* z, Py_ssize_t at) noexcept nogil:
    return <int64_t>_load64(z.ends + (at - 1) * 8) if at > 0 else 0


cdef int _add_reading(uint64_t* found, int count, uint64_t millis, uint64_t main) noexcept nogil:
    cdef int i
    if millis == main:
        return count
    for i in range(count):
        if found[i] == millis:
            return count
    found[count] = millis
    return count + 1


cdef int _add_offset(uint64_t* found, int count, Moment* m, uint64_t offset, uint64_t main) noexcept nogil:
    """Add the readings with an offset: orc-core uses the sign of the instant, ORC C++ that of the local time."""
    cdef uint64_t wall = m.seconds + offset
    cdef uint64_t millis = wall * 1000 + m.part
    if <int64_t>wall < 0 and m.fraction:
        millis -= 1000
    count = _add_reading(found, count, m.millis + offset * 1000, main)
    return _add_reading(found, count, millis, main)


cdef int _add_interval(uint64_t* found, int count, Zone* z, Py_ssize_t at, Moment* m, uint64_t main) noexcept nogil:
    cdef int64_t i
    count = _add_offset(found, count, m, _load64(z.firsts + at * 8), main)
    for i in range(_other_from(z, at), <int64_t>_load64(z.ends + at * 8)):
        count = _add_offset(found, count, m, _load64(z.more + i * 8), main)
    return count


cdef class WriterZone:
    """Offsets from UTC by instant: those of a file's writer, and different ones that its readers may use.

    Args:
        starts: the first second since 1970 of each interval, ascending; the first is the smallest int64.
        firsts: the offset in each interval, in seconds.
        ends: the end of each interval's other offsets in `more`.
        more: the other offsets of all intervals, in seconds.
        base: the instant of 2015-01-01 00:00.
        cycle: the second from which on offsets repeat every 400 years.
        exact: all readers agree about every timestamp.

    The byte strings contain int64s in native byte order.
    """

    cdef Zone zone
    cdef object kept
    cdef readonly int readings
    """The maximum number of readings of a timestamp: those of two intervals, with both signs."""

    def __init__(self, bytes starts not None, bytes firsts not None, bytes ends not None, bytes more not None,
                 int64_t base, int64_t cycle, bint exact):
        cdef Py_ssize_t size = len(starts) // 8, i
        cdef int64_t before = 0, end
        if size < 1 or len(firsts) != size * 8 or len(ends) != size * 8:
            raise ValueError("the numbers of offsets and starts differ")
        self.kept = (starts, firsts, ends, more)
        self.zone.starts = starts
        self.zone.firsts = firsts
        self.zone.ends = ends
        self.zone.more = more
        self.zone.size = size
        self.zone.base = base
        self.zone.cycle = cycle
        self.zone.exact = exact
        if <int64_t>_load64(self.zone.starts) != (-9223372036854775807 - 1):
            raise ValueError("the first interval has to start at the smallest int64")
        for i in range(size):
            end = <int64_t>_load64(self.zone.ends + i * 8)
            if end < before or end - before >= 16 or end > len(more) // 8:
                raise ValueError("the ends don't match the other offsets")
            self.readings = max(self.readings, 4 * (end - before + 1))
            before = end

    def wall(self, int64_t seconds, int64_t nanos):
        """Return nanoseconds since 1970 in local time, for a value of each of the two streams."""
        cdef Moment m = _moment(<uint64_t>seconds, <uint64_t>nanos, self.zone.base)
        if m.bad:
            raise RunError("more nanoseconds than a second has")
        cdef Py_ssize_t at = _interval(&self.zone, m.second)
        cdef object millis = <int64_t>(m.millis + _load64(self.zone.firsts + at * 8) * 1000)
        return millis * 1000000 + m.nanos - <int64_t>m.part * 1000000


cdef inline bint _equal_moments(const unsigned char* seconds, const unsigned char* nanos, Py_ssize_t i) noexcept nogil:
    """Return whether a value equals the previous one."""
    return (_load64(seconds + i * 8) == _load64(seconds + i * 8 - 8)
            and _load64(nanos + i * 8) == _load64(nanos + i * 8 - 8))


def orc_hash_moments(const unsigned char[::1] seconds not None, const unsigned char[::1] nanos not None,
                     Py_ssize_t count, WriterZone zone not None, unsigned char[::1] out not None, bint every):
    """Compute ORC's hash of timestamps: of the milliseconds in the writer's local time, rounded down.

    Equal neighbours are hashed once. Returns the number of values that some reader may read differently, in which
    equal neighbours count once, unless `every` is true.
    """
    if count < 0 or seconds.shape[0] // 8 < count or nanos.shape[0] // 8 < count or out.shape[0] // 8 < count:
        raise ValueError("fewer values than requested, or no room for the hashes")
    if count == 0:
        return 0
    cdef Zone* z = &zone.zone
    cdef const unsigned char* ss = &seconds[0]
    cdef const unsigned char* ns = &nanos[0]
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i, at = 0, others = 0
    cdef int64_t second, low = 1, high = 0, edge
    cdef uint64_t h = 0, offset = 0
    cdef bint bad = False, more = False, other = False
    cdef Moment m
    with nogil:
        for i in range(count):
            if i and _equal_moments(ss, ns, i):
                memcpy(o + i * 8, &h, 8)
                others += other and every
                continue
            m = _moment(_load64(ss + i * 8), _load64(ns + i * 8), z.base)
            bad = bad or m.bad
            second = m.second
            if not low <= second < high:
                at = _interval(z, second)
                offset = _load64(z.firsts + at * 8)
                more = _other_from(z, at) < <int64_t>_load64(z.ends + at * 8)
                low, high = 1, 0
                if second < z.cycle:  # the next values are usually in the same interval
                    low = <int64_t>_load64(z.starts + at * 8)
                    high = <int64_t>_load64(z.starts + (at + 1) * 8) if at + 1 < z.size else z.cycle
                    high = min(high, z.cycle)
            h = _wang(m.millis + offset * 1000)
            memcpy(o + i * 8, &h, 8)
            if not z.exact:
                edge = <int64_t>m.seconds
                other = more or (m.fraction and (m.negative != (<int64_t>(m.seconds + offset) < 0)
                                                 or (edge != second and edge == high)))
                others += other
    if bad:
        raise RunError("more nanoseconds than a second has")
    return others


def orc_other_moments(const unsigned char[::1] seconds not None, const unsigned char[::1] nanos not None,
                      Py_ssize_t count, WriterZone zone not None, unsigned char[::1] owners not None,
                      unsigned char[::1] out not None, bint every):
    """Compute the hashes of the other timestamps that readers may read, and the index of each one's value.

    Equal neighbours are processed once, unless `every` is true. `out` and `owners` have room for the zone's
    `readings` of each value that `orc_hash_moments` counted. Returns the number of hashes.
    """
    if count < 0 or seconds.shape[0] // 8 < count or nanos.shape[0] // 8 < count:
        raise ValueError("fewer values than requested")
    if count == 0:
        return 0
    cdef Zone* z = &zone.zone
    cdef const unsigned char* ss = &seconds[0]
    cdef const unsigned char* ns = &nanos[0]
    cdef Py_ssize_t i, at, edge, n = 0, room = min(owners.shape[0], out.shape[0]) // 8
    cdef int k, found
    cdef uint64_t[64] readings
    cdef uint64_t h, main, owner
    cdef bint full = False
    cdef Moment m
    with nogil:
        for i in range(count):
            if i and not every and _equal_moments(ss, ns, i):
                continue
            m = _moment(_load64(ss + i * 8), _load64(ns + i * 8), z.base)
            at = _interval(z, m.second)
            main = m.millis + _load64(z.firsts + at * 8) * 1000
            found = _add_interval(readings, 0, z, at, &m, main)
            edge = _interval(z, <int64_t>m.seconds)
            if edge != at:
                found = _add_interval(readings, found, z, edge, &m, main)
            if n + found > room:
                full = True
                break
            owner = <uint64_t>i
            for k in range(found):
                h = _wang(readings[k])
                memcpy(&out[n * 8], &h, 8)
                memcpy(&owners[n * 8], &owner, 8)
                n += 1
    if full:
        raise ValueError("no room for the hashes")
    return n


def orc_moments(const unsigned char[::1] seconds not None, const unsigned char[::1] nanos not None, Py_ssize_t count,
                WriterZone zone not None, unsigned char[::1] out not None):
    """Decode timestamps to 12 bytes each: the milliseconds that `orc_hash_moments` hashes, an int64, and the
    nanoseconds above them, an int32 of 0 to 999,999."""
    if count < 0 or seconds.shape[0] // 8 < count or nanos.shape[0] // 8 < count or out.shape[0] // 12 < count:
        raise ValueError("fewer values than requested, or no room for the timestamps")
    if count == 0:
        return
    cdef Zone* z = &zone.zone
    cdef unsigned char* o = &out[0]
    cdef Py_ssize_t i
    cdef uint64_t millis
    cdef int32_t rest
    cdef bint bad = False
    cdef Moment m
    with nogil:
        for i in range(count):
            m = _moment(_load64(&seconds[i * 8]), _load64(&nanos[i * 8]), z.base)
            bad = bad or m.bad
            millis = m.millis + _load64(z.firsts + _interval(z, m.second) * 8) * 1000
            rest = <int32_t>(m.nanos - <int64_t>m.part * 1000000)
            memcpy(o + i * 12, &millis, 8)
            memcpy(o + i * 12 + 8, &rest, 4)
    if bad:
        raise RunError("more nanoseconds than a second has")
