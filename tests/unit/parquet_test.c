/* Parquet as JSON lines: rows equal to pyarrow's, whatever way they come; damage by row group and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <glob.h>
#include <unistd.h>

#if HAVE_LZ4
#include <lz4.h>
#endif

#include "base/file.h"
#include "base/json.h"
#include "base/parquet_chunk.h"
#include "tests/temp_folder.h"

#define DATA "tests/data/parquet/"

/* Of all that has been read: the lines, the last complaint, how many there were. */
struct got {
    struct buf lines;
    struct err why;
    int damages;
};

static void drain(struct file_in *f, size_t step, struct got *g)
{
    static char part[4096];
    ssize_t k;

    for (;;) {
        k = file_read(f, part, step, &g->why);
        if (k > 0)
            assert_int_equal(buf_put(&g->lines, part, (size_t)k), 0);
        if (k == 0)
            break;
        if (k < 0) {
            g->damages++;
            assert_int_equal(k, g->why.code);
            if (file_skip_member(f, &(struct err){0}) != 1)
                break;
        }
    }
    file_close(f);
}

/* What bytes are read as, which is the same for one thread and for several. */
static struct got read_mem(struct span bytes)
{
    struct got g = {0}, many = {0};
    struct file_in *f;

    assert_int_equal(file_open_mem(&f, "mem", bytes, &g.why), 0);
    drain(f, sizeof(char[4096]), &g);
    assert_int_equal(file_open_mem(&f, "mem", bytes, &many.why), 0);
    file_set_threads(f, 3);
    drain(f, sizeof(char[4096]), &many);
    assert_true(span_eq(buf_span(&g.lines), buf_span(&many.lines)));
    assert_int_equal(g.damages, many.damages);
    if (g.damages)
        assert_string_equal(g.why.msg, many.why.msg);
    buf_free(&many.lines);
    return g;
}

static void read_stored(const char *path, struct buf *b)
{
    FILE *f = fopen(path, "rb");

    assert_non_null(f);
    assert_int_equal(buf_reserve(b, 1 << 20), 0);
    b->n = fread(b->p, 1, 1 << 20, f);
    assert_true(b->n < 1 << 20);
    fclose(f);
}

/* The rows of NAME.parquet: NAME.jsonl, or for one of several that hold the same, what stands before the first "_". */
static void read_rows(const char *path, struct buf *rows)
{
    char name[256];
    const char *base = strrchr(path, '/') + 1;

    snprintf(name, sizeof name, "%.*s.jsonl", (int)(strlen(path) - strlen(".parquet")), path);
    if (access(name, R_OK) < 0)
        snprintf(name, sizeof name, DATA "%.*s.jsonl", (int)strcspn(base, "_"), base);
    read_stored(name, rows);
}

/* Whether this build has the library for a file's codec; pyarrow's is snappy where no other is asked for. */
static bool is_read(const char *path)
{
    static const char *const snappy[] = {"snappy", "nested", "fineweb", "int96", "duckdb_v1", "empty"};

    for (size_t i = 0; !HAVE_SNAPPY && i < sizeof snappy / sizeof *snappy; i++)
        if (strstr(path, snappy[i]))
            return false;
    return !strstr(path, "brotli") && (HAVE_LZ4 || !strstr(path, "lz4"));
}

static void each_file(void (*hold)(const char *path, struct span stored, struct span rows))
{
    glob_t all;

    assert_int_equal(glob(DATA "*.parquet", 0, NULL, &all), 0);
    assert_true(all.gl_pathc > 20);
    for (size_t i = 0; i < all.gl_pathc; i++) {
        const char *path = all.gl_pathv[i];
        struct buf stored = {0}, rows = {0};

        if (!is_read(path))
            continue;
        read_stored(path, &stored);
        read_rows(path, &rows);
        assert_true(stored.n && (rows.n || strstr(path, "empty")));
        hold(path, buf_span(&stored), buf_span(&rows));
        buf_free(&stored);
        buf_free(&rows);
    }
    globfree(&all);
}

static void same(const char *path, struct got *g, struct span rows)
{
    if (g->damages || !span_eq(buf_span(&g->lines), rows))
        print_error("%s: %s\n", path, g->damages ? g->why.msg : "other rows");
    assert_int_equal(g->damages, 0);
    assert_true(span_eq(buf_span(&g->lines), rows));
    buf_free(&g->lines);
}

static void hold_rows(const char *path, struct span stored, struct span rows)
{
    struct got g = read_mem(stored);
    struct file_in *f;

    same(path, &g, rows);
    for (size_t step = 1; step < 5000; step = step * 7 + 1) {
        g = (struct got){0};
        assert_int_equal(file_open(&f, path, &g.why), 0);
        assert_int_equal(file_codec(f), FILE_PARQUET);
        assert_int_equal(file_size(f), stored.n);
        drain(f, step < 4096 ? step : 4096, &g);
        same(path, &g, rows);
    }
}

static void rows_are_those_of_pyarrow(void **s)
{
    (void)s;
    each_file(hold_rows);
}

/* What gives a few bytes at a time and cannot go back. */
struct stream {
    struct span left;
};

static ssize_t read_stream(void *arg, void *p, size_t n, struct err *e)
{
    struct stream *s = arg;
    size_t k = n < 100 ? n : 100;

    (void)e;
    k = k < s->left.n ? k : s->left.n;
    if (k)
        memcpy(p, s->left.p, k);
    s->left.p += k;
    s->left.n -= k;
    return (ssize_t)k;
}

static void hold_stream(const char *path, struct span stored, struct span rows)
{
    struct stream s = {stored};
    struct got g = {0};
    struct file_in *f;

    assert_int_equal(file_open_stream(&f, path, stored.n, read_stream, &s, &g.why), 0);
    drain(f, 4096, &g);
    same(path, &g, rows);
}

static void what_cannot_seek_is_read_too(void **s)
{
    (void)s;
    each_file(hold_stream);
}

/* Whatever is damaged, what is given out are lines of JSON. */
static void hold_lines(struct json_reader *r, struct buf *lines)
{
    const struct json_field *field;
    struct err e;

    assert_int_equal(buf_reserve(lines, JSON_PADDING), 0);
    for (const char *p = lines->p, *end = p + lines->n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        assert_non_null(nl);
        if (json_read_object(r, (struct span){p, (size_t)(nl - p)}, &field, &e) < 0)
            assert_non_null(strstr(e.msg, "twice")); /* a map can have that */
        p = nl + 1;
    }
}

static void hold_damage(const char *path, struct span stored, struct span rows)
{
    struct json_reader *r = json_reader_new();
    char *copy = malloc(stored.n);

    (void)rows;
    assert_true(r && copy);
    for (size_t i = 4; i < stored.n; i += 1 + stored.n / 400) {
        struct got g;

        memcpy(copy, stored.p, stored.n);
        copy[i] ^= (char)(1 << i % 8);
        g = read_mem((struct span){copy, stored.n});
        hold_lines(r, &g.lines);
        if (g.damages && (!strstr(g.why.msg, "'mem': ") || !(strstr(g.why.msg, "column") || strstr(g.why.msg, "metadata") ||
                                                             strstr(g.why.msg, "schema") || strstr(g.why.msg, "cut short") ||
                                                             strstr(g.why.msg, "encrypted"))))
            fail_msg("%s, byte %zu: %s", path, i, g.why.msg);
        buf_free(&g.lines);
        g = read_mem((struct span){copy, i});
        assert_int_equal(g.damages, i > 4); /* four bytes alone are text */
        buf_free(&g.lines);
    }
    free(copy);
    json_reader_free(r);
}

static void whatever_is_damaged_is_named(void **s)
{
    (void)s;
    each_file(hold_damage);
}

/* Reads a file with n bytes replaced at `at`; the last complaint. */
static void complains(const char *name, size_t at, const char *bytes, size_t n, const char *want, int lines)
{
    struct buf stored = {0};
    struct got g;
    char path[256];
    int have = 0;

    snprintf(path, sizeof path, DATA "%s.parquet", name);
    read_stored(path, &stored);
    memcpy(stored.p + (at < stored.n ? at : stored.n + at), bytes, n);
    g = read_mem(buf_span(&stored));
    for (size_t i = 0; i < g.lines.n; i++)
        have += g.lines.p[i] == '\n';
    if (!strstr(g.why.msg, want))
        fail_msg("want: %s\ngot: %s", want, g.why.msg);
    assert_int_equal(have, lines);
    buf_free(&g.lines);
    buf_free(&stored);
}

static void damages_have_their_names(void **s)
{
    char junk[200];

    (void)s;
    complains("codec_none_v1", (size_t)-1, "X", 1, "'mem': it is cut short: it does not end with PAR1", 0);
    complains("codec_none_v1", (size_t)-8, "\xff\xff\xff\x7f", 4,
              "its metadata of 2147483647 bytes would be larger than the file", 0);
    complains("codec_none_v1", (size_t)-8, "\1\0\0\0", 4, "the metadata at its end are damaged", 0);
    complains("encoding_plain_v1", 60, "\xaa\xbb", 2,
              "row group 0: row 0: column 'i32': page at offset 4: its checksum is not that of its bytes", 0);
    complains("brotli", 0, "P", 1, "column 'text': page at offset 4: it is compressed with brotli, which quern does not read", 0);
    /* of two row groups the second is read */
    complains("codec_none_v1", 4, "\xff\xff\xff\xff", 4,
              "row group 0: row 0: column 'text': page at offset 4: its head is damaged", 15);
    memset(junk, 0xff, sizeof junk);
    complains("codec_zstd_v1", 800, junk, sizeof junk,
              "row group 0: row 0: column 'text': page at offset 4: damaged zstd data", 15);
}

/* What no checksum tells: counts and lengths that do not agree. */
static void counts_that_lie_are_told(void **s)
{
    (void)s;
    complains("codec_none_v1", (size_t)-1969, "\x4e", 1, "the metadata at its end are damaged: 39 rows, in 2 row groups 40", 0);
    complains("codec_none_v1", (size_t)-1998, "\x58", 1, "the schema is damaged", 0); /* a column without a name */
    complains("codec_none_v1", (size_t)-1940, "\xae", 1,
              "row group 0: row 25: column 'text': 1 bytes follow its last value at offset 5402", 40);
    complains("nested_v1", (size_t)-5270, "a", 1, "two columns are named 'a'", 0);
    /* more nulls than values are missing; a text that is shorter than its bytes */
    complains("encoding_plain_v2", 61, "\x5b", 1, "column 'i32': a page before offset 548 has more values than it says", 150);
    complains("encoding_lengths_v2", 6966, "\x30", 1, "column 's': a page before offset 7671 has more values than it says", 100);
    complains("dictionary_v1", 14, "\x20", 1, "a dictionary of 16 values does not fill its 152 bytes", 170);
}

#if HAVE_LZ4
/* The codec LZ4 is a block behind its sizes, several of them, or bare. */
static void lz4_is_read_with_and_without_sizes(void **s)
{
    static const char text[] = "one two three one two three one two three one two three one two three";
    uint8_t stored[300], out[2 * sizeof text];
    struct err e;
    int n = LZ4_compress_default(text, (char *)stored + 8, sizeof text, 100);

    (void)s;
    assert_true(n > 0);
    memcpy(stored, "\0\0\0", 3);
    stored[3] = sizeof text;
    memcpy(stored + 4, "\0\0\0", 3);
    stored[7] = (uint8_t)n;
    memcpy(stored + 8 + n, stored, 8 + (size_t)n);
    assert_int_equal(parquet_unpack(PARQUET_LZ4, stored, 16 + 2 * (size_t)n, out, sizeof out, &e), 0);
    assert_memory_equal(out, text, sizeof text);
    assert_memory_equal(out + sizeof text, text, sizeof text);
    assert_int_equal(parquet_unpack(PARQUET_LZ4, stored + 8, (size_t)n, out, sizeof text, &e), 0);
    assert_int_equal(parquet_unpack(PARQUET_LZ4_RAW, stored + 8, (size_t)n, out, sizeof text, &e), 0);
    assert_int_equal(parquet_unpack(PARQUET_LZ4_RAW, stored + 8, (size_t)n, out, sizeof text + 1, &e), ERR_FORMAT);
    assert_string_equal(e.msg, "it does not decompress to the size that it states");
    assert_int_equal(parquet_unpack(PARQUET_LZ4_RAW, stored, 8 + (size_t)n, out, sizeof text, &e), ERR_FORMAT);
}
#endif

static void what_cannot_be_is_refused_before_it_takes_memory(void **s)
{
    struct err e;

    (void)s;
    assert_int_equal(parquet_unpack_check(PARQUET_ZSTD, 100, 100 * 32768, &e), 0);
    assert_int_equal(parquet_unpack_check(PARQUET_ZSTD, 100, 101 * 32768, &e), ERR_FORMAT);
    assert_int_equal(parquet_unpack_check(PARQUET_SNAPPY, 1000, 1 << 30, &e), ERR_FORMAT);
    assert_string_equal(e.msg, "its 1000 bytes cannot decompress to 1073741824");
}

/* ---- writing ---- */

static char path[64];

static int write_lines(struct span lines, size_t step, struct err *e)
{
    struct file_out *f;
    int rc = file_create(&f, path, 0, e);

    for (size_t at = 0; rc == 0 && at < lines.n; at += step)
        rc = file_write(f, lines.p + at, lines.n - at < step ? lines.n - at : step, e);
    if (rc == 0)
        return file_commit(f, e);
    file_abort(f);
    return rc;
}

/* What is read of the lines once they are written. */
static void comes_back(struct span lines, struct span want)
{
    struct got g = {0};
    struct file_in *f;
    struct err e = {0};

    if (write_lines(lines, 1 << 16, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(file_open(&f, path, &e), 0);
    assert_int_equal(file_codec(f), FILE_PARQUET);
    drain(f, 4096, &g);
    same(path, &g, want);
}

static void values_come_back(void **s)
{
    static const char *const same_values[] = {"codec", "dictionary", "encoding", "nested", "nested_old_names", "dclm", "fineweb",
                                              "datatrove", "duckdb"};

    (void)s;
    for (size_t i = 0; i < sizeof same_values / sizeof *same_values; i++) {
        struct buf rows = {0};
        char name[128];

        snprintf(name, sizeof name, DATA "%s.jsonl", same_values[i]);
        read_stored(name, &rows);
        comes_back(buf_span(&rows), buf_span(&rows));
        buf_free(&rows);
    }
}

static void columns_are_of_a_type_that_holds_all(void **s)
{
    static const char lines[] =
        "{\"i\":1,\"r\":1,\"m\":1,\"j\":\"s\",\"b\":true,\"z\":null,\"x\":true,"
        "\"long\":9007199254740993,\"u\":1,\"t\":\"\\u00e9\\ud800\"}\n"
        "\n"
        "{\"r\":2.50,\"i\":-9223372036854775808,\"m\":\"s\",\"j\":[1, 2],\"b\":null,\"x\":0,"
        "\"long\":5e-1,\"u\":18446744073709551615}\n"
        "{\"r\":1e300,\"m\":2.50,\"j\":-0,\"b\":false,\"late\":{\"a\":\"b\"}}";
    static const char want[] =
        "{\"i\":1,\"r\":1,\"m\":\"1\",\"j\":\"s\",\"b\":true,\"z\":null,\"x\":\"true\",\"long\":\"9007199254740993\",\"u\":\"1\","
        "\"t\":\"\u00e9\ufffd\",\"late\":null}\n"
        "{\"i\":-9223372036854775808,\"r\":2.5,\"m\":\"s\",\"j\":[1, 2],\"b\":null,\"z\":null,\"x\":\"0\",\"long\":\"0.5\","
        "\"u\":\"18446744073709551615\",\"t\":null,\"late\":null}\n"
        "{\"i\":null,\"r\":1e+300,\"m\":\"2.5\",\"j\":0,\"b\":false,\"z\":null,\"x\":null,\"long\":null,\"u\":null,\"t\":null,"
        "\"late\":{\"a\":\"b\"}}\n";

    (void)s;
    comes_back(span_of(lines), span_of(want));
}

/* Over three row groups: what has one type in the first and another one later, comes late, or ends. */
static void what_changes_between_row_groups_is_settled(void **s)
{
    enum { ROWS = 5 * PARQUET_GROUP_ROWS / 2 };
    struct buf lines = {0}, want = {0};

    (void)s;
    for (int i = 0; i < ROWS; i++) {
        int group = i / PARQUET_GROUP_ROWS;

        buf_printf(&lines, "{\"n\":%d,\"k\":%s", i, i % 3 ? "\"few\"" : "\"words\"");
        buf_printf(&want, "{\"n\":%d,\"k\":%s", i, i % 3 ? "\"few\"" : "\"words\"");
        buf_printf(&lines, group == 0 ? ",\"a\":%d" : group == 1 ? ",\"a\":%d.5" : "", i % 1000);
        buf_printf(&want, group == 0 ? ",\"a\":%d" : group == 1 ? ",\"a\":%d.5" : ",\"a\":null", i % 1000);
        buf_printf(&lines, group == 0 ? ",\"m\":%d" : group == 1 ? ",\"m\":\"%d\"" : ",\"m\":true", i);
        buf_printf(&want, group == 2 ? ",\"m\":\"true\"" : ",\"m\":\"%d\"", i);
        buf_printf(&lines, group == 0 ? ",\"j\":%d" : group == 1 ? ",\"j\":\"%d\\n\"" : ",\"j\":[%d]", i);
        buf_printf(&want, group == 0 ? ",\"j\":%d" : group == 1 ? ",\"j\":\"%d\\n\"" : ",\"j\":[%d]", i);
        buf_printf(&lines, group == 1 ? ",\"late\":\"%d\"}\n" : "}\n", i);
        buf_printf(&want, group == 1 ? ",\"late\":\"%d\"}\n" : ",\"late\":null}\n", i);
    }
    assert_int_equal(lines.failed | want.failed, 0);
    comes_back(buf_span(&lines), buf_span(&want));
    buf_free(&lines);
    buf_free(&want);
}

static void the_bytes_are_the_same_however_they_come(void **s)
{
    struct buf rows = {0}, first = {0}, next = {0};
    struct err e;

    (void)s;
    read_stored(DATA "dclm.jsonl", &rows);
    assert_int_equal(write_lines(buf_span(&rows), rows.n, &e), 0);
    read_stored(path, &first);
    for (size_t step = 1; step < 2000; step = step * 5 + 2) {
        assert_int_equal(write_lines(buf_span(&rows), step, &e), 0);
        read_stored(path, &next);
        assert_true(span_eq(buf_span(&first), buf_span(&next)));
        buf_free(&next);
    }
    buf_free(&rows);
    buf_free(&first);
}

static void no_rows_are_a_file_too(void **s)
{
    (void)s;
    comes_back((struct span){"", 0}, (struct span){"", 0});
    comes_back(span_of("{}\n"), span_of("{\"text\":null}\n"));
}

static void what_is_no_row_is_refused(void **s)
{
    struct buf many = {0};
    struct err e;

    (void)s;
    unlink(path);
    assert_int_equal(write_lines(span_of("{\"a\":1}\n[1]\n"), 100, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "x.parquet': line 2 is no row: "));
    buf_putc(&many, '{');
    for (int i = 0; i <= PARQUET_COLUMNS_MAX; i++)
        buf_printf(&many, i ? ",\"k%d\":1" : "\"k%d\":1", i);
    buf_puts(&many, "}\n");
    assert_int_equal(write_lines(buf_span(&many), many.n, &e), ERR_LIMIT);
    assert_non_null(strstr(e.msg, "line 1: more than 2000 different keys are no columns of a Parquet file"));
    assert_int_equal(access(path, F_OK), -1);
    buf_free(&many);
}

static int setup(void **s)
{
    int rc = make_dir(s);

    snprintf(path, sizeof path, "%s/x.parquet", dir);
    return rc;
}

/* The bounds of two texts; most NULL: there is no greatest. */
static void bounds_are(const char *a, const char *b, const char *least, bool least_cut, const char *most, bool most_cut)
{
    struct parquet_written x = {.kind = KIND_TEXT};
    char own[PARQUET_BOUND];
    struct span s;

    parquet_bound_take(&x, span_of(a));
    parquet_bound_take(&x, span_of(b));
    s = parquet_bound_least(&x.least_text);
    if (!span_is(s, least) || x.least_text.cut != least_cut)
        fail_msg("the least is '%.*s', not '%s'", (int)s.n, s.p, least);
    if (parquet_bound_most(&x.most_text, own, &s) != (most != NULL) || (most && !span_is(s, most)) || x.most_text.cut != most_cut)
        fail_msg("the greatest is '%.*s', not '%s'", (int)s.n, s.p, most ? most : "none");
}

static void bounds_of_texts_are_whole_characters(void **s)
{
#define X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LAST8 "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
    (void)s;
    bounds_are("b", "", "", false, "b", false);
    bounds_are("b", "bb", "b", false, "bb", false);
    bounds_are(X31 X31 "ab", X31 X31 "ab", X31 X31 "ab", false, X31 X31 "ab", false);
    bounds_are(X31 X31 "ab", X31 X31 "abc", X31 X31 "ab", false, X31 X31 "ac", true);
    bounds_are(X31 X31 "abd", X31 X31 "abc", X31 X31 "ab", true, X31 X31 "ac", true);
    bounds_are(X31 X31 "abd", X31 X31 "ac", X31 X31 "ab", true, X31 X31 "ac", false);
    bounds_are(X31 X31 "a\xc3\xa4", X31 X31 "a\xc3\xa4", X31 X31 "a", true, X31 X31 "b", true);
    bounds_are(X31 X31 "\xc3\xa4z", X31 X31 "\xc3\xa4z", X31 X31 "\xc3\xa4", true, X31 X31 "\xc3\xa5", true);
    bounds_are(X31 X31 "a\x7f.", X31 X31 "a\x7f.", X31 X31 "a\x7f", true, X31 X31 "b", true);
    bounds_are(X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xed\x9f\xbf.", "a", "a", false,
               X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xee\x80\x80", true);
    bounds_are(LAST8 LAST8 LAST8 LAST8 LAST8 LAST8 LAST8 LAST8 ".", "", "", false, NULL, true);
}

static int teardown(void **s)
{
    (void)s;
    unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_pyarrow),
        cmocka_unit_test(what_cannot_seek_is_read_too),
        cmocka_unit_test(whatever_is_damaged_is_named),
        cmocka_unit_test(damages_have_their_names),
        cmocka_unit_test(counts_that_lie_are_told),
#if HAVE_LZ4
        cmocka_unit_test(lz4_is_read_with_and_without_sizes),
#endif
        cmocka_unit_test(what_cannot_be_is_refused_before_it_takes_memory),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(columns_are_of_a_type_that_holds_all),
        cmocka_unit_test(what_changes_between_row_groups_is_settled),
        cmocka_unit_test(the_bytes_are_the_same_however_they_come),
        cmocka_unit_test(bounds_of_texts_are_whole_characters),
        cmocka_unit_test(no_rows_are_a_file_too),
        cmocka_unit_test(what_is_no_row_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
