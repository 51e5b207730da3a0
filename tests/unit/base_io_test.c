/* Files: plain, gzip, zstd, bzip2, xz, lz4; members; damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

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
#include "base/rng.h"
#include "tests/temp_folder.h"

/* Text that compresses a little; the same for the same n. */
static struct buf text_of(size_t n)
{
    struct buf b = {0};
    struct rng_mt r;

    rng_mt_seed(&r, 7);
    assert_int_equal(buf_reserve(&b, n + 32), 0);
    while (b.n < n)
        buf_printf(&b, "line %u of text\n", rng_mt_u32(&r));
    b.n = n;
    return b;
}

/* One gzip member made by zlib, appended. */
static void add_gzip(struct buf *b, const void *p, size_t n)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(buf_reserve(b, deflateBound(&z, n)), 0);
    z.next_in = (void *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)b->p + b->n;
    z.avail_out = (uInt)(b->cap - b->n);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->n += z.total_out;
    deflateEnd(&z);
}

static void add_zstd(struct buf *b, const void *p, size_t n)
{
    size_t k = ZSTD_compressBound(n);
    assert_int_equal(buf_reserve(b, k), 0);
    k = ZSTD_compress(b->p + b->n, k, p, n, 1);
    assert_false(ZSTD_isError(k));
    b->n += k;
}

#if HAVE_BZ2
static void add_bz2(struct buf *b, const void *p, size_t n)
{
    unsigned k = (unsigned)(n + n / 50 + 700);
    assert_int_equal(buf_reserve(b, k), 0);
    assert_int_equal(BZ2_bzBuffToBuffCompress(b->p + b->n, &k, (char *)(uintptr_t)p, (unsigned)n, 1, 0, 0), BZ_OK);
    b->n += k;
}

#endif

#if HAVE_LZMA
static void add_xz_of(struct buf *b, const void *p, size_t n, lzma_check check)
{
    size_t k = lzma_stream_buffer_bound(n);
    assert_int_equal(buf_reserve(b, k), 0);
    assert_int_equal(lzma_easy_buffer_encode(1, check, NULL, p, n, (uint8_t *)b->p, &b->n, b->n + k), LZMA_OK);
}

static void add_xz(struct buf *b, const void *p, size_t n)
{
    add_xz_of(b, p, n, LZMA_CHECK_CRC64);
}
#endif

#if HAVE_LZ4
static void add_lz4(struct buf *b, const void *p, size_t n)
{
    LZ4F_preferences_t how = {.frameInfo = {.blockSizeID = LZ4F_max64KB, .contentChecksumFlag = LZ4F_contentChecksumEnabled}};
    size_t k = LZ4F_compressFrameBound(n, &how);
    assert_int_equal(buf_reserve(b, k), 0);
    k = LZ4F_compressFrame(b->p + b->n, k, p, n, &how);
    assert_false(LZ4F_isError(k));
    b->n += k;
}
#endif

/* Those that this build reads. */
static const struct {
    enum file_codec codec;
    void (*add)(struct buf *b, const void *p, size_t n);
    const char *member;
} codecs[] = {{FILE_PLAIN, NULL, NULL}, {FILE_GZIP, add_gzip, "gzip member"}, {FILE_ZSTD, add_zstd, "zstd frame"},
#if HAVE_BZ2
            {FILE_BZ2, add_bz2, "bzip2 stream"},
#endif
#if HAVE_LZMA
            {FILE_XZ, add_xz, "xz stream"},
#endif
#if HAVE_LZ4
            {FILE_LZ4, add_lz4, "lz4 frame"},
#endif
};
enum { N_CODECS = sizeof codecs / sizeof *codecs };

static void add_skippable(struct buf *b, uint32_t magic, const void *p, uint32_t n)
{
    buf_put(b, &magic, 4);
    buf_put(b, &n, 4);
    buf_put(b, p, n);
}

/* Everything from f in reads of step bytes, into out; 0 or the error. */
static int drain(struct file_in *f, size_t step, struct buf *out, struct err *e)
{
    ssize_t k;

    do {
        assert_int_equal(buf_reserve(out, step), 0);
        k = file_read(f, out->p + out->n, step, e);
        if (k > 0)
            out->n += (size_t)k;
    } while (k > 0);
    return (int)k;
}

static int read_mem(const struct buf *stored, struct buf *out, struct err *e)
{
    struct file_in *f;
    int rc = file_open_mem(&f, "mem", buf_span(stored), e);

    assert_int_equal(rc, 0);
    buf_clear(out);
    rc = drain(f, 70000, out, e);
    file_close(f);
    return rc;
}

static void round_trip_of_each_codec(void **s)
{
    static const char *const names[] = {"a.txt", "a.txt.gz", "a.txt.zst"};
    struct buf text = text_of(5 << 20), got = {0};
    struct err e;

    (void)s;
    for (int i = 0; i < 3; i++)
        for (size_t n = 0; n < 2; n++) {
            struct file_out *o;
            struct file_in *f;
            size_t len = n ? text.n : 0;
            struct stat st;

            assert_int_equal(file_create(&o, at(names[i]), 0, &e), 0);
            assert_true(stat(at(names[i]), &st) < 0 || n);
            for (size_t k = 0, step = 1; k < len; k += step) {
                step = step * 3 % 400009;
                if (step > len - k)
                    step = len - k;
                assert_int_equal(file_write(o, text.p + k, step, &e), 0);
            }
            assert_int_equal(file_out_tell(o), len);
            assert_int_equal(file_commit(o, &e), 0);
            assert_int_equal(file_open(&f, at(names[i]), &e), 0);
            buf_clear(&got);
            assert_int_equal(drain(f, 1 << 16, &got, &e), 0);
            if (n)
                assert_int_equal(file_codec(f), i);
            assert_int_equal(file_tell(f), len);
            assert_int_equal(file_consumed(f), file_size(f));
            file_close(f);
            assert_int_equal(got.n, len);
            assert_true(len == 0 || memcmp(got.p, text.p, len) == 0);
        }
    buf_clear(&got);
    assert_int_equal(file_read_all(at("a.txt.gz"), text.n, &got, &e), 0);
    assert_int_equal(got.n, text.n);
    buf_clear(&got);
    assert_int_equal(file_read_all(at("a.txt.gz"), text.n - 1, &got, &e), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "a.txt.gz"));
    assert_int_equal(got.n, 0);
    buf_free(&text);
    buf_free(&got);
}

static void members_are_read_one_by_one(void **s)
{
    /* the last is larger than the window and than what libdeflate is given */
    static const size_t sizes[] = {0, 1, 100, 70000, 1 << 20, 6 << 20};
    struct buf text = text_of(6 << 20);
    struct err e;

    (void)s;
    for (int codec = 1; codec < N_CODECS; codec++) {
        struct buf stored = {0}, got = {0};
        uint64_t offsets[6];
        struct file_in *f;

        for (int i = 0; i < 6; i++) {
            if (codecs[codec].codec == FILE_ZSTD || (i && codecs[codec].codec == FILE_LZ4))
                add_skippable(&stored, 0x184D2A50, "skip me", 7);
            offsets[i] = stored.n;
            codecs[codec].add(&stored, text.p, sizes[i]);
        }
        for (int file = 0; file < 2; file++) {
            static char piece[50000];
            size_t at_member = 0, behind = sizes[0];
            ssize_t k;

            if (file) {
                spew(at("m"), stored.p, stored.n);
                assert_int_equal(file_open(&f, at("m"), &e), 0);
            } else {
                assert_int_equal(file_open_mem(&f, "mem", buf_span(&stored), &e), 0);
            }
            buf_clear(&got);
            while ((k = file_read(f, piece, sizeof piece, &e)) > 0) { /* never of two members */
                while (behind == got.n)
                    behind += sizes[++at_member];
                buf_put(&got, piece, (size_t)k);
                assert_true(got.n <= behind);
                assert_int_equal(file_member_offset(f), offsets[at_member]);
            }
            assert_int_equal(k, 0);
            assert_int_equal(got.n, behind);
            assert_int_equal(at_member, 5);
            for (size_t i = 0, from = 0; i < 6; from += sizes[i++])
                assert_true(memcmp(got.p + from, text.p, sizes[i]) == 0);
            assert_int_equal(file_tell(f), got.n);
            file_close(f);
        }
        buf_free(&stored);
        buf_free(&got);
    }
    buf_free(&text);
}

static void a_pipe_reads_as_a_file(void **s)
{
    struct buf text = text_of(4 << 20);

    (void)s;
    for (int codec = 0; codec < N_CODECS; codec++) {
        struct buf stored = {0}, got = {0};
        struct file_in *f;
        struct err e;
        int fds[2], status, saved = dup(0);
        pid_t pid;

        if (codecs[codec].codec == FILE_PLAIN)
            buf_put(&stored, text.p, text.n);
        else
            codecs[codec].add(&stored, text.p, text.n);
        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
            close(fds[0]);
            for (size_t k = 0, step = 1; k < stored.n; k += step) {
                step = k + 4097 < stored.n && k ? 4097 : 1;
                if (write(fds[1], stored.p + k, step) != (ssize_t)step)
                    _exit(1);
            }
            _exit(0);
        }
        close(fds[1]);
        dup2(fds[0], 0);
        close(fds[0]);
        assert_int_equal(file_open(&f, "-", &e), 0);
        assert_string_equal(file_name(f), "standard input");
        assert_int_equal(drain(f, 1 << 16, &got, &e), 0);
        assert_int_equal(file_codec(f), codecs[codec].codec);
        assert_int_equal(file_size(f), 0);
        file_close(f);
        assert_int_equal(fcntl(0, F_GETFD) >= 0, 1);
        dup2(saved, 0);
        close(saved);
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        assert_int_equal(got.n, text.n);
        assert_memory_equal(got.p, text.p, text.n);
        buf_free(&stored);
        buf_free(&got);
    }
    buf_free(&text);
}

static void damage_is_named_and_what_was_good_comes_out(void **s)
{
    struct buf text = text_of(1 << 20), one = {0}, got = {0};
    struct err e;

    (void)s;
    for (int codec = 1; codec < N_CODECS; codec++) {
        struct buf b = {0};
        buf_clear(&one);
        codecs[codec].add(&one, text.p, text.n);
        buf_put_span(&b, buf_span(&one));
        buf_put_span(&b, buf_span(&one));

        b.n = one.n + one.n / 2; /* cut short */
        assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
        char want[100];
        snprintf(want, sizeof want, "'mem': %s at offset %zu is cut short",
                 codecs[codec].member, one.n);
        assert_string_equal(e.msg, want);
        assert_true(got.n > text.n && got.n < 2 * text.n);
        assert_memory_equal(got.p, text.p, text.n);
        assert_memory_equal(got.p + text.n, text.p, got.n - text.n);

        b.n = 2 * one.n; /* trailing garbage */
        buf_puts(&b, "this is not a member");
        assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "other bytes at offset"));
        assert_int_equal(got.n, 2 * text.n);

        if (codecs[codec].codec == FILE_GZIP) { /* a wrong checksum; NUL bytes behind */
            b.n = 2 * one.n;
            b.p[one.n - 6] ^= 1;
            assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
            assert_non_null(strstr(e.msg, "offset 0: incorrect data check"));
            assert_int_equal(got.n, text.n);
            b.p[one.n - 6] ^= 1;
            buf_put(&b, "\0\0\0\0\0\0\0\0", 8);
            assert_int_equal(read_mem(&b, &got, &e), 0);
            assert_int_equal(got.n, 2 * text.n);
        }
        buf_free(&b);
    }
    buf_free(&text);
    buf_free(&one);
    buf_free(&got);
}

static void after_a_damaged_member_the_next_is_found(void **s)
{
    struct buf text = text_of(300000), got = {0};
    struct err e;

    (void)s;
    for (int codec = 1; codec < N_CODECS; codec++)
        for (int file = 0; file < 2; file++) {
            struct buf b = {0};
            struct file_in *f;
            size_t second, third;

            codecs[codec].add(&b, text.p, text.n);
            second = b.n;
            codecs[codec].add(&b, text.p, text.n);
            third = b.n;
            for (size_t i = second + 40; i < second + 80; i++)
                b.p[i] = (char)(i * 37);
            codecs[codec].add(&b, text.p, text.n);
            spew(at("d"), b.p, b.n);
            if (file)
                assert_int_equal(file_open(&f, at("d"), &e), 0);
            else
                assert_int_equal(file_open_mem(&f, "mem", buf_span(&b), &e), 0);
            buf_clear(&got);
            assert_int_equal(drain(f, 4096, &got, &e), ERR_FORMAT);
            assert_int_equal(file_member_offset(f), second);
            assert_true(got.n >= text.n && memcmp(got.p, text.p, text.n) == 0);
            assert_int_equal(file_read(f, got.p, 1, &e), ERR_FORMAT);
            assert_int_equal(file_skip_member(f, &e), 1);
            assert_int_equal(file_read(f, got.p, 1, &e), 1);
            assert_int_equal(file_member_offset(f), third);
            got.n = 1;
            assert_int_equal(drain(f, 4096, &got, &e), 0);
            assert_int_equal(got.n, text.n);
            assert_memory_equal(got.p, text.p, text.n);
            assert_int_equal(file_skip_member(f, &e), 0);
            file_close(f);
            buf_free(&b);
        }
    buf_free(&text);
    buf_free(&got);
}

static void a_bomb_stays_bounded(void **s)
{
    size_t n = 200 << 20;
    char *zeros = calloc(1, n), *out = malloc(1 << 20);
    struct buf b = {0};
    struct file_in *f;
    struct err e;
    uint64_t total = 0;
    ssize_t k;
    struct rusage before, after;

    (void)s;
    add_gzip(&b, zeros, n);
    free(zeros);
    assert_true(b.n < 1 << 20);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(file_open_mem(&f, "bomb", buf_span(&b), &e), 0);
    while ((k = file_read(f, out, 1 << 20, &e)) > 0)
        total += (uint64_t)k;
    assert_int_equal(k, 0);
    assert_int_equal(total, n);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 100 << 10);
    file_close(f);
    free(out);
    buf_free(&b);
}

static void zstd_dictionary_is_taken_from_the_first_frame(void **s)
{
    struct buf dict = text_of(20000), b = {0}, frame = {0}, got = {0};
    const char *record = "line 1 of text\nline 99 of text\n";
    ZSTD_CCtx *c = ZSTD_createCCtx();
    struct err e;
    size_t k;

    (void)s;
    buf_reserve(&frame, 1000);
    k = ZSTD_compress_usingDict(c, frame.p, 1000, record, strlen(record), dict.p, dict.n, 3);
    assert_false(ZSTD_isError(k));
    frame.n = k;
    ZSTD_freeCCtx(c);
    for (int packed = 0; packed < 2; packed++) {
        struct buf stored = {0};
        buf_clear(&b);
        if (packed)
            add_zstd(&stored, dict.p, dict.n);
        else
            buf_put_span(&stored, buf_span(&dict));
        add_skippable(&b, 0x184D2A5D, stored.p, (uint32_t)stored.n);
        buf_put_span(&b, buf_span(&frame));
        buf_put_span(&b, buf_span(&frame));
        assert_int_equal(read_mem(&b, &got, &e), 0);
        assert_int_equal(got.n, 2 * strlen(record));
        assert_memory_equal(got.p, record, strlen(record));
        buf_free(&stored);
    }
    assert_int_not_equal(read_mem(&frame, &got, &e), 0); /* without it: not these bytes */
    buf_clear(&frame); /* "a", stored, by dictionary 7 */
    buf_put(&frame, "\x28\xB5\x2F\xFD\x21\x07\x01\x09\0\0a", 11);
    assert_int_equal(read_mem(&frame, &got, &e), ERR_UNSUPPORTED);
    assert_string_equal(e.msg, "'mem': zstd frame at offset 0 was written with a dictionary that is not in the file");
    buf_free(&dict);
    buf_free(&b);
    buf_free(&frame);
    buf_free(&got);
}

#if HAVE_LZMA
static void xz_checks_and_padding_are_held(void **s)
{
    static const lzma_check checks[] = {LZMA_CHECK_NONE, LZMA_CHECK_CRC32, LZMA_CHECK_CRC64, LZMA_CHECK_SHA256};
    struct buf text = text_of(100000), b = {0}, got = {0};
    struct err e;

    (void)s;
    for (int i = 0; i < 4; i++) {
        buf_clear(&b);
        add_xz_of(&b, text.p, text.n, checks[i]);
        buf_put(&b, "\0\0\0\0\0\0\0\0", 8); /* padding between streams, and behind the last */
        add_xz_of(&b, text.p, text.n, checks[i]);
        buf_put(&b, "\0\0\0\0", 4);
        assert_int_equal(read_mem(&b, &got, &e), 0);
        assert_int_equal(got.n, 2 * text.n);
        buf_put(&b, "\0\0\0", 3);
        assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "is no multiple of four bytes"));
        assert_int_equal(got.n, 2 * text.n);
        if (i == 0)
            continue;
        b.p[b.n - 7 - 12 - 8 - 1] ^= 1; /* the last of the check, before an index of 8 bytes, or close to it */
        assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "'mem': damaged xz stream at offset "));
    }
    buf_free(&text);
    buf_free(&b);
    buf_free(&got);
}

/* The dictionary that a stream says it needs is no reason to take that much memory. */
static void an_xz_stream_that_wants_too_much_memory_is_refused(void **s)
{
    enum { BLOCK = 12, PROPERTY = 18 };
    struct buf b = {0}, got = {0};
    struct err e;
    uint32_t sum, size;

    (void)s;
    add_xz(&b, "some text", 9);
    size = ((uint32_t)(uint8_t)b.p[BLOCK] + 1) * 4;
    assert_int_equal(b.p[PROPERTY - 2], 0x21); /* LZMA2 */
    b.p[PROPERTY] = 40;                        /* 4 GiB */
    sum = lzma_crc32((uint8_t *)b.p + BLOCK, size - 4, 0);
    memcpy(b.p + BLOCK + size - 4, &sum, 4);
    assert_int_equal(read_mem(&b, &got, &e), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "'mem': xz stream at offset 0 takes 409"));
    assert_non_null(strstr(e.msg, "MiB of memory, more than 1024"));
    buf_free(&b);
    buf_free(&got);
}
#endif

#if HAVE_LZ4
static void lz4_is_told_behind_skippable_frames(void **s)
{
    struct buf text = text_of(100000), b = {0}, got = {0};
    struct err e;

    (void)s;
    add_skippable(&b, 0x184D2A5D, "a note", 6); /* as a .warc.zst begins */
    add_skippable(&b, 0x184D2A50, text.p, 70000);
    add_lz4(&b, text.p, text.n);
    assert_int_equal(read_mem(&b, &got, &e), 0);
    assert_int_equal(got.n, text.n);
    assert_memory_equal(got.p, text.p, text.n);
    b.p[b.n - 1] ^= 1; /* the content's check sum */
    assert_int_equal(read_mem(&b, &got, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "'mem': damaged lz4 frame at offset 70022: "));
    assert_int_equal(got.n, text.n);
    buf_free(&text);
    buf_free(&b);
    buf_free(&got);
}
#endif

/* Of a build without a library: what it cannot read it names. */
static void what_this_build_cannot_decode_is_named(void **s)
{
    static const struct {
        bool here;
        const char *start, *want;
        size_t n;
    } known[] = {{HAVE_BZ2, "BZh9\x31\x41\x59\x26\x53\x59", "libbz2", 10},
                 {HAVE_LZMA, "\xFD" "7zXZ\0\0\4\0\0", "liblzma", 10},
                 {HAVE_LZ4, "\x04\x22\x4D\x18\x64\x40\xa7\0\0\0", "liblz4", 10}};
    struct buf b = {0}, got = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int rc;
        buf_clear(&b);
        buf_put(&b, known[i].start, known[i].n);
        rc = read_mem(&b, &got, &e);
        assert_int_equal(rc, known[i].here ? ERR_FORMAT : ERR_UNSUPPORTED);
        assert_true(known[i].here == !strstr(e.msg, known[i].want));
    }
    buf_free(&b);
    buf_free(&got);
}

static void opening_what_cannot_be_read_says_why(void **s)
{
    struct file_in *f;
    struct file_map m;
    struct err e;

    (void)s;
    assert_int_equal(file_open(&f, at("nothing"), &e), ERR_IO);
    assert_non_null(strstr(e.msg, "nothing': No such file"));
    assert_int_equal(file_open(&f, dir, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "it is a directory"));
    assert_null(f);
    assert_int_equal(file_map_open(&m, dir, &e), ERR_IO);
    spew(at("empty"), "", 0);
    assert_int_equal(file_map_open(&m, at("empty"), &e), 0);
    assert_null(m.p);
    file_map_close(&m);
    spew(at("three"), "abc", 3);
    assert_int_equal(file_map_open(&m, at("three"), &e), 0);
    assert_int_equal(m.n, 3);
    assert_memory_equal(m.p, "abc", 3);
    file_map_close(&m);
}

/* Calls of openat2 fail with this error, in this process from now on. */
static void forbid_openat2(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(77);
}

/* 0: each name below the folder "in" opens if it should, and says why if not; else the number of the one that is wrong. */
static int open_beneath(bool links)
{
    static const struct {
        const char *name;
        bool there, link;
        const char *why;
    } names[] = {{"file", true, false, NULL},        {"sub/file", true, false, NULL},
                 {"./sub//file", true, false, NULL}, {"inner", true, true, NULL},
                 {"sub/up", true, true, NULL},       {"outer", false, true, "it leads out of the folder"},
                 {"absolute", false, true, "it leads out of the folder"},
                 {"folder/secret", false, true, NULL},
                 {"../secret", false, false, "it leads out of the folder"},
                 {"sub", false, false, "it is a directory"},
                 {"pipe", false, false, "it is no regular file"},
                 {"none", false, false, "No such file"}};

    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        struct file_in *f;
        struct err e;
        int rc = file_open_beneath(&f, at("in"), names[i].name, &e);
        bool want = names[i].there && (links || !names[i].link);
        if ((rc == 0) != want || (rc < 0 && rc != ERR_IO) || (rc < 0 && names[i].why && !strstr(e.msg, names[i].why)))
            return i + 1;
        if (rc == 0)
            file_close(f);
    }
    return 0;
}

static void nothing_is_opened_that_lies_out_of_a_folder(void **s)
{
    static const int errors[] = {0, ENOSYS, EPERM};
    char secret[600];

    (void)s;
    snprintf(secret, sizeof secret, "%s", at("secret"));
    spew(secret, "secret", 6);
    assert_int_equal(mkdir(at("in"), 0700), 0);
    assert_int_equal(mkdir(at("in/sub"), 0700), 0);
    spew(at("in/file"), "x", 1);
    spew(at("in/sub/file"), "x", 1);
    assert_int_equal(symlink("sub/file", at("in/inner")), 0);
    assert_int_equal(symlink("../file", at("in/sub/up")), 0);
    assert_int_equal(symlink("../secret", at("in/outer")), 0);
    assert_int_equal(symlink(secret, at("in/absolute")), 0);
    assert_int_equal(symlink("..", at("in/folder")), 0);
    assert_int_equal(mkfifo(at("in/pipe"), 0600), 0);
    for (int i = 0; i < 3; i++) { /* where openat2 is missing no link is followed */
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            if (errors[i])
                forbid_openat2(errors[i]);
            _exit(open_beneath(!errors[i]));
        }
        waitpid(pid, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    for (int i = 0; i < 8; i++) {
        static const char *const made[] = {"in/sub/file", "in/sub/up", "in/file", "in/inner", "in/outer", "in/absolute",
                                           "in/folder", "in/pipe"};
        unlink(at(made[i]));
    }
    assert_int_equal(rmdir(at("in/sub")), 0);
    assert_int_equal(rmdir(at("in")), 0);
}

static ssize_t some_bytes(void *arg, void *p, size_t n, struct err *e)
{
    struct span *left = arg;

    if (left->n == 0 && left->p[0] == '!')
        return err_set(e, ERR_FORMAT, "no more of it");
    n = n < 700 ? n : 700;
    n = n < left->n ? n : left->n;
    memcpy(p, left->p, n);
    left->p += n;
    left->n -= n;
    return (ssize_t)n;
}

static void a_stream_reads_as_a_file(void **s)
{
    struct buf text = text_of(200000), got = {0};
    struct err e;

    (void)s;
    for (int codec = 0; codec < N_CODECS; codec++) {
        struct buf stored = {0};
        struct file_in *f;
        struct span left;

        if (codecs[codec].add)
            codecs[codec].add(&stored, text.p, text.n);
        else
            buf_put_span(&stored, buf_span(&text));
        buf_put(&stored, "", 1); /* what stands behind says whether reading then fails */
        for (int fails = 0; fails < 2; fails++) {
            size_t n = fails ? stored.n - 100 : stored.n - 1;

            left = (struct span){stored.p, n};
            if (fails)
                stored.p[n] = '!';
            assert_int_equal(file_open_stream(&f, "within", stored.n - 1, some_bytes, &left, &e), 0);
            assert_int_equal(file_codec(f), codecs[codec].codec);
            assert_int_equal(file_size(f), stored.n - 1);
            buf_clear(&got);
            assert_int_equal(drain(f, 70000, &got, &e), fails ? ERR_FORMAT : 0);
            if (fails)
                assert_string_equal(e.msg, "no more of it");
            assert_true(fails || got.n == text.n);
            assert_memory_equal(got.p, text.p, got.n);
            file_close(f);
        }
        buf_free(&stored);
    }
    buf_free(&text);
    buf_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_of_each_codec),
        cmocka_unit_test(members_are_read_one_by_one),
        cmocka_unit_test(a_pipe_reads_as_a_file),
        cmocka_unit_test(damage_is_named_and_what_was_good_comes_out),
        cmocka_unit_test(after_a_damaged_member_the_next_is_found),
        cmocka_unit_test(a_bomb_stays_bounded),
        cmocka_unit_test(zstd_dictionary_is_taken_from_the_first_frame),
#if HAVE_LZMA
        cmocka_unit_test(xz_checks_and_padding_are_held),
        cmocka_unit_test(an_xz_stream_that_wants_too_much_memory_is_refused),
#endif
#if HAVE_LZ4
        cmocka_unit_test(lz4_is_told_behind_skippable_frames),
#endif
        cmocka_unit_test(what_this_build_cannot_decode_is_named),
        cmocka_unit_test(opening_what_cannot_be_read_says_why),
        cmocka_unit_test(nothing_is_opened_that_lies_out_of_a_folder),
        cmocka_unit_test(a_stream_reads_as_a_file),
    };
    return cmocka_run_group_tests_name("base_io", tests, make_dir, remove_dir);
}
