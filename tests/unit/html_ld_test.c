/* Texts that pages state as data: which of them, with what role; damage and bounds; a page whose text is nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/html/html.h"
#include "curate/html/html_ld.h"

static const char *const roles[LD_ROLES] = {"body", "reply", "description", "teaser", "review"};

/* The texts of a page as "role:text|role:text"; returns faults. */
static uint32_t read_texts(const char *html, struct buf *out)
{
    static struct html_names names;
    static struct html_ld l;
    struct html_tree t = {0};
    struct err e;
    uint32_t faults;

    html_names_init(&names);
    assert_int_equal(html_tree_parse(&t, &names, span_of(html), 100000, 0, &e), 0);
    assert_int_equal(html_ld_read(&l, &t), 0);
    buf_clear(out);
    for (int i = 0; i < l.n_texts; i++) {
        buf_puts(out, i ? "|" : "");
        buf_puts(out, roles[l.text[i].role]);
        buf_puts(out, ":");
        buf_put_span(out, html_ld_text(&l, i));
    }
    faults = l.faults;
    html_tree_free(&t);
    html_ld_free(&l);
    return faults;
}

#define LD(json) "<html><head><script type='application/ld+json'>" json "</script></head><body></body></html>"

static void check(const char *html, const char *want, uint32_t want_faults)
{
    struct buf out = {0};
    uint32_t faults = read_texts(html, &out);

    buf_putc(&out, '\0');
    assert_string_equal(out.p, want);
    assert_int_equal(faults, want_faults);
    buf_free(&out);
}

static void test_roles(void **state)
{
    (void)state;
    check(LD("{\"@type\":\"NewsArticle\",\"description\":\"a\",\"articleBody\":\"b\",\"text\":\"c\"}"),
          "teaser:a|body:b|body:c", 0);
    check(LD("{\"@type\":\"Product\",\"description\":\"a\",\"brand\":{\"@type\":\"Brand\",\"description\":\"b\"},"
             "\"review\":[{\"@type\":\"Review\",\"reviewBody\":\"c\",\"author\":{\"@type\":\"Person\",\"description\":\"d\"}}]}"),
          "description:a|review:c", 0);
    check(LD("{\"@type\":\"QAPage\",\"mainEntity\":{\"@type\":\"Question\",\"name\":\"n\",\"text\":\"q\",\"acceptedAnswer\":"
             "{\"@type\":\"Answer\",\"text\":\"a\"},\"suggestedAnswer\":[{\"@type\":\"Answer\",\"text\":\"b\"}]}}"),
          "body:q|reply:a|reply:b", 0);
    check(LD("{\"@type\":\"Recipe\",\"recipeIngredient\":[\"flour\",\"salt\"],\"recipeInstructions\":[{\"@type\":\"HowToStep\","
             "\"text\":\"knead\"},{\"@type\":\"HowToStep\",\"text\":\"bake\"}],\"description\":\"bread\"}"),
          "body:flour|body:salt|body:knead|body:bake|description:bread", 0);
    check(LD("{\"@type\":\"Recipe\",\"recipeInstructions\":\"knead, bake\"}"), "body:knead, bake", 0);
    check(LD("{\"@type\":\"DiscussionForumPosting\",\"text\":\"a\",\"comment\":[{\"@type\":\"Comment\",\"text\":\"b\"}]}"),
          "body:a|reply:b", 0);
    check(LD("{\"@type\":\"JobPosting\",\"description\":\"a\"}"), "description:a", 0);
    check(LD("{\"@type\":\"Organization\",\"description\":\"a\",\"text\":\"b\"}"), "", 0);
    check("<html><head><meta name=description content='a &amp; b'></head></html>", "teaser:a & b", 0);
}

static void test_forms(void **state)
{
    (void)state;
    /* the type after the text, in an array, as a URL; in @graph; in a list of objects */
    check(LD("{\"description\":\"a\",\"@type\":[\"Product\",\"Vehicle\"]}"), "description:a", 0);
    check(LD("{\"@type\":\"https://schema.org/BlogPosting\",\"articleBody\":\"a\"}"), "body:a", 0);
    check(LD("{\"@graph\":[{\"@type\":\"WebSite\",\"description\":\"a\"},{\"@type\":\"Article\",\"articleBody\":\"b\"}]}"),
          "body:b", 0);
    check(LD("[{\"@type\":\"Book\",\"description\":\"a\"},{\"@type\":\"Book\",\"description\":\"b\"}]"),
          "description:a|description:b", 0);
    /* escapes, references, lines as they stand, commas that are missing */
    check(LD("{\"@type\":\"Product\" \"description\":\"&lt;p&gt;\\u00e9\\ta \\\"b\\\"\\nc\n d\",}"),
          "description:<p>\xC3\xA9 a \"b\"\nc\n d", 0);
    /* strings that look like structure */
    check(LD("{\"@type\":\"Product\",\"name\":\"}]\\\"{\",\"description\":\"a: {\"}"), "description:a: {", 0);
}

static void test_damage(void **state)
{
    static const char *const broken[] = {
        LD("{\"@type\":\"Product\",\"description\":\"a\""), LD("{\"@type\":\"Product\",\"description\":\"a"),
        LD("{\"@type\":\"Product\",\"description\":\"a\"]"), LD("}"), LD("{\"@type\":\"Product\",\"description\":\""),
    };
    char deep[400] = "<script type='application/ld+json'>";

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        check(broken[i], "", 1);
    /* one that is damaged leaves the others */
    check("<script type='application/ld+json'>{\"@type\":\"Book\",\"description\":\"a\"</script>"
          "<script type='application/ld+json'>{\"@type\":\"Book\",\"description\":\"b\"}</script>", "description:b", 1);
    for (int i = 0; i < 100; i++)
        strcat(deep, "[");
    check(strcat(deep, "</script>"), "", 1);
}

static void test_bounds(void **state)
{
    struct buf page = {0}, out = {0};
    int n = 1;

    (void)state;
    buf_puts(&page, "<script type='application/ld+json'>[");
    for (int i = 0; i < LD_TEXTS + 10; i++)
        buf_puts(&page, "{\"@type\":\"Book\",\"description\":\"a\"},");
    buf_puts(&page, "]</script>");
    buf_putc(&page, '\0');
    assert_int_equal(read_texts(page.p, &out), 1);
    for (size_t i = 0; i < out.n; i++)
        n += out.p[i] == '|';
    assert_int_equal(n, LD_TEXTS);

    buf_clear(&page);
    buf_puts(&page, "<script type='application/ld+json'>{\"@type\":\"Book\",\"description\":\"");
    for (int i = 0; i <= LD_BYTES; i++)
        buf_putc(&page, 'a');
    buf_puts(&page, "\",\"text\":\"b\"}</script>");
    buf_putc(&page, '\0');
    assert_int_equal(read_texts(page.p, &out), 1);
    assert_int_equal(out.n, 0);
    buf_free(&page);
    buf_free(&out);
}

/* ---- as the text of a page ---- */

#define MILL "The case is of solid beech &amp; oiled by hand, so that it can be wiped with a damp cloth and nothing else."
#define SHOP(json, body) "<!DOCTYPE html><html lang=en><head><title>Stone mill 200 - Mill Shop</title>" \
    "<script type=\"application/ld+json\">" json "</script></head><body><header><nav><a href=/>Home</a> <a href=/s>Shop</a>" \
    "</nav></header><div id=root>" body "</div><footer><p>Copyright 2024 Mill Shop</p></footer></body></html>"
#define PRODUCT(text) "{\"@context\":\"https://schema.org\",\"@graph\":[{\"@type\":\"Product\",\"name\":\"Stone mill 200\"," \
    "\"description\":\"" text "\",\"offers\":{\"@type\":\"Offer\",\"price\":\"200\"}}]}"
#define STONES "A mill with two stones of Bavarian granite that grinds a pound of wheat in eleven minutes."

static void extract(const char *html, enum html_format format, struct html_page *page, struct html_worker **w)
{
    struct html_conf c;

    html_conf_init(&c);
    c.format = format;
    assert_int_equal(html_worker_new(w, &c, NULL), 0);
    assert_int_equal(html_extract(*w, span_of(html), span_of(""), page, NULL), 0);
}

static void check_text(const char *html, enum html_format format, const char *want)
{
    struct html_worker *w;
    struct html_page page;
    struct buf got = {0};

    extract(html, format, &page, &w);
    assert_true(page.from_data);
    buf_put_span(&got, page.text);
    buf_putc(&got, '\0');
    assert_string_equal(got.p, want);
    buf_free(&got);
    html_worker_free(w);
}

static void test_alone(void **state)
{
    (void)state;
    check_text(SHOP(PRODUCT("<p>" STONES "</p><p>" MILL "</p>"), ""), HTML_TEXT,
               STONES "\n\nThe case is of solid beech & oiled by hand, so that it can be wiped with a damp cloth and nothing "
               "else.\n");
    check_text(SHOP(PRODUCT(STONES "\\n" MILL), ""), HTML_TEXT,
               STONES "\nThe case is of solid beech & oiled by hand, so that it can be wiped with a damp cloth and nothing "
               "else.\n");
    check_text(SHOP(PRODUCT("<p>" STONES "</p><style>p { x: y }</style><ul><li>two stones, each of them a foot wide, with "
                      "eleven furrows</li><li><b>beech</b></li></ul>"), ""), HTML_MARKDOWN,
               STONES "\n\n- two stones, each of them a foot wide, with eleven furrows\n- **beech**\n");
}

/* What the page shows stays as the page shows it. */
static void test_shown(void **state)
{
    struct html_worker *w;
    struct html_page page;

    (void)state;
    extract(SHOP(PRODUCT(STONES " " MILL), "<main><h1>Stone mill 200</h1><p>" STONES "</p><p>" MILL "</p></main>"), HTML_TEXT,
            &page, &w);
    assert_false(page.from_data);
    assert_non_null(memmem(page.text.p, page.text.n, "Bavarian granite", 16));
    html_worker_free(w);
    extract(SHOP("{\"@type\":\"Review\",\"reviewBody\":\"" STONES " " MILL "\"}", "<p>Out of stock at present</p>"), HTML_TEXT,
            &page, &w);
    assert_false(page.from_data);
    assert_null(memmem(page.text.p, page.text.n, "Bavarian granite", 16));
    html_worker_free(w);
    extract(SHOP("[" PRODUCT(STONES) "," PRODUCT(STONES " " MILL) "]", "<p>Our mills</p>"), HTML_TEXT, &page, &w);
    assert_false(page.from_data);
    html_worker_free(w);
    extract(SHOP("{\"@type\":\"Product\"", ""), HTML_TEXT, &page, &w);
    assert_int_equal(page.data_faults, 1);
    html_worker_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),  cmocka_unit_test(test_forms), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_bounds), cmocka_unit_test(test_alone), cmocka_unit_test(test_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
