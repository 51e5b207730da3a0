/* curate/report/source_stats.h -- where the documents of a corpus came from: domains, days, crawls, files, and what was said of
 * their use.
 *
 * What a summary of training data is to tell (Regulation (EU) 2024/1689, article 53(1)(d), and the AI Office's template for it):
 * sizes by language and by domain, with the largest tenth of all domains, from when to when pages were crawled, and from which
 * crawls and files.  Counted in input order, in memory that is bounded: names as in name_tally.h.
 */
#ifndef CURATE_SOURCE_STATS_H
#define CURATE_SOURCE_STATS_H

#include "curate/report/name_tally.h"
#include "curate/stream/doc.h"

enum { SOURCE_NAME_BYTES = 256, SOURCE_DAY_BYTES = 10 };

enum source_kind { SOURCE_ARCHIVE /* a record of a WARC or ARC */, SOURCE_FILE, SOURCE_NOT_SAID, SOURCE_KINDS };
enum source_tdm { TDM_RESERVED, TDM_NOT_RESERVED, TDM_NOT_SAID, TDM_KINDS };

struct source_stats {
    struct name_tally domains; /* registered ones; a host without one (an IP address) as it stands; "": no URL */
    struct name_tally months;  /* "2024-05"; "": no day of a crawl */
    struct name_tally dumps, files, licenses, robots; /* "": nothing is said; robots: of each directive */
    struct name_count kind[SOURCE_KINDS], tdm[TDM_KINDS];
    char first[SOURCE_DAY_BYTES + 1], last[SOURCE_DAY_BYTES + 1]; /* days of crawls; "": none */
};
/* With zeroes before: at most so many domains are counted exactly. */
void source_stats_init(struct source_stats *s, size_t domains);
void source_stats_free(struct source_stats *s);

/* Appends what is counted of a document to its note; host: of its URL.  ERR_NOMEM. */
int source_note(struct doc *d, struct span host, struct buf *note);
/* Counts the part of a note that source_note made, and moves *note behind it.  ERR_NOMEM. */
int source_stats_add(struct source_stats *s, struct span *note, const struct name_count *size);

/* The domains, the one with most bytes first; malloc'd, NULL when memory is out.  *n: how many; *tenth: how many are a
 * tenth of them, rounded up; what has no domain is none of them. */
size_t *source_domains(const struct source_stats *s, size_t *n, size_t *tenth);
#endif
