# Decodes ALP pages: FLOAT and DOUBLE values as decimals, which are integers less the least of their vector, bit-packed.
# Values that aren't such decimals (-0.0, NaN, and others) are stored as they are.
#
# Source: the Apache Parquet format's AlpEncoding.md. A vector in which all values are equal takes 17 bytes, so a count
# says nothing about the number of bytes: no allocation depends on one. The offsets of vectors must be those that their
# sizes add up to, so that all readers read the same bytes.

cdef extern from *:
    """
    /* Literals, because the powers must be correctly rounded: a float that is rounded from a double may not be. */
    static const double BLOOM_TENS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
        1e14, 1e15, 1e16, 1e17, 1e18};
    static const double BLOOM_TENTHS[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11,
        1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};
    static const float BLOOM_TENS_F[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
    static const float BLOOM_TENTHS_F[] = {1e0f, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-7f, 1e-8f, 1e-9f, 1e-10f};
    """
    const double[19] BLOOM_TENS
    const double[19] BLOOM_TENTHS
    const float[11] BLOOM_TENS_F
    const float[11] BLOOM_TENTHS_F

cdef enum:
    ALP_HEADER = 7
    ALP_LOG_MIN = 3
    ALP_LOG_MAX = 15


cdef class Alp:
    """A reader of the `count` values of `width` bytes of an ALP page, whose header is at `pos`."""

    cdef const unsigned char[::1] view
    cdef Py_ssize_t offsets, position, left, vector, vector_size
    cdef int width
    cdef str fault

    def __cinit__(self, const unsigned char[::1] data not None, Py_ssize_t pos, Py_ssize_t count, int width):
        cdef const unsigned char* p = _start(data, pos) + pos
        cdef Py_ssize_t vectors, log
        if width != 4 and width != 8:
            raise ValueError("ALP is for values of 4 or 8 bytes")
        if data.shape[0] - pos < ALP_HEADER:
            raise PageError("the ALP header is cut off")
        if p[0] or p[1]:
            raise PageError(f"ALP in the compression mode {p[0]} and the integer encoding {p[1]}, which are reserved")
        log = p[2]
        if log < ALP_LOG_MIN or log > ALP_LOG_MAX:
            raise PageError(f"ALP vectors of 2^{log} values; 2^3 to 2^15 are valid")
        if <Py_ssize_t>_u32(p + 3) != count:
            raise PageError(f"the ALP header says {_u32(p + 3)} values, the page has {count}")
        self.vector_size = 1 << log
        vectors = (count + self.vector_size - 1) >> log
        self.offsets = pos + ALP_HEADER
        if (data.shape[0] - self.offsets) // 4 < vectors:
            raise PageError("the offsets of the ALP vectors run past the page's end")
        self.view = data
        self.width = width
        self.left = count
        self.position = self.offsets + 4 * vectors

    def read(self, unsigned char[::1] out not None):
        """Write the values of the next vectors to `out`, which has room for one or more. Return their number; 0 after
        the last."""
        cdef Py_ssize_t room = out.shape[0] // self.width, n, done = 0
        cdef bint sound = True
        if room < min(self.left, self.vector_size):
            raise ValueError("the output has no room for a vector")
        with nogil:
            while sound and self.left:
                n = min(self.left, self.vector_size)
                if n > room - done:
                    break
                sound = self._vector(&out[done * self.width], n)
                done += n
                self.left -= n
                self.vector += 1
        if not sound:
            raise PageError(f"ALP vector {self.vector - 1}: {self.fault}")
        return done

    cdef bint _wrong(self, str fault) noexcept with gil:
        self.fault = fault
        return False

    cdef bint _vector(self, unsigned char* out, Py_ssize_t n) noexcept nogil:
        """Decode the `n` values of the vector at `position`, and advance past it. False if it is damaged."""
        cdef const unsigned char* p = &self.view[0]
        cdef const unsigned char* q
        cdef Py_ssize_t at = self.position, end = self.view.shape[0], i, place, exceptions, packed
        cdef int width = self.width, bits, exponent, factor
        cdef uint64_t frame, mask
        cdef double wide
        cdef float narrow
        if <Py_ssize_t>_u32(p + self.offsets + 4 * self.vector) != at - self.offsets:
            return self._wrong("its offset isn't where the vectors before it end")
        if end - at < 5 + width:
            return self._wrong("its header is cut off")
        exponent, factor, exceptions = p[at], p[at + 1], p[at + 2] | (<Py_ssize_t>p[at + 3] << 8)
        frame = _load64(p + at + 4) if width == 8 else _load32(p + at + 4)
        bits = p[at + 4 + width]
        at += 5 + width
        if factor > exponent or exponent > (18 if width == 8 else 10):
            return self._wrong("an exponent or a factor that isn't valid")
        if bits > 8 * width:
            return self._wrong("more bits than a value has")
        if exceptions > n:
            return self._wrong("more exceptions than values")
        packed = (n * bits + 7) >> 3
        if end - at < packed + exceptions * (2 + width):
            return self._wrong("it runs past the page's end")
        mask = _mask(bits)
        if width == 8:
            for i in range(n):
                wide = <double><int64_t>(frame + (_packed_bits(p + at, end - at, i * bits, bits) & mask))
                wide = wide * BLOOM_TENS[factor] * BLOOM_TENTHS[exponent]
                memcpy(out + i * 8, &wide, 8)
        else:
            for i in range(n):
                narrow = <float><int32_t><uint32_t>(frame + (_packed_bits(p + at, end - at, i * bits, bits) & mask))
                narrow = narrow * BLOOM_TENS_F[factor] * BLOOM_TENTHS_F[exponent]
                memcpy(out + i * 4, &narrow, 4)
        q = p + at + packed
        for i in range(exceptions):
            place = q[2 * i] | (<Py_ssize_t>q[2 * i + 1] << 8)
            if place >= n:
                return self._wrong("an exception behind the vector's last value")
            memcpy(out + place * width, q + 2 * exceptions + i * width, <size_t>width)
        self.position = at + packed + exceptions * (2 + width)
        return True
