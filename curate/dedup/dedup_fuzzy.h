/* curate/dedup/dedup_fuzzy.h -- the stage that drops near-duplicates (MinHash).
 *
 * Shingles and signature in parallel; the records collected in order, on disk; then links,
 * buckets, verification and clusters, within a bound of memory; then each document is told
 * its fate.  Each thread puts aside the shingles that it makes and signs them, on a GPU many documents at a
 * time (curate/dedup/dedup_sign.h); what comes out is the same.
 */
#ifndef CURATE_DEDUP_FUZZY_H
#define CURATE_DEDUP_FUZZY_H

#include "base/opt.h"
#include "curate/dedup/dedup_against.h"
#include "curate/dedup/dedup_device.h"
#include "curate/dedup/dedup_keep.h"
#include "curate/dedup/dedup_store.h"
#include "curate/dedup/minhash_preset.h"
#include "curate/stream/stage.h"

struct dedup_fuzzy_conf {
    int preset;           /* 0: that of an index in `against`, else quern2; n: number n - 1 of minhash_preset_at */
    double threshold;     /* Jaccard similarity that makes a duplicate, in (0, 1] */
    bool verify;          /* false: whatever shares a band is a duplicate */
    int64_t bands, rows;  /* 0: the preset's; if it has none, by the threshold */
    int64_t seed;         /* of the hash functions; 0: the preset's */
    const char *clusters; /* file of "survivor<TAB>member<TAB>similarity"; NULL: none */
    const char *pairs;    /* file of "first<TAB>second<TAB>similarity": all pairs that have
                             the similarity (verify only); NULL: none */
    const char *dir;      /* for temporary files; NULL: $TMPDIR or /tmp */
    int64_t report_over;  /* clusters of more documents are warned of; 0: none */
    const char *report;   /* file of these clusters and the text they share; NULL: none */
    int keep;             /* enum dedup_keep; KEEP_NONE is refused */
    const char *by;       /* KEEP_BEST: the number or date of which the greatest stays */
    bool places;          /* documents are named with their places */
    const char *cluster_size; /* field of a document that stays for how many there were of it; NULL: none */
    int64_t memory;       /* bytes; 0: DEDUP_FUZZY_MEMORY, or more if the documents need it */
    struct opt_list against; /* files of documents, or indexes, whose near-duplicates go */
    const char *index;    /* file for the index of the documents that stay; NULL: none */
    bool index_sets;      /* with a set file beside it */
    bool texts;           /* documents have their texts from their files as they are there, so that an index can name these;
                             else it has a set file in any case */
    int device;           /* enum dedup_device */
    int64_t batch;        /* documents after which a thread gives a GPU what it has, at the latest */
    int64_t strip_template; /* lines that so many documents have are left out where documents are compared, by a stage before
                             this one (curate/dedup/dedup_templates.h); 0: all of a text is compared */
    const char *templates; /* file of these lines; NULL: none */
    bool no_similarity;   /* verify false: nobody asks how similar what goes is, so shingles are not put aside; no index */
    bool own_notes;       /* the notes stay in this process: they are small, and their shingles are on disk before commit */
};
#define DEDUP_FUZZY_MEMORY (INT64_C(1) << 30)
/* Preset auto, threshold .8, verified, clusters over 1000 reported, on the CPU. */
void dedup_fuzzy_conf_init(struct dedup_fuzzy_conf *c);
#define DEDUP_FUZZY_OPTS(c)                                                                             \
    OPT_NUM(0, "threshold", &(c).threshold, 0, 1, "Jaccard similarity of duplicates"),                  \
    OPT_ENUM(0, "preset", &(c).preset, "auto|" MINHASH_PRESETS,                                            \
             "how text becomes a signature; auto: as an index of --against has it, else quern2"),           \
    OPT_FLAG(0, "verify", &(c).verify, "compare the shingles of candidates"),                           \
    OPT_INT(0, "bands", &(c).bands, 0, MINHASH_MAX_BANDS, "bands; 0: the preset's"),                    \
    OPT_INT(0, "rows", &(c).rows, 0, MINHASH_MAX, "rows a band; 0: the preset's"),                      \
    OPT_INT(0, "seed", &(c).seed, 0, UINT32_MAX, "draws other hash functions; 0: the preset's"),        \
    OPT_OUT(0, "clusters", &(c).clusters, "FILE",                                                       \
            "write survivor, member, similarity of each dropped document"),                             \
    OPT_OUT(0, "pairs", &(c).pairs, "FILE",                                                             \
            "write all pairs that have the similarity, compared with all candidates"),                  \
    OPT_INT(0, "report-over", &(c).report_over, 0, INT64_MAX,                                           \
            "warn of clusters of more documents than this; 0: never"),                                  \
    OPT_OUT(0, "report", &(c).report, "FILE",                                                           \
            "write these clusters with the text that they share (JSON lines)"),                         \
    OPT_ENUM(0, "keep", &(c).keep, "first|last|longest|best", "which of the documents that are alike stays"), \
    OPT_INT(0, "strip-template", &(c).strip_template, 2, UINT32_MAX,                                    \
            "compare without the lines that so many documents have, or more; from 2 on"),               \
    OPT_OUT(0, "templates", &(c).templates, "FILE",                                                     \
            "with --strip-template: write these lines and how many documents have each (JSON lines)"),  \
    OPT_STR(0, "by", &(c).by, "FIELD", "with --keep best: the number, or date, of which the greatest stays"),     \
    DEDUP_PLACES_OPT((c).places),                                                                       \
    DEDUP_SIZE_OPT((c).cluster_size),                                                                   \
    OPT_IN_LIST(0, "against", &(c).against, "FILE",                                                        \
             "drop what is like a document of this file, or index; a pattern names several"),                                    \
    OPT_OUT(0, "index", &(c).index, "FILE", "write an index of what stays, for --against"),             \
    OPT_FLAG(0, "index-sets", &(c).index_sets,                                                          \
             "with the shingles beside it, in FILE.sets; else their texts are read again"),             \
    OPT_SIZE(0, "memory", &(c).memory, 0, INT64_MAX,                                                    \
             "memory for comparing, from 128M and 8 bytes a document; 0: 1G, or what it takes"),        \
    OPT_ENUM(0, "device", &(c).device, DEDUP_DEVICES, "what signs; auto: a GPU if one works"), \
    OPT_INT(0, "batch", &(c).batch, 1, INT32_MAX, "documents after which a thread gives a GPU what it has, at the latest"), \
    OPT_FOLDER(0, "tmp", &(c).dir, "DIR", "for temporary files, 1.5 times the text and 500 bytes a document")

/* Names the preset, if it is to be that of an index in `against`, which is looked at, or else the default.  ERR_UNSUPPORTED:
 * an index has another; ERR_IO, ERR_FORMAT. */
int dedup_fuzzy_choose_preset(struct dedup_fuzzy_conf *c, struct err *e);
/* Checks the settings, the preset being named; bands and rows come back.  ERR_ARG. */
int dedup_fuzzy_settle(const struct dedup_fuzzy_conf *c, int *bands, int *rows, struct err *e);
/* Why it drops documents. */
extern const struct stage_rule dedup_fuzzy_rules[];
/* Makes the stage; its state is freed by ops->close.  Strings in conf must outlive it.
 * ERR_ARG, ERR_NOMEM, ERR_IO; ERR_UNSUPPORTED: why there is no GPU. */
int dedup_fuzzy_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e);

/* ---- for ranks that share the documents (curate/dedup/dedup_ranks.h) ---- */

/* What others see of a note made on a CPU: documents that agree in key k of both are candidates.  No keys:
 * it meets nobody. */
struct dedup_fuzzy_note {
    uint64_t shingle_bytes;
    const uint64_t *key;
    size_t keys;
    struct span id;
};
/* ERR_IO: it is no note of this stage.  to points into it, or, if it goes on in a file (rest, else NULL), into a. */
int dedup_fuzzy_note(const void *stage, struct span note, const struct spill_part *rest, struct arena *a,
                     struct dedup_fuzzy_note *to, struct err *e);
/* A note of a document that only others are held against; after all that commit is given. */
int dedup_fuzzy_outside(void *stage, struct span note, const struct spill_part *rest, struct arena *a, struct err *e);
/* An index of that name, as the stage writes it with that much memory; and puts a note of commit into it. */
int dedup_fuzzy_index_create(const void *stage, struct index_out **x, const char *path, int64_t memory, struct err *e);
int dedup_fuzzy_index_put(const void *stage, struct index_out *x, struct span note, struct err *e);
/* What files of --against name, for a run of the stage's settings. */
int dedup_fuzzy_against(const void *stage, const struct opt_list *files, struct dedup_against **a, struct err *e);
/* Before resolve: pairs and report, if there are to be any, are not written but given to these, by the number of a
 * pair's second document and of a cluster's survivor, as they were given; and no index is written. */
void dedup_fuzzy_divert(void *stage, const struct dedup_taker *pairs, const struct dedup_taker *report);
/* After resolve: of document n, as judge counts, with its survivor. */
float dedup_fuzzy_similarity(const void *stage, uint64_t n);

/* What a run counts. */
struct dedup_fuzzy_counts {
    uint64_t shingle_bytes, candidates, compared, against, clusters;
    uint64_t largest, largest_of; /* documents of the largest cluster; its survivor, as they were given */
    const char *largest_id;       /* the stage's, or NULL */
};
void dedup_fuzzy_counts(const void *stage, struct dedup_fuzzy_counts *to);
/* Warns of a cluster of n documents: so many are more often a template than a text.  id: of its survivor. */
void dedup_fuzzy_warn_of_large(struct span id, uint64_t n);
/* The pairs of the statistics, with these counts. */
int dedup_fuzzy_put_stats(const void *stage, const struct dedup_fuzzy_counts *n, struct buf *json);
#endif
