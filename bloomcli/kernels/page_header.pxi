# Reads the fields of a Parquet page header that bloom uses, in one walk and without an object for each field.
#
# Source: PageHeader, DataPageHeader, DictionaryPageHeader and DataPageHeaderV2 of the Parquet format's
# parquet.thrift. The walk is that of compact_struct: it rejects the same bytes with the same reason and offset.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    KNOWN_FIELDS = 9   # ids below this are recorded

cdef enum:
    DATA_PAGE = 0
    DICTIONARY_PAGE = 2
    DATA_PAGE_V2 = 3


cdef struct KnownFields:
    int kind[KNOWN_FIELDS]            # 0: missing
    Py_ssize_t start[KNOWN_FIELDS]    # of the value


cdef Py_ssize_t _known_fields(Walk* w, Py_ssize_t pos, int max_depth, KnownFields* known) except? -2:
    """Walk the struct at `pos` and record the positions of its known fields. Return its end, or -1 with the fault
    set."""
    cdef int kind, field_id = 0
    cdef Py_ssize_t header, value
    cdef uint64_t low = 0      # ids up to 63 so far
    cdef set others = None     # other ids so far
    memset(known, 0, sizeof(KnownFields))
    while True:
        header = pos
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0 or kind == 0:
            return pos
        value = pos
        pos = _skip(w, pos, kind, max_depth - 1, False)
        if pos < 0:
            return -1
        if 0 <= field_id < 64:
            if low >> field_id & 1:
                return _fail(w, WALK_FIELD_ID, header)
            low |= <uint64_t>1 << field_id
            if field_id < KNOWN_FIELDS:
                known.kind[field_id] = kind
                known.start[field_id] = value
        else:
            if others is None:
                others = set()
            if field_id in others:
                return _fail(w, WALK_FIELD_ID, header)
            others.add(field_id)


cdef int64_t _known_int(Walk* w, KnownFields* known, int field_id) noexcept nogil:
    """Return an i32 field; -1 if there is none of that type."""
    cdef uint64_t raw = 0
    if known.kind[field_id] != CT_I32 or _varint(w, known.start[field_id], &raw) < 0:
        return -1
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef class PageHeader:
    """The page header at `start` of `data`, which is read only up to `end`.

    An integer that is missing or not an i32 is -1; other negative values are kept. The fields of a specific page type
    come from the structure for `type`: all are -1 if that is missing or has a field twice.

    Raises:
        CompactError: as in `compact_struct`.
    """

    cdef readonly bytes data
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t size
    """Size of the header in bytes."""
    cdef readonly int64_t type
    cdef readonly int64_t uncompressed_page_size
    cdef readonly int64_t compressed_page_size
    cdef readonly object crc
    """None if the header has no checksum."""
    cdef readonly bint has_head
    """The header has the structure for `type`."""
    cdef readonly int64_t num_values
    cdef readonly int64_t encoding
    cdef readonly int64_t definition_level_encoding
    cdef readonly int64_t repetition_level_encoding
    cdef readonly int64_t definition_levels_byte_length
    cdef readonly int64_t repetition_levels_byte_length
    cdef readonly bint is_compressed
    """False only if the header sets it to false."""

    def __init__(self, bytes data not None, Py_ssize_t start, Py_ssize_t end, int max_depth):
        cdef Walk w
        cdef KnownFields known
        cdef int head
        cdef Py_ssize_t stop
        self.data, self.start = data, start
        self.end = min(end, PyBytes_GET_SIZE(data))
        self.num_values = self.encoding = -1
        self.definition_level_encoding = self.repetition_level_encoding = -1
        self.definition_levels_byte_length = self.repetition_levels_byte_length = -1
        self.is_compressed = True
        self.has_head = False
        self.crc = None
        w.data = <const unsigned char*>PyBytes_AS_STRING(data)
        w.end = self.end
        w.fault = 0
        w.at = 0
        if start < 0 or start > w.end:
            raise CompactError(_WALK_REASONS[WALK_TRUNCATED], start)
        stop = _known_fields(&w, start, max_depth, &known)
        if stop < 0:
            _walk_raise(&w)
        self.size = stop - start
        self.type = _known_int(&w, &known, 1)
        self.uncompressed_page_size = _known_int(&w, &known, 2)
        self.compressed_page_size = _known_int(&w, &known, 3)
        if known.kind[4] == CT_I32:
            self.crc = _known_int(&w, &known, 4)
        if self.type == DATA_PAGE:
            head = 5
        elif self.type == DICTIONARY_PAGE:
            head = 7
        elif self.type == DATA_PAGE_V2:
            head = 8
        else:
            return
        if known.kind[head] != CT_STRUCT:
            return
        self.has_head = True
        if _known_fields(&w, known.start[head], max_depth, &known) < 0:
            return
        self.num_values = _known_int(&w, &known, 1)
        if head == 8:
            self.encoding = _known_int(&w, &known, 4)
            self.definition_levels_byte_length = _known_int(&w, &known, 5)
            self.repetition_levels_byte_length = _known_int(&w, &known, 6)
            self.is_compressed = known.kind[7] != CT_FALSE
            return
        self.encoding = _known_int(&w, &known, 2)
        if head == 5:
            self.definition_level_encoding = _known_int(&w, &known, 3)
            self.repetition_level_encoding = _known_int(&w, &known, 4)
