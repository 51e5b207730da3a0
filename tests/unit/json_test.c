/* JSON lines: what is valid, where fields begin and end, strings there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/isa.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/utf8.h"

ISA_DECLARE(size_t, json_find_hard, (const char *src, size_t n));
ISA_DECLARE(size_t, json_unescape_run, (char *dst, const char *src, size_t n, size_t *used));
ISA_DECLARE(size_t, json_copy_to_special, (char *dst, const char *src, size_t n));

/* line with padding behind it, in memory of exactly that size */
static char *padded(struct span s)
{
    char *p = malloc(s.n + JSON_PADDING);
    memcpy(p, s.p, s.n);
    memset(p + s.n, '"', JSON_PADDING);
    return p;
}

static int read_line(struct json_reader *r, struct span s, char **keep,
                     const struct json_field **f, struct err *e)
{
    *keep = padded(s);
    return json_read_object(r, (struct span){*keep, s.n}, f, e);
}

static void fields_keep_their_bytes(void **s)
{
    static const char line[] =
        " { \"id\" : \"a\\u0041\" ,\"text\":\"x \\\" y\",\"n\":-1.50E+3 , \"big\":123456789012345678901234567890,"
        "\"o\":{\"text\":[1,{\"id\":2}], \"k\" : {}}, \"a\" : [ ] ,\"t\":true,\"z\":null,\"k\\u00e9\":1e400 }\r\n";
    static const struct {
        const char *key, *raw;
        enum json_type type;
    } want[] = {{"id", "\"a\\u0041\"", JSON_STRING},
                {"text", "\"x \\\" y\"", JSON_STRING},
                {"n", "-1.50E+3", JSON_NUMBER},
                {"big", "123456789012345678901234567890", JSON_NUMBER},
                {"o", "{\"text\":[1,{\"id\":2}], \"k\" : {}}", JSON_OBJECT},
                {"a", "[ ]", JSON_ARRAY},
                {"t", "true", JSON_BOOL},
                {"z", "null", JSON_NULL},
                {"k\xC3\xA9", "1e400", JSON_NUMBER}};
    struct json_reader *r = json_reader_new();
    const struct json_field *f;
    struct err e;
    char *keep;

    (void)s;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(read_line(r, span_of(line), &keep, &f, &e), 9);
        for (int i = 0; i < 9; i++) {
            assert_true(span_is(f[i].key, want[i].key));
            assert_true(span_is(f[i].raw, want[i].raw));
            assert_int_equal(f[i].type, want[i].type);
        }
        free(keep);
    }
    assert_int_equal(read_line(r, span_of("{}"), &keep, &f, &e), 0);
    free(keep);
    json_reader_free(r);
    json_reader_free(NULL);
}

static void bad_lines_are_refused_with_the_reason(void **s)
{
    static const char *const cases[][2] = {
        {"", "empty"}, {"   ", "empty"}, {"[1]", "not an object"}, {"\"x\"", "not an object"},
        {"{\"a\":1", "too early"}, {"{\"a\":1}}", "follows"}, {"{\"a\":1} x", "follows"},
        {"{\"a\":1}{\"b\":2}", "follows"}, {"{\"a\" 1}", "':'"}, {"{\"a\":}", "unexpected"},
        {"{\"a\":1,}", "key"}, {"{,}", "key"}, {"{\"a\":1 \"b\":2}", "','"}, {"{a:1}", "key"},
        {"{\"a\":[1,]}", "unexpected"}, {"{\"a\":[1 2]}", "','"}, {"{\"a\":[1}", "']'"},
        {"{\"a\":01}", "number"}, {"{\"a\":1.}", "number"}, {"{\"a\":.5}", "unexpected"},
        {"{\"a\":+1}", "unexpected"}, {"{\"a\":1e}", "number"}, {"{\"a\":-}", "number"},
        {"{\"a\":0x1}", "number"}, {"{\"a\":tru}", "unexpected"}, {"{\"a\":nulll}", "unexpected"},
        {"{\"a\":NaN}", "unexpected"}, {"{\"a\":\"\\x\"}", "bad escape at byte 6"},
        {"{\"a\":\"\\u12g4\"}", "bad escape"}, {"{\"a\":\"\\u12\"}", "bad escape"},
        {"{\"a\":\"b}", "does not end"}, {"{\"a\":\"b\nc\"}", "control"},
        {"{\"a\":\"\xC3\x28\"}", "invalid UTF-8 at byte 6"}, {"{\"a\":\"\xED\xA0\x80\"}", "UTF-8"},
        {"{\"a\":1,\"b\":2,\"\\u0061\":3}", "'a' occurs twice"}, {"{\"\\q\":1}", "bad escape"},
        {"{\"a\":\"x\"y}", "','"}, {"{\"a\":x\"y\"}", "unexpected"}, {"{\"a\":1\"y\"}", "number"},
        {"{\"a\"\f:1}", "':'"}, {"{\"a\":1\v}", "number"}, {"{\"a\":1\x1a}", "','"}};
    struct json_reader *r = json_reader_new();
    const struct json_field *f;
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *keep;
        assert_int_equal(read_line(r, span_of(cases[i][0]), &keep, &f, &e), ERR_FORMAT);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("'%s': said '%s', not '%s'", cases[i][0], e.msg, cases[i][1]);
        free(keep);
    }
    json_reader_free(r);
}

static void many_keys_and_deep_nesting_are_bounded(void **s)
{
    struct json_reader *r = json_reader_new();
    const struct json_field *f;
    struct buf b = {0};
    struct err e;
    char *keep;

    (void)s;
    buf_putc(&b, '{');
    for (int i = 0; i < 50000; i++)
        buf_printf(&b, "\"key%d\":%d,", i, i);
    size_t n = b.n;
    buf_puts(&b, "\"last\":0}");
    assert_int_equal(read_line(r, buf_span(&b), &keep, &f, &e), 50001);
    assert_true(span_is(f[50000].key, "last"));
    free(keep);
    b.n = n;
    buf_puts(&b, "\"key777\":0}");
    assert_int_equal(read_line(r, buf_span(&b), &keep, &f, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "'key777' occurs twice"));
    free(keep);
    for (int depth = 999; depth <= 1000; depth++) {
        buf_clear(&b);
        buf_puts(&b, "{\"a\":");
        for (int i = 0; i < depth; i++)
            buf_putc(&b, '[');
        for (int i = 0; i < depth; i++)
            buf_putc(&b, ']');
        buf_putc(&b, '}');
        assert_int_equal(read_line(r, buf_span(&b), &keep, &f, &e), depth == 999 ? 1 : ERR_FORMAT);
        free(keep);
    }
    buf_free(&b);
    json_reader_free(r);
}

/* A validator of its own, by recursive descent over bytes (RFC 8259). */
static const char *value(const char *p, const char *end, int depth);
static const char *blank(const char *p, const char *end)
{
    while (p < end && *p && strchr(" \t\r\n", *p))
        p++;
    return p;
}
static const char *quoted(const char *p, const char *end)
{
    if (p == end || *p++ != '"')
        return NULL;
    for (; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p == '\\') {
            if (++p == end)
                return NULL;
            if (*p == 'u') {
                for (int i = 0; i < 4; i++)
                    if (++p == end || !*p || !strchr("0123456789abcdefABCDEF", *p))
                        return NULL;
            } else if (!*p || !strchr("\"\\/bfnrt", *p)) {
                return NULL;
            }
        }
    }
    return p < end ? p + 1 : NULL;
}
static const char *digits(const char *p, const char *end)
{
    const char *q = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > q ? p : NULL;
}
static const char *number(const char *p, const char *end)
{
    const char *q;
    if (*p == '-')
        p++;
    q = digits(p, end);
    if (!q || (*p == '0' && q > p + 1))
        return NULL;
    p = q;
    if (p < end && *p == '.' && !(p = digits(p + 1, end)))
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        p = digits(p, end);
    }
    return p;
}
static const char *list(const char *p, const char *end, int depth, char close)
{
    p = blank(p + 1, end);
    if (p < end && *p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = quoted(blank(p, end), end);
            p = p ? blank(p, end) : NULL;
            if (!p || p == end || *p++ != ':')
                return NULL;
        }
        p = value(p, end, depth + 1);
        p = p ? blank(p, end) : NULL;
        if (!p || p == end || (*p != ',' && *p != close))
            return NULL;
        if (*p++ == close)
            return p;
    }
}
static const char *value(const char *p, const char *end, int depth)
{
    p = blank(p, end);
    if (p == end || depth > 900)
        return NULL;
    if (*p == '"')
        return quoted(p, end);
    if (*p == '{' || *p == '[')
        return list(p, end, depth, *p == '{' ? '}' : ']');
    if (*p == '-' || (*p >= '0' && *p <= '9'))
        return number(p, end);
    for (int i = 0; i < 3; i++) {
        const char *w = i == 0 ? "true" : i == 1 ? "false" : "null";
        if ((size_t)(end - p) >= strlen(w) && memcmp(p, w, strlen(w)) == 0)
            return p + strlen(w);
    }
    return NULL;
}
static bool valid_object(struct span s)
{
    const char *p = blank(s.p, s.p + s.n), *end = s.p + s.n;

    if (p == end || *p != '{' || !utf8_valid(s) || !(p = value(p, end, 0)))
        return false;
    return blank(p, end) == end;
}

static void agrees_with_a_plain_validator_on_mutated_lines(void **s)
{
    static const char seed[] = "{\"text\":\"some \\\\ \\\" \\u00e9 \xC3\xA9\xE2\x82\xAC text that is long enough "
                               "to fill vectors\",\"n\":[1,-2.5e7,0,{\"a\":null,\"b\":[]}],\"t\":true}";
    static const char bytes[] = "{}[]\",:\\u09eE+-. \t\n\x01\x0c\x1a/tfn\xC3\xE2\x80\x00";
    struct json_reader *r = json_reader_new();
    struct rng_mt rng;
    int good = 0, mismatched = 0;

    (void)s;
    rng_mt_seed(&rng, 3);
    for (int i = 0; i < 60000; i++) {
        char line[sizeof seed + 8];
        struct span l = {line, sizeof seed - 1};
        const struct json_field *f;
        struct err e;
        char *keep;

        memcpy(line, seed, sizeof seed);
        for (uint64_t k = rng_mt_interval(&rng, 2) + 1; k > 0; k--) {
            size_t at = (size_t)rng_mt_interval(&rng, l.n - 1);
            char c = bytes[rng_mt_interval(&rng, sizeof bytes - 2)];
            if (rng_mt_u32(&rng) & 1) {
                line[at] = c;
            } else if (rng_mt_u32(&rng) & 1) {
                memmove(line + at, line + at + 1, l.n - at - 1);
                l.n--;
            } else if (l.n < sizeof line) {
                memmove(line + at + 1, line + at, l.n - at);
                line[at] = c;
                l.n++;
            }
        }
        int rc = read_line(r, l, &keep, &f, &e);
        bool ok = rc >= 0 || strstr(e.msg, "occurs twice");
        if (ok != valid_object(l) && mismatched++ < 5)
            print_error("%s: %.*s (%s)\n", ok ? "accepted" : "refused", (int)l.n, l.p, ok ? "" : e.msg);
        good += ok;
        free(keep);
    }
    assert_int_equal(mismatched, 0);
    assert_true(good > 1000);
    json_reader_free(r);
}

static const struct json_field *field_of(const struct json_field *f, int n, const char *key)
{
    while (n-- > 0)
        if (span_is(f[n].key, key))
            return &f[n];
    return NULL;
}

/* The strings under some keys in one pass: what it gives is what the other functions give, and it gives up on no sound line
 * of a few plain keys. */
static void texts_in_one_pass_are_the_same(void **s)
{
    static const char *const keys[] = {"text", "b"};
    static const char *const parts[] = {
        "plain", " text of some length, so that there are vectors of it ", "\\n", "\\\"", "\\\\", "\\u0041", "\\ud83d\\ude00",
        "\xC3\xA9", "\xE2\x82\xAC", "\\t", "\\/", "\xFF", "\x01", "\\x", "\\ud800", "\"", "\\", "\\u00"};
    static const char *const others[] = {
        "", " \"c\" : null ,", "\"c\":{},", "\"c\": [ ] ,",
        "\"c\":{\"text\":\"no\\n\",\"\\u0062\":[1,{\"text\":[]},true ]},", "\"c\":[[\"\xC3\xA9\"],-1.5e3],",
        "\"c\":[1,],", "\"c\":{\"d\"},", "\"c\":[1},", "\"c\":[\"\xFF\"],", "\"c\":{,},", "\"c\":[1 2],"};
    struct json_reader *r = json_reader_new();
    struct rng_mt rng;
    int taken = 0, bad = 0;

    (void)s;
    rng_mt_seed(&rng, 5);
    for (int i = 0; i < 40000; i++) {
        bool sound = rng_mt_interval(&rng, 3);
        int n_parts = (int)rng_mt_interval(&rng, 40), n;
        struct buf b = {0}, again[2] = {{0}, {0}};
        struct span texts[2];
        const struct json_field *f;
        struct err e;
        char *keep, *dst;
        bool same, ok;

        buf_puts(&b, "{ \"id\": \"x\\\"y\", \"n\":-1.5e3 ,\"text\":\"");
        for (int k = 0; k < n_parts; k++)
            buf_puts(&b, parts[rng_mt_interval(&rng, sound ? 10 : 17)]);
        buf_printf(&b, "\",%s\"b\":\"%s\"}%s", others[rng_mt_interval(&rng, i % 7 ? 5 : 11)],
                   parts[rng_mt_interval(&rng, 10)], i % 9 ? "" : " \t");
        dst = malloc(b.n);
        n = read_line(r, buf_span(&b), &keep, &f, &e);
        same = n >= 0;
        for (int k = 0; k < 2 && same; k++) {
            const struct json_field *x = field_of(f, n, keys[k]);
            same = x && x->type == JSON_STRING && json_unescape(x->raw, &again[k], &e) == 0;
        }
        ok = json_read_texts(buf_span(&b), keys, 2, dst, texts);
        assert_int_equal(ok, same);
        for (int k = 0; k < 2 && ok; k++)
            assert_true(span_eq(texts[k], buf_span(&again[k])));
        taken += ok;
        bad += !ok;
        free(keep);
        free(dst);
        buf_free(&b);
        buf_free(&again[0]);
        buf_free(&again[1]);
    }
    assert_true(taken > 20000 && bad > 5000);
    json_reader_free(r);
}

static void texts_of_other_lines_are_left_alone(void **s)
{
    static const char *const key[] = {"text"};
    static const char *const lines[] = {
        "", "{", "[]", "\"text\"", "{}", "{\"text\":1}", "{\"text\":\"a\",}", "{\"text\":\"a\"}}", "{,\"text\":\"a\"}",
        "{\"text\":\"a\",\"text\":\"a\"}", "{\"text\":\"a\" \"b\":1}", "{\"text\":\"a\",\"b\":01}", "{\"text\":\"a\",\"b\":[}",
        "{\"text\":\"a\",\"\\u0062\":1}", "{\"text\":\"a\",\"b\":}", "{\"text\":\"a\",\"b\":nul}", "{\"text\" \"a\"}",
        "{\"text\":\"a"};
    char dst[64];
    struct span text;

    (void)s;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (json_read_texts(span_of(lines[i]), key, 1, dst, &text))
            fail_msg("taken: %s", lines[i]);
    assert_true(json_read_texts(span_of(" {\"text\" : \"\" } "), key, 1, dst, &text) && text.n == 0);
}

static void strings_unescape(void **s)
{
    static const char *const cases[][2] = {
        {"\"\"", ""}, {"\"plain\"", "plain"}, {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00E9\\u20ac\"", "A\xC3\xA9\xE2\x82\xAC"},
        {"\"\\ud83d\\ude00!\"", "\xF0\x9F\x98\x80!"}};
    static const char *const lone[] = {"\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"\\ud83dabcdefgh\""};
    struct buf b = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&b);
        assert_int_equal(json_unescape(span_of(cases[i][0]), &b, &e), 0);
        assert_string_equal(b.p, cases[i][1]);
    }
    for (size_t i = 0; i < sizeof lone / sizeof *lone; i++) {
        assert_int_equal(json_unescape(span_of(lone[i]), &b, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "surrogate"));
    }
    buf_free(&b);
}

static void strings_come_back_as_they_went(void **s)
{
    struct buf b = {0}, back = {0};
    struct rng_mt r;
    struct err e;

    (void)s;
    rng_mt_seed(&r, 11);
    for (int i = 0; i < 3000; i++) {
        char text[400];
        size_t n = 0, want = (size_t)rng_mt_interval(&r, 390);
        uint64_t odd = 1 + rng_mt_interval(&r, 60);
        while (n < want)
            if (rng_mt_interval(&r, odd) == 0)
                n += (size_t)utf8_put(text + n, (uint32_t)rng_mt_interval(&r, 0xFF));
            else
                text[n++] = (char)('a' + rng_mt_interval(&r, 25));
        buf_clear(&b);
        buf_clear(&back);
        buf_puts(&b, "[");
        assert_int_equal(json_put_string(&b, (struct span){text, n}), 0);
        assert_true(quoted(b.p + 1, b.p + b.n) == b.p + b.n);
        assert_int_equal(json_unescape((struct span){b.p + 1, b.n - 1}, &back, &e), 0);
        assert_true(span_eq(buf_span(&back), (struct span){text, n}));
    }
    buf_clear(&b);
    json_put_string(&b, (struct span){"\0\x1f\x7f\"\\/\n\xC3\xA9", 9});
    assert_string_equal(b.p, "\"\\u0000\\u001f\x7f\\\"\\\\/\\n\xC3\xA9\"");
    buf_clear(&b);
    b.max = 300;
    char big[301];
    memset(big, 'a', sizeof big);
    assert_int_equal(json_put_string(&b, (struct span){big, sizeof big}), ERR_LIMIT);
    buf_free(&b);
    buf_free(&back);
}

static void every_instruction_set_copies_alike(void **s)
{
    char src[300], dst[300];

    (void)s;
    for (size_t n = 0; n < 200; n++)
        for (size_t stop = 0; stop <= n; stop += 1 + n / 40)
            for (int what = 0; what < 4; what++) {
                static const char stops[] = "\\\"\x1f\x00";
                memset(src, 'x', sizeof src);
                src[7] = '\x7f';
                src[9] = '\xff';
                if (stop < n)
                    src[stop] = stops[what];
                for (int isa = 0; isa <= (int)isa_best(); isa++) {
                    size_t (*const f[])(char *, const char *, size_t) = ISA_EACH(json_copy_to_special);
                    memset(dst, '#', sizeof dst);
                    assert_int_equal(f[isa](dst, src, n), stop);
                    assert_memory_equal(dst, src, stop);
                    assert_int_equal(dst[n], '#');
                }
            }
}

/* One escape after another; *used: up to the first \u. */
static size_t unescape_plainly(char *dst, const char *src, size_t n, size_t *used)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t o = 0, i = 0;

    while (i < n && !(src[i] == '\\' && src[i + 1] == 'u')) {
        bool escape = src[i] == '\\';
        i += escape;
        dst[o++] = escape ? to[strchr(from, src[i]) - from] : src[i];
        i++;
    }
    *used = i;
    return o;
}

static void every_instruction_set_unescapes_alike(void **s)
{
    char src[400], want[400], dst[400];
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 5);
    for (int round = 0; round < 20000; round++) {
        size_t n = 0, most = (size_t)rng_mt_interval(&r, 300), used, k;
        uint64_t odd = 1 + rng_mt_interval(&r, 80);
        while (n < most)
            if (rng_mt_interval(&r, odd) == 0) {
                src[n++] = '\\';
                src[n++] = "\"\\/bfnrt\\\\\\u"[rng_mt_interval(&r, round % 4 ? 10 : 11)];
            } else {
                src[n++] = (char)('a' + rng_mt_interval(&r, 25));
            }
        k = unescape_plainly(want, src, n, &used);
        for (int isa = 0; isa <= (int)isa_best(); isa++)
            for (int here = 0; here < 2; here++) {
                size_t (*const f[])(char *, const char *, size_t, size_t *) = ISA_EACH(json_unescape_run), got = 0;
                memset(dst, '#', sizeof dst);
                if (here)
                    memcpy(dst, src, n);
                assert_int_equal(f[isa](dst, here ? dst : src, n, &got), k);
                assert_int_equal(got, used);
                assert_memory_equal(dst, want, k);
                assert_int_equal(dst[n], '#');
                if (here) /* what is not yet taken stays */
                    assert_memory_equal(dst + used, src + used, n - used);
            }
    }
}

static void every_instruction_set_finds_hard_escapes(void **s)
{
    char src[300];
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 6);
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)rng_mt_interval(&r, 290), want = 0;
        for (size_t i = 0; i < n; i++)
            src[i] = "\\\\\"\"nt/bfru\x80\xEEx"[rng_mt_interval(&r, round % 3 ? 9 : 13)];
        while (want < n && !(src[want] == '\\' &&
                             (want + 1 == n || !memchr("\"\\/bfnrt", src[want + 1], 8))))
            want += src[want] == '\\' ? 2 : 1;
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            size_t (*const f[])(const char *, size_t) = ISA_EACH(json_find_hard);
            assert_int_equal(f[isa](src, n), want);
        }
    }
}

static void numbers_are_written_short_and_exact(void **s)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"}, {-0.0, "-0"}, {0.1, "0.1"}, {1.5, "1.5"}, {-2, "-2"}, {1e22, "1e+22"},
                 {5e-324, "5e-324"}, {1.0 / 3, "0.3333333333333333"}, {INFINITY, "null"}, {NAN, "null"}};
    struct buf b = {0};

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&b);
        assert_int_equal(json_put_num(&b, cases[i].v), 0);
        assert_string_equal(b.p, cases[i].text);
        if (isfinite(cases[i].v))
            assert_true(strtod(b.p, NULL) == cases[i].v);
    }
    buf_clear(&b);
    buf_puts(&b, "{");
    json_put_key(&b, "a");
    json_put_int(&b, INT64_MIN);
    json_put_key(&b, "b\"");
    json_put_int(&b, 7);
    assert_string_equal(b.p, "{\"a\":-9223372036854775808,\"b\\\"\":7");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_keep_their_bytes),
        cmocka_unit_test(bad_lines_are_refused_with_the_reason),
        cmocka_unit_test(many_keys_and_deep_nesting_are_bounded),
        cmocka_unit_test(agrees_with_a_plain_validator_on_mutated_lines),
        cmocka_unit_test(texts_in_one_pass_are_the_same), cmocka_unit_test(texts_of_other_lines_are_left_alone),
        cmocka_unit_test(strings_unescape),
        cmocka_unit_test(strings_come_back_as_they_went),
        cmocka_unit_test(every_instruction_set_copies_alike),
        cmocka_unit_test(every_instruction_set_unescapes_alike),
        cmocka_unit_test(every_instruction_set_finds_hard_escapes),
        cmocka_unit_test(numbers_are_written_short_and_exact),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
