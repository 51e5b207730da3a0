/* Which of transformers' tensors are which of ours, by the names of a family. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/hf.h"
#include "train/hf_family.h"

enum { STARS = 2 };

/* Whether name begins as a pattern does; what its stars stand for, and what follows. */
static bool begins(const char *name, const char *pattern, struct span stars[STARS], const char **rest)
{
    int n = 0;

    for (; *pattern; pattern++) {
        size_t digits = strspn(name, "0123456789");

        if (*pattern != '*') {
            if (*pattern != *name++)
                return false;
            continue;
        }
        if (!digits || n == STARS)
            return false;
        stars[n++] = (struct span){name, digits};
        name += digits;
    }
    *rest = name;
    return true;
}

/* n bytes of a pattern with its stars filled in, and what follows. */
static void fill(char *to, size_t size, const char *pattern, size_t n, const struct span stars[STARS], const char *rest)
{
    size_t used = 0;
    int star = 0;

    for (size_t i = 0; i < n && used < size; i++)
        if (pattern[i] != '*')
            to[used++] = pattern[i];
        else if (star < STARS) {
            used += (size_t)snprintf(to + used, size - used, "%.*s", (int)stars[star].n, stars[star].p);
            star++;
        }
    if (used < size)
        snprintf(to + used, size - used, "%s", rest);
}

static const struct hf_name *name_of(const struct hf_family *f, const char *ours, struct span stars[STARS], const char **rest)
{
    const struct hf_name *const tables[] = {f->names, f->others};

    for (int t = 0; t < 2; t++)
        for (const struct hf_name *n = tables[t]; n && n->ours; n++)
            if (begins(ours, n->ours, stars, rest))
                return n;
    return NULL;
}

int hf_params_init(struct params *p, const struct model_config *m, struct err *e)
{
    struct param *v;

    TRY(params_init(p, m, NULL, e));
    if (!m->expert_bias)
        return 0;
    v = realloc(p->v, (size_t)(p->n + m->layers + m->mtp_layers) * sizeof *v);
    if (!v)
        return err_set(e, ERR_NOMEM, "out of memory");
    p->v = v;
    for (int64_t i = 0; i < m->layers + m->mtp_layers; i++)
        if (i < m->layers ? model_layer_moe(m, i) : model_mtp_moe(m)) {
            struct param *q = &p->v[p->n++];

            *q = (struct param){.dims = 1, .whole = {m->experts}, .shape = {m->experts}, .n = (size_t)m->experts, .split = -1,
                                .parts = 1, .part = {m->experts}};
            snprintf(q->name, sizeof q->name, i < m->layers ? "decoder.layers.%" PRId64 ".mlp.router.expert_bias"
                     : "mtp.layers.%" PRId64 ".transformer_layer.mlp.router.expert_bias", i < m->layers ? i : i - m->layers);
        }
    return 0;
}

/* The pieces of linear_qkv where each head's queries, keys and values stand together. */
static int by_head(const struct model_config *m, struct hf_piece piece[HF_PIECES])
{
    int64_t d = m->head_dim, rows = m->heads * d;

    for (int k = 0; k < HF_PIECES; k++) {
        if (k)
            memcpy(piece[k].name, piece[0].name, sizeof piece[k].name);
        piece[k].row = k * rows;
        piece[k].rows = rows;
        piece[k].at = (struct hf_at){.first = k * d, .block = d, .apart = HF_PIECES * d, .of = HF_PIECES * rows};
    }
    return HF_PIECES;
}

/* One of the experts that stand in a tensor together. */
static void member(const struct model_config *m, const struct param *q, struct span number, bool pairs, struct hf_piece *p)
{
    p->member = strtoll(number.p, NULL, 10);
    p->members = m->experts;
    p->at = (struct hf_at){.of = p->rows, .turned = q->dims == 2};
    if (pairs)
        p->at.block = p->at.apart = p->at.pairs = p->rows;
}

int hf_pieces(const struct model_config *m, const struct hf_family *family, const struct params *p, int i,
              struct hf_piece piece[HF_PIECES])
{
    const struct param *q = &p->v[i];
    bool vocab = i == p->word || i == p->output;
    struct span stars[STARS];
    const char *rest, *theirs;
    const struct hf_name *name = name_of(family, q->name, stars, &rest);
    int64_t row = 0;
    int n = 0;

    if (!name)
        return 0;
    memset(piece, 0, HF_PIECES * sizeof *piece);
    for (theirs = name->theirs; theirs && n < HF_PIECES; n++) {
        size_t len = strcspn(theirs, "|");

        fill(piece[n].name, sizeof piece[n].name, theirs, len, stars, rest);
        theirs = theirs[len] ? theirs + len + 1 : NULL;
    }
    if (name->rows == HF_BY_HEAD)
        return by_head(m, piece);
    for (int k = 0; k < n; k++) {
        piece[k].row = row;
        piece[k].rows = vocab ? m->vocab : n == 1 ? q->shape[0] : q->part[k];
        piece[k].at = (struct hf_at){.of = piece[k].rows, .turned = name->rows == HF_TURNED && q->dims == 2};
        piece[k].fp32 = name->rows == HF_FP32;
        if (name->rows == HF_HEAD_PAIRS || name->rows == HF_LAST_PAIRS) {
            piece[k].at.block = piece[k].at.apart = name->rows == HF_HEAD_PAIRS ? m->head_dim : piece[k].rows;
            piece[k].at.pairs = m->qk_turn;
        }
        if (name->rows == HF_HALVES && k < 2) {
            piece[k].at.block = piece[k].at.apart = m->head_dim;
            piece[k].at.halves = true;
        }
        row += piece[k].rows;
    }
    if (name->rows == HF_STACKED || name->rows == HF_PAIRS)
        member(m, q, stars[1], name->rows == HF_PAIRS, &piece[0]);
    return n;
}

bool hf_is_output(const struct hf_family *family, struct span name)
{
    struct span stars[STARS];
    const char *rest;
    const struct hf_name *n = name_of(family, "output_layer.weight", stars, &rest);

    return n && name.n == strlen(n->theirs) + strlen(rest) && span_starts(name, n->theirs) && span_ends(name, rest);
}
