/* curate/dedup/dedup_template_list.h -- lines and how many documents have each, put in order: what most have first, then by
 * their bytes.  They are sorted in memory as many at a time as there is room for, and merged from disk.
 */
#ifndef CURATE_DEDUP_TEMPLATE_LIST_H
#define CURATE_DEDUP_TEMPLATE_LIST_H

#include "base/mem.h"
#include "base/spill.h"

/* Takes the next line. */
typedef int template_taker(void *to, uint64_t docs, struct span line, struct err *e);

/* Lines in order, as parcels (curate/stream/rank_exchange.h) whose number is that of the documents: these bytes of a flushed
 * spill. */
struct template_run {
    const struct spill *in;
    uint64_t from, to;
};
/* Gives the lines of n runs in order. */
int template_merge(const struct template_run *run, size_t n, int64_t memory, template_taker *take, void *to, struct err *e);

struct template_list {
    size_t room; /* bytes */
    struct buf text;
    struct template_line *line;
    size_t n, cap;
    struct spill runs;
    uint64_t *end; /* of each */
    size_t n_runs, runs_cap;
};
/* Close it in any case. */
int template_list_open(struct template_list *l, int64_t memory, const char *dir, struct err *e);
int template_list_add(struct template_list *l, uint64_t docs, struct span line, struct err *e);
/* After the last. */
int template_list_give(struct template_list *l, template_taker *take, void *to, struct err *e);
void template_list_close(struct template_list *l);
#endif
