/* train/stages.h -- which layers each stage of a pipeline has.
 *
 * A stage has one part of the model, or several (chunks) for the interleaved schedule: then chunk 0 of
 * all stages comes first in the model, then chunk 1 of all, and so on.
 */
#ifndef TRAIN_STAGES_H
#define TRAIN_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stages {
    int64_t layers, stages, chunks; /* of the model; of the pipeline; of a stage */
    int64_t first, last; /* layers of the first and of the last stage; 0: as many as the others */
    bool embedding;      /* the embedding counts as a layer of the first part, ... */
    bool head;           /* ... the output layer as one of the last */
};

/* ERR_ARG with the flag unless every part gets a layer, and those of whom nothing else is said equally many. */
int stages_check(const struct stages *s, struct err *e);

/* The layers of a chunk of a stage: *n from *first on.  s is checked. */
void stages_layers(const struct stages *s, int64_t stage, int64_t chunk, int64_t *first, int64_t *n);

#ifdef __cplusplus
}
#endif
#endif
