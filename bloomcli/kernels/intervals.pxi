# DuckDB's second hash of an interval. Parquet's INTERVAL has 12 bytes: months, days and milliseconds, each uint32.
# DuckDB compares intervals by a normal form, in which a day has 24 hours and a month 30 days, and looks up the normal
# form in files whose footer declares it. Source: DuckDB, interval.hpp, Normalize and Borrow; parquet_interval.hpp,
# Encode.


cdef enum:
    DAY_MILLIS = 86400000
    MONTH_DAYS = 30
    MOST_MONTHS = 0x7FFFFFFF


cdef bint _normal_interval(int64_t months, int64_t days, int64_t millis, unsigned char* out) noexcept nogil:
    """Compute the 12 bytes of an interval's normal form. Return false if DuckDB's INTERVAL can't represent it."""
    cdef int64_t carry
    cdef uint32_t[3] words
    days += millis // DAY_MILLIS  # never negative, so C rounds down
    millis = millis % DAY_MILLIS
    carry = days // MONTH_DAYS
    days = days % MONTH_DAYS
    if days < 0:
        carry -= 1
        days += MONTH_DAYS
    months += carry
    if months != <int32_t>months:
        if months < 0:
            return False
        days += (months - MOST_MONTHS) * MONTH_DAYS  # months beyond 32 bits stay in the days
        months = MOST_MONTHS
        if days != <uint32_t>days:
            return False
    words[0] = <uint32_t><int32_t>months
    words[1] = <uint32_t>days
    words[2] = <uint32_t>millis
    memcpy(out, words, 12)
    return True


def hash_normal_intervals(const unsigned char[::1] values not None, Py_ssize_t count, unsigned char[::1] out not None):
    """Compute the XXH64 of the normal forms of `count` intervals of 12 bytes, which DuckDB looks up.

    DuckDB's writer reads days as unsigned, its reader as signed; if that makes a difference, an interval has two
    hashes. Both read months as signed. Writes uint64s in native byte order to `out` (up to 16 bytes per value) and
    returns their number.
    """
    if count < 0 or values.shape[0] // 12 < count or out.shape[0] // 16 < count:
        raise ValueError("fewer intervals than requested, or no room for the hashes")
    if count == 0:
        return 0
    cdef const unsigned char* p = &values[0]
    cdef unsigned char* o = &out[0]
    cdef unsigned char[12] normal
    cdef uint32_t months, days, millis
    cdef uint64_t h
    cdef Py_ssize_t i, n = 0
    with nogil:
        for i in range(count):
            months = _load32(p + i * 12)
            days = _load32(p + i * 12 + 4)
            millis = _load32(p + i * 12 + 8)
            if _normal_interval(<int32_t>months, <int32_t>days, millis, normal):
                h = _xxh64(normal, 12)
                memcpy(o + n * 8, &h, 8)
                n += 1
            if days >> 31 and _normal_interval(<int32_t>months, days, millis, normal):
                h = _xxh64(normal, 12)
                memcpy(o + n * 8, &h, 8)
                n += 1
    return n
