/* The codecs of pages. */
#include <libdeflate.h>
#include <zstd.h>
#include <zstd_errors.h>
#if HAVE_SNAPPY
#include <snappy-c.h>
#endif
#if HAVE_LZ4
#include <lz4.h>
#endif

#include "base/parquet.h"

static int wrong_size(struct err *e)
{
    return err_set(e, ERR_FORMAT, "it does not decompress to the size that it states");
}

static int unpack_gzip(const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    enum libdeflate_result r = LIBDEFLATE_SUCCESS;

    if (!d)
        return err_set(e, ERR_NOMEM, "out of memory");
    while (n && r == LIBDEFLATE_SUCCESS) { /* a page may be several members */
        size_t used = 0, made = 0;
        r = libdeflate_gzip_decompress_ex(d, p, n, dst, size, &used, &made);
        p += used;
        n -= used;
        dst += made;
        size -= made;
    }
    libdeflate_free_decompressor(d);
    if (r == LIBDEFLATE_BAD_DATA)
        return err_set(e, ERR_FORMAT, "damaged gzip data");
    return r != LIBDEFLATE_SUCCESS || size ? wrong_size(e) : 0;
}

static int unpack_zstd(const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e)
{
    size_t k = ZSTD_decompress(dst, size, p, n);

    if (ZSTD_getErrorCode(k) == ZSTD_error_memory_allocation)
        return err_set(e, ERR_NOMEM, "out of memory for zstd");
    if (ZSTD_isError(k))
        return err_set(e, ERR_FORMAT, "damaged zstd data: %s", ZSTD_getErrorName(k));
    return k == size ? 0 : wrong_size(e);
}

static int unpack_snappy(const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e)
{
#if HAVE_SNAPPY
    size_t k = 0;

    if (snappy_uncompressed_length((const char *)p, n, &k) != SNAPPY_OK)
        return err_set(e, ERR_FORMAT, "damaged snappy data");
    if (k != size)
        return wrong_size(e);
    if (snappy_uncompress((const char *)p, n, (char *)dst, &k) != SNAPPY_OK)
        return err_set(e, ERR_FORMAT, "damaged snappy data");
    return 0;
#else
    (void)p, (void)n, (void)dst, (void)size;
    return err_set(e, ERR_UNSUPPORTED, "it is compressed with snappy, and this quern was built without libsnappy");
#endif
}

#if HAVE_LZ4
static int unpack_lz4_raw(const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e)
{
    int k = LZ4_decompress_safe((const char *)p, (char *)dst, (int)n, (int)size);

    if (k < 0)
        return err_set(e, ERR_FORMAT, "damaged lz4 data");
    return (size_t)k == size ? 0 : wrong_size(e);
}

static size_t big_endian(const uint8_t *p)
{
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* As Hadoop writes it: blocks, each behind its two sizes.  false: it is none of that. */
static bool unpack_hadoop(const uint8_t *p, size_t n, uint8_t *dst, size_t size)
{
    while (n >= 8) {
        size_t made = big_endian(p), stored = big_endian(p + 4);

        if (stored > n - 8 || made > size || unpack_lz4_raw(p + 8, stored, dst, made, NULL) < 0)
            return false;
        p += 8 + stored;
        n -= 8 + stored;
        dst += made;
        size -= made;
    }
    return n == 0 && size == 0;
}
#endif

/* hadoop: the codec LZ4, under which older writers stored the same as LZ4_RAW. */
static int unpack_lz4(const uint8_t *p, size_t n, uint8_t *dst, size_t size, bool hadoop, struct err *e)
{
#if HAVE_LZ4
    return hadoop && unpack_hadoop(p, n, dst, size) ? 0 : unpack_lz4_raw(p, n, dst, size, e);
#else
    (void)p, (void)n, (void)dst, (void)size, (void)hadoop;
    return err_set(e, ERR_UNSUPPORTED, "it is compressed with lz4, and this quern was built without liblz4");
#endif
}

int parquet_unpack_check(enum parquet_codec codec, size_t n, size_t size, struct err *e)
{
    /* How many bytes one can stand for: a copy of snappy 64 in 3; of lz4 255; a match of deflate 258 in 2 bits; a block of
     * zstd 128 KiB in 4. */
    static const unsigned most[] = {[PARQUET_PLAIN_CODEC] = 1, [PARQUET_SNAPPY] = 22, [PARQUET_GZIP] = 1032, [PARQUET_LZ4] = 255,
                                    [PARQUET_ZSTD] = 32768, [PARQUET_LZ4_RAW] = 255};

    if ((unsigned)codec < sizeof most / sizeof *most && most[codec] && size / most[codec] > n)
        return err_set(e, ERR_FORMAT, "its %zu bytes cannot decompress to %zu", n, size);
    return 0;
}

int parquet_unpack(enum parquet_codec codec, const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e)
{
    switch (codec) {
    case PARQUET_PLAIN_CODEC:
        if (n != size)
            return wrong_size(e);
        memcpy(dst, p, n);
        return 0;
    case PARQUET_SNAPPY: return unpack_snappy(p, n, dst, size, e);
    case PARQUET_GZIP: return unpack_gzip(p, n, dst, size, e);
    case PARQUET_ZSTD: return unpack_zstd(p, n, dst, size, e);
    case PARQUET_LZ4:
    case PARQUET_LZ4_RAW: return unpack_lz4(p, n, dst, size, codec == PARQUET_LZ4, e);
    case PARQUET_LZO: return err_set(e, ERR_UNSUPPORTED, "it is compressed with lzo, which quern does not read");
    case PARQUET_BROTLI: return err_set(e, ERR_UNSUPPORTED, "it is compressed with brotli, which quern does not read");
    }
    return err_set(e, ERR_UNSUPPORTED, "it is compressed with codec %d, which quern does not know", (int)codec);
}
