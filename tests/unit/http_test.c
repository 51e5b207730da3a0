#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "curate/archive/http.h"
#include "curate/archive/page.h"

enum { MAX = 1 << 20 };

static const char text[] = "<p>Some text that repeats: some text that repeats, some text that repeats.\n";

/* ---- heads ---- */

static void test_head(void **state)
{
    struct http_head h;
    char type[64];

    (void)state;
    http_parse_head(span_of("HTTP/1.1 200 OK\r\nContent-Type: Text/HTML;\r\n charset=\"ISO-8859-2\"\r\n"
                            "content-encoding: gzip, br\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\nbody"), &h);
    assert_int_equal(h.status, 200);
    assert_true(h.chunked);
    assert_int_equal(h.n_codings, 2);
    assert_true(span_is(h.coding[0], "gzip") && span_is(h.coding[1], "br"));
    http_media_type(h.mime, type, sizeof type);
    assert_string_equal(type, "text/html");
    assert_true(span_is(http_parameter(h.mime, "charset"), "ISO-8859-2"));
    assert_null(http_parameter(h.mime, "boundary").p);

    http_parse_head(span_of("HTTP/1.0 404\nContent-Type: text/plain\n\nbody"), &h);
    assert_int_equal(h.status, 404);
    assert_int_equal(h.length, strlen("HTTP/1.0 404\nContent-Type: text/plain\n\n"));

    http_parse_head(span_of("HTTP/1.1 100 Continue\r\n\r\nHTTP/2 201\r\nA: b\r\n\r\nbody"), &h);
    assert_int_equal(h.status, 201);
    assert_int_equal(h.length, strlen("HTTP/1.1 100 Continue\r\n\r\nHTTP/2 201\r\nA: b\r\n\r\n"));

    http_parse_head(span_of("HTTP/1.1 200 OK\r\nContent-Type: text/html"), &h);
    assert_int_equal(h.status, 200);
    assert_int_equal(h.length, strlen("HTTP/1.1 200 OK\r\nContent-Type: text/html"));

    http_parse_head(span_of("<html>no head"), &h);
    assert_int_equal(h.status, 0);
    assert_int_equal(h.length, 0);
    http_parse_head((struct span){NULL, 0}, &h);
    assert_int_equal(h.status, 0);
    http_parse_head(span_of("HTTP/1.1 abc OK\r\n\r\n"), &h);
    assert_int_equal(h.status, 0);
}

static void test_fields(void **state)
{
    struct span block = span_of("HTTP/1.1 103 Early Hints\r\nX-Robots-Tag: early\r\n\r\n"
                                "HTTP/1.1 200 OK\r\nx-robots-tag:  noai \r\nno field\r\n"
                                "X-Robots-Tag: a,\r\n b\r\n\r\nX-Robots-Tag: body"), value;
    struct http_head h;
    size_t at = 0;

    (void)state;
    http_parse_head(block, &h);
    assert_true(http_field(block, &h, "X-Robots-Tag", &at, &value) && span_is(value, "noai"));
    assert_true(http_field(block, &h, "X-Robots-Tag", &at, &value) && span_is(value, "a,\r\n b"));
    assert_false(http_field(block, &h, "X-Robots-Tag", &at, &value));
    at = 0;
    assert_false(http_field(block, &h, "Link", &at, &value));
    block = span_of("X-Robots-Tag: no head");
    http_parse_head(block, &h);
    assert_false(http_field(block, &h, "X-Robots-Tag", &at, &value));
}

static void test_links(void **state)
{
    struct span links = span_of("</a>; rel=prev, <b.html>; title=\"x\"; rel=\"next License\" ,< /c >;rel=canonical, <d");

    (void)state;
    assert_true(span_is(http_link(links, "prev"), "/a"));
    assert_true(span_is(http_link(links, "license"), "b.html"));
    assert_true(span_is(http_link(links, "canonical"), "/c"));
    assert_null(http_link(links, "alternate").p);
    assert_null(http_link(span_of(""), "alternate").p);
}

static void test_media_types(void **state)
{
    static const char *const none[] = {"", "html", ";", " ; charset=x"};
    char type[16];

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        http_media_type(span_of(none[i]), type, sizeof type);
        assert_string_equal(type, "");
    }
    http_media_type(span_of("text/a-type-that-is-too-long-to-keep"), type, sizeof type);
    assert_int_equal(strlen(type), sizeof type - 1);
    assert_true(span_is(http_parameter(span_of("a/b; x=1; Charset = utf-8 ; y"), "charset"), "utf-8"));
    assert_true(span_is(http_parameter(span_of("a/b;charset='utf-8'"), "charset"), "utf-8"));
    assert_int_equal(http_parameter(span_of("a/b;charset="), "charset").n, 0);
    assert_null(http_parameter(span_of("a/b;charset"), "charset").p);
}

/* ---- bodies ---- */

static struct http_head coded(const char *codings, bool chunked)
{
    static char block[200];
    struct http_head h;

    snprintf(block, sizeof block, "HTTP/1.1 200 OK\r\n%s%s%s%s\r\n", *codings ? "Content-Encoding: " : "", codings,
             *codings ? "\r\n" : "", chunked ? "Transfer-Encoding: chunked\r\n" : "");
    http_parse_head(span_of(block), &h);
    return h;
}

/* The body must decode to want, with a fault (a part of its message) or none. */
static void expect(const char *codings, bool chunked, struct span body, struct span want, const char *fault)
{
    struct http_head h = coded(codings, chunked);
    struct http_decoder *d;
    struct span entity;
    const char *why;
    struct err e;

    assert_int_equal(http_decoder_new(&d, &e), 0);
    for (int again = 0; again < 2; again++) { /* what a decoder keeps must not matter */
        assert_int_equal(http_decode(d, &h, body, MAX, &entity, &why, &e), 0);
        assert_int_equal(entity.n, want.n);
        assert_true(span_eq(entity, want));
        if (fault)
            assert_non_null(why && strstr(why, fault) ? why : NULL);
        else
            assert_null(why);
    }
    http_decoder_free(d);
}

static void test_chunks(void **state)
{
    static const struct {
        const char *body, *want, *fault;
    } cases[] = {
        {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", NULL},
        {"A;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", "0123456789", NULL},
        {"0005  \r\nhello\r\n000\r\n\r\n", "hello", NULL},
        {"5\nhello\n0\n\n", "hello", NULL},
        {"  5\r\nhello\r\n0\r\n", "hello", NULL},
        {"5\r\nhello6\r\n world0\r\n", "hello world", NULL},
        {"", "", "cut short"},
        {"5\r\nhello\r\n6\r\n wo", "hello wo", "cut short"},
        {"5\r\nhello\r\n", "hello", "cut short"},
        {"5\r\nhello\r\nnonsense", "hello", "cut short"},
        {"plain text", "plain text", "not chunked"},
        {"dead beef", "dead beef", "not chunked"},
        {"ffffffffffffffffffff\r\nx", "ffffffffffffffffffff\r\nx", "not chunked"},
        {"7fffffffffffffff\r\nxyz", "xyz", "cut short"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect("", true, span_of(cases[i].body), span_of(cases[i].want), cases[i].fault);
}

static void deflate_into(struct buf *b, struct span s, int wrapping)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, wrapping, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(buf_reserve(b, s.n + 200), 0);
    z.next_in = (Bytef *)(uintptr_t)s.p;
    z.avail_in = (uInt)s.n;
    z.next_out = (Bytef *)b->p + b->n;
    z.avail_out = (uInt)s.n + 200;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->n += s.n + 200 - z.avail_out;
    deflateEnd(&z);
}

static void zstd_into(struct buf *b, struct span s)
{
    assert_int_equal(buf_reserve(b, s.n + 200), 0);
    b->n += ZSTD_compress(b->p + b->n, s.n + 200, s.p, s.n, 3);
}

/* "Some text" as brotli's uncompressed meta-block (RFC 7932, 9.2), then the last, empty one. */
static const char brotli[] = "\x80\0\x10Some text\x03";

static void test_codings(void **state)
{
    struct span want = span_of(text);
    struct buf gz = {0}, zl = {0}, raw = {0}, zs = {0}, both = {0};

    (void)state;
    deflate_into(&gz, want, 15 + 16);
    deflate_into(&zl, want, 15);
    deflate_into(&raw, want, -15);
    zstd_into(&zs, want);
    expect("gzip", false, buf_span(&gz), want, NULL);
    expect("X-GZIP", false, buf_span(&gz), want, NULL);
    expect("deflate", false, buf_span(&zl), want, NULL);
    expect("deflate", false, buf_span(&raw), want, NULL);
    expect("zstd", false, buf_span(&zs), want, NULL);
    expect("identity", false, want, want, NULL);
    expect("br", false, (struct span){brotli, sizeof brotli - 1}, span_of("Some text"), NULL);
    zstd_into(&both, buf_span(&gz));
    expect("gzip, zstd", false, buf_span(&both), want, NULL);
    buf_clear(&both); /* two members and garbage behind */
    deflate_into(&both, (struct span){want.p, 10}, 15 + 16);
    deflate_into(&both, (struct span){want.p + 10, want.n - 10}, 15 + 16);
    buf_puts(&both, "garbage");
    expect("gzip", false, buf_span(&both), want, NULL);
    buf_clear(&both);
    buf_printf(&both, "%zx\r\n", gz.n);
    buf_put_span(&both, buf_span(&gz));
    buf_puts(&both, "\r\n0\r\n\r\n");
    expect("gzip", true, buf_span(&both), want, NULL);
    buf_free(&gz);
    buf_free(&zl);
    buf_free(&raw);
    buf_free(&zs);
    buf_free(&both);
}

static void test_lies(void **state)
{
    static const char *const codings[] = {"gzip", "deflate", "br", "zstd"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        expect(codings[i], false, span_of(text), span_of(text), "not coded");
    expect("utf-8", false, span_of(text), span_of(text), "unknown");
    expect("gzip", false, (struct span){text, 0}, (struct span){text, 0}, NULL);
}

static void test_cut(void **state)
{
    struct span want = span_of(text), entity;
    struct buf b = {0};
    struct http_head h = coded("gzip", false);
    struct http_decoder *d;
    const char *why;
    struct err e;

    (void)state;
    deflate_into(&b, want, 15 + 16);
    assert_int_equal(http_decoder_new(&d, &e), 0);
    for (size_t n = 3; n < b.n; n++) {
        assert_int_equal(http_decode(d, &h, (struct span){b.p, n}, MAX, &entity, &why, &e), 0);
        assert_non_null(why);
        assert_true(entity.n <= want.n && memcmp(entity.p ? entity.p : "", want.p, entity.n) == 0);
    }
    http_decoder_free(d);
    buf_free(&b);
}

static void test_bomb(void **state)
{
    static const char *const codings[] = {"gzip", "zstd", "gzip, zstd"};
    struct buf zeros = {0}, b[3] = {{0}, {0}, {0}};
    struct http_decoder *d;
    struct span entity;
    struct err e;

    (void)state;
    assert_int_equal(buf_reserve(&zeros, 8 * MAX), 0);
    memset(zeros.p, ' ', 8 * MAX);
    zeros.n = 8 * MAX;
    deflate_into(&b[0], buf_span(&zeros), 15 + 16);
    zstd_into(&b[1], buf_span(&zeros));
    zstd_into(&b[2], buf_span(&b[0]));
    assert_int_equal(http_decoder_new(&d, &e), 0);
    for (int i = 0; i < 3; i++) {
        struct http_head h = coded(codings[i], false);
        assert_int_equal(http_decode(d, &h, buf_span(&b[i]), MAX, &entity, NULL, &e), ERR_LIMIT);
        assert_int_equal(http_decode(d, &h, buf_span(&b[i]), 8 * MAX - 1, &entity, NULL, &e), ERR_LIMIT);
        assert_int_equal(http_decode(d, &h, buf_span(&b[i]), 8 * MAX, &entity, NULL, &e), 0);
        assert_int_equal(entity.n, 8 * MAX);
        buf_free(&b[i]);
    }
    http_decoder_free(d);
    buf_free(&zeros);
}

/* ---- what becomes a page ---- */

static enum page_kind judge(const char *type, const char *mime, const char *block)
{
    struct warc_record r = {.type = span_of(type), .mime = span_of(mime), .block = span_of(block),
                            .uri = span_of("http://h/")};
    struct http_head head;

    return page_judge(&r, &head);
}

static void test_judge(void **state)
{
    const char *http = "application/http; msgtype=response";

    (void)state;
    assert_int_equal(judge("response", http, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), PAGE_HTML);
    assert_int_equal(judge("Response", http, "HTTP/1.1 203 OK\r\nContent-Type: Application/XHTML+XML;a=b\r\n\r\n"),
                     PAGE_HTML);
    assert_int_equal(judge("response", http, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), PAGE_TEXT);
    assert_int_equal(judge("response", http, "HTTP/1.1 200 OK\r\n\r\n"), PAGE_UNSURE);
    assert_int_equal(judge("response", http, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"), PAGE_MEDIA);
    assert_int_equal(judge("response", http, "HTTP/1.1 301 Moved\r\nContent-Type: text/html\r\n\r\n"), PAGE_STATUS);
    assert_int_equal(judge("response", http, "HTTP/1.1 404 No\r\nContent-Type: text/html\r\n\r\n"), PAGE_STATUS);
    assert_int_equal(judge("response", http, "<html>"), PAGE_UNSURE);
    assert_int_equal(judge("response", "text/dns", "1.2.3.4"), PAGE_MEDIA);
    assert_int_equal(judge("revisit", http, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), PAGE_REVISIT);
    assert_int_equal(judge("request", http, "GET / HTTP/1.1\r\n\r\n"), PAGE_REQUEST);
    assert_int_equal(judge("resource", "text/html", "<p>"), PAGE_HTML);
    assert_int_equal(judge("conversion", "text/plain", "text"), PAGE_TEXT);
    assert_int_equal(judge("warcinfo", "application/warc-fields", "a: b"), PAGE_INFO);
    assert_int_equal(judge("continuation", "text/html", "<p>"), PAGE_OTHER_RECORD);
    assert_int_equal(judge("", "text/html", "<p>"), PAGE_OTHER_RECORD);
}

static void test_looks_like_html(void **state)
{
    static const char *const yes[] = {"<!DOCTYPE html>", " \n<html>", "<!-- x", "<P>", "\xEF\xBB\xBF<body class=a>",
                                      "<?xml version='1.0'?><html xmlns='x'>", "<br/>"};
    static const char *const no[] = {"", "text", "<", "<x>", "<rss>", "<?xml version='1.0'?><rss>", "{\"a\":1}",
                                     "<pre", "%PDF-1.4"};

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(page_is_html(span_of(yes[i])));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(page_is_html(span_of(no[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),   cmocka_unit_test(test_media_types), cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_codings), cmocka_unit_test(test_lies),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_links),
        cmocka_unit_test(test_bomb),   cmocka_unit_test(test_judge),       cmocka_unit_test(test_looks_like_html),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
