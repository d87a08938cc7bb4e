# Looks at many Parquet files of this machine, one after the other, with `pruning.pxi`: which of their row groups the
# filters don't rule out. Python sees one item for all files of a stretch that are ruled out.

cdef struct Outcome:
    # what was found of a file
    bint usual
    int64_t row_groups, chunk_bytes, scan_bytes, bytes_read
    int64_t size, mtime_ns              # of the file, when it was opened
    Py_ssize_t files                    # that are summed up here
    Py_ssize_t first, end               # of the numbers of its row groups that aren't ruled out


cdef void _query_file(QueryState* r, int fd, int64_t file_bytes, Outcome* o) noexcept nogil:
    """Look at an open file; -1: at none."""
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
    """Look at files, each name ending with a zero byte, for so many seconds. Returns at how many."""
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
    """Add a file that is ruled out to the next one while that is ruled out too; the position of the last one."""
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
    """What `FilterQuery` tells of a file, or of several that are ruled out."""
    cdef object possible = tuple([left.items[i] for i in range(o.first, o.end)]) if o.usual else None
    return (o.files, o.row_groups, o.chunk_bytes, o.scan_bytes, o.bytes_read, possible, hits if possible else None,
            (o.size, o.mtime_ns))


cdef class Ascending:
    """Hashes, uint64s in native order, that were seen to ascend."""

    cdef readonly bytes hashes

    def __init__(self, bytes hashes not None):
        cdef const unsigned char* items = <const unsigned char*>PyBytes_AS_STRING(hashes)
        cdef Py_ssize_t at
        for at in range(1, PyBytes_GET_SIZE(hashes) // 8):
            if _load64(items + (at - 1) * 8) > _load64(items + at * 8):
                raise ValueError("the hashes don't ascend")
        self.hashes = hashes


cdef class FilterQuery:
    """Tells of files like one that was opened which of their row groups can't have a value with one of some hashes.

    It is known of a file where all is as writers write it. A row group is ruled out if it has no values, or a filter
    that has its bounds and none of the hashes. Other threads run meanwhile.

    Args:
        max_depth: of structures within each other.
        same: of fields of the footer, by their ids (below 8), the encoded values that a file has to have; None: no
            such field.
        columns: four numbers for each leaf column, as for `filter_claims`.
        searched: the ordinal of the column with the hashes.
        summed: of each leaf column a 1 if its bytes are summed up; None: the bytes of all columns.
        hashes: uint64s in native order, as bytes. Or `Ascending`: the positions of those that a file may have are
            gathered. It is then known of a file where each row group has no values, or a filter that has its bounds.
    """

    cdef QueryState _query
    cdef tuple _kept                    # what `_query` points to
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

    def file(self, int fd, int64_t file_bytes, const int64_t[::1] groups=None):
        """Return what is known of a file of `file_bytes` bytes that is open for reading.

        Of row groups that aren't among `groups`, ascending numbers, no filter is read: they are ruled out. None: all
        are asked.

        It is an item as `files` returns them. Of `Ascending` hashes, the item before the last are positions
        of hashes that the file may have, int64s as bytes: those of one row group after the other. The last item is (0, 0).
        """
        cdef QueryState r = self._query
        cdef Positions left, hits
        cdef Outcome found
        cdef int64_t none = 0
        memset(&left, 0, sizeof(Positions))
        memset(&hits, 0, sizeof(Positions))
        r.left = &left
        if groups is not None:
            r.group_count = groups.shape[0]
            r.groups = &groups[0] if r.group_count else &none
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
        """Open files and look at them for so many seconds, at one at least.

        Args:
            names: each ends with a zero byte.
            start: the position of the first one.
            seconds: a file that is begun is looked at to its end.

        Returns:
            ([(files, row groups, bytes of the column, bytes of the summed columns, bytes that were read, numbers of the
            row groups that aren't ruled out, None, (size, modification time in nanoseconds)), ...], the position of the
            name behind the last one).

            Files that are ruled out are summed up with those before them. Other files have items of their own: with
            numbers of row groups, or None for a file of which nothing is known.

        Raises:
            ValueError: the query is one of many hashes.
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
            raise ValueError("of many hashes, files are looked at one by one")
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
