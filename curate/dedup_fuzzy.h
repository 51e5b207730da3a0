/* curate/dedup_fuzzy.h -- the stage that drops near-duplicates (MinHash).
 *
 * Shingles and signature in parallel; the records collected in order; then buckets,
 * verification and clusters; then each document is told its fate.
 */
#ifndef CURATE_DEDUP_FUZZY_H
#define CURATE_DEDUP_FUZZY_H

#include "curate/minhash_preset.h"
#include "curate/stage.h"

struct dedup_fuzzy_conf {
    const struct minhash_preset *preset;
    double threshold;     /* Jaccard similarity that makes a duplicate, in (0, 1] */
    bool verify;          /* false: whatever shares a band is a duplicate */
    int bands, rows;      /* 0: the preset's; if it has none, by the threshold */
    const char *clusters; /* file of "survivor<TAB>member<TAB>similarity"; NULL: none */
    const char *pairs;    /* file of "first<TAB>second<TAB>similarity": all pairs that have
                             the similarity (verify only); NULL: none */
    const char *dir;      /* for temporary files; NULL: $TMPDIR or /tmp */
    uint64_t report_over; /* clusters of more documents are warned of; 0: none */
};

/* Makes the stage; its state is freed by ops->close.  Strings in conf must outlive it.
 * ERR_ARG, ERR_NOMEM, ERR_IO. */
int dedup_fuzzy_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e);
#endif
