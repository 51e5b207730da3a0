/* train/passes.h -- micro-batches through the parts of a model that this rank has: the gradients of a step, the
 * loss of a split. */
#ifndef TRAIN_PASSES_H
#define TRAIN_PASSES_H

#include "train/data.h"
#include "train/layout.h"
#include "train/model_graph.h"
#include "train/mtp.h"
#include "train/optimizer.h"
#include "train/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds by what they went for. */
enum train_phase {
    PHASE_DATA, PHASE_FORWARD, PHASE_BACKWARD, PHASE_WAIT /* for another stage */, PHASE_REDUCE, PHASE_OPTIMIZER,
    PHASES
};
extern const char *const train_phase_name[PHASES];

/* Micro-batch i of this rank's n of an evaluation, the first being 1, is done. */
typedef void passes_evaluated_fn(void *arg, int64_t i, int64_t n);

struct passes {
    const struct layout *layout; /* NULL: this rank has the whole model and all data */
    struct train_part *parts;
    int n;
    struct data *data;
    struct pipeline pipe;
    struct pipeline_op *held;   /* of each slot, whose forward pass has left there what its backward takes; micro -1: none */
    struct device *dev;
    int64_t room;              /* places for micro-batches */
    int64_t each;              /* losses of one: of the next token, and of those further on (mtp.h) */
    struct model_dropout *drop; /* (room), in pinned memory, as what follows */
    int32_t *ids;              /* (room + 1, 2, b * t) tokens and targets; the last for the host alone; */
    int32_t *here;             /* (room, 2, b * t) positions and documents, NULL: these are not told apart */
    int32_t *further;          /* (room, depths, MTP_ROWS, b * t) what mtp_rows() fills for one */
    struct mtp_rows rows[MODEL_MTP_MOST]; /* of the one that is read */
    double *weight;            /* (room, each) how much the losses of tokens further on count; the host's */
    double *loss, *host_loss;  /* (room + 1, each), (room, each) sums; the device's, the last for a graph; where they go to */
    int32_t *starts;           /* of the documents of a micro-batch; NULL as here */
    struct model_graph graph;  /* of the one part; model NULL: each operation is launched by itself */
    struct trace *trace; /* to be set by others; NULL: none */
    passes_evaluated_fn *evaluated; /* NULL: nobody */
    void *evaluated_arg;
};

/* Bytes of messages between stages, ids and losses, of parts like this one. */
size_t passes_bytes(int64_t stages, const struct model_config *c, const struct model_part *part, const struct model_run *run);

/* parts: of this rank, in the order of its chunks, models open; n: how many.  All are the caller's and stay; the ranks
 * of layout->pipe call it together. */
int passes_open(struct passes *p, const struct layout *layout, struct train_part *parts, int n, struct data *data,
                struct err *e);
void passes_close(struct passes *p); /* zeroed is fine */

/* Forward and backward of a micro-batch of a step become one launch (train/model_graph.h), where they can.  must: even where that
 * is slower, and where they cannot the log says why. */
void passes_use_graphs(struct passes *p, bool must);

/* Of a step. */
struct passes_step {
    uint64_t seed, step; /* for dropout */
    int64_t first;       /* sample of the training split with which the step begins */
    int64_t batch;       /* samples, of all ranks */
    bool per_token;      /* the gradient is that of the mean loss of all tokens that have one; else of the mean over
                            micro-batches of such means */
};

/* Forward and backward of the step's micro-batches of this rank: their gradients, added up, in each part's model.
 * *tokens: how many have a loss (1 if none has).  phase[PHASES] gets seconds added.  They are queued: the host waits for other
 * ranks and for experts alone, not for a device that has it all, but when all places for micro-batches are full (256, or fewer of
 * a million tokens). */
int passes_step(struct passes *p, const struct passes_step *s, double *losses, double *tokens, double *phase,
                struct err *e);
/* Then, when the device has been waited for: losses[batch / micro-batch size][p->each], the same as before, has the sum of
 * losses of each micro-batch of the step, on all ranks; behind it, of the tokens further on, what each depth adds to the mean of
 * the step. */
int passes_losses(struct passes *p, const struct passes_step *s, double *losses, struct err *e);

/* From now on fn is told how far an evaluation is. */
static inline void passes_watch_evaluation(struct passes *p, passes_evaluated_fn *fn, void *arg)
{
    p->evaluated = fn;
    p->evaluated_arg = arg;
}

/* Rows of tokens that are no samples of the data, and who looks at what a model makes of them. */
struct passes_rows {
    int64_t n;
    /* Rows first .. first + n - 1 (n, run.t); starts is NULL where documents are not told apart. */
    int (*fill)(void *arg, int64_t first, int64_t n, const struct data_rows *rows, struct err *e);
    /* m's head has losses and logits of rows first .. first + m->b - 1, of the tokens that are here; of ranks that have the same
     * losses one is told.  rows: those beyond the last have no losses. */
    int (*headed)(void *arg, const struct model *m, int64_t first, struct err *e);
    void *arg;
};
/* Takes the rows through the model, without dropout: the ranks of the layout share them. */
int passes_look(struct passes *p, const struct passes_rows *rows, struct err *e);

/* Mean loss over samples first .. first + n - 1 of a split, without dropout, of the tokens that have one, and how many these
 * are (none: a loss of 0; tokens may be NULL); the same on all ranks of the layout, which share the work, and for any number
 * of them. */
int passes_evaluate(struct passes *p, int split, int64_t first, int64_t n, double *loss, double *tokens, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
