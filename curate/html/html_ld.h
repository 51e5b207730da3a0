/* curate/html/html_ld.h -- the texts that a page states as data: schema.org's in JSON-LD, and the description in <meta>.
 *
 * JSON-LD is scanned, not parsed: raw line ends, missing commas and other slips of templates do no harm.  A script in which
 * a string or an object has no end, or that is deeper than LD_DEPTH, is left out and counted.  Linear in the page.
 */
#ifndef CURATE_HTML_LD_H
#define CURATE_HTML_LD_H

#include "curate/html/html_tree.h"

/* What a text is.  Those before LD_TEASER are the document's own. */
enum ld_role {
    LD_BODY,        /* an article, a posting, a question, a recipe's steps */
    LD_REPLY,       /* answers and comments */
    LD_DESCRIPTION, /* of a product, a book, an event, a job */
    LD_TEASER,      /* of a page, an article: what is said of it elsewhere */
    LD_REVIEW,
    LD_ROLES
};

/* Bounds of a page; what lies beyond is left out. */
enum { LD_TEXTS = 256, LD_BYTES = 1 << 20, LD_DEPTH = 32 };

struct ld_text {
    enum ld_role role;
    uint32_t from, n; /* in html_ld.bytes */
};

/* Zero to start; memory is kept from page to page. */
struct html_ld {
    struct ld_text text[LD_TEXTS];
    int n_texts;
    uint32_t faults;  /* scripts left out, and whether a bound was met */
    struct buf bytes; /* decoded; HTML where the page has HTML in them */
};

/* The texts of a page, in its order.  ERR_NOMEM. */
int html_ld_read(struct html_ld *l, const struct html_tree *t);
void html_ld_free(struct html_ld *l);

static inline struct span html_ld_text(const struct html_ld *l, int i)
{
    return (struct span){l->bytes.p + l->text[i].from, l->text[i].n};
}
#endif
