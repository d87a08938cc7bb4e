# Walks the Thrift compact protocol without decoding it, to find the start and end of each field of a struct.
#
# Source: Thrift compact protocol encoding (thrift/doc/specs/thrift-compact-protocol.md).
# Every length is checked against the buffer before use, and nesting against `max_depth`, so that another decoder can
# afterwards read the same bytes without overrun or unbounded recursion.

cdef enum:
    CT_TRUE = 1
    CT_FALSE = 2
    CT_BYTE = 3
    CT_I16 = 4
    CT_I32 = 5
    CT_I64 = 6
    CT_DOUBLE = 7
    CT_BINARY = 8
    CT_LIST = 9
    CT_SET = 10
    CT_MAP = 11
    CT_STRUCT = 12
    CT_UUID = 13

cdef enum:
    WALK_TRUNCATED = 1
    WALK_VARINT = 2
    WALK_TYPE = 3
    WALK_DEPTH = 4
    WALK_SIZE = 5
    WALK_FIELD_ID = 6

_WALK_REASONS = {
    WALK_TRUNCATED: "the structure runs past its end",
    WALK_VARINT: "a variable-length integer does not end",
    WALK_TYPE: "a type code does not exist in the compact protocol",
    WALK_DEPTH: "structures are nested too deep",
    WALK_SIZE: "a length or count is larger than the bytes that are left",
    WALK_FIELD_ID: "a field id is repeated or out of range",
}


class CompactError(ValueError):
    """The bytes are not a Thrift compact structure. `offset` is relative to the start of the buffer; `field` is the
    path of the damaged field in the structure that was walked, if it isn't the structure itself."""

    def __init__(self, reason, offset, field=None):
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        self.field = field


class CompactLimit(CompactError):
    """A list has more elements than may be walked."""


cdef struct Walk:
    const unsigned char* data
    Py_ssize_t end
    Py_ssize_t at      # position of the fault
    int fault


cdef Py_ssize_t _fail(Walk* w, int fault, Py_ssize_t at) noexcept nogil:
    w.fault = fault
    w.at = at
    return -1


cdef inline Py_ssize_t _varint(Walk* w, Py_ssize_t pos, uint64_t* value) noexcept nogil:
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef unsigned char byte
    cdef Py_ssize_t start = pos
    while shift < 70:
        if pos >= w.end:
            return _fail(w, WALK_TRUNCATED, start)
        byte = w.data[pos]
        pos += 1
        if shift < 64:
            result |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return pos
        shift += 7
    return _fail(w, WALK_VARINT, start)


cdef Py_ssize_t _list_head(Walk* w, Py_ssize_t pos, int* kind, uint64_t* size) noexcept nogil:
    cdef Py_ssize_t start = pos
    if pos >= w.end:
        return _fail(w, WALK_TRUNCATED, start)
    kind[0] = w.data[pos] & 0x0F
    size[0] = w.data[pos] >> 4
    pos += 1
    if size[0] == 15:
        pos = _varint(w, pos, size)
        if pos < 0:
            return -1
    # an empty list may omit its element type
    if (kind[0] < CT_TRUE and size[0]) or kind[0] > CT_UUID:
        return _fail(w, WALK_TYPE, start)
    # an element of any type takes at least one byte
    if size[0] > <uint64_t>(w.end - pos):
        return _fail(w, WALK_SIZE, start)
    return pos


cdef inline Py_ssize_t _field_head(Walk* w, Py_ssize_t pos, int* kind, int* field_id) noexcept nogil:
    """Read a field header, or the stop byte (kind 0). `field_id` is the previous id on entry and the new one on
    return."""
    cdef Py_ssize_t start = pos
    cdef uint64_t raw
    cdef int delta
    if pos >= w.end:
        return _fail(w, WALK_TRUNCATED, start)
    kind[0] = w.data[pos] & 0x0F
    delta = w.data[pos] >> 4
    pos += 1
    if kind[0] == 0:
        return pos
    if kind[0] > CT_UUID:
        return _fail(w, WALK_TYPE, start)
    if delta:
        field_id[0] += delta
    else:
        pos = _varint(w, pos, &raw)
        if pos < 0:
            return -1
        if raw > 0xFFFF:
            return _fail(w, WALK_FIELD_ID, start)
        field_id[0] = <int>(raw >> 1) ^ -<int>(raw & 1)
    if field_id[0] < -32768 or field_id[0] > 32767:
        return _fail(w, WALK_FIELD_ID, start)
    return pos


cdef Py_ssize_t _skip(Walk* w, Py_ssize_t pos, int kind, int depth, bint in_container) noexcept nogil:
    cdef uint64_t size, i
    cdef int element, value_kind, field_id
    cdef Py_ssize_t start = pos
    if kind == CT_TRUE or kind == CT_FALSE:
        if not in_container:
            return pos
        pos += 1
    elif kind == CT_BYTE:
        pos += 1
    elif kind == CT_I16 or kind == CT_I32 or kind == CT_I64:
        return _varint(w, pos, &size)
    elif kind == CT_DOUBLE:
        pos += 8
    elif kind == CT_UUID:
        pos += 16
    elif kind == CT_BINARY:
        pos = _varint(w, pos, &size)
        if pos < 0:
            return -1
        if size > <uint64_t>(w.end - pos):
            return _fail(w, WALK_SIZE, start)
        pos += <Py_ssize_t>size
    elif depth <= 0:
        return _fail(w, WALK_DEPTH, start)
    elif kind == CT_LIST or kind == CT_SET:
        pos = _list_head(w, pos, &element, &size)
        i = 0
        while pos >= 0 and i < size:
            pos = _skip(w, pos, element, depth - 1, True)
            i += 1
        return pos
    elif kind == CT_MAP:
        pos = _varint(w, pos, &size)
        if pos < 0 or size == 0:
            return pos
        if size > <uint64_t>(w.end - pos):
            return _fail(w, WALK_SIZE, start)
        element = w.data[pos] >> 4
        value_kind = w.data[pos] & 0x0F
        pos += 1
        if not (CT_TRUE <= element <= CT_UUID and CT_TRUE <= value_kind <= CT_UUID):
            return _fail(w, WALK_TYPE, start)
        i = 0
        while pos >= 0 and i < size:
            pos = _skip(w, pos, element, depth - 1, True)
            if pos >= 0:
                pos = _skip(w, pos, value_kind, depth - 1, True)
            i += 1
        return pos
    elif kind == CT_STRUCT:
        field_id = 0
        while True:
            pos = _field_head(w, pos, &element, &field_id)
            if pos < 0 or element == 0:
                return pos
            if CT_I16 <= element <= CT_I64:  # most fields
                pos = _varint(w, pos, &size)
            else:
                pos = _skip(w, pos, element, depth - 1, False)
            if pos < 0:
                return -1
    else:
        return _fail(w, WALK_TYPE, start)
    if pos > w.end:
        return _fail(w, WALK_TRUNCATED, start)
    return pos


cdef _walk_open(Walk* w, const unsigned char[::1] data, Py_ssize_t pos):
    w.data = &data[0] if data.shape[0] else NULL
    w.end = data.shape[0]
    w.fault = 0
    w.at = 0
    if pos < 0 or pos > w.end:
        raise CompactError(_WALK_REASONS[WALK_TRUNCATED], pos)


cdef _walk_raise(Walk* w):
    raise CompactError(_WALK_REASONS[w.fault], w.at)


cdef enum:
    KNOWN_IDS = 16         # the positions of fields with ids below this are recorded
    FIRST_IDS = 64
    LEAST_ID = -32768
    ALL_IDS_WORDS = 1024   # a bit for each id


cdef Py_ssize_t LAST_START = 0xFFFFFFFF


cdef struct Fields:
    uint8_t kind[KNOWN_IDS]        # 0: missing
    uint32_t start[KNOWN_IDS]      # of the value; small, because a file may have a million column chunks
    Py_ssize_t end                 # of the struct


cdef bint _fields(Walk* w, Py_ssize_t pos, int max_depth, Fields* found) noexcept nogil:
    """Walk the struct at `pos` and record the positions of its fields. False, with the fault set, for bytes that
    `compact_struct` refuses."""
    cdef int kind, field_id = 0, at
    cdef Py_ssize_t header, value
    cdef uint64_t first = 0                    # the ids 0 to 63 so far
    cdef uint64_t[ALL_IDS_WORDS] others        # the other ids so far, if `has_others`
    cdef uint64_t* seen
    cdef bint has_others = False
    memset(found, 0, sizeof(Fields))
    while True:
        header = pos
        pos = _field_head(w, pos, &kind, &field_id)
        if pos < 0:
            return False
        if kind == 0:
            found.end = pos
            return True
        value = pos
        pos = _skip(w, pos, kind, max_depth - 1, False)
        if pos < 0:
            return False
        at = field_id
        seen = &first
        if not 0 <= field_id < FIRST_IDS:
            if not has_others:
                memset(others, 0, ALL_IDS_WORDS * 8)
                has_others = True
            at = field_id - LEAST_ID
            seen = others + at // 64
        if seen[0] >> (at % 64) & 1:
            _fail(w, WALK_FIELD_ID, header)
            return False
        seen[0] |= <uint64_t>1 << (at % 64)
        if 0 <= field_id < KNOWN_IDS:
            if value > LAST_START:
                _fail(w, WALK_SIZE, header)
                return False
            found.kind[field_id] = <uint8_t>kind
            found.start[field_id] = <uint32_t>value


cdef bint _number(Walk* w, Fields* found, int field_id, int kind, int64_t* value) noexcept nogil:
    """Read an integer field; False if it is missing or of another type."""
    cdef uint64_t raw = 0
    if found.kind[field_id] != kind or _varint(w, found.start[field_id], &raw) < 0:
        return False
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return True


cdef bint _binary(Walk* w, Fields* found, int field_id, const unsigned char** start, Py_ssize_t* size) noexcept nogil:
    """Locate the bytes of a binary field; False if it is missing or of another type."""
    cdef uint64_t length = 0
    cdef Py_ssize_t pos
    if found.kind[field_id] != CT_BINARY:
        return False
    pos = _varint(w, found.start[field_id], &length)
    if pos < 0:
        return False
    start[0] = w.data + pos
    size[0] = <Py_ssize_t>length
    return True


cdef int _boolean(Fields* found, int field_id) noexcept nogil:
    """Return the type code of a boolean, which is its value; 0 if it is missing."""
    cdef int kind = found.kind[field_id]
    return kind if kind == CT_TRUE or kind == CT_FALSE else 0


def compact_struct(const unsigned char[::1] data, Py_ssize_t pos, int max_depth):
    """Walk the struct at `pos`. Return ({field id: (type, header start, value start, value end)}, end of the struct).

    Types are the codes of the compact protocol; booleans (1 true, 2 false) have empty values.

    Raises:
        CompactError: the bytes aren't such a struct, or nest deeper than `max_depth`.
    """
    cdef Walk w
    cdef int kind = 0, field_id = 0
    cdef Py_ssize_t header, value
    cdef dict fields = {}
    _walk_open(&w, data, pos)
    while True:
        header = pos
        pos = _field_head(&w, pos, &kind, &field_id)
        if pos < 0:
            _walk_raise(&w)
        if kind == 0:
            return fields, pos
        value = pos
        pos = _skip(&w, pos, kind, max_depth - 1, False)
        if pos < 0:
            _walk_raise(&w)
        if field_id in fields:
            raise CompactError(_WALK_REASONS[WALK_FIELD_ID], header)
        fields[field_id] = (kind, header, value, pos)


def compact_list(const unsigned char[::1] data, Py_ssize_t pos, int max_depth, Py_ssize_t most):
    """Walk the list at `pos`. Return (element type, [start of each element ..., end of the list]).

    Raises:
        CompactLimit: it has more than `most` elements. A start takes 40 bytes of memory, and an element one in the file.
        CompactError: the bytes aren't such a list, or nest deeper than `max_depth`.
    """
    cdef Walk w
    cdef int kind
    cdef uint64_t size, i
    cdef list starts
    _walk_open(&w, data, pos)
    pos = _list_head(&w, pos, &kind, &size)
    if pos < 0:
        _walk_raise(&w)
    if size > <uint64_t>max(most, 0):
        raise CompactLimit("a list of more elements than are read", pos)
    starts = []
    for i in range(size):
        starts.append(pos)
        pos = _skip(&w, pos, kind, max_depth - 1, True)
        if pos < 0:
            _walk_raise(&w)
    starts.append(pos)
    return kind, starts


def varint(const unsigned char[::1] data, Py_ssize_t pos):
    """Return the unsigned integer of 64 bits at `pos`, 7 bits a byte, least significant first, and where it ends."""
    cdef Walk w
    cdef uint64_t value = 0
    _walk_open(&w, data, pos)
    pos = _varint(&w, pos, &value)
    if pos < 0:
        _walk_raise(&w)
    return value, pos


def encoded_varint(uint64_t value):
    """Return the bytes of an unsigned integer as `varint` reads it, in its shortest form."""
    cdef unsigned char[10] out
    cdef Py_ssize_t size = 0
    while value > 0x7F:
        out[size] = value & 0x7F | 0x80
        value >>= 7
        size += 1
    out[size] = <unsigned char>value
    return out[:size + 1]


def compact_int(const unsigned char[::1] data, Py_ssize_t pos):
    """Return the zigzag integer (i16, i32 or i64) at `pos`."""
    cdef Walk w
    cdef uint64_t raw = 0
    _walk_open(&w, data, pos)
    if _varint(&w, pos, &raw) < 0:
        _walk_raise(&w)
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


def compact_bytes(const unsigned char[::1] data, Py_ssize_t pos):
    """Return the bytes of the binary or string at `pos`."""
    cdef Walk w
    cdef uint64_t size = 0
    _walk_open(&w, data, pos)
    pos = _varint(&w, pos, &size)
    if pos < 0:
        _walk_raise(&w)
    if size > <uint64_t>(w.end - pos):
        raise CompactError(_WALK_REASONS[WALK_SIZE], pos)
    return bytes(data[pos:pos + <Py_ssize_t>size])
