/* Lines of templates against brute force, and the order of their list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_template_list.h"
#include "curate/dedup/dedup_templates.h"

/* ---- the list ---- */

enum { LISTED = 5000 };
struct listed {
    uint64_t docs;
    char text[24];
};

static int by_order(const void *x, const void *y)
{
    const struct listed *a = x, *b = y;

    return a->docs != b->docs ? (a->docs > b->docs ? -1 : 1) : strcmp(a->text, b->text);
}

struct expected {
    const struct listed *v;
    int at;
};

static int expect_line(void *to, uint64_t docs, struct span line, struct err *e)
{
    struct expected *x = to;

    (void)e;
    assert_int_equal(docs, x->v[x->at].docs);
    assert_true(span_is(line, x->v[x->at].text));
    x->at++;
    return 0;
}

static void a_list_is_in_order(void **state)
{
    static struct listed v[LISTED];
    struct rng_mt r;
    struct err e;

    (void)state;
    rng_mt_seed(&r, 5);
    for (int i = 0; i < LISTED; i++) {
        v[i].docs = 2 + rng_mt_u64(&r) % 9;
        snprintf(v[i].text, sizeof v[i].text, "%.*s%d", (int)(rng_mt_u64(&r) % 12), "aaaabbbbcccc", i);
    }
    for (int64_t memory = 1; memory <= 1 << 24; memory <<= 12) { /* many runs, some, one */
        struct expected x = {v, 0};
        struct template_list l;
        static struct listed sorted[LISTED];

        assert_int_equal(template_list_open(&l, memory, NULL, &e), 0);
        for (int i = 0; i < LISTED; i++)
            assert_int_equal(template_list_add(&l, v[i].docs, span_of(v[i].text), &e), 0);
        memcpy(sorted, v, sizeof v);
        qsort(sorted, LISTED, sizeof *sorted, by_order);
        x.v = sorted;
        assert_int_equal(template_list_give(&l, expect_line, &x, &e), 0);
        assert_int_equal(x.at, LISTED);
        template_list_close(&l);
    }
}

static int expect_length(void *to, uint64_t docs, struct span line, struct err *e)
{
    size_t **next = to;

    (void)docs, (void)e;
    assert_int_equal(line.n, *(*next)++);
    return 0;
}

static void lines_longer_than_the_room_are_listed(void **state)
{
    size_t want[] = {1 << 19, 1 << 20, 1, 2}, *next = want;
    char *text = malloc(1 << 20);
    struct template_list l;
    struct err e;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', 1 << 20);
    assert_int_equal(template_list_open(&l, 1 << 14, NULL, &e), 0);
    assert_int_equal(template_list_add(&l, 2, (struct span){text, 2}, &e), 0);
    assert_int_equal(template_list_add(&l, 3, (struct span){text, 1}, &e), 0);
    assert_int_equal(template_list_add(&l, 9, (struct span){text, 1 << 20}, &e), 0);
    assert_int_equal(template_list_add(&l, 9, (struct span){text, 1 << 19}, &e), 0);
    assert_int_equal(template_list_give(&l, expect_length, &next, &e), 0);
    assert_ptr_equal(next, want + 4);
    template_list_close(&l);
    free(text);
}

/* ---- the stage ---- */

enum { DOCS = 3000, LINES = 12, WORDS = 700 };
struct page {
    int line[LINES]; /* numbers of lines; -1: a blank one */
    int n;
};

/* Few lines that many pages have, many that few have, some twice in a page. */
static void make_pages(struct page *page, int *docs_of)
{
    static int last[WORDS];
    struct rng_mt r;

    rng_mt_seed(&r, 8);
    memset(docs_of, 0, WORDS * sizeof *docs_of);
    memset(last, 0, sizeof last);
    for (int d = 0; d < DOCS; d++) {
        page[d].n = (int)(rng_mt_u64(&r) % LINES);
        for (int i = 0; i < page[d].n; i++) {
            int k = (int)(rng_mt_u64(&r) % WORDS);
            k = d % 5 ? k * k / WORDS * k / WORDS : k * k / WORDS * k / WORDS % 4; /* of every fifth all is of templates */
            page[d].line[i] = rng_mt_u64(&r) % 9 ? k : -1;
            docs_of[k] += page[d].line[i] == k && last[k] != d + 1;
            last[k] = page[d].line[i] == k ? d + 1 : last[k];
        }
    }
}

/* The text of a page, or of what is left of it; the same line differs in case and white space from page to page. */
static void put_text(struct buf *to, const struct page *p, int d, const int *docs_of, int least)
{
    bool any = false;

    buf_clear(to);
    for (int i = 0; i < p->n; i++) {
        int k = p->line[i];

        if (k >= 0 && docs_of[k] >= least)
            continue;
        assert_int_equal(any ? buf_putc(to, '\n') : 0, 0);
        any = true;
        if (k >= 0)
            assert_int_equal(buf_printf(to, d % 2 ? "Line %c%c%c." : "line  %c%c%c", 'a' + k / 100, 'a' + k / 10 % 10,
                                        'a' + k % 10), 0);
    }
}

/* Whether something of the page is left out and something that is no blank line is left. */
static bool is_shortened(const struct page *p, const int *docs_of, int least)
{
    bool out = false, left = false;

    for (int i = 0; i < p->n; i++) {
        out |= p->line[i] >= 0 && docs_of[p->line[i]] >= least;
        left |= p->line[i] >= 0 && docs_of[p->line[i]] < least;
    }
    return out && left;
}

static void commit_page(const struct stage *st, void *thread, struct doc *d)
{
    struct verdict v = {0};
    struct span note = {0}, reply = {0};
    struct err e;

    assert_int_equal(st->ops->work(st->state, thread, d, &v, &note, &e), 0);
    assert_int_equal(st->ops->commit(st->state, note, &v, &reply, d->arena, &e), 0);
    assert_false(v.drop || reply.p);
}

static void templates_are_those_of_brute_force(void **state)
{
    static struct page page[DOCS];
    static int docs_of[WORDS];
    struct buf text = {0}, want = {0};
    struct arena a = {0};
    struct err e;
    int shortened = 0, whole = 0;

    (void)state;
    make_pages(page, docs_of);
    for (int least = 2; least < 2000; least *= 8) {
        struct dedup_fuzzy_conf conf;
        struct stage st;
        void *thread;

        dedup_fuzzy_conf_init(&conf);
        conf.strip_template = least;
        conf.memory = 1 << 20;
        conf.report = least == 16 ? "wanted" : NULL; /* then texts stay whole */
        assert_int_equal(dedup_templates_stage_open(&st, &conf, &e), 0);
        assert_int_equal(st.ops->thread_open(st.state, &thread, &e), 0);
        for (int i = 0; i < DOCS; i++) {
            struct doc d;

            arena_reset(&a);
            doc_init(&d, &a);
            put_text(&text, &page[i], i, docs_of, INT32_MAX);
            d.text = buf_span(&text);
            commit_page(&st, thread, &d);
        }
        assert_int_equal(st.ops->resolve(st.state, 2, &e), 0);
        for (int i = 0; i < DOCS; i++) {
            struct verdict v = {0};
            struct span reply = {0};
            struct doc d;

            arena_reset(&a);
            doc_init(&d, &a);
            put_text(&text, &page[i], i, docs_of, INT32_MAX);
            d.text = buf_span(&text);
            put_text(&want, &page[i], i, docs_of, least);
            assert_int_equal(st.ops->judge(st.state, (uint64_t)i, &v, &reply, &a, &e), 0);
            assert_int_equal(reply.p != NULL, is_shortened(&page[i], docs_of, least));
            whole += !reply.p;
            if (!reply.p)
                continue;
            assert_int_equal(st.ops->apply(st.state, thread, &d, reply, &v, &e), 0);
            assert_true(span_eq(d.compared, buf_span(&want)));
            assert_true(!conf.report || span_eq(d.text, (struct span){text.p, d.text.n}));
            assert_int_equal(d.text.n, text.n);
            shortened++;
        }
        st.ops->thread_close(st.state, thread);
        st.ops->close(st.state);
    }
    assert_true(shortened > DOCS / 2 && whole > DOCS / 2);
    arena_free(&a);
    buf_free(&text);
    buf_free(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_in_order),
        cmocka_unit_test(lines_longer_than_the_room_are_listed),
        cmocka_unit_test(templates_are_those_of_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
