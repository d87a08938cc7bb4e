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

    #define BLOOM_HITS_OF(name, attribute, count32)                                             \\
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

    /* Tests define BLOOM_PORTABLE, to run what processors without these instructions run. */
    #if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__) && !defined(BLOOM_PORTABLE)
    #define BLOOM_X86
    #endif
    #if (defined(__GNUC__) || defined(__clang__)) && !defined(__x86_64__)
    BLOOM_HITS_OF(plain, , __builtin_popcount)
    #else
    BLOOM_HITS_OF(plain, , bloom_pairs)
    #endif
    #ifdef BLOOM_X86
    BLOOM_HITS_OF(native, __attribute__((target("popcnt"))), __builtin_popcount)
    static double bloom_hits(const unsigned char* p, size_t blocks, uint64_t* ones) {
        return __builtin_cpu_supports("popcnt") ? bloom_hits_native(p, blocks, ones) : bloom_hits_plain(p, blocks,
        ones);
    }
    #else
    #define bloom_hits bloom_hits_plain
    #endif
    """
    unsigned bloom_pairs(uint64_t x) noexcept nogil
    double bloom_hits(const unsigned char* p, size_t blocks, uint64_t* ones) noexcept nogil


def count_bits(const unsigned char[::1] data not None):
    """Return the number of set bits."""
    cdef size_t size = data.shape[0], i
    cdef uint64_t total
    if size == 0:
        return 0
    cdef const unsigned char* p = &data[0]
    with nogil:
        bloom_hits(p, size // 32, &total)
        for i in range(size - size % 32, size):
            total += bloom_pairs(p[i])
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
