/* XML: tags and entities, streams cut into records, formulas, dates, and the formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "curate/xml/posts.h"
#include "curate/xml/xml_cut.h"
#include "curate/xml/xml_date.h"
#include "curate/xml/xml_text.h"
#include "tests/given_bytes.h"

/* ---- reader ---- */

/* All events of xml: <name> </name> (text). */
static void events_are(const char *xml, const char *expected, uint64_t faults)
{
    struct xml_reader r = {0};
    struct buf b = {0};
    enum xml_event ev;

    xml_reader_begin(&r, span_of(xml));
    while ((ev = xml_next(&r)) != XML_EV_END) {
        if (ev == XML_EV_TEXT) {
            buf_putc(&b, '(');
            xml_put_text(r.text, r.literal, &b);
            buf_putc(&b, ')');
        } else {
            buf_printf(&b, "<%s%.*s%s>", ev == XML_EV_CLOSE ? "/" : "", (int)r.name.n, r.name.p, r.empty ? "/" : "");
        }
    }
    buf_putc(&b, '\0');
    assert_string_equal(b.p, expected);
    assert_int_equal(r.faults, faults);
    buf_free(&b);
    xml_reader_free(&r);
}

static void tags_and_texts(void **s)
{
    (void)s;
    events_are("<?xml version='1.0'?><!DOCTYPE a SYSTEM \"a>b.dtd\"><a b='>' c=\"x/\"><!-- <b> --><m:b/>x</a>",
               "<a><b/>(x)</a>", 0);
    events_are("<a>1 &lt; 2 &#x263A;&eacute;<![CDATA[<b>&amp;]]></a>", "<a>(1 < 2 ☺é)(<b>&amp;)</a>", 0);
    events_are("<a>AT&T < 5 & <b>x</b></a>", "<a>(AT&T < 5 & )<b>(x)</b></a>", 1);
    events_are("<a>x\x1b[1m&#27;&#0;&unknown;y\r\nz</a>", "<a>(x[1my\nz)</a>", 0);
    events_are("<a>it&#146;s</a>", "<a>(it’s)</a>", 0);
    events_are("<a b=\"x", "<a>", 1);
    events_are("<a><b c<d>", "<a><b><d>", 1);
    events_are("", "", 0);
}

static void entities_of_the_document(void **s)
{
    (void)s;
    events_are("<!DOCTYPE a [<!ENTITY w \"B &lt; <i>C</i>\"><!ENTITY % p SYSTEM 'x'> %p; ]><a>A &w; D</a>",
               "<a>(A )(B < )<i>(C)</i>( D)</a>", 0);
    events_are("<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>A &x;B</a>", "<a>(A B)</a>", 0);
    events_are("<!DOCTYPE a [<!ENTITY x \"1&y;\"><!ENTITY y \"2&x;\">]><a>&x;</a>", "<a>(1)(2)(1)(2)(1)(2)(1)(2)</a>", 1);
}

/* References without end, a text that many of them interrupt, and many texts before one. */
static void entities_take_linear_time(void **s)
{
    static const char *const parts[] = {"&e;", "x &e; ", "<b>&e;</b>", "&"};

    (void)s;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct xml_reader r = {0};
        struct buf b = {0};

        buf_puts(&b, "<!DOCTYPE a [<!ENTITY e ''>]><a>");
        while (b.n < 4 << 20)
            buf_puts(&b, parts[i]);
        buf_puts(&b, "&e;");
        xml_reader_begin(&r, buf_span(&b));
        while (xml_next(&r) != XML_EV_END)
            ;
        assert_false(r.too_much);
        buf_free(&b);
        xml_reader_free(&r);
    }
}

static void attributes(void **s)
{
    struct xml_reader r = {0};
    struct buf b = {0};

    (void)s;
    xml_reader_begin(&r, span_of("<a xlink:href='h&amp;r' b = \"2\" id='>' c>"));
    assert_int_equal(xml_next(&r), XML_EV_START);
    assert_int_equal(xml_attr_text(&r, "href", &b), 1);
    assert_true(span_is(buf_span(&b), "h&r"));
    assert_true(xml_attr_is(&r, "b", "2"));
    assert_true(xml_attr_is(&r, "id", ">"));
    assert_null(xml_attr(&r, "c").p);
    assert_null(xml_attr(&r, "xlink").p);
    buf_free(&b);
}

/* ---- cutting ---- */

/* What a stream is cut into, with " | " behind each record and "! why" for what is bad, whatever the steps are. */
static void pieces_are(struct span xml, const char *const *records, size_t max, const char *expected)
{
    static const size_t steps[] = {1, 3, 7, 1 << 20};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct given_bytes in = {.all = xml, .step = steps[i], .broken = SIZE_MAX};
        const struct xml_input input = given_input(&in);
        struct xml_cut *c;
        struct xml_piece piece;
        struct buf b = {0};
        struct err e;
        int rc;

        assert_int_equal(xml_cut_open(&c, &input, records, max, &e), 0);
        while ((rc = xml_cut_next(c, &piece, &e)) != 0) {
            assert_true(rc == 1 || rc == ERR_FORMAT);
            if (rc == 1)
                buf_put_span(&b, piece.record);
            else
                buf_printf(&b, "! %s", e.msg);
            buf_puts(&b, " | ");
        }
        buf_putc(&b, '\0');
        assert_string_equal(b.p, expected);
        buf_free(&b);
        xml_cut_close(c);
    }
}

static void records(void **s)
{
    static const char *const rows[] = {"row", NULL}, *const items[] = {"item", "entry", NULL};

    (void)s;
    pieces_are(span_of("<t><row a='>'/><!-- <row/> --><row b=\"/>\">x</row><rows/></t>"), rows, 100,
               "<row a='>'/> | <row b=\"/>\">x</row> | ");
    pieces_are(span_of("<r><x:item><![CDATA[</x:item>]]></x:item>\n<entry><p></p></entry></r>"), items, 100,
               "<x:item><![CDATA[</x:item>]]></x:item> | <entry><p></p></entry> | ");
    pieces_are(span_of("<r><item>a<item>b</item></r>"), items, 100,
               "! 'mem' at byte 3: a record without an end | <item>b</item> | ");
    pieces_are(span_of("<t><row a=\"1 b=\"2\"/><row a=\"3\"/><row a=\"<b>\"/></t>"), rows, 100,
               "! 'mem' at byte 3: a record without an end | <row a=\"3\"/> | <row a=\"<b>\"/> | ");
    pieces_are(span_of("<r><item>a</item><item>b"), items, 100,
               "<item>a</item> | ! 'mem' at byte 17: the file ends in a record | ");
    pieces_are(span_of("<r><item>a</item>"), items, 100,
               "<item>a</item> | ! 'mem' at byte 17: the file ends without the end of its root | ");
    pieces_are(span_of("<r><item>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</item><item>b</item></r>"), items, 40,
               "! 'mem' at byte 3: a record longer than 40 bytes | <item>b</item> | ");
}

static void documents(void **s)
{
    (void)s;
    pieces_are(span_of("<?xml version='1.0'?><a><![CDATA[<?xml ?>]]></a>\n<?xml version='1.0'?><b/>"), NULL, 100,
               "<?xml version='1.0'?><a><![CDATA[<?xml ?>]]></a>\n | <?xml version='1.0'?><b/> | ");
    pieces_are(span_of("<?xml version='1.0'?><a>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<c/></a><?xml version='1.0'?><b/>"), NULL, 40,
               "! 'mem' at byte 0: a record longer than 40 bytes | <?xml version='1.0'?><b/> | ");
    pieces_are((struct span){"\xFF\xFE<\0a\0>\0\xE9\0=\xD8\0\xDE<\0/\0a\0>\0", 22}, NULL, 100, "<a>é😀</a> | ");
    pieces_are((struct span){"\0<\0a\0/\0>", 8}, NULL, 100, "<a/> | ");
}

/* ---- formulas, dates ---- */

static void tex_is(const char *mathml, const char *expected)
{
    struct xml_reader r = {0};
    struct buf b = {0};

    xml_reader_begin(&r, span_of(mathml));
    xml_next(&r);
    assert_int_equal(xml_math(&r, &b), 0);
    buf_putc(&b, '\0');
    assert_string_equal(b.p, expected);
    buf_free(&b);
}

static void formulas(void **s)
{
    (void)s;
    tex_is("<math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac></math>", "\\frac{a}{b+1}");
    tex_is("<m:math><m:msubsup><m:mi>x</m:mi><m:mi>i</m:mi><m:mn>2</m:mn></m:msubsup><m:mo>=</m:mo><m:msqrt><m:mi>α</m:mi>"
           "</m:msqrt></m:math>", "x_{i}^{2}=\\sqrt{α}");
    tex_is("<math><msup><mrow><mo>(</mo><mi>a</mi></mrow><mn>2</mn></msup></math>", "{(a}^{2}");
    tex_is("<math><mi>sin</mi><mi>x</mi><mi>rate</mi><mtext>if</mtext><mo>%</mo></math>", "\\sin x\\mathrm{rate}\\text{if}\\%");
    tex_is("<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>\\xi</annotation></semantics></math>", "\\xi");
    tex_is("<math><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable></math>",
           "\\begin{matrix}1&2\\\\3\\end{matrix}");
    tex_is("<m:oMath><m:rad><m:radPr/><m:deg/><m:e><m:r><m:t>x</m:t></m:r></m:e></m:rad><m:nary><m:naryPr><m:chr m:val='∑'/>"
           "</m:naryPr><m:sub><m:r><m:t>i</m:t></m:r></m:sub><m:sup/><m:e><m:r><m:t>a</m:t></m:r></m:e></m:nary></m:oMath>",
           "\\sqrt{x}∑_{i}a");
    tex_is("<math><mfenced open='['><mi>a</mi><mi>b</mi></mfenced><mroot><mi>x</mi><mn>3</mn></mroot></math>",
           "[a,b)\\sqrt[3]{x}");
}

static void date_is(const char *s, const char *expected)
{
    struct buf b = {0};

    assert_int_equal(xml_date(span_of(s), &b), 0);
    assert_true(span_is(buf_span(&b), expected));
    buf_free(&b);
}

static void dates(void **s)
{
    (void)s;
    date_is("Mon, 02 Jan 2006 15:04:05 GMT", "2006-01-02T15:04:05Z");
    date_is("2 Jan 2006 15:04 -0700", "2006-01-02T15:04:00-07:00");
    date_is("20150106", "2015-01-06");
    date_is("2015-01-06T00:00:00Z", "2015-01-06T00:00:00Z");
    date_is("yesterday", "");
}

/* ---- formats ---- */

static struct xml_text *worker;

static int open_worker(void **s)
{
    struct html_conf c;
    struct err e;

    (void)s;
    html_conf_init(&c);
    return xml_text_new(&worker, &c, &e);
}

static int close_worker(void **s)
{
    (void)s;
    xml_text_free(worker);
    return 0;
}

/* The text of a document, and fields that are looked at, in *x. */
static void text_is(const struct xml_format *f, const char *xml, const char *expected, struct xml_doc *x)
{
    struct buf b = {0};
    struct err e = {0};

    if (xml_text_extract(worker, f, span_of(xml), x, &e) < 0)
        fail_msg("%s", e.msg);
    buf_put_span(&b, x->text);
    buf_putc(&b, '\0');
    assert_string_equal(b.p, expected);
    buf_free(&b);
}

static void field_is(const struct xml_doc *x, enum xml_field field, const char *expected)
{
    struct buf b = {0};

    buf_put_span(&b, x->field[field]);
    buf_putc(&b, '\0');
    assert_string_equal(b.p, expected);
    buf_free(&b);
}

static void jats(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_jats,
            "<article xml:lang='en'><front><journal-meta><journal-title>J</journal-title></journal-meta><article-meta>"
            "<article-id pub-id-type='doi'>10.1/x</article-id><article-id pub-id-type='other'>9</article-id>"
            "<title-group><article-title>On <italic>mice</italic></article-title></title-group>"
            "<contrib-group><contrib><name><surname>Roe</surname><given-names>Ann B.</given-names></name></contrib>"
            "<contrib><collab>The Group</collab></contrib></contrib-group><aff>Nowhere</aff>"
            "<pub-date><day>3</day><month>2</month><year>2014</year></pub-date>"
            "<permissions><license xlink:href='http://cc/by'><license-p>Free.</license-p></license></permissions>"
            "<abstract><p>Short.</p></abstract><kwd-group><kwd>one</kwd><kwd>two</kwd></kwd-group></article-meta></front>"
            "<body><sec><title>Methods</title><p>We <xref>[1]</xref> saw <mml:math><mml:mi>x</mml:mi></mml:math>."
            "</p><list list-type='bullet'><list-item><p>a</p></list-item><list-item><p>b</p></list-item></list>"
            "<fig><object-id>o</object-id><label>Figure 1</label><caption><title>Mice.</title><p>All.</p></caption></fig>"
            "<table-wrap><table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table></table-wrap></sec></body>"
            "<back><ack><title>Thanks</title><p>You.</p></ack><ref-list><ref>gone</ref></ref-list></back>"
            "<sub-article><front-stub><article-id pub-id-type='doi'>10.1/y</article-id><title-group><article-title>Letter"
            "</article-title></title-group></front-stub><body><p>Yes.</p></body></sub-article></article>",
            "On mice\n\nShort.\n\nMethods\n\nWe [1] saw $x$.\n\n- a\n- b\n\nFigure 1\n\nMice.\n\nAll.\n\n1 | 2\n3 | 4\n\n"
            "Thanks\n\nYou.\n\nLetter\n\nYes.\n", &x);
    field_is(&x, XML_TITLE, "On mice");
    field_is(&x, XML_AUTHOR, "Ann B. Roe, The Group");
    field_is(&x, XML_DATE, "2014-02-03");
    field_is(&x, XML_DOI, "10.1/x");
    field_is(&x, XML_LICENSE, "http://cc/by");
    field_is(&x, XML_LANG, "en");
    field_is(&x, XML_PUBLISHER, "J");
    field_is(&x, XML_KEYWORDS, "one, two");
    text_is(&xml_jats,
            "<article><body><p><alternatives><tex-math>\\documentclass{a}\\begin{document}$$x^2$$\\end{document}</tex-math>"
            "<math><mi>y</mi></math></alternatives></p></body></article>", "$$x^2$$\n", &x);
    text_is(&xml_jats, "<article><body><p>a<b>b</p></i><p>c</p></body></article>", "ab\n\nc\n", &x);
    assert_int_equal(x.faults, 2);
}

static void tei(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_tei,
            "<TEI xml:lang='la'><teiHeader><fileDesc><titleStmt><title>T</title><author>A. B.</author></titleStmt>"
            "</fileDesc></teiHeader>"
            "<text><body><div><head>One</head><p>a<choice><sic>teh</sic><corr>the</corr></choice> in"
            "<lb break='no'/>\n scrip<pb/>"
            "tion <del>gone</del></p><sp><speaker>Ann.</speaker><l>Oh!</l></sp></div></body></text></TEI>",
            "One\n\nathe inscrip tion\n\nAnn.\nOh!\n", &x);
    field_is(&x, XML_TITLE, "T");
    field_is(&x, XML_AUTHOR, "A. B.");
    field_is(&x, XML_LANG, "la");
    text_is(&xml_tei,
            "<TEI><text><body><u><seg><s><w>Yes</w><w join='right'>Sir</w><pc>!</pc></s></seg></u></body></text></TEI>",
            "Yes Sir!\n", &x);
}

static void docbook(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_docbook,
            "<article xmlns='http://docbook.org/ns/docbook'><info><title>T</title><author><personname><firstname>A</firstname>"
            "<surname>B</surname></personname></author></info><section><title>S</title><para>Use <literal>f</literal> &php;."
            "<indexterm><primary>no</primary></indexterm></para><programlisting><![CDATA[a <\n  b;]]></programlisting>"
            "<informaltable><tgroup cols='2'><tbody><row><entry>1</entry><entry>2</entry></row><row><entry>3</entry>"
            "<entry>4</entry></row></tbody></tgroup></informaltable></section></article>",
            "T\n\nS\n\nUse f .\n\na <\n  b;\n\n1 | 2\n3 | 4\n", &x);
    field_is(&x, XML_TITLE, "T");
    field_is(&x, XML_AUTHOR, "A B");
}

static void feeds(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_feed,
            "<item><title>T &amp; U</title><link>http://a/</link><guid>g</guid><pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate>"
            "<description>short</description><content:encoded>&lt;p&gt;Long &lt;b&gt;one&lt;/b&gt;&lt;script&gt;no()"
            "</content:encoded>"
            "<dc:creator>Ann</dc:creator><category>c</category></item>", "T & U\n\nLong one\n", &x);
    field_is(&x, XML_URL, "http://a/");
    field_is(&x, XML_ID, "g");
    field_is(&x, XML_DATE, "2006-01-02T15:04:05Z");
    field_is(&x, XML_AUTHOR, "Ann");
    text_is(&xml_feed,
            "<entry><title>T</title><link rel='self' href='x'/><link href='http://b/'/><author><name>Bob</name>"
            "</author><summary>s</summary>"
            "<content type='xhtml'><div><script/><p>Body <br/>here</p></div></content></entry>", "T\n\nBody\nhere\n", &x);
    field_is(&x, XML_URL, "http://b/");
    text_is(&xml_feed, "<entry><content type='text'>a &lt;b&gt;</content></entry>", "a <b>\n", &x);
}

static void patents(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_patent,
            "<us-patent-grant lang='EN'><us-bibliographic-data-grant><publication-reference><document-id>"
            "<doc-number>07</doc-number>"
            "<date>20070918</date></document-id></publication-reference><invention-title>Lamp</invention-title>"
            "<us-references-cited>no"
            "</us-references-cited><inventors><inventor><addressbook><last-name>Roe</last-name><first-name>Ann</first-name>"
            "</addressbook></inventor></inventors></us-bibliographic-data-grant><abstract><p>A lamp.</p></abstract>"
            "<description>"
            "<heading>FIELD</heading><p>Light.</p></description><claims><claim><claim-text>1. A lamp</claim-text>"
            "</claim></claims>"
            "</us-patent-grant>", "Lamp\n\nA lamp.\n\nFIELD\n\nLight.\n\n1. A lamp\n", &x);
    field_is(&x, XML_ID, "07");
    field_is(&x, XML_DATE, "2007-09-18");
    field_is(&x, XML_AUTHOR, "Ann Roe");
}

static void law(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_law,
            "<akomaNtoso><act><meta><FRBRWork><FRBRdate date='2013-09-17'/><FRBRlanguage language='en'/></FRBRWork>"
            "</meta><body><section>"
            "<num>1.</num><heading>Scope</heading><content><p>All of it.</p></content></section></body></act></akomaNtoso>",
            "1.\n\nScope\n\nAll of it.\n", &x);
    field_is(&x, XML_DATE, "2013-09-17");
    field_is(&x, XML_LANG, "en");
}

static void xhtml(void **s)
{
    struct xml_doc x;

    (void)s;
    text_is(&xml_xhtml,
            "<html><head><title>no</title></head><body><a id='x'/><h1>One</h1><p>a<br/>b &eacute;<p>left open</body></html>",
            "One\n\na\nb é\n\nleft open\n", &x);
}

static void refused(void **s)
{
    struct buf b = {0};
    struct xml_doc x;
    struct err e;

    (void)s;
    assert_int_equal(xml_text_extract(worker, &xml_jats, span_of("<article><body><p>cut"), &x, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "ends in <p>"));
    assert_int_equal(xml_text_extract(worker, &xml_jats, span_of("words"), &x, &e), ERR_FORMAT);
    /* entities of entities */
    buf_puts(&b, "<!DOCTYPE article [<!ENTITY a0 'lol'>");
    for (int i = 1; i < 8; i++) {
        buf_printf(&b, "<!ENTITY a%d '", i);
        for (int k = 0; k < 20; k++)
            buf_printf(&b, "&a%d;", i - 1);
        buf_puts(&b, "'>");
    }
    buf_puts(&b, "]><article><body><p>&a7;</p></body></article>");
    assert_int_equal(xml_text_extract(worker, &xml_jats, buf_span(&b), &x, &e), ERR_LIMIT);
    buf_free(&b);
}

/* More levels than are kept: the text is there all the same. */
static void deep(void **s)
{
    struct buf b = {0};
    struct xml_doc x;

    (void)s;
    buf_puts(&b, "<article><body>");
    for (int i = 0; i < 3 * XML_DEPTH_MAX; i++)
        buf_puts(&b, "<sec>");
    buf_puts(&b, "<p>deep</p>");
    for (int i = 0; i < 3 * XML_DEPTH_MAX; i++)
        buf_puts(&b, "</sec>");
    buf_puts(&b, "<p>end</p></body></article>");
    buf_putc(&b, '\0');
    text_is(&xml_jats, b.p, "deep\n\nend\n", &x);
    buf_free(&b);
}

/* ---- posts ---- */

static void posts_in_order(void **s)
{
    static const struct post in[] = {{.group = 7, .id = 7, .rank = INT32_MIN}, {.group = 3, .id = 9, .rank = -2},
                                     {.group = 7, .id = 8, .rank = -1}, {.group = 7, .id = 10, .rank = -5},
                                     {.group = 3, .id = 3, .rank = INT32_MIN}, {.group = 7, .id = 6, .rank = -1}};
    static const char expected[] = "3 9 7 10 6 8 ";
    struct posts *p;
    struct post post;
    struct buf b = {0};
    struct err e;
    int rc;

    (void)s;
    assert_int_equal(posts_new(&p, &e), 0);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        char row[16];
        snprintf(row, sizeof row, "%d ", (int)in[i].id);
        assert_int_equal(posts_add(p, in[i], span_of(row), &e), 0);
    }
    while ((rc = posts_peek(p, &post, &e)) == 1) {
        buf_reserve(&b, post.n);
        assert_int_equal(posts_take(p, b.p + b.n, &e), 0);
        b.n += post.n;
    }
    assert_int_equal(rc, 0);
    assert_true(span_is(buf_span(&b), expected));
    posts_free(p);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_and_texts),
        cmocka_unit_test(entities_of_the_document),
        cmocka_unit_test(entities_take_linear_time),
        cmocka_unit_test(attributes),
        cmocka_unit_test(records),
        cmocka_unit_test(documents),
        cmocka_unit_test(formulas),
        cmocka_unit_test(dates),
        cmocka_unit_test(jats),
        cmocka_unit_test(tei),
        cmocka_unit_test(docbook),
        cmocka_unit_test(feeds),
        cmocka_unit_test(patents),
        cmocka_unit_test(law),
        cmocka_unit_test(xhtml),
        cmocka_unit_test(refused),
        cmocka_unit_test(deep),
        cmocka_unit_test(posts_in_order),
    };

    return cmocka_run_group_tests(tests, open_worker, close_worker);
}
