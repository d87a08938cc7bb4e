# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled module: hashing, filters, and decoding of Parquet pages, ORC streams and Thrift structures.

Arguments and results are objects with the buffer protocol and unsigned bytes (the bytes of a pyarrow.Buffer are
signed: cast a memoryview of it to "B"). The loops use no Python objects and run without the GIL. Every bound is
checked before or in the loops, so that no input makes them read or write outside of a buffer.
"""

import sys

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

if sys.byteorder != "little":
    raise ImportError("bloomcli needs a little-endian machine")

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define BLOOM_PREFETCH(p) __builtin_prefetch((p), 1)
    #else
    #define BLOOM_PREFETCH(p) ((void)(p))
    #endif
    """
    void BLOOM_PREFETCH(const void* p) noexcept nogil

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #define BLOOM_KEEP_FREED() (mallopt(M_MMAP_THRESHOLD, 4 << 20), mallopt(M_TRIM_THRESHOLD, 16 << 20))
    #else
    #define BLOOM_KEEP_FREED() ((void)0)
    #endif
    """
    void BLOOM_KEEP_FREED() noexcept nogil


def keep_freed_memory():
    """Keep up to 16 MiB of freed memory in each of glibc's arenas for the whole process. By default, the kernel would
    take back and clear the same pages for each column chunk, which takes up to a third of the time of its decoding."""
    BLOOM_KEEP_FREED()


# XXH64, seed 0. Source: the xxHash specification (doc/xxhash_spec.md), XXH64.


cdef inline uint64_t _rotl(uint64_t x, int r) noexcept nogil:
    return (x << r) | (x >> (64 - r))


cdef inline uint64_t _load64(const unsigned char* p) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, p, 8)
    return v


cdef inline uint32_t _load32(const unsigned char* p) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, p, 4)
    return v


cdef inline uint64_t _round(uint64_t acc, uint64_t lane) noexcept nogil:
    return _rotl(acc + lane * 0xC2B2AE3D27D4EB4FULL, 31) * 0x9E3779B185EBCA87ULL


cdef inline uint64_t _merge(uint64_t acc, uint64_t v) noexcept nogil:
    return (acc ^ _round(0, v)) * 0x9E3779B185EBCA87ULL + 0x85EBCA77C2B2AE63ULL


cdef inline uint64_t _avalanche(uint64_t h) noexcept nogil:
    h ^= h >> 33
    h *= 0xC2B2AE3D27D4EB4FULL
    h ^= h >> 29
    h *= 0x165667B19E3779F9ULL
    return h ^ (h >> 32)


cdef inline uint64_t _tail8(uint64_t h, uint64_t lane) noexcept nogil:
    return _rotl(h ^ _round(0, lane), 27) * 0x9E3779B185EBCA87ULL + 0x85EBCA77C2B2AE63ULL


cdef inline uint64_t _tail4(uint64_t h, uint64_t lane) noexcept nogil:
    return _rotl(h ^ (lane * 0x9E3779B185EBCA87ULL), 23) * 0xC2B2AE3D27D4EB4FULL + 0x165667B19E3779F9ULL


cdef inline uint64_t _xxh64_4(const unsigned char* p) noexcept nogil:
    return _avalanche(_tail4(0x27D4EB2F165667C5ULL + 4, _load32(p)))


cdef inline uint64_t _xxh64_8(const unsigned char* p) noexcept nogil:
    return _avalanche(_tail8(0x27D4EB2F165667C5ULL + 8, _load64(p)))


cdef uint64_t _xxh64(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    return _xxh64_seeded(p, size, 0)


cdef inline uint64_t _xxh64_seeded(const unsigned char* p, Py_ssize_t size, uint64_t seed) noexcept nogil:
    cdef const unsigned char* end = p + size
    cdef uint64_t h, v1, v2, v3, v4
    if size >= 32:
        v1 = seed + 0x60EA27EEADC0B5D6ULL  # P1 + P2, modulo 2^64
        v2 = seed + 0xC2B2AE3D27D4EB4FULL
        v3 = seed
        v4 = seed - <uint64_t>0x9E3779B185EBCA87ULL
        while end - p >= 32:
            v1 = _round(v1, _load64(p))
            v2 = _round(v2, _load64(p + 8))
            v3 = _round(v3, _load64(p + 16))
            v4 = _round(v4, _load64(p + 24))
            p += 32
        h = _rotl(v1, 1) + _rotl(v2, 7) + _rotl(v3, 12) + _rotl(v4, 18)
        h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
    else:
        h = seed + 0x27D4EB2F165667C5ULL
    return _finish(h + <uint64_t>size, p, end)


cdef inline uint64_t _finish(uint64_t h, const unsigned char* p, const unsigned char* end) noexcept nogil:
    """Hash the bytes after the last whole stripe of 32 bytes."""
    while end - p >= 8:
        h = _tail8(h, _load64(p))
        p += 8
    if end - p >= 4:
        h = _tail4(h, _load32(p))
        p += 4
    while p < end:
        h = _rotl(h ^ (p[0] * <uint64_t>0x27D4EB2F165667C5ULL), 11) * 0x9E3779B185EBCA87ULL
        p += 1
    return _avalanche(h)


def xxh64(const unsigned char[::1] data not None):
    """Return the XXH64 of one value, with seed 0."""
    if data.shape[0] == 0:
        return _xxh64(<const unsigned char*>b"", 0)
    cdef const unsigned char* p = &data[0]
    cdef Py_ssize_t size = data.shape[0]
    cdef uint64_t found
    if size < 4096:
        return _xxh64(p, size)
    with nogil:
        found = _xxh64(p, size)
    return found


cdef _check_range(Py_ssize_t offset, Py_ssize_t length):
    if offset < 0 or length < 0:
        raise ValueError("offset and length can't be negative")


def hash_binary(const unsigned char[::1] offsets not None, const unsigned char[::1] data not None, Py_ssize_t count,
                unsigned char[::1] out not None):
    """Compute the XXH64 of `count` values, which lie between neighbouring `offsets`, int64s, in `data`.

    Writes uint64s in native byte order to `out` (8 bytes per value).
    """
    if count < 0 or offsets.shape[0] // 8 <= count:
        raise ValueError("fewer offsets than requested")
    if out.shape[0] // 8 < count:
        raise ValueError("the output has no room for the hashes")
    cdef const unsigned char* base = &data[0] if data.shape[0] else <const unsigned char*>b""
    cdef const unsigned char* at = &offsets[0]
    cdef unsigned char* o = &out[0] if out.shape[0] else NULL
    cdef Py_ssize_t i, size = data.shape[0]
    cdef int64_t start, stop
    cdef uint64_t h
    cdef bint bad = False
    with nogil:
        for i in range(count):
            start = <int64_t>_load64(at + i * 8)
            stop = <int64_t>_load64(at + i * 8 + 8)
            if start < 0 or stop < start or stop > size:
                bad = True
                break
            h = _xxh64(base + start, stop - start)
            memcpy(o + i * 8, &h, 8)
    if bad:
        raise ValueError("an offset is outside the data")


def has_zero(const unsigned char[::1] values not None, Py_ssize_t width, Py_ssize_t count):
    """Return whether one of `count` floating-point values of 2, 4 or 8 bytes is +0 or -0."""
    if width not in (2, 4, 8) or count < 0 or values.shape[0] // width < count:
        raise ValueError("fewer values than requested, or not a floating-point width")
    cdef const unsigned char* p = &values[0] if count else NULL
    cdef Py_ssize_t i
    cdef bint found = False
    with nogil:
        for i in range(count):
            if width == 8:
                found = (_load64(p + i * 8) << 1) == 0
            elif width == 4:
                found = <uint32_t>(_load32(p + i * 4) << 1) == 0
            else:
                found = p[i * 2] == 0 and (p[i * 2 + 1] & 0x7F) == 0
            if found:
                break
    return found


# Split-block Bloom filter. Source: the Apache Parquet format's BloomFilter.md.
cdef uint32_t[8] SALT
SALT[:] = [0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31]


cdef Py_ssize_t _blocks(Py_ssize_t nbytes) except -1:
    if nbytes <= 0 or nbytes % 32:
        raise ValueError("a bitset is a positive multiple of 32 bytes")
    return nbytes // 32


cdef inline Py_ssize_t _block(uint64_t h, uint64_t z) noexcept nogil:
    return <Py_ssize_t>(((h >> 32) * z) >> 32)


def sbbf_insert(unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None, Py_ssize_t count):
    """Insert `count` hashes (uint64s in native byte order)."""
    cdef uint64_t z = <uint64_t>_blocks(bitset.shape[0])
    if count < 0 or hashes.shape[0] // 8 < count:
        raise ValueError("fewer hashes than requested")
    if count == 0:
        return
    cdef unsigned char* bits = &bitset[0]
    cdef const unsigned char* hs = &hashes[0]
    cdef Py_ssize_t i, j, ahead = 24
    cdef uint64_t h
    cdef uint32_t key
    cdef uint32_t[8] words
    cdef unsigned char* block
    with nogil:
        for i in range(count):
            if i + ahead < count:
                BLOOM_PREFETCH(bits + 32 * _block(_load64(hs + (i + ahead) * 8), z))
            h = _load64(hs + i * 8)
            block = bits + 32 * _block(h, z)
            key = <uint32_t>h
            memcpy(words, block, 32)
            for j in range(8):
                words[j] |= <uint32_t>1 << ((key * SALT[j]) >> 27)
            memcpy(block, words, 32)


cdef _check_blocks(Py_ssize_t blocks):
    if not 0 < blocks <= 1 << 30:
        raise ValueError(f"a filter can't have {blocks} blocks")


cdef inline uint64_t _least_hash(Py_ssize_t block, uint64_t blocks) noexcept nogil:
    """Return the highest 32 bits of the least hash that selects a block of a filter of `blocks` blocks."""
    return ((<uint64_t>block << 32) + blocks - 1) / blocks


cdef void _resize(const unsigned char* part, uint64_t source, Py_ssize_t blocks, Py_ssize_t first, Py_ssize_t count,
                  unsigned char* out) noexcept nogil:
    """Write `count` blocks, from `first` on, of a filter of `blocks` blocks. Each is the OR of all blocks that share
    hashes with it in a filter of `source` blocks, of which `part` has the ones needed."""
    cdef uint64_t least = _least_hash(first, blocks), end
    cdef Py_ssize_t held = <Py_ssize_t>(least * source >> 32), b, s, j
    cdef uint64_t[4] bits
    cdef const unsigned char* block
    for b in range(count):
        end = _least_hash(first + b + 1, blocks)
        s = <Py_ssize_t>(least * source >> 32)
        memcpy(bits, part + (s - held) * 32, 32)
        for s in range(s + 1, <Py_ssize_t>((end - 1) * source >> 32) + 1):
            block = part + (s - held) * 32
            for j in range(4):
                bits[j] |= _load64(block + j * 8)
        memcpy(out + b * 32, bits, 32)
        least = end


def sbbf_resized(const unsigned char[::1] bitset not None, Py_ssize_t blocks):
    """Return a filter of `blocks` blocks with every value of this one: each block is the OR of all blocks that share
    hashes with it.

    Block i of z has the hashes from i/z to (i+1)/z of their range. If z is a multiple of `blocks`, the result is the
    filter that the values build; otherwise it has bits of neighbouring values too.
    """
    return sbbf_resized_part(bitset, _blocks(bitset.shape[0]), blocks, 0, blocks)


def sbbf_needed(Py_ssize_t source, Py_ssize_t blocks, Py_ssize_t first, Py_ssize_t count):
    """Return the first block, and the number of blocks, of a filter of `source` blocks that share hashes with `count`
    blocks, from `first` on, of a filter of `blocks` blocks."""
    _check_blocks(source)
    _check_blocks(blocks)
    if first < 0 or count < 1 or first > blocks - count:
        raise ValueError("there are no such blocks")
    cdef Py_ssize_t low = <Py_ssize_t>(_least_hash(first, blocks) * source >> 32)
    return low, <Py_ssize_t>((_least_hash(first + count, blocks) - 1) * source >> 32) + 1 - low


def sbbf_resized_part(const unsigned char[::1] part not None, Py_ssize_t source, Py_ssize_t blocks, Py_ssize_t first,
                      Py_ssize_t count):
    """Return blocks of `sbbf_resized`. `part`: the blocks that `sbbf_needed` names."""
    if _blocks(part.shape[0]) < sbbf_needed(source, blocks, first, count)[1]:
        raise ValueError("fewer blocks than are needed")
    result = bytearray(count * 32)
    cdef unsigned char[::1] view = result
    with nogil:
        _resize(&part[0], source, blocks, first, count, &view[0])
    return result


include "bits.pxi"
include "lookups.pxi"
include "compact.pxi"
include "page_header.pxi"
include "column_chunk.pxi"
include "filter_facts.pxi"
include "page_index.pxi"
include "filter_query.pxi"
include "bounds.pxi"
include "pages.pxi"
include "delta.pxi"
include "alp.pxi"
include "delta_byte_array.pxi"
include "crc.pxi"
include "rename.pxi"
include "chained.pxi"
include "orc.pxi"
include "orc_runs.pxi"
include "orc_decimals.pxi"
include "orc_times.pxi"
include "orc_bounds.pxi"
include "index.pxi"
