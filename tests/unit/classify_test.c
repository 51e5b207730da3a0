/* Scores and samples as recorded from datatrove, NeMo Curator and DCLM's rule. */
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
#include "curate/language/classify.h"

#define MODEL "tests/data/fasttext/binary.bin"

static void open_stage(struct stage *st, void **thread, int dialect)
{
    struct classify_conf conf;
    struct err e;

    classify_conf_init(&conf);
    conf.model = MODEL;
    conf.dialect = dialect;
    if (dialect == CLASSIFY_NEMO) {
        conf.pareto = 3;
        conf.draw = CLASSIFY_NUMPY;
    }
    assert_int_equal(classify_stage_open(st, &conf, &e), 0);
    assert_int_equal(st->ops->thread_open(st->state, thread, &e), 0);
}

static double number(struct doc *d, const char *key)
{
    struct span s = doc_raw(d, key);

    assert_non_null(s.p);
    return strtod(s.p, NULL);
}

static void check_line(struct stage *st, void *const *thread, struct json_reader *reader, struct span line)
{
    static const char *const names[] = {"", "datatrove", "nemo", "dclm"};
    struct arena a = {0};
    struct err e;

    for (int k = CLASSIFY_DATATROVE; k <= CLASSIFY_DCLM; k++) {
        struct doc d;
        struct verdict v = {0};
        struct span note = {0}, reply = {0};
        doc_init(&d, &a);
        d.file = "answers.jsonl";
        assert_int_equal(doc_parse(&d, reader, line, &e), 0);
        assert_int_equal(st[k].ops->work(st[k].state, thread[k], &d, &v, &note, &e), 0);
        if (st[k].ops->commit)
            assert_int_equal(st[k].ops->commit(st[k].state, note, &v, &reply, &a, &e), 0);
        assert_true(fabs(number(&d, "quality_score") - number(&d, names[k])) <= 1e-6);
        assert_int_equal(v.drop, k == CLASSIFY_NEMO && !span_is(doc_raw(&d, "keep"), "true"));
    }
    arena_free(&a);
}

static void dialects_are_as_recorded(void **state)
{
    struct json_reader *reader = json_reader_new();
    struct stage st[4];
    void *thread[4];
    struct buf all = {0};
    struct err e;
    int lines = 0;

    (void)state;
    for (int k = CLASSIFY_DATATROVE; k <= CLASSIFY_DCLM; k++)
        open_stage(&st[k], &thread[k], k);
    assert_int_equal(file_read_all("tests/data/classify/answers.jsonl", 1 << 20, &all, &e), 0);
    assert_int_equal(buf_reserve(&all, JSON_PADDING), 0);
    for (const char *p = all.p, *nl; (nl = memchr(p, '\n', (size_t)(all.p + all.n - p))) != NULL; p = nl + 1, lines++)
        check_line(st, thread, reader, (struct span){p, (size_t)(nl - p)});
    assert_true(lines > 100);
    for (int k = CLASSIFY_DATATROVE; k <= CLASSIFY_DCLM; k++) {
        st[k].ops->thread_close(st[k].state, thread[k]);
        st[k].ops->close(st[k].state);
    }
    buf_free(&all);
    json_reader_free(reader);
}

static void text_is_prepared(void **state)
{
    static const struct {
        int dialect;
        const char *text, *want;
    } cases[] = {
        {CLASSIFY_FASTTEXT, " a\nb__label__ ", " a\nb__label__ "},
        {CLASSIFY_DATATROVE, " \xE2\x80\x83 a\n\nb\n", "ab"},
        {CLASSIFY_DATATROVE, "a\tb", "a\tb"},
        {CLASSIFY_NEMO, "x __label__hq y__label____label__", "x  hq y  "},
        {CLASSIFY_DCLM, "\n a\r\nb\xE2\x80\xA9\xC2\x85""c \n", "a b  c"},
        {CLASSIFY_DCLM, " \n ", ""},
        {CLASSIFY_DCLM, "", ""},
    };
    struct buf b = {0};
    struct span out;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(classify_prepare(cases[i].dialect, span_of(cases[i].text), &b, &out), 0);
        assert_true(span_is(out, cases[i].want));
    }
    buf_free(&b);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct classify_conf conf;
    struct stage st;
    struct err e;

    (void)state;
    classify_conf_init(&conf);
    assert_int_equal(classify_stage_open(&st, &conf, &e), ERR_ARG);
    conf.model = "tests/data/fasttext/hs.bin";
    assert_int_equal(classify_stage_open(&st, &conf, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "no label 'hq'; its 3: north, south, east"));
    conf.model = MODEL;
    conf.field = "text";
    assert_int_equal(classify_stage_open(&st, &conf, &e), ERR_ARG);
    conf.field = "";
    assert_int_equal(classify_stage_open(&st, &conf, &e), ERR_ARG);
    conf.field = "q";
    conf.model = "tests/data/classify/answers.jsonl";
    assert_int_equal(classify_stage_open(&st, &conf, &e), ERR_FORMAT);
}

/* pareto(3) > 1 - s has the probability (2 - s)^-3. */
static void samples_have_their_shares(void **state)
{
    struct classify_conf conf;
    struct stage st;
    void *thread;
    struct err e;
    int kept = 0, n = 20000;
    double want = 0;

    (void)state;
    classify_conf_init(&conf);
    conf.model = MODEL;
    conf.pareto = 3;
    assert_int_equal(classify_stage_open(&st, &conf, &e), 0);
    assert_int_equal(st.ops->thread_open(st.state, &thread, &e), 0);
    assert_null(st.ops->commit);
    for (int i = 0; i < n; i++) {
        struct arena a = {0};
        struct doc d;
        struct verdict v = {0};
        struct span note = {0};
        char id[16];
        snprintf(id, sizeof id, "doc-%d", i);
        doc_init(&d, &a);
        doc_set_string(&d, "id", span_of(id));
        doc_set_string(&d, "text", span_of(i % 2 ? "kator velish mundra" : "lomi rana шути"));
        assert_int_equal(st.ops->work(st.state, thread, &d, &v, &note, &e), 0);
        want += pow(2 - number(&d, "quality_score"), -3);
        kept += !v.drop;
        arena_free(&a);
    }
    assert_true(fabs(kept - want) < 4 * sqrt(n / 4.0)); /* four deviations at most */
    st.ops->thread_close(st.state, thread);
    st.ops->close(st.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dialects_are_as_recorded),
        cmocka_unit_test(text_is_prepared),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(samples_have_their_shares),
    };
    return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
