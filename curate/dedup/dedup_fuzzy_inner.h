/* curate/dedup/dedup_fuzzy_inner.h -- inside the stage of near-duplicates only: its state, and what its two files share. */
#ifndef CURATE_DEDUP_FUZZY_INNER_H
#define CURATE_DEDUP_FUZZY_INNER_H

#include "curate/dedup/dedup_blocks.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_pairs.h"
#include "curate/dedup/dedup_sign.h"
#include "curate/stream/doc_name.h"

struct fuzzy {
    struct dedup_fuzzy_conf conf;
    const struct minhash_preset *preset;
    int n_bands, n_rows; /* as settled */
    char kind[96];       /* of indexes */
    struct minhash minhash;
    struct dedup_bands shape; /* for records; holds none */
    struct dedup_gpu *gpu;    /* NULL: the CPU signs */
    struct dedup_sign_conf signs;
    struct idle_signer { struct dedup_signer *signer; struct idle_signer *next; } *idle; /* that no thread has */
    pthread_mutex_t lock;     /* idle */
    struct dedup_signer *signer; /* of notes that come without a record */
    struct laps laps;         /* enum dedup_lap */
    bool sets;                /* of an index: beside it */
    struct dedup_seen ranks;  /* of --by */
    struct dedup_store store;
    struct dedup_against *against;
    uint64_t own; /* documents of the run; those of --against come after them */
    struct dedup_fate *fate; /* of all */
    struct dedup_tally tally;
    struct dedup_pairs *pairs;
    struct dedup_taker divert_pairs, divert_report; /* instead of the files */
    uint64_t clusters, largest, largest_of; /* survivors of others; documents of the largest; its survivor */
    char *largest_id;
    struct file_group files; /* written, and not yet under their names */
};

/* The stage, to make notes that others than its own commit take. */
extern const struct stage_ops dedup_fuzzy_outside_ops;

/* What the bound leaves for finding clusters among that many documents; less than it takes if they are too many. */
int64_t dedup_fuzzy_memory_left(const struct fuzzy *f, uint64_t docs);
/* As dedup_fuzzy_outside, of the struct fuzzy. */
note_taker dedup_fuzzy_take_outside;
/* All documents so far have their records; the signers go. */
int dedup_fuzzy_end_signs(struct fuzzy *f, struct err *e);
/* Functions of the stage. */
int dedup_fuzzy_resolve(void *stage, int jobs, struct err *e);

static inline bool fuzzy_stays(const struct fuzzy *f, uint64_t n)
{
    return f->fate[n].survivor == n;
}

/* A document's name as others are told of it. */
static inline struct span fuzzy_shown(const struct fuzzy *f, struct span name)
{
    return f->conf.places ? name : doc_name_id(name);
}
#endif
