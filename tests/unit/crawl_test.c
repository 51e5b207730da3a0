/* Keys that a condition can meet, names that lists may have, and entries of indexes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/crawl/crawl_key.h"
#include "curate/crawl/crawl_places.h"
#include "curate/crawl/record_list.h"

/* The prefixes that a condition bounds keys to, blanks between; "*": it does not. */
static void keys_are(const char *text, const char *want)
{
    struct crawl_keys k;
    struct where *w;
    struct buf got = {0};
    struct err e;
    int rc = where_read(&w, text, crawl_fields, &e);

    if (rc == ERR_UNSUPPORTED)
        return; /* no PCRE2 */
    assert_int_equal(rc, 0);
    assert_int_equal(crawl_keys_find(&k, w, &e), 0);
    buf_puts(&got, k.all ? "*" : "");
    for (size_t i = 0; i < k.n; i++) {
        buf_puts(&got, i ? " " : "");
        buf_put_span(&got, k.v[i]);
    }
    buf_putc(&got, '\0');
    if (strcmp(got.p, want) != 0)
        fail_msg("'%s' gives '%s', not '%s'", text, got.p, want);
    buf_free(&got);
    crawl_keys_free(&k);
    where_free(w);
}

static void test_keys(void **state)
{
    (void)state;
    keys_are("lang = deu", "*");
    keys_are("host = www.Example.de", "de,example");
    keys_are("host = www2.example.de", "de,example");
    keys_are("host = www.de", "de");
    keys_are("host = 192.0.2.7", "*");
    keys_are("host = b\xc3\xbc" "cher.de", "*");
    keys_are("domain in (b.fr, a.de, a.de)", "de,a fr,b");
    keys_are("tld in (de, uk)", "de uk");
    keys_are("tld = de and domain in (a.de, b.fr)", "de,a");
    keys_are("domain = a.de or lang = deu", "*");
    keys_are("domain = a.de or host = x.a.de", "de,a");
    keys_are("domain = a.de and host = x.a.de", "de,a,x");
    keys_are("domain = a.de and domain = b.de", "");
    keys_are("domain = a.de and lang = deu", "de,a");
    keys_are("not domain = a.de", "*");
    keys_are("not domain = a.de and domain in (c.de, b.de)", "de,b de,c");
    keys_are("domain != a.de", "*");
    keys_are("url = 'https://a.de/b/c.html?q=1'", "de,a)/b/c.html");
    keys_are("url = https://a.de:8080/b", "de,a");
    keys_are("url = 'http://me@a.de/B/c'", "de,a)");
    keys_are("url = https://a.de/b/../c", "de,a)/b");
    keys_are("url ~ \"^https?://(www\\.)?a\\.de/b/\"", "de,a)/b");
    keys_are("url ~ \"^https://a\\.de/b[0-9]\"", "de,a)/b");
    keys_are("url ~ \"^https://a\\.de/bc?\"", "de,a)/b");
    keys_are("url ~ \"^https://a.de/\"", "*");
    keys_are("url ~ \"^https://a\\.de\"", "*");
    keys_are("url ~ \"a\\.de/\"", "*");
    keys_are("url ~ \"^https://a\\.de/|b\"", "*");
    keys_are("key ~ '^de,a' or key ~ '^fr,'", "de,a fr,");
    keys_are("key = 'de,a)/'", "de,a)/");
}

static void test_names(void **state)
{
    static const char *const below[] = {"a.warc.gz", "crawl-data/x/y.warc.gz", "a..b/..c/d..", "./a"};
    static const char *const others[] = {"", "/etc/passwd", "..", "../a", "a/..", "a/../b", "https://x/y", "s3://b/k",
                                         "a\nb", "a\\b", "a/b\x7f"};

    (void)state;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        assert_true(crawl_name_is_below(span_of(below[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(crawl_name_is_below(span_of(others[i])));
}

static void join_is(const char *folder, const char *name, const char *want)
{
    char *got = crawl_join(folder, name);

    assert_string_equal(got, want);
    free(got);
}

static void test_join(void **state)
{
    (void)state;
    join_is("", "a/b", "a/b");
    join_is("x", "a?b", "x/a?b");
    join_is("x/", "a", "x/a");
    join_is("https://h", "a?b#c%d=e", "https://h/a%3Fb%23c%25d=e");
    join_is("s3://b/", "a?b", "s3://b/a?b");
}

/* An entry of a line, padded as readers do. */
static int read_entry(struct crawl_entry *c, const char *line, struct err *e)
{
    static char padded[2048];

    snprintf(padded, sizeof padded - JSON_PADDING, "%s", line);
    return crawl_entry_cdxj(c, (struct span){padded, strlen(padded)}, e);
}

#define LONG(offset, length) "de,a)/ 2024 {\"filename\":\"a\",\"offset\":" offset ",\"length\":" length "}"

static void test_entries(void **state)
{
    struct crawl_entry c = {0};
    struct buf b = {0};
    struct err e;

    (void)state;
    assert_int_equal(read_entry(&c, "de,a)/ 20240225120000 {\"url\": \"https://www.a.de/\\u00fc\", \"mime\": \"text/html\", "
                                "\"status\": \"200\", \"digest\": \"LVGE4HVZXEJAR3QZUY7DGF2VZSRSETVL\", \"length\": \"12\", "
                                "\"offset\": \"34\", \"languages\": \"deu,eng\", "
                                "\"filename\": \"crawl-data/CC-MAIN-2024-10/x.warc.gz\"}", &e), 1);
    assert_int_equal(crawl_entry_put(&c, &b), 0);
    buf_putc(&b, '\0');
    assert_string_equal(b.p, "{\"url\":\"https://www.a.de/\xc3\xbc\",\"file\":\"crawl-data/CC-MAIN-2024-10/x.warc.gz\","
                             "\"offset\":34,\"length\":12,\"digest\":\"sha1:LVGE4HVZXEJAR3QZUY7DGF2VZSRSETVL\","
                             "\"date\":\"2024-02-25T12:00:00Z\",\"status\":200,"
                             "\"mime\":\"text/html\",\"lang\":\"deu\",\"langs\":\"deu,eng\",\"dump\":\"CC-MAIN-2024-10\"}\n");
    assert_int_equal(read_entry(&c, "!meta {}", &e), 0);
    assert_int_equal(read_entry(&c, " CDX N b a", &e), 0);
    assert_int_equal(read_entry(&c, "de,a)/ 20240225120000", &e), ERR_FORMAT);
    assert_int_equal(read_entry(&c, LONG("0", "9223372036854775807"), &e), 1);
    assert_int_equal(read_entry(&c, LONG("1", "9223372036854775807"), &e), ERR_FORMAT);
    assert_int_equal(read_entry(&c, LONG("1", "9223372036854775808"), &e), ERR_FORMAT);
    buf_free(&b);
    crawl_entry_free(&c);
}

static void test_digests(void **state)
{
    (void)state;
    assert_true(record_digest_key(span_of("sha1:ABC")) == record_digest_key(span_of("abc")));
    assert_true(record_digest_key(span_of("SHA1:ABC=")) == record_digest_key(span_of("abc")));
    assert_true(record_digest_key(span_of("abd")) != record_digest_key(span_of("abc")));
    assert_true(record_digest_key(span_of("")) == 0);
}

static void test_lists(void **state)
{
    static const char *const lists[] = {"{\"file\":\"a\",\"offset\":1,\"length\":2}\n{",
                                        " {\"url\":\"x\",\"filename\":\"a\",\"offset\":\"1\",\"length\":\"2\"}",
                                        "{\"warc_filename\":\"a\",\"warc_record_offset\":1,\"warc_record_length\":2}"};
    static const char *const others[] = {"", "{}",
                                         "{\"id\":\"a\",\"text\":\"x\",\"source\":{\"file\":\"a\",\"offset\":1,\"length\":2}}",
                                         "file offset length",
                                         "{\"file\":\"a\"}\n{\"offset\":1,\"length\":2}"};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_true(record_list_begins(span_of(lists[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(record_list_begins(span_of(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys), cmocka_unit_test(test_names), cmocka_unit_test(test_join),
        cmocka_unit_test(test_entries), cmocka_unit_test(test_digests), cmocka_unit_test(test_lists)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
