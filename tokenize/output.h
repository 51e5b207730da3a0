/* tokenize/output.h -- where tokens go, how far it has come, and how they were made: the half of the
 * pipeline that knows files. */
#ifndef TOKENIZE_OUTPUT_H
#define TOKENIZE_OUTPUT_H

#include "indexed_dataset/idx_write.h"
#include "indexed_dataset/ledger.h"
#include "indexed_dataset/token_shards.h"
#include "tokenize/pipeline.h"

struct output {
    const struct pipeline_options *x;
    const struct pipeline_job *job;
    struct idx_writer *idx[LINE_KEYS_MAX]; /* NULL: stands already */
    struct token_shards *shards;
    int width;
    struct tokenizer_hash tokenizer;
    char run[33], times[17]; /* hashes of inputs and options; of the inputs' times */
    bool lasting;            /* the inputs can be read again: there are checkpoints */
    bool checkpointed;
    char state[IDX_PATH_MAX];
};

/* Says whether all is done (r->already), or opens the files: anew, or where an earlier run was
 * (r->resumed, r's counts and *place). */
int output_open(struct output *o, const struct pipeline_job *job, const struct pipeline_options *x,
                struct pipeline_result *r, struct lines_place *place, struct err *e);
/* n documents of key k, their tokens one after another. */
int output_add(struct output *o, int k, struct span tokens, const int32_t *lengths, size_t n, struct err *e);
/* Where the n documents of key k that were added last came from, if a ledger is kept of it. */
int output_add_origins(struct output *o, int k, struct span records, const struct ledger_item *item, size_t n, struct err *e);
/* Everything up to the place is to last. */
int output_checkpoint(struct output *o, const struct pipeline_result *r, const struct lines_place *place,
                      struct err *e);
/* Gives the files their names, and closes. */
int output_commit(struct output *o, const struct pipeline_result *r, struct err *e);
/* Closes; what no checkpoint has is removed. */
void output_abort(struct output *o);
#endif
