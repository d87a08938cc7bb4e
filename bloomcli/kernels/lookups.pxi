# Looks up many hashes in a split-block filter: eight words at a time if the processor has AVX2 (tested at run time,
# because wheels are built for all processors), else word by word. The blocks of the next hashes are prefetched, so
# that their cache misses overlap.

cdef extern from *:
    """
    #define BLOOM_AHEAD 24
    #define BLOOM_BLOCK_AT(bits, h, z) ((bits) + 32 * ((((h) >> 32) * (z)) >> 32))

    static const uint32_t BLOOM_SALT[8] = {
        0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU, 0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U
    };

    BLOOM_ALWAYS uint64_t bloom_hash_at(const unsigned char* hashes, size_t i) {
        uint64_t h;
        memcpy(&h, hashes + i * 8, 8);
        return h;
    }

    BLOOM_ALWAYS unsigned bloom_has(const unsigned char* block, uint64_t h) {
        uint32_t word, hit = 1;
        for (int j = 0; j < 8; j++) {
            memcpy(&word, block + j * 4, 4);
            hit &= word >> (((uint32_t)h * BLOOM_SALT[j]) >> 27);
        }
        return hit & 1;
    }

    static size_t bloom_check_plain(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                                    unsigned char* out) {
        size_t there = 0;
        for (size_t i = 0; i < count; i++) {
            if (i + BLOOM_AHEAD < count)
                BLOOM_PREFETCH(BLOOM_BLOCK_AT(bits, bloom_hash_at(hashes, i + BLOOM_AHEAD), z));
            uint64_t h = bloom_hash_at(hashes, i);
            there += out[i] = (unsigned char)bloom_has(BLOOM_BLOCK_AT(bits, h, z), h);
        }
        return there;
    }

    #ifdef BLOOM_X86
    #include <immintrin.h>
    __attribute__((target("avx2")))
    static size_t bloom_check_avx2(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                                   unsigned char* out) {
        const __m256i salt = _mm256_loadu_si256((const __m256i*)BLOOM_SALT), one = _mm256_set1_epi32(1);
        size_t there = 0;
        for (size_t i = 0; i < count; i++) {
            if (i + BLOOM_AHEAD < count)
                BLOOM_PREFETCH(BLOOM_BLOCK_AT(bits, bloom_hash_at(hashes, i + BLOOM_AHEAD), z));
            uint64_t h = bloom_hash_at(hashes, i);
            __m256i block = _mm256_loadu_si256((const __m256i*)BLOOM_BLOCK_AT(bits, h, z));
            __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)(uint32_t)h), salt);
            __m256i mask = _mm256_sllv_epi32(one, _mm256_srli_epi32(product, 27));
            there += out[i] = (unsigned char)_mm256_testc_si256(block, mask);
        }
        return there;
    }
    static size_t bloom_check(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                              unsigned char* out) {
        return __builtin_cpu_supports("avx2") ? bloom_check_avx2(bits, z, hashes, count, out)
                                              : bloom_check_plain(bits, z, hashes, count, out);
    }
    #else
    #define bloom_check bloom_check_plain
    #endif
    """
    size_t bloom_check(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                       unsigned char* out) noexcept nogil
    unsigned bloom_has(const unsigned char* block, uint64_t h) noexcept nogil


def sbbf_check(const unsigned char[::1] bitset not None, const unsigned char[::1] hashes not None,
               Py_ssize_t count, unsigned char[::1] out not None):
    """Look up `count` hashes and set out[i] to 1 for "maybe", 0 for "absent". Return how many are absent."""
    cdef Py_ssize_t z = _blocks(bitset.shape[0])
    cdef const unsigned char* bits = &bitset[0]
    cdef size_t there
    if count < 0 or hashes.shape[0] // 8 < count or out.shape[0] < count:
        raise ValueError("fewer hashes than requested, or no room for the answers")
    if count == 0:
        return 0
    with nogil:
        there = bloom_check(bits, z, &hashes[0], count, &out[0])
    return count - <Py_ssize_t>there


cdef enum:
    LOOKUP_BATCH = 4096


cdef struct Positions:
    int64_t* items    # allocated by malloc
    Py_ssize_t count
    Py_ssize_t room


cdef bint _append_ones(Positions* found, const unsigned char* flags, Py_ssize_t count, Py_ssize_t ones,
                       Py_ssize_t first) noexcept nogil:
    """Append the positions of `ones` flags that are 1, each added to `first`; False if there is no memory."""
    cdef Py_ssize_t i, room
    cdef int64_t* items
    if ones == 0:
        return True
    if found.count + ones > found.room:
        room = 2 * (found.count + ones)
        items = <int64_t*>realloc(found.items, <size_t>room * 8)
        if items == NULL:
            return False
        found.items, found.room = items, room
    for i in range(count):
        if flags[i]:
            found.items[found.count] = first + i
            found.count += 1
    return True


cdef inline bint _append(Positions* found, int64_t value) noexcept nogil:
    """Append a value; False if there is no memory."""
    cdef Py_ssize_t room
    cdef int64_t* items
    if found.count == found.room:
        room = max(2 * found.room, <Py_ssize_t>256)
        items = <int64_t*>realloc(found.items, <size_t>room * 8)
        if items == NULL:
            return False
        found.items, found.room = items, room
    found.items[found.count] = value
    found.count += 1
    return True
