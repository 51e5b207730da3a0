/* indexed_dataset/token_shards.h -- one long stream of tokens, cut into files of so many tokens.
 *
 * TOKEN_SHARDS_LLMC: PREFIX_000000.bin, PREFIX_000001.bin ... as llm.c's data loader reads them: 256
 * i32 of header (magic, version, tokens in the file, zeros), then u16 (magic 20240520, version 1) or
 * u32 (magic 20240801, version 7).  TOKEN_SHARDS_NPY: PREFIX_000000.npy ..., arrays of u16 or u32
 * that numpy.load maps.  Documents run across files.  Each file takes its name when it is full, and
 * PREFIX.sum.json comes last.
 */
#ifndef INDEXED_DATASET_TOKEN_SHARDS_H
#define INDEXED_DATASET_TOKEN_SHARDS_H

#include "base/err.h"
#include "base/mem.h"
#include "base/node.h"

enum token_shards_form { TOKEN_SHARDS_LLMC, TOKEN_SHARDS_NPY };

struct token_shards;

/* width: 2 or 4 bytes a token; full: tokens a file, 1 .. 2^31 - 1. */
int token_shards_create(struct token_shards **s, const char *prefix, enum token_shards_form form, int width,
                        uint64_t full, struct err *e);
int token_shards_add(struct token_shards *s, const void *tokens, uint64_t n, struct err *e);
/* Finishes, removes files of a former longer run, writes PREFIX.sum.json (extra as for idx_commit)
 * and frees, whatever happens. */
int token_shards_commit(struct token_shards *s, struct span extra, struct err *e);
/* Removes the file that is being written and frees; NULL is fine. */
void token_shards_abort(struct token_shards *s);

/* As idx_checkpoint(), idx_leave() and idx_resume(). */
int token_shards_checkpoint(struct token_shards *s, struct buf *state, struct err *e);
void token_shards_leave(struct token_shards *s);
int token_shards_resume(struct token_shards **s, const char *prefix, enum token_shards_form form, int width,
                        uint64_t full, const struct node *state, struct err *e);
#endif
