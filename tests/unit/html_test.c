#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "curate/html.h"

static struct html_worker *worker_new(enum html_extractor x, enum html_format f)
{
    struct html_worker *w = NULL;
    struct html_conf c;

    html_conf_init(&c);
    c.extractor = x;
    c.format = f;
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    return w;
}

/* All that a reader sees of html, as text. */
static void expect(enum html_format f, const char *html, const char *want)
{
    struct html_worker *w = worker_new(HTML_EVERYTHING, f);
    struct html_page page;

    assert_int_equal(html_extract(w, span_of(html), span_of(""), &page, NULL), 0);
    if (!span_is(page.text, want))
        fail_msg("from %s\ngot  [%.*s]\nwant [%s]", html, (int)page.text.n, page.text.p, want);
    html_worker_free(w);
}

static void test_text_blocks(void **state)
{
    (void)state;
    expect(HTML_TEXT, "<p>one\n two</p><p>three<br>four", "one two\n\nthree\nfour\n");
    expect(HTML_TEXT, "<ul><li>a<li>b<ol><li>c</ol></ul>d", "- a\n- b\n  - c\n\nd\n");
    expect(HTML_TEXT, "<table><tr><th>k<th>v<tr><td>1<td>2</table>", "k | v\n1 | 2\n");
    expect(HTML_TEXT, "<pre>\n a\n\n  b\n</pre>c", " a\n\n  b\n\nc\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_blocks),
    };
    return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
