# Decodes the metadata of Parquet column chunks.
#
# Source: ColumnChunk, ColumnMetaData, PageEncodingStats and Statistics of the Parquet format's parquet.thrift; the
# numbers are its field ids.

cdef enum:
    STATS_PAGE = 0
    STATS_PAGE_V2 = 3
    STATS_PLAIN_DICTIONARY = 2
    STATS_RLE_DICTIONARY = 8
    OTHER_ENCODINGS = 63


cdef struct ChunkFields:
    Fields chunk
    Fields meta
    Fields stats


cdef struct ChunkBounds:
    const unsigned char* low
    const unsigned char* high
    Py_ssize_t low_bytes, high_bytes
    bint has_low, has_high


cdef enum:
    CHUNK_SOUND = 0
    CHUNK_FAULT = 1        # the ColumnChunk can't be walked
    META_FAULT = 2         # its metadata can't be
    STATS_FAULT = 3        # its statistics can't be


cdef int _chunk_fields(Walk* w, Py_ssize_t pos, int max_depth, ChunkFields* found) noexcept nogil:
    """Walk a ColumnChunk, its metadata and its statistics. Return which one can't be walked, with the fault set."""
    memset(&found.meta, 0, sizeof(Fields))
    memset(&found.stats, 0, sizeof(Fields))
    if not _fields(w, pos, max_depth, &found.chunk):
        return CHUNK_FAULT
    if found.chunk.kind[3] != CT_STRUCT:
        return CHUNK_SOUND
    if not _fields(w, found.chunk.start[3], max_depth, &found.meta):
        return META_FAULT
    if found.meta.kind[12] == CT_STRUCT and not _fields(w, found.meta.start[12], max_depth, &found.stats):
        return STATS_FAULT
    return CHUNK_SOUND


cdef void _chunk_bounds(Walk* w, ChunkFields* found, bint ordered, bint deprecated, ChunkBounds* bounds) noexcept nogil:
    """Locate the bounds: min_value and max_value if `ordered`; if there are none and `deprecated` is true, min and
    max."""
    memset(bounds, 0, sizeof(ChunkBounds))
    if ordered:
        bounds.has_low = _binary(w, &found.stats, 6, &bounds.low, &bounds.low_bytes)
        bounds.has_high = _binary(w, &found.stats, 5, &bounds.high, &bounds.high_bytes)
    if deprecated and not bounds.has_low and not bounds.has_high:
        bounds.has_low = _binary(w, &found.stats, 2, &bounds.low, &bounds.low_bytes)
        bounds.has_high = _binary(w, &found.stats, 1, &bounds.high, &bounds.high_bytes)


cdef bint _encoding_stats(Walk* w, Fields* meta, int max_depth, uint64_t most, bint* only_dictionary) noexcept nogil:
    """Read whether every data page is dictionary-encoded, from the encoding statistics. False if they are damaged, or
    more than `most`."""
    cdef Fields stats
    cdef int kind = 0
    cdef uint64_t size = 0, i
    cdef int64_t page, encoding, count
    cdef bint some = False, others = False
    cdef Py_ssize_t pos
    only_dictionary[0] = False
    if meta.kind[13] != CT_LIST:
        return True
    pos = _list_head(w, meta.start[13], &kind, &size)
    if pos < 0 or (size and kind != CT_STRUCT) or size > most:
        return False
    for i in range(size):
        if not (
            _fields(w, pos, max_depth, &stats)
            and _number(w, &stats, 1, CT_I32, &page) and page >= 0
            and _number(w, &stats, 2, CT_I32, &encoding) and encoding >= 0
            and _number(w, &stats, 3, CT_I32, &count) and count >= -(<int64_t>1 << 31)
        ):
            return False
        if count > 0 and (page == STATS_PAGE or page == STATS_PAGE_V2):
            some = True
            others = others or not (encoding == STATS_PLAIN_DICTIONARY or encoding == STATS_RLE_DICTIONARY)
        pos = stats.end
    only_dictionary[0] = some and not others
    return True


cdef bint _chunk_encrypted(Fields* chunk) noexcept nogil:
    return chunk.kind[8] != 0 or chunk.kind[9] != 0


cdef Py_ssize_t _skip_chunk(Walk* w, Py_ssize_t pos, int depth, bint* encrypted) noexcept nogil:
    """Skip a ColumnChunk. `encrypted`: whether it is, as far as it can be walked."""
    cdef int kind = 0, field_id = 0
    encrypted[0] = False
    while True:
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0 or kind == 0:
            return pos
        encrypted[0] = encrypted[0] or field_id == 8 or field_id == 9
        pos = _skip(w, pos, kind, depth - 1, False)
        if pos < 0:
            return -1


cdef bint _chunk_sound(Walk* w, ChunkFields* found, int physical, int max_depth, uint64_t most) noexcept nogil:
    """Return whether the required fields of a chunk's metadata are there and valid, and its data in this file. `physical`:
    its column's type; `most`: the maximum number of encoding statistics."""
    cdef int64_t number
    cdef bint only_dictionary
    return (
        found.chunk.kind[3] == CT_STRUCT and not found.chunk.kind[1] and not _chunk_encrypted(&found.chunk)
        and found.meta.kind[2] == CT_LIST and found.meta.kind[3] == CT_LIST
        and _number(w, &found.meta, 1, CT_I32, &number) and number == physical
        and _number(w, &found.meta, 4, CT_I32, &number) and number >= 0
        and _number(w, &found.meta, 5, CT_I64, &number) and number >= 0
        and _number(w, &found.meta, 6, CT_I64, &number) and number >= 0
        and _number(w, &found.meta, 7, CT_I64, &number) and number >= 0
        and _number(w, &found.meta, 9, CT_I64, &number)
        and _encoding_stats(w, &found.meta, max_depth, most, &only_dictionary)
    )


cdef object _bytes_at(const unsigned char* start, Py_ssize_t size):
    return (<const char*>start)[:size]


cdef class ChunkMetadata:
    """The metadata of the ColumnChunk at `start` of `data`, under the names of parquet.thrift.

    A field is None if it is missing or if it has another type than in parquet.thrift, as for other readers. Fields of
    the statistics are None too if `statistics_fault` is set.

    Raises:
        CompactError: as in `compact_struct`; its `field` is `meta_data` if the fault is there.
    """

    cdef readonly bytes data
    cdef readonly Py_ssize_t start
    cdef readonly object statistics_fault
    """The CompactError about statistics that can't be read; None if they can be, or don't exist."""
    cdef readonly object offset_index_offset, offset_index_length, column_index_offset, column_index_length
    cdef readonly object type, codec, num_values, total_uncompressed_size, total_compressed_size
    cdef readonly object data_page_offset, dictionary_page_offset, bloom_filter_offset, bloom_filter_length
    cdef readonly object null_count, distinct_count, is_max_value_exact, is_min_value_exact
    cdef int _max_depth
    cdef Walk _walk
    cdef ChunkFields _found

    def __cinit__(self, bytes data not None, Py_ssize_t start, int max_depth):
        cdef int fault
        cdef Fields* chunk
        cdef Fields* meta
        cdef Fields* stats
        self.data, self.start, self._max_depth = data, start, max_depth
        self._walk.data = <const unsigned char*>PyBytes_AS_STRING(data)
        self._walk.end = PyBytes_GET_SIZE(data)
        self._walk.fault = self._walk.at = 0
        self.statistics_fault = None
        if start < 0 or start > self._walk.end:
            raise CompactError(_WALK_REASONS[WALK_TRUNCATED], start)
        fault = _chunk_fields(&self._walk, start, max_depth, &self._found)
        if fault == STATS_FAULT:
            self.statistics_fault = CompactError(_WALK_REASONS[self._walk.fault], self._walk.at)
            memset(&self._found.stats, 0, sizeof(Fields))
        elif fault:
            raise CompactError(
                _WALK_REASONS[self._walk.fault], self._walk.at, "meta_data" if fault == META_FAULT else None
            )
        chunk, meta, stats = &self._found.chunk, &self._found.meta, &self._found.stats
        self.offset_index_offset = self._integer(chunk, 4, CT_I64)
        self.offset_index_length = self._integer(chunk, 5, CT_I32)
        self.column_index_offset = self._integer(chunk, 6, CT_I64)
        self.column_index_length = self._integer(chunk, 7, CT_I32)
        self.type = self._integer(meta, 1, CT_I32)
        self.codec = self._integer(meta, 4, CT_I32)
        self.num_values = self._integer(meta, 5, CT_I64)
        self.total_uncompressed_size = self._integer(meta, 6, CT_I64)
        self.total_compressed_size = self._integer(meta, 7, CT_I64)
        self.data_page_offset = self._integer(meta, 9, CT_I64)
        self.dictionary_page_offset = self._integer(meta, 11, CT_I64)
        self.bloom_filter_offset = self._integer(meta, 14, CT_I64)
        self.bloom_filter_length = self._integer(meta, 15, CT_I32)
        self.null_count = self._integer(stats, 3, CT_I64)
        self.distinct_count = self._integer(stats, 4, CT_I64)
        self.is_max_value_exact = self._truth(7)
        self.is_min_value_exact = self._truth(8)

    cdef object _integer(self, Fields* fields, int field_id, int kind):
        cdef int64_t value
        return value if _number(&self._walk, fields, field_id, kind, &value) else None

    cdef object _truth(self, int field_id):
        cdef int kind = _boolean(&self._found.stats, field_id)
        return kind == CT_TRUE if kind else None

    @property
    def has_metadata(self):
        """Whether the ColumnMetaData is there, unencrypted."""
        return self._found.chunk.kind[3] == CT_STRUCT

    @property
    def encrypted(self):
        """Whether the chunk is encrypted: it has crypto_metadata or encrypted_column_metadata."""
        return _chunk_encrypted(&self._found.chunk)

    @property
    def file_path(self):
        cdef const unsigned char* text
        cdef Py_ssize_t size
        return _bytes_at(text, size) if _binary(&self._walk, &self._found.chunk, 1, &text, &size) else None

    @property
    def encodings(self):
        """The encodings' numbers as bits; bit 63 for those that aren't 0 to 62."""
        cdef int kind = 0
        cdef uint64_t size = 0, raw = 0, bits = 0, i
        cdef Py_ssize_t pos
        if self._found.meta.kind[2] != CT_LIST:
            return 0
        pos = _list_head(&self._walk, self._found.meta.start[2], &kind, &size)
        if pos < 0 or kind != CT_I32:
            return 0
        for i in range(size):
            pos = _varint(&self._walk, pos, &raw)
            if pos < 0:
                break
            bits |= <uint64_t>1 << (raw >> 1 if not raw & 1 and raw >> 1 < OTHER_ENCODINGS else OTHER_ENCODINGS)
        return bits

    @property
    def has_encoding_stats(self):
        return self._found.meta.kind[13] != 0

    def sound(self, int physical, uint64_t most):
        """Return whether the required fields are there and valid, and neither the data nor the metadata are encrypted or
        in another file.

        Args:
            physical: the number of the column's physical type.
            most: the maximum number of encoding statistics.
        """
        if self.statistics_fault is not None:
            return False
        return bool(_chunk_sound(&self._walk, &self._found, physical, self._max_depth, most))

    def only_dictionary_encoded(self, uint64_t most):
        """Return whether the encoding statistics exist and say that every data page is dictionary-encoded; None if
        they are damaged, or have more than `most` elements."""
        cdef bint only = False
        return only if _encoding_stats(&self._walk, &self._found.meta, self._max_depth, most, &only) else None

    def bounds(self, bint ordered, bint deprecated):
        """Return (minimum, maximum): min_value and max_value if `ordered`; if there are none and `deprecated` is true,
        min and max."""
        cdef ChunkBounds b
        _chunk_bounds(&self._walk, &self._found, ordered, deprecated, &b)
        return (
            _bytes_at(b.low, b.low_bytes) if b.has_low else None,
            _bytes_at(b.high, b.high_bytes) if b.has_high else None,
        )
