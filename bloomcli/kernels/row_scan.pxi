# Finds the rows of Parquet files that have one of many values, and picks the values of these rows, without looking up
# the values in filters: if a row group has at most as many rows as there are values to find, reading its column takes
# less time. Of row groups that filters don't rule out, it also reports whether they have matching rows.
#
# The files are like an opened one, as for `filter_query.pxi`. `pruning.pxi` walks the footers. Pages are PLAIN or
# dictionary-encoded, of columns that aren't nested. The scan ends at anything that isn't usual; the file is then
# opened and searched like others.
#
# Source: Snappy's format description (format_description.txt).

cdef enum:
    SNAPPY_SLACK = 80                    # bytes after a buffer that may be read or written: a copy has at most 64
    SCAN_PAGE_MOST = 64 << 20            # the maximum size of a page, and of a chunk
    SCAN_VALUES_MOST = 1 << 26           # the maximum number of values of a page
    SCAN_OUT_MOST = 64 << 20             # the maximum size of the picked values of a column
    SCAN_ALL_MOST = 128 << 20            # and of all columns
    SCAN_REMAINING_MOST = 128 << 10      # the maximum size of a chunk that filters don't rule out: larger ones are
                                         # opened, because not all of their pages may be needed
    CODEC_NONE = 0
    CODEC_SNAPPY = 1
    ENCODING_PLAIN = 0
    ENCODING_RLE = 3
    WIDTH_BOOLEAN = -2                   # instead of the size of a column's values
    WIDTH_UNREAD = -1


cdef extern from *:
    """
    typedef struct {
        const unsigned char* at;
        const unsigned char* end;
        unsigned char* out;
        int64_t done;                    /* bytes of the output so far */
        int64_t size;                    /* bytes of the whole output */
        uint64_t last;                   /* the last 8 bytes of the output; fewer bytes follow zeros */
    } bloom_snappy;

    BLOOM_ALWAYS uint64_t bloom_load64(const unsigned char* p) {
        uint64_t v;
        memcpy(&v, p, 8);
        return v;
    }

    /* Returns the last 8 bytes after `count` bytes of `next` (1 to 8) are appended. */
    BLOOM_ALWAYS uint64_t bloom_followed(uint64_t last, uint64_t next, int64_t count) {
        return last >> (4 * count) >> (4 * count) | next << (64 - 8 * count);
    }

    /* Continues while short literals and copies alternate, as in columns of numbers. A turn is a literal of at most 4
       bytes, or none, and a copy of at most 16 bytes from at least 16 bytes before; or an 8-byte integer of which as
       many of the lower bytes differ from the previous integer as in the last such turn. There are no other branches,
       because the next kind can't be predicted. At least 8 bytes of output exist, and `limit` is at least 32 before
       its end. Stops before anything else. */
    BLOOM_ALWAYS void bloom_snappy_turns(bloom_snappy* s, int64_t limit) {
        const unsigned char *p = s->at, *most = s->end - 8, *source;
        unsigned char* out = s->out;
        int64_t done = s->done, literal, length, offset, lower = 1;
        uint64_t word, low, high, kind, two, last = s->last;
        uint64_t mask = 0xFFFF00FF, integer = 0x080D0000, differs = 0xFF;
        while (p <= most && done < limit) {
            word = bloom_load64(p);
            if ((word & mask) == integer) {
                last = (last & ~differs) | (word >> 8 & differs);
                memcpy(out + done, &last, 8);
                p += 3 + lower;
                done += 8;
                continue;
            }
            low = word >> 8;
            literal = (word & 3) == 0 ? (int64_t)(word >> 2 & 63) + 1 : 0;
            if (literal > 4)
                break;
            word >>= literal ? 8 * literal + 8 : 0;
            kind = word & 3;
            two = 0 - (kind >> 1);  /* all bits of a copy with an offset of 2 bytes, none of one with 1 */
            length = (int64_t)((word >> 2 & (7 | (two & 56))) + 4 - (two & 3));
            offset = (int64_t)((word >> 8 & (0xFF | (two & 0xFF00))) | (word & 0xE0 & ~two) << 3);
            if (offset == 8 && literal && kind == 1 && literal + length == 8) {
                lower = literal;  /* repeat this turn, as an integer */
                differs = ((uint64_t)1 << 8 * lower) - 1;
                mask = ~(differs << 8) & (((uint64_t)1 << 8 * (lower + 2) << 8) - 1);
                integer = (uint64_t)(lower - 1) << 2 | (uint64_t)(0x0800 | (4 - lower) << 2 | 1) << (8 * lower + 8);
                continue;
            }
            if (kind - 1 > 1 || length > 16 || offset < 16 || offset > done + literal)
                break;
            memcpy(out + done, &low, 8);
            p += literal + (literal != 0) + 1 + kind;
            done += literal;
            source = out + done - offset;
            low = bloom_load64(source);
            high = bloom_load64(source + 8);
            memcpy(out + done, &low, 8);
            memcpy(out + done + 8, &high, 8);
            done += length;
            last = bloom_load64(out + done - 8);
        }
        s->at = p;
        s->done = done;
        s->last = last;
    }

    /* Continues until there are `wanted` bytes, or a few more; 0 if the block is damaged. SNAPPY_SLACK bytes follow the
       packed bytes and the output. Columns of integers mostly have copies from 8 bytes before: the last 8 bytes are
       kept in a register, because reading bytes that were just written in parts is slow. */
    static int bloom_snappy_until(bloom_snappy* s, int64_t wanted) {
        const unsigned char *p = s->at, *end = s->end, *source;
        unsigned char* out = s->out;
        int64_t done = s->done, size = s->size, length, offset, i;
        uint64_t last = s->last, next;
        uint32_t tag, word;
        int64_t extra;
        if (wanted > size)
            wanted = size;
        while (done < wanted) {
            if (done >= 8 && end - p >= 8) {
                s->at = p;
                s->done = done;
                s->last = last;
                bloom_snappy_turns(s, wanted < size - 32 ? wanted : size - 32);
                p = s->at;
                done = s->done;
                last = s->last;
                if (done >= wanted)
                    break;
            }
            if (p >= end)
                return 0;
            tag = *p++;
            if ((tag & 3) == 0) {
                length = (tag >> 2) + 1;
                if (length <= 8) {
                    if (length > end - p || length > size - done)
                        return 0;
                    next = bloom_load64(p);
                    memcpy(out + done, &next, 8);
                    last = bloom_followed(last, next, length);
                    p += length;
                    done += length;
                    continue;
                }
                if (length > 60) {
                    i = length - 60;
                    if (end - p < i)
                        return 0;
                    memcpy(&word, p, 4);
                    length = (int64_t)(word & (0xFFFFFFFFu >> (32 - 8 * i))) + 1;
                    p += i;
                }
                if (length > end - p || length > size - done)
                    return 0;
                memcpy(out + done, p, (size_t)length);
                p += length;
                done += length;
                if (length >= 8)
                    last = bloom_load64(p - 8);
                else
                    for (i = length; i > 0; i--)
                        last = last >> 8 | (uint64_t)p[-i] << 56;
                continue;
            }
            extra = tag & 3;  /* computed without a branch, because the kind of the copy can't be predicted */
            if (extra == 3)
                extra = 4;
            if (extra > end - p)
                return 0;
            memcpy(&word, p, 4);
            p += extra;
            length = extra == 1 ? 4 + (tag >> 2 & 7) : (tag >> 2) + 1;
            offset = (int64_t)((word & (0xFFFFFFFFu >> (32 - 8 * extra))) | (extra == 1 ? tag >> 5 << 8 : 0));
            if (offset == 0 || offset > done || length > size - done)
                return 0;
            source = out + done - offset;
            if (offset >= 8 && length <= 8) {
                next = offset == 8 ? last : bloom_load64(source);
                memcpy(out + done, &next, 8);
                last = bloom_followed(last, next, length);
                done += length;
                continue;
            }
            if (offset >= 8) {
                for (i = 0; i < length; i += 8)
                    memcpy(out + done + i, source + i, 8);
            } else {
                for (i = 0; i < length; i++)
                    out[done + i] = source[i];
            }
            done += length;
            if (done >= 8) {
                last = bloom_load64(out + done - 8);
            } else {
                for (i = length; i > 0; i--)
                    last = last >> 8 | (uint64_t)out[done - i] << 56;
            }
        }
        s->at = p;
        s->done = done;
        s->last = last;
        return done < size || p == end;
    }
    """
    ctypedef struct Snappy "bloom_snappy":
        const unsigned char* at
        const unsigned char* end
        unsigned char* out
        int64_t done
        int64_t size
        uint64_t last
    bint _snappy_until "bloom_snappy_until"(Snappy* s, int64_t wanted) noexcept nogil


cdef bint _snappy_open(Snappy* s, const unsigned char* packed, int64_t count, unsigned char* out, int64_t size) \
        noexcept nogil:
    """Start to decompress a Snappy block; False if its header doesn't give `size` bytes."""
    cdef Walk w
    cdef uint64_t claimed = 0
    cdef Py_ssize_t pos
    w.data, w.end, w.fault, w.at = packed, count, 0, 0
    pos = _varint(&w, 0, &claimed)
    if pos < 0 or claimed != <uint64_t>size:
        return False
    s.at, s.end, s.out, s.done, s.size, s.last = packed + pos, packed + count, out, 0, size, 0
    return True


cdef struct ByteBuffer:
    unsigned char* data                  # allocated by malloc
    int64_t count
    int64_t room


cdef bint _reserve(ByteBuffer* g, int64_t room) noexcept nogil:
    """Make room for `room` bytes in total, and SNAPPY_SLACK; False without memory."""
    cdef unsigned char* data
    if room <= g.room and g.data != NULL:  # an empty page also needs a buffer
        return True
    room = room + room // 2
    data = <unsigned char*>realloc(g.data, <size_t>(room + SNAPPY_SLACK))
    if data == NULL:
        return False
    g.data, g.room = data, room
    return True


cdef bint _append_bytes(ByteBuffer* g, const void* items, int64_t size) noexcept nogil:
    if g.count + size > SCAN_OUT_MOST or not _reserve(g, g.count + size):
        return False
    if size:
        memcpy(g.data + g.count, items, <size_t>size)
    g.count += size
    return True


cdef bytes _buffer_bytes(ByteBuffer* g):
    return (<const char*>g.data)[:g.count] if g.count else b""


cdef struct ReadPage:
    int64_t kind, encoding, values       # from the header; values include nulls
    int64_t non_null
    int64_t packed, size                 # bytes in the file, and decompressed
    int64_t end                          # of the page, in the chunk
    int64_t at                           # the start of its bytes, in the chunk
    int64_t levels                       # bytes of the definition levels of DATA_PAGE_V2
    bint is_compressed
    unsigned char* body                  # decompressed
    int64_t start                        # of the values in the body
    int64_t levels_start, levels_end     # of the definition levels in the body


class _NotScanned(Exception):
    """A file isn't usual, or its scan doesn't pay."""


cdef struct ScanOutput:
    ByteBuffer values
    ByteBuffer sizes
    ByteBuffer positions                 # empty if there are no nulls so far
    int64_t rows


cdef class RowScan:
    """A scan for the rows with values to find, in files like an opened one. It also picks the values of columns in
    them.

    Args:
        max_depth: the maximum nesting of structs and lists.
        same: as for `FilterQuery`.
        columns: as for `FilterQuery`.
        widths: the size of a value of each leaf column; 0 for byte arrays, -1 if it isn't read, -2 for booleans.
        nullable: a 1 for each leaf column whose values may be null.
        searched: the ordinal of the searched column.
        chosen: a 1 for each leaf column whose values are picked.
        summed: as for `FilterQuery`.
        table: the values to find.
        ascending: their numbers in ascending order of the values.
        order: the order of values and bounds: 0 and 1 for signed integers of 4 and 8 bytes, 2 for bytewise.
        unpack: decompresses a page; called with the codec's number, the bytes and the size; may raise ValueError.
        checksum: returns the CRC-32 of bytes.
    """

    cdef QueryState _query
    cdef tuple _kept
    cdef ValueTable _table
    cdef bytes _ascending
    cdef object _unpack, _checksum
    cdef const int[::1] _widths
    cdef bytes _chosen, _nullable

    def __init__(self, int max_depth, dict same not None, columns not None, widths not None, bytes nullable not None,
                 Py_ssize_t searched, bytes chosen not None, summed, ValueTable table not None,
                 bytes ascending not None, int order, unpack, checksum):
        cdef FilterQuery query = FilterQuery(max_depth, same, columns, searched, summed, b"")
        cdef Py_ssize_t i
        cdef bytes read
        self._query = query._query
        self._widths, self._chosen, self._nullable = widths, chosen, nullable
        if not len(nullable) == len(chosen) == self._widths.shape[0] == self._query.column_count:
            raise ValueError("one of each for each column")
        if self._widths[searched] < 0:
            raise ValueError("the searched column isn't read")
        for i in range(self._widths.shape[0]):
            if chosen[i] and self._widths[i] == WIDTH_UNREAD:
                raise ValueError("a chosen column isn't read")
        if len(ascending) != 8 * table.count or order not in (ORDER_INT32, ORDER_INT64, ORDER_BYTES):
            raise ValueError("each value has a place in the order")
        for number in memoryview(ascending).cast("q"):
            if not 0 <= number < table.count:
                raise ValueError("no such value")
        if (0 if order == ORDER_BYTES else 4 if order == ORDER_INT32 else 8) != table.width:
            raise ValueError("values of another width")
        read = bytes(flag or at == searched for at, flag in enumerate(chosen))
        self._kept = (query, read)
        self._query.read = <const unsigned char*>PyBytes_AS_STRING(read)
        self._table, self._ascending = table, ascending
        self._query.order, self._query.sought_count, self._query.sought_width = order, table.count, table.width
        self._query.ascending = <const int64_t*>PyBytes_AS_STRING(ascending)
        if table.values.shape[0]:
            self._query.sought = &table.values[0]
        if table.offsets is not None:
            self._query.sought_offsets = &table.offsets[0]
        self._unpack, self._checksum = unpack, checksum

    def file(self, int fd, int64_t file_bytes, remaining=None):
        """Return the matching rows of a file of `file_bytes` bytes that is open for reading; None if it isn't usual,
        or if looking up the values in its filters takes less time.

        `remaining`: the numbers of the row groups that filters don't rule out; only these are scanned. The result is
        then None if one of their chunks is large or has a column index, because not all of its pages may be needed,
        or if its bounds exclude all values. A row group doesn't count as searched if its dictionary has all of its
        values, and none of the values to find.

        Returns (row groups, numbers of the searched row groups, bytes of the column, bytes of the summed columns,
        bytes read, data pages of the column, numbers of row groups, rows in the file, numbers of values, [(values,
        sizes, positions), ...] for each chosen column). Each of the three before the last has an int64 for each
        matching row, as bytes. `values` are the concatenated values, with zeros for nulls; `sizes` those of byte
        arrays, int64s; `positions` has an int64 for each row, negative for nulls, or is empty without nulls.
        """
        cdef _FileScan scan = _FileScan(self)
        result = scan.file(fd, file_bytes, remaining)
        return None if result is None else (*result[:6], *scan.rows())

    def files(self, bytes names not None, int64_t rows, int64_t size):
        """Open files one after the other, and return their matching rows.

        The scan ends after the file with which there are `rows` rows or `size` bytes of values, and before a file
        that can't be opened or for which `file` returns None.

        Args:
            names: the names of the files, each followed by a zero byte.
            rows, size: see above.

        Returns:
            ([(row groups, numbers of the searched row groups, bytes of the column, bytes of the summed columns, bytes
            read, data pages of the column, rows), ...], numbers of row groups, rows in the files, numbers of values,
            columns). The first list has an item for each scanned file. The others are as for `file`, file by file.
        """
        cdef const char* name = PyBytes_AS_STRING(names)
        cdef const char* end = name + PyBytes_GET_SIZE(names)
        cdef int64_t file_bytes = 0, mtime_ns = 0
        cdef int fd
        cdef _FileScan scan = _FileScan(self)
        cdef list files = []
        if PyBytes_GET_SIZE(names) == 0 or (end - 1)[0] != 0:
            raise ValueError("a name without its end")
        while name < end and scan._rows.count < rows and scan.held() < size:
            with nogil:
                fd = bloom_open(name, &file_bytes, &mtime_ns)
            if fd < 0:
                break
            try:
                result = scan.file(fd, file_bytes, None)
            finally:
                bloom_close(fd)
            if result is None:
                break
            files.append(result)
            name += strlen(name) + 1
        return (files, *scan.rows())


cdef class _FileScan:
    # the scan of files, with the rows that were found

    cdef RowScan _scan
    cdef QueryState _state
    cdef Positions _facts                # SCAN_FACTS numbers of each chunk that is read
    cdef Positions _rows_of_groups
    cdef Positions _groups, _rows, _numbers
    cdef ByteBuffer _packed, _body, _dictionary
    cdef ScanOutput* _outputs
    cdef ScanOutput* _before             # the state before a file, to undo it if the file isn't usual
    cdef int64_t _dictionary_values, _pages
    cdef bint _dictionary_excludes       # the dictionary of the last row group has none of the values
    cdef bytes _entries                  # the starts of the dictionary's byte arrays

    def __cinit__(self, RowScan scan):
        cdef Py_ssize_t count = scan._query.column_count
        self._scan = scan
        self._state = scan._query
        self._outputs = <ScanOutput*>malloc(<size_t>count * sizeof(ScanOutput))
        self._before = <ScanOutput*>malloc(<size_t>count * sizeof(ScanOutput))
        if self._outputs == NULL or self._before == NULL:
            free(self._outputs)
            self._outputs = NULL
            raise MemoryError
        memset(self._outputs, 0, <size_t>count * sizeof(ScanOutput))

    def __dealloc__(self):
        cdef Py_ssize_t i
        free(self._facts.items)
        free(self._rows_of_groups.items)
        free(self._groups.items)
        free(self._rows.items)
        free(self._numbers.items)
        free(self._packed.data)
        free(self._body.data)
        free(self._dictionary.data)
        if self._outputs != NULL:
            for i in range(self._state.column_count):
                free(self._outputs[i].values.data)
                free(self._outputs[i].sizes.data)
                free(self._outputs[i].positions.data)
        free(self._outputs)
        free(self._before)

    cdef object file(self, int fd, int64_t file_bytes, remaining):
        """Scan a file, and add its rows. Return its item for `RowScan.files`; None, without adding rows, if
        `RowScan.file` returns None."""
        cdef Py_ssize_t groups = self._groups.count, rows = self._rows.count, numbers = self._numbers.count, column
        memcpy(self._before, self._outputs, <size_t>self._state.column_count * sizeof(ScanOutput))
        self._state = self._scan._query
        self._state.facts, self._state.group_rows = &self._facts, &self._rows_of_groups
        self._state.fd, self._state.file_bytes = fd, file_bytes
        self._facts.count = self._rows_of_groups.count = 0
        self._pages = 0
        try:
            return (*self._search_file(remaining), self._rows.count - rows)
        except _NotScanned:
            self._groups.count, self._rows.count, self._numbers.count = groups, rows, numbers
            for column in range(self._state.column_count):
                self._outputs[column].values.count = self._before[column].values.count
                self._outputs[column].sizes.count = self._before[column].sizes.count
                self._outputs[column].positions.count = self._before[column].positions.count
                self._outputs[column].rows = self._before[column].rows
            return None

    cdef tuple rows(self):
        """Return all rows, and their values."""
        cdef Py_ssize_t column
        columns = []
        for column in range(self._state.column_count):
            if self._scan._chosen[column]:
                columns.append((
                    _buffer_bytes(&self._outputs[column].values),
                    _buffer_bytes(&self._outputs[column].sizes),
                    _buffer_bytes(&self._outputs[column].positions),
                ))
        return _int64s_of(&self._groups), _int64s_of(&self._rows), _int64s_of(&self._numbers), columns

    cdef tuple _search_file(self, remaining):
        cdef QueryState* r = &self._state
        cdef Positions left
        cdef Py_ssize_t group, count
        cdef int64_t first = 0, rows, pages
        cdef bint usual
        memset(&left, 0, sizeof(Positions))
        r.left = &left
        with nogil:
            usual = _usual_file(r, r.fd, r.file_bytes)
        free(left.items)
        if not usual:
            raise _NotScanned
        count = self._rows_of_groups.count
        for group in range(count):
            if remaining is None or group in remaining:
                self._require_worthwhile(group, are_remaining=remaining is not None)
        searched = []
        for group in range(count):
            rows = self._rows_of_groups.items[group]
            if rows and (remaining is None or group in remaining):
                pages = self._pages
                self._search(group, rows, first)
                if remaining is not None and self._dictionary_excludes:
                    self._pages = pages
                else:
                    searched.append(group)
            first += rows
        return count, tuple(searched), r.chunk_bytes, r.scan_bytes, r.bytes_read, self._pages

    cdef int _require_worthwhile(self, Py_ssize_t group, bint are_remaining) except -1:
        """Raise _NotScanned unless scanning a row group pays."""
        cdef int64_t* facts = self._chunk(group, self._state.searched)
        if facts[3] != self._rows_of_groups.items[group]:  # one of them is wrong, and rows could be lost
            raise _NotScanned
        if facts[5]:  # only filters show whether these bounds can be trusted
            raise _NotScanned
        if facts[6] and are_remaining:  # the column index may exclude pages
            raise _NotScanned
        if facts[1] > SCAN_REMAINING_MOST if are_remaining else self._rows_of_groups.items[group] > self._scan._table.count:
            raise _NotScanned
        return 0

    cdef int64_t* _chunk(self, Py_ssize_t group, Py_ssize_t column) except NULL:
        """Return the facts of a chunk."""
        cdef Py_ssize_t i, at = 0, read = 0
        for i in range(self._state.column_count):
            if i == column:
                at = read
            read += self._state.read[i] != 0
        return self._facts.items + (group * read + at) * SCAN_FACTS

    cdef int64_t* _load(self, Py_ssize_t group, Py_ssize_t column, int64_t rows) except NULL:
        """Read a chunk of a row group with `rows` rows; return its facts."""
        cdef int64_t* facts = self._chunk(group, column)
        cdef int64_t start = facts[0], size = facts[1], end = self._state.data_end
        cdef bint done
        if facts[3] != rows or not 0 < size <= SCAN_PAGE_MOST or not FIRST_DATA <= start <= end or size > end - start:
            raise _NotScanned
        with nogil:
            done = _reserve(&self._packed, size)
            if done:
                done = _read_exactly(&self._state, self._packed.data, size, start)
                memset(self._packed.data + size, 0, SNAPPY_SLACK)
        if not done:
            raise _NotScanned
        self._packed.count = size
        self._dictionary_values = -1
        self._entries = None
        return facts

    cdef int _head(self, int64_t pos, int64_t* facts, ReadPage* page, bint nullable, bint* checked) except -1:
        """Read the page header at a position of the chunk."""
        cdef Walk w
        cdef KnownFields known
        cdef int head
        cdef Py_ssize_t stop
        cdef int64_t crc = 0
        cdef bint has_crc
        w.data, w.end, w.fault, w.at = self._packed.data, self._packed.count, 0, 0
        stop = _known_fields(&w, pos, self._state.max_depth, &known)
        if stop < 0:
            raise _NotScanned
        page.kind, page.size = _known_int(&w, &known, 1), _known_int(&w, &known, 2)
        page.packed = _known_int(&w, &known, 3)
        has_crc = known.kind[4] == CT_I32
        if has_crc:
            crc = _known_int(&w, &known, 4)
        head = 5 if page.kind == DATA_PAGE else 7 if page.kind == DICTIONARY_PAGE else 8
        if page.kind not in (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2) or known.kind[head] != CT_STRUCT:
            raise _NotScanned
        if _known_fields(&w, known.start[head], self._state.max_depth, &known) < 0:
            raise _NotScanned
        page.values = _known_int(&w, &known, 1)
        page.encoding = _known_int(&w, &known, 4 if head == 8 else 2)
        page.levels, page.is_compressed = 0, True
        if head == 7 and page.encoding != ENCODING_PLAIN and page.encoding != STATS_PLAIN_DICTIONARY:
            raise _NotScanned
        if head == 5 and nullable and _known_int(&w, &known, 3) != ENCODING_RLE:
            raise _NotScanned
        if head == 8:
            page.levels = _known_int(&w, &known, 5)
            page.is_compressed = known.kind[7] != CT_FALSE
            if _known_int(&w, &known, 6) != 0 or page.levels < 0:
                raise _NotScanned
        page.at, page.end = stop, stop + page.packed
        if (
            not 0 <= page.packed <= self._packed.count - stop
            or not 0 <= page.size <= SCAN_PAGE_MOST
            or page.size > max(page.packed * 1100, facts[2])
            or not 0 <= page.values <= SCAN_VALUES_MOST
            or page.levels > min(page.packed, page.size)
        ):
            raise _NotScanned
        if not has_crc:
            checked[0] = checked[0] and pos != 0
        elif checked[0]:
            data = (<const char*>self._packed.data)[page.at:page.end]
            if self._scan._checksum(data) != crc & 0xFFFFFFFF:
                raise _NotScanned
        return 0

    cdef int _read(self, ReadPage* page, int64_t codec, bint nullable, ByteBuffer* to, int64_t last, Py_ssize_t width) \
            except -1:
        """Decompress a page and count its values. If it has PLAIN values of `width` bytes without nulls, decompress
        only up to value `last`; if that is negative, the whole page."""
        cdef const unsigned char* packed = self._packed.data + page.at + page.levels
        cdef int64_t count = page.packed - page.levels, size = page.size - page.levels, room = 0
        cdef Snappy snappy
        cdef bint done = True, whole = last < 0
        if not page.is_compressed or count == 0:
            codec = CODEC_NONE
        if not _reserve(to, page.size):
            raise MemoryError
        page.body, page.start, page.non_null = to.data, 0, page.values
        page.levels_start = page.levels_end = 0
        if page.levels:  # they precede the values, not compressed
            memcpy(to.data, packed - page.levels, <size_t>page.levels)
        if codec == CODEC_NONE:
            if count != size:
                raise _NotScanned
            memcpy(to.data + page.levels, packed, <size_t>size)
            done = True
        elif codec == CODEC_SNAPPY:
            with nogil:
                done = _snappy_open(&snappy, packed, count, to.data + page.levels, size)
                done = done and _snappy_until(&snappy, size if whole else min(size, <int64_t>64))
        else:
            try:
                unpacked = self._scan._unpack(codec, (<const char*>packed)[:count], size)
            except ValueError:
                raise _NotScanned from None
            self._copy(unpacked, to.data + page.levels, size)
        if not done:
            raise _NotScanned
        if page.kind == DICTIONARY_PAGE:
            return 0
        if nullable:
            room = page.size if whole or codec != CODEC_SNAPPY else snappy.done + page.levels
            if page.kind == DATA_PAGE:
                if room < 4:
                    raise _NotScanned
                page.levels_start, page.levels_end = 4, 4 + <int64_t>_load32(to.data)
            else:
                page.levels_end = page.levels
            page.start = page.levels_end
            if page.levels_end > page.size:
                raise _NotScanned
            if codec == CODEC_SNAPPY and not whole and page.levels_end > room:
                with nogil:
                    done = _snappy_until(&snappy, page.levels_end - page.levels)
                if not done:
                    raise _NotScanned
            page.non_null = self._non_null(page)
        elif page.levels:
            page.start = page.levels
        if codec == CODEC_SNAPPY and not whole:
            if page.non_null != page.values or page.encoding != ENCODING_PLAIN or width <= 0:
                last = size
            else:
                last = page.start - page.levels + (last + 1) * width
            with nogil:
                done = last <= size and _snappy_until(&snappy, last)
            if not done:
                raise _NotScanned
        return 0

    cdef int _copy(self, const unsigned char[::1] data, unsigned char* to, int64_t size) except -1:
        if data.shape[0] != size:
            raise _NotScanned
        if size:
            memcpy(to, &data[0], <size_t>size)
        return 0

    cdef int64_t _non_null(self, ReadPage* page) except -1:
        """Return the number of non-null values, from the definition levels."""
        cdef Walk w
        cdef uint64_t head = 0
        cdef Py_ssize_t pos
        w.data, w.end, w.fault, w.at = page.body, page.levels_end, 0, 0
        pos = _varint(&w, page.levels_start, &head)
        if pos >= 0 and not head & 1 and head >> 1 >= <uint64_t>page.values and pos < page.levels_end:
            if page.body[pos] == 1:  # one run of values
                return page.values
        levels = Levels(page.values, 1)
        try:
            levels.feed((<const char*>page.body)[:page.levels_end], page.levels_start, page.levels_end, True)
        except PageError:
            raise _NotScanned from None
        if levels.left:
            raise _NotScanned
        return levels.hits

    cdef int _search(self, Py_ssize_t group, int64_t rows, int64_t first_row) except -1:
        """Scan a row group, and pick the values of the matching rows."""
        cdef Py_ssize_t before = self._rows.count, column, at
        cdef int64_t i
        cdef unsigned char one = 1
        self._find(group, rows)
        if self._rows.count == before:
            return 0
        for at in range(before, self._rows.count):
            if at > before and self._rows.items[at] <= self._rows.items[at - 1]:
                raise _NotScanned
            if not 0 <= self._rows.items[at] < rows or not _append(&self._groups, group):
                raise _NotScanned
        for column in range(self._state.column_count):
            if not self._scan._chosen[column]:
                continue
            if column == self._state.searched:
                self._pick_searched(before)
            else:
                self._pick(group, column, rows, before)
            self._require_bounded()
        for at in range(before, self._rows.count):
            self._rows.items[at] += first_row
        return 0

    cdef int64_t held(self):
        """Return the size of the picked values so far."""
        cdef int64_t whole = 0
        cdef Py_ssize_t column
        for column in range(self._state.column_count):
            whole += self._outputs[column].values.count + self._outputs[column].sizes.count
            whole += self._outputs[column].positions.count
        return whole

    cdef int _require_bounded(self) except -1:
        """Raise _NotScanned if the picked values have too many bytes; other searches return them in batches."""
        if self.held() > SCAN_ALL_MOST:
            raise _NotScanned
        return 0

    cdef int _find(self, Py_ssize_t group, int64_t rows) except -1:
        """Find the matching rows of a row group, and add their positions in it."""
        cdef Py_ssize_t searched = self._state.searched
        cdef int64_t* facts = self._load(group, searched, rows)
        cdef int64_t pos = 0, first = 0
        cdef int width = self._scan._widths[searched]
        cdef bint nullable = self._scan._nullable[searched], checked = True, enough
        cdef ReadPage page
        cdef object entries = None
        self._dictionary_excludes = True
        while first < rows:
            if pos >= self._packed.count:
                raise _NotScanned
            self._head(pos, facts, &page, nullable, &checked)
            pos = page.end
            self._read(&page, facts[4], nullable, &self._body, -1, width)
            if page.kind == DICTIONARY_PAGE:
                if entries is not None:  # a chunk has at most one
                    raise _NotScanned
                entries = self._dictionary_numbers(&page, width)
                continue
            if page.values > rows - first:
                raise _NotScanned
            self._pages += 1
            if page.encoding != STATS_PLAIN_DICTIONARY and page.encoding != STATS_RLE_DICTIONARY:
                self._dictionary_excludes = False
            if page.encoding == ENCODING_PLAIN and width and page.non_null == page.values:
                if page.values * width > page.size - page.start:
                    raise _NotScanned
                with nogil:
                    enough = self._scan._table._find_fixed(
                        page.body + page.start, width, page.values, first, &self._rows, &self._numbers
                    )
                if not enough:
                    raise MemoryError
            else:
                self._find_others(&page, width, entries, first)
            first += page.values
        return 0

    cdef object _dictionary_numbers(self, ReadPage* page, int width):
        """Return the number of each dictionary entry in the table; -1 for others."""
        data = (<const char*>page.body)[:page.size]
        try:
            if width:
                found = self._scan._table.fixed(data, 0, width, page.values)
            else:
                found = self._scan._table.binary(data, 0, page.values)
        except PageError:
            raise _NotScanned from None
        self._dictionary_excludes = self._dictionary_excludes and len(found[0]) == 0
        entries = bytearray(b"\xff") * (8 * page.values)
        view = memoryview(entries).cast("q")
        for position, number in zip(memoryview(found[0]).cast("q"), memoryview(found[1]).cast("q")):
            view[position] = number
        return view

    cdef int _find_others(self, ReadPage* page, int width, object entries, int64_t first) except -1:
        """Do what `_find` does for pages with nulls, with byte arrays, or dictionary-encoded."""
        cdef const int64_t[::1] positions
        cdef const int64_t[::1] numbers
        cdef Py_ssize_t i
        data = (<const char*>page.body)[:page.size]
        try:
            if page.encoding == STATS_PLAIN_DICTIONARY or page.encoding == STATS_RLE_DICTIONARY:
                if entries is None:
                    raise _NotScanned
                found = match_indices(data, page.start, page.non_null, entries)
            elif page.encoding != ENCODING_PLAIN:
                raise _NotScanned
            elif width:
                found = self._scan._table.fixed(data, page.start, width, page.non_null)
            else:
                found = self._scan._table.binary(data, page.start, page.non_null)
            there = memoryview(bytearray(found[0])).cast("q")
            if page.non_null != page.values:
                place_values(data, page.levels_start, page.levels_end, there)
        except PageError:
            raise _NotScanned from None
        positions, numbers = there, memoryview(found[1]).cast("q")
        for i in range(positions.shape[0]):
            if not 0 <= positions[i] < page.values:
                raise _NotScanned
            if not _append(&self._rows, positions[i] + first) or not _append(&self._numbers, numbers[i]):
                raise MemoryError
        return 0

    cdef int _pick_searched(self, Py_ssize_t before) except -1:
        """Add the values of the searched column in the rows that were found last; they equal values of the table."""
        cdef ScanOutput* output = &self._outputs[self._state.searched]
        cdef ValueTable table = self._scan._table
        cdef Py_ssize_t at, size = 0
        cdef int64_t length
        cdef const unsigned char* value
        for at in range(before, self._rows.count):
            value = table._value(<Py_ssize_t>self._numbers.items[at], &size)
            length = size
            if not _append_bytes(&output.values, value, size):
                raise _NotScanned
            if not self._scan._widths[self._state.searched] and not _append_bytes(&output.sizes, &length, 8):
                raise _NotScanned
            if output.positions.count and not _append_bytes(&output.positions, &length, 8):
                raise _NotScanned
            output.rows += 1
        return 0

    cdef int _pick(self, Py_ssize_t group, Py_ssize_t column, int64_t rows, Py_ssize_t at) except -1:
        """Pick a column's values in the rows from index `at` on, which are positions in the row group."""
        cdef int64_t* facts = self._load(group, column, rows)
        cdef int64_t pos = 0, first = 0, last, i, value
        cdef Py_ssize_t end, width = self._scan._widths[column]
        cdef bint nullable = self._scan._nullable[column], checked = True, enough = True
        cdef ReadPage page, dictionary
        cdef ScanOutput* output = &self._outputs[column]
        cdef const unsigned char* values
        while at < self._rows.count:
            if pos >= self._packed.count or first >= rows:
                raise _NotScanned
            self._head(pos, facts, &page, nullable, &checked)
            pos = page.end
            if page.kind == DICTIONARY_PAGE:
                if self._dictionary_values >= 0:  # `_entries` belong to the first one
                    raise _NotScanned
                self._read(&page, facts[4], False, &self._dictionary, -1, width)
                self._dictionary.count, self._dictionary_values = page.size, page.values
                continue
            if page.values > rows - first:
                raise _NotScanned
            end = at
            while end < self._rows.count and self._rows.items[end] < first + page.values:
                end += 1
            if end > at:
                last = self._rows.items[end - 1] - first
                self._read(&page, facts[4], nullable, &self._body, last, width)
                if page.encoding == ENCODING_PLAIN and width > 0 and page.non_null == page.values:
                    if (last + 1) * width > page.size - page.start:
                        raise _NotScanned
                    values = page.body + page.start
                    for i in range(at, end):
                        enough = enough and _append_bytes(&output.values, values + (self._rows.items[i] - first) * width, width)
                        if output.positions.count:
                            enough = enough and _append_bytes(&output.positions, &i, 8)
                    output.rows += end - at
                    if not enough:
                        raise _NotScanned
                else:
                    self._pick_others(&page, width, output, at, end, first)
            first += page.values
            at = end
        return 0

    cdef int _pick_others(self, ReadPage* page, Py_ssize_t width, ScanOutput* output, Py_ssize_t at, Py_ssize_t end,
                          int64_t first) except -1:
        """Do what `_pick` does for pages with nulls, with byte arrays, or dictionary-encoded, for the rows `at` to
        `end`."""
        cdef Py_ssize_t i
        cdef bytearray positions = bytearray(8 * (end - at)), sizes = bytearray(), indices
        cdef int64_t[::1] numbers = memoryview(positions).cast("q")
        cdef bint by_dictionary = page.encoding == STATS_PLAIN_DICTIONARY or page.encoding == STATS_RLE_DICTIONARY
        data = (<const char*>page.body)[:page.size]
        for i in range(at, end):
            numbers[i - at] = self._rows.items[i] - first
        try:
            if page.non_null != page.values:
                pick_levels(data, page.levels_start, page.levels_end, numbers)
            indices = bytearray(positions)
            places = memoryview(indices).cast("q")
            start = page.start
            if by_dictionary:
                if self._dictionary_values < 0:
                    raise _NotScanned
                pick_indices(data, page.start, self._dictionary_values, places)
                data, start = (<const char*>self._dictionary.data)[:self._dictionary.count], 0
            elif page.encoding != ENCODING_PLAIN:
                raise _NotScanned
            if width == WIDTH_BOOLEAN:
                if by_dictionary:
                    raise _NotScanned
                values = pick_bits(data, start, places)
            elif width > 0:
                values = pick_fixed(data, start, width, places)
            else:
                if by_dictionary:
                    self._begin_entries(data, places)
                else:
                    binary_starts(data, start, places)
                sizes = bytearray(8 * (end - at))
                values = pick_binary(data, places, SCAN_OUT_MOST, memoryview(sizes).cast("q"))
        except PageError:
            raise _NotScanned from None
        if values is None:
            raise _NotScanned
        self._add_picked(output, values, sizes, positions, page.non_null != page.values)
        return 0

    cdef int _begin_entries(self, bytes data, int64_t[::1] places) except -1:
        """Replace indices of a dictionary of byte arrays by the starts of the entries."""
        cdef const int64_t[::1] starts
        cdef Py_ssize_t i
        if self._entries is None:
            self._entries = bytes(binary_places(data, 0, self._dictionary_values))
        starts = memoryview(self._entries).cast("q")
        for i in range(places.shape[0]):
            if places[i] >= 0:
                places[i] = starts[places[i]]
        return 0

    cdef int _add_picked(self, ScanOutput* output, bytearray values, bytearray sizes, bytearray positions,
                         bint has_nulls) except -1:
        cdef int64_t count = len(positions) // 8
        cdef bytes before
        cdef bint enough = True
        if has_nulls and output.positions.count == 0 and output.rows:  # the first null of the column
            before = bytes(8 * output.rows)
            enough = _append_bytes(&output.positions, PyBytes_AS_STRING(before), 8 * output.rows)
        if has_nulls or output.positions.count:
            enough = enough and _append_bytes(&output.positions, PyByteArray_AS_STRING(positions), 8 * count)
        enough = enough and _append_bytes(&output.values, PyByteArray_AS_STRING(values), len(values))
        enough = enough and _append_bytes(&output.sizes, PyByteArray_AS_STRING(sizes), len(sizes))
        if not enough:
            raise _NotScanned
        output.rows += count
        return 0


cdef bytes _int64s_of(Positions* found):
    return (<const char*>found.items)[:found.count * 8] if found.count else b""
