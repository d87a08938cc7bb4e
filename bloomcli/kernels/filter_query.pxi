# Determines which row groups of a Parquet file the filters rule out for some hashes, without Python objects: `find`
# queries very many files. It reads a local file's tail and footer and, of each filter of one column, the header and
# the blocks of the hashes. Files that aren't usual are left to the code that opens files. For many hashes, which
# ascend, it determines which ones may be in the file, and reads the filter once, in windows. Python gets one item for
# consecutive files that are ruled out. Chunks without a filter are ruled out by their bounds. Of the row groups that
# are left, it checks the page headers, so that Arrow can decode whole chunks without trusting a size in them.
#
# Sources: FileMetaData, RowGroup and ColumnChunk of the Parquet format's parquet.thrift; BloomFilter.md.

cdef extern from *:
    """
    #ifdef _WIN32
    #define bloom_pread(fd, to, size, at) ((void)(fd), (void)(to), (void)(size), (void)(at), (int64_t)-1)
    #define bloom_open(path, size, mtime_ns) ((void)(path), (void)(size), (void)(mtime_ns), -1)
    #define bloom_close(fd) ((void)(fd))
    #define bloom_clock() (0.0)
    #else
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <time.h>
    #include <unistd.h>
    #define bloom_pread(fd, to, size, at) ((int64_t)pread((fd), (to), (size_t)(size), (off_t)(at)))
    #define bloom_close(fd) ((void)close(fd))

    #ifdef __APPLE__
    #define bloom_mtime st_mtimespec
    #else
    #define bloom_mtime st_mtim
    #endif

    /* Opens a regular file for reading, and returns its size and modification time; -1 for anything else. */
    static int bloom_open(const char* path, int64_t* size, int64_t* mtime_ns) {
        struct stat info;
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);  /* opening a FIFO must not wait for a writer */
        if (fd < 0)
            return -1;
        if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
            close(fd);
            return -1;
        }
        *size = (int64_t)info.st_size;
        *mtime_ns = (int64_t)info.bloom_mtime.tv_sec * 1000000000 + (int64_t)info.bloom_mtime.tv_nsec;
        return fd;
    }

    static double bloom_clock(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }
    #endif
    """
    int64_t bloom_pread(int fd, void* to, int64_t size, int64_t at) noexcept nogil
    int bloom_open(const char* path, int64_t* size, int64_t* mtime_ns) noexcept nogil
    void bloom_close(int fd) noexcept nogil
    double bloom_clock() noexcept nogil

cdef enum:
    TAIL_BYTES = 8
    HEADER_READ_BYTES = 64              # bytes that are read for a filter's header, which has 16 to 18
    FOOTER_MOST_BYTES = 64 << 20        # the largest footer that is read here
    WHOLE_MOST_BYTES = 1 << 20          # the largest filter that is read whole
    BLOCK_READ_BYTES = 4096             # bytes of a filter that take as long to read as a single block
    SAME_FIELDS = 8                     # fields of the footer with ids below this can be compared
    WINDOW_BLOCKS = 8192                # blocks of a filter that are read at once for many hashes: 256 KiB
    CHUNK_DEPTH = 4                     # the nesting depth of a column chunk in the footer
    FIRST_DATA = 4                      # after the magic bytes
    ENCODING_STATS_MOST = 1 << 19
    COLUMN_ITEMS = 4                    # numbers of a column: its physical type, its flags, its kind of bounds, their size
    ORDERED = 1                         # flags: min_value and max_value can be trusted,
    DEPRECATED = 2                      # min and max can be,
    TYPE_INT64 = 2                      # a physical type
    DIRECT = 4                          # Arrow decodes the column's values as they are stored
    PAGE_HEADER_BYTES = 512             # bytes that are read for a page's header
    WHOLE_CHUNKS_BYTES = 8 << 20        # compressed bytes of a file's chunks that Arrow decodes at once,
    WHOLE_CHUNKS_VALUES = 1 << 20       # and their values
    PAGE_MOST_BYTES = 8 << 20           # decompressed bytes of one of their pages


cdef struct QueryState:
    # the query
    int fd
    int64_t file_bytes
    int max_depth
    const unsigned char* hashes
    Py_ssize_t hash_count
    const unsigned char* keys           # for each hash its value, an int64; NULL: not compared with bounds
    const unsigned char* chosen         # for each row group whether it is queried; NULL: all are
    Py_ssize_t chosen_count
    const int* columns                  # COLUMN_ITEMS numbers of each leaf column
    Py_ssize_t column_count
    Py_ssize_t searched                 # the ordinal of the searched column
    const unsigned char* summed         # for each leaf column whether its bytes are summed up; NULL: whole row groups
    const unsigned char* same[SAME_FIELDS]   # the values of the opened file's footer fields
    Py_ssize_t same_bytes[SAME_FIELDS]       # and their lengths; -1: the field is missing
    bint compared[SAME_FIELDS]
    unsigned char* window               # allocated by malloc for many hashes; else NULL
    # the results
    int64_t data_end
    int64_t row_groups
    int64_t chunk_bytes
    int64_t scan_bytes
    int64_t bytes_read
    int64_t values                      # of the searched column in the last row group
    int64_t low, high                   # the bounds of the last chunk
    bint trusted                        # its filter contains them
    bint whole                          # Arrow can decode the chunks of all row groups that are left,
    int64_t whole_bytes                 # which have these compressed bytes,
    int64_t whole_values                # and values
    int64_t pages                       # the data pages of the last of them
    Positions* left                     # receives, for each row group that isn't ruled out, its number and `pages`
    Positions* hits                     # for many hashes: receives the positions of those that each row group may have
    Positions* hit_ends                 # and their number up to the end of each row group in `left`


cdef bint _read_exactly(QueryState* r, void* to, int64_t size, int64_t at) noexcept nogil:
    if bloom_pread(r.fd, to, size, at) != size:
        return False
    r.bytes_read += size
    return True


cdef bint _index_inside(Walk* w, Fields* chunk, int offset_id, int length_id, int64_t data_end) noexcept nogil:
    """Return whether a page index lies within the file's data, or doesn't exist."""
    cdef int64_t offset, length
    if not _number(w, chunk, offset_id, CT_I64, &offset) or not _number(w, chunk, length_id, CT_I32, &length):
        return True
    if offset == 0 or length == 0:
        return True
    return FIRST_DATA <= offset <= data_end and 0 < length <= data_end - offset


cdef bint _usual_chunk(QueryState* r, Walk* w, Py_ssize_t start, const int* column, ChunkFields* found, int64_t* values,
                       int64_t* packed) noexcept nogil:
    """Decode a ColumnChunk, its number of values and its compressed bytes. False if opening the file would report it,
    or if its data aren't in the file."""
    cdef int max_depth = r.max_depth - CHUNK_DEPTH
    return (
        _chunk_fields(w, start, max_depth, found) == CHUNK_SOUND
        and _chunk_sound(w, found, column[0], max_depth, ENCODING_STATS_MOST)
        and _index_inside(w, &found.chunk, 4, 5, r.data_end) and _index_inside(w, &found.chunk, 6, 7, r.data_end)
        and _number(w, &found.meta, 5, CT_I64, values) and _number(w, &found.meta, 7, CT_I64, packed)
    )


cdef Py_ssize_t _add_bounds(Walk* w, ChunkFields* found, const int* column, uint64_t* hashes) noexcept nogil:
    """Add the hashes of the bounds that are certainly values of the chunk. Return their number."""
    cdef ChunkBounds b
    cdef Py_ssize_t count = 0
    _chunk_bounds(w, found, column[1] & ORDERED, column[1] & DEPRECATED, &b)
    if b.has_low and _is_certain(b.low, b.low_bytes, _boolean(&found.stats, 8), column[2], column[3]):
        hashes[count] = _xxh64(b.low, b.low_bytes)
        count += 1
    if b.has_high and _is_certain(b.high, b.high_bytes, _boolean(&found.stats, 7), column[2], column[3]):
        hashes[count] = _xxh64(b.high, b.high_bytes)
        count += 1
    return count


cdef bint _filter_rules_out(QueryState* r, int64_t offset, int64_t claimed, const uint64_t* bounds,
                            Py_ssize_t bound_count) noexcept nogil:
    """Return whether the filter at `offset` is usable and contains all bounds and none of the hashes. Many hashes are
    gathered instead. `claimed`: its length in the metadata, or -1."""
    cdef unsigned char[HEADER_READ_BYTES] head
    cdef unsigned char* start = head
    cdef unsigned char* whole = NULL
    cdef const unsigned char* bits = NULL
    cdef int64_t room = r.data_end - offset, first, nbytes = 0, total
    cdef Py_ssize_t header = 0
    cdef bint out
    r.trusted = False
    if claimed > room:
        return False
    first = min(<int64_t>HEADER_READ_BYTES, room if claimed < 0 else claimed)
    if (r.hits == NULL and 0 < claimed <= WHOLE_MOST_BYTES
            and (r.hash_count + bound_count) * BLOCK_READ_BYTES >= claimed):
        first = claimed
        whole = <unsigned char*>malloc(<size_t>claimed)
        if whole == NULL:
            return False
        start = whole
    out = _read_exactly(r, start, first, offset) and _usual_header(start, first, &header, &nbytes)
    total = header + nbytes
    out = out and total <= room and (claimed < 0 or claimed == total)
    if whole != NULL:
        bits = whole + header
    r.trusted = out and _all_are(r, bits, offset + header, nbytes // 32, <const unsigned char*>bounds, bound_count, True)
    if r.hits != NULL:
        out = r.trusted and _gather_hits(r, offset + header, nbytes // 32)
    else:
        out = r.trusted and _all_are(r, bits, offset + header, nbytes // 32, r.hashes, r.hash_count, False)
    free(whole)
    return out


cdef bint _all_are(QueryState* r, const unsigned char* bits, int64_t at, uint64_t z, const unsigned char* hashes,
                   Py_ssize_t count, bint there) noexcept nogil:
    """Return whether all hashes are in a filter, or none of those whose values bounds don't exclude. `bits`: NULL to
    read single blocks, which are at `at`."""
    cdef unsigned char[32] read
    cdef const unsigned char* block
    cdef Py_ssize_t i
    cdef uint64_t h
    for i in range(count):
        if not there and _outside(r, i):
            continue
        h = _load64(hashes + i * 8)
        block = read
        if bits != NULL:
            block = bits + 32 * _block(h, z)
        elif not _read_exactly(r, read, 32, at + 32 * _block(h, z)):
            return False
        if <bint>bloom_has(block, h) != there:
            return False
    return True


cdef Py_ssize_t _hashes_before(QueryState* r, Py_ssize_t at, int64_t block, uint64_t z) noexcept nogil:
    """Return the position of the first hash, from `at` on, whose block is `block` or a later one. The blocks of
    ascending hashes ascend."""
    cdef Py_ssize_t end = r.hash_count, middle
    while at < end:
        middle = at + (end - at) // 2
        if <int64_t>_block(_load64(r.hashes + middle * 8), z) < block:
            at = middle + 1
        else:
            end = middle
    return at


cdef bint _gather_hits(QueryState* r, int64_t start, uint64_t z) noexcept nogil:
    """Gather the positions of the hashes that a filter contains; False if it can't be read."""
    cdef unsigned char[LOOKUP_BATCH] flags
    cdef const unsigned char* bits
    cdef int64_t first, after
    cdef int64_t most = WINDOW_BLOCKS if r.hash_count * BLOCK_READ_BYTES >= <int64_t>z * 32 else 1
    cdef Py_ssize_t at = 0, end, some
    cdef size_t there
    while at < r.hash_count:
        first = _block(_load64(r.hashes + at * 8), z)
        end = _hashes_before(r, at, first + most, z)
        after = _block(_load64(r.hashes + (end - 1) * 8), z) + 1
        if not _read_exactly(r, r.window, (after - first) * 32, start + first * 32):
            return False
        bits = <const unsigned char*>(<uintptr_t>r.window - first * 32)  # the address of block 0
        while at < end:
            some = min(end - at, <Py_ssize_t>LOOKUP_BATCH)
            there = bloom_check(bits, z, r.hashes + at * 8, some, flags)
            if not _append_ones(r.hits, flags, some, there, at):
                return False
            at += some
    return True


cdef void _compare_bounds(QueryState* r, Walk* w, ChunkFields* chunk, const int* column) noexcept nogil:
    """Set the bounds of a chunk with which values are compared. A minimum above the maximum excludes nothing."""
    cdef ChunkBounds b
    cdef Py_ssize_t width = 8 if column[0] == TYPE_INT64 else 4
    r.low, r.high = INT64_MIN, INT64_MAX
    if r.keys == NULL:
        return
    _chunk_bounds(w, chunk, column[1] & ORDERED, column[1] & DEPRECATED, &b)
    if b.has_low and b.low_bytes == width:
        r.low = <int64_t>_load64(b.low) if width == 8 else <int32_t>_load32(b.low)
    if b.has_high and b.high_bytes == width:
        r.high = <int64_t>_load64(b.high) if width == 8 else <int32_t>_load32(b.high)
    if r.low > r.high:
        r.low, r.high = INT64_MIN, INT64_MAX


cdef bint _outside(QueryState* r, Py_ssize_t i) noexcept nogil:
    """Return whether the bounds exclude a value."""
    return r.keys != NULL and not r.low <= <int64_t>_load64(r.keys + i * 8) <= r.high


cdef int64_t _sound_pages(QueryState* r, Walk* w, ChunkFields* chunk, int64_t values, int64_t packed) noexcept nogil:
    """Return the number of a chunk's data pages; 0 if their headers aren't as usual, if they have another number of
    values, or if a page index or a dictionary may exclude values."""
    cdef unsigned char[PAGE_HEADER_BYTES] head
    cdef Walk page
    cdef Fields found
    cdef int64_t at = 0, first = 0, end, room, kind, size, stored, count = 0, seen = 0, pages = 0, most = 0
    cdef bint only_dictionary = False, has_dictionary = False
    if not _number(w, &chunk.meta, 9, CT_I64, &at) or not _number(w, &chunk.meta, 6, CT_I64, &most):
        return 0
    if _number(w, &chunk.stats, 3, CT_I64, &count) and count >= values:  # only nulls
        return 0
    if _number(w, &chunk.meta, 11, CT_I64, &first) and 0 < first < at:  # the dictionary page
        at = first
    end = at + packed
    if not FIRST_DATA <= at < end <= r.data_end:
        return 0
    while seen < values:
        room = min(<int64_t>PAGE_HEADER_BYTES, end - at)
        if room <= 0 or bloom_pread(r.fd, head, room, at) != room:
            return 0
        page.data, page.end, page.fault, page.at = head, room, 0, 0
        if not _fields(&page, 0, r.max_depth, &found):
            return 0
        kind, size, stored = _i32(&page, &found, 1), _i32(&page, &found, 2), _i32(&page, &found, 3)
        if size < 0 or stored < 0 or size > PAGE_MOST_BYTES or size > max(most, <int64_t>1 << 20):
            return 0
        at += found.end + stored
        if at > end:
            return 0
        if kind == DICTIONARY_PAGE and pages == 0 and not has_dictionary and found.kind[7] == CT_STRUCT:
            has_dictionary = True
            continue
        if kind == DATA_PAGE and found.kind[5] == CT_STRUCT:
            room = found.start[5]
        elif kind == DATA_PAGE_V2 and found.kind[8] == CT_STRUCT:
            room = found.start[8]
        else:
            return 0
        if not _fields(&page, room, r.max_depth, &found):
            return 0
        if kind == DATA_PAGE_V2 and found.kind[7] == CT_FALSE and stored != size:
            return 0
        count = _i32(&page, &found, 1)
        if count <= 0 or count > values - seen:
            return 0
        seen += count
        pages += 1
    if pages > 1 and chunk.chunk.kind[6]:
        return 0
    if has_dictionary and (
        not chunk.meta.kind[13]
        or not _encoding_stats(w, &chunk.meta, r.max_depth, ENCODING_STATS_MOST, &only_dictionary) or only_dictionary
    ):
        return 0
    return pages


cdef void _add_whole(QueryState* r, Walk* w, ChunkFields* chunk, const int* column, int64_t values, int64_t packed) \
        noexcept nogil:
    """Note whether Arrow can decode a chunk that isn't ruled out as a whole."""
    r.whole = (
        r.whole and column[1] & DIRECT != 0
        and _add(&r.whole_bytes, packed, WHOLE_CHUNKS_BYTES) and _add(&r.whole_values, values, WHOLE_CHUNKS_VALUES)
    )
    if r.whole:
        r.pages = _sound_pages(r, w, chunk, values, packed)
        r.whole = r.pages > 0


cdef bint _chunk_ruled_out(QueryState* r, Walk* w, ChunkFields* chunk, const int* column) noexcept nogil:
    """Return whether a chunk's filter can be used, and contains none of the hashes, or there is none and the bounds
    exclude the values. Many hashes are gathered instead."""
    cdef uint64_t[2] bounds
    cdef Py_ssize_t bound_count = _add_bounds(w, chunk, column, bounds)
    cdef int64_t offset = 0, claimed = -1
    cdef Py_ssize_t i
    _compare_bounds(r, w, chunk, column)
    if not chunk.meta.kind[14]:
        for i in range(r.hash_count):
            if not _outside(r, i):
                return False
        return True
    if not _number(w, &chunk.meta, 14, CT_I64, &offset) or not FIRST_DATA <= offset < r.data_end:
        r.whole = False
        return False
    if chunk.meta.kind[15] and (not _number(w, &chunk.meta, 15, CT_I32, &claimed) or claimed <= 0):
        r.whole = False
        return False
    if _filter_rules_out(r, offset, claimed, bounds, bound_count):
        return True
    r.whole = r.whole and r.trusted
    return False


cdef bint _add(int64_t* total, int64_t number, int64_t most) noexcept nogil:
    """Add a number that isn't negative; False if the sum is more than `most`."""
    if number > most - total[0]:
        return False
    total[0] += number
    return True


cdef Py_ssize_t _chunks_of_group(QueryState* r, Walk* w, Py_ssize_t pos, bint chosen, bint* out) noexcept nogil:
    """Walk the column chunks of a row group. Return the end of the list at `pos`, or -1 if a chunk isn't usual.
    `chosen`: whether the row group is queried; `out`: whether it can't have one of the hashes."""
    cdef ChunkFields chunk
    cdef bint encrypted
    cdef int kind = 0
    cdef int64_t values = 0, packed = 0
    cdef uint64_t count = 0
    cdef Py_ssize_t i, hits = 0 if r.hits == NULL else r.hits.count
    pos = _list_head(w, pos, &kind, &count)
    if pos < 0 or kind != CT_STRUCT or count != <uint64_t>r.column_count:
        return -1
    for i in range(r.column_count):
        if i != r.searched and (r.summed == NULL or not r.summed[i]):
            pos = _skip_chunk(w, pos, r.max_depth - CHUNK_DEPTH, &encrypted)
            if pos < 0 or encrypted:
                return -1
            continue
        if not _usual_chunk(r, w, pos, r.columns + i * COLUMN_ITEMS, &chunk, &values, &packed):
            return -1
        pos = chunk.chunk.end
        if r.summed != NULL and r.summed[i] and not _add(&r.scan_bytes, packed, r.data_end):
            return -1
        if i == r.searched:
            if not _add(&r.chunk_bytes, packed, r.data_end):
                return -1
            r.values = values
            out[0] = not chosen or not values or _chunk_ruled_out(r, w, &chunk, r.columns + i * COLUMN_ITEMS)
            if not out[0] or (r.hits != NULL and r.hits.count > hits):
                _add_whole(r, w, &chunk, r.columns + i * COLUMN_ITEMS, values, packed)
    return pos


cdef Py_ssize_t _group(QueryState* r, Walk* w, Py_ssize_t pos, bint chosen, bint* out) noexcept nogil:
    """Walk the row group at `pos` of the footer. Return its end, or -1 if it isn't usual: its fields must be in the
    order of their ids. `chosen`, `out`: as in `_chunks_of_group`."""
    cdef int kind, field_id = 0, before = 0
    cdef uint64_t raw = 0
    cdef int64_t rows = -1, packed = 0
    cdef bint has_chunks = False
    while True:
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0 or (kind and field_id <= before):
            return -1
        if kind == 0:
            break
        before = field_id
        if field_id == 1:
            has_chunks = True
            pos = _chunks_of_group(r, w, pos, chosen, out) if kind == CT_LIST else -1
        elif (field_id == 3 or field_id == 6) and kind == CT_I64:
            pos = _varint(w, pos, &raw)
            if field_id == 3:
                rows = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
            else:
                packed = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
        else:
            pos = _skip(w, pos, kind, r.max_depth - CHUNK_DEPTH + 1, False)
        if pos < 0:
            return -1
    if not has_chunks or rows < 0 or r.values < rows:  # a row has a value or a null in each column
        return -1
    r.whole = r.whole and r.values == rows
    if r.summed == NULL and (packed <= 0 or not _add(&r.scan_bytes, packed, r.data_end)):
        return -1
    return pos


cdef Py_ssize_t _groups(QueryState* r, Walk* w, Py_ssize_t pos) noexcept nogil:
    """Walk all row groups. Return the end of the list at `pos` of the footer, or -1 if one isn't usual."""
    cdef int kind = 0
    cdef uint64_t count = 0, i
    cdef Py_ssize_t hits = 0
    cdef bint out
    pos = _list_head(w, pos, &kind, &count)
    if pos < 0 or (count and kind != CT_STRUCT):
        return -1
    for i in range(count):
        out = False
        if r.hits != NULL:
            hits = r.hits.count
        pos = _group(r, w, pos, r.chosen == NULL or (i < <uint64_t>r.chosen_count and r.chosen[i]), &out)
        if r.hits != NULL:
            if not out:  # the row group may have any of the hashes
                return -1
            out = r.hits.count == hits
        if pos < 0 or not (out or (_append(r.left, <int64_t>i) and _append(r.left, r.pages))):
            return -1
        if r.hits != NULL and not out and not _append(r.hit_ends, r.hits.count):
            return -1
    r.row_groups = <int64_t>count
    return pos


cdef bint _usual_footer(QueryState* r, const unsigned char* footer, Py_ssize_t size) noexcept nogil:
    """Walk a footer. Return whether it is usual, and like the opened file's."""
    cdef Walk w
    cdef int kind, field_id = 0, before = 0
    cdef unsigned int found = 0
    cdef uint64_t raw = 0
    cdef Py_ssize_t pos = 0, start
    w.data, w.end, w.fault, w.at = footer, size, 0, 0
    while True:
        pos = _field_head(&w, pos, &kind, &field_id)
        if pos < 0 or (kind and field_id <= before) or field_id == 8 or field_id == 9:  # encryption
            return False
        if kind == 0:
            break
        before, start = field_id, pos
        if field_id < SAME_FIELDS:
            found |= 1u << field_id
        if (field_id == 2 or field_id == 4 or field_id == 7) and kind != CT_LIST:
            return False
        if (field_id == 3 and kind != CT_I64) or (field_id == 6 and kind != CT_BINARY):
            return False
        if field_id == 4:
            pos = _groups(r, &w, pos)
        elif field_id == 3:
            pos = _varint(&w, pos, &raw)
        else:
            pos = _skip(&w, pos, kind, r.max_depth - 1, False)
        if pos < 0:
            return False
        if field_id < SAME_FIELDS and r.compared[field_id] and (
            pos - start != r.same_bytes[field_id] or memcmp(footer + start, r.same[field_id], pos - start) != 0
        ):
            return False
    for field_id in range(SAME_FIELDS):
        if r.compared[field_id] and r.same_bytes[field_id] >= 0 and not found >> field_id & 1:
            return False
    return (found >> 3 & 1) and (found >> 4 & 1) and not raw & 1  # the number of rows isn't negative


cdef bint _usual_file(QueryState* r, int fd, int64_t file_bytes) noexcept nogil:
    """Read a file's footer and filters into `r`. Return whether the file is usual, and like the opened one."""
    cdef unsigned char[TAIL_BYTES] tail
    cdef unsigned char* footer
    cdef int64_t size
    cdef bint usual
    r.fd, r.row_groups, r.chunk_bytes, r.scan_bytes, r.bytes_read = fd, 0, 0, 0, 0
    r.whole, r.whole_bytes, r.whole_values, r.pages = True, 0, 0, 0
    if file_bytes < TAIL_BYTES + FIRST_DATA or not _read_exactly(r, tail, TAIL_BYTES, file_bytes - TAIL_BYTES):
        return False
    size = _load32(tail)
    if memcmp(tail + 4, b"PAR1", 4) != 0 or size == 0 or size > FOOTER_MOST_BYTES:
        return False
    r.data_end = file_bytes - TAIL_BYTES - size
    if r.data_end < FIRST_DATA:
        return False
    footer = <unsigned char*>malloc(<size_t>size)
    if footer == NULL:
        return False
    usual = _read_exactly(r, footer, size, r.data_end) and _usual_footer(r, footer, size)
    free(footer)
    return usual


cdef struct Outcome:
    # the results of a file
    bint usual
    int64_t row_groups, chunk_bytes, scan_bytes, bytes_read
    bint whole                          # Arrow can decode the chunks of the row groups that are left,
    int64_t whole_values, whole_bytes   # which have these values, and with the footer these compressed bytes
    int64_t size, mtime_ns              # of the file, when it was opened
    Py_ssize_t files                    # the number of files that are summed up here
    Py_ssize_t first, end               # the range of `left` with the row groups that aren't ruled out


cdef void _query_file(QueryState* r, int fd, int64_t file_bytes, Outcome* o) noexcept nogil:
    """Query an open file; -1 stands for a file that couldn't be opened."""
    memset(o, 0, sizeof(Outcome))
    o.files, o.first = 1, r.left.count
    if fd >= 0:
        o.usual = _usual_file(r, fd, file_bytes)
        o.bytes_read = r.bytes_read
    if o.usual:
        o.row_groups, o.chunk_bytes, o.scan_bytes = r.row_groups, r.chunk_bytes, r.scan_bytes
        o.whole, o.whole_values = r.whole, r.whole_values
        o.whole_bytes = r.whole_bytes + file_bytes - r.data_end
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


cdef tuple _outcome_item(Outcome* o, Positions* left, tuple hits):
    """Return the item of `FilterQuery.files` for a file, or for several that are ruled out."""
    cdef object possible = tuple([left.items[i] for i in range(o.first, o.end, 2)]) if o.usual else None
    cdef tuple pages = tuple([left.items[i + 1] for i in range(o.first, o.end, 2)]) if o.whole else ()
    return (o.files, o.row_groups, o.chunk_bytes, o.scan_bytes, o.bytes_read, possible, hits if possible else None,
            (o.size, o.mtime_ns), (pages, o.whole_values, o.whole_bytes))


cdef class FilterQuery:
    """A query of the filters of files like an opened one: which row groups can't have a value with one of the hashes.

    It answers for files that are usual. A row group is ruled out if it has no values, or if its filter contains its
    bounds and none of the hashes. The GIL is released.

    Args:
        max_depth: the maximum nesting of structs and lists.
        same: the encoded values that fields of the footer must have, by field id (below 8); None: the field is
            missing.
        columns: four numbers for each leaf column: its physical type; 1 if min_value and max_value can be trusted + 2
            if min and max can be + 4 if Arrow decodes its values as they are stored, one for each row; its kind of
            bounds and their size, as for `is_certain`.
        searched: the ordinal of the column with the hashes.
        summed: a 1 for each leaf column whose bytes are summed up; None: the bytes of all columns.
        hashes: uint64s in native order, as bytes.
        keys: for each hash its value as an int64, for a column of signed integers; None: bounds rule nothing out.
        many: whether to gather the positions of the hashes that a file may have. The hashes must ascend, and files are
            only usual if each row group has no values, or a filter that contains its bounds.
    """

    cdef QueryState _query
    cdef tuple _kept                    # the objects that `_query` points to
    cdef bint _many

    def __init__(self, int max_depth, dict same not None, columns not None, Py_ssize_t searched, summed,
                 bytes hashes not None, bytes keys, bint many=False):
        cdef QueryState* r = &self._query
        cdef const int[::1] numbers = columns
        cdef bytes flags = summed
        cdef bytes packed = bytes(numbers)
        cdef int field
        cdef bytes value
        cdef Py_ssize_t at
        self._many = many
        self._kept = (dict(same), packed, flags, hashes, keys)
        memset(r, 0, sizeof(QueryState))
        if keys is not None:
            r.keys = <const unsigned char*>PyBytes_AS_STRING(keys)
        r.max_depth = max_depth
        r.column_count, r.searched = numbers.shape[0] // COLUMN_ITEMS, searched
        r.hash_count = PyBytes_GET_SIZE(hashes) // 8
        if r.column_count == 0 or not 0 <= searched < r.column_count:
            raise ValueError("no such column")
        if keys is not None and PyBytes_GET_SIZE(keys) != 8 * r.hash_count:
            raise ValueError("another number of values than of hashes")
        if flags is not None:
            if PyBytes_GET_SIZE(flags) < r.column_count:
                raise ValueError("fewer flags than columns")
            r.summed = <const unsigned char*>PyBytes_AS_STRING(flags)
        r.columns = <const int*>PyBytes_AS_STRING(packed)
        r.hashes = <const unsigned char*>PyBytes_AS_STRING(hashes)
        for at in range(1, r.hash_count if many else 0):
            if _load64(r.hashes + (at - 1) * 8) > _load64(r.hashes + at * 8):
                raise ValueError("the hashes don't ascend")
        for field in range(SAME_FIELDS):
            r.compared[field] = field in same
            value = same.get(field)
            r.same_bytes[field] = -1 if value is None else PyBytes_GET_SIZE(value)
            if value is not None:
                r.same[field] = <const unsigned char*>PyBytes_AS_STRING(value)

    def file(self, int fd, int64_t file_bytes, bytes chosen=None):
        """Query a file of `file_bytes` bytes that is open for reading.

        `chosen`: a 1 for each row group that is queried; the others are ruled out. None: all.

        Returns an item of `files`. For many hashes, the seventh has the positions of the hashes that each row
        group may have, ascending int64s as bytes. Size and modification time are 0.
        """
        cdef QueryState r = self._query
        cdef Positions left, hits, ends
        cdef Py_ssize_t i, first = 0
        cdef list parts = []
        cdef Outcome found
        memset(&left, 0, sizeof(Positions))
        memset(&hits, 0, sizeof(Positions))
        memset(&ends, 0, sizeof(Positions))
        r.left = &left
        if chosen is not None:
            r.chosen, r.chosen_count = <const unsigned char*>PyBytes_AS_STRING(chosen), PyBytes_GET_SIZE(chosen)
        if self._many:
            r.hits, r.hit_ends = &hits, &ends
            r.window = <unsigned char*>malloc(WINDOW_BLOCKS * 32)
            if r.window == NULL:
                raise MemoryError
        try:
            with nogil:
                _query_file(&r, fd, file_bytes, &found)
            if found.usual:
                for i in range(ends.count):
                    parts.append((<const char*>hits.items)[first * 8:ends.items[i] * 8])
                    first = ends.items[i]
            return _outcome_item(&found, &left, tuple(parts) if self._many else None)
        finally:
            free(r.window)
            free(left.items)
            free(hits.items)
            free(ends.items)

    def files(self, bytes names not None, Py_ssize_t start, double seconds):
        """Open and query files for `seconds` seconds, at least one.

        Args:
            names: the names, each followed by a zero byte.
            start: the position of the first name.
            seconds: the time after which no further file is begun.

        Returns:
            ([(files, row groups, bytes of the column, bytes of the summed columns, bytes read, numbers of the row
            groups that aren't ruled out, None, (size, modification time in nanoseconds), (data pages in each of
            these row groups, values in all, bytes in all and of the footer)), ...], the position after the last name).

            Consecutive files that are ruled out share an item. Each other file has an item, with the numbers of its
            row groups, or None if the file isn't usual. It has no pages if a chunk isn't small, or if Arrow may decode
            other values of it than single pages have.

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
