/* curate/dedup/dedup_keep.h -- of documents that are alike, which one stays: the rule as options, and as
 * a rank, of which the highest stays (of equal ones the first). */
#ifndef CURATE_DEDUP_KEEP_H
#define CURATE_DEDUP_KEEP_H

#include "base/opt.h"
#include "curate/stream/doc.h"

enum dedup_keep { KEEP_FIRST, KEEP_LAST, KEEP_LONGEST, KEEP_BEST, KEEP_NONE };

/* by: for KEEP_BEST a place (curate/dedup/dedup_key.h) of numbers, or of dates of ISO 8601 ("2024", "2024-05-01",
 * "2024-05-01T12:00:00+02:00"; the newest stays); else NULL.  ERR_ARG. */
int dedup_keep_check(int keep, const char *by, struct err *e);
/* A document's rank: the bytes of its text, or the order of its number or date (without
 * one the last).
 * By the other rules every rank is 0. */
int dedup_keep_rank(int keep, const char *by, struct doc *d, uint64_t *rank, struct err *e);

/* How many documents have a field that an option names, and how many have not; counted by any thread. */
struct dedup_seen {
    uint64_t with, without;
};
void dedup_seen_count(struct dedup_seen *s, bool has);
/* Warns if there were documents and none has it: the option or the field is misspelt. */
void dedup_seen_tell(const struct dedup_seen *s, const char *option, const char *field);

/* Whether documents are named with their places (curate/stream/doc_name.h). */
#define DEDUP_PLACES_OPT(flag) \
    OPT_FLAG(0, "places", &(flag), "say where survivors are, and the members of clusters and pairs: file and byte")
/* How many documents a document that stays stands for, itself among them: a stage replies with it, and it becomes a field. */
#define DEDUP_SIZE_OPT(field) \
    OPT_STR(0, "cluster-size", &(field), "FIELD", "write into this field of each document that stays how many there were of it")
/* ERR_ARG: no name, or that of a field that a document cannot lose: its id, URL or text. */
int dedup_size_check(const char *field, struct err *e);
int dedup_size_reply(uint64_t size, struct span *reply, struct arena *a, struct err *e);
int dedup_size_apply(struct doc *d, const char *field, struct span reply, struct err *e);
#endif
