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
    __attribute__((target("avx2")))
    static size_t bloom_check_block_avx2(const unsigned char* block, const unsigned char* hashes, size_t count,
                                         unsigned char* out) {
        const __m256i one = _mm256_set1_epi32(1), low = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
        const __m256i words = _mm256_loadu_si256((const __m256i*)block);
        size_t there = 0, i = 0;
        for (; i + 8 <= count; i += 8) {
            __m256i first = _mm256_loadu_si256((const __m256i*)(hashes + i * 8));
            __m256i second = _mm256_loadu_si256((const __m256i*)(hashes + i * 8 + 32));
            __m256i h = _mm256_blend_epi32(_mm256_permutevar8x32_epi32(first, low),
                                           _mm256_permutevar8x32_epi32(second, low), 0xF0);
            __m256i hit = one;
            for (int j = 0; j < 8 && !_mm256_testz_si256(hit, hit); j++) {
                __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(h, _mm256_set1_epi32((int)BLOOM_SALT[j])), 27);
                __m256i word = _mm256_permutevar8x32_epi32(words, _mm256_set1_epi32(j));
                hit = _mm256_and_si256(hit, _mm256_srlv_epi32(word, bit));
            }
            if (_mm256_testz_si256(hit, hit)) {
                memset(out + i, 0, 8);
                continue;
            }
            uint32_t each[8];
            _mm256_storeu_si256((__m256i*)each, hit);
            for (int k = 0; k < 8; k++)
                there += out[i + k] = (unsigned char)each[k];
        }
        for (; i < count; i++)
            there += out[i] = (unsigned char)bloom_has(block, bloom_hash_at(hashes, i));
        return there;
    }
    static size_t bloom_check(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                              unsigned char* out) {
        return __builtin_cpu_supports("avx2") ? bloom_check_avx2(bits, z, hashes, count, out)
                                              : bloom_check_plain(bits, z, hashes, count, out);
    }
    static size_t bloom_check_block(const unsigned char* block, const unsigned char* hashes, size_t count,
                                    unsigned char* out) {
        if (__builtin_cpu_supports("avx2"))
            return bloom_check_block_avx2(block, hashes, count, out);
        size_t there = 0;
        for (size_t i = 0; i < count; i++)
            there += out[i] = (unsigned char)bloom_has(block, bloom_hash_at(hashes, i));
        return there;
    }
    #else
    #define bloom_check bloom_check_plain
    static size_t bloom_check_block(const unsigned char* block, const unsigned char* hashes, size_t count,
                                    unsigned char* out) {
        size_t there = 0;
        for (size_t i = 0; i < count; i++)
            there += out[i] = (unsigned char)bloom_has(block, bloom_hash_at(hashes, i));
        return there;
    }
    #endif

    /* For ascending hashes, many in each block: tests eight hashes of a block at a time. Few of them have the bit that
       is tested first. */
    static size_t bloom_check_ascending(const unsigned char* bits, uint64_t z, const unsigned char* hashes,
                                        size_t count, unsigned char* out) {
        size_t there = 0, i = 0;
        while (i < count) {
            const unsigned char* block = BLOOM_BLOCK_AT(bits, bloom_hash_at(hashes, i), z);
            size_t known = i, end = count;  /* `known` is in the block, `end` isn't */
            for (size_t step = 1; known + step < count; step *= 2) {
                if (BLOOM_BLOCK_AT(bits, bloom_hash_at(hashes, known + step), z) != block) {
                    end = known + step;
                    break;
                }
                known += step;
            }
            while (known + 1 < end) {
                size_t middle = known + (end - known) / 2;
                if (BLOOM_BLOCK_AT(bits, bloom_hash_at(hashes, middle), z) == block)
                    known = middle;
                else
                    end = middle;
            }
            there += bloom_check_block(block, hashes + i * 8, end - i, out + i);
            i = end;
        }
        return there;
    }
    """
    size_t bloom_check(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
                       unsigned char* out) noexcept nogil
    size_t bloom_check_ascending(const unsigned char* bits, uint64_t z, const unsigned char* hashes, size_t count,
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
