#include "train/peft.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/node.h"
#include "train/hf.h"
#include "train/hf_copy.h"
#include "train/hf_family.h"
#include "train/lora.h"

/* All of a logical tensor in fp32. */
static int load(const struct checkpoint *ck, const struct param *q, float *to, struct err *e)
{
    int64_t cols = q->dims == 2 ? q->shape[1] : 1;
    const struct piece whole = {
        .part = CHECKPOINT_WEIGHTS, .name = q->name, .dims = q->dims, .shape = {q->shape[0], q->shape[1]}, .rows = q->shape[0],
        .cols = cols, .data = to, .ld = cols,
    };

    return checkpoint_load(ck, NULL, &whole, 1, e);
}

static size_t largest(const struct params *p)
{
    size_t most = 0;

    for (int i = 0; i < p->n; i++)
        most = p->v[i].n > most ? p->v[i].n : most;
    return most;
}

/* The adapter of an expert: the layer, which of the two layers of all experts, the expert, which half. */
struct expert_half {
    int64_t layer, expert;
    enum layer_param w;
    bool b;
};

/* Whether parameter i is one, and which. */
static bool is_expert_half(const struct params *p, int i, struct expert_half *of)
{
    for (int64_t layer = 0; layer < p->units - 2; layer++)
        for (int k = LORA_EXPERTS; k < LORA_TARGETS && p->layer[layer].at <= i && i < p->layer[layer + 1].at; k++)
            for (int64_t j = 0; j < p->experts; j++) {
                int a = params_expert(p, layer, j, lora_param(lora_weight(k)));

                *of = (struct expert_half){layer, j, lora_weight(k), i == a + 1};
                if (a >= 0 && (i == a || of->b))
                    return true;
            }
    return false;
}

/* The weight that parameter i is the A or B of, of no expert; -1: it is no adapter's. */
static int adapted(const struct params *p, int i, bool *b)
{
    for (int64_t layer = 0; layer < p->units - 2; layer++)
        for (int k = 0; k < LORA_EXPERTS && p->layer[layer].at <= i && i < p->layer[layer + 1].at; k++) {
            int a = params_layer(p, layer, lora_param(lora_weight(k)));

            *b = i == a + 1;
            if (a >= 0 && (i == a || *b))
                return params_layer(p, layer, lora_weight(k));
        }
    return -1;
}

/* ---- their names ---- */

/* "base_model.model.PIECE.lora_A.weight". */
static void peft_name(char name[192], const struct hf_piece *piece, char half)
{
    int n = (int)(strlen(piece->name) - strlen(".weight"));

    snprintf(name, 192, "base_model.model.%.*s.lora_%c.weight", n, piece->name, half);
}

/* Transformers keep the experts of a layer in two tensors, gate_up_proj and down_proj.  An adapter of one wraps the module, first
 * that of the first, so that where both have one this is the inner one.  A (experts * rank, in) has the experts' one below the
 * other, of B (out, rank * experts) neighbouring columns are of neighbouring experts. */
static void experts_name(char name[192], int64_t layer, bool inner, char half)
{
    const char *base = inner ? "base_layer." : "";

    snprintf(name, 192, "base_model.model.model.layers.%" PRId64 ".mlp.experts.%slora_%c.weight", layer, base, half);
}
/* The tensor beside which adapters of w are, as target_parameters has it. */
static const char *experts_target(enum layer_param w)
{
    return w == EXPERT_FC1_W ? "mlp.experts.gate_up_proj" : "mlp.experts.down_proj";
}

/* Whether adapter w of experts is the inner one of two. */
static bool experts_inner(const struct model_config *m, enum layer_param w)
{
    int64_t both = LORA_TARGET_EXPERTS;

    return w == EXPERT_FC1_W && (m->lora_targets & both) == both;
}

/* The pieces of weight w, as they are of B: that is never turned. */
static int adapter_pieces(const struct model_config *m, const struct hf_family *family, const struct params *p, int w,
                          struct hf_piece piece[HF_PIECES])
{
    int n = hf_pieces(m, family, p, w, piece);

    for (int k = 0; k < n; k++)
        piece[k].at.turned = false;
    return n;
}

/* Behind the last of n pieces that is of the same module as the k-th. */
static int module_end(const struct hf_piece *piece, int k, int n)
{
    int end = k + 1;

    while (end < n && strcmp(piece[end].name, piece[k].name) == 0)
        end++;
    return end;
}

bool peft_is(const char *dir)
{
    char path[4352];

    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    return access(path, F_OK) == 0;
}

/* ---- out ---- */

/* Where a tensor of theirs comes from: pieces of one of ours. */
struct source {
    int param, n; /* n 0: of param and those of the other experts, half A or B */
    bool b;
    struct hf_piece piece[HF_PIECES];
};

struct export {
    const struct checkpoint *ck;
    struct model_config model;
    const struct hf_family *family;
    struct params params;
    struct arena arena;
    struct safetensor *v;
    struct source *source;
    int n;
    const char *dtype;
    float *ours;
    void *room;
};

/* A tensor of n pieces of a parameter, of so many rows. */
static int add_tensor(struct export *x, const char *name, int param, const struct hf_piece *piece, int n, struct err *e)
{
    int64_t cols = x->params.v[param].shape[1], rows = piece->at.of;
    struct safetensor *t = &x->v[x->n];
    struct source *s = &x->source[x->n++];

    *t = (struct safetensor){.name = arena_dup(&x->arena, span_of(name)), .dtype = x->dtype, .dims = 2, .shape = {rows, cols}};
    t->data.n = (size_t)(rows * cols) * safetensors_size(x->dtype);
    *s = (struct source){.param = param, .n = n};
    for (int k = 0; k < n; k++)
        s->piece[k] = piece[k];
    return t->name.p ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* The tensors of the adapter of one weight of a layer, module by module. */
static int list_adapter(struct export *x, int64_t layer, enum layer_param w, struct err *e)
{
    const struct hf_piece whole = {.rows = x->model.lora_rank, .at = {.of = x->model.lora_rank}};
    int a = params_layer(&x->params, layer, lora_param(w)), n;
    struct hf_piece piece[HF_PIECES];
    char name[192];

    if (a < 0)
        return 0;
    n = adapter_pieces(&x->model, x->family, &x->params, params_layer(&x->params, layer, w), piece);
    for (int k = 0, next; k < n; k = next) {
        next = module_end(piece, k, n);
        peft_name(name, &piece[k], 'A');
        TRY(add_tensor(x, name, a, &whole, 1, e));
        peft_name(name, &piece[k], 'B');
        TRY(add_tensor(x, name, a + 1, &piece[k], next - k, e));
    }
    return 0;
}

/* The two tensors of the adapters of all experts of a layer. */
static int list_experts(struct export *x, int64_t layer, enum layer_param w, struct err *e)
{
    int a = params_layer(&x->params, layer, lora_param(w));
    int64_t rank = x->model.lora_rank * x->params.experts;
    char name[192];

    for (int b = 0; a >= 0 && b < 2; b++) {
        const struct hf_piece size = {.at = {.of = b ? x->params.v[a + 1].shape[0] : rank}};

        experts_name(name, layer, experts_inner(&x->model, w), b ? 'B' : 'A');
        TRY(add_tensor(x, name, a + b, &size, 0, e));
        if (b)
            x->v[x->n - 1].shape[1] = rank;
        x->v[x->n - 1].data.n = (size_t)(size.at.of * x->v[x->n - 1].shape[1]) * safetensors_size(x->dtype);
        x->source[x->n - 1].b = b;
    }
    return 0;
}

static int list(struct export *x, struct err *e)
{
    size_t most = largest(&x->params), tensors = (size_t)x->model.layers * LORA_TARGETS * HF_PIECES * 2;

    for (int i = 0; i < x->params.n; i++) {
        size_t all = x->params.v[i].n * (size_t)(x->params.experts + 1);

        most = is_expert_half(&x->params, i, &(struct expert_half){0}) && all > most ? all : most;
    }
    x->v = arena_calloc(&x->arena, tensors, sizeof *x->v);
    x->source = arena_calloc(&x->arena, tensors, sizeof *x->source);
    x->ours = malloc(most * sizeof *x->ours);
    x->room = malloc(most * sizeof *x->ours);
    if (!x->v || !x->source || !x->ours || !x->room)
        return err_set(e, ERR_NOMEM, "out of memory for adapters");
    for (int64_t layer = 0; layer < x->model.layers; layer++)
        for (int k = 0; k < LORA_EXPERTS; k++)
            TRY(list_adapter(x, layer, lora_weight(k), e));
    for (int64_t layer = 0; layer < x->model.layers; layer++)
        for (int k = LORA_EXPERTS; k < LORA_TARGETS; k++)
            TRY(list_experts(x, layer, lora_weight(k), e));
    return 0;
}

/* All experts' of a source to x->room. */
static int give_experts(struct export *x, const struct source *s, const struct safetensor *t, struct err *e)
{
    const struct param *q = &x->params.v[s->param];
    int64_t experts = x->params.experts;
    const struct hf_shape shape = {t->shape[0], t->shape[1]};
    float *one = x->ours + (size_t)experts * q->n; /* an expert's B */

    for (int64_t i = 0; i < experts; i++) {
        TRY(load(x->ck, q + i * x->params.per_expert, s->b ? one : x->ours + i * (int64_t)q->n, e));
        for (int64_t j = 0; s->b && j < (int64_t)q->n; j++)
            x->ours[j * experts + i] = one[j];
    }
    return hf_narrow(x->room, x->ours, x->dtype, shape, &(struct hf_at){.of = shape.rows}, e);
}

static int give_tensor(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct export *x = arg;
    const struct source *s = &x->source[i];
    const struct param *q = &x->params.v[s->param];

    (void)at; /* all of it at once */
    if (s->n)
        TRY(load(x->ck, q, x->ours, e));
    else
        TRY(give_experts(x, s, &x->v[i], e));
    for (int k = 0; k < s->n; k++) {
        const struct hf_piece *p = &s->piece[k];
        const struct hf_shape shape = {p->rows, q->shape[1]};

        TRY(hf_narrow(x->room, x->ours + p->row * q->shape[1], x->dtype, shape, &p->at, e));
    }
    *data = (struct span){x->room, x->v[i].data.n};
    return 0;
}

/* A module by its last two names, ',' before it; unless it stands there. */
static int put_module(const char *name, size_t from, struct buf *b)
{
    const char *end = name + strlen(name) - strlen(".weight"), *at = end;
    char quoted[128];

    for (int dots = 0; at > name && (dots += at[-1] == '.') < 2;)
        at--;
    snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)(end - at), at);
    return b->n > from && strstr(b->p + from, quoted) ? 0 : buf_printf(b, "%s%s", b->n > from ? "," : "", quoted);
}

/* Those of all layers, target by target. */
static int put_modules(const struct export *x, struct buf *b)
{
    struct hf_piece piece[HF_PIECES];
    size_t from = b->n;

    for (int k = 0; k < LORA_EXPERTS; k++)
        for (int64_t layer = 0; layer < x->model.layers; layer++) {
            int n = 0;

            if (params_layer(&x->params, layer, lora_param(lora_weight(k))) >= 0)
                n = adapter_pieces(&x->model, x->family, &x->params, params_layer(&x->params, layer, lora_weight(k)), piece);
            for (int i = 0; i < n; i = module_end(piece, i, n))
                TRY(put_module(piece[i].name, from, b));
        }
    return 0;
}

static int put_config(const struct export *x, struct buf *b)
{
    TRY(buf_puts(b, "{\"peft_type\":\"LORA\",\"task_type\":\"CAUSAL_LM\",\"base_model_name_or_path\":null,\"bias\":\"none\","
                 "\"inference_mode\":true,\"lora_dropout\":0.0,\"lora_alpha\":"));
    TRY(json_put_num(b, x->model.lora_alpha));
    TRY(buf_printf(b, ",\"r\":%" PRId64 ",\"use_rslora\":%s,\"fan_in_fan_out\":%s,\"target_modules\":[", x->model.lora_rank,
                   x->model.lora_rslora ? "true" : "false", strcmp(x->family->type, "gpt2") == 0 ? "true" : "false"));
    TRY(put_modules(x, b));
    TRY(buf_puts(b, "]"));
    for (int k = LORA_EXPERTS, n = 0; k < LORA_TARGETS; k++)
        if (x->model.lora_targets & INT64_C(1) << k)
            TRY(buf_printf(b, "%s\"%s\"", n++ ? "," : ",\"target_parameters\":[", experts_target(lora_weight(k))));
    return buf_puts(b, x->model.lora_targets & LORA_TARGET_EXPERTS ? "]}\n" : "}\n");
}

static int write_adapter(struct export *x, const char *to, struct err *e)
{
    struct file_group g = {0};
    struct buf b = {0};
    uint64_t hash, bytes;
    char path[4352];
    int rc;

    snprintf(path, sizeof path, "%s/adapter_model.safetensors", to);
    rc = safetensors_write(&g, path, x->v, x->n, "{\"format\":\"pt\"}", give_tensor, x, &hash, &bytes, e);
    snprintf(path, sizeof path, "%s/adapter_config.json", to);
    if (rc == 0)
        rc = put_config(x, &b) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : file_group_write(&g, path, buf_span(&b), e);
    if (rc == 0)
        rc = file_group_commit(&g, e);
    file_group_abort(&g);
    buf_free(&b);
    return rc;
}

/* Whether transformers keep experts as ours are: not those that stand in one tensor in files of the model too (GPT-OSS's). */
static int check_experts(const char *what, const struct model_config *m, const struct hf_family *family, const struct params *p,
                         struct err *e)
{
    struct hf_piece piece[HF_PIECES];

    for (int64_t layer = 0; layer < m->layers; layer++) {
        int w = params_layer(p, layer, EXPERT_FC1_W);

        if (w >= 0 && (hf_pieces(m, family, p, w, piece) == 0 || piece[0].members))
            return err_set(e, ERR_UNSUPPORTED, "%s: adapters of experts of a %s are not known of PEFT", what, family->type);
    }
    return 0;
}

int peft_export(const struct checkpoint *ck, const char *to, const char *dtype, struct err *e)
{
    struct export x = {.ck = ck, .model = checkpoint_info(ck)->model, .dtype = dtype};
    int rc = x.model.lora_rank ? hf_family_for(checkpoint_info(ck), NULL, &x.family, e)
                               : err_set(e, ERR_ARG, "%s has no adapters", checkpoint_path(ck));

    if (rc == 0)
        rc = params_init(&x.params, &x.model, NULL, e);
    if (rc == 0 && x.model.lora_targets & LORA_TARGET_EXPERTS)
        rc = check_experts(checkpoint_path(ck), &x.model, x.family, &x.params, e);
    if (rc == 0)
        rc = list(&x, e);
    if (rc == 0)
        rc = hf_make_empty(to, "adapter_config.json", e);
    if (rc == 0)
        rc = write_adapter(&x, to, e);
    free(x.ours);
    free(x.room);
    params_free(&x.params);
    arena_free(&x.arena);
    return rc;
}

/* ---- in ---- */

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
            if (n->type == NODE_STR && span_is(n->str, experts_target(lora_weight(k))))
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
    int pieces = adapter_pieces(&m->model, m->family, p, w, piece);
    const struct safetensor *first = NULL, *a, *b;

    *n = 0;
    *same = true;
    for (int k = 0; k < pieces; k = module_end(piece, k, pieces)) {
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

    experts_name(name, layer, experts_inner(&m->model, w), half);
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
        TRY(check_experts(m->from, &m->model, m->family, p, e));
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
    int pieces = adapter_pieces(&m->model, m->family, &m->params, w, piece), n;
    int64_t cols = b ? m->model.lora_rank : m->params.v[w].shape[1], rows = b ? m->params.v[w].shape[0] : m->model.lora_rank;
    bool same;

    memset(m->room, 0, (size_t)(rows * cols) * sizeof *m->room);
    TRY(look_at(m, &m->params, w, &n, &same, e));
    for (int k = 0, next; k < pieces; k = next) {
        const struct safetensor *t;
        int64_t at = same ? 0 : k * m->rank; /* the first row of A, and column of B */

        next = module_end(piece, k, pieces);
        TRY(find_half(m, &piece[k], b ? 'B' : 'A', m->params.v[w].shape[1], &t, e));
        if (t && !b)
            TRY(place(m, t, &whole, at, 0, cols, e));
        for (int i = k; t && b && i < next; i++)
            TRY(place(m, t, &piece[i], piece[i].row, at, cols, e));
    }
    return 0;
}

/* A or B of an expert to m->room. */
static int build_expert(struct import *m, const struct expert_half *of, const struct param *q, struct err *e)
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
    struct expert_half expert;
    bool b;
    int w = adapted(&m->params, i, &b);

    (void)at;
    if (w >= 0)
        TRY(build(m, w, b, e));
    else if (is_expert_half(&m->params, i, &expert))
        TRY(build_expert(m, &expert, q, e));
    else
        TRY(load(m->base, q, m->room, e));
    *data = (struct span){(const char *)m->room, q->n * sizeof *m->room};
    return 0;
}

/* Of the settings of a checkpoint as what it came from transformers. */
static void keep_type(struct checkpoint_info *info, const struct checkpoint_info *of)
{
    info->n_args = 0;
    for (int i = 0; i < of->n_args && !info->n_args; i++)
        if (strcmp(of->args[i].name, MODEL_TYPE_ARG) == 0) {
            info->args = &of->args[i];
            info->n_args = 1;
        }
}

/* Writes the model of info, parameter by parameter. */
static int save(const struct params *p, const struct checkpoint_info *info, const char *dir, safetensors_data_fn *fn, void *arg,
                struct err *e)
{
    struct piece *v = malloc((size_t)p->n * PIECES_PER_PARAM * sizeof *v);
    int rc = v ? checkpoint_save_from(dir, info, v, params_pieces(p, CHECKPOINT_WEIGHTS, NULL, DTYPE_F32, v), fn, arg, e)
               : err_set(e, ERR_NOMEM, "out of memory");

    free(v);
    return rc;
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
    m->room = malloc(largest(&m->params) * sizeof *m->room);
    m->half = malloc(largest(&m->params) * sizeof *m->half);
    m->one = malloc(largest(&m->params) * sizeof(float));
    return m->room && m->half && m->one ? 0 : err_set(e, ERR_NOMEM, "out of memory for a tensor");
}

int peft_import(const char *from, const struct checkpoint *base, const char *dir, struct err *e)
{
    struct import m = {.from = from, .base = base, .model = checkpoint_info(base)->model};
    struct checkpoint_info info = {0};
    int rc = open_import(&m, e);

    info.model = m.model;
    keep_type(&info, checkpoint_info(base));
    if (rc == 0)
        rc = save(&m.params, &info, dir, give_param, &m, e);
    free(m.room);
    free(m.half);
    free(m.one);
    params_free(&m.params);
    file_map_close(&m.map);
    arena_free(&m.arena);
    return rc;
}

/* ---- merged ---- */

struct merge {
    const struct checkpoint *ck;
    struct params params, own; /* without adapters; with them */
    double scale;
    float *room, *a, *b;
};

/* m->room += scale B A, of A and B of those of own from i on. */
static int add_adapter(struct merge *m, int i, struct err *e)
{
    const struct param *a = &m->own.v[i], *b = a + 1;
    int64_t out = b->shape[0], in = a->shape[1], rank = a->shape[0];

    TRY(load(m->ck, a, m->a, e));
    TRY(load(m->ck, b, m->b, e));
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < out; r++)
        for (int64_t c = 0; c < in; c++) {
            double sum = 0;

            for (int64_t k = 0; k < rank; k++)
                sum += (double)m->b[r * rank + k] * (double)m->a[k * in + c];
            m->room[r * in + c] = (float)((double)m->room[r * in + c] + m->scale * sum);
        }
    return 0;
}

/* The adapter of q, by its A in own; -1: it has none. */
static int adapter_of(const struct merge *m, const struct param *q)
{
    const struct params *p = &m->own;
    int end = q->unit < p->units - 1 ? p->layer[q->unit].at : p->n; /* those that predict tokens further on share a unit */
    char name[96];

    if (q->dims < 2 || q->unit == 0)
        return -1;
    snprintf(name, sizeof name, "%.*s.lora_A.weight", (int)(strlen(q->name) - strlen(".weight")), q->name);
    for (int i = p->layer[q->unit - 1].at; i < end; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return i;
    return -1;
}

static int give_merged(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct merge *m = arg;
    const struct param *q = &m->params.v[i];
    int adapter = adapter_of(m, q);

    (void)at;
    TRY(load(m->ck, q, m->room, e));
    if (adapter >= 0)
        TRY(add_adapter(m, adapter, e));
    *data = (struct span){(const char *)m->room, q->n * sizeof *m->room};
    return 0;
}

int peft_merge(const struct checkpoint *ck, const char *dir, struct err *e)
{
    struct checkpoint_info info = *checkpoint_info(ck);
    struct merge m = {.ck = ck};
    int rc = info.model.lora_rank ? params_init(&m.own, &info.model, NULL, e)
                                  : err_set(e, ERR_ARG, "%s has no adapters", checkpoint_path(ck));

    m.scale = rc == 0 ? lora_scale(&info.model) : 0;
    info.model.lora_rank = info.model.lora_targets = 0;
    info.model.lora_alpha = 0;
    info.model.lora_rslora = false;
    keep_type(&info, checkpoint_info(ck));
    if (rc == 0)
        rc = hf_params_init(&m.params, &info.model, e);
    if (rc == 0) {
        m.room = malloc(3 * largest(&m.own) * sizeof *m.room);
        m.a = m.room ? m.room + largest(&m.own) : NULL;
        m.b = m.room ? m.a + largest(&m.own) : NULL;
        rc = m.room ? save(&m.params, &info, dir, give_merged, &m, e) : err_set(e, ERR_NOMEM, "out of memory for a tensor");
    }
    free(m.room);
    params_free(&m.params);
    params_free(&m.own);
    return rc;
}
