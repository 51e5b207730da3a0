#include "train/peft_inner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/node.h"

struct import {
    const char *from;
    const struct checkpoint *base;
    struct model_config model;
    const struct hf_family *family;
    int64_t rank; /* theirs */
    struct arena arena;
    struct file_map map;
    struct safetensors file;
    bool *taken; /* of each tensor in it */
    struct params params;
    float *room, *half; /* of the largest parameter */
    char *one;          /* an expert's, as the file has it */
};

/* What adapter_config.json says, and whether that is all ours can be. */
static int read_config(struct import *m, struct err *e)
{
    const struct node *bias, *experts;
    struct node *root;
    char path[4352];
    double alpha;

    snprintf(path, sizeof path, "%s/adapter_config.json", m->from);
    TRY(node_load_json(&m->arena, path, &root, e));
    bias = node_get(root, "bias");
    m->rank = node_int(root, "r", 0);
    alpha = node_num(root, "lora_alpha", 0);
    m->model.lora_rslora = node_bool(root, "use_rslora", false);
    if (!node_str(root, "peft_type") || strcmp(node_str(root, "peft_type"), "LORA") != 0)
        return err_set(e, ERR_UNSUPPORTED, "%s: its peft_type is not LORA", path);
    if (m->rank < 1 || m->rank > LORA_RANK_MOST / HF_PIECES || !(alpha > 0))
        return err_set(e, ERR_FORMAT, "%s: its r or lora_alpha is missing or impossible", path);
    if (node_bool(root, "use_dora", false) || (bias && !(bias->type == NODE_STR && span_is(bias->str, "none"))) ||
        (node_get(root, "rank_pattern") && node_get(root, "rank_pattern")->count) ||
        (node_get(root, "alpha_pattern") && node_get(root, "alpha_pattern")->count))
        return err_set(e, ERR_UNSUPPORTED, "%s: quern has no use_dora, bias, rank_pattern or alpha_pattern", path);
    m->model.lora_alpha = alpha;
    experts = node_get(root, "target_parameters");
    for (const struct node *n = experts && experts->type == NODE_LIST ? experts->child : NULL; n; n = n->next)
        for (int k = LORA_EXPERTS; k < LORA_TARGETS; k++)
            if (n->type == NODE_STR && span_is(n->str, peft_experts_target(lora_weight(k))))
                m->model.lora_targets |= INT64_C(1) << k;
    return 0;
}

/* The tensor of half 'A' or 'B' of a piece; NULL: it has no adapter.  ERR_FORMAT: it is of another shape. */
static int find_half(struct import *m, const struct hf_piece *piece, char half, int64_t cols, const struct safetensor **t,
                     struct err *e)
{
    int64_t rows = half == 'A' ? m->rank : piece->at.of;
    char name[192];

    peft_name(name, piece, half);
    *t = safetensors_find(&m->file, name);
    if (!*t)
        return 0;
    m->taken[*t - m->file.v] = true;
    if ((*t)->dims != 2 || (*t)->shape[0] != rows || (*t)->shape[1] != (half == 'A' ? cols : m->rank))
        return err_set(e, ERR_FORMAT, "%s: '%s' is not %" PRId64 " x %" PRId64, m->from, name, rows,
                       half == 'A' ? cols : m->rank);
    return 0;
}

/* Of weight w the modules that have an adapter: how many; whether they have the same A.  p: with or without adapters. */
static int look_at(struct import *m, const struct params *p, int w, int *n, bool *same, struct err *e)
{
    struct hf_piece piece[HF_PIECES];
    int pieces = peft_pieces(&m->model, m->family, p, w, piece);
    const struct safetensor *first = NULL, *a, *b;

    *n = 0;
    *same = true;
    for (int k = 0; k < pieces; k = peft_module_end(piece, k, pieces)) {
        TRY(find_half(m, &piece[k], 'A', p->v[w].shape[1], &a, e));
        TRY(find_half(m, &piece[k], 'B', p->v[w].shape[1], &b, e));
        if (!a != !b)
            return err_set(e, ERR_FORMAT, "%s: '%s' has but one of lora_A and lora_B", m->from, piece[k].name);
        if (!a)
            continue;
        if (first && (a->data.n != first->data.n || memcmp(a->data.p, first->data.p, a->data.n) != 0))
            *same = false;
        first = a;
        ++*n;
    }
    return 0;
}

/* Half 'A' or 'B' of all experts of a layer.  ERR_FORMAT: it is not there, or of another shape. */
static int find_experts(struct import *m, const struct params *p, int64_t layer, enum layer_param w, char half,
                        const struct safetensor **t, struct err *e)
{
    const struct param *q = &p->v[params_layer(p, layer, w)];
    int64_t all = m->rank * m->model.experts, rows = half == 'A' ? all : q->shape[0], cols = half == 'A' ? q->shape[1] : all;
    char name[192];

    peft_experts_name(name, layer, peft_experts_inner(&m->model, w), half);
    *t = safetensors_find(&m->file, name);
    if (!*t || (*t)->dims != 2 || (*t)->shape[0] != rows || (*t)->shape[1] != cols)
        return err_set(e, ERR_FORMAT, "%s: '%s' is not there, or not %" PRId64 " x %" PRId64, m->from, name, rows, cols);
    m->taken[*t - m->file.v] = true;
    return 0;
}

/* Looks at all adapters of experts that the settings name. */
static int plan_experts(struct import *m, const struct params *p, struct err *e)
{
    const struct safetensor *t;

    if (m->model.lora_targets & LORA_TARGET_EXPERTS)
        TRY(peft_check_experts(m->from, &m->model, m->family, p, e));
    for (int64_t layer = 0; layer < m->model.layers; layer++)
        for (int k = LORA_EXPERTS; k < LORA_TARGETS; k++)
            if (m->model.lora_targets & INT64_C(1) << k && params_layer(p, layer, lora_weight(k)) >= 0) {
                TRY(find_experts(m, p, layer, lora_weight(k), 'A', &t, e));
                TRY(find_experts(m, p, layer, lora_weight(k), 'B', &t, e));
            }
    return 0;
}

/* Sets which layers have adapters and of which rank, by all that is in the file. */
static int plan_import(struct import *m, struct err *e)
{
    struct params p;
    int times = 1, rc = params_init(&p, &m->model, NULL, e), n;
    bool same;

    for (int64_t layer = 0; rc == 0 && layer < m->model.layers; layer++)
        for (int k = 0; rc == 0 && k < LORA_EXPERTS; k++) {
            int w = params_layer(&p, layer, lora_weight(k));

            rc = w < 0 ? 0 : look_at(m, &p, w, &n, &same, e);
            if (rc == 0 && w >= 0 && n)
                m->model.lora_targets |= INT64_C(1) << k;
            if (rc == 0 && w >= 0 && !same)
                times = HF_PIECES;
        }
    rc = rc ? rc : plan_experts(m, &p, e);
    params_free(&p);
    TRY(rc);
    for (int i = 0; i < m->file.n; i++)
        if (!m->taken[i])
            return err_set(e, ERR_UNSUPPORTED, "%s: '%s' has no place in the model", m->from, m->file.v[i].name.p);
    m->model.lora_rank = m->rank * times;
    m->model.lora_alpha *= m->model.lora_rslora ? sqrt(times) : times; /* the scale stays */
    return 0;
}

/* Rows of t, as p says, become those of m->room from `row` and column `col` on, of so many columns. */
static int place(struct import *m, const struct safetensor *t, const struct hf_piece *p, int64_t row, int64_t col, int64_t cols,
                 struct err *e)
{
    const struct hf_shape shape = {p->rows, t->shape[1]};

    TRY(hf_widen(m->half, t->data.p, t->dtype, shape, &p->at, e));
    for (int64_t r = 0; r < shape.rows; r++)
        memcpy(m->room + (row + r) * cols + col, m->half + r * shape.cols, (size_t)shape.cols * sizeof *m->room);
    return 0;
}

/* A or B of weight w to m->room. */
static int build(struct import *m, int w, bool b, struct err *e)
{
    const struct hf_piece whole = {.rows = m->rank, .at = {.of = m->rank}};
    struct hf_piece piece[HF_PIECES];
    int pieces = peft_pieces(&m->model, m->family, &m->params, w, piece), n;
    int64_t cols = b ? m->model.lora_rank : m->params.v[w].shape[1], rows = b ? m->params.v[w].shape[0] : m->model.lora_rank;
    bool same;

    memset(m->room, 0, (size_t)(rows * cols) * sizeof *m->room);
    TRY(look_at(m, &m->params, w, &n, &same, e));
    for (int k = 0, next; k < pieces; k = next) {
        const struct safetensor *t;
        int64_t at = same ? 0 : k * m->rank; /* the first row of A, and column of B */

        next = peft_module_end(piece, k, pieces);
        TRY(find_half(m, &piece[k], b ? 'B' : 'A', m->params.v[w].shape[1], &t, e));
        if (t && !b)
            TRY(place(m, t, &whole, at, 0, cols, e));
        for (int i = k; t && b && i < next; i++)
            TRY(place(m, t, &piece[i], piece[i].row, at, cols, e));
    }
    return 0;
}

/* A or B of an expert to m->room. */
static int build_expert(struct import *m, const struct peft_half *of, const struct param *q, struct err *e)
{
    const struct safetensor *all;
    struct safetensor one;
    struct hf_piece whole = {0};

    memset(m->room, 0, q->n * sizeof *m->room);
    TRY(find_experts(m, &m->params, of->layer, of->w, of->b ? 'B' : 'A', &all, e));
    one = *all;
    size_t width = safetensors_size(one.dtype);

    one.shape[of->b] = m->rank;
    whole.rows = whole.at.of = one.shape[0];
    one.data.p = m->one;
    for (int64_t i = 0; i < one.shape[0] * one.shape[1]; i++) {
        int64_t from = of->b ? i * m->model.experts + of->expert : of->expert * m->rank * one.shape[1] + i;

        memcpy(m->one + (size_t)i * width, all->data.p + (size_t)from * width, width);
    }
    return place(m, &one, &whole, 0, 0, q->shape[1], e);
}

static int give_param(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct import *m = arg;
    const struct param *q = &m->params.v[i];
    struct peft_half expert;
    bool b;
    int w = peft_adapted(&m->params, i, &b);

    (void)at;
    if (w >= 0)
        TRY(build(m, w, b, e));
    else if (peft_expert_half(&m->params, i, &expert))
        TRY(build_expert(m, &expert, q, e));
    else
        TRY(peft_load(m->base, q, m->room, e));
    *data = (struct span){(const char *)m->room, q->n * sizeof *m->room};
    return 0;
}

static int open_import(struct import *m, struct err *e)
{
    char path[4352];

    if (m->model.lora_rank)
        return err_set(e, ERR_ARG, "%s has adapters already", checkpoint_path(m->base));
    TRY(hf_family_for(checkpoint_info(m->base), NULL, &m->family, e));
    TRY(read_config(m, e));
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", m->from);
    TRY(safetensors_map(&m->map, path, e));
    TRY(file_map_fetch(&m->map, (const char *)m->map.p, m->map.n, e));
    TRY(safetensors_parse(&m->arena, path, (struct span){(const char *)m->map.p, m->map.n}, &m->file, e));
    m->taken = arena_calloc(&m->arena, (size_t)m->file.n + 1, sizeof *m->taken);
    if (!m->taken)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(plan_import(m, e));
    TRY(hf_params_init(&m->params, &m->model, e)); /* biases of routers, which are no parameters, too */
    m->room = malloc(peft_largest(&m->params) * sizeof *m->room);
    m->half = malloc(peft_largest(&m->params) * sizeof *m->half);
    m->one = malloc(peft_largest(&m->params) * dtype_size(DTYPE_F32));
    return m->room && m->half && m->one ? 0 : err_set(e, ERR_NOMEM, "out of memory for a tensor");
}

int peft_import(const char *from, const struct checkpoint *base, const char *dir, struct err *e)
{
    struct import m = {.from = from, .base = base, .model = checkpoint_info(base)->model};
    struct checkpoint_info info = {0};
    int rc = open_import(&m, e);

    info.model = m.model;
    peft_keep_type(&info, checkpoint_info(base));
    if (rc == 0)
        rc = peft_save(&m.params, &info, dir, give_param, &m, e);
    free(m.room);
    free(m.half);
    free(m.one);
    params_free(&m.params);
    file_map_close(&m.map);
    arena_free(&m.arena);
    return rc;
}
