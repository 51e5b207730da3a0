/* Compressed files: reads everything, over the damage; and bzip2 as libbz2 does by itself. */
#include <stdlib.h>
#include <string.h>

#if HAVE_BZ2
#include <bzlib.h>
#endif

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 32 << 20 }; /* bombs: what is read of one */

static void read_all(struct span bytes)
{
    static char out[1 << 16];
    struct file_in *f;
    struct err e;
    size_t got = 0;

    if (file_open_mem(&f, "mem", bytes, &e) < 0)
        abort();
    for (int i = 0; i < 1000; i++) {
        ssize_t k;
        while (got < OUT_MAX && (k = file_read(f, out, sizeof out, &e)) > 0)
            got += (size_t)k;
        if (got >= OUT_MAX)
            break;
        if (k == 0)
            break;
        if (e.code != k || !e.msg[0])
            abort();
        if (file_skip_member(f, &e) != 1)
            break;
        if (file_member_offset(f) > bytes.n || file_consumed(f) > bytes.n)
            abort();
    }
    file_close(f);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};

#if HAVE_BZ2
    check_bz2(s, 1);
    check_bz2(s, 3);
#endif

    read_all(s);
    return 0;
}
