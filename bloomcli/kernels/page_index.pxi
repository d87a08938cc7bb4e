# Reads Parquet offset indexes. A chunk's index has an entry for each page.
#
# Source: OffsetIndex and PageLocation of the Parquet format's parquet.thrift.


def page_locations(bytes data not None, int max_depth):
    """Return (offset, length, first row) of each page in an OffsetIndex at the start of `data`; None if it is damaged
    or a page lacks one of them."""
    cdef Walk w
    cdef Fields index, page
    cdef int kind = 0
    cdef uint64_t count = 0, i
    cdef int64_t offset = 0, size = 0, row = 0
    cdef Py_ssize_t pos
    cdef list found = []
    w.data = <const unsigned char*>PyBytes_AS_STRING(data)
    w.end, w.fault, w.at = PyBytes_GET_SIZE(data), 0, 0
    if not _fields(&w, 0, max_depth, &index) or index.kind[1] != CT_LIST:
        return None
    pos = _list_head(&w, index.start[1], &kind, &count)
    if pos < 0 or (count and kind != CT_STRUCT):
        return None
    for i in range(count):
        if not _fields(&w, pos, max_depth, &page):
            return None
        if not _number(&w, &page, 1, CT_I64, &offset) or not _number(&w, &page, 2, CT_I32, &size):
            return None
        if not _number(&w, &page, 3, CT_I64, &row):
            return None
        found.append((offset, size, row))
        pos = page.end
    return found
