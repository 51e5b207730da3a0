/* train/trainer.h -- the training loop.
 *
 * A step: micro-batches of forward and backward whose gradients add up (in a rank, and over ranks),
 * the gradient norm, AdamW.  Whatever a step computes depends on the settings, the
 * weights, the moments and the count of samples consumed; a checkpoint has just these,
 * so a run that was stopped and resumed gives the bits of one that was not.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <signal.h>

#include "comm/comm.h"
#include "indexed_dataset/history.h"
#include "kernels/threads.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/data.h"
#include "train/layout.h"
#include "train/passes.h"
#include "train/saver.h"
#include "train/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a model scored in something at hand. */
struct train_score {
    char name[120]; /* such as "sky acc" */
    double value;
};
/* What a step has to tell. */
struct train_step {
    int64_t step; /* 1 is the first */
    double loss, grad_norm, lr;
    double mtp_loss[MODEL_MTP_MOST]; /* of the tokens behind the next, means as the loss (mtp.h); as many as the model predicts */
    double balance; /* the auxiliary loss without its coefficient, the mean of layers with experts and micro-batches: 1 when
                       they are evenly used; NaN without that loss */
    double max_logit; /* of attention (qk_clip.h); NaN where nobody asks */
    double seconds; /* of the step itself */
    double cpu_seconds; /* of the processors in this process */
    double phase[PHASES];
    int64_t batch;        /* samples */
    double valid_loss;    /* mean over the sets; NaN unless the step was followed by an evaluation */
    const double *valid;  /* of each set (data_valid_sets), when there is one */
    const struct train_score *scores; /* (n_scores) after an evaluation */
    int n_scores;
    double save_seconds;  /* that a checkpoint behind the step before held training up */
    int64_t first_sample; /* consumed before it */
    bool skipped;         /* a bad step: no update was made of it */
    int64_t back_to;      /* a bad step after which this one was gone back to; -1: none */
};
struct trainer;
/* Scores the model as it is after a step, in s; all ranks call it together. */
typedef int train_scores_fn(void *arg, struct trainer *t, struct train_step *s, struct err *e);
typedef void train_step_fn(void *arg, const struct train_step *s);

enum train_end { TRAIN_ALL_DONE, TRAIN_SIGNAL, TRAIN_EXIT /* --exit-interval or -duration-in-mins */ };

struct trainer {
    struct train_config *config;
    struct device *dev;
    struct device *host; /* with --optimizer-cpu-offload; else NULL */
    struct layout layout;
    struct train_part *parts;  /* of the model, that this rank has */
    int n_parts;
    struct optimizer optimizer;
    struct passes passes;
    double *losses; /* of the micro-batches of a step, all ranks' */
    struct data *data;
    struct model_pool pool;      /* of the parts */
    struct schedule schedule, decoupled; /* of the rates */
    struct saver *saver;         /* NULL without --save */
    struct trace *trace;         /* NULL without --trace */
    train_scores_fn *scores;     /* to be set by others: asked with each evaluation; NULL: nobody */
    void *scores_arg;
    struct crowd *crowd;         /* to be set by others, closed here; NULL: the threads stay where they are */
    struct guard guard;
    int64_t bad, bad_step;     /* bad steps since one beyond the last of them was good; which was the last */
    double save_seconds;
    double *valid;             /* losses of the sets */
    int64_t step, consumed;    /* done so far */
    int64_t updates;           /* that the optimizer's state is of */
    int64_t began;             /* the step that this run went on from */
    struct history history;    /* of the steps whose weights these are, */
    struct buf of, history_text; /* what it says of this run's data, and all of it as the last checkpoint has it */
    int64_t saved_step;        /* of the last checkpoint written or read; -1: none */
    struct arena arena;
    struct checkpoint_arg *args;
    int n_args;
};

/* Bytes that the rank that needs most of them takes, beside what the device's ops keep for themselves. */
struct train_memory {
    struct model_memory model;
    size_t optimizer, total;       /* total: all that the device has */
    struct matrix_size matrix;     /* the largest that are updated whole */
    size_t host, save;             /* in the host's memory, not in total: of the optimizer; through which is saved */
    size_t trained[2], frozen[2];  /* numbers: weights of that rank's part, divided or not, and of its experts; */
    size_t shard;                  /* those of its shards that are trained, */
    double tensors;                /* and of how many tensors these are */
};
int trainer_plan(const struct train_config *c, struct train_memory *m, struct err *e);
/* Those of the ranks of one stage. */
int trainer_plan_stage(const struct train_config *c, int stage, struct train_memory *m, struct err *e);

/* What a stage has of the model in its i-th part, and how it is used; l: the groups of its ranks, of which for a plan the
 * sizes are enough. */
void trainer_part(const struct train_config *c, const struct layout *l, int stage, int i, struct model_part *part,
                  struct model_run *run);

/* Opens data and memory for a checked configuration, and fills weights from a checkpoint
 * or from the seed: --save's last checkpoint if it has one, else --load's.  world: all ranks that
 * train the model; c, dev and world must outlive it.  ERR_ARG when a checkpoint is of another model. */
int trainer_open(struct trainer **t, struct train_config *c, struct device *dev, struct comm *world,
                 struct err *e);
void trainer_close(struct trainer *t);

/* Trains until all steps are done, *stop is set (by a signal handler), or --exit-interval
 * or --exit-duration-in-mins says so; saves a checkpoint then.  report, unless NULL, is called after each step.  A
 * checkpoint that cannot be written on the way is logged and training goes on; the last one is an
 * error.  A bad step (train/guard.h) ends with ERR_LIMIT, is skipped or rolled back, as the settings
 * say; each time the batch is named. */
int trainer_run(struct trainer *t, const volatile sig_atomic_t *stop, train_step_fn *report, void *arg,
                enum train_end *end, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
