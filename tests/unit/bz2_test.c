/* bzip2: many blocks at a time; marks that are none; damage by block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "tests/temp_folder.h"

#if HAVE_BZ2
#include <bzlib.h>

static char path[64];

/* Text that compresses some; the same for the same n. */
static struct buf text_of(size_t n)
{
    struct buf b = {0};
    struct rng_mt r;

    rng_mt_seed(&r, 11);
    assert_int_equal(buf_reserve(&b, n + 64), 0);
    while (b.n < n)
        buf_printf(&b, "%u lines of text and %u\n", rng_mt_u32(&r) % 1000, rng_mt_u32(&r));
    b.n = n;
    return b;
}

static void add_bz2(struct buf *b, const void *p, size_t n, int level)
{
    unsigned k = (unsigned)(n + n / 50 + 700);
    assert_int_equal(buf_reserve(b, k), 0);
    assert_int_equal(BZ2_bzBuffToBuffCompress(b->p + b->n, &k, (char *)(uintptr_t)p, (unsigned)n, level, 0, 0), BZ_OK);
    b->n += k;
}

/* Opens what is stored, from a file (or pipe) or from memory. */
static struct file_in *open_it(const struct buf *stored, bool file, int threads)
{
    struct file_in *f;
    struct err e;

    if (file)
        assert_int_equal(file_open(&f, path, &e), 0);
    else
        assert_int_equal(file_open_mem(&f, "mem", buf_span(stored), &e), 0);
    file_set_threads(f, threads);
    return f;
}

static int drain(struct file_in *f, struct buf *out, struct err *e)
{
    ssize_t k;

    buf_clear(out);
    do {
        assert_int_equal(buf_reserve(out, 70000), 0);
        k = file_read(f, out->p + out->n, 70000, e);
        if (k > 0)
            out->n += (size_t)k;
    } while (k > 0);
    return (int)k;
}

static void same(const struct buf *a, const void *p, size_t n)
{
    assert_int_equal(a->n, n);
    assert_true(n == 0 || memcmp(a->p, p, n) == 0);
}

static void any_number_of_threads_gives_the_same_bytes(void **s)
{
    struct buf text = text_of(2 << 20), got = {0};
    struct err e;

    (void)s;
    for (int many = 0; many < 2; many++) {
        struct buf stored = {0};
        size_t step = many ? 700001 : text.n;
        for (size_t at = 0; at < text.n; at += step)
            add_bz2(&stored, text.p + at, text.n - at < step ? text.n - at : step, many ? 2 : 9);
        if (many)
            add_bz2(&stored, "", 0, 1);
        spew(path, stored.p, stored.n);
        for (int threads = 1; threads <= 4; threads += 3)
            for (int file = 0; file < 2; file++) {
                struct file_in *f = open_it(&stored, file, threads);
                assert_int_equal(drain(f, &got, &e), 0);
                same(&got, text.p, text.n);
                assert_int_equal(file_consumed(f), stored.n);
                file_close(f);
            }
        for (int n = 0; n < 3; n++) { /* closed with blocks in flight */
            struct file_in *f = open_it(&stored, true, 4);
            assert_int_equal(file_read(f, got.p, 100 * (size_t)n, &e), 100 * n);
            file_close(f);
        }
        buf_free(&stored);
    }
    buf_free(&text);
    buf_free(&got);
}

/* ---- blocks by hand ---- */

struct bits {
    struct buf b;
    unsigned used; /* bits of the last byte, 0: all */
};

static void put(struct bits *w, uint64_t v, unsigned n)
{
    while (n-- > 0) {
        if (w->used == 0)
            buf_putc(&w->b, 0);
        w->b.p[w->b.n - 1] |= (char)((v >> n & 1) << (7 - w->used));
        w->used = (w->used + 1) % 8;
    }
}

static uint32_t crc_of(uint8_t c)
{
    uint32_t crc = 0xffffffff ^ (uint32_t)c << 24;
    for (int i = 0; i < 8; i++)
        crc = crc << 1 ^ (crc >> 31 ? 0x04c11db7 : 0);
    return ~crc;
}

/* A block that holds "a", among whose selectors stand these 48 bits (a code of 1s ended by a 0
 * is a selector, and selectors that no symbol asks for may follow). */
static void put_block(struct bits *w, uint64_t selectors)
{
    put(w, 0x314159265359, 48);
    put(w, crc_of('a'), 32);
    put(w, 0, 1 + 24);
    put(w, 1 << (15 - 'a' / 16), 16);
    put(w, 1 << (15 - 'a' % 16), 16);
    put(w, 6, 3); /* tables */
    put(w, 49 - (uint64_t)__builtin_popcountll(selectors), 15);
    put(w, selectors << 1, 49);
    for (int i = 0; i < 6; i++)
        put(w, 2 << 3, 5 + 3); /* the lengths: 2, 2, 2 */
    put(w, 2, 4); /* one a, the end of the block */
}

static void a_mark_within_a_block_is_none(void **s)
{
    static const uint64_t marks[] = {0x314159265359, 0x177245385090, 0};
    struct buf text = text_of(400000), got = {0};
    struct err e;

    (void)s;
    for (int every = 1; every < 8; every += 3) { /* every so many blocks a false mark */
        struct bits w = {0};
        uint32_t sum = 0;
        char want[40] = "";
        unsigned n = sizeof want;

        add_bz2(&w.b, text.p, text.n, 9);
        size_t second = w.b.n;
        buf_puts(&w.b, "BZh3");
        for (int i = 0; i < 40; i++) {
            put_block(&w, i % every ? 0 : marks[i / every % 2]);
            sum = (sum << 1 | sum >> 31) ^ crc_of('a');
        }
        put(&w, 0x177245385090, 48);
        put(&w, sum, 32);
        memset(want, 'a', sizeof want);
        assert_int_equal(BZ2_bzBuffToBuffDecompress((char[sizeof want]){0}, &n, w.b.p + second, (unsigned)(w.b.n - second), 0, 0),
                         BZ_OK);
        add_bz2(&w.b, text.p, text.n, 1);
        spew(path, w.b.p, w.b.n);
        for (int threads = 1; threads <= 4; threads += 3)
            for (int file = 0; file < 2; file++) {
                struct file_in *f = open_it(&w.b, file, threads);
                assert_int_equal(drain(f, &got, &e), 0);
                assert_int_equal(got.n, 2 * text.n + sizeof want);
                assert_memory_equal(got.p, text.p, text.n);
                assert_memory_equal(got.p + text.n, want, sizeof want);
                assert_memory_equal(got.p + text.n + sizeof want, text.p, text.n);
                file_close(f);
            }
        buf_free(&w.b);
    }
    buf_free(&text);
    buf_free(&got);
}

/* ---- damage ---- */

static void damage_in_a_block_is_named(void **s)
{
    struct buf text = text_of(2 << 20), stored = {0}, got = {0};
    struct err e, first;

    (void)s;
    add_bz2(&stored, text.p, text.n, 1);
    size_t second = stored.n;
    add_bz2(&stored, text.p, text.n, 9);
    memset(stored.p + second / 2, 0x55, 100);
    spew(path, stored.p, stored.n);
    for (int threads = 1; threads <= 4; threads += 3)
        for (int file = 0; file < 2; file++) {
            struct file_in *f = open_it(&stored, file, threads);
            char *at;

            assert_int_equal(drain(f, &got, &e), ERR_FORMAT);
            at = strstr(e.msg, ": damaged bzip2 stream at offset 0: its block at offset ");
            assert_non_null(at);
            if (threads + file == 1)
                first = e;
            assert_string_equal(at, strchr(first.msg, ':'));
            size_t offset = (size_t)atoll(strrchr(e.msg, ' '));
            assert_true(offset < second / 2 && offset + 100000 > second / 2);
            assert_true(got.n > text.n * 4 / 10 && got.n < text.n / 2);
            assert_memory_equal(got.p, text.p, got.n);
            assert_int_equal(file_skip_member(f, &e), 1);
            assert_int_equal(drain(f, &got, &e), 0);
            same(&got, text.p, text.n);
            assert_int_equal(file_member_offset(f), stored.n);
            file_close(f);
        }
    buf_free(&text);
    buf_free(&stored);
    buf_free(&got);
}

/* What libbz2 itself gives of one stream that fills the bytes: whether it is whole. */
static bool libbz2_reads(const struct buf *stored, struct buf *out, size_t room)
{
    unsigned n = (unsigned)room;
    int r;

    buf_clear(out);
    assert_int_equal(buf_reserve(out, room), 0);
    r = BZ2_bzBuffToBuffDecompress(out->p, &n, stored->p, (unsigned)stored->n, 0, 0);
    out->n = n;
    return r == BZ_OK;
}

static void whatever_is_damaged_threads_say_the_same(void **s)
{
    struct buf text = text_of(150000), whole = {0}, stored = {0}, one = {0}, four = {0}, ref = {0};
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 5);
    add_bz2(&whole, text.p, text.n, 1);
    for (int i = 0; i < 60; i++) {
        size_t at = 14 + rng_mt_u32(&r) % (whole.n - 14); /* behind the first mark, or it would be plain */
        struct err e1 = {0}, e4 = {0};
        struct file_in *f;
        int rc;

        buf_clear(&stored);
        buf_put_span(&stored, buf_span(&whole));
        if (i % 3 == 0)
            stored.n = at;
        else
            stored.p[at] ^= (char)(1 << i % 8);
        f = open_it(&stored, false, 1);
        rc = drain(f, &one, &e1);
        file_close(f);
        f = open_it(&stored, false, 4);
        assert_int_equal(drain(f, &four, &e4), rc);
        file_close(f);
        assert_string_equal(e1.msg, e4.msg);
        same(&one, four.p, four.n);
        assert_int_equal(libbz2_reads(&stored, &ref, text.n + 1), rc == 0);
        assert_memory_equal(one.p, text.p, one.n);
    }
    buf_free(&text);
    buf_free(&whole);
    buf_free(&stored);
    buf_free(&one);
    buf_free(&four);
    buf_free(&ref);
}

static void the_check_sum_of_a_stream_is_held(void **s)
{
    struct buf stored = {0}, got = {0};
    struct err e;

    (void)s;
    add_bz2(&stored, "some text", 9, 9);
    stored.p[stored.n - 2] ^= 0x10;
    struct file_in *f = open_it(&stored, false, 2);
    assert_int_equal(drain(f, &got, &e), ERR_FORMAT);
    assert_string_equal(e.msg, "'mem': damaged bzip2 stream at offset 0: the check sum of its blocks");
    same(&got, "some text", 9);
    file_close(f);
    buf_free(&stored);
    buf_free(&got);
}

static void blocks_that_blow_up_stay_bounded(void **s)
{
    size_t n = 180 << 20, total = 0;
    char *zeros = calloc(1, n), *out = malloc(1 << 20);
    struct buf stored = {0};
    struct rusage before, after;
    struct err e;
    ssize_t k;

    (void)s;
    assert_non_null(zeros);
    assert_non_null(out);
    add_bz2(&stored, zeros, n, 9);
    free(zeros);
    struct file_in *f = open_it(&stored, false, 4);
    getrusage(RUSAGE_SELF, &before);
    while ((k = file_read(f, out, 1 << 20, &e)) > 0)
        total += (size_t)k;
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(k, 0);
    assert_int_equal(total, n);
    assert_true(after.ru_maxrss - before.ru_maxrss < 100 << 10);
    file_close(f);
    free(out);
    buf_free(&stored);
}

static int setup(void **s)
{
    int rc = make_dir(s);

    snprintf(path, sizeof path, "%s/x.bz2", dir);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(a_mark_within_a_block_is_none),
        cmocka_unit_test(damage_in_a_block_is_named),
        cmocka_unit_test(whatever_is_damaged_threads_say_the_same),
        cmocka_unit_test(the_check_sum_of_a_stream_is_held),
        cmocka_unit_test(blocks_that_blow_up_stay_bounded),
    };
    return cmocka_run_group_tests(tests, setup, remove_dir);
}
#else
int main(void)
{
    puts("left out: this build lacks libbz2");
    return 0;
}
#endif
