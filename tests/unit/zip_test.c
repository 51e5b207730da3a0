/* Zip archives in memory: what ZIP64 adds, names, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#include "curate/archive/zip.h"

static void put(struct buf *b, uint64_t v, int bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        buf_putc(b, (char)v);
}

/* What of an archive is written in 64 bits. */
enum { WIDE_NONE, WIDE_END = 1, WIDE_ENTRIES = 2, WIDE_BEHIND_OTHER = 4 /* another field stands before ZIP64's */ };

struct writer {
    struct buf all, directory;
    int n, wide;
};

static void add(struct writer *w, const char *name, const char *text)
{
    uint64_t at = w->all.n, n = strlen(text), name_n = strlen(name);
    uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)text, n);
    bool wide = w->wide & WIDE_ENTRIES, other = w->wide & WIDE_BEHIND_OTHER;
    struct buf *b = &w->all;

    buf_puts(b, "PK\3\4");
    put(b, 0, 2 + 2 + 2 + 4);
    put(b, crc, 4);
    put(b, n, 4);
    put(b, n, 4);
    put(b, name_n, 2);
    put(b, 0, 2);
    buf_puts(b, name);
    buf_puts(b, text);
    b = &w->directory;
    buf_puts(b, "PK\1\2");
    put(b, 0, 2 + 2 + 2 + 2 + 4);
    put(b, crc, 4);
    put(b, wide ? UINT32_MAX : n, 4);
    put(b, wide ? UINT32_MAX : n, 4);
    put(b, name_n, 2);
    put(b, wide ? 28 + (other ? 6 : 0) : 0, 2);
    put(b, 0, 2 + 2 + 2 + 4);
    put(b, wide ? UINT32_MAX : at, 4);
    buf_puts(b, name);
    if (wide) {
        if (other) {
            put(b, 0x5455, 2);
            put(b, 2, 2);
            put(b, 0, 2);
        }
        put(b, 1, 2);
        put(b, 24, 2);
        put(b, n, 8);
        put(b, n, 8);
        put(b, at, 8);
    }
    w->n++;
}

static void finish(struct writer *w)
{
    uint64_t from = w->all.n, size = w->directory.n, end = from + size;
    bool wide = w->wide & WIDE_END;
    struct buf *b = &w->all;

    buf_put_span(b, buf_span(&w->directory));
    if (wide) {
        buf_puts(b, "PK\6\6");
        put(b, 44, 8);
        put(b, 0, 2 + 2 + 4 + 4);
        put(b, (uint64_t)w->n, 8);
        put(b, (uint64_t)w->n, 8);
        put(b, size, 8);
        put(b, from, 8);
        buf_puts(b, "PK\6\7");
        put(b, 0, 4);
        put(b, end, 8);
        put(b, 1, 4);
    }
    buf_puts(b, "PK\5\6");
    put(b, 0, 4);
    put(b, wide ? UINT16_MAX : (uint64_t)w->n, 2);
    put(b, wide ? UINT16_MAX : (uint64_t)w->n, 2);
    put(b, wide ? UINT32_MAX : size, 4);
    put(b, wide ? UINT32_MAX : from, 4);
    put(b, 0, 2);
    assert_int_equal(buf_puts(b, ""), 0);
    buf_free(&w->directory);
}

static void expect(const struct zip *z, const char *name, const char *text)
{
    const struct zip_member *m = zip_find(z, span_of(name));
    struct buf out = {0};
    struct err e;

    if (!m || zip_read(z, m, 1000, &out, &e) < 0)
        fail_msg("%s: %s", name, m ? e.msg : "not there");
    if (!span_is(buf_span(&out), text))
        fail_msg("%s is %.*s", name, (int)out.n, out.p);
    buf_free(&out);
}

static void test_wide(void **state)
{
    static const int kinds[] = {WIDE_NONE, WIDE_END, WIDE_ENTRIES, WIDE_END | WIDE_ENTRIES | WIDE_BEHIND_OTHER};
    struct zip z = {0};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int before = 0; before < 2; before++) { /* bytes that stand before the archive */
            struct writer w = {.wide = kinds[k]};
            struct buf junk = {0};
            struct err e;

            add(&w, "b", "text of b");
            add(&w, "a", "text of a");
            add(&w, "b", "another b");
            add(&w, "", "no name");
            finish(&w);
            buf_puts(&junk, before ? "junk" : "");
            buf_put_span(&junk, buf_span(&w.all));
            if (zip_open(&z, buf_span(&junk), &e) < 0)
                fail_msg("kind %d: %s", kinds[k], e.msg);
            assert_int_equal(z.n, 4);
            expect(&z, "b", "text of b");
            expect(&z, "a", "text of a");
            expect(&z, "", "no name");
            assert_null(zip_find(&z, span_of("c")));
            assert_null(zip_find(&z, span_of("aa")));
            buf_free(&w.all);
            buf_free(&junk);
        }
    zip_close(&z);
}

static void test_many(void **state)
{
    enum { MANY = 70000 };
    struct writer w = {.wide = WIDE_END};
    struct zip z = {0};
    char name[16];
    struct err e;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add(&w, name, name);
    }
    finish(&w);
    assert_int_equal(zip_open(&z, buf_span(&w.all), &e), 0);
    assert_int_equal(z.n, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_ptr_equal(zip_find(&z, span_of(name)), &z.member[i]);
    }
    expect(&z, "n69999", "n69999");
    zip_close(&z);
    buf_free(&w.all);
}

static void test_damage(void **state)
{
    struct writer w = {.wide = WIDE_END | WIDE_ENTRIES};
    struct zip z = {0};
    struct buf out = {0}, copy = {0};
    struct err e;

    (void)state;
    add(&w, "a", "text of a");
    finish(&w);
    for (size_t i = 0; i < w.all.n; i++) { /* every byte changed, every length cut: in bounds, and right or an error */
        buf_clear(&copy);
        buf_put_span(&copy, buf_span(&w.all));
        copy.p[i] = (char)~copy.p[i];
        if (zip_open(&z, buf_span(&copy), &e) == 0 && zip_find(&z, span_of("a")) &&
            zip_read(&z, zip_find(&z, span_of("a")), 100, &out, &e) == 0)
            assert_true(span_is(buf_span(&out), "text of a"));
        assert_true(zip_open(&z, (struct span){w.all.p, i}, &e) == ERR_FORMAT);
    }
    buf_free(&copy);
    buf_free(&out);
    buf_free(&w.all);
    zip_close(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
