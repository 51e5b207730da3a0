/* curate/html/html.h -- an HTML page in, its text and what it says about itself out.
 *
 * The page is parsed in one pass into a flat array of nodes (curate/html/html_tree.h), the
 * main content is found in it (curate/html/content_model.h, main_content.h) and written as plain text or
 * Markdown.  Time and memory are linear in the page, nothing recurses, and the result
 * depends on the page alone: not on other pages, threads or the clock.
 */
#ifndef CURATE_HTML_H
#define CURATE_HTML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "curate/html/justext.h"

enum html_extractor {
    HTML_MAIN,       /* what a trained model finds to be the article, the posts, the product ... */
    HTML_RULES,      /* the same by rules, made for articles */
    HTML_EVERYTHING, /* all that a reader could see */
    HTML_JUSTEXT     /* the paragraphs that jusText's rules find good */
};

enum html_format { HTML_TEXT, HTML_MARKDOWN };

struct html_conf {
    int extractor;      /* enum html_extractor */
    int format;         /* enum html_format */
    bool images;        /* Markdown: images too */
    int64_t max_bytes;  /* of UTF-8, below 2^32; what lies behind is not looked at */
    int64_t max_nodes;  /* elements and pieces of text, at most 2^26; the same */
    double max_seconds; /* wall clock, then ERR_LIMIT; 0: none */
    struct justext_conf justext;
};

/* Main content as plain text; 32 MiB, 2 million nodes, 10 s. */
void html_conf_init(struct html_conf *c);

/* All UTF-8; p is NULL for what the page does not say.  The bytes belong to the worker
 * and last until its next page. */
struct html_page {
    struct span text;      /* no line ends in white space; ends with a newline unless empty */
    struct span title;     /* one line, without the site's name where that is set apart */
    struct span author;
    struct span date;      /* of publication, or where only that is said of the last change: YYYY-MM-DD, with Thh:mm:ss and
                            * zone if known */
    struct span lang;      /* as the page declares it: BCP 47, such as "en" or "pt-BR" */
    struct span canonical; /* absolute URL */
    struct span site;      /* the site's name */
    struct span license;   /* an absolute URL, or what the page says of its licence */
    struct span robots;    /* directives to all robots (curate/text/robots.h): "noindex, noai" */
    struct span tdm_reservation, tdm_policy; /* of the TDM Reservation Protocol: "0" or "1"; an absolute URL */
    const char *kind;      /* HTML_MAIN: "article", "forum" ... (curate/html/content_model.h); else, and of a page
                            * of more than 500,000 nodes, which is left to the rules, NULL */
    double kind_score;     /* from 0 to 1: how sure that is */
    bool from_data;        /* HTML_MAIN: the text is that of JSON-LD, as hardly any of it is in the page's own */
    uint32_t data_faults;  /* HTML_MAIN: scripts of JSON-LD left out as damaged, and 1 if their texts met a bound */
    bool truncated;        /* max_bytes or max_nodes cut the page */
};

struct html_worker;

/* What an extractor (enum html_extractor) is called in documents and statistics: "main-" and the hash of the model,
 * "rules" ... */
const char *html_extractor_name(int extractor);

/* A worker belongs to one thread; it keeps its memory from page to page.  c is copied.
 * ERR_NOMEM; those of justext_new. */
int html_worker_new(struct html_worker **w, const struct html_conf *c, struct err *e);
void html_worker_free(struct html_worker *w);

/* Extracts one page.  utf8: valid UTF-8 without NUL and without a BOM (other bytes do no
 * harm, but come out as they went in); url: where the page came from, to make canonical and
 * Markdown's links absolute, may be empty.  ERR_NOMEM; ERR_LIMIT: max_seconds passed. */
int html_extract(struct html_worker *w, struct span utf8, struct span url,
                 struct html_page *out, struct err *e);
#endif
