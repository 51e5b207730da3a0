/* Words and sentences, held against what spaCy said (tests/record/words_cases.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/node.h"
#include "curate/text/words.h"

/* The words joined by '|'. */
static const char *split(const char *text, char *out)
{
    struct words ws = {0};
    struct err e;
    size_t n = 0;

    assert_int_equal(words_split(&ws, span_of(text), &e), 0);
    for (size_t i = 0; i < ws.n; i++) {
        if (i)
            out[n++] = '|';
        memcpy(out + n, text + ws.w[i].off, ws.w[i].len);
        n += ws.w[i].len;
    }
    out[n] = '\0';
    words_free(&ws);
    return out;
}

static void words_by_hand(void **s)
{
    char out[1000];

    (void)s;
    assert_string_equal(split("", out), "");
    assert_string_equal(split(" \n\t", out), "");
    assert_string_equal(split("Hello, world.", out), "Hello|,|world|.");
    assert_string_equal(split("I can't, won't.", out), "I|ca|n't|,|wo|n't|.");
    assert_string_equal(split("Mr. Smith (of Acme Inc.) left...", out), "Mr.|Smith|(|of|Acme|Inc.|)|left|...");
    assert_string_equal(split("well-known http://a.bc/c-d, x@y.org!", out),
                        "well|-|known|http://a.bc/c-d|,|x@y.org|!");
    assert_string_equal(split("5km for US$3 or 20%", out), "5|km|for|US$|3|or|20|%");
    assert_string_equal(split("vitamin-a. then", out), "vitamin|-|a.|then");
    assert_string_equal(split("10.0.0.1/x 8.8.8.8/x", out), "10.0.0.1|/|x|8.8.8.8/x");
}

static void nothing_behind_the_text_counts(void **s)
{
    struct span text = {"Donaudampfschifffahrtsgesellschaft, x", 34};
    struct words ws = {0};
    struct err e;

    (void)s;
    assert_int_equal(words_split(&ws, text, &e), 0);
    assert_int_equal(ws.n, 1);
    assert_int_equal(ws.w[0].len, 34);
    words_free(&ws);
}

static void words_and_sentences_as_recorded(void **s)
{
    struct file_in *f;
    struct buf all = {0};
    struct words ws = {0};
    struct err e;
    char chunk[4096];
    ssize_t n;
    int cases = 0;

    (void)s;
    assert_int_equal(file_open(&f, "tests/data/words/cases.jsonl", &e), 0);
    while ((n = file_read(f, chunk, sizeof chunk, &e)) > 0)
        assert_int_equal(buf_put(&all, chunk, (size_t)n), 0);
    file_close(f);
    for (char *p = all.p, *q; p < all.p + all.n; p = q + 1, cases++) {
        struct arena a = {0};
        struct node *root;
        const struct node *want;
        struct span text;

        q = strchr(p, '\n');
        assert_int_equal(node_parse_json(&a, (struct span){p, (size_t)(q - p)}, &root, &e), 0);
        text = node_get(root, "text")->str;
        want = node_get(root, "words")->child;
        assert_int_equal(words_split(&ws, text, &e), 0);
        assert_int_equal(ws.n, node_get(root, "words")->count);
        for (size_t i = 0; i < ws.n; i++, want = want->next)
            assert_true(span_eq(want->str, (struct span){text.p + ws.w[i].off, ws.w[i].len}));
        assert_int_equal(words_count_sentences(&ws, text), node_int(root, "sentences", -1));
        arena_free(&a);
    }
    assert_true(cases >= 250);
    words_free(&ws);
    buf_free(&all);
}

static void sentences_by_hand(void **s)
{
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {{"", 1}, {"one", 1}, {"One. Two.", 2}, {"One.  Two", 2}, {"Wait... what?! Yes.", 2},
                 {"Mr. X said \"No.\" Then he left.", 2}, {"End. ", 1}, {"End.  ", 2}};
    struct words ws = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(words_split(&ws, span_of(cases[i].text), &e), 0);
        assert_int_equal(words_count_sentences(&ws, span_of(cases[i].text)), cases[i].n);
    }
    words_free(&ws);
}

static void hostile_texts_take_no_time(void **s)
{
    static const char *const bits[] = {"(", "'", ":", ":-(", ".", "a.", "@", "a@", "-", "(\xE2\x95\xAF", "x.y", "9."};
    struct words ws = {0};
    struct buf b = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        buf_clear(&b);
        while (b.n < 1 << 20)
            assert_int_equal(buf_puts(&b, bits[i]), 0);
        assert_int_equal(words_split(&ws, buf_span(&b), &e), 0);
        assert_true(ws.n >= 1);
    }
    words_free(&ws);
    buf_free(&b);
}

static void lines_as_python_cuts_them(void **s)
{
    struct span rest = span_of("a\r\nb\rc\x0b" "d\x1c" "e\xC2\x85" "f\xE2\x80\xA8g\n\nh"), line;
    const char *want[] = {"a", "b", "c", "d", "e", "f", "g", "", "h"};
    size_t n = 0;

    (void)s;
    while (chars_next_line(&rest, &line))
        assert_true(span_is(line, want[n++]));
    assert_int_equal(n, sizeof want / sizeof *want);
    assert_true(span_is(chars_strip(span_of(" \xC2\xA0x y\xE3\x80\x80\n")), "x y"));
    assert_int_equal(chars_count(span_of("aé中😀")), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_by_hand),
        cmocka_unit_test(nothing_behind_the_text_counts),
        cmocka_unit_test(words_and_sentences_as_recorded),
        cmocka_unit_test(sentences_by_hand),
        cmocka_unit_test(hostile_texts_take_no_time),
        cmocka_unit_test(lines_as_python_cuts_them),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
