/* Styles and lists of word processors' documents: headings in any language, numbers as Word counts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/xml/word_styles.h"
#include "curate/xml/xml_text.h"

#define LEVEL(i, format, text) \
    "<w:lvl w:ilvl='" #i "'><w:start w:val='1'/><w:numFmt w:val='" format "'/><w:lvlText w:val='" text "'/></w:lvl>"

static const char styles[] =
    "<w:styles><w:style w:styleId='berschrift2'><w:basedOn w:val='berschrift1'/><w:name w:val='heading 2'/></w:style>"
    "<w:style w:styleId='berschrift1'><w:name w:val='Heading 1'/><w:basedOn w:val='Standard'/></w:style>"
    "<w:style w:styleId='Mein'><w:name w:val='Mein'/><w:basedOn w:val='Zwischen'/></w:style>"
    "<w:style w:styleId='Zwischen'><w:basedOn w:val='Titel3'/></w:style>"
    "<w:style w:styleId='Titel3'><w:pPr><w:outlineLvl w:val='2'/></w:pPr></w:style>"
    "<w:style w:styleId='Titel'><w:name w:val='Title'/></w:style>"
    "<w:style w:styleId='Text'><w:basedOn w:val='berschrift1'/><w:pPr><w:outlineLvl w:val='9'/></w:pPr></w:style>"
    "<w:style w:styleId='Liste'><w:pPr><w:numPr><w:ilvl w:val='1'/><w:numId w:val='7'/></w:numPr></w:pPr></w:style>"
    "<w:style w:styleId='Kreis'><w:basedOn w:val='Kreis'/></w:style>"
    "<w:style/><w:style w:styleId='Standard'/></w:styles>";

static const char lists[] =
    "<w:numbering><w:abstractNum w:abstractNumId='3'>" LEVEL(0, "decimal", "%1.") LEVEL(1, "lowerLetter", "%1.%2)")
    LEVEL(2, "upperRoman", "(%3)") LEVEL(3, "bullet", "o") LEVEL(4, "none", "") LEVEL(5, "decimalZero", "%6")
    LEVEL(6, "upperLetter", "%7 100%%9 &lt;%") LEVEL(7, "chineseCounting", "%8") "</w:abstractNum>"
    "<w:abstractNum w:abstractNumId='4'><w:lvl w:ilvl='0'><w:start w:val='5'/><w:numFmt w:val='lowerRoman'/>"
    "<w:lvlText w:val='%1'/>"
    "</w:lvl></w:abstractNum>"
    "<w:num w:numId='7'><w:abstractNumId w:val='3'/></w:num>"
    "<w:num w:numId='8'><w:abstractNumId w:val='3'/>"
    "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='1'/></w:lvlOverride></w:num>"
    "<w:num w:numId='2'><w:abstractNumId w:val='4'/></w:num>"
    "<w:num w:numId='9'><w:abstractNumId w:val='99'/></w:num></w:numbering>";

static int outline(const struct word_styles *w, const char *id)
{
    const struct word_style *s = word_style(w, span_of(id));

    return s ? s->outline : -2;
}

static void test_styles(void **state)
{
    struct word_styles w = {0};

    (void)state;
    assert_null(word_style(&w, span_of("berschrift1")));
    assert_int_equal(word_styles_read(&w, span_of(styles)), 0);
    assert_int_equal(outline(&w, "berschrift1"), 0);
    assert_int_equal(outline(&w, "berschrift2"), 1);
    assert_int_equal(outline(&w, "Mein"), 2);
    assert_int_equal(outline(&w, "Kreis"), WORD_NO_LEVEL);
    assert_int_equal(outline(&w, "Standard"), WORD_NO_LEVEL);
    assert_int_equal(outline(&w, "nichts"), -2);
    assert_null(word_style(&w, span_of("")));
    assert_true(word_style(&w, span_of("Titel"))->title && !word_style(&w, span_of("Mein"))->title);
    assert_int_equal(word_style(&w, span_of("Liste"))->list, 7);
    assert_int_equal(word_style(&w, span_of("Liste"))->level, 1);
    word_styles_reset(&w);
    assert_null(word_style(&w, span_of("berschrift1")));
    assert_int_equal(word_styles_read(&w, span_of("<w:styles><w:style w:styleId='a'><w:name")), 0);
    assert_int_equal(outline(&w, "a"), WORD_NO_LEVEL);
    word_styles_free(&w);
}

static void test_lists(void **state)
{
    static const struct { int list, level; const char *label; } items[] = {
        {7, 0, "1."}, {7, 0, "2."}, {7, 1, "2.a)"}, {7, 1, "2.b)"}, {7, 2, "(I)"}, {7, 2, "(II)"}, {7, 1, "2.c)"}, {7, 2, "(I)"},
        {7, 0, "3."}, {7, 1, "3.a)"}, {8, 0, "1."}, {8, 0, "2."}, {7, 0, "3."}, {7, 3, ""}, {7, 4, ""}, {7, 5, "01"},
        {7, 6, "A 100%%9 <%"}, {7, 7, "1"},
        {2, 0, "v"}, {2, 0, "vi"}, {2, 1, ""}, {9, 0, ""}, {77, 0, ""}, {7, 9, ""}, {7, -1, ""}};
    struct word_styles w = {0};
    struct buf b = {0};

    (void)state;
    assert_int_equal(word_list_item(&w, 7, 0, &b), 0);
    assert_int_equal(b.n, 0);
    assert_int_equal(word_styles_read_lists(&w, span_of(lists)), 0);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        assert_int_equal(word_list_item(&w, items[i].list, items[i].level, &b), 0);
        if (!span_is(buf_span(&b), items[i].label))
            fail_msg("item %zu: %.*s, not %s", i, (int)b.n, b.p, items[i].label);
    }
    for (int i = 7; i < 4000; i++)
        word_list_item(&w, 2, 0, &b);
    assert_true(span_is(buf_span(&b), "mmmcmxcix"));
    word_list_item(&w, 2, 0, &b);
    assert_true(span_is(buf_span(&b), "4000"));
    for (int i = 0; i < 27; i++)
        word_list_item(&w, 7, 6, &b);
    assert_true(span_starts(buf_span(&b), "BB"));
    buf_free(&b);
    word_styles_free(&w);
}

#define P(props, text) "<w:p><w:pPr>" props "</w:pPr><w:r><w:t>" text "</w:t></w:r></w:p>"

static void test_paragraphs(void **state)
{
    static const char document[] =
        "<w:document><w:body>" P("<w:pStyle w:val=\"Titel\"/>", "T") P("<w:pStyle w:val=\"Mein\"/>", "Drei")
        P("<w:outlineLvl w:val=\"0\"/>", "Eins") P("<w:pStyle w:val=\"Text\"/>", "Text")
        P("<w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"7\"/></w:numPr>", "a") P("<w:pStyle w:val=\"Liste\"/>", "b &amp; b")
        P("<w:pStyle w:val=\"Liste\"/><w:numPr><w:numId w:val=\"0\"/></w:numPr>", "keins")
        P("<w:numPr><w:ilvl w:val=\"3\"/><w:numId w:val=\"7\"/></w:numPr>", "Punkt") P("<w:pStyle w:val=\"Heading1\"/>", "Name")
        "</w:body></w:document>";
    struct word_styles w = {0};
    struct html_conf c;
    struct xml_text *x;
    struct xml_doc d;
    struct err e;

    (void)state;
    html_conf_init(&c);
    c.format = HTML_MARKDOWN;
    assert_int_equal(xml_text_new(&x, &c, &e), 0);
    assert_int_equal(word_styles_read(&w, span_of(styles)), 0);
    assert_int_equal(word_styles_read_lists(&w, span_of(lists)), 0);
    xml_text_set_styles(x, &w);
    assert_int_equal(xml_text_extract(x, &xml_word, span_of(document), &d, &e), 0);
    if (!span_is(d.text, "# T\n\n### Drei\n\n# Eins\n\nText\n\n1\\. a\n1.a) b & b\n\nkeins\n\n- Punkt\n\n# Name\n"))
        fail_msg("%.*s", (int)d.text.n, d.text.p);
    xml_text_free(x);
    word_styles_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_paragraphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
