/* jusText's rules: paragraphs and classes, held against what jusText said
 * (tests/record/justext_pages.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "curate/html/html.h"
#include "curate/html/html_text.h"
#include "curate/html/html_tree.h"
#include "curate/text/html_entity.h"
#include "curate/html/justext.h"
#include "curate/text/html_entity.h"

struct page {
    struct html_tree tree;
    struct justext *j;
    uint8_t *skip;
};

static void mark(struct page *p, struct span html, const struct justext_conf *c, const char *lang)
{
    struct html_names names;
    struct err e;

    html_names_init(&names);
    p->tree = (struct html_tree){0};
    assert_int_equal(html_tree_parse(&p->tree, &names, html, 1 << 20, 0, &e), 0);
    p->skip = malloc(p->tree.n_nodes);
    assert_non_null(p->skip);
    if (justext_new(&p->j, c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(justext_mark(p->j, &p->tree, span_of(lang), p->skip), 0);
}

static void release(struct page *p)
{
    html_tree_free(&p->tree);
    justext_free(p->j);
    free(p->skip);
}

/* The paragraphs as a .tsv has them. */
static void dump(const struct page *p, struct buf *out)
{
    static const char *const names[] = {"short", "bad", "neargood", "good"};
    const struct justext_paragraph *para;
    const uint32_t *of;
    struct buf raw = {0};
    uint32_t n, node = 0;

    para = justext_paragraphs(p->j, &n, &of);
    for (uint32_t i = 0; i < n; i++) {
        buf_clear(&raw);
        for (; node < p->tree.n_nodes && (of[node] == JUSTEXT_NONE || of[node] <= i); node++)
            if (of[node] == i && p->tree.node[node].tag == HTML_text)
                assert_int_equal(html_decode(html_text(&p->tree, node), false, &raw), 0);
            else if (p->tree.node[node].tag == HTML_br)
                assert_int_equal(buf_putc(&raw, ' '), 0);
        assert_int_equal(buf_printf(out, "%s\t%s\t%d\t%u\t", names[para[i].first], names[para[i].class],
                                    para[i].heading, para[i].length), 0);
        assert_int_equal(html_fold(buf_span(&raw), out), 0);
        assert_int_equal(buf_putc(out, '\n'), 0);
    }
    buf_free(&raw);
}

static void test_as_recorded(void **state)
{
    static const char *const pages[] = {"classes", "borders", "headings"};
    struct justext_conf c;

    (void)state;
    justext_conf_init(&c);
    for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct buf html = {0}, want = {0}, got = {0};
        struct page p;
        struct err e;
        char path[100];

        snprintf(path, sizeof path, "tests/data/justext/%s.html", pages[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &html, &e), 0);
        snprintf(path, sizeof path, "tests/data/justext/%s.tsv", pages[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &want, &e), 0);
        mark(&p, buf_span(&html), &c, "en");
        dump(&p, &got);
        assert_int_equal(buf_putc(&got, '\0') | buf_putc(&want, '\0'), 0);
        assert_string_equal(got.p, want.p);
        release(&p);
        buf_free(&html);
        buf_free(&want);
        buf_free(&got);
    }
}

/* The class of the first paragraph. */
static enum justext_class class_of(const char *html, const struct justext_conf *c, const char *lang)
{
    struct page p;
    const uint32_t *of;
    uint32_t n;

    mark(&p, span_of(html), c, lang);
    const struct justext_paragraph *para = justext_paragraphs(p.j, &n, &of);
    assert_true(n > 0);
    enum justext_class class = para[0].class;
    release(&p);
    return class;
}

#define GERMAN "<p>Es war einmal ein Mann, der in einem kleinen Haus an der See mit seiner Frau und den Kindern lebte.</p>"

static void test_options(void **state)
{
    struct justext_conf c;

    (void)state;
    justext_conf_init(&c);
    c.length_high = 80;
    assert_int_equal(class_of(GERMAN, &c, "de-AT"), JUSTEXT_GOOD);
    assert_int_equal(class_of(GERMAN, &c, "DE"), JUSTEXT_GOOD);
    assert_int_equal(class_of(GERMAN, &c, ""), JUSTEXT_BAD); /* read as English */
    assert_int_equal(class_of(GERMAN, &c, "ja"), JUSTEXT_BAD);
    c.lang = "de";
    assert_int_equal(class_of(GERMAN, &c, "en"), JUSTEXT_GOOD);
    c.stopwords_low = c.stopwords_high = .9;
    assert_int_equal(class_of(GERMAN, &c, "de"), JUSTEXT_BAD);
    justext_conf_init(&c);
    c.lang = "de";
    c.length_low = 120;
    assert_int_equal(class_of(GERMAN, &c, "de"), JUSTEXT_BAD); /* short, nothing around it */
    c.length_low = 10;
    c.length_high = 20;
    assert_int_equal(class_of("<h1>Ein Haus</h1>" GERMAN, &c, ""), JUSTEXT_GOOD);
    c.headings = false;
    assert_int_equal(class_of("<h1>Ein Haus</h1>" GERMAN, &c, ""), JUSTEXT_BAD);
    c.headings = true;
    c.max_heading_distance = 5;
    assert_int_equal(class_of("<h1>Ein Haus</h1><p>Am Meer</p>" GERMAN, &c, ""), JUSTEXT_BAD);
}

static void expect_error(const struct justext_conf *c, int code, const char *message)
{
    struct justext *j;
    struct err e;

    assert_int_equal(justext_new(&j, c, &e), code);
    assert_string_equal(e.msg, message);
}

static void test_errors(void **state)
{
    struct justext_conf c;

    (void)state;
    justext_conf_init(&c);
    c.lang = "ja";
    expect_error(&c, ERR_ARG, "there is no stop list for 'ja'; a file of words can be given");
    justext_conf_init(&c);
    c.stopwords_low = .5;
    expect_error(&c, ERR_ARG, "stopwords-low 0.5 is above stopwords-high 0.32");
    justext_conf_init(&c);
    c.length_low = 500;
    expect_error(&c, ERR_ARG, "length-low 500 is above length-high 200");
}

static void test_text(void **state)
{
    static const char html[] = "<html lang=de><title>T</title><div>Menu</div>" GERMAN GERMAN GERMAN
                               "<h2>Da</h2><pre>x\n  y</pre>" GERMAN "<p>a <script type=math/tex>b^2</script> c</p>" GERMAN
                               "<script>var x</script><div hidden>Kurz</div>" GERMAN "<div><a href=x>Ende</a></div>";
    struct html_conf c;
    struct html_worker *w;
    struct html_page page;
    struct err e;

    (void)state;
    html_conf_init(&c);
    c.extractor = HTML_JUSTEXT;
    c.justext.length_high = 80;
    assert_int_equal(html_worker_new(&w, &c, &e), 0);
    assert_int_equal(html_extract(w, span_of(html), span_of(""), &page, &e), 0);
    assert_null(memmem(page.text.p, page.text.n, "Menu", 4));
    assert_null(memmem(page.text.p, page.text.n, "Ende", 4));
    assert_null(memmem(page.text.p, page.text.n, "var", 3));
    assert_non_null(memmem(page.text.p, page.text.n, "\n\nDa\n\nx\n  y\n\nEs war", 18));
    assert_non_null(memmem(page.text.p, page.text.n, "\n\na $b^2$ c\n\n", 13));
    assert_non_null(memmem(page.text.p, page.text.n, "\nKurz\n", 6)); /* it does not look at what is hidden */
    html_worker_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_recorded),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests_name("justext", tests, NULL, NULL);
}
