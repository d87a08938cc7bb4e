# Reads the metadata of a Parquet column chunk that `inspect` sums up, in one walk and without an object per field.
#
# Source: ColumnChunk, ColumnMetaData and Statistics of the Parquet format's parquet.thrift. The walk is that of
# compact_struct: it rejects the same bytes. An integer of another type than the IDL's is missing, as for other
# readers.

cdef enum:
    CHUNK_FIELDS = 16      # ids below this are recorded


cdef struct RecordedFields:
    int kind[CHUNK_FIELDS]            # 0: missing
    Py_ssize_t start[CHUNK_FIELDS]    # of the value
    Py_ssize_t end                    # of the struct; set by _in_order


cdef bint _recorded(Walk* w, Py_ssize_t pos, int max_depth, RecordedFields* found) noexcept nogil:
    """Walk the struct at `pos` and record where its fields are; False with the fault set."""
    cdef int kind, field_id = 0
    cdef Py_ssize_t value
    memset(found, 0, sizeof(RecordedFields))
    while True:
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0:
            return False
        if kind == 0:
            return True
        value = pos
        pos = _skip(w, pos, kind, max_depth - 1, False)
        if pos < 0:
            return False
        if 0 <= field_id < CHUNK_FIELDS:
            found.kind[field_id] = kind
            found.start[field_id] = value


cdef object _recorded_int(Walk* w, RecordedFields* found, int field_id, int kind):
    cdef uint64_t raw = 0
    if found.kind[field_id] != kind or _varint(w, found.start[field_id], &raw) < 0:
        return None
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef object _recorded_bytes(Walk* w, RecordedFields* found, int field_id):
    cdef uint64_t size = 0
    cdef Py_ssize_t pos
    if found.kind[field_id] != CT_BINARY:
        return None
    pos = _varint(w, found.start[field_id], &size)
    return None if pos < 0 else (<const char*>w.data)[pos:pos + <Py_ssize_t>size]


cdef uint64_t _recorded_set(Walk* w, RecordedFields* found, int field_id) noexcept nogil:
    """The integers of a list as bits; bit 63 for those that aren't 0 to 62."""
    cdef int kind = 0
    cdef uint64_t size = 0, raw = 0, i, bits = 0
    cdef Py_ssize_t pos
    if found.kind[field_id] != CT_LIST:
        return 0
    pos = _list_head(w, found.start[field_id], &kind, &size)
    if pos < 0 or kind != CT_I32:
        return 0
    for i in range(size):
        pos = _varint(w, pos, &raw)
        if pos < 0:
            break
        bits |= <uint64_t>1 << (raw >> 1 if not raw & 1 and raw >> 1 < 63 else 63)
    return bits


def chunk_facts(bytes data not None, Py_ssize_t start, int max_depth, bint ordered, bint deprecated):
    """Return the facts of the ColumnChunk at `start`, or None if it has no plain metadata (it is encrypted).

    (values, uncompressed bytes, compressed bytes, codec, encodings as bits, data page offset, dictionary page offset,
    filter offset, nulls, distinct values, minimum, maximum, whether the minimum and the maximum are exact). A fact
    that is missing is None, encodings are then 0. The bounds are min_value and max_value if `ordered`; if there are
    none and `deprecated` is true, min and max.

    Raises:
        CompactError: as in `compact_struct`.
    """
    cdef Walk w
    cdef RecordedFields chunk, meta, stats
    cdef object low = None, high = None, exact_low = None, exact_high = None, nulls = None, distinct = None
    w.data = <const unsigned char*>PyBytes_AS_STRING(data)
    w.end = PyBytes_GET_SIZE(data)
    w.fault = 0
    w.at = 0
    if start < 0 or start > w.end:
        raise CompactError(_WALK_REASONS[WALK_TRUNCATED], start)
    if not _recorded(&w, start, max_depth, &chunk):
        _walk_raise(&w)
    if chunk.kind[3] != CT_STRUCT:
        return None
    if not _recorded(&w, chunk.start[3], max_depth - 1, &meta):
        _walk_raise(&w)
    if meta.kind[12] == CT_STRUCT:
        if not _recorded(&w, meta.start[12], max_depth - 2, &stats):
            _walk_raise(&w)
        nulls = _recorded_int(&w, &stats, 3, CT_I64)
        distinct = _recorded_int(&w, &stats, 4, CT_I64)
        if ordered:
            low, high = _recorded_bytes(&w, &stats, 6), _recorded_bytes(&w, &stats, 5)
            if stats.kind[8] == CT_TRUE or stats.kind[8] == CT_FALSE:
                exact_low = stats.kind[8] == CT_TRUE
            if stats.kind[7] == CT_TRUE or stats.kind[7] == CT_FALSE:
                exact_high = stats.kind[7] == CT_TRUE
        if deprecated and low is None and high is None:
            low, high = _recorded_bytes(&w, &stats, 2), _recorded_bytes(&w, &stats, 1)
    return (
        _recorded_int(&w, &meta, 5, CT_I64),
        _recorded_int(&w, &meta, 6, CT_I64),
        _recorded_int(&w, &meta, 7, CT_I64),
        _recorded_int(&w, &meta, 4, CT_I32),
        _recorded_set(&w, &meta, 2),
        _recorded_int(&w, &meta, 9, CT_I64),
        _recorded_int(&w, &meta, 11, CT_I64),
        _recorded_int(&w, &meta, 14, CT_I64),
        nulls,
        distinct,
        low,
        high,
        exact_low,
        exact_high,
    )
