# Queries the filters of many local Parquet files, one after the other, with `pruning.pxi`: which row groups they
# don't rule out. Python gets one item for consecutive files that are ruled out.

cdef struct Outcome:
    # the results of a file
    bint usual
    int64_t row_groups, chunk_bytes, scan_bytes, bytes_read
    int64_t size, mtime_ns              # of the file, when it was opened
    Py_ssize_t files                    # the number of files that are summed up here
    Py_ssize_t first, end               # the range of `left` with the numbers of the row groups that aren't ruled out


cdef void _query_file(QueryState* r, int fd, int64_t file_bytes, Outcome* o) noexcept nogil:
    """Query an open file; -1 stands for a file that couldn't be opened."""
    memset(o, 0, sizeof(Outcome))
    o.files, o.first = 1, r.left.count
    if fd >= 0:
        o.usual = _usual_file(r, fd, file_bytes)
        o.bytes_read = r.bytes_read
    if o.usual:
        o.row_groups, o.chunk_bytes, o.scan_bytes = r.row_groups, r.chunk_bytes, r.scan_bytes
    else:
        r.left.count = o.first
    o.end = r.left.count


cdef Py_ssize_t _query_files(QueryState* r, const char* name, const char* names_end, Outcome* outcomes, double seconds) \
        noexcept nogil:
    """Query files, whose names end with a zero byte each, for this time. Return their number."""
    cdef double until = bloom_clock() + seconds
    cdef Py_ssize_t count = 0
    cdef int64_t size = 0, mtime_ns = 0
    cdef int fd
    while name < names_end and (count == 0 or bloom_clock() < until):
        fd = bloom_open(name, &size, &mtime_ns)
        _query_file(r, fd, size, outcomes + count)
        outcomes[count].size, outcomes[count].mtime_ns = size, mtime_ns
        if fd >= 0:
            bloom_close(fd)
        name += strlen(name) + 1
        count += 1
    return count


cdef bint _is_ruled_out(Outcome* o) noexcept nogil:
    return o.usual and o.first == o.end


cdef Py_ssize_t _sum_up(Outcome* outcomes, Py_ssize_t i, Py_ssize_t count) noexcept nogil:
    """Add consecutive files that are ruled out to the last of them. Return its position."""
    cdef Outcome* o
    cdef Outcome* following
    while i + 1 < count and _is_ruled_out(outcomes + i) and _is_ruled_out(outcomes + i + 1):
        o, following = outcomes + i, outcomes + i + 1
        following.files = o.files + 1
        following.row_groups += o.row_groups
        following.chunk_bytes += o.chunk_bytes
        following.scan_bytes += o.scan_bytes
        following.bytes_read += o.bytes_read
        i += 1
    return i


cdef tuple _outcome_item(Outcome* o, Positions* left, bytes hits):
    """Return the item of `FilterQuery.files` for a file, or for several that are ruled out."""
    cdef object possible = tuple([left.items[i] for i in range(o.first, o.end)]) if o.usual else None
    return (o.files, o.row_groups, o.chunk_bytes, o.scan_bytes, o.bytes_read, possible, hits if possible else None,
            (o.size, o.mtime_ns))


cdef class Ascending:
    """Hashes, uint64s in native order, that were checked to ascend."""

    cdef readonly bytes hashes

    def __init__(self, bytes hashes not None):
        cdef const unsigned char* items = <const unsigned char*>PyBytes_AS_STRING(hashes)
        cdef Py_ssize_t at
        for at in range(1, PyBytes_GET_SIZE(hashes) // 8):
            if _load64(items + (at - 1) * 8) > _load64(items + at * 8):
                raise ValueError("the hashes don't ascend")
        self.hashes = hashes


cdef class FilterQuery:
    """A query of the filters of files like an opened one: which row groups can't have a value with one of the hashes.

    It answers for files that are usual. A row group is ruled out if it has no values, or if its filter contains its
    bounds and none of the hashes. The GIL is released.

    Args:
        max_depth: the maximum nesting of structs and lists.
        same: the encoded values that fields of the footer must have, by field id (below 8); None: the field is
            missing.
        columns: four numbers for each leaf column: its physical type; 1 if min_value and max_value can be trusted + 2
            if min and max can be; its kind of bounds and their size, as for `is_certain`.
        searched: the ordinal of the column with the hashes.
        summed: a 1 for each leaf column whose bytes are summed up; None: the bytes of all columns.
        hashes: uint64s in native order, as bytes, or `Ascending`. For the latter, the positions of the hashes that a
            file may have are gathered; files are then only usual if each row group has no values, or a filter that
            contains its bounds.
    """

    cdef QueryState _query
    cdef tuple _kept                    # the objects that `_query` points to
    cdef bint _many

    def __init__(self, int max_depth, dict same not None, columns not None, Py_ssize_t searched, summed,
                 hashes not None):
        cdef QueryState* r = &self._query
        cdef const int[::1] numbers = columns
        cdef bytes flags = summed
        cdef bytes packed = bytes(numbers)
        cdef int field
        cdef bytes value
        cdef bytes looked_up = (<Ascending>hashes).hashes if isinstance(hashes, Ascending) else hashes
        self._many = isinstance(hashes, Ascending)
        self._kept = (dict(same), packed, flags, looked_up)
        memset(r, 0, sizeof(QueryState))
        r.max_depth = max_depth
        r.column_count, r.searched = numbers.shape[0] // COLUMN_ITEMS, searched
        r.hash_count = PyBytes_GET_SIZE(looked_up) // 8
        if r.column_count == 0 or not 0 <= searched < r.column_count:
            raise ValueError("no such column")
        if flags is not None:
            if PyBytes_GET_SIZE(flags) < r.column_count:
                raise ValueError("fewer flags than columns")
            r.summed = <const unsigned char*>PyBytes_AS_STRING(flags)
        r.columns = <const int*>PyBytes_AS_STRING(packed)
        r.hashes = <const unsigned char*>PyBytes_AS_STRING(looked_up)
        for field in range(SAME_FIELDS):
            r.compared[field] = field in same
            value = same.get(field)
            r.same_bytes[field] = -1 if value is None else PyBytes_GET_SIZE(value)
            if value is not None:
                r.same[field] = <const unsigned char*>PyBytes_AS_STRING(value)

    def file(self, int fd, int64_t file_bytes):
        """Query a file of `file_bytes` bytes that is open for reading.

        Returns an item of `files`. For `Ascending` hashes, the item before the last has the positions of the hashes
        that the file may have, int64s as bytes, row group by row group. The last item is (0, 0).
        """
        cdef QueryState r = self._query
        cdef Positions left, hits
        cdef Outcome found
        memset(&left, 0, sizeof(Positions))
        memset(&hits, 0, sizeof(Positions))
        r.left = &left
        if self._many:
            r.hits = &hits
            r.window = <unsigned char*>malloc(WINDOW_BLOCKS * 32)
            if r.window == NULL:
                raise MemoryError
        try:
            with nogil:
                _query_file(&r, fd, file_bytes, &found)
            return _outcome_item(&found, &left, (<const char*>hits.items)[:hits.count * 8] if hits.count else None)
        finally:
            free(r.window)
            free(left.items)
            free(hits.items)

    def files(self, bytes names not None, Py_ssize_t start, double seconds):
        """Open and query files for `seconds` seconds, at least one.

        Args:
            names: the names, each followed by a zero byte.
            start: the position of the first name.
            seconds: the time after which no further file is begun.

        Returns:
            ([(files, row groups, bytes of the column, bytes of the summed columns, bytes read, numbers of the row
            groups that aren't ruled out, None, (size, modification time in nanoseconds)), ...], the position after
            the last name).

            Consecutive files that are ruled out share an item. Each other file has an item, with the numbers of its
            row groups, or None if the file isn't usual.

        Raises:
            ValueError: the query has many hashes.
        """
        cdef const char* first = PyBytes_AS_STRING(names)
        cdef const char* name = first + start
        cdef const char* end = first + PyBytes_GET_SIZE(names)
        cdef Py_ssize_t i, count = names.count(b"\0", start)
        cdef QueryState r = self._query
        cdef Positions left
        cdef Outcome* outcomes
        cdef list found = []
        if self._many:
            raise ValueError("a query of many hashes takes one file at a time")
        if not 0 <= start < PyBytes_GET_SIZE(names) or (end - 1)[0] != 0:
            raise ValueError("a name without its end")
        memset(&left, 0, sizeof(Positions))
        r.left = &left
        outcomes = <Outcome*>malloc(<size_t>count * sizeof(Outcome))
        if outcomes == NULL:
            raise MemoryError
        try:
            with nogil:
                count = _query_files(&r, name, end, outcomes, seconds)
            i = 0
            while i < count:
                i = _sum_up(outcomes, i, count)
                found.append(_outcome_item(outcomes + i, &left, None))
                i += 1
            for i in range(count):
                name += strlen(name) + 1
            return found, name - first
        finally:
            free(outcomes)
            free(left.items)
