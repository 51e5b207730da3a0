#include "train/peft_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

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
    n = peft_pieces(&x->model, x->family, &x->params, params_layer(&x->params, layer, w), piece);
    for (int k = 0, next; k < n; k = next) {
        next = peft_module_end(piece, k, n);
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

        peft_experts_name(name, layer, peft_experts_inner(&x->model, w), b ? 'B' : 'A');
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
    size_t most = peft_largest(&x->params), tensors = (size_t)x->model.layers * LORA_TARGETS * HF_PIECES * 2;

    for (int i = 0; i < x->params.n; i++) {
        size_t all = x->params.v[i].n * (size_t)(x->params.experts + 1);

        most = peft_expert_half(&x->params, i, &(struct peft_half){0}) && all > most ? all : most;
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
        TRY(peft_load(x->ck, q + i * x->params.per_expert, s->b ? one : x->ours + i * (int64_t)q->n, e));
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
        TRY(peft_load(x->ck, q, x->ours, e));
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
                n = peft_pieces(&x->model, x->family, &x->params, params_layer(&x->params, layer, lora_weight(k)), piece);
            for (int i = 0; i < n; i = peft_module_end(piece, i, n))
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
            TRY(buf_printf(b, "%s\"%s\"", n++ ? "," : ",\"target_parameters\":[", peft_experts_target(lora_weight(k))));
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

int peft_export(const struct checkpoint *ck, const char *to, const char *dtype, struct err *e)
{
    struct export x = {.ck = ck, .model = checkpoint_info(ck)->model, .dtype = dtype};
    int rc = x.model.lora_rank ? hf_family_for(checkpoint_info(ck), NULL, &x.family, e)
                               : err_set(e, ERR_ARG, "%s has no adapters", checkpoint_path(ck));

    if (rc == 0)
        rc = params_init(&x.params, &x.model, NULL, e);
    if (rc == 0 && x.model.lora_targets & LORA_TARGET_EXPERTS)
        rc = peft_check_experts(checkpoint_path(ck), &x.model, x.family, &x.params, e);
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
