/* train/model_graph.h -- forward and backward of a micro-batch as one launch: recorded once (CUDA's graphs), then queued again
 * for other micro-batches, whose ids and dropout model_take puts where they are looked for.  The bits are those of single
 * launches. */
#ifndef TRAIN_MODEL_GRAPH_H
#define TRAIN_MODEL_GRAPH_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kind of micro-batch has its own launches: the first of a step makes the weights' copies in FP8, and one whose gradients
 * come first overwrites what is there. */
enum { MODEL_GRAPH_KINDS = 4 };
struct model_graph {
    struct model *model;
    double *loss; /* the device's: sum of the losses of the micro-batch that was run last */
    struct {
        struct device_graph *graph;
        bool run; /* launch by launch, so that what ops make when they are first called is there */
    } kind[MODEL_GRAPH_KINDS];
    bool off;     /* recording has failed */
};

/* Why micro-batches of m cannot be recorded; NULL: they can. */
const char *model_graph_refuses(const struct model *m);

/* m, a whole model of which model_graph_refuses says nothing, and loss are the caller's and stay. */
void model_graph_open(struct model_graph *g, struct model *m, double *loss);
void model_graph_close(struct model_graph *g); /* zeroed is fine */

/* Takes the batch (slot 0), then forward and backward; again: not the first since weights may have changed.  The second
 * micro-batch of a kind is recorded; if that fails, it is logged, and all are run launch by launch. */
int model_graph_run(struct model_graph *g, const struct model_batch *batch, bool again, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
