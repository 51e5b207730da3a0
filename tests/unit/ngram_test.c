/* N-gram models: scores as KenLM gives them, text as CCNet normalises it, and files that are no models. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/node.h"
#include "curate/language/ngram.h"
#include "curate/text/ccnet.h"

#define DATA "tests/data/perplexity/"

static struct ngram_line line;
static const struct ngram_model *line_of;

static int score(const struct ngram_model *m, struct span text, float *log10, struct err *e)
{
    if (m != line_of)
        memset(line.hash, 0, sizeof line.hash);
    line_of = m;
    TRY(ngram_words(m, &line, text));
    return ngram_score(m, (const uint32_t *)(const void *)line.words.p, line.words.n / sizeof(uint32_t), log10, e);
}

/* Every line of a file of JSON, the last first. */
static struct node *lines_of(const char *path, struct arena *a)
{
    struct buf all = {0};
    struct node *first = NULL, *n;
    struct err e;

    assert_int_equal(file_read_all(path, 1 << 20, &all, &e), 0);
    for (const char *p = all.p, *nl; (nl = memchr(p, '\n', (size_t)(all.p + all.n - p))) != NULL; p = nl + 1) {
        assert_int_equal(node_parse_json(a, (struct span){p, (size_t)(nl - p)}, &n, &e), 0);
        n->next = first;
        first = n;
    }
    buf_free(&all);
    return first;
}

static void scores_are_kenlms(void **state)
{
    struct arena a = {0};
    const struct node *texts, *n = lines_of(DATA "scores.jsonl", &a);
    struct ngram_model *m;
    struct err e;
    char path[100];
    int models = 0;

    (void)state;
    texts = node_get(n, "texts")->child;
    for (n = n->next; n; n = n->next, models++) {
        const struct node *want = node_get(n, "scores")->child, *text = texts;
        snprintf(path, sizeof path, DATA "%s", node_str(n, "model"));
        assert_int_equal(ngram_open(&m, path, &e), 0);
        line_of = NULL;
        for (int i = 0; text; text = text->next, want = want->next, i++) {
            float got;
            assert_int_equal(score(m, text->str, &got, &e), 0);
            if (got != (float)want->num)
                fail_msg("%s, text %d: %.9g instead of %.9g", path, i, (double)got, want->num);
        }
        assert_null(want);
        ngram_close(m);
    }
    assert_int_equal(models, 11);
    arena_free(&a);
}

static void text_is_ccnets(void **state)
{
    struct arena a = {0};
    struct ccnet_text t = {0};
    struct buf out = {0};
    struct err e;
    int n_lines = 0;

    (void)state;
    for (const struct node *n = lines_of(DATA "ccnet.jsonl", &a); n; n = n->next, n_lines++) {
        struct span want = node_get(n, "normal")->str;
        buf_clear(&out);
        assert_int_equal(ccnet_normalize(&t, node_get(n, "text")->str, &out, &e), 0);
        if (!span_eq(buf_span(&out), want))
            fail_msg("'%s' becomes '%.*s' instead of '%s'", node_str(n, "text"), (int)out.n, out.p, want.p);
    }
    assert_true(n_lines > 20);
    ccnet_text_free(&t);
    buf_free(&out);
    arena_free(&a);
}

/* Opens bytes as a model and asks it about a text: refused with the file's name, or it answers, or says what is wrong. */
static bool open_and_ask(const char *name, struct span bytes, struct err *e)
{
    struct ngram_model *m;
    float log10;
    int rc = ngram_open_mem(&m, name, bytes, e);

    line_of = NULL;
    if (rc == 0) {
        rc = score(m, span_of("kator velish kator göl never kator velish göløst mun"), &log10, e);
        assert_true(rc < 0 || isfinite(log10));
    }
    if (rc < 0)
        assert_non_null(strstr(e->msg, name));
    ngram_close(m);
    return rc == 0;
}

static const char *const files[] = {"five.arpa",  "five.probing", "five.trie", "five.array",
                                    "five.quant", "five.both",    "two.trie"};

/* Cut short, a model is refused at every length: with its words behind it a binary one has to have them. */
static void cut_models_are_refused(void **state)
{
    struct buf all = {0};
    struct err e;
    char path[100];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t words;
        buf_free(&all);
        snprintf(path, sizeof path, DATA "%s", files[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &all, &e), 0);
        words = i == 0 ? all.n - 5 : (size_t)((char *)memmem(all.p, all.n, "<unk>", 6) - all.p) + 5;
        for (size_t n = 0; n < words; n += i == 0 ? 97 : 13) {
            char *copy = malloc(n + 1); /* so that reading beyond it is seen */
            memcpy(copy, all.p, n);
            assert_false(open_and_ask(files[i], (struct span){copy, n}, &e));
            free(copy);
        }
    }
    buf_free(&all);
}

/* With any byte changed it is refused or answers. */
static void changed_models_do_no_harm(void **state)
{
    struct buf all = {0};
    struct err e;
    char path[100];
    int refused = 0;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        buf_free(&all);
        snprintf(path, sizeof path, DATA "%s", files[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &all, &e), 0);
        for (size_t n = 0; n < all.n; n += n < 400 ? 1 : 101) {
            char was = all.p[n];
            all.p[n] = (char)(was ^ (n % 2 ? 0x80 : 0xFF));
            refused += !open_and_ask(files[i], buf_span(&all), &e);
            all.p[n] = was;
        }
        assert_true(open_and_ask(files[i], buf_span(&all), &e));
    }
    assert_true(refused > 500);
    buf_free(&all);
}

/* What is wrong is said, and where. */
static void lies_are_named(void **state)
{
    static const struct {
        const char *file;
        size_t at;
        uint64_t value;
        int bytes;
        const char *says;
    } cases[] = {
        {"five.probing", 51, '!', 1, "not of version 5"},
        {"five.probing", 60, 1, 4, "at byte 56: test numbers"},
        {"five.probing", 88, 1, 1, "a model of order 1"},
        {"five.probing", 88, 200, 1, "a model of order 200"},
        {"five.probing", 92, 0, 4, "at byte 92: a multiplier"},
        {"five.probing", 96, 1, 4, "a model of type 1"},
        {"five.probing", 96, 9, 4, "a model of type 9"},
        {"five.probing", 104, 7, 4, "at byte 104: a version"},
        {"five.probing", 108, UINT64_MAX, 8, "at byte 108: more n-grams"},
        {"five.probing", 140, 100000, 8, "the file ends within a table"},
        {"five.probing", 116, 2, 8, "the words do not begin here"},
        {"five.probing", 152, 3, 4, "at byte 152: a version of the words' table"},
        {"five.probing", 156, 100000, 4, "at byte 156: more words than unigrams"},
        {"five.trie", 152, 100000, 8, "at byte 152: more words than unigrams"},
        {"five.trie", 124, 90000, 8, "the file ends within a trie"},
    };
    struct buf all = {0};
    struct err e;
    char path[100];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_free(&all);
        snprintf(path, sizeof path, DATA "%s", cases[i].file);
        assert_int_equal(file_read_all(path, 1 << 20, &all, &e), 0);
        memcpy(all.p + cases[i].at, &cases[i].value, (size_t)cases[i].bytes);
        assert_false(open_and_ask(cases[i].file, buf_span(&all), &e));
        if (!strstr(e.msg, cases[i].says))
            fail_msg("case %zu: '%s' lacks '%s'", i, e.msg, cases[i].says);
    }
    buf_free(&all);
}

#define HEAD                                                                                                             \
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-1\t</s>\n-0.5\tkator\t-0.1\n\n" \
    "\\2-grams:\n"

static void arpa_files_are_checked(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no \\data\\"},
        {"hello\n", "at byte 0: not \\data\\"},
        {"\\data\\\nngram 2=3\n", "at byte 7: not the count"},
        {"\\data\\\nngram 1=3x\nngram 2=1\n\n", "at byte 7: a count that is no number"},
        {"\\data\\\nngram 1=3\n\n", "no counts of at least"},
        {HEAD "-0.2\t<s> kator\n", "the file ends within its n-grams"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator </s>\n", "no \\end\\"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator </s>\n-1\tkator kator\n", "not \\end\\: more"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator </s>\n\\end\\\nmore\n", "a line after"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator velish\n\\end\\\n", "a word that is not among"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator\n\\end\\\n", "fewer words"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator kator kator\n\\end\\\n", "a backoff that is no number"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator kator\t0\tx\n\\end\\\n", "more words"},
        {HEAD "-0.2\t<s> kator\n-0.2\tkator kator\t-0.5\n\\end\\\n", "a backoff of a longest"},
        {HEAD "-0.2\t<s> kator\n0.2\tkator </s>\n\\end\\\n", "above 0"},
        {HEAD "-0.2\t<s> kator\nnan\tkator </s>\n\\end\\\n", "does not begin with a log probability"},
        {HEAD "-0.2\t<s> kator\n-0.2\t<s> kator\n\\end\\\n", "at byte 110: an n-gram that has been"},
        {"\\data\\\nngram 1=2\nngram 2=0\n\n\\1-grams:\n-1\ta\n-1\ta\n", "a unigram that has been"},
        {"\\data\\\nngram 1=1\nngram 2=0\n\n\\1-grams:\n-1\t<s>\n\n\\2-grams:\n\n\\end\\\n", "lacks the unigram </s>"},
        {"\\data\\\nngram 1=18446744073709551615\nngram 2=1\n\n\\1-grams:\n-1\ta\n", "the file ends within its n-grams"},
    };
    struct err e;
    struct ngram_model *m;
    float log10;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(open_and_ask("x.arpa", span_of(cases[i].text), &e));
        if (!strstr(e.msg, cases[i].says))
            fail_msg("case %zu: '%s' lacks '%s'", i, e.msg, cases[i].says);
    }
    assert_int_equal(ngram_open_mem(&m, "x", span_of("# made\r\n" HEAD "-0.2\t<s> kator\r\n-0.25 kator </s>\n\n\\end\\"), &e), 0);
    assert_int_equal(ngram_facts(m).order, 2);
    assert_int_equal(ngram_facts(m).words, 4);
    assert_int_equal(score(m, span_of("kator"), &log10, &e), 0);
    assert_float_equal(log10, -0.45, 1e-6);
    assert_int_equal(score(m, span_of("velish kator"), &log10, &e), 0);
    assert_float_equal(log10, -0.5 - 1 - 0.5 - 0.25, 1e-6);
    ngram_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_kenlms),
        cmocka_unit_test(text_is_ccnets),
        cmocka_unit_test(cut_models_are_refused),
        cmocka_unit_test(changed_models_do_no_harm),
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(arpa_files_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
