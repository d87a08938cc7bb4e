# Decodes the two page indexes of Parquet column chunks. Each has an entry for each data page.
#
# Source: ColumnIndex, OffsetIndex and PageLocation of the Parquet format's parquet.thrift; the numbers are its field ids.

cdef class _Index:
    """The structure at the start of `data`, walked, and how many list elements may still be decoded."""

    cdef Walk _walk
    cdef Fields _found
    cdef uint64_t _left
    cdef int _max_depth

    def __cinit__(self, bytes data not None, int max_depth, uint64_t most):
        self._walk.data = <const unsigned char*>PyBytes_AS_STRING(data)
        self._walk.end, self._walk.fault, self._walk.at = PyBytes_GET_SIZE(data), 0, 0
        self._left, self._max_depth = most, max_depth
        if not _fields(&self._walk, 0, max_depth, &self._found):
            _walk_raise(&self._walk)

    cdef Py_ssize_t _first(self, int field_id, str name, int kind, uint64_t* count) except -2:
        """Return the position of a list's first element, and set their number; -1 if the list is missing."""
        cdef Py_ssize_t pos
        cdef int element = 0
        if self._found.kind[field_id] != CT_LIST:
            return -1
        pos = _list_head(&self._walk, self._found.start[field_id], &element, count)
        if pos < 0:
            _walk_raise(&self._walk)
        if element == CT_FALSE:  # either code of a boolean is an element type
            element = CT_TRUE
        if count[0] and element != kind:
            raise CompactError(f"{name} has elements of another type", self._found.start[field_id], name)
        if count[0] > self._left:
            raise CompactLimit("lists of more elements than are read", self._found.start[field_id], name)
        self._left -= count[0]
        return pos

    cdef list _booleans(self, int field_id, str name):
        cdef uint64_t count = 0, i
        cdef Py_ssize_t pos = self._first(field_id, name, CT_TRUE, &count)
        return None if pos < 0 else [self._walk.data[pos + <Py_ssize_t>i] == CT_TRUE for i in range(count)]

    cdef list _integers(self, int field_id, str name):
        cdef uint64_t count = 0, i, raw = 0
        cdef Py_ssize_t pos = self._first(field_id, name, CT_I64, &count)
        cdef list found = []
        if pos < 0:
            return None
        for i in range(count):
            pos = _varint(&self._walk, pos, &raw)
            if pos < 0:
                _walk_raise(&self._walk)
            found.append(<int64_t>(raw >> 1) ^ -<int64_t>(raw & 1))
        return found

    cdef list _binaries(self, int field_id, str name):
        cdef uint64_t count = 0, i, size = 0
        cdef Py_ssize_t pos = self._first(field_id, name, CT_BINARY, &count)
        cdef list found = []
        if pos < 0:
            return None
        for i in range(count):
            pos = _varint(&self._walk, pos, &size)
            if pos < 0 or size > <uint64_t>(self._walk.end - pos):
                _walk_raise(&self._walk)
            found.append(_bytes_at(self._walk.data + pos, <Py_ssize_t>size))
            pos += <Py_ssize_t>size
        return found


cdef class ColumnIndex(_Index):
    """The ColumnIndex at the start of `data`, under the names of parquet.thrift. Its lists have an element for each page.

    A field is None if it is missing or if it has another type than in parquet.thrift, as for other readers. Neither
    the lengths of the lists nor their numbers are checked. `most`: the maximum number of elements of all lists.

    Raises:
        CompactLimit: the lists have more elements.
        CompactError: as in `compact_struct`, or a list has elements of another type; `field` is the list.
    """

    cdef readonly list null_pages
    cdef readonly list min_values
    cdef readonly list max_values
    cdef readonly object boundary_order
    cdef readonly list null_counts
    cdef readonly list repetition_level_histograms
    cdef readonly list definition_level_histograms
    cdef readonly list nan_counts

    def __cinit__(self, bytes data not None, int max_depth, uint64_t most):
        cdef int64_t order
        self.null_pages = self._booleans(1, "null_pages")
        self.min_values = self._binaries(2, "min_values")
        self.max_values = self._binaries(3, "max_values")
        self.boundary_order = order if _number(&self._walk, &self._found, 4, CT_I32, &order) else None
        self.null_counts = self._integers(5, "null_counts")
        self.repetition_level_histograms = self._integers(6, "repetition_level_histograms")
        self.definition_level_histograms = self._integers(7, "definition_level_histograms")
        self.nan_counts = self._integers(8, "nan_counts")


cdef class OffsetIndex(_Index):
    """The OffsetIndex at the start of `data`, under the names of parquet.thrift, with the same limits as ColumnIndex.

    `page_locations` has (offset, compressed_page_size, first_row_index) of each page; None if the list is missing.

    Raises:
        CompactLimit: the lists have more than `most` elements.
        CompactError: as in `compact_struct`; or a list has elements of another type, or a page lacks one of the three
            fields; `field` is the list or its element.
    """

    cdef readonly list page_locations
    cdef readonly list unencoded_byte_array_data_bytes

    def __cinit__(self, bytes data not None, int max_depth, uint64_t most):
        cdef uint64_t count = 0, i
        cdef int64_t offset = 0, size = 0, row = 0
        cdef Fields page
        cdef Py_ssize_t pos = self._first(1, "page_locations", CT_STRUCT, &count)
        cdef str lacks
        self.page_locations = None if pos < 0 else []
        for i in range(count):
            if not _fields(&self._walk, pos, max_depth, &page):
                raise CompactError(_WALK_REASONS[self._walk.fault], self._walk.at, f"page_locations[{i}]")
            lacks = (
                "offset" if not _number(&self._walk, &page, 1, CT_I64, &offset)
                else "compressed_page_size" if not _number(&self._walk, &page, 2, CT_I32, &size)
                else "first_row_index" if not _number(&self._walk, &page, 3, CT_I64, &row)
                else None
            )
            if lacks is not None:
                raise CompactError(f"a page has no {lacks}", pos, f"page_locations[{i}]")
            self.page_locations.append((offset, size, row))
            pos = page.end
        self.unencoded_byte_array_data_bytes = self._integers(2, "unencoded_byte_array_data_bytes")
