/* curate/extract/extract.h -- the source of documents that reads archives, HTML files, LaTeX and
 * exports of wikis.
 *
 * Reading goes in order: records are taken from the archives and judged by their
 * headers.  Pages are decoded and extracted in parallel.  See docs/extract.md for what
 * becomes a document and what its fields are.
 */
#ifndef CURATE_EXTRACT_H
#define CURATE_EXTRACT_H

#include "base/opt.h"
#include "curate/archive/warc.h"
#include "curate/crawl/record_fetch.h"
#include "curate/html/html.h"
#include "curate/latex/latex.h"
#include "curate/stream/source.h"

struct extract_conf {
    struct html_conf html;
    struct latex_conf latex; /* format and max_bytes are html's and max_page */
    const char *namespaces;  /* of wikis: the numbers of those whose pages are wanted, "0,14" */
    struct record_fetch_conf fetch; /* of lists of records */
    int64_t max_page; /* bytes of a page, decoded; longer ones are bad records */
    bool verify;      /* records whose stated SHA-1 is not that of their bytes are bad */
};

/* Main content as text; 16 MiB. */
void extract_conf_init(struct extract_conf *c);
#define EXTRACT_OPTS(c)                                                                                       \
    OPT_HEAD("Text"),                                                                                         \
    OPT_ENUM(0, "extractor", &(c).html.extractor, "main|rules|everything|justext",                            \
             "the main content by a trained model or by rules, all that a reader could see, or what jusText's rules keep"), \
    OPT_ENUM(0, "format", &(c).html.format, "text|markdown", "how headings, lists, tables and code are written"), \
    OPT_FLAG(0, "images", &(c).html.images, "in Markdown images too, as ![alt](URL)"),                        \
    OPT_ENUM(0, "latex-math", &(c).latex.math, "expanded|source|none",                                        \
             "LaTeX's formulas: with the document's macros expanded, as written, or left out"),               \
    OPT_STR(0, "namespaces", &(c).namespaces, "LIST", "of a wiki's export the pages of these namespaces, as 0,14"), \
    OPT_HEAD("jusText's rules (--extractor justext)"),                                                        \
    OPT_INT(0, "length-low", &(c).html.justext.length_low, 0, INT32_MAX, "shorter paragraphs follow their neighbours"), \
    OPT_INT(0, "length-high", &(c).html.justext.length_high, 0, INT32_MAX, "longer ones can be good by themselves"), \
    OPT_NUM(0, "stopwords-low", &(c).html.justext.stopwords_low, 0, 1, "paragraphs with a smaller share of stop words are bad"), \
    OPT_NUM(0, "stopwords-high", &(c).html.justext.stopwords_high, 0, 1, "with a smaller share, near good at best"), \
    OPT_NUM(0, "max-link-density", &(c).html.justext.max_link_density, 0, 1, "with more of their text in links, bad"), \
    OPT_INT(0, "max-heading-distance", &(c).html.justext.max_heading_distance, 0, INT32_MAX,                  \
            "characters from a heading to the good paragraph that saves it"),                                 \
    OPT_FLAG(0, "headings", &(c).html.justext.headings, "good paragraphs save the headings before them"),     \
    OPT_STR(0, "justext-lang", &(c).html.justext.lang, "CODE",                                                \
            "stop words of this language, as de; auto: the page's, else English"),                            \
    OPT_IN(0, "stop-words", &(c).html.justext.stop_words, "FILE", "these stop words, one a line, instead"),  \
    OPT_HEAD("Bounds a page"),                                                                                \
    OPT_SIZE(0, "max-page-bytes", &(c).max_page, 1024, INT64_C(1) << 30, "longer pages, decoded, are bad records"), \
    OPT_INT(0, "max-nodes", &(c).html.max_nodes, 1, UINT32_MAX / 64, "elements and texts; what lies behind is cut off"), \
    OPT_NUM(0, "max-seconds", &(c).html.max_seconds, 0, 3600, "pages that take longer are bad; 0: no bound"), \
    OPT_INT(0, "max-expansions", &(c).latex.max_expansions, 1, 1000000000,                                    \
            "macros that a LaTeX document may expand; one that needs more is bad"),                           \
    RECORD_FETCH_OPTS((c).fetch),                                                                             \
    OPT_HEAD("Archives"),                                                                                     \
    OPT_FLAG(0, "verify-digests", &(c).verify, "records whose SHA-1 is not the one they state are bad")

/* Why it drops pages. */
extern const struct stage_rule extract_rules[];
/* Opens a source over files and folders (curate/extract/walk.h); "-" is standard input, as is no
 * operand at all.  ERR_IO: an operand is missing.  Release with extract_close. */
int extract_open(struct source *s, const struct extract_conf *c, char *const *paths, int n, struct err *e);
void extract_close(struct source *s);
/* Goes on with other files; the threads' state stays. */
int extract_restart(struct source *s, char *const *paths, int n, struct err *e);

/* A JSON line for each record of the archive at path: where it is, what it is, and what
 * its codings and charset were found to be.  Each is appended to out, then put is
 * called.  Bad records have "error"; their number comes back. */
int extract_list(const char *path, const struct extract_conf *c, struct buf *out,
                 int (*put)(void *arg, struct buf *out, struct err *e), void *arg, struct err *e);
#endif
