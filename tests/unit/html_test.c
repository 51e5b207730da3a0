#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/html/html.h"
#include "curate/html/html_date.h"
#include "curate/text/robots.h"
#include "curate/html/html_tree.h"

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

static void expect_from(enum html_extractor x, enum html_format f, const char *html,
                        const char *want)
{
    struct html_worker *w = worker_new(x, f);
    struct html_page page;

    assert_int_equal(html_extract(w, span_of(html), span_of(""), &page, NULL), 0);
    if (!span_is(page.text, want))
        fail_msg("from %s\ngot  [%.*s]\nwant [%s]", html, (int)page.text.n, page.text.p, want);
    html_worker_free(w);
}

/* All that a reader sees of html. */
static void expect(const char *html, const char *want)
{
    expect_from(HTML_EVERYTHING, HTML_TEXT, html, want);
}

static void expect_md(const char *html, const char *want)
{
    expect_from(HTML_EVERYTHING, HTML_MARKDOWN, html, want);
}

/* ---- text ---- */

static void test_blocks(void **state)
{
    (void)state;
    expect("", "");
    expect("<p>one\n\t two</p><p>three<br>four", "one two\n\nthree\nfour\n");
    expect("<h1>head</h1>text<div>a</div><div>b</div>", "head\n\ntext\na\nb\n");
    expect("a <b>b</b><i>c</i> d", "a bc d\n");
    expect("<p>a&nbsp;&nbsp; b</p><p> </p><p>&nbsp;</p>c", "a b\n\nc\n");
    expect("<blockquote>q</blockquote><figure><img><figcaption>cap</figcaption></figure>",
           "q\n\ncap\n");
    expect("<dl><dt>term<dd>means</dl>", "term\nmeans\n");
    expect("say <q>yes</q>.", "say \"yes\".\n");
    expect("<ruby>x<rp>(</rp><rt>y</rt><rp>)</rp></ruby>", "x(y)\n");
}

static void test_lists(void **state)
{
    (void)state;
    expect("<ul><li>a<li>b<ol><li>c</ol><li></ul>d", "- a\n- b\n  - c\n\nd\n");
    expect("<ul><li><p>a</p><p>b</p></li></ul>", "- a\n  b\n");
}

static void test_tables(void **state)
{
    (void)state;
    expect("<table><tr><th>k<th>v<tr><td>1<td>2</table>", "k | v\n1 | 2\n");
    expect("<table><tr><td><p>a</p></td><td></td><td> b</td></tr><tr><td><td></tr></table>x",
           "a |  | b\n\nx\n");
    expect("<table><tr><td><td>19<td>20<tr><td>a<td>1<td></table>", "| 19 | 20\na | 1\n");
    expect("<table><tr><td><img><td>a note</table>", "a note\n");
    expect("<table><tr><td>a<td>b<tr><td>|<td>|</table>x", "a | b\n\nx\n");
    expect("<pre>a      </pre><table><tr><td>|<td>b<tr><td><td></table>", "a\n\n| b\n");
    expect("<pre>a          </pre><table><tr><td><td> <td></table>c", "a\n\nc\n");
    expect("y |<table><tr><td>|<td>| |<tr><td>c<td>d</table>x", "y |\n\nc | d\n\nx\n");
    /* A table that arranges the page is no table. */
    expect("<table><tr><td><h2>menu</h2><td><p>a</p><p>b</p></table>", "menu\n\na\n\nb\n");
    expect("<table><tr><td>one cell</table>", "one cell\n");
    expect("<table><tr><td><table><tr><td>a<td>b</table><td>c</table>", "a | b\n\nc\n");
}

static void test_pre(void **state)
{
    (void)state;
    expect("<pre>\n a\n\n  b  \n</pre>c", " a\n\n  b\n\nc\n");
    expect("<pre>x\r\ny&lt;z</pre>", "x\ny<z\n");
    expect("a<pre><code>if (x)\n\ty;</code></pre>", "a\n\nif (x)\n\ty;\n");
}

static void test_math(void **state)
{
    (void)state;
    expect("<math><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></math>",
           "$x^2$\n");
    expect("<p>so <span style='display:none'><math alttext='{\\displaystyle a&lt;b}'><mi>a</mi></math>"
           "</span><img class=mwe-math-fallback alt='{\\displaystyle a}' aria-hidden=true> holds",
           "so $a<b$ holds\n");
    expect("<img class='latex' alt='\\frac12'>", "$\\frac12$\n");
    expect("<script type='math/tex'>e=mc^2</script>", "$e=mc^2$\n");
    expect("<math><mi>x</mi><mo>=</mo><mn>1</mn></math>", "x=1\n");
    /* MathJax 2: a preview, what is shown, the TeX */
    expect("<p>so <span class='MathJax_Preview'>x+y</span><span class='MathJax'><nobr aria-hidden='true'>x+y</nobr>"
           "<span class='MJX_Assistive_MathML'><math><mi>x</mi><mo>+</mo><mi>y</mi></math></span></span>"
           "<script type='math/tex'>x+y</script> holds",
           "so $x+y$ holds\n");
    expect("<div class=MathJax_Display><span class='MathJax'><span>E</span>=mc</span></div>"
           "<script type='math/tex; mode=display'>E=mc</script><p>Thus <span class=MathJax>n</span> is <b>q</b>",
           "$E=mc$\n\nThus n is q\n");
    /* MathJax 3, KaTeX */
    expect("<p>so <mjx-container class='MathJax CtxtMenu_Attached_0'><mjx-math aria-hidden=true></mjx-math>"
           "<mjx-assistive-mml><math><mi>x</mi></math></mjx-assistive-mml></mjx-container> holds",
           "so x holds\n");
    expect("<p>so <span class=katex><span class=katex-mathml><math><semantics><mi>x</mi><annotation "
           "encoding='application/x-tex'>x</annotation></semantics></math></span><span class=katex-html "
           "aria-hidden=true>x</span></span> holds",
           "so $x$ holds\n");
}

static void test_entities(void **state)
{
    (void)state;
    expect("&lt;&amp;&eacute;&#65;&#x42;&nosuch;&", "<&\xC3\xA9" "AB&nosuch;&\n");
    expect("&copy2024 &notit; &amplifier", "\xC2\xA9" "2024 \xC2\xACit; &lifier\n");
    expect("&#150;&#0;&#xD800;&#x110000;", "\xE2\x80\x93\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\n");
    expect("&NotEqualTilde;", "\xE2\x89\x82\xCC\xB8\n");
}

static void test_hidden(void **state)
{
    (void)state;
    expect("<style>s</style><script>s</script><noscript>n</noscript><template>t</template>"
           "<p hidden>h</p><p style='color:red; display : none'>d</p><p aria-hidden=true>a</p>"
           "<svg><title>i</title></svg><select><option>o</select><iframe>f</iframe>seen", "seen\n");
    /* Hidden until a script shows it: most of the page. */
    expect("<div style='visibility:hidden'><p>A sentence that is long enough to be a paragraph.</p></div>",
           "A sentence that is long enough to be a paragraph.\n");
}

/* ---- what browsers make of it ---- */

static void test_html5(void **state)
{
    (void)state;
    expect("a < b <3 </ x>c<!-- - -- -->d<!-->e<!---->f<?pi ?>g<!doctype html>h", "a < b <3 cdefgh\n");
    expect("<title><b>t</title>x<textarea><p>y</textarea>", "x\n<p>y\n");
    expect("<script><!-- <script> </script> x --></script>seen", "seen\n");
    expect("<script>'<!-- <script' </script>seen", "seen\n");
    expect("<table>stray<tr><td>cell</table>", "stray\ncell\n");
    expect("<table><tr><td>a<table><tr><td>b</td></tr></table></td></tr></table>c", "a\n\nb\n\nc\n");
    expect("<p>a<div>b</p>c", "a\n\nb\n\nc\n");
    expect("<div><x-y><z-y>a</z-y></x-y></div>b", "a\nb\n");
    expect("<p title=\"a>b\" class=x/>c", "c\n");
    expect("<svg><path/><p>out</svg>", "out\n");
    expect("<svg><![CDATA[<p>]]></svg>a<![CDATA[<p>]]>", "a]]>\n");
    expect("<template><td></template>b", "b\n");
    expect("<select><option>a<div>b</div>", "b\n");
    expect("<p>open <a href='x", "open\n");
    expect("<body><p>a</body>b</html>c", "abc\n");
}

static uint32_t in_link(const char *html)
{
    struct html_tree t = {0};
    struct html_names names;
    uint32_t n = 0;

    html_names_init(&names);
    assert_int_equal(html_tree_parse(&t, &names, span_of(html), 1000, 0, NULL), 0);
    for (uint32_t i = 0; i < t.n_nodes; i++) {
        assert_true(t.node[i].end > i && t.node[i].end <= t.n_nodes);
        assert_true(i == 0 || (t.node[i].parent < i && t.node[t.node[i].parent].end >= t.node[i].end));
        if (t.node[i].tag == HTML_text && t.node[i].flags & HTML_IN_LINK)
            n += t.node[i].len;
    }
    html_tree_free(&t);
    return n;
}

static void test_links(void **state)
{
    (void)state;
    assert_int_equal(in_link("<a href=x>abc</a>de"), 3);
    assert_int_equal(in_link("<a name=x>abc</a>"), 0);
    assert_int_equal(in_link("<a href=x>a<a href=y>b</a>cd"), 2);
    assert_int_equal(in_link("<p><a href=x>ab<div></a>cd</div>"), 2); /* closed across blocks */
    assert_int_equal(in_link("<div><a href=x>ab</div>cd"), 2);        /* never closed */
    assert_int_equal(in_link("<a href=x><div>ab</div></a>"), 2);
}

static void test_attributes(void **state)
{
    static const char html[] = "<p CLASS='a&amp;b' class=c id=d&copy=1 hidden title=\"x\ny\">";
    struct html_tree t = {0};
    struct html_names names;
    struct buf b = {0};

    (void)state;
    html_names_init(&names);
    assert_int_equal(html_tree_parse(&t, &names, span_of(html), 100, 0, NULL), 0);
    assert_int_equal(t.n_nodes, 2);
    assert_int_equal(html_attr_get(&t, 1, ATTR_class, &b), 1);
    assert_true(span_is(buf_span(&b), "a&b"));
    buf_clear(&b);
    assert_int_equal(html_attr_get(&t, 1, ATTR_id, &b), 1);
    assert_true(span_is(buf_span(&b), "d&copy=1"));
    assert_non_null(html_attr_raw(&t, 1, ATTR_hidden, NULL).p);
    assert_int_equal(html_attr_get(&t, 1, ATTR_href, &b), 0);
    assert_true(span_is(html_attr_raw(&t, 1, ATTR_title, NULL), "x\ny"));
    buf_free(&b);
    html_tree_free(&t);
}

/* ---- Markdown ---- */

static void test_markdown(void **state)
{
    (void)state;
    expect_md("<h2>A <em>b</em></h2><p>x <strong> y</strong> z<b></b> <code>c</code></p>",
              "## A *b*\n\nx **y** z `c`\n");
    expect_md("<ol><li>a<li>b</ol><ul><li>c</ul>", "1. a\n2. b\n\n- c\n");
    expect_md("<table><tr><th>k<th>v<tr><td>1<td>2</table>", "| k | v |\n| --- | --- |\n| 1 | 2 |\n");
    expect_md("<pre>a\n  b</pre>c", "```\na\n  b\n```\n\nc\n");
    expect_md("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n\n> b\n");
    /* A mark does not reach from block to block. */
    expect_md("<b><p>a</p><p>b</p></b><b>c<strong>d</strong></b>", "a\n\nb\n\n**cd**\n");
}

static void test_markdown_code(void **state)
{
    (void)state;
    expect_md("<pre class='brush: js'>a</pre>", "```js\na\n```\n");
    expect_md("<div class='highlight-c notranslate'><div class=highlight><pre>a</pre></div></div>", "```c\na\n```\n");
    expect_md("<pre><code class='hljs language-c++'>a</code></pre>", "```c++\na\n```\n");
    expect_md("<pre>```\n*a*</pre>", "````\n```\n*a*\n````\n");
    expect_md("<code>a`b</code> <code>`</code> <code>*<a href=x>y</a><b>z</b></code>", "``a`b`` `` ` `` `*yz`\n");
    expect_md("<ul><li>a<pre>b\nc</pre><li>d</ul>", "- a\n  ```\n  b\n  c\n  ```\n- d\n");
}

static void test_markdown_lists(void **state)
{
    (void)state;
    expect_md("<ol start=9><li>a<ul><li>b</ul><li>c<p>d</ol>", "9. a\n   - b\n10. c\n\n    d\n");
    expect_md("<ul><li><p>a</p><p>b</p></li><li>c</ul>", "- a\n\n  b\n- c\n");
    expect_md("<table><tr><th>k|v<th>w<tr><td><code>a|b</code><td>c</table>",
              "| k\\|v | w |\n| --- | --- |\n| `a\\|b` | c |\n");
}

static void test_markdown_escapes(void **state)
{
    (void)state;
    expect_md("5*3 snake_case _x_ `t` a &lt;b&gt; &amp;amp; [1] [a](b) $5 $x 2 * 3 a\\*",
              "5\\*3 snake_case \\_x\\_ \\`t\\` a \\<b> \\&amp; [1] [a\\]\\(b) $5 \\$x 2 * 3 a\\\\\\*\n");
    expect_md("# a<br>- b<br>1. c<br>2) d<br>&gt; e<br>---<br>[f]: g<br>-5 1.5",
              "\\# a\n\\- b\n1\\. c\n2\\) d\n\\> e\n\\---\n\\[f]: g\n-5 1.5\n");
    expect_md("<h2>1. a</h2>", "## 1. a\n");
    expect_md("\\(a_1*b\\) $$x*y$$ $a_1*2$ \\(*x", "\\(a_1*b\\) $$x*y$$ $a_1*2$ \\\\(\\*x\n");
}

static void expect_link(const char *url, const char *html, const char *want)
{
    struct html_worker *w = NULL;
    struct html_page page;
    struct html_conf c;

    html_conf_init(&c);
    c.extractor = HTML_EVERYTHING;
    c.format = HTML_MARKDOWN;
    c.images = true;
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    assert_int_equal(html_extract(w, span_of(html), span_of(url), &page, NULL), 0);
    if (!span_is(page.text, want))
        fail_msg("from %s\ngot  [%.*s]\nwant [%s]", html, (int)page.text.n, page.text.p, want);
    html_worker_free(w);
}

static void test_markdown_links(void **state)
{
    static const char url[] = "https://e.org/a/b?c#d";

    (void)state;
    expect_link(url, "a <a href=c>b <b>c</b></a>, d", "a [b **c**](https://e.org/a/c), d\n");
    expect_link(url, "<a href='../x (1)?a=/../b'>b</a>", "[b](https://e.org/x%20%281%29?a=/../b)\n");
    expect_link(url, "<a href='./../../y/./z/..'>b</a>", "[b](https://e.org/y/)\n");
    expect_link(url, "<a href=/y//z>b</a><a href='?q'>c</a> <a href='#f'>d</a> <a href=//f.org>e</a>",
                "[b](https://e.org/y//z)[c](https://e.org/a/b?q) [d](https://e.org/a/b?c#f) [e](https://f.org)\n");
    expect_link(url, "<base href=/docs/><a href=x>b</a>", "[b](https://e.org/docs/x)\n");
    expect_link(url, "<a href='javascript:x()'>b</a> <a href=' '>c</a> <a href=x> <i></i></a>", "b c\n");
    expect_link(url, "<a href=x><h3>b</h3><p>c</p></a>", "### b\n\nc\n");
    expect_link(url, "<a href=mailto:x@y>[b]</a> <img src=i.png alt='a [b]'>",
                "[\\[b\\]](mailto:x@y) ![a \\[b\\]](https://e.org/a/i.png)\n");
    expect_link("", "<a href=x>b</a>", "[b](x)\n");
}

/* ---- metadata ---- */

static void check_meta(const char *html, const char *title, const char *author, const char *date,
                       const char *lang, const char *canonical)
{
    struct html_worker *w = worker_new(HTML_MAIN, HTML_TEXT);
    struct html_page p;
    const char *want[] = {title, author, date, lang, canonical};

    assert_int_equal(html_extract(w, span_of(html), span_of("https://e.org/a/b?c"), &p, NULL), 0);
    struct span got[] = {p.title, p.author, p.date, p.lang, p.canonical};
    for (int i = 0; i < 5; i++)
        if (want[i] ? !span_is(got[i], want[i]) : got[i].p != NULL)
            fail_msg("field %d of %s: [%.*s], not [%s]", i, html, (int)got[i].n, got[i].p,
                     want[i] ? want[i] : "none");
    html_worker_free(w);
}

static void test_meta(void **state)
{
    (void)state;
    check_meta("<div itemprop=author>By <span itemprop=name>user51</span> 3 badges</div>", NULL, "user51", NULL, NULL, NULL);
    check_meta("<a rel=author>Staff 10:43</a><a rel=author>Ann Lee</a>", NULL, "Ann Lee", NULL, NULL, NULL);
    check_meta("<div itemprop=author><p itemprop=name><b>Ann Lee</b><p>x</div>", NULL, "Ann Lee", NULL, NULL, NULL);
    check_meta("<div itemprop=author><div itemprop=name><p>Ann Lee<p>Editor</div></div>", NULL, "Ann Lee", NULL, NULL, NULL);
    check_meta("<meta name=author content='Bo'><span class=author>Ann May 3, 2021 Lee</span>", NULL, "Bo",
               "2021-05-03", NULL, NULL);
    check_meta("<meta name=author content='  '><p>nothing", NULL, NULL, NULL, NULL, NULL);
    check_meta("<html lang='de-AT'><title>A&amp;B\n c</title><link rel='x canonical' href='/d'>",
               "A&B c", NULL, NULL, "de-AT", "https://e.org/d");
    check_meta("<html xml:lang=fr_FR><meta property=og:title content='T'><title>other</title>"
               "<meta name=Author content='by  Ann Lee'><link rel=canonical href='//f.org/x'>"
               "<meta property='article:published_time' content='2024-05-01T10:20:30+0200'>",
               "T", "Ann Lee", "2024-05-01T10:20:30+02:00", "fr-FR", "https://f.org/x");
    check_meta("<meta http-equiv=content-language content='pt, en'><link rel=canonical href='z'>"
               "<title>A long story about it - Site</title><time datetime='2020-02-30'>1. Mai 2020</time>"
               "<time>May 3rd, 2021</time><a rel=author>Bo</a>",
               "A long story about it", "Bo", "2021-05-03", "pt", "https://e.org/a/z");
    check_meta("<script type='application/ld+json'>{\"headline\":\"H\\u00e9\\ud83d\\ude00\\ud83d \\\"x\\\"\",\"author\":"
               "[{\"@type\":\"Person\",\"name\":\"C D\"}],\"datePublished\":\"2019-01-02\"}</script>"
               "<meta name=author content='https://e.org/cd'>",
               "H\xC3\xA9\xF0\x9F\x98\x80\xEF\xBF\xBD \"x\"", "C D", "2019-01-02", NULL, NULL);
    check_meta("<title>Site: Some words here</title><h1>Some words here</h1><svg><title>i</title></svg>",
               "Some words here", NULL, NULL, NULL, NULL);
    check_meta("<title>Mill - Some encyclopedia, the free one</title><h1>Mill</h1>", "Mill", NULL, NULL, NULL, NULL);
    check_meta("<meta property=og:site_name content='N'><title>N | What happened</title>",
               "What happened", NULL, NULL, NULL, NULL);
}

static void test_meta_json(void **state)
{
    (void)state;
    /* an author is its own name, never another's; a reference is followed; of several all */
    check_meta("<script type='application/ld+json'>{\"author\":{\"@id\":\"#a\"},\"itemListElement\":[{\"name\":\"Home\"}],"
               "\"x\":{\"@id\":\"#a\",\"image\":\"i\",\"name\":\"Ann \\u00c9\"}}</script>",
               NULL, "Ann \xC3\x89", NULL, NULL, NULL);
    check_meta("<script type='application/ld+json'>{\"author\":{\"@id\":\"#a\"},\"y\":{\"name\":\"Home\"}}</script>",
               NULL, NULL, NULL, NULL, NULL);
    check_meta("<script type='application/ld+json'>{\"author\":[{\"name\":\"A B\",\"worksFor\":{\"name\":\"Org\"}},\"C D\","
               "{\"name\":\"E\"}],\"publisher\":{\"name\":\"P\"}}</script>",
               NULL, "A B, C D, E", NULL, NULL, NULL);
    check_meta("<script type='application/ld+json'>{\"author\":{\"name\":\"A B", NULL, "A B", NULL, NULL, NULL);
}

static void test_meta_of_classes(void **state)
{
    (void)state;
    check_meta("<meta property='article:published' itemprop='datePublished dateCreated' content=2019-11-19>", NULL, NULL,
               "2019-11-19", NULL, NULL);
    check_meta("<span property='schema:dateCreated' content=2022-01-28></span>", NULL, NULL, "2022-01-28", NULL, NULL);
    check_meta("<link rel=canonical href=/2018/2/x/2018/03/04/y><time>May 3rd, 2021</time>", NULL, NULL, "2018-03-04", NULL,
               "https://e.org/2018/2/x/2018/03/04/y");
    check_meta("<p class=comment-date>1.2.2020</p><span class='big news-Date'>Bonn, 12.03.2020</span>", NULL, NULL,
               "2020-03-12", NULL, NULL);
    check_meta("<abbr class=published title='2020-04-28T21:00'>May</abbr>", NULL, NULL, "2020-04-28T21:00:00", NULL, NULL);
    check_meta("<p class=comment-form-author>Name here</p><p class=author>7 posts<p class=update>1.2.2020"
               "<p class='x post-author'>Von Ann Lee</p>",
               NULL, "Ann Lee", "2020-02-01", NULL, NULL);
    /* parts of classes, as frameworks make them; lines of their own; what is said before a name */
    check_meta("<p class=ArticleHead_date__x0aO>4 min | August 27, 2025</p><div class=by-line><p>Author</p><p>Ann Lee</p></div>",
               NULL, NULL, "2025-08-27", NULL, NULL);
    check_meta("<div class='card postAuthor'><b>Ann de Lee</b><div>Chief of all things</div></div>", NULL, "Ann de Lee", NULL,
               NULL, NULL);
    check_meta("<span class=author-link>Written by <a>Bo</a>, May 3, 2021</span>", NULL, "Bo", "2021-05-03", NULL, NULL);
    check_meta("<p class=author>Ann lives and works here</p><p class='event-date'>May 3, 2021</p>", NULL, NULL, NULL, NULL,
               NULL);
    check_meta("<p class=author>Name *</p><p class=byline>anonymous coward</p>", NULL, NULL, NULL, NULL, NULL);
}

static void test_meta_near(void **state)
{
    (void)state;
    /* short texts by the headline; a change counts only where nothing else is said */
    check_meta("<h1>What happened here</h1><div><i>Ann Lee</i></div><p>by: Bo Lee | Updated May 3, 2021</p>"
               "<p>Published&ensp;<b>1 Apr. 2020</b></p>", "What happened here", "Bo Lee", "2020-04-01", NULL, NULL);
    check_meta("<p>May 3, 2021</p><h1>What happened here</h1><p>By submitting this you agree. By 2 May 2019 all was done, and "
               "more than that was done too in those days</p>", "What happened here", NULL, "2021-05-03", NULL, NULL);
    check_meta("<h1>What happened</h1><p>Last updated on 3/5/2021</p>", "What happened", NULL, "2021-03-05", NULL, NULL);
    check_meta("<meta property=article:modified_time content=2021-05-03>", NULL, NULL, "2021-05-03", NULL, NULL);
    check_meta("<meta property=article:modified_time content=2021-05-03><meta name=w-published-date content=2020-05-03>"
               "<meta name=event-date content=2019-05-03>", NULL, NULL, "2020-05-03", NULL, NULL);
    check_meta("<meta property='og:article&#x3A;published_time' content=2021-05-03>", NULL, NULL, "2021-05-03", NULL, NULL);
    check_meta("<meta name=twitter:label1 content='Written by'><meta name=twitter:data1 content='Ann Lee'>"
               "<meta name=twitter:label2 content='Read in'><meta name=twitter:data2 content='3 minutes'>", NULL, "Ann Lee", NULL,
               NULL, NULL);
    /* a person is better than the site */
    check_meta("<meta property=og:site_name content=Site><meta name=author content=Site><p class=byline>Ann Lee</p>", NULL,
               "Ann Lee", NULL, NULL, NULL);
    check_meta("<meta property=og:site_name content=Site><meta name=author content=Site>", NULL, "Site", NULL, NULL, NULL);
    check_meta("<h1>What happened</h1><script>day = 'May 3, 2021'</script>", "What happened", NULL, NULL, NULL, NULL);
    /* the headline that the head speaks of, not the site's */
    check_meta("<meta property=og:title content='Ten ways to cook an egg'><title>Ten ways - The Egg Blog</title>"
               "<h1>The Egg Blog</h1><h1>Ten ways of cooking an egg</h1>", "Ten ways of cooking an egg", NULL, NULL, NULL, NULL);
    check_meta("<title>Ten ways to cook an egg</title><h1>Offers of the week</h1>", "Ten ways to cook an egg", NULL, NULL, NULL,
               NULL);
}

static void test_meta_graph(void **state)
{
    (void)state;
    /* what is of answers, comments and listed pages is not the page's; of @graph all is */
    check_meta("<script type='application/ld+json'>{\"@type\":\"QAPage\",\"mainEntity\":{\"@type\":\"Question\","
               "\"acceptedAnswer\":{\"author\":{\"name\":\"Cy\"},\"datePublished\":\"2019-01-01\"},\"author\":{\"name\":\"Ann\"},"
               "\"datePublished\":\"2018-01-01\"}}</script>", NULL, "Ann", "2018-01-01", NULL, NULL);
    check_meta("<script type='application/ld+json'>{\"@graph\":[{\"@type\":\"ItemList\",\"itemListElement\":"
               "[{\"author\":\"Cy\"}]},{\"@type\":\"Article\",\"headline\":\"T\",\"dateModified\":\"2020-01-01\","
               "\"author\":\"\\\"Ann Lee\\\"\"}]}</script>",
               "T", "Ann Lee", "2020-01-01", NULL, NULL);
    check_meta("<script type='application/ld+json'>{\"author\":{\"name\":\"\"},\"x\":1,"
               "\"author\":[{\"url\":\"\",\"name\":\"Bo\"}]}</script>", NULL, "Bo", NULL, NULL, NULL);
}

/* What the page says of its use, in this order: site, licence, robots, tdm-reservation, tdm-policy; NULL: nothing. */
static void check_rights(const char *html, const char *const want[5])
{
    struct html_worker *w = worker_new(HTML_MAIN, HTML_TEXT);
    struct html_page p;

    assert_int_equal(html_extract(w, span_of(html), span_of("https://e.org/a/b?c"), &p, NULL), 0);
    const struct span got[] = {p.site, p.license, p.robots, p.tdm_reservation, p.tdm_policy};
    for (int i = 0; i < 5; i++)
        if (want[i] ? !span_is(got[i], want[i]) : got[i].p != NULL)
            fail_msg("field %d of %s: [%.*s], not [%s]", i, html, (int)got[i].n, got[i].p, want[i] ? want[i] : "none");
    html_worker_free(w);
}

static void test_rights(void **state)
{
    static const char by[] = "https://creativecommons.org/licenses/by/4.0/";

    (void)state;
    check_rights("<p>nothing", (const char *[5]){0});
    check_rights("<meta name=application-name content=App><meta property=og:site_name content=' A  site '>",
                 (const char *[5]){"A site"});
    check_rights("<a href='https://creativecommons.org/licenses/by/4.0/'>CC</a>", (const char *[5]){NULL, by});
    check_rights("<a href='https://creativecommons.org/about'>CC</a>", (const char *[5]){0});
    check_rights("<a href='https://creativecommons.org/licenses/by/4.0/'>CC</a><link rel='license' href=/terms>",
                 (const char *[5]){NULL, "https://e.org/terms"});
    check_rights("<meta name=DC.rights content='All  rights reserved'>", (const char *[5]){NULL, "All rights reserved"});
    check_rights("<script type='application/ld+json'>{\"image\":{\"license\":\"no\"},\"license\":"
                 "{\"@type\":\"CreativeWork\",\"url\":\"https://creativecommons.org/licenses/by/4.0/\"}}</script>",
                 (const char *[5]){NULL, by});
    check_rights("<script type='application/ld+json'>{\"license\":{\"@id\":\"https://e.org/l\"}}</script>",
                 (const char *[5]){NULL, "https://e.org/l"});
    check_rights("<meta name=ROBOTS content='NoIndex,  noai , max-snippet: 20,,noai'><meta name=robots content=nofollow>"
                 "<meta name=googlebot content=noarchive>",
                 (const char *[5]){NULL, NULL, "noindex, noai, max-snippet:20, nofollow"});
    check_rights("<meta name=tdm-reservation content=' 1'>", (const char *[5]){0});
    check_rights("<meta name=tdm-reservation content=1><meta name=tdm-policy content=/tdm.json>",
                 (const char *[5]){NULL, NULL, NULL, "1", "https://e.org/tdm.json"});
}

static void test_robots(void **state)
{
    static const struct { const char *header, *list; } cases[] = {
        {"noindex, NOAI", "noindex, noai"}, {"googlebot: noindex", ""}, {"max-snippet: 20", "max-snippet:20"},
        {"unavailable_after: 25 Jun 2030 15:00:00 PST", "unavailable_after:25jun203015:00:00pst"},
        {"noai, max-snippet:-1", "noai, max-snippet:-1"}, {"", ""}, {" , ,", ""}};
    char many[4000];
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&b);
        assert_int_equal(robots_add_header(&b, span_of(cases[i].header)), 0);
        if (!span_is(buf_span(&b), cases[i].list))
            fail_msg("%s: %.*s", cases[i].header, (int)b.n, b.p);
    }
    assert_true(robots_has(span_of("noindex, noai"), "noai") && !robots_has(span_of("noaix"), "noai"));
    for (int i = 0; i < 500; i++)
        snprintf(many + i * 5, 6, "a%03d,", i);
    assert_int_equal(robots_add(&b, span_of(many)), 0);
    assert_true(b.n > ROBOTS_MAX - 10 && b.n <= ROBOTS_MAX);
    buf_free(&b);
}

static void test_dates_of_languages(void **state)
{
    static const struct { const char *lang, *from, *to; } cases[] = {
        {"pl", "3 stycznia 2024", "2024-01-03"},
        {"ru", "3 \xD1\x8F\xD0\xBD\xD0\xB2\xD0\xB0\xD1\x80\xD1\x8F 2024 \xD0\xB3.", "2024-01-03"},
        {"ru-RU", "3 \xD0\xAF\xD0\x9D\xD0\x92. 2024", "2024-01-03"}, {"cs", "5. \xC5\x99\xC3\xADjna 2023", "2023-10-05"},
        {"vi", "5 th\xC3\xA1ng 12, 2023", "2023-12-05"}, {"ja", "2024\xE5\xB9\xB4" "5\xE6\x9C\x88" "1\xE6\x97\xA5", "2024-05-01"},
        {"ko", "2024\xEB\x85\x84 5\xEC\x9B\x94 1\xEC\x9D\xBC", "2024-05-01"}, {"hu", "2024. m\xC3\xA1jus 5.", "2024-05-05"},
        {"tr", "5 A\xC4\x9Fustos 2023", "2023-08-05"}, {"el", "5 \xCE\x9C\xCE\xB1\xCE\x90\xCE\xBF\xCF\x85 2023", "2023-05-05"},
        {"sv", "den 5 maj 2023", "2023-05-05"}, {"nb-NO", "5. desember 2023", "2023-12-05"},
        {"sr-Latn-RS", "5. avgust 2023", "2023-08-05"}, {"ca", "5 d'abril de 2023", "2023-04-05"},
        {"fr", "1er fevrier 2020", "2020-02-01"}, {"", "Sept. 5, 2023", "2023-09-05"}, {"", "5 Octo 2023", "2023-10-05"},
        {"fr", "3 jui 2020", NULL}, {"", "Marvel 5, 2023", NULL}, {"", "June 5, 20231", NULL},
        {"en", "4/5/2023", "2023-04-05"}, {"en-GB", "4/5/2023", "2023-05-04"}, {"de", "4/5/2023", "2023-05-04"},
        {"en", "25/5/2023", "2023-05-25"}, {"en-GB", "5/25/2023", "2023-05-25"}, {"en", "4.5.2023", "2023-05-04"},
        {"en", "Posted on May 5, 2023, 3:07 pm by x", "2023-05-05"}, {"en", "May 5, 2023 3:07 pm", "2023-05-05T15:07:00"},
        {"en", "Friday, December 19, 2025", "2025-12-19"}, {"en", "room 2023", NULL},
        {"no such language", "5 May 2023", "2023-05-05"}};
    struct html_dates known = {0};
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&b);
        int rc = html_date_within(&known, span_of(cases[i].lang), span_of(cases[i].from), &b);
        if (rc != (cases[i].to != NULL) || (rc && !span_is(buf_span(&b), cases[i].to)))
            fail_msg("%s: %d, %.*s", cases[i].from, rc, (int)b.n, b.p);
    }
    for (int i = 0; i < 300; i++) { /* more languages than are kept */
        char lang[8];
        snprintf(lang, sizeof lang, "x%d", i);
        assert_int_equal(html_date(&known, span_of(lang), span_of("5 May 2023"), &b), 1);
    }
    html_dates_free(&known);
    buf_free(&b);
}

static void test_dates(void **state)
{
    static const struct { const char *from, *to; } cases[] = {
        {"2024-05-01", "2024-05-01"}, {"2024/5/1 rest", "2024-05-01"}, {"20240501", "2024-05-01"},
        {"2024-05-01T10:20Z", "2024-05-01T10:20:00Z"}, {"2024-05-01 10:20:30.123 +01:00", "2024-05-01T10:20:30+01:00"},
        {"Wed, 01 May 2024 10:20:30", "2024-05-01T10:20:30"}, {"May 1, 2024", "2024-05-01"},
        {"1st of", NULL}, {"1. M\xC3\xA4rz 2024", "2024-03-01"}, {"1 de mayo de 2024", "2024-05-01"},
        {"31.12.2023", "2023-12-31"}, {"12 juin 2020", "2020-06-12"}, {"12 juil. 2020", "2020-07-12"},
        {"29 Feb 2023", NULL}, {"29 Feb 2024", "2024-02-29"}, {"2024-13-01", NULL},
        {"1850-01-01", NULL}, {"", NULL}, {"yesterday", NULL}, {"2024", NULL}};
    struct html_dates known = {0};
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = html_date(&known, (struct span){"", 0}, span_of(cases[i].from), &b);
        assert_int_equal(rc, cases[i].to != NULL);
        if (rc && !span_is(buf_span(&b), cases[i].to))
            fail_msg("%s: %.*s", cases[i].from, (int)b.n, b.p);
    }
    html_dates_free(&known);
    buf_free(&b);
}

/* ---- main content ---- */

/* Paragraphs of some length, as one finds them in articles. */
#define P1 "The miller rose before the sun did, because the wind was said to turn by noon."
#define P2 "By the time that the village had woken, eleven sacks of flour stood at the door, warm."
#define P3 "Nobody asked how he did it, and he never told; the stones knew, and they kept quiet."
#define LEAD "A tale of flour and bread, of wind and of stones, told as it was told to us by the old people " \
             "of the village where it happened, a very long while ago."
#define BODY "<p>" P1 "</p><p>" P2 "</p><p>" P3 "</p>"
#define TEXT P1 "\n\n" P2 "\n\n" P3 "\n"

static void expect_main(const char *html, const char *want)
{
    expect_from(HTML_RULES, HTML_TEXT, html, want);
}

static void test_boilerplate(void **state)
{
    static const char *const junk[] = {
        "<nav>Home of the miller and of many other things to read about</nav>",
        "<footer>Copyright by the millers' guild, all rights are kept by them</footer>",
        "<aside>Something else that you may want to read on another day</aside>",
        "<div class=sidebar>Something else that you may want to read on another day</div>",
        "<div id=comments>What a good story, said the reader, and read it once again</div>",
        "<div class='post-share-buttons'>Tell it to all your friends, wherever they may be</div>",
        "<div class='relatedPosts'>Another story about quite another miller and his mill</div>",
        "<div role=navigation>Home of the miller and of many other things to read</div>",
        "<div class='newsletter-box'>Get every story by mail, before all others get it</div>",
        "<ul><li><a href=1>Another story</a><li><a href=2>And a third one</a></ul>",
        "<form><p>Write here what you are looking for, and press the button</p></form>",
        "<p><time>May 1, 2024</time> 10:20</p>", "<p>Advertisement</p>", "<h3>Read also</h3>",
        "<p>Photo: A. Miller</p>", "<p>Lesen Sie auch: die andere Geschichte</p>",
        "<p class=wp-caption-text>The mill, seen from where the road leaves the village</p>"};
    char html[2000];

    (void)state;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        snprintf(html, sizeof html, "<body>%s<div><p>%s</p><p>%s</p>%s<p>%s</p></div>%s", junk[i], P1, P2,
                 junk[i], P3, junk[i]);
        expect_main(html, TEXT);
    }
}

static void test_names_that_mislead(void **state)
{
    static const char *const open[] = {
        "<div class='has-sidebar layout'>", "<div class='field field--label-hidden'>",
        "<article class='post category-comments tag-share'>", "<div class='js-share isPopup'>",
        "<div class='small margin-bottom'>", "<div id=main><div class='elementor-widget-text'>",
        "<div class=comments>", "<div style='display:none'>"};
    char html[2000];

    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        snprintf(html, sizeof html, "<body>%s%s", open[i], BODY);
        expect_main(html, TEXT);
    }
}

static void test_root(void **state)
{
    (void)state;
    /* The article among others on the page. */
    expect_main("<body><div class=list><article><p>A teaser for quite another story, long enough to be one."
                "</p></article></div><article><div class=article-body>" BODY "</div></article>"
                "<section><p>Some more words about the makers of this page, and their mills.</p></section>",
                TEXT);
    /* Lists, tables and code between paragraphs stay. */
    expect_main("<div><p>" P1 "</p><ul><li>flour<li>bran</ul><table><tr><td>sacks<td>11</table>"
                "<pre><span class='token comment'>// go</span> turn()</pre><pre>print</pre><p>" P2
                "</p><p>" P3 "</p></div>",
                P1 "\n\n- flour\n- bran\n\nsacks | 11\n\n// go turn()\n\nprint\n\n" P2 "\n\n" P3 "\n");
    /* Prose with many links is prose; links alone are not. */
    expect_main("<div><p>The <a href=1>miller of the village</a> ground <a href=2>wheat and rye and oats</a> for "
                "all who came to him, and took a tenth.</p>" BODY
                "<p><a href=1>Another story about the mill</a></p></div>",
                "The miller of the village ground wheat and rye and oats for all who came to him, "
                "and took a tenth.\n\n" TEXT);
    /* A page of short lines has content too. */
    expect_main("<nav><a href=1>Home</a></nav><main><ul><li>rye<li>oats<li>wheat</ul></main>"
                "<footer>the end</footer>", "- rye\n- oats\n- wheat\n");
}

static void test_headline(void **state)
{
    (void)state;
    expect_main("<title>The miller's secret - Site</title><body><article><p>Kicker</p>"
                "<h1>The miller&#39;s secret</h1>" BODY "</article>", TEXT);
    /* A lead in front of the body; a caption and a date line there are none. */
    expect_main("<title>The miller's secret</title><body><header><h1>The miller's secret</h1><p>" LEAD "</p>"
                "<p class=byline>By Ann</p></header><div class=body>" BODY BODY "</div>",
                LEAD "\n\n" P1 "\n\n" P2 "\n\n" P3 "\n\n" TEXT);
    /* Headings inside stay; one that nothing follows does not. */
    expect_main("<div><p>" P1 "</p><h2>Later</h2><p>" P2 "</p><p>" P3 "</p><h2>More</h2>"
                "<ul><li><a href=1>Another story</a></ul></div>",
                P1 "\n\nLater\n\n" P2 "\n\n" P3 "\n");
}

/* What is more than the content, and still none of it. */
static void test_more_than_content(void **state)
{
    static const char *const open[] = {
        "<div id=onetrust-consent-sdk>", "<div class='qc-cmp2-ui cookie-consent'>", "<div class=cc-window>",
        "<ol class=commentlist>", "<div class=c-comments>", "<div class='similar-jobs'>",
        "<div><h3>More from the mill</h3>", "<div><div><h2>\303\204hnliche Artikel</h2></div>",
        "<section><h4>Lo m\303\241s le\303\255do</h4>", "<div><h2>You might also like</h2>"};
    char html[4000];

    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        snprintf(html, sizeof html, "<body><div class=a><p>%s</p><p>%s</p><p>%s %s</p></div>%s%s%s", P1, P2, P3, P1,
                 open[i], BODY BODY BODY, "</ol></section></div>");
        expect_main(html, P1 "\n\n" P2 "\n\n" P3 " " P1 "\n");
    }
}

/* What other pages would use for what is around the content. */
static void test_parts_of_content(void **state)
{
    (void)state;
    expect_main("<article>" BODY "<div class=alert><p>Keep your fingers off the wheel while it turns, says he.</p>"
                "</div></article>", TEXT "\nKeep your fingers off the wheel while it turns, says he.\n");
    expect_main("<body>" BODY "<div class=alert><p>This site will be closed all day on the first of May.</p></div>",
                TEXT);
    expect_main("<div><p>" P1 "</p><h2 class=anchorWithStickyNavbar>Later</h2><p>" P2 "</p><p>" P3 "</p></div>",
                P1 "\n\nLater\n\n" P2 "\n\n" P3 "\n");
    expect_main("<main><h3><button>Who?</button></h3><div class='accordion-body' style='display:none'><p>" P1 "</p>"
                "</div><h3><button>Why?</button></h3><div class=tab-pane aria-hidden=true><p>" P2 "</p></div>"
                "<div class=menu style='display:none'><p>" P3 "</p></div></main>",
                "Who?\n\n" P1 "\n\nWhy?\n\n" P2 "\n");
    expect_main("<div itemprop=comment><div itemprop=text><p>" P1 "</p><p>" P2 "</p></div></div>"
                "<div itemprop=comment><p>" P3 "</p></div>", TEXT);
    /* Tables that only arrange the page. */
    expect_main("<table><tr><td colspan=2>Welcome to the mill<tr><td><a href=1>News</a><br><a href=2>Links</a>"
                "<td>" BODY "<tr><td colspan=2>Best viewed at 800 x 600</table>", TEXT);
    /* Chapters of a manual. */
    expect_main("<title>Grinding and sifting</title><div class=body><h1>Grinding and sifting</h1><p>" P1 "</p>"
                "<section id=requests-for-comments><h2>Comments</h2><p>" P2 "</p></section><h2>Grinding</h2><p>" P3
                "</p><p class=func_signature>grind(stone)</p>" BODY "</div>",
                P1 "\n\n" P2 "\n\nGrinding\n\n" P3 "\n\ngrind(stone)\n\n" TEXT);
    expect_main("<table><tr><th>name<th>what<tr><td>rye<td>" BODY "</table>",
                "name | what\nrye\n\n" TEXT);
    /* An <h1> names the page, not a section of it. */
    expect_main("<body><div><h1>Newsletter</h1>" BODY "</div><div>" BODY "</div>", TEXT "\n" TEXT);
}

/* ---- bounds ---- */

static char *repeat(const char *head, const char *unit, size_t times, const char *tail, size_t *n)
{
    size_t h = strlen(head), u = strlen(unit), t = strlen(tail);
    char *p = malloc(h + u * times + t + 1);

    assert_non_null(p);
    memcpy(p, head, h);
    for (size_t i = 0; i < times; i++)
        memcpy(p + h + i * u, unit, u);
    memcpy(p + h + u * times, tail, t + 1);
    *n = h + u * times + t;
    return p;
}

static void test_hostile(void **state)
{
    static const struct { const char *head, *unit; size_t times; const char *tail, *want; } cases[] = {
        {"", "<div>", 100000, "deep", "deep\n"},
        {"", "<table><tr><td>", 30000, "deep", "deep\n"},
        {"<p ", "a=1 class=x ", 300000, ">text", "text\n"},
        {"", "<p><b><i><div><span><font>", 20000, "text", "text\n"},
        {"<li><ul>", "<div>", 400, "<li><li><li>x", "- x\n"},
        {"<table><tr><td rowspan=9000000000000000 colspan=9000000000000000>", "", 0, "a<td>b", "a | b\n"},
        {"<script>", "<!--", 300000, "", ""},
        {"", "<!--", 300000, "", ""},
        {"<pre>", "\n", 300000, "x", "x\n"},
        {"", "</p></b></div>", 1000, "x", "x\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        char *html = repeat(cases[i].head, cases[i].unit, cases[i].times, cases[i].tail, &n);
        struct html_worker *w = worker_new(HTML_EVERYTHING, HTML_TEXT);
        struct html_page page;
        assert_int_equal(html_extract(w, (struct span){html, n}, span_of(""), &page, NULL), 0);
        assert_true(page.text.n < 4000);
        if (!span_is(page.text, cases[i].want))
            fail_msg("case %zu: [%.*s]", i, (int)page.text.n, page.text.p);
        html_worker_free(w);
        free(html);
    }
}

static void test_limits(void **state)
{
    struct html_worker *w;
    struct html_page page;
    struct html_conf c;
    struct err e;

    (void)state;
    html_conf_init(&c);
    c.extractor = HTML_EVERYTHING;
    c.max_bytes = 12;
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    assert_int_equal(html_extract(w, span_of("<p>one<p>two<p>three"), span_of(""), &page, NULL), 0);
    assert_true(page.truncated && span_is(page.text, "one\n\ntwo\n"));
    assert_int_equal(html_extract(w, span_of("<p>one"), span_of(""), &page, NULL), 0);
    assert_true(!page.truncated && span_is(page.text, "one\n"));
    html_worker_free(w);

    html_conf_init(&c);
    c.extractor = HTML_EVERYTHING;
    c.max_nodes = 5;
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    assert_int_equal(html_extract(w, span_of("<p>one<p>two<p>three"), span_of(""), &page, NULL), 0);
    assert_true(page.truncated && span_is(page.text, "one\n\ntwo\n"));
    html_worker_free(w);

    size_t n;
    char *html = repeat("", "<i>", 200000, "", &n);
    html_conf_init(&c);
    c.max_seconds = 1e-9;
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    assert_int_equal(html_extract(w, (struct span){html, n}, span_of(""), &page, &e), ERR_LIMIT);
    assert_string_equal(e.msg, "the page took too long to parse");
    html_worker_free(w);
    free(html);
}

/* What a page gives does not depend on the pages before it. */
static void test_page_alone(void **state)
{
    static const char *const pages[] = {"<title>T</title><h1>T</h1>" BODY, "", "<p>x<a href=1>y",
                                        "<table><tr><td>a<td>b", "<meta name=author content=Z><pre>\n"};
    struct html_worker *same = worker_new(HTML_MAIN, HTML_TEXT);

    (void)state;
    for (int i = 0; i < 25; i++) {
        struct html_worker *fresh = worker_new(HTML_MAIN, HTML_TEXT);
        struct html_page a, b;
        struct span html = span_of(pages[i * 7 % 5]);
        assert_int_equal(html_extract(same, html, span_of(""), &a, NULL), 0);
        assert_int_equal(html_extract(fresh, html, span_of(""), &b, NULL), 0);
        assert_true(span_eq(a.text, b.text) && span_eq(a.title, b.title) && span_eq(a.author, b.author));
        html_worker_free(fresh);
    }
    html_worker_free(same);
    html_worker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_pre),
        cmocka_unit_test(test_math),
        cmocka_unit_test(test_entities),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_html5),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_markdown_code),
        cmocka_unit_test(test_markdown_lists),
        cmocka_unit_test(test_markdown_escapes),
        cmocka_unit_test(test_markdown_links),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_meta_json),
        cmocka_unit_test(test_meta_of_classes),
        cmocka_unit_test(test_meta_near),
        cmocka_unit_test(test_meta_graph),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_robots),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_dates_of_languages),
        cmocka_unit_test(test_boilerplate),
        cmocka_unit_test(test_names_that_mislead),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_headline),
        cmocka_unit_test(test_more_than_content),
        cmocka_unit_test(test_parts_of_content),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_page_alone),
    };
    return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
