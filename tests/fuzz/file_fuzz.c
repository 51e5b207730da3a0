/* Compressed files: reads everything, over the damage; and bzip2 as libbz2 does by itself, xz as
 * liblzma, lz4 as liblz4. */
#include <stdlib.h>
#include <string.h>

#if HAVE_BZ2
#include <bzlib.h>
#endif
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_LZ4
#include <lz4frame.h>
#endif

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 32 << 20 }; /* bombs: what is read of one */

/* What came before each damage. */
struct seen {
    size_t at[16];
    uint64_t sum; /* of the bytes */
    int n;
};

static struct seen read_all(struct span bytes, size_t step)
{
    static char out[1 << 16];
    struct file_in *f;
    struct err e;
    size_t got = 0;
    struct seen s = {0};

    if (file_open_mem(&f, "mem", bytes, &e) < 0)
        abort();
    for (int i = 0; i < 1000; i++) {
        ssize_t k;
        while (got < OUT_MAX && (k = file_read(f, out, step, &e)) > 0) {
            got += (size_t)k;
            for (ssize_t j = 0; j < k; j++)
                s.sum = s.sum * 31 + (uint8_t)out[j];
        }
        if (got >= OUT_MAX)
            break;
        if (k == 0)
            break;
        if (e.code != k || !e.msg[0])
            abort();
        if (s.n < 16)
            s.at[s.n++] = got;
        if (file_skip_member(f, &e) != 1)
            break;
        if (file_member_offset(f) > bytes.n || file_consumed(f) > bytes.n)
            abort();
    }
    file_close(f);
    return s;
}

/* However much is asked for at a time, damages or not. */
static void check_steps(struct span bytes)
{
    struct seen all = read_all(bytes, 1 << 16);

    for (size_t step = 1; step < 10000; step = step * 31 + 3) {
        struct seen s = read_all(bytes, step);
        if (memcmp(&s, &all, sizeof s) != 0)
            abort();
    }
}

#if HAVE_BZ2
/* The first stream is whole, with these bytes, when libbz2 says so, and all of them are only then. */
static void check_bz2(struct span bytes, int threads)
{
    static char ours[1 << 20], theirs[1 << 20];
    unsigned n = sizeof theirs;
    struct file_in *f;
    struct err e;
    size_t got = 0;
    ssize_t k = 1;
    int r;

    if (bytes.n < 10 || memcmp(bytes.p, "BZh", 3) != 0)
        return;
    r = BZ2_bzBuffToBuffDecompress(theirs, &n, (char *)(uintptr_t)bytes.p, (unsigned)bytes.n, 0, 0);
    if (file_open_mem(&f, "mem", bytes, &e) < 0)
        abort();
    if (r == BZ_OK && file_codec(f) != FILE_BZ2)
        abort();
    file_set_threads(f, threads);
    while (file_codec(f) == FILE_BZ2 && got < sizeof ours && (k = file_read(f, ours + got, sizeof ours - got, &e)) > 0)
        got += (size_t)k;
    if (r == BZ_OK && (got < n || memcmp(ours, theirs, n) != 0))
        abort();
    if (file_codec(f) == FILE_BZ2 && k == 0 && r != BZ_OK)
        abort();
    file_close(f);
}
#endif

#if HAVE_LZMA || HAVE_LZ4
/* What a whole file of this codec gives is the same as these bytes, if the library could read it. */
static void check_same(struct span bytes, enum file_codec codec, const char *theirs, size_t n, bool good)
{
    static char ours[1 << 20];
    struct file_in *f;
    struct err e;
    size_t got = 0;
    ssize_t k = 1;

    if (file_open_mem(&f, "mem", bytes, &e) < 0)
        abort();
    while (file_codec(f) == codec && got < sizeof ours && (k = file_read(f, ours + got, sizeof ours - got, &e)) > 0)
        got += (size_t)k;
    if (file_codec(f) == codec && good && (k < 0 || got != n || memcmp(ours, theirs, n) != 0))
        abort();
    if (file_codec(f) == codec && !good && k == 0)
        abort();
    file_close(f);
}
#endif

#if HAVE_LZMA
static void check_xz(struct span bytes)
{
    static uint8_t theirs[1 << 20];
    uint64_t memory = 64 << 20;
    size_t in = 0, n = 0;
    lzma_ret r;

    if (bytes.n < 6 || memcmp(bytes.p, "\xFD" "7zXZ", 6) != 0)
        return;
    r = lzma_stream_buffer_decode(&memory, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK, NULL, (const uint8_t *)bytes.p, &in,
                                  bytes.n, theirs, &n, sizeof theirs - 1);
    if (r == LZMA_OK || r == LZMA_DATA_ERROR || r == LZMA_FORMAT_ERROR)
        check_same(bytes, FILE_XZ, (char *)theirs, n, r == LZMA_OK);
}
#endif

#if HAVE_LZ4
/* A single frame, without a dictionary. */
static void check_lz4(struct span bytes)
{
    static char theirs[1 << 20];
    size_t n = sizeof theirs - 1, used = bytes.n, r;
    LZ4F_dctx *z;

    if (bytes.n < 6 || memcmp(bytes.p, "\x04\x22\x4D\x18", 4) != 0 || (bytes.p[4] & 1))
        return;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
        abort();
    r = LZ4F_decompress(z, theirs, &n, bytes.p, &used, NULL);
    LZ4F_freeDecompressionContext(z);
    if (r == 0 && used == bytes.n)
        check_same(bytes, FILE_LZ4, theirs, n, true);
    else if (LZ4F_isError(r))
        check_same(bytes, FILE_LZ4, theirs, 0, false);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};

#if HAVE_BZ2
    check_bz2(s, 1);
    check_bz2(s, 3);
#endif
#if HAVE_LZMA
    check_xz(s);
#endif
#if HAVE_LZ4
    check_lz4(s);
#endif

    check_steps(s);
    return 0;
}
