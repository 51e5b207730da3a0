/* indexed_dataset/sample_trace.h -- the documents that the steps of a training run saw.
 *
 * A checkpoint's history says which samples each step took, and of what data (checkpoint_history.h); Megatron's order says of
 * which documents a sample is cut (gpt_dataset.h), fine-tuning's likewise (sft_dataset.h); the ledgers say where those came from.
 * Datasets are opened under the names that the run was given; one whose ledger has another root than it had then is refused.
 */
#ifndef INDEXED_DATASET_SAMPLE_TRACE_H
#define INDEXED_DATASET_SAMPLE_TRACE_H

#include "indexed_dataset/gpt_dataset.h"
#include "indexed_dataset/history.h"
#include "indexed_dataset/page_list.h"

struct sample_trace;

struct sample_trace_conf {
    const char *checkpoint; /* a folder of them, of which the newest counts, or one itself */
    int64_t of;             /* the one of that step; < 0: as above */
    const char *log;        /* the run's --log-file, for the steps after the checkpoint; NULL: none */
    const char *cache;      /* folder of Megatron's indices; NULL: they are made anew */
    int jobs;
};
/* ERR_IO, ERR_FORMAT (also: log and checkpoint are of different runs), ERR_UNSUPPORTED. */
int sample_trace_open(struct sample_trace **t, const struct sample_trace_conf *c, struct err *e);
void sample_trace_close(struct sample_trace *t); /* NULL is fine */
const struct history *sample_trace_history(const struct sample_trace *t);

/* A document of a sample that a step took. */
struct traced_piece {
    int64_t step, row, sample; /* row: of the step's samples, from 0; sample: of all that the run consumed */
    bool skipped;              /* the step made no update of it */
    const struct sample_piece *piece;
    const struct ledger_document *origin; /* NULL: the dataset has no ledger */
};
/* What it returns below 0 ends the work. */
typedef int traced_fn(void *arg, const struct traced_piece *p, struct err *e);

/* All documents of the samples of a step, or of one row alone (row < 0: all).  ERR_ARG: there is no such step or row. */
int sample_trace_step(struct sample_trace *t, int64_t step, int64_t row, traced_fn *fn, void *arg, struct err *e);
/* Those of the list, of all steps, which are gone through from the first to the last.  ERR_ARG: a dataset has no ledger. */
int sample_trace_find(struct sample_trace *t, struct page_list *pages, traced_fn *fn, void *arg, struct err *e);

/* A line of JSON. */
int traced_piece_put(struct buf *b, const struct traced_piece *p);
#endif
