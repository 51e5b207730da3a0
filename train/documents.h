/* train/documents.h -- documents packed in one sequence: where each begins, and what has no loss.
 *
 * A document ends with its end-of-document token; what a sequence begins with is the rest of one.  Source: Megatron
 * Core's gpt_dataset.py, its function for masks and position ids.
 */
#ifndef TRAIN_DOCUMENTS_H
#define TRAIN_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be done about documents. */
struct documents {
    bool positions; /* positions start again after each */
    bool attention; /* it sees no other */
    bool mask_loss; /* no loss where the input is an end of document: the next token is another's first */
    int64_t eod;    /* its id; -1: none */
};

/* starts (n, seq): where in its sequence the document of each of tokens (n, seq) begins. */
void documents_starts(const int32_t *tokens, int64_t n, int64_t seq, int64_t eod, int32_t *starts);

/* targets[i] becomes -1 where tokens[i] is eod; n of each. */
void documents_mask(const int32_t *tokens, int64_t n, int64_t eod, int32_t *targets);

#ifdef __cplusplus
}
#endif
#endif
