/* The model of main content: pages that rules get wrong, kinds of pages, and that its result hangs on nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/html/content_forest_simd.h"
#include "curate/html/html.h"
#include "curate/html/main_content_parts.h"

/* What is in the text, and what is not; an empty string ends a list. */
struct expected {
    const char *with[8], *without[8];
    const char *kind; /* NULL: any */
};

static void check(const char *html, const struct expected *want)
{
    struct html_worker *w;
    struct html_conf c;
    struct html_page page;

    html_conf_init(&c);
    assert_int_equal(html_worker_new(&w, &c, NULL), 0);
    assert_int_equal(html_extract(w, span_of(html), span_of(""), &page, NULL), 0);
    for (int i = 0; want->with[i]; i++)
        if (!memmem(page.text.p, page.text.n, want->with[i], strlen(want->with[i])))
            fail_msg("'%s' is missing in [%.*s]", want->with[i], (int)page.text.n, page.text.p);
    for (int i = 0; want->without[i]; i++)
        if (memmem(page.text.p, page.text.n, want->without[i], strlen(want->without[i])))
            fail_msg("'%s' is in [%.*s]", want->without[i], (int)page.text.n, page.text.p);
    if (want->kind)
        assert_string_equal(page.kind, want->kind);
    assert_true(page.kind_score > 0 && page.kind_score <= 1);
    html_worker_free(w);
}

#define HEAD(title) "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>" title "</title></head><body>"
#define NAV "<header class=site-header><nav><ul><li><a href=/>Home</a></li><li><a href=/about>About us</a></li>" \
            "<li><a href=/shop>Shop</a></li><li><a href=/contact>Contact</a></li></ul></nav></header>"
#define FOOT "<footer class=site-footer><ul><li><a href=/privacy>Privacy policy</a></li><li><a href=/terms>Terms of " \
             "service</a></li></ul><p>Copyright 2024 The Company. All rights reserved.</p></footer></body></html>"
#define P1 "<p>The miller rose before the sun did, because the wind was said to turn by noon, and a mill that stands still " \
           "earns nothing. He had learned that from his father, who had it from his.</p>"
#define P2 "<p>By the time that the village had woken, eleven sacks of flour stood at the door, still warm from the stones. " \
           "The baker's boy came for them with a cart that had one good wheel and one that was not so good.</p>"
#define P3 "<p>Nobody asked how he did it, and he never told; the stones knew, and they kept quiet. In the evenings one could " \
           "hear him sing, which he did badly, but with all of his heart.</p>"
#define P4 "<p>When the steam mill was built by the river, people said that it would be the end of him. It was not. Bread " \
           "from the steam mill was cheaper, and it tasted of coal, and after a winter most came back up the hill.</p>"
#define P5 "<p>He died in the year of the great storm, at ninety-one, with the sails turning. His granddaughter stopped them " \
           "for a day, which had not happened since the war, and then she let the wind in again.</p>"

/* ---- forums ---- */

#define POST(n, name, text) \
    "<div id=post_" #n " class='topic-body crawler-post'><div class=crawler-post-meta><span class=creator itemprop=author>" \
    "<a itemprop=url href=/u/" name "><span itemprop=name>" name "</span></a></span><link itemprop=mainEntityOfPage " \
    "href=/t/17><span class=crawler-post-infos><time datetime=2024-01-0" #n " class=post-time>January " #n ", 2024, 9:1" #n "am" \
    "</time><meta itemprop=dateModified content=2024-01-0" #n "><span itemprop=position>" #n "</span></span></div>" \
    "<div class=post itemprop=text><p>" text "</p></div></div>"

static void test_noscript(void **state)
{
    static const char page[] =
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Mill stones wear out too fast - Millers' Community"
        "</title><meta name=generator content=\"Discourse 3.2\"><link rel=canonical href=https://forum.example/t/mill-stones/17>"
        "</head><body class=crawler><div id=main><div id=loading class=spinner></div></div>"
        "<noscript data-path=\"/t/mill-stones/17\"><header class=d-header><div id=site-logo>Millers' Community</div></header>"
        "<div id=main-outlet class=wrap role=main><div id=topic-title><h1><a href=/t/mill-stones/17>Mill stones wear out too "
        "fast</a></h1></div>"
        "<div itemscope itemtype=http://schema.org/DiscussionForumPosting>"
        POST(1, "anna", "My stones last for half a season only, although the grain is clean. What do you use to dress them, and "
             "how often do you do it?")
        POST(2, "ben", "Have a look at the gap first. If the stones touch when they run empty, no dressing in the world is going "
             "to help you.")
        POST(3, "carl", "I agree with Ben. Mine have run for eleven years now, and I dress them twice a year with an ordinary "
             "pick.")
        POST(4, "anna", "The gap is a hair wide at the eye and a sheet of paper at the rim, as it is in the book. I can send "
             "pictures.")
        POST(5, "dora", "Please do. And tell us what stone it is: French burr does not wear like that, sandstone may.")
        POST(6, "ben", "Sandstone, then, or the wind is too strong for the furrows that you have. How many turns a minute?")
        "</div></div>"
        "<footer class=container><nav><a href=/categories>Categories</a> <a href=/tos>Terms of Service</a></nav></footer>"
        "</noscript><script>start()</script></body></html>";

    (void)state;
    check(page, &(struct expected){.with = {"My stones last", "Have a look at the gap", "twice a year"},
                                   .without = {"Terms of Service"}});
}

#define REPLY(n, name, text) \
    "<li class='reply topic-reply'><div class=bbp-reply-header><span class=bbp-reply-post-date>March " #n ", 2023 at 9:1" #n \
    " am</span><a href=#" #n " class=bbp-reply-permalink>#" #n "</a></div><div class=bbp-reply-author><a href=/u/" name ">" name \
    "</a><div class=bbp-author-role>Participant</div></div><div class=bbp-reply-content><p>" text "</p></div></li>"

static void test_posts(void **state)
{
    static const char page[] =
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Topic: Which wheat for sourdough? | Bread Forum</title>"
        "<link rel=canonical href=https://bread.example/forums/topic/which-wheat/></head>"
        "<body class='topic bbpress forum single-topic'>" NAV
        "<div id=bbpress-forums><div class=bbp-breadcrumb><p><a href=/>Home</a> &rsaquo; <a href=/forums>Forums</a></p></div>"
        "<h1 class=entry-title>Which wheat for sourdough?</h1><ul class='topic bbp-replies'><li class=bbp-body><ul>"
        REPLY(1, "dora", "I have tried four kinds of wheat now and each of them makes a dough that runs away as soon as I take "
              "it out of the basket. Is it the wheat, or is it me?")
        REPLY(2, "emil", "It is the water. Start with sixty percent, and add more when you know your flour. Most people who "
              "write recipes have flour that takes much more.")
        REPLY(3, "fay", "Also let it stand overnight in the cold. A cold dough keeps its shape for long enough to get into the "
              "oven, and the crust is much better for it.")
        "</ul></li></ul><form class=bbp-reply-form><label>Your reply</label><textarea></textarea><button>Submit</button></form>"
        "</div><aside class=sidebar><h3>Recent Topics</h3><ul><li><a href=/t/1>Rye or spelt</a></li><li><a href=/t/2>My oven "
        "is too cold</a></li></ul></aside>" FOOT;

    (void)state;
    check(page, &(struct expected){.with = {"four kinds of wheat", "sixty percent", "stand overnight"},
                                   .without = {"Privacy policy", "My oven"}});
}

/* ---- names that mislead ---- */

static void test_names(void **state)
{
    static const char *const names[] = {"footer-gap", "related-links-container", "comment-content"};
    char page[8192];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(page, sizeof page, "%s%s<div class=notice><p>We are open on the feast of St. Martin too, from eight in the "
                 "morning on, as in every year.</p><p>Please ring the bell twice.</p></div><h1>The mill on the hill</h1>"
                 "<div class=%s>%s%s%s%s%s</div>%s", HEAD("The mill on the hill"), NAV, names[i], P1, P2, P3, P4, P5, FOOT);
        check(page, &(struct expected){.with = {"The miller rose", "eleven sacks", "Nobody asked", "steam mill", "ninety-one"},
                                       .without = {"Privacy policy"}});
    }
}

static void test_dialogs(void **state)
{
    static const char page[] = HEAD("The mill on the hill")
        "<div id=cookie-dialog class=content-nav-section role=dialog style=\"display:none\"><h2>Before you go</h2><p>We use "
        "cookies to make this site better, to measure how it is used, and to show you what may be of interest to you. You may "
        "accept all of them or choose below which of them you want to allow.</p><p>You can change what you have chosen at any "
        "time. More is said in our cookie policy.</p><button>Accept all</button><button>Reject</button></div>" NAV
        "<main><article class=\"prose [&>p]:mb-4 /* paragraphs */ lg:prose-xl\"><h1>The mill on the hill</h1>" P1 P2 P3 P4 P5
        "</article></main>" FOOT;

    (void)state;
    check(page, &(struct expected){.with = {"The miller rose", "eleven sacks", "Nobody asked", "steam mill", "ninety-one"},
                                   .without = {"We use cookies", "Accept all", "Privacy policy"}});
}

/* ---- pages of links ---- */

#define CARD(name, text) "<a class=card href=/docs/" name "><h3>" name "</h3><p>" text "</p></a>"

static void test_cards(void **state)
{
    static const char page[] = HEAD("Documentation | Mill controller") NAV
        "<nav class=docs-sidebar><ul><li><a href=/docs/a>Getting started</a></li><li><a href=/docs/b>Reference</a></li></ul>"
        "</nav><main class=docs-content><h1>Mill controller documentation</h1><p>The controller turns the cap into the wind "
        "and stops the sails when a storm comes up. These guides say how it is installed, configured and kept running.</p>"
        "<div class=card-grid>"
        CARD("Install", "Mount the box below the cap, connect the two sensors, and check that the brake is released.")
        CARD("Configure", "All options of the configuration file with their defaults, units and the limits that are safe.")
        CARD("Calibrate", "How to tell the controller where north is, and how to measure the speed of the sails.")
        CARD("Update", "New versions come over the air, on the first of each month, unless the sails are turning then.")
        CARD("Troubleshoot", "What the lamps mean, which logs are written, and whom to ask if nothing helps.")
        "</div></main>" FOOT;

    (void)state;
    check(page, &(struct expected){.with = {"turns the cap", "Mount the box", "All options", "north is"},
                                   .without = {"Privacy policy"}});
}

static void test_kinds(void **state)
{
    static const char product[] =
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Oak dough trough | The Mill Shop</title>"
        "<meta property=og:type content=product><link rel=canonical href=https://shop.example/products/oak-trough>"
        "<script type=application/ld+json>{\"@context\":\"https://schema.org\",\"@type\":\"Product\",\"name\":\"Oak dough "
        "trough\",\"offers\":{\"@type\":\"Offer\",\"price\":\"89.00\"}}</script></head><body class=template-product>" NAV
        "<main><div class=product__media><img src=a.jpg></div><div class=product__info><h1 class=product__title>Oak dough "
        "trough</h1><div class=price><span class=price-item>$89.00</span></div><form action=/cart/add class=product-form>"
        "<label>Quantity</label><input type=number name=quantity><button class=add-to-cart>Add to cart</button></form>"
        "<div class=product__description><p>Made of one piece of oak, oiled twice, wide enough for the dough of six loaves. The "
        "wood keeps the warmth, so that the dough rises evenly even in a cold kitchen.</p><ul><li>Length: 60 cm</li><li>Weight: "
        "2.4 kg</li><li>Made in the village</li></ul></div></div></main>" FOOT;
    static const char article[] = HEAD("The mill on the hill") NAV "<main><article><h1>The mill on the hill</h1>"
        "<p class=byline>By Anna Weber, <time>2 May 2024</time></p>" P1 P2 P3 P4 P5 "</article></main>" FOOT;

    (void)state;
    check(product, &(struct expected){.with = {"one piece of oak"}, .without = {"Privacy policy"}});
    check(article, &(struct expected){.with = {"The miller rose"}, .without = {"Privacy policy"}, .kind = "article"});
}

/* ---- the model itself ---- */

/* Its name is that of its tables. */
static void test_name(void **state)
{
    struct content_model *m = malloc(sizeof *m);
    char name[32];

    (void)state;
    content_model_init(m);
    snprintf(name, sizeof name, "main-%016llx", (unsigned long long)content_model_hash(m));
    assert_string_equal(name, content_model_name);
    free(m);
}

/* All instruction sets sum the leaves that a walk through each tree finds. */
/* ---- what is said twice, and pages that say nothing ---- */

/* Which of the page's blocks go that are all taken for content: 'x', '-' for those that stay.  */
static void find_repeats(const char *html, char *is, size_t room)
{
    static struct html_names names;
    static struct content_words words;
    static struct content_lexicon lexicon;
    struct html_tree t = {0};
    struct content_page p = {0};

    html_names_init(&names);
    content_words_init(&words);
    content_lexicon_init(&lexicon);
    assert_int_equal(html_tree_parse(&t, &names, span_of(html), 100000, 0, NULL), 0);
    uint8_t *skip = calloc(t.n_nodes, 1);
    content_skip_silent(&t, skip);
    assert_int_equal(content_page_read(&p, &t, &words, &lexicon, skip, span_of(""), span_of("")), 0);
    assert_true(p.n_blocks < room);
    for (uint32_t i = 0; i < p.n_blocks; i++)
        p.score[i] = 1;
    assert_int_equal(content_drop_repeats(&p, &t, &lexicon, skip, 1), 0);
    for (uint32_t i = 0; i < p.n_blocks; i++)
        is[i] = p.score[i] == 1 ? '-' : 'x';
    is[p.n_blocks] = '\0';
    content_page_free(&p);
    html_tree_free(&t);
    free(skip);
}

#define CODE "<pre>for (int i = 0, k = 1, n = 2, m = 3; i + k + n + m < one + two + three + four; i++) run(i, k, n, m, 1);</pre>"
#define LETTERS "a<b>b</b>c<b>d</b>e<b>f</b>g<b>h</b>i<b>j</b>"

static void test_repeats(void **state)
{
    static const struct {
        const char *html, *is;
    } page[] = {
        {P1 P2 P3, "---"},
        {P1 P2 P1, "--x"},
        {"<div><b>" P1 "</b></div>" P2 "<p><i>The</i> miller rose before the sun did, because the wind was <br>said to turn "
         "by noon, and a mill that stands still earns nothing. HE HAD learned that from his father, who had it from his.</p>",
         "--x"},
        {"<div>One text " P1 P2 P3 "</div>", "----"},
        {"<title>T</title><div hidden><span>The miller rose before the sun did, because the wind was said to turn by noon, and a "
         "mill that stands still earns nothing. He had learned that from his father, who had it from his. Nobody asked how he "
         "did it, and he never told; the stones knew, and they kept quiet. In the evenings one could hear him sing, which he "
         "did badly, but with all of his heart.</span></div>" P1 P2 P3, "x---"},
        {"<p>Buy one mill now</p><p>Buy one mill now</p>", "--"},
        {CODE CODE, "--"},
        {"<p>" LETTERS LETTERS LETTERS "</p>", "-"},
        {"", ""},
    };
    char is[16];

    (void)state;
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        find_repeats(page[i].html, is, sizeof is);
        assert_string_equal(is, page[i].is);
    }
}

/* A page without a likely block has no text; it is not left to the rules unless it has hardly any. */
static void test_nothing(void **state)
{
    struct html_names *names = malloc(sizeof *names);
    struct html_tree t = {0};
    struct content_page p = {0};
    struct content_words *words = malloc(sizeof *words);
    struct content_lexicon *lexicon = malloc(sizeof *lexicon);
    uint8_t *skip;

    (void)state;
    html_names_init(names);
    content_words_init(words);
    content_lexicon_init(lexicon);
    assert_int_equal(html_tree_parse(&t, names, span_of("<p>Something went wrong</p>" P1 "<p>x</p>"), 1000, 0, NULL), 0);
    skip = calloc(t.n_nodes, 1);
    assert_int_equal(content_page_read(&p, &t, words, lexicon, skip, span_of(""), span_of("")), 0);
    assert_int_equal(p.n_blocks, 3);
    p.score[0] = p.score[2] = -2000;
    p.score[1] = -420;
    assert_int_equal(content_keep_blocks(&p, &t, -420, skip), CONTENT_NONE);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(skip[p.block[i].first]);
    memset(skip, 0, t.n_nodes);
    p.score[1] = -410;
    assert_int_equal(content_keep_blocks(&p, &t, -410, skip), CONTENT_FOUND);
    assert_false(skip[p.block[1].first]);
    assert_true(skip[p.block[2].first]);
    memset(skip, 0, t.n_nodes);
    assert_int_equal(html_tree_parse(&t, names, span_of("<p>Something went wrong</p>"), 1000, 0, NULL), 0);
    assert_int_equal(content_page_read(&p, &t, words, lexicon, skip, span_of(""), span_of("")), 0);
    p.score[0] = -2000;
    assert_int_equal(content_keep_blocks(&p, &t, -2000, skip), CONTENT_FOUND);
    assert_int_equal(content_keep_blocks(&p, &t, -1999, skip), CONTENT_UNKNOWN);
    free(skip);
    assert_int_equal(html_tree_parse(&t, names, span_of(P1 P2 P3 P4), 1000, 0, NULL), 0);
    skip = calloc(t.n_nodes, 1);
    assert_int_equal(content_page_read(&p, &t, words, lexicon, skip, span_of(""), span_of("")), 0);
    for (uint32_t i = 0; i < p.n_blocks; i++)
        p.score[i] = -2000;
    assert_int_equal(content_keep_blocks(&p, &t, -1999, skip), CONTENT_UNKNOWN); /* much text: the rules decide */
    content_page_free(&p);
    html_tree_free(&t);
    free(skip);
    free(names);
    free(words);
    free(lexicon);
}

static void test_forest(void **state)
{
    void (*all[])(const struct content_forest *, const uint8_t *, size_t, int32_t *) = ISA_EACH(content_forest_run);
    struct content_model *m = malloc(sizeof *m);
    uint8_t *x = malloc((size_t)CONTENT_FEATURES * CONTENT_AT_ONCE);
    uint32_t seed = 1;

    (void)state;
    content_model_init(m);
    for (int i = 0; i < CONTENT_FEATURES * CONTENT_AT_ONCE; i++)
        x[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 26);
    for (size_t k = 0; k <= (size_t)isa_best() && k < sizeof all / sizeof *all; k++) {
        int32_t score[CONTENT_AT_ONCE];
        all[k](&m->second, x, CONTENT_AT_ONCE, score);
        for (int j = 0; j < CONTENT_AT_ONCE; j++) {
            const struct content_forest *f = &m->second;
            int32_t sum = f->bias;
            for (int i = 0; i < f->n_trees; i++) {
                unsigned leaf = 0;
                for (int d = 0; d < f->depth; d++)
                    leaf += (unsigned)(x[f->feature[i * f->depth + d] * CONTENT_AT_ONCE + j] > f->threshold[i * f->depth + d])
                            << d;
                sum += f->leaf[i * (1 << f->depth) + (int)leaf];
            }
            assert_int_equal(score[j], sum);
        }
    }
    free(x);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noscript), cmocka_unit_test(test_posts), cmocka_unit_test(test_names),
        cmocka_unit_test(test_dialogs),  cmocka_unit_test(test_cards), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_name),     cmocka_unit_test(test_forest),
        cmocka_unit_test(test_repeats),  cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
