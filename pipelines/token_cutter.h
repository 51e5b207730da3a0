/* pipelines/token_cutter.h -- texts cut into the tokens of a tokenizer, for curate/dedup/dedup_tokens.h. */
#ifndef PIPELINES_TOKEN_CUTTER_H
#define PIPELINES_TOKEN_CUTTER_H

#include "curate/dedup/dedup_tokens.h"

extern const struct dedup_cutter token_cutter;
#endif
