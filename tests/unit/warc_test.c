#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <libdeflate.h>
#include <zstd.h>

#include "base/digest.h"
#include "curate/archive/warc.h"

enum { MAX_BLOCK = 1 << 20 };

/* ---- archives made here ---- */

static void put_record(struct buf *b, const char *type, int id, const char *length, const char *block)
{
    buf_printf(b, "WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:x:%d>\r\nWARC-Target-URI: http://h/%d\r\n"
                  "WARC-Date: 2020-01-02T03:04:05Z\r\nContent-Type: text/html\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n",
               type, id, id, length, block);
}

static void put_good(struct buf *b, int id)
{
    char block[64], length[16];

    snprintf(block, sizeof block, "<p>block number %d\n\n", id);
    snprintf(length, sizeof length, "%zu", strlen(block));
    put_record(b, "resource", id, length, block);
}

static void put_gzip(struct buf *b, struct span s)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);

    assert_int_equal(buf_reserve(b, s.n + 100), 0);
    b->n += libdeflate_gzip_compress(c, s.p, s.n, b->p + b->n, s.n + 100);
    libdeflate_free_compressor(c);
}

/* Reads all of s and says what came, a word a call: the id of a good record, "bad" for
 * a bad one, "-" at the end. */
static const char *summary(struct span s, char *text, size_t size)
{
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct err e;
    size_t n = 0;
    int rc;

    assert_int_equal(file_open_mem(&f, "mem", s, &e), 0);
    assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
    text[0] = '\0';
    for (int i = 0; i < 1000; i++) {
        rc = warc_next(w, &r, &e);
        if (rc == 0)
            break;
        if (rc == 1)
            n += (size_t)snprintf(text + n, size - n, "%.*s ", (int)(r.id.n > 8 ? r.id.n - 8 : 0), r.id.p + 7);
        else
            n += (size_t)snprintf(text + n, size - n, rc == ERR_FORMAT ? "bad " : "failed ");
    }
    n += (size_t)snprintf(text + n, size - n, "-");
    if (warc_unseparated(w))
        snprintf(text + n, size - n, " %d", (int)warc_unseparated(w));
    warc_close(w);
    file_close(f);
    return text;
}

static void expect(struct buf *b, const char *want)
{
    char text[1000];

    assert_string_equal(summary(buf_span(b), text, sizeof text), want);
    buf_free(b);
}

/* ---- tests ---- */

static void test_fields(void **state)
{
    struct buf b = {0};
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct err e;

    (void)state;
    buf_puts(&b, "\r\nWARC/1.1\r\nwarc-type:response\r\nWARC-Target-URI: <http://h/a b>\r\n"
                 "WARC-Record-ID: <urn:uuid:1>\r\nX-Long: one\r\n two\r\n\tthree\r\nWARC-Date: 2020-01-01\r\n"
                 "Content-Type: application/http;\r\n msgtype=response\r\nCONTENT-LENGTH:  3 \r\n\r\nabc\r\n\r\n");
    assert_int_equal(file_open_mem(&f, "mem", buf_span(&b), &e), 0);
    assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
    assert_int_equal(warc_next(w, &r, &e), 1);
    assert_int_equal(r.offset, 2);
    assert_true(span_is(r.version, "WARC/1.1"));
    assert_true(span_is(r.type, "response"));
    assert_true(span_is(r.uri, "http://h/a b"));
    assert_true(span_is(r.id, "<urn:uuid:1>"));
    assert_true(span_is(r.date, "2020-01-01"));
    assert_true(span_is(r.mime, "application/http;   msgtype=response"));
    assert_int_equal(r.length, 3);
    assert_true(span_is(r.block, "abc"));
    assert_false(r.cut);
    assert_null(r.payload_digest.p);
    assert_int_equal(warc_next(w, &r, &e), 0);
    assert_int_equal(warc_next(w, &r, &e), 0);
    warc_close(w);
    file_close(f);
    buf_free(&b);
}

static void test_lf_only(void **state)
{
    struct buf b = {0};

    (void)state;
    for (int i = 1; i <= 2; i++)
        buf_printf(&b, "WARC/0.18\nWARC-Type: response\nWARC-Record-ID: <urn:x:%d>\nContent-Length: 2\n\nab\n\n", i);
    expect(&b, "1 2 -");
}

static void test_containers(void **state)
{
    struct buf all = {0}, member = {0}, one = {0}, split = {0}, piece = {0}, frames = {0};

    (void)state;
    for (int i = 1; i <= 5; i++) {
        buf_clear(&piece);
        put_good(&piece, i);
        buf_put_span(&all, buf_span(&piece));
        put_gzip(&member, buf_span(&piece));
        assert_int_equal(buf_reserve(&frames, 1000), 0);
        frames.n += ZSTD_compress(frames.p + frames.n, 1000, piece.p, piece.n, 3);
    }
    put_gzip(&one, buf_span(&all));
    for (size_t at = 0; at < all.n; at += 37)
        put_gzip(&split, (struct span){all.p + at, all.n - at < 37 ? all.n - at : 37});
    buf_put(&member, "\0\0\0\0", 4); /* padding behind the last member */
    expect(&member, "1 2 3 4 5 -");
    expect(&frames, "1 2 3 4 5 -");
    expect(&one, "1 2 3 4 5 -");
    expect(&split, "1 2 3 4 5 -");
    buf_put(&all, "\0\0\0\0\r\n", 4);
    expect(&all, "1 2 3 4 5 -");
    buf_free(&piece);
}

static void test_empty(void **state)
{
    struct buf b = {0}, z = {0};

    (void)state;
    put_gzip(&z, buf_span(&b));
    expect(&z, "-");
    expect(&b, "-");
}

static void test_wrong_lengths(void **state)
{
    static const char *const lengths[] = {"5", "40", "-5", "99999999999999999999", "9223372036854775807", "x", "",
                                          "1000000"};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct buf b = {0};
        put_good(&b, 1);
        put_record(&b, "resource", 2, lengths[i], "<p>a block of another length");
        put_good(&b, 3);
        put_good(&b, 4);
        expect(&b, "1 bad 3 4 -");
    }
}

/* Of a stream whose size is not known, and where a member shows the length wrong. */
static void test_wrong_length_in_members(void **state)
{
    struct buf b = {0}, p = {0};

    (void)state;
    put_good(&p, 1);
    put_gzip(&b, buf_span(&p));
    buf_clear(&p);
    put_record(&p, "resource", 2, "123456789012", "<p>a block");
    put_gzip(&b, buf_span(&p));
    for (int i = 3; i < 5; i++) {
        buf_clear(&p);
        put_good(&p, i);
        put_gzip(&b, buf_span(&p));
    }
    buf_free(&p);
    expect(&b, "1 bad 3 4 -");
}

static void test_garbage(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_puts(&b, "not an archive\n");
    put_good(&b, 1);
    static const char junk[] = "\0\1\2garbage\r\nmore WARC/ not really\r\n\r\n";
    buf_put(&b, junk, sizeof junk - 1);
    put_good(&b, 2);
    put_good(&b, 3);
    buf_puts(&b, "trailing garbage");
    expect(&b, "bad 1 bad 2 3 bad -");
    buf_puts(&b, "WARC/1.0\r\n\r\n");
    put_good(&b, 1);
    expect(&b, "bad 1 -");
}

static void test_separators_missing(void **state)
{
    struct buf b = {0};

    (void)state;
    for (int i = 1; i <= 3; i++) {
        put_good(&b, i);
        b.n -= 4;
    }
    expect(&b, "1 2 3 - 2");
}

/* A length that is two bytes short of a NUL-padded block: the record still counts. */
static void test_stray_bytes(void **state)
{
    struct buf b = {0};

    (void)state;
    put_record(&b, "resource", 1, "7", "<p>text..");
    put_good(&b, 2);
    expect(&b, "1 bad 2 -");
}

static void test_cut_short(void **state)
{
    struct buf b = {0}, whole = {0};
    char text[100];
    size_t first;

    (void)state;
    put_good(&whole, 1);
    first = whole.n;
    put_good(&whole, 2);
    for (size_t n = first + 1; n < whole.n - 4; n++) {
        buf_clear(&b);
        buf_put(&b, whole.p, n);
        /* what is not yet a version line is garbage; all else a record cut short */
        assert_string_equal(summary(buf_span(&b), text, sizeof text), "1 bad -");
    }
    buf_free(&whole);
    buf_free(&b);
}

static void test_damaged_members(void **state)
{
    struct buf b = {0}, p = {0};
    char text[1000];
    size_t at[5];

    (void)state;
    for (int i = 0; i < 4; i++) {
        at[i] = b.n;
        buf_clear(&p);
        put_good(&p, i + 1);
        put_gzip(&b, buf_span(&p));
    }
    at[4] = b.n;
    for (int i = 0; i < 4; i++) { /* the check sum of each member in turn */
        static const char *const want[] = {"bad 2 3 4 -", "1 bad 3 4 -", "1 2 bad 4 -", "1 2 3 bad -"};
        b.p[at[i + 1] - 6] ^= 1;
        assert_string_equal(summary(buf_span(&b), text, sizeof text), want[i]);
        b.p[at[i + 1] - 6] ^= 1;
    }
    for (size_t i = at[1] + 10; i < at[2] - 8; i++) { /* each byte of the second one's data */
        b.p[i] ^= 0x55;
        summary(buf_span(&b), text, sizeof text);
        assert_non_null(strstr(text, "1 bad"));
        assert_non_null(strstr(text, "3 4 -"));
        b.p[i] ^= 0x55;
    }
    b.n -= 20;
    assert_string_equal(summary(buf_span(&b), text, sizeof text), "1 2 3 bad -");
    buf_free(&p);
    buf_free(&b);
}

static void test_long_header(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_puts(&b, "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/");
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "abc");
    buf_puts(&b, "\r\nContent-Length: 0\r\n\r\n\r\n\r\n");
    put_good(&b, 1);
    expect(&b, "bad 1 -");
}

static void test_header_without_end(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_puts(&b, "WARC/1.0\r\nWARC-Type: resource\r\n");
    put_good(&b, 1);
    buf_puts(&b, "WARC/1.0\r\n");
    expect(&b, "bad 1 bad -");
}

static void test_long_block(void **state)
{
    struct buf b = {0}, fill = {0}, z = {0};
    char length[20];
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct err e;

    (void)state;
    for (int i = 0; i < 3 * MAX_BLOCK / 8; i++)
        buf_puts(&fill, "12345678");
    snprintf(length, sizeof length, "%zu", fill.n);
    put_record(&b, "resource", 1, length, fill.p);
    put_good(&b, 2);
    put_gzip(&z, buf_span(&b));
    for (int zipped = 0; zipped < 2; zipped++) {
        assert_int_equal(file_open_mem(&f, "mem", buf_span(zipped ? &z : &b), &e), 0);
        assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
        assert_int_equal(warc_next(w, &r, &e), 1);
        assert_true(r.cut);
        assert_int_equal(r.length, 3 * MAX_BLOCK);
        assert_true(r.block.n > 1000 && r.block.n <= MAX_BLOCK);
        assert_memory_equal(r.block.p, "12345678", 8);
        assert_int_equal(warc_next(w, &r, &e), 1);
        assert_true(span_is(r.id, "<urn:x:2>"));
        assert_int_equal(warc_next(w, &r, &e), 0);
        warc_close(w);
        file_close(f);
    }
    buf_free(&b);
    buf_free(&z);
    buf_free(&fill);
}

static void test_message(void **state)
{
    struct buf b = {0};
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct err e;

    (void)state;
    put_good(&b, 1);
    size_t at = b.n;
    put_record(&b, "resource", 2, "-1", "x");
    assert_int_equal(file_open_mem(&f, "some.warc", buf_span(&b), &e), 0);
    assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
    assert_int_equal(warc_next(w, &r, &e), 1);
    assert_int_equal(warc_next(w, &r, &e), ERR_FORMAT);
    char want[100];
    snprintf(want, sizeof want, "'some.warc' at byte %zu: Content-Length is missing or no length", at);
    assert_string_equal(e.msg, want);
    assert_true(span_is(r.id, "<urn:x:2>"));
    assert_int_equal(warc_next(w, &r, &e), 0);
    warc_close(w);
    file_close(f);
    buf_free(&b);
}

static const char arc_head[] = "filedesc://x.arc 0.0.0.0 20080430204825 text/plain 76\n1 0 InternetArchive\n"
                               "URL IP-address Archive-date Content-type Archive-length\n\n";

static int read_arc(struct span s, char *text, size_t size)
{
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct err e;
    size_t n = 0;
    int rc, n_bad = 0;

    assert_int_equal(file_open_mem(&f, "mem", s, &e), 0);
    assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
    assert_int_equal(warc_kind(w, &e), WARC_ARC);
    text[0] = '\0';
    while ((rc = warc_next(w, &r, &e)) != 0) {
        assert_true(rc == 1 || rc == ERR_FORMAT);
        n_bad += rc < 0;
        if (rc == 1)
            n += (size_t)snprintf(text + n, size - n, "%.*s|%.*s|%.*s|%.*s;", (int)r.version.n, r.version.p, (int)r.uri.n,
                                  r.uri.p, (int)r.mime.n, r.mime.p, (int)r.block.n, r.block.p);
    }
    warc_close(w);
    file_close(f);
    return n_bad;
}

static void test_arc(void **state)
{
    struct buf b = {0};
    char text[1000];

    (void)state;
    buf_puts(&b, arc_head);
    size_t head = b.n;
    buf_puts(&b, "http://h/a b?c=d 1.2.3.4 20080430204826 text/html 5\nabcde\n");
    buf_puts(&b, "http://h/2 1.2.3.4 20080430204826 text/plain 200 - - 0 x.arc 3\nxyz\n");
    assert_int_equal(read_arc(buf_span(&b), text, sizeof text), 0);
    assert_non_null(strstr(text, "ARC/1|http://h/a b?c=d|text/html|abcde;ARC/2|http://h/2|text/plain|xyz;"));
    /* a wrong length, and garbage */
    b.n = head;
    buf_puts(&b, "http://h/1 1.2.3.4 20080430204826 text/html 50\nabcde\n");
    buf_puts(&b, "http://h/2 1.2.3.4 20080430204826 text/html 3\nxyz\n\n");
    buf_puts(&b, "http://h/3 1.2.3.4 null no-type 3\nuvw\ngarbage here\n");
    assert_int_equal(read_arc(buf_span(&b), text, sizeof text), 2);
    assert_null(strstr(text, "h/3"));
    b.n -= strlen("garbage here\n");
    assert_int_equal(read_arc(buf_span(&b), text, sizeof text), 1);
    assert_null(strstr(text, "h/1"));
    assert_non_null(strstr(text, "ARC/1|http://h/2|text/html|xyz;ARC/1|http://h/3|no-type|uvw;"));
    buf_free(&b);
}

static void test_whole(void **state)
{
    struct span page = span_of("<p>a page"), all;
    struct file_in *f;
    struct warc *w;
    struct err e;

    (void)state;
    assert_int_equal(file_open_mem(&f, "mem", page, &e), 0);
    assert_int_equal(warc_open(&w, f, MAX_BLOCK, &e), 0);
    assert_int_equal(warc_kind(w, &e), WARC_NONE);
    assert_true(span_eq(warc_peek(w), page));
    assert_int_equal(warc_read_whole(w, 8, &all, &e), ERR_LIMIT);
    assert_int_equal(warc_read_whole(w, 9, &all, &e), 0);
    assert_true(span_eq(all, page));
    warc_close(w);
    file_close(f);
}

static void test_digests(void **state)
{
    struct span abc = span_of("abc");
    char hex[DIGEST_HEX];

    (void)state;
    digest_sha1_hex(abc, hex); /* FIPS 180, appendix A */
    assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_int_equal(digest_check(span_of("sha1:a9993e364706816aba3e25717850c26c9cd0d89d"), abc), DIGEST_SAME);
    assert_int_equal(digest_check(span_of("SHA1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"), abc), DIGEST_SAME);
    assert_int_equal(digest_check(span_of("sha1:qZk+NkcGgWq6PiVxeFDCbJzQ2J0="), abc), DIGEST_SAME);
    assert_int_equal(digest_check(span_of("sha1:qZk-NkcGgWq6PiVxeFDCbJzQ2J0"), abc), DIGEST_SAME);
    assert_int_equal(digest_check(span_of("sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE6"), abc), DIGEST_OTHER);
    assert_int_equal(digest_check(span_of("sha256:00"), abc), DIGEST_UNKNOWN);
    assert_int_equal(digest_check(span_of("sha1:"), abc), DIGEST_UNKNOWN);
    assert_int_equal(digest_check((struct span){0}, abc), DIGEST_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),          cmocka_unit_test(test_lf_only),
        cmocka_unit_test(test_containers),      cmocka_unit_test(test_empty),
        cmocka_unit_test(test_wrong_lengths),   cmocka_unit_test(test_wrong_length_in_members),
        cmocka_unit_test(test_garbage),         cmocka_unit_test(test_separators_missing),
        cmocka_unit_test(test_stray_bytes),     cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_damaged_members), cmocka_unit_test(test_long_header),
        cmocka_unit_test(test_long_block),      cmocka_unit_test(test_message),
        cmocka_unit_test(test_arc),             cmocka_unit_test(test_whole),
        cmocka_unit_test(test_digests),         cmocka_unit_test(test_header_without_end),
    };
    return cmocka_run_group_tests_name("warc", tests, NULL, NULL);
}
