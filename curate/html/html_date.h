/* curate/html/html_date.h -- dates as people and programs write them, in any language that ICU has months of. */
#ifndef CURATE_HTML_DATE_H
#define CURATE_HTML_DATE_H

#include "base/err.h"
#include "base/mem.h"

/* What is known of languages, one after the other as they are asked for.  Zero to start; one a thread. */
struct html_dates {
    struct date_words **lang;
    size_t n, cap, oldest;
};
void html_dates_free(struct html_dates *d);

/* Reads the date at the start of s: "2024-05-01T10:00:00+0200", "May 1st, 2024", "1. Mai 2024", "01.05.2024",
 * "2024年5月1日".  Names of months are ICU's of the page's language (lang, BCP 47; may be empty) and of English, German,
 * French, Spanish, Italian, Portuguese and Dutch, without their accents too, whole or cut after three letters or more;
 * of "5/1/2024" the first is the month in English without another country than the United States, and without a language.
 * 1: *out is its ISO 8601 form; 0: it is none, or not within 1990-2100.  ERR_NOMEM. */
int html_date(struct html_dates *d, struct span lang, struct span s, struct buf *out);

/* The same of the first date in s, whatever stands before it: for short texts. */
int html_date_within(struct html_dates *d, struct span lang, struct span s, struct buf *out);

/* ---- for html_date.c ---- */

/* What is known of a language; NULL: no memory. */
const struct date_words *html_date_words(struct html_dates *d, struct span lang);
/* The month, from 1, that s begins with, and its length in bytes; 0: none. */
int html_date_month(const struct date_words *w, struct span s, size_t *length);
#endif
