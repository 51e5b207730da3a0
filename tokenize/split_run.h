/* tokenize/split_run.h -- the fast splitters (split_simd.c). */
#ifndef TOKENIZE_SPLIT_RUN_H
#define TOKENIZE_SPLIT_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

/* in: a piece begins at `at`; ends has room for max.  out: n ends of pieces, one after
 * another; a piece begins at `at`, the last of them (or where it was); pieces that begin
 * before `stop` are for the exact functions. */
struct split_run {
    size_t at, stop;
    uint32_t *ends;
    size_t n, max;
};

enum { SPLIT_RUN_ROOM = 128 }; /* free ends below which a run stops */

ISA_DECLARE(void, split_run_gpt2, (const uint8_t *text, size_t n, struct split_run *r));
ISA_DECLARE(void, split_run_cl100k, (const uint8_t *text, size_t n, struct split_run *r));
ISA_DECLARE(void, split_run_qwen2, (const uint8_t *text, size_t n, struct split_run *r));
ISA_DECLARE(void, split_run_o200k, (const uint8_t *text, size_t n, struct split_run *r));
ISA_DECLARE(void, split_run_tekken, (const uint8_t *text, size_t n, struct split_run *r));

#endif
