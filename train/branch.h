/* train/branch.h -- the branches of a part's layers, each a norm and a module (module.h), by number: layer i has 2 i, attention,
 * and 2 i + 1, what follows it.  Behind the last stands the final norm, numbered as another one would be.
 *
 * A branch forward begins behind its norm.  What it adds joins the stream in one op with dropout and the next branch's norm.
 * A model's branches may have a norm before the module, one after it, or both:
 *     pre     s += module(norm(s))
 *     post    s += norm(module(s))             (OLMo 2, arXiv:2501.00656)
 *     both    s += norm(module(norm(s)))       (Gemma 2, arXiv:2408.00118)
 * and those of a layer may stand side by side, s += attention(norm1(s)) + mlp(norm2(s)), with one norm for both or two
 * (GPT-J, GPT-NeoX: arXiv:2204.06745): then the second is of the first's stream, and what attention adds stands in m->middle
 * until the MLP's part comes.
 */
#ifndef TRAIN_BRANCH_H
#define TRAIN_BRANCH_H

#include "train/module.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int64_t branch_count(const struct model *m)
{
    return 2 * m->config.layers;
}
static inline struct norm_acts *branch_norm(const struct model *m, int64_t i)
{
    int own = m->config.parallel == PARALLEL_NORM ? 0 : (int)(i % 2);

    return i == branch_count(m) ? &m->acts->final : &m->acts->layers[i / 2].norm[own];
}
static inline struct norm_acts *branch_post(const struct model *m, int64_t i)
{
    return &m->acts->layers[i / 2].post[i % 2];
}
/* What its module takes, of the rows that are here. */
const void *branch_input(const struct model *m, int64_t i);
const struct module *branch_module(const struct model *m, int64_t i);
/* The parameters of its norm before the module, and after it; -1: it has none. */
void branch_norm_params(const struct model *m, int64_t i, int *w, int *b);
void branch_post_params(const struct model *m, int64_t i, int *w, int *b);
/* The dropout of what it adds; NULL: none. */
const struct dropout *branch_dropout(const struct model *m, const struct model_dropout *md, int64_t i, struct dropout *d);

/* Its norm, if it has one of its own, of the stream that is there: of the first branch, where norms are made again, and where it
 * is of a stream that another branch has had a norm of. */
int branch_start(struct model *m, int64_t i, const struct pass *p, struct err *e);
/* Its module, up to what backward needs. */
int branch_begin(struct model *m, int64_t i, const struct pass *p, struct err *e);
/* What it adds joins the stream: with the next norm's output, or, of a part that ends here, as what goes to the next part. */
int branch_join(struct model *m, int64_t i, const struct pass *p, struct err *e);

/* Makes what layer ended its forward pass without: everything from the start of its chunk, or with RECOMPUTE_SELECTIVE the norms'
 * outputs and what its modules say.  Nothing when it kept all. */
int branches_again(struct model *m, int64_t layer, const struct pass *p, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
