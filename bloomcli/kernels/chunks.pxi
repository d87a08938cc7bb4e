# Finds the column chunks of a Parquet footer whose metadata needs a full check.
#
# A footer may have tens of thousands of chunks. Before filters are added to the file, all of them are checked: their
# metadata must be readable, and their locations must be before the footer. This module decodes only the integers for
# that. It doesn't report errors: the caller checks the chunks that it returns in full.
#
# Field ids are those of parquet.thrift.

cdef enum:
    CHUNK_FILE_PATH = 1
    CHUNK_META_DATA = 3
    CHUNK_OFFSET_INDEX_OFFSET = 4
    CHUNK_COLUMN_INDEX_LENGTH = 7
    CHUNK_CRYPTO_METADATA = 8

cdef enum:
    META_TYPE = 1
    META_CODEC = 4
    META_NUM_VALUES = 5
    META_UNCOMPRESSED = 6
    META_COMPRESSED = 7
    META_DATA_PAGE = 9
    META_DICTIONARY_PAGE = 11
    META_STATISTICS = 12
    META_ENCODING_STATS = 13
    META_FILTER_OFFSET = 14
    META_FILTER_LENGTH = 15
    META_INTEGERS = 16

cdef enum:
    STATS_PAGE_TYPE = 1
    STATS_ENCODING = 2
    STATS_COUNT = 3


cdef inline int64_t _thrift_signed(uint64_t raw) noexcept nogil:
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef inline bint _new_field(int field, uint64_t* seen) noexcept nogil:
    """Record a field id in `seen`. Return whether it is the first with its id, and an id that `seen` has a bit
    for."""
    if field < 1 or field > 63 or (seen[0] >> field) & 1:
        return False
    seen[0] |= <uint64_t>1 << field
    return True


cdef int _meta_kind(int field) noexcept nogil:
    """Return the expected type of an integer field that is decoded; 0 for other fields."""
    if field == META_TYPE or field == META_CODEC or field == META_FILTER_LENGTH:
        return CT_I32
    if (META_NUM_VALUES <= field <= META_COMPRESSED or field == META_DATA_PAGE or field == META_DICTIONARY_PAGE
            or field == META_FILTER_OFFSET):
        return CT_I64
    return 0


cdef bint _plain_struct(Walk* w, Py_ssize_t pos, int depth) noexcept nogil:
    """Return whether the struct at `pos` can be walked and has no field id twice."""
    cdef int kind, field = 0
    cdef uint64_t seen = 0
    while True:
        pos = _field_head(w, pos, &kind, &field)
        if pos < 0:
            return False
        if kind == 0:
            return True
        if not _new_field(field, &seen):
            return False
        pos = _skip(w, pos, kind, depth - 1, False)
        if pos < 0:
            return False


cdef Py_ssize_t _plain_page_stats(Walk* w, Py_ssize_t pos, int depth) noexcept nogil:
    """Return the end of a PageEncodingStats; -1 if it needs a full check."""
    cdef int kind, field = 0
    cdef uint64_t seen = 0, raw
    while True:
        pos = _field_head(w, pos, &kind, &field)
        if pos < 0:
            return -1
        if kind == 0:
            break
        if not _new_field(field, &seen):
            return -1
        if STATS_PAGE_TYPE <= field <= STATS_COUNT:
            if kind != CT_I32:
                return -1
            pos = _varint(w, pos, &raw)
            if pos < 0 or _thrift_signed(raw) < 0:
                return -1
        else:
            pos = _skip(w, pos, kind, depth - 1, False)
            if pos < 0:
                return -1
    return pos if (seen & 0b1110) == 0b1110 else -1


cdef bint _plain_stats_list(Walk* w, Py_ssize_t pos, int depth) noexcept nogil:
    cdef int kind
    cdef uint64_t size, i
    pos = _list_head(w, pos, &kind, &size)
    if pos < 0 or (size and kind != CT_STRUCT):
        return False
    for i in range(size):
        pos = _plain_page_stats(w, pos, depth - 1)
        if pos < 0:
            return False
    return True


cdef Py_ssize_t _plain_meta(
    Walk* w, Py_ssize_t pos, int physical, int64_t data_end, int depth, int64_t* unsized
) noexcept nogil:
    """Return the end of a ColumnMetaData; -1 if it needs a full check."""
    cdef int kind, wanted, field = 0
    cdef uint64_t seen = 0, raw
    cdef int64_t number[META_INTEGERS]
    cdef int64_t start, size
    cdef Py_ssize_t statistics = 0, stats = 0
    for field in range(META_INTEGERS):
        number[field] = 0
    field = 0
    while True:
        pos = _field_head(w, pos, &kind, &field)
        if pos < 0:
            return -1
        if kind == 0:
            break
        if not _new_field(field, &seen):
            return -1
        wanted = _meta_kind(field)
        if wanted:
            if kind != wanted:
                return -1
            pos = _varint(w, pos, &raw)
            if pos < 0:
                return -1
            number[field] = _thrift_signed(raw)
            continue
        if field == META_STATISTICS:
            if kind != CT_STRUCT:
                return -1
            statistics = pos
        elif field == META_ENCODING_STATS:
            if kind != CT_LIST:
                return -1
            stats = pos
        pos = _skip(w, pos, kind, depth - 1, False)
        if pos < 0:
            return -1
    if not (seen >> META_NUM_VALUES) & (seen >> META_COMPRESSED) & (seen >> META_DATA_PAGE) & 1:
        return -1
    size = number[META_COMPRESSED]
    if size < 0 or number[META_NUM_VALUES] < 0:
        return -1
    start = number[META_DATA_PAGE]
    if 0 < number[META_DICTIONARY_PAGE] < start:  # as `footer.first_page`
        start = number[META_DICTIONARY_PAGE]
    if (size or number[META_NUM_VALUES]) and (start < 0 or start > data_end or size > data_end - start):
        return -1
    if not (seen >> META_FILTER_OFFSET) & 1 and not (seen >> META_FILTER_LENGTH) & 1:
        return pos
    # all metadata of a chunk with a filter is read
    if not (seen >> META_TYPE) & (seen >> META_CODEC) & (seen >> META_UNCOMPRESSED) & 1:
        return -1
    if number[META_CODEC] < 0 or number[META_UNCOMPRESSED] < 0:
        return -1
    if number[META_TYPE] != physical:
        return -1
    if statistics and not _plain_struct(w, statistics, depth - 1):
        return -1
    if stats and not _plain_stats_list(w, stats, depth - 1):
        return -1
    start = number[META_FILTER_OFFSET]
    if start <= 0:
        return pos
    if start >= data_end:
        return -1
    if not (seen >> META_FILTER_LENGTH) & 1:
        unsized[0] = start
        return pos
    size = number[META_FILTER_LENGTH]
    return pos if 0 < size <= data_end - start else -1


cdef bint _plain_chunk(
    Walk* w, Py_ssize_t pos, int physical, int64_t data_end, int depth, int64_t* unsized
) noexcept nogil:
    cdef int kind, field = 0, at
    cdef uint64_t seen = 0, raw
    cdef int64_t index[4]
    for at in range(4):
        index[at] = 0
    while True:
        pos = _field_head(w, pos, &kind, &field)
        if pos < 0:
            return False
        if kind == 0:
            break
        if not _new_field(field, &seen) or field == CHUNK_FILE_PATH or field == CHUNK_CRYPTO_METADATA:
            return False
        if field == CHUNK_META_DATA:
            if kind != CT_STRUCT:
                return False
            pos = _plain_meta(w, pos, physical, data_end, depth - 1, unsized)
        elif CHUNK_OFFSET_INDEX_OFFSET <= field <= CHUNK_COLUMN_INDEX_LENGTH:
            at = field - CHUNK_OFFSET_INDEX_OFFSET  # offset, length, offset, length
            if kind != (CT_I32 if at & 1 else CT_I64):
                return False
            pos = _varint(w, pos, &raw)
            index[at] = _thrift_signed(raw)
        else:
            pos = _skip(w, pos, kind, depth - 1, False)
        if pos < 0:
            return False
    if not (seen >> CHUNK_META_DATA) & 1:
        return False
    for at in range(0, 4, 2):
        if index[at] and index[at + 1]:
            if not (4 <= index[at] <= data_end and 0 < index[at + 1] <= data_end - index[at]):
                return False
    return True


def chunks_to_check(const unsigned char[::1] data, starts, const int[::1] types, int64_t data_end, int max_depth):
    """Find the chunks of a row group that need a full check, and the filters without a length.

    A chunk needs no further check if its metadata can be read; if its pages, filter and page indexes, as far as their
    lengths are known, are within the data; and, for a chunk with a filter, if all metadata for that is present and
    valid.

    Args:
        data: the footer.
        starts: the position of each chunk's metadata in the footer.
        types: each column's physical type in the schema.
        data_end: the end of the file's data, in bytes.
        max_depth: the maximum nesting of structs and lists.

    Returns:
        ([ordinal ...], [(ordinal, offset) ...]): the chunks to check, and the filters without a length.
    """
    cdef Walk w
    cdef Py_ssize_t ordinal, pos
    cdef int64_t unsized
    cdef list doubtful = [], without_length = []
    for ordinal, start in enumerate(starts):
        pos = start
        _walk_open(&w, data, pos)
        unsized = 0
        if not _plain_chunk(
            &w, pos, types[ordinal] if ordinal < types.shape[0] else -1, data_end, max_depth, &unsized
        ):
            doubtful.append(ordinal)
        elif unsized:
            without_length.append((ordinal, unsized))
    return doubtful, without_length
