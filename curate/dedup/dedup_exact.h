/* curate/dedup/dedup_exact.h -- the stage that drops copies: same text, byte for byte or but for what
 * normalisation takes away.
 *
 * Texts are told apart by their XXH3-128 (two different ones among 10^10 collide with
 * probability 10^-19).  When the first document of a text is to stay and nothing bounds the
 * memory, documents are answered as they come; else all are seen first, on disk
 * (curate/dedup/dedup_best.h).
 */
#ifndef CURATE_DEDUP_EXACT_H
#define CURATE_DEDUP_EXACT_H

#include "base/opt.h"
#include "curate/dedup/dedup_keep.h"
#include "curate/stream/stage.h"

/* NONE: the bytes.  SPACE: each run of white space is one space, none at the ends.  WORDS: letters, marks
 * and digits alone, in Unicode's NFKC_Casefold.  URL: addresses of one page (curate/dedup/dedup_normal.h). */
enum dedup_normalize { NORMALIZE_NONE, NORMALIZE_SPACE, NORMALIZE_WORDS, NORMALIZE_URL };

struct dedup_exact_conf {
    const char *key;         /* what is compared (curate/dedup/dedup_key.h); NULL: the text.  What has no such field is like
                                nothing else */
    int keep;                /* enum dedup_keep */
    const char *by;          /* KEEP_BEST: the number or date of which the greatest stays, such as "score" or
                                "signals.x" */
    bool places;             /* survivors are named with their places */
    const char *cluster_size; /* field of a document that stays for how many there were of it; NULL: none */
    int normalize;           /* enum dedup_normalize */
    int64_t memory;          /* bytes; 0: no bound */
    int64_t bloom_count;     /* a Bloom filter (curate/dedup/dedup_bloom.h) for so many documents compares; 0: none */
    double bloom_rate;       /* of mistakes, when it has so many */
    struct opt_list against; /* files of documents, or indexes, whose texts go */
    const char *index;       /* file for the index of the documents that stay; NULL: none */
    const char *dir;         /* for temporary files; NULL: $TMPDIR or /tmp */
};
/* The first stays, bytes as they are, memory without a bound. */
void dedup_exact_conf_init(struct dedup_exact_conf *c);
#define DEDUP_EXACT_OPTS(c)                                                                              \
    OPT_STR(0, "key", &(c).key, "FIELD", "compare this field, or what this JSON pointer leads to, not the text"), \
    OPT_ENUM(0, "keep", &(c).keep, "first|last|longest|best|none",                                       \
             "of documents with one text; none: not even one"),                                          \
    OPT_STR(0, "by", &(c).by, "FIELD", "with --keep best: the number, or date, of which the greatest stays"),      \
    DEDUP_PLACES_OPT((c).places),                                                                        \
    DEDUP_SIZE_OPT((c).cluster_size),                                                                    \
    OPT_ENUM(0, "normalize", &(c).normalize, "none|space|words|url",                                     \
             "compare bytes; but for white space; letters and digits in one case; addresses of a page"), \
    OPT_INT(0, "bloom-count", &(c).bloom_count, 0, INT64_C(1) << 40,                                     \
            "compare by a Bloom filter made for so many documents that stay; 0: exactly"),               \
    OPT_NUM(0, "bloom-rate", &(c).bloom_rate, 1e-12, 0.5,                                                \
            "with --bloom-count: the rate at which the last of these is mistaken for a copy"),           \
    OPT_IN_LIST(0, "against", &(c).against, "FILE", "drop what this file of documents, or index, has as well"), \
    OPT_OUT(0, "index", &(c).index, "FILE", "write an index of what stays, for --against"),              \
    OPT_SIZE(0, "memory", &(c).memory, 0, INT64_MAX, "memory for comparing, from 64M; the rest is on disk; 0: no bound"), \
    OPT_FOLDER(0, "tmp", &(c).dir, "DIR", "for temporary files, 72 bytes a document and its id")

/* Why it drops documents. */
extern const struct stage_rule dedup_exact_rules[];
/* Makes the stage; its state is freed by ops->close.  Strings in conf must outlive it.  ERR_ARG,
 * ERR_IO, ERR_NOMEM. */
int dedup_exact_stage_open(struct stage *st, const struct dedup_exact_conf *conf, struct err *e);

/* ---- for ranks that share the documents (curate/dedup/dedup_ranks.h), at the end only ---- */

/* 64 bits of what is compared, of a note.  ERR_IO: it is no note of this stage. */
int dedup_exact_note_key(struct span note, uint64_t *key, struct err *e);
/* A note of a document that only others are held against; before all that commit is given. */
int dedup_exact_outside(void *stage, struct span note, struct err *e);
/* Makes the note what an index has of it. */
int dedup_exact_to_index(struct span note, struct err *e);
/* Of indexes; the stage's. */
const char *dedup_exact_kind(const void *stage);
#endif
