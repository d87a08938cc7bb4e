# Reads what filters are examined for: the figures of their bits, and which bounds they must contain. A filter's
# header is "usual" here if it is encoded as by all writers; others are left to the functions that report faults.
#
# Sources: BloomFilterHeader and Statistics of the Parquet format's parquet.thrift; BloomFilter.md.

from libc.math cimport log1p

cdef enum:
    BOUNDS_NEVER = 0       # which bounds are certainly values of the chunk, bit for bit: none
    BOUNDS_IF_EXACT = 1    # those that the statistics mark as exact
    BOUNDS_OF_WIDTH = 2    # those of the type's width, unless the statistics mark them as inexact
    BOUNDS_FLOAT = 3       # the same, without zeros, which have two forms, and without NaN
    BOUNDS_DOUBLE = 4

cdef const char* HEADER_REST = b"\x1c\x1c\x00\x00" * 3 + b"\x00"


cdef bint _is_certain(const unsigned char* bound, Py_ssize_t size, int exact, int kind, int width) noexcept nogil:
    """Return whether a bound is certainly a value of the chunk, bit for bit. `exact`: a type code, or 0."""
    cdef uint64_t bits
    if kind == BOUNDS_NEVER or exact == CT_FALSE:
        return False
    if kind == BOUNDS_IF_EXACT:
        return exact == CT_TRUE
    if size != width:
        return False
    if kind == BOUNDS_FLOAT:
        bits = _load32(bound) & 0x7FFFFFFF
        return not (bits == 0 or bits > 0x7F800000)
    if kind == BOUNDS_DOUBLE:
        bits = _load64(bound) & 0x7FFFFFFFFFFFFFFFULL
        return not (bits == 0 or bits > 0x7FF0000000000000ULL)
    return True


def is_certain(bytes bound not None, exact, int kind, int width):
    """Return whether a bound is certainly a value of its chunk, bit for bit.

    Args:
        bound: its PLAIN bytes.
        exact: whether it is a value, according to the statistics; None if they don't say.
        kind: which bounds of the column are values (`BOUNDS_NEVER` to `BOUNDS_DOUBLE`).
        width: the size of the column's values in bytes, if they have one size.
    """
    cdef int code = 0 if exact is None else CT_TRUE if exact else CT_FALSE
    return bool(_is_certain(<const unsigned char*>PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound), code, kind, width))


cdef bint _usual_header(const unsigned char* p, Py_ssize_t size, Py_ssize_t* header, int64_t* nbytes) noexcept nogil:
    """Read a filter's header; False if it isn't usual, or not complete within `size` bytes."""
    cdef uint64_t raw = 0
    cdef Py_ssize_t pos = 1
    cdef int i
    if size < 18 or p[0] != 0x15:
        return False
    for i in range(4):
        raw |= <uint64_t>(p[pos] & 0x7F) << 7 * i
        pos += 1
        if p[pos - 1] < 0x80:
            break
    else:
        return False
    if size - pos < 13 or memcmp(p + pos, HEADER_REST, 13) != 0:
        return False
    header[0] = pos + 13
    nbytes[0] = <int64_t>(raw >> 1)
    return not (raw & 1 or nbytes[0] == 0 or nbytes[0] % 32)


cdef bint _lacks(const unsigned char* bits, uint64_t z, list bounds):
    """Return whether a filter doesn't contain one of the bounds."""
    cdef bytes bound
    cdef uint64_t h
    for bound in bounds:
        h = _xxh64(<const unsigned char*>PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound))
        if not bloom_has(bits + 32 * _block(h, z), h):
            return True
    return False


def sbbf_examine(bytes data not None, list bounds not None):
    """Return the figures of a filter, or None if its header isn't usual or the bytes after it aren't its bitset.

    (header bytes, bitset bytes, figures, whether the filter doesn't contain one of `bounds`). The last item is false for
    a filter without set bits. The figures equal those of `sbbf_stats` and filters/sizing.py: estimated distinct values
    or None if every bit is set, share of set bits, false-positive probability, bits per distinct value or None.
    """
    cdef Py_ssize_t header = 0, size = PyBytes_GET_SIZE(data)
    cdef int64_t nbytes = 0
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef uint64_t total = 0, bits
    cdef double hits, estimate
    cdef object ndv = None, per_value = None
    if not _usual_header(p, size, &header, &nbytes) or header + nbytes != size:
        return None
    p += header
    with nogil:
        hits = bloom_hits(p, nbytes // 32, &total)
    bits = <uint64_t>nbytes * 8
    if total == 0:
        ndv = 0.0
    elif total < bits:
        estimate = log1p(-(<double>total) / <double>bits) / log1p(-1.0 / <double>(bits // 8))
        ndv = estimate
        per_value = <double>bits / estimate
    return (
        header,
        nbytes,
        (ndv, <double>total / <double>bits, hits / (<double>(1ULL << 40)) / (nbytes // 32), per_value),
        total > 0 and _lacks(p, nbytes // 32, bounds),
    )
