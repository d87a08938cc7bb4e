# Counts set bits: with the processor's instruction if it has one (tested at run time, because wheels are built for
# all processors), else in words of 64 bits by adding neighbouring groups of bits.

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__) || defined(__clang__)
    #define BLOOM_ALWAYS static inline __attribute__((always_inline))
    #else
    #define BLOOM_ALWAYS static __forceinline
    #endif

    BLOOM_ALWAYS unsigned bloom_pairs(uint64_t x) {
        x -= (x >> 1) & 0x5555555555555555u;
        x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
        return (unsigned)((((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u) >> 56);
    }

    #define BLOOM_ONES_OF(name, attribute, count64, count32)                                    \\
        attribute static uint64_t bloom_ones_##name(const unsigned char* p, size_t size) {      \\
            uint64_t total = 0, word;                                                           \\
            size_t i = 0;                                                                       \\
            for (; i + 8 <= size; i += 8) {                                                     \\
                memcpy(&word, p + i, 8);                                                        \\
                total += count64(word);                                                         \\
            }                                                                                   \\
            for (; i < size; i++) total += count32(p[i]);                                       \\
            return total;                                                                       \\
        }                                                                                       \\
        attribute static double bloom_hits_##name(const unsigned char* p, size_t blocks, uint64_t* ones) { \\
            uint64_t total = 0;                                                                 \\
            double hits = 0;                                                                    \\
            for (size_t b = 0; b < blocks; b++, p += 32) {                                      \\
                double product = 1;                                                             \\
                for (int j = 0; j < 8; j++) {                                                   \\
                    uint32_t word;                                                              \\
                    memcpy(&word, p + j * 4, 4);                                                \\
                    unsigned set = (unsigned)count32(word);                                     \\
                    total += set;                                                               \\
                    product *= set;                                                             \\
                }                                                                               \\
                hits += product;                                                                \\
            }                                                                                   \\
            *ones = total;                                                                      \\
            return hits;                                                                        \\
        }

    #if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__) && !defined(BLOOM_PORTABLE)
    #define BLOOM_X86  /* tests define BLOOM_PORTABLE, to run what other processors run */
    #endif
    #ifdef BLOOM_X86
    BLOOM_ONES_OF(plain, , bloom_pairs, bloom_pairs)
    BLOOM_ONES_OF(native, __attribute__((target("popcnt"))), __builtin_popcountll, __builtin_popcount)
    static uint64_t bloom_ones(const unsigned char* p, size_t size) {
        return __builtin_cpu_supports("popcnt") ? bloom_ones_native(p, size) : bloom_ones_plain(p, size);
    }
    static double bloom_hits(const unsigned char* p, size_t blocks, uint64_t* ones) {
        return __builtin_cpu_supports("popcnt") ? bloom_hits_native(p, blocks, ones) : bloom_hits_plain(p, blocks,
        ones);
    }
    #else
    #if defined(__GNUC__) || defined(__clang__)
    BLOOM_ONES_OF(plain, , __builtin_popcountll, __builtin_popcount)
    #else
    BLOOM_ONES_OF(plain, , bloom_pairs, bloom_pairs)
    #endif
    #define bloom_ones bloom_ones_plain
    #define bloom_hits bloom_hits_plain
    #endif
    """
    uint64_t bloom_ones(const unsigned char* p, size_t size) noexcept nogil
    double bloom_hits(const unsigned char* p, size_t blocks, uint64_t* ones) noexcept nogil


def count_bits(const unsigned char[::1] data not None):
    """Return the number of set bits."""
    cdef size_t size = data.shape[0]
    cdef uint64_t total
    if size == 0:
        return 0
    cdef const unsigned char* p = &data[0]
    with nogil:
        total = bloom_ones(p, size)
    return total


def sbbf_stats(const unsigned char[::1] bitset not None):
    """Return the number of set bits, and the false-positive probability of a random hash.

    The probability is exact for the bitset: the mean over blocks of the product over the 8 words of popcount/32.
    """
    cdef Py_ssize_t z = _blocks(bitset.shape[0])
    cdef const unsigned char* bits = &bitset[0]
    cdef uint64_t total
    cdef double hits
    with nogil:
        hits = bloom_hits(bits, z, &total)
    return total, hits / (<double>(1ULL << 40)) / z
