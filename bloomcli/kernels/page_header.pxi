# Reads the fields of a Parquet page header that bloom uses, in one walk and without an object for each field.
#
# Source: PageHeader, DataPageHeader, DictionaryPageHeader and DataPageHeaderV2 of the Parquet format's
# parquet.thrift.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    DATA_PAGE = 0
    DICTIONARY_PAGE = 2
    DATA_PAGE_V2 = 3


cdef int64_t _i32(Walk* w, Fields* found, int field_id) noexcept nogil:
    """Return an i32 field; -1 if there is none of that type."""
    cdef int64_t value = -1
    return value if _number(w, found, field_id, CT_I32, &value) else -1


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
    cdef Py_ssize_t packed_at
    cdef Py_ssize_t crc_at
    """Where the values of two fields are, from the header's start."""

    def __init__(self, bytes data not None, Py_ssize_t start, Py_ssize_t end, int max_depth):
        cdef Walk w
        cdef Fields found
        cdef int head
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
        if not _fields(&w, start, max_depth, &found):
            _walk_raise(&w)
        self.size = found.end - start
        self.type = _i32(&w, &found, 1)
        self.uncompressed_page_size = _i32(&w, &found, 2)
        self.compressed_page_size = _i32(&w, &found, 3)
        self.packed_at, self.crc_at = found.start[3] - start, found.start[4] - start
        if found.kind[4] == CT_I32:
            self.crc = _i32(&w, &found, 4)
        if self.type == DATA_PAGE:
            head = 5
        elif self.type == DICTIONARY_PAGE:
            head = 7
        elif self.type == DATA_PAGE_V2:
            head = 8
        else:
            return
        if found.kind[head] != CT_STRUCT:
            return
        self.has_head = True
        if not _fields(&w, found.start[head], max_depth, &found):
            return
        self.num_values = _i32(&w, &found, 1)
        if head == 8:
            self.encoding = _i32(&w, &found, 4)
            self.definition_levels_byte_length = _i32(&w, &found, 5)
            self.repetition_levels_byte_length = _i32(&w, &found, 6)
            self.is_compressed = found.kind[7] != CT_FALSE
            return
        self.encoding = _i32(&w, &found, 2)
        if head == 5:
            self.definition_level_encoding = _i32(&w, &found, 3)
            self.repetition_level_encoding = _i32(&w, &found, 4)

    def repacked(self, int64_t packed, crc):
        """The header's bytes with another `compressed_page_size`, which it has, and another `crc` unless that is
        None."""
        cdef bytes found = self.data[self.start : self.start + self.size]
        cdef Py_ssize_t at, end
        changed = [(self.packed_at, packed)] if crc is None else [(self.packed_at, packed), (self.crc_at, crc)]
        for at, value in sorted(changed, reverse=True):  # the fields may be in any order
            end = at
            while found[end] & 0x80:
                end += 1
            found = found[:at] + encoded_varint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF) + found[end + 1 :]
        return found
