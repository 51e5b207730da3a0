/* tests/train_twins/train_twins.h -- tensors on both devices of a comparison, and the cases of training by subject
 * (tests/twins.h has their list). */
#ifndef TESTS_TRAIN_TWINS_H
#define TESTS_TRAIN_TWINS_H

#include <math.h>

#include "tests/twins_memory.h"

/* n elements, `off` elements into a block: what is not aligned to 16 bytes.  64 bytes of 0xff behind them. */
struct tensor {
    int block;
    enum dtype dt;
    int64_t n, off;
};

/* Of n values; NULL: a result, NaN until it is written. */
struct tensor tensor_of(struct made *m, enum dtype dt, int64_t n, int64_t off, const float *value);
/* Normal numbers times scale plus shift. */
struct tensor normal(struct made *m, enum dtype dt, int64_t n, int64_t off, uint64_t seed, float scale, float shift);
struct tensor result(struct made *m, enum dtype dt, int64_t n, int64_t off);
/* Where it lies: on the CPU (w 0) or the other device (1). */
void *on(const struct made *m, int w, const struct tensor *t);
/* |got - want| <= tol (|want| + s), NaN never; tol 0: the same bits.  bf16 may be a unit in the last place off: two sides of a
 * rounding; then the norm of the errors is held to less than such roundings would give, were all elements so. */
void near(struct made *m, const char *what, const struct tensor *t, double tol, double s);
/* Of each device the bits of a are those of b. */
void same(struct made *m, const char *what, const struct tensor *a, const struct tensor *b);
/* Ids below `limit`, every seventh -1 if `some` is set; its block. */
int ids(struct made *m, int64_t n, uint64_t seed, int64_t limit, bool some);
/* What a device reads of dropout when an op runs (struct dropout); its block. */
int dropout_now(struct made *m);
const char *name_of(char *buf, const char *what, enum dtype dt, int64_t a, int64_t b); /* buf: of 80 */

#define BOTH for (int w = 0; w < 2; w++)
#define OPS(m, w) (device_of((m)->t, w)->ops)
#define DEV(m, w) device_of((m)->t, w)
extern const enum dtype both_types[2];

void twins_elements(struct twins *t);
void twins_activations(struct twins *t);
void twins_dropout(struct twins *t);
void twins_sums(struct twins *t);
void twins_updates(struct twins *t);
void twins_updates_rounded(struct twins *t);
void twins_updates_eight_bits(struct twins *t);
void twins_factored(struct twins *t);
void twins_embedding(struct twins *t);
void twins_rope(struct twins *t);
void twins_norms(struct twins *t);
void twins_xent(struct twins *t);
void twins_matmul(struct twins *t);
void twins_matmul_grouped(struct twins *t);
void twins_fp8_norms(struct twins *t);
void twins_fp8_conversions(struct twins *t);
void twins_fp8_activations(struct twins *t);
void twins_fp8_products(struct twins *t);
void twins_fp8_blocks(struct twins *t);
void twins_fp8_blocks_products(struct twins *t);
void twins_attention(struct twins *t);
/* bf16, causal and nothing else, which cuDNN takes: shapes, of which one has 128 keys and the others no multiple of that. */
enum { TWINS_WHOLE = 4 };
void twins_attention_whole(struct twins *t);
/* Documents and wide heads, which cuDNN can be told to take. */
enum { TWINS_MORE = 7 };
void twins_attention_more(struct twins *t);
/* Masks that a device draws, and attention with them. */
enum { TWINS_DROPPED = 5 };
void twins_attention_dropout(struct twins *t);
void twins_route(struct twins *t);

#endif
