/* Wikis: markup to text, exports page by page, damage, hostile pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <time.h>

#include "curate/wiki/wiki_dump.h"
#include "curate/wiki/wikitext.h"
#include "curate/wiki/wikitext_parts.h"
#include "tests/given_bytes.h"

static const char head[] =
    "<mediawiki version=\"0.11\" xml:lang=\"de\"><siteinfo><sitename>W</sitename><base>https://de.x.org/wiki/A/Start</base>"
    "<namespaces><namespace key=\"0\" /><namespace key=\"6\">Datei</namespace><namespace key=\"14\">Rubrik &amp; Art</namespace>"
    "</namespaces></siteinfo>";

static struct wiki_site site;

static int open_site(void **s)
{
    struct err e;

    (void)s;
    return wiki_site_parse(&site, span_of(head), &e);
}

static int close_site(void **s)
{
    (void)s;
    wiki_site_free(&site);
    return 0;
}

/* ---- markup ---- */

static void is_text(struct wikitext *w, const char *in, const char *want)
{
    struct span got;
    struct err e;
    bool cut;
    char *copy = strdup(in); /* so that a byte read too far is seen */

    assert_int_equal(wikitext_extract(w, &site, span_of("Title"), (struct span){copy, strlen(in)}, &got, &cut, &e), 0);
    if (got.n && got.p[got.n - 1] == '\n')
        got.n--;
    if (!span_is(got, want))
        fail_msg("'%s' gives\n'%.*s', not\n'%s'", in, (int)got.n, got.p, want);
    free(copy);
}

static void check(enum html_format format, const char *const (*cases)[2], size_t n)
{
    struct html_conf c;
    struct wikitext *w;
    struct err e;

    html_conf_init(&c);
    c.format = format;
    assert_int_equal(wikitext_new(&w, &c, &e), 0);
    for (size_t i = 0; i < n; i++)
        is_text(w, cases[i][0], cases[i][1]);
    wikitext_free(w);
}
#define CHECK(format, cases) check(format, cases, sizeof(cases) / sizeof *(cases))

static void lines_make_blocks(void **s)
{
    static const char *const cases[][2] = {
        {"one\ntwo\n\nthree", "one two\n\nthree"},
        {"== Head ==\ntext", "Head\n\ntext"},
        {"== Empty ==\n== Next ==\ntext\n=== Last ===\n", "Next\n\ntext"},
        {"=no heading\n== nor this", "=no heading == nor this"},
        {"== Head == <!-- c --> \ntext", "Head\n\ntext"},
        {"* a\n** b\n* c\n# d\ntext", "- a\n  - b\n- c\n\n- d\n\ntext"},
        {"; term : meaning\n: more", "term\nmeaning\nmore"},
        {" kept  as\n it is\ntext", "kept  as\nit is\n\ntext"},
        {"a\n----\nb", "a\n\nb"},
        {"a\n<!-- comment -->\nb", "a b"},
        {"a\n{{none such}}\nb", "a\n\nb"},
        {"{|\n! h1 !! h2\n|-\n| a || style=\"x\" | b\n|-\n| [[x|y]]\n| d\n|}", "h1 | h2\na | b\ny | d"},
        {"{|\n|+ caption\n|-\n|\n{|\n| in | side\n|}\n| b\n|}\nend", "caption\n\nside\n\nb\n\nend"},
        {"{| class=\"infobox\"\n| a || b\n|}\ntext", "text"},
        {"{|\n| a\n| b\n", "a | b"},
        {":{|\n| a || b\n|}", "a | b"},
        {"== Weblinks ==\n* [http://a b]\n* [[c]]\n\n== Next ==\nd", "Next\n\nd"},
        {"== Weblinks ==\nThis section has a sentence that somebody wrote, and not a few, but many of its words are here.",
         "Weblinks\n\nThis section has a sentence that somebody wrote, and not a few, but many of its words are here."},
        {"== Notes ==\n* {{cite|a very long title of a book that is quoted here, and many more words about it, as they are "
         "in references, with a publisher, a place, a year, the pages, an ISBN, and where it was found, when, and by whom, and "
         "whether the address still works, or where a copy of it is kept; "
         "which makes more than three hundred bytes}}\n== B ==\nc",
         "B\n\nc"},
        {"<poem>\na\nb\n</poem>", "a\nb"},
    };

    (void)s;
    CHECK(HTML_TEXT, cases);
}

static void within_lines(void **s)
{
    static const char *const cases[][2] = {
        {"[[a]], [[b|c]]s, [[d|''e'']], [[#f]], [[:Kategorie:G]]", "a, cs, e, #f, Kategorie:G"},
        {"x [[Datei:a.png|thumb|A [[b]] [[c|d]].]] y", "x y"},
        {"x [[file:a.png]] [[Rubrik & Art:z]] [[category:z]] [[en:Page]] y", "x y"},
        {"[http://a.b text] [http://a.b] http://a.b/c [no link]", "text http://a.b/c [no link]"},
        {"'''bold''' ''italic'' '''''both''''' l'''Arc'' '", "bold italic both l'Arc '"},
        {"a<ref>b</ref> c<ref name=x /> d<ref name=\"y>z\">e</ref>.", "a c d."},
        {"a<ref>b", "ab"},
        {"<nowiki>''[[a]]</nowiki> <nowiki /> &amp; &lt;b&gt; &nbsp;AT&T a < b <b>c</b> <foo>",
         "''[[a]] & <b> AT&T a < b c <foo>"},
        {"H<sub>2</sub>O<br />x<br>y", "H2O\nx\ny"},
        {"<math>a<b</math> and <chem>H2O</chem>", "$a<b$ and $\\ce{H2O}$"},
        {"<syntaxhighlight lang=\"c\">\nif (a < b && '''c''')\n\treturn;\n</syntaxhighlight>",
         "if (a < b && '''c''')\n\treturn;"},
        {"<code>a()</code> and <code>b( )</code>", "a() and b( )"},
        {"<pre>[[a]] &lt;</pre>", "[[a]] <"},
        {"a <!-- b --> c <!-- d", "a c"},
        {"__NOTOC__ a __INHALT__ __LINE__\n__ÜBERSICHT__", "a __INHALT__ __LINE__"},
        {"<gallery>\nA.png|x\n</gallery>a", "a"},
        {"<span style=\"display: none\">a</span>b", "b"},
        {"<div>\n* a\n</div>", "- a"},
        {"[[a\nb]] [[c", "[[a b]] [[c"},
    };

    (void)s;
    CHECK(HTML_TEXT, cases);
}

static void templates(void **s)
{
    static const char *const cases[][2] = {
        {"{{Infobox\n| a = b {{c|d}}\n}}\nText{{cn}}.", "Text."},
        {"{{lang|fr|''mot''}} {{Lang-fr|mot}} {{nowrap|1=a=b}}", "mot mot a=b"},
        {"{{convert|10|km|mi}}, {{convert|5|to|6|kg}}, {{convert|5|ft|6|in}}, {{convert|3|m|0}}",
         "10 km, 5 to 6 kg, 5 ft 6 in, 3 m"},
        {"{{circa|1900}} {{frac|1|2}} {{frac|3|1|2}} {{val|1.5|0.1|e=3|u=m}}", "c. 1900 1/2 3 1/2 1.5 ± 0.1 × 10^3 m"},
        {"{{as of|2010|5}}, {{as of|2011|lc=y}}, {{start date|2001|2|3}}", "As of May 2010, as of 2011, 3 February 2001"},
        {"{{quote|\nOne.\n\nTwo.|Author}}\nText", "One.\n\nTwo.\n\nText"},
        {"{{unbulleted list|a|b {{small|c}}}}{{hlist|a|b}}", "- a\n- b c\n\na · b"},
        {"{{formatnum:1234}} {{PAGENAME}} {{#if:a|b}} {{{x|y}}} {{!}}", "1234 Title |"},
        {"{{nihongo|A|B|}} {{USS|Iowa|BB-61|6}} {{yes}} {{no|never}}", "A (B) USS Iowa (BB-61) Yes never"},
        {"{{nowrap|[[a|b]]}} {{nowrap|a<!-- | -->b}} {{ nowrap | c }}", "b ab c"},
        {"{{unclosed|a [[b]] text\n\n== h ==\n[[c|d]]", "{{unclosed|a b text\n\nh\n\nd"},
        {"{{Vorlage:x}}{{Template:nowrap|a}}", "a"},
    };

    (void)s;
    CHECK(HTML_TEXT, cases);
}

static void what_was_left_out_leaves_no_trace(void **s)
{
    static const char *const cases[][2] = {
        {"Name ({{IPA|x}}) is", "Name is"},
        {"Name ({{IPA|x}}; born 1900) is", "Name (born 1900) is"},
        {"Name (born 1900; {{IPA|x}}, {{yy}}) is", "Name (born 1900) is"},
        {"Name ('''a''', ''{{xx}}'', {{yy}}), is", "Name (a), is"},
        {"Name ({{xx}} – {{yy}}), is", "Name, is"},
        {"f() and g( ) and (; ) stay", "f() and g( ) and (; ) stay"},
        {"日本（{{lang|ja|に}}、{{xx}}）は（{{xx}}）です", "日本（に）はです"},
        {"word {{xx}}, word {{xx}}.", "word, word."},
        {"((({{xx}})))a", "a"},
    };

    (void)s;
    CHECK(HTML_TEXT, cases);
}

static void markdown(void **s)
{
    static const char *const cases[][2] = {
        {"== Head ==\n'''b''' ''i''\n# one\n# two", "## Head\n\n**b** *i*\n\n1. one\n2. two"},
        {"{|\n! a !! b\n|-\n| 1 || 2\n|}", "| a | b |\n| --- | --- |\n| 1 | 2 |"},
        {"{{quote|x}}\n<syntaxhighlight>\ny\n</syntaxhighlight>", "> x\n\n```\ny\n```"},
        {"'''''a'' b''' '''''c''' d''", "***a* b** ***c** d*"},
    };

    (void)s;
    CHECK(HTML_MARKDOWN, cases);
}

static void chinese_variants(void **s)
{
    static const char *const cases[][2] = {
        {"-{a}- -{zh-hans:b;zh-hant:c;}- -{H|zh-hans:d}- -{A|zh-tw:{{nowrap|e}};zh-cn:f}- -{", "a b e -{"},
    };
    struct span lang = site.lang;

    (void)s;
    site.lang = span_of("zh");
    CHECK(HTML_TEXT, cases);
    site.lang = lang;
}

static void patterns_are_in_order(void **s)
{
    static const struct { const char *name, *text; } rows[] = {
#include "curate/wiki/wikitext_patterns.inc"
    };
    char key[WIKI_KEY_MAX];

    (void)s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span name = span_of(rows[i].name);
        if (i)
            assert_true(strcmp(rows[i - 1].name, rows[i].name) < 0);
        assert_string_equal(wt_pattern(name), rows[i].text);
        assert_int_equal(wiki_key(name, key), name.n);
        assert_memory_equal(key, name.p, name.n);
    }
    assert_null(wt_pattern(span_of("infobox")));
    assert_null(wt_pattern((struct span){"lang\0x", 6}));
}

/* ---- hostile pages ---- */

static double cpu(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void hostile_pages_take_linear_time(void **s)
{
    static const char *const units[][3] = {
        /* before, again and again, and as often behind */
        {"", "[[", ""}, {"", "{{", ""}, {"", "{{a|", ""}, {"", "<ref>", ""}, {"", "<ref ", ""}, {"", "{|\n", ""},
        {"", "{|\n|\n", ""}, {"", "{{nowrap|", "}}"}, {"", "[[a|", "]]"}, {"", "[[File:a|", "]]"}, {"", "{", "}"},
        {"", "{{{a|", "}}}"}, {"", "[", "]"}, {"", "[http://a ", ""}, {"", "<!--", ""}, {"", "'''a''b", ""},
        {"", "'", ""}, {"", "({{xx}}", ")"}, {"", "*", ""}, {"", "== Notes ==\n", ""}, {"== a ", "<!--x-->", " =="},
        {"{|\n|", "a||", ""}, {"{|\n|", "a! ", ""}, {"", "<", ""}, {"", "<div>", ""}, {"", "<div ", ""},
        {"", "__", ""}, {"", "&a", ""}, {"{{nowrap", "|a", "}}"}, {"", "[[{{", ""}, {"", "{{[[", "]]}}"},
        {"", "[[{{", "}}]]"}, {"", "<math>", ""}, {"", "-{", "}-"}, {"", ";a:", ""}, {"", "\n", ""}, {"", "[[a\n", "]]"},
        {"", "<table><tr><td>", ""}, {"", "{{quote|\n* a\n", "}}"}, {"", "[http://'a", "]"}, {"", "}}]]|}", ""}};
    struct span lang = site.lang, got;
    struct html_conf c;
    struct wikitext *w;
    struct err e;
    bool cut;

    (void)s;
    site.lang = span_of("zh");
    html_conf_init(&c);
    c.max_seconds = 0;
    assert_int_equal(wikitext_new(&w, &c, &e), 0);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct buf b = {0};
        buf_puts(&b, units[i][0]);
        for (int k = 0; k < 100000; k++)
            buf_puts(&b, units[i][1]);
        for (int k = 0; k < 100000; k++)
            buf_puts(&b, units[i][2]);
        double t = cpu();
        assert_int_equal(wikitext_extract(w, &site, span_of("T"), buf_span(&b), &got, &cut, &e), 0);
        t = cpu() - t;
        if (!(t < 5)) /* all take below 0.2 s; sanitizers are slow */
            fail_msg("100,000 times '%s' takes %.1f s", units[i][1], t);
        buf_free(&b);
    }
    wikitext_free(w);
    site.lang = lang;
}

/* ---- exports ---- */

/* What comes of an export, a line a page: "id title|" or "! message|". */
static void is_dump(const char *xml, size_t broken, const char *want)
{
    for (size_t step = 1; step < 100000; step *= 7) {
        struct given_bytes s = {.all = span_of(xml), .step = step, .broken = broken};
        const struct xml_input in = given_input(&s);
        struct buf got = {0}, bytes = {0};
        struct wiki_dump *d;
        struct wiki_piece p;
        struct wiki_page page;
        struct err e;
        int rc, n = 0;

        assert_int_equal(wiki_dump_open(&d, &in, 2000, &e), 0);
        while ((rc = wiki_dump_next(d, &p, &e)) != 0 && n++ < 100) {
            if (rc == 1 && wiki_page_parse(&page, p.page, &bytes, &e) == 0)
                buf_printf(&got, "%.*s %.*s|", (int)page.id.n, page.id.p, (int)page.title.n, page.title.p);
            else
                buf_printf(&got, "! %s|", e.msg);
        }
        if (!got.p || strcmp(got.p, want) != 0)
            fail_msg("%zu bytes at a time:\n%s, not\n%s", step, got.p ? got.p : "nothing", want);
        wiki_dump_close(d);
        buf_free(&bytes);
        buf_free(&got);
    }
}

#define PAGE(n, more) "<page><title>T" n "</title><ns>0</ns><id>" n "</id>" more "</page>\n"

static void exports_and_their_damage(void **s)
{
    struct buf b = {0};

    (void)s;
    is_dump("<mediawiki>\n" PAGE("1", "") PAGE("2", "<!-- <page> --><x><![CDATA[</page>]]></x>") "</mediawiki>\n", SIZE_MAX,
            "1 T1|2 T2|");
    is_dump("<?xml version='1.0'?><!-- <page> --><mediawiki><siteinfo></siteinfo>" PAGE("1", "") "</mediawiki>", SIZE_MAX,
            "1 T1|");
    is_dump(PAGE("1", "") PAGE("2", ""), SIZE_MAX, "1 T1|2 T2|");
    is_dump("<mediawiki>" PAGE("1", "") "<page><id>", SIZE_MAX, "1 T1|! 'mem' at byte 62: the page is cut short|");
    is_dump("<mediawiki>" PAGE("1", ""), SIZE_MAX, "1 T1|! 'mem' at byte 62: the dump ends without </mediawiki>|");
    is_dump("<mediawiki><page><id>1" PAGE("2", "") "</mediawiki>", SIZE_MAX, "! 'mem' at byte 11: a page without an end|2 T2|");
    is_dump("<mediawiki>" PAGE("1", "") "stray <b>" PAGE("2", "") "</mediawiki>", SIZE_MAX,
            "1 T1|! 'mem' at byte 62: bytes that belong to no page|2 T2|");
    is_dump("<mediawiki>" PAGE("1", "<a>&bomb;</a>") PAGE("2", "<text>&bomb;</text>")
            PAGE("3", "<revision><text>&bomb;</text></revision>")
            PAGE("4", "<a>") PAGE("5", "</a>") PAGE("6", "<a b=c>") PAGE("7", "") "</mediawiki>", SIZE_MAX,
            "1 T1|2 T2|! an entity or a character that XML does not know in the text at its byte 59|"
            "! </page> closes what is not open at its byte 48|! </a> closes what is not open at its byte 45|"
            "! </page> closes what is not open at its byte 52|7 T7|");
    is_dump("<mediawiki>" PAGE("1", "<revision><text>a\x01</text></revision>")
            PAGE("2", "<revision><text>a\xC3(</text></revision>")
            PAGE("3", "< b>") "<page></page></mediawiki>", SIZE_MAX,
            "! an entity or a character that XML does not know in the text at its byte 59|"
            "! bytes that are not UTF-8 at its byte 60|"
            "! damaged XML before its byte 47|! the page has no title|");
    is_dump("<mediawiki>" PAGE("1", "") PAGE("2", "") PAGE("3", "") "</mediawiki>", 100, "1 T1|! 'mem': damaged|3 T3|");
    buf_puts(&b, "<mediawiki>" "<page><title>");
    for (int i = 0; i < 3000; i++)
        buf_puts(&b, "long ");
    buf_puts(&b, "</title></page>" PAGE("2", "") "</mediawiki>");
    buf_putc(&b, '\0');
    is_dump(b.p, SIZE_MAX, "! 'mem' at byte 11: the page is longer than 2000 bytes|2 T2|");
    buf_free(&b);
}

static void pages_say(void **s)
{
    static const char xml[] =
        "<page>\n<title>A &amp; B</title><ns>4</ns><id>12</id><redirect title=\"C &quot;D&quot;\" />\n"
        "<revision><id>3</id><timestamp>2000-01-01T00:00:00Z</timestamp><text>old</text></revision>"
        "<revision><id>4</id><timestamp>2001-01-01T00:00:00Z</timestamp><contributor><id>9</id></contributor>"
        "<model>wikitext</model><text bytes=\"9\" xml:space=\"preserve\">a &lt;b&gt;&#x41;&#66;\r\n"
        "<![CDATA[<&amp;]]></text></revision></page>";
    struct wiki_page p;
    struct buf bytes = {0}, url = {0};
    struct err e;

    (void)s;
    assert_int_equal(wiki_page_parse(&p, span_of(xml), &bytes, &e), 0);
    assert_true(span_is(p.title, "A & B"));
    assert_true(span_is(p.id, "12"));
    assert_true(span_is(p.redirect, "C \"D\""));
    assert_true(span_is(p.timestamp, "2001-01-01T00:00:00Z"));
    assert_true(span_is(p.model, "wikitext"));
    assert_true(span_is(p.text, "a <b>AB\n<&amp;"));
    assert_true(p.has_ns && p.ns == 4);
    assert_true(span_is(site.lang, "de"));
    assert_int_equal(wiki_site_url(&site, span_of("A \"b\"/ä?"), &url), 0);
    assert_true(span_is(buf_span(&url), "https://de.x.org/wiki/A/A_%22b%22/%C3%A4%3F"));
    assert_int_equal(wiki_site_namespace(&site, span_of("rubrik_&  ART ")), WIKI_CATEGORY);
    assert_int_equal(wiki_site_namespace(&site, span_of("IMAGE")), WIKI_FILE);
    assert_int_equal(wiki_site_namespace(&site, span_of("http")), WIKI_NONE);
    assert_true(wiki_is_language(span_of("zh-min-nan")) && !wiki_is_language(span_of("wikt")));
    buf_free(&url);
    buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_make_blocks),
        cmocka_unit_test(within_lines),
        cmocka_unit_test(templates),
        cmocka_unit_test(what_was_left_out_leaves_no_trace),
        cmocka_unit_test(markdown),
        cmocka_unit_test(chinese_variants),
        cmocka_unit_test(patterns_are_in_order),
        cmocka_unit_test(hostile_pages_take_linear_time),
        cmocka_unit_test(exports_and_their_damage),
        cmocka_unit_test(pages_say),
    };

    return cmocka_run_group_tests(tests, open_site, close_site);
}
