# Examines the filters of a row group: the facts of each chunk in the footer, and the figures of each filter's bits.
# `inspect` examines very many filters. A chunk or filter is "usual" here if it is undamaged and encoded as writers
# usually do. Others are left to the functions that examine one filter and report its faults.
#
# Sources: ColumnChunk, ColumnMetaData, Statistics, PageEncodingStats and BloomFilterHeader of the Parquet format's
# parquet.thrift; BloomFilter.md.

from libc.math cimport log1p

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object obj, object name, object value) except -1

cdef enum:
    COLUMN_ITEMS = 4       # numbers of a column: its physical type, its flags, its kind of bounds, their size
    REQUIRED = 1           # flags
    ORDERED = 2
    DEPRECATED = 4
    BOUNDS_NEVER = 0       # which bounds are certainly values of the chunk, bit for bit: none
    BOUNDS_IF_EXACT = 1    # those that the statistics mark as exact
    BOUNDS_OF_WIDTH = 2    # those of the type's width, unless the statistics mark them as inexact
    BOUNDS_FLOAT = 3       # the same, without zeros, which have two forms, and without NaN
    BOUNDS_DOUBLE = 4
    CODEC_LAST = 7
    FIRST_DATA = 4         # after the magic bytes
    STATS_PAGE = 0
    STATS_PAGE_V2 = 3
    STATS_PLAIN_DICTIONARY = 2
    STATS_RLE_DICTIONARY = 8

cdef const char* HEADER_REST = b"\x1c\x1c\x00\x00" * 3 + b"\x00"


cdef bint _in_order(Walk* w, Py_ssize_t pos, int max_depth, RecordedFields* found) noexcept nogil:
    """Do what `_recorded` does, and also return False if field ids don't ascend, as they do in files of all
    writers."""
    cdef int kind, field_id = 0, before = 0
    cdef Py_ssize_t value
    memset(found, 0, sizeof(RecordedFields))
    while True:
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0:
            return False
        if kind == 0:
            found.end = pos
            return True
        if field_id <= before:
            return False
        before = field_id
        value = pos
        pos = _skip(w, pos, kind, max_depth - 1, False)
        if pos < 0:
            return False
        if field_id < CHUNK_FIELDS:
            found.kind[field_id] = kind
            found.start[field_id] = value


cdef bint _number(Walk* w, RecordedFields* found, int field_id, int kind, int64_t* value) noexcept nogil:
    """Read an integer field; False if it is missing or of another type."""
    cdef uint64_t raw = 0
    if found.kind[field_id] != kind or _varint(w, found.start[field_id], &raw) < 0:
        return False
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return True


cdef bint _index_inside(Walk* w, RecordedFields* chunk, int offset_id, int length_id, int64_t data_end) noexcept nogil:
    """Return whether a page index lies within the file's data, or doesn't exist."""
    cdef int64_t offset, length
    if not _number(w, chunk, offset_id, CT_I64, &offset) or not _number(w, chunk, length_id, CT_I32, &length):
        return True
    if offset == 0 or length == 0:
        return True
    return FIRST_DATA <= offset <= data_end and 0 < length <= data_end - offset


cdef bint _encodings(Walk* w, RecordedFields* meta, int max_depth, bint* only_dictionary) noexcept nogil:
    """Read whether every data page is dictionary-encoded, from the encoding statistics. False if a field is
    missing."""
    cdef RecordedFields stats
    cdef int kind = 0
    cdef uint64_t size = 0, i
    cdef int64_t page, encoding, count
    cdef bint some = False, others = False
    cdef Py_ssize_t pos
    only_dictionary[0] = False
    if meta.kind[13] == 0:
        return True
    if meta.kind[13] != CT_LIST:
        return False
    pos = _list_head(w, meta.start[13], &kind, &size)
    if pos < 0 or (size and kind != CT_STRUCT):
        return False
    for i in range(size):
        if not (
            _in_order(w, pos, max_depth, &stats)
            and _number(w, &stats, 1, CT_I32, &page) and page >= 0
            and _number(w, &stats, 2, CT_I32, &encoding) and encoding >= 0
            and _number(w, &stats, 3, CT_I32, &count) and count >= -(<int64_t>1 << 31)
        ):
            return False
        if count > 0 and (page == STATS_PAGE or page == STATS_PAGE_V2):
            some = True
            others = others or not (encoding == STATS_PLAIN_DICTIONARY or encoding == STATS_RLE_DICTIONARY)
        pos = _skip(w, pos, CT_STRUCT, max_depth, True)
        if pos < 0:
            return False
    only_dictionary[0] = some and not others
    return True


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


cdef object _certain(object bound, int exact, int kind, int width):
    """Return a bound that is certainly a value of the chunk; None for others."""
    if bound is None:
        return None
    certain = _is_certain(<const unsigned char*>PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound), exact, kind, width)
    return bound if certain else None


cdef struct UsualChunk:
    RecordedFields meta
    RecordedFields stats
    int64_t codec, values, unpacked, packed, page
    bint only_dictionary
    bint indexed           # the chunk has a column index
    Py_ssize_t end         # of the ColumnChunk


cdef bint _usual(Walk* w, Py_ssize_t start, int max_depth, const int* column, int64_t data_end,
                 UsualChunk* found) noexcept nogil:
    """Read a ColumnChunk; False if it isn't usual."""
    cdef RecordedFields chunk
    cdef int64_t kind
    if start < 0 or start > w.end or not _in_order(w, start, max_depth, &chunk):
        return False
    found.end, found.indexed = chunk.end, chunk.kind[6] != 0
    if chunk.kind[3] != CT_STRUCT or chunk.kind[1] or chunk.kind[8]:
        return False
    if not _in_order(w, chunk.start[3], max_depth, &found.meta):
        return False
    if not (_index_inside(w, &chunk, 4, 5, data_end) and _index_inside(w, &chunk, 6, 7, data_end)):
        return False
    if not (
        _number(w, &found.meta, 1, CT_I32, &kind) and kind == column[0]
        and _number(w, &found.meta, 4, CT_I32, &found.codec) and 0 <= found.codec <= CODEC_LAST
        and _number(w, &found.meta, 5, CT_I64, &found.values) and found.values >= 0
        and _number(w, &found.meta, 6, CT_I64, &found.unpacked) and found.unpacked >= 0
        and _number(w, &found.meta, 7, CT_I64, &found.packed) and found.packed >= 0
        and _number(w, &found.meta, 9, CT_I64, &found.page)
        and _encodings(w, &found.meta, max_depth, &found.only_dictionary)
    ):
        return False
    if found.meta.kind[12] == 0:
        memset(&found.stats, 0, sizeof(RecordedFields))
        return True
    return found.meta.kind[12] == CT_STRUCT and _in_order(w, found.meta.start[12], max_depth, &found.stats)


cdef tuple _bounds(Walk* w, UsualChunk* found, int flags):
    """Return the bounds that can be trusted."""
    cdef object low = None, high = None
    if flags & ORDERED:
        low, high = _recorded_bytes(w, &found.stats, 6), _recorded_bytes(w, &found.stats, 5)
    if flags & DEPRECATED and low is None and high is None:
        low, high = _recorded_bytes(w, &found.stats, 2), _recorded_bytes(w, &found.stats, 1)
    return low, high


cdef int _truth(UsualChunk* found, int field_id) noexcept nogil:
    """Return the type code of a boolean of the statistics; 0 if it is missing."""
    cdef int kind = found.stats.kind[field_id]
    return kind if kind == CT_TRUE or kind == CT_FALSE else 0


cdef object _claim(Walk* w, Py_ssize_t start, int max_depth, const int* column, int64_t data_end):
    """Return the item of `filter_claims` for one chunk."""
    cdef UsualChunk found
    cdef int64_t offset = 0, length = -1, nulls = 0
    cdef object low, high
    if not _usual(w, start, max_depth, column, data_end, &found):
        return None
    if not _number(w, &found.meta, 14, CT_I64, &offset) or offset <= 0:
        return False
    if not FIRST_DATA <= offset < data_end:
        return None
    if found.meta.kind[15]:
        if not _number(w, &found.meta, 15, CT_I32, &length) or not 0 < length <= data_end - offset:
            return None
    if not column[1] & REQUIRED and not _number(w, &found.stats, 3, CT_I64, &nulls):
        nulls = 0
    low, high = _bounds(w, &found, column[1])
    if nulls < 0 or nulls > found.values or (nulls and nulls == found.values and (low is not None or high is not None)):
        return None  # like `in_counts` of contradictions.py
    return (
        offset,
        length,
        max(found.values - nulls, 0),
        _certain(low, _truth(&found, 8), column[2], column[3]),
        _certain(high, _truth(&found, 7), column[2], column[3]),
    )


cdef object _or_none(Walk* w, RecordedFields* found, int field_id, int kind):
    cdef int64_t value
    return value if _number(w, found, field_id, kind, &value) else None


def usual_chunk(bytes data not None, Py_ssize_t start, int max_depth, const int[::1] column not None,
                int64_t data_end):
    """Return the facts of the ColumnChunk at `start`, or None if it isn't usual.

    (values, nulls, compressed bytes, uncompressed bytes, codec, data page offset, dictionary page offset, filter
    offset, filter bytes, minimum, maximum, whether the minimum and the maximum are exact, whether every data page is
    dictionary-encoded, whether it has encoding statistics). A missing fact is None.

    Args:
        data: the footer.
        start: the position in the footer.
        max_depth: the maximum nesting of structs and lists.
        column: the four numbers of the column, as for `filter_claims`.
        data_end: the end of the file's data.
    """
    cdef Walk w
    cdef UsualChunk found
    cdef object low, high
    cdef int low_exact, high_exact
    if column.shape[0] < COLUMN_ITEMS:
        raise ValueError("four numbers a column")
    w.data = <const unsigned char*>PyBytes_AS_STRING(data)
    w.end = PyBytes_GET_SIZE(data)
    w.fault = 0
    w.at = 0
    if not _usual(&w, start, max_depth, &column[0], data_end, &found):
        return None
    low, high = _bounds(&w, &found, column[1])
    low_exact, high_exact = _truth(&found, 8), _truth(&found, 7)
    return (
        found.values,
        0 if column[1] & REQUIRED else _or_none(&w, &found.stats, 3, CT_I64),
        found.packed,
        found.unpacked,
        found.codec,
        found.page,
        _or_none(&w, &found.meta, 11, CT_I64),
        _or_none(&w, &found.meta, 14, CT_I64),
        _or_none(&w, &found.meta, 15, CT_I32),
        low,
        high,
        low_exact == CT_TRUE if low_exact else None,
        high_exact == CT_TRUE if high_exact else None,
        bool(found.only_dictionary),
        found.meta.kind[13] != 0,
    )


def filter_claims(bytes data not None, starts, int max_depth, const int[::1] columns not None, int64_t data_end):
    """Return one item for each ColumnChunk at `starts`, about its filter.

    False: it has no filter. (offset, bytes or -1 if they aren't written, non-null values, minimum, maximum): it has a
    filter; a bound is None unless it is certainly a value of the chunk. None: the chunk isn't usual.

    Args:
        data: the footer.
        starts: one position for each column.
        max_depth: the maximum nesting of structs and lists.
        columns: four numbers for each column: its physical type; 1 if it is required + 2 if min_value and max_value
            can be trusted + 4 if min and max can be; its kind of bounds; their size.
        data_end: the end of the file's data.
    """
    cdef Walk w
    cdef Py_ssize_t i, count = len(starts)
    cdef list found = []
    if columns.shape[0] < count * COLUMN_ITEMS:
        raise ValueError("fewer columns than chunks")
    w.data = <const unsigned char*>PyBytes_AS_STRING(data)
    w.end = PyBytes_GET_SIZE(data)
    w.fault = 0
    w.at = 0
    for i in range(count):
        found.append(_claim(&w, starts[i], max_depth, &columns[i * COLUMN_ITEMS], data_end))
    return found


cdef bint _lacks(const unsigned char* bits, uint64_t z, object bound):
    """Return whether a filter doesn't contain a bound. None stands for no bound."""
    cdef uint64_t h
    cdef uint32_t[8] words
    cdef uint32_t hit = 1
    cdef int j
    if bound is None:
        return False
    h = _xxh64(<const unsigned char*>PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound))
    memcpy(words, bits + 32 * _block(h, z), 32)
    for j in range(8):
        hit &= words[j] >> ((<uint32_t>h * SALT[j]) >> 27)
    return not hit & 1


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


def sbbf_examine(bytes data not None, Py_ssize_t at, Py_ssize_t size, low, high):
    """Return the figures of a filter that takes `size` bytes from `at` on, or None if its header isn't usual.

    (header bytes, bitset bytes, estimated distinct values or None if every bit is set, share of set bits,
    false-positive probability, bits per distinct value or None, whether the filter doesn't contain one of the
    bounds). They equal those of `sbbf_stats` and filters/sizing.py. The last item is false for a filter without set
    bits.
    """
    cdef Py_ssize_t pos = 0
    cdef int64_t nbytes = 0
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef uint64_t total = 0, bits
    cdef double hits, estimate
    cdef object ndv = None, per_value = None
    if at < 0 or size < 0 or at > PyBytes_GET_SIZE(data) - size:
        return None
    if not _usual_header(p + at, size, &pos, &nbytes) or pos + nbytes != size:
        return None
    pos += at
    with nogil:
        hits = bloom_hits(p + pos, nbytes // 32, &total)
    bits = <uint64_t>nbytes * 8
    if total == 0:
        ndv = 0.0
    elif total < bits:
        estimate = log1p(-(<double>total) / <double>bits) / log1p(-1.0 / <double>(bits // 8))
        ndv = estimate
        per_value = <double>bits / estimate
    return (
        pos - at,
        nbytes,
        ndv,
        <double>total / <double>bits,
        hits / (<double>(1ULL << 40)) / (nbytes // 32),
        per_value,
        total > 0 and (_lacks(p + pos, nbytes // 32, low) or _lacks(p + pos, nbytes // 32, high)),
    )


def frozen(kind, tuple names not None, tuple values not None):
    """Return an instance of a frozen dataclass with slots, without its __init__, which makes a call for each
    field."""
    cdef object made = kind.__new__(kind)
    cdef Py_ssize_t i
    if len(names) != len(values):
        raise ValueError("a value for each name")
    for i in range(len(names)):
        PyObject_GenericSetAttr(made, names[i], values[i])
    return made
