/* fastText models: answers as recorded, and files that are no models. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "curate/language/fasttext.h"

#define DATA "tests/data/fasttext/"

/* Cuts the next field off a line. */
static struct span field(struct span *line)
{
    const char *tab = line->n ? memchr(line->p, '\t', line->n) : NULL;
    struct span f = {line->p, tab ? (size_t)(tab - line->p) : line->n};
    size_t gone = f.n + (tab != NULL);

    line->p += gone;
    line->n -= gone;
    return f;
}

static void answers_are_fasttexts(void **state)
{
    struct buf all = {0}, text = {0};
    struct err e;
    struct fasttext *m = NULL;
    struct fasttext_scratch s = {0};
    struct span last = {0};
    int lines = 0, equal = 0, scores = 0;

    (void)state;
    assert_int_equal(file_read_all(DATA "answers.tsv", 1 << 20, &all, &e), 0);
    for (const char *p = all.p, *nl; (nl = memchr(p, '\n', (size_t)(all.p + all.n - p))) != NULL; p = nl + 1) {
        struct span line = {p, (size_t)(nl - p)}, name = field(&line), raw = field(&line), score;
        double before = 2;
        int best, n = 0;
        if (!span_eq(name, last)) {
            char path[64];
            fasttext_close(m);
            fasttext_scratch_free(&s);
            snprintf(path, sizeof path, DATA "%.*s", (int)name.n, name.p);
            assert_int_equal(fasttext_open(&m, path, &e), 0);
            last = name;
        }
        buf_clear(&text);
        assert_int_equal(json_unescape(raw, &text, &e), 0);
        best = fasttext_predict(m, &s, buf_span(&text), &e);
        assert_int_not_equal(best, -2);
        for (; line.n; n++) {
            const char *is;
            int label;
            double want, got;
            score = field(&line);
            is = memchr(score.p, '=', score.n);
            assert_non_null(is);
            label = fasttext_label_find(m, (struct span){score.p, (size_t)(is - score.p)});
            assert_in_range(label, 0, fasttext_n_labels(m) - 1);
            want = strtod(is + 1, NULL);
            got = fasttext_score(m, &s, label);
            assert_true(fabs(got - want) <= 1e-6);
            equal += (float)got == (float)want;
            scores++;
            assert_true(want <= before);
            if (n == 0) /* the best, or as good */
                assert_true(fabs(fasttext_score(m, &s, best) - want) <= 1e-6);
            before = want;
        }
        if (n == 0)
            assert_int_equal(best, -1);
        lines++;
    }
    assert_true(lines > 450 && scores > 1300);
    print_message("%d lines; %d of %d scores equal to the last bit\n", lines, equal, scores);
    fasttext_close(m);
    fasttext_scratch_free(&s);
    buf_free(&all);
    buf_free(&text);
}

static void every_cut_is_found(void **state)
{
    static const char *const names[] = {"softmax.bin", "hs.bin", "pruned.ftz", "norms.ftz", "many.ftz"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf b = {0};
        struct err e;
        struct fasttext *m;
        char path[64];
        snprintf(path, sizeof path, DATA "%s", names[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &b, &e), 0);
        for (size_t n = 0; n < b.n; n += 1 + n / 64) {
            assert_int_equal(fasttext_open_mem(&m, "cut", (struct span){b.p, n}, &e), ERR_FORMAT);
            assert_null(m);
            assert_non_null(strstr(e.msg, "'cut'"));
        }
        assert_int_equal(fasttext_open_mem(&m, "whole", buf_span(&b), &e), 0);
        fasttext_close(m);
        buf_free(&b);
    }
}

/* Opens softmax.bin with a number written over one of its own. */
static int open_changed(size_t at, int64_t v, size_t size, struct err *e)
{
    struct buf b = {0};
    struct fasttext *m;
    int rc;

    assert_int_equal(file_read_all(DATA "softmax.bin", 1 << 20, &b, e), 0);
    memcpy(b.p + at, &v, size);
    rc = fasttext_open_mem(&m, "changed", buf_span(&b), e);
    fasttext_close(m);
    buf_free(&b);
    return rc;
}

static void wrong_numbers_are_found(void **state)
{
    enum { MAGIC = 0, VERSION = 4, DIM = 8, NGRAMS = 28, LOSS = 32, MODEL = 36, BUCKET = 40, MAXN = 48,
           SIZE = 64, WORDS = 68, LABELS = 72, PRUNED = 84 };
    static const struct {
        size_t at, size;
        int64_t v;
        int want;
    } cases[] = {
        {MAGIC, 4, 0, ERR_FORMAT},
        {VERSION, 4, 13, ERR_UNSUPPORTED},
        {VERSION, 4, -1, ERR_UNSUPPORTED},
        {DIM, 4, -1, ERR_FORMAT},
        {DIM, 4, 0, ERR_FORMAT},
        {DIM, 4, INT32_MAX, ERR_FORMAT},
        {NGRAMS, 4, INT32_MAX, ERR_FORMAT},
        {LOSS, 4, 0, ERR_FORMAT},
        {LOSS, 4, 9, ERR_FORMAT},
        {MODEL, 4, 1, ERR_UNSUPPORTED},
        {BUCKET, 4, -5, ERR_FORMAT},
        {BUCKET, 4, INT32_MAX, ERR_FORMAT},
        {MAXN, 4, INT32_MAX, ERR_FORMAT},
        {SIZE, 4, INT32_MAX, ERR_FORMAT},
        {SIZE, 4, -1, ERR_FORMAT},
        {WORDS, 4, -1, ERR_FORMAT},
        {LABELS, 4, 0, ERR_FORMAT},
        {PRUNED, 8, INT64_MAX, ERR_FORMAT},
        {PRUNED, 8, 0, ERR_FORMAT},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(open_changed(cases[i].at, cases[i].v, cases[i].size, &e), cases[i].want);
    assert_int_equal(open_changed(VERSION, 12, 4, &e), 0);
}

static void other_files_are_refused(void **state)
{
    struct fasttext *m;
    struct err e;

    (void)state;
    assert_int_equal(fasttext_open(&m, DATA "answers.tsv", &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "answers.tsv' is no fastText model"));
    assert_int_equal(fasttext_open(&m, DATA "nowhere", &e), ERR_IO);
    assert_int_equal(fasttext_open(&m, DATA, &e), ERR_IO);
    assert_null(m);
}

static void labels_go_by_either_name(void **state)
{
    struct fasttext *m;
    struct err e;

    (void)state;
    assert_int_equal(fasttext_open(&m, DATA "hs.bin", &e), 0);
    assert_int_equal(fasttext_n_labels(m), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fasttext_label_find(m, fasttext_label(m, i)), i);
        assert_int_equal(fasttext_label_find(m, fasttext_label_name(m, i)), i);
    }
    assert_int_equal(fasttext_label_find(m, span_of("west")), -1);
    assert_int_equal(fasttext_label_find(m, span_of("__label__")), -1);
    fasttext_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_fasttexts),
        cmocka_unit_test(every_cut_is_found),
        cmocka_unit_test(wrong_numbers_are_found),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(labels_go_by_either_name),
    };
    return cmocka_run_group_tests_name("fasttext", tests, NULL, NULL);
}
