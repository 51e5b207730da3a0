/* train/branch.h -- the branches of a part's layers, each a norm and a module (module.h), by number: layer i has 2 i, attention,
 * and 2 i + 1, what follows it.  Layers that predict tokens further on (mtp.h) are numbered behind the others.  Behind all stand
 * the norms of what goes to the output layer, one for the layers of the model and one for each of those, by even numbers.
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

/* The i-th norm before the output layer: 0 is the final one, i that of what predicts the i-th token behind the next. */
static inline int64_t branch_end(const struct model *m, int64_t i)
{
    return 2 * (pass_layers(m) + i);
}
static inline bool branch_is_end(const struct model *m, int64_t i)
{
    return i >= branch_end(m, 0);
}
/* What comes behind branch i. */
static inline int64_t branch_next(const struct model *m, int64_t i)
{
    return i % 2 == 0 || i / 2 + 1 < m->config.layers ? i + 1 : branch_end(m, i / 2 + 1 - m->config.layers);
}
static inline struct norm_acts *branch_norm(const struct model *m, int64_t i)
{
    int own = m->config.parallel == PARALLEL_NORM ? 0 : (int)(i % 2);

    if (branch_is_end(m, i))
        return i == branch_end(m, 0) ? &m->acts->final : &m->mtp.depth[(i - branch_end(m, 1)) / 2].final;
    return &m->acts->layers[i / 2].norm[own];
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
/* The same of what was added to the stream before branch i, in the same micro-batch and part. */
const struct dropout *branch_dropout_before(const struct model *m, const struct model_dropout *md, int64_t i, struct dropout *d);

/* Its norm, if it has one of its own, of the stream that is there: of the first branch, where norms are made again, and where it
 * is of a stream that another branch has had a norm of. */
int branch_start(struct model *m, int64_t i, const struct pass *p, struct err *e);
/* Its module, up to what backward needs. */
int branch_begin(struct model *m, int64_t i, const struct pass *p, struct err *e);
/* What it adds joins the stream: with the next norm's output, or, of a part that ends here, as what goes to the next part. */
int branch_join(struct model *m, int64_t i, const struct pass *p, struct err *e);

/* Where the gradient of a stream comes from besides, where it goes, and the dropout of what was added to it before. */
struct joint {
    const void *from; /* NULL: nowhere */
    void *to;
    const struct dropout *drop; /* NULL: none, then `to` is the gradient of that too; else it is in m->back.dx */
};
/* Back through the norm of branch i, if it has one, or one before the output layer: from dy, the gradient of the rows of it that
 * are here, to that of the stream. */
int branch_norm_back(struct model *m, int64_t i, const void *dy, const struct joint *j, struct err *e);
/* From *dx, the gradient of what the layer's last branch adds, and m->back.ds, that of the stream behind it, to those of what is
 * before the layer. */
int branches_back(struct model *m, int64_t layer, const void **dx, const struct pass *p, struct err *e);

/* Makes what layer ended its forward pass without: everything from the start of its chunk, or with RECOMPUTE_SELECTIVE the norms'
 * outputs and what its modules say.  Nothing when it kept all. */
int branches_again(struct model *m, int64_t layer, const struct pass *p, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
