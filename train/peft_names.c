#include "train/peft_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int peft_load(const struct checkpoint *ck, const struct param *q, float *to, struct err *e)
{
    int64_t cols = q->dims == 2 ? q->shape[1] : 1;
    const struct piece whole = {
        .part = CHECKPOINT_WEIGHTS, .name = q->name, .dims = q->dims, .shape = {q->shape[0], q->shape[1]}, .rows = q->shape[0],
        .cols = cols, .data = to, .ld = cols,
    };

    return checkpoint_load(ck, NULL, &whole, 1, e);
}

size_t peft_largest(const struct params *p)
{
    size_t most = 0;

    for (int i = 0; i < p->n; i++)
        most = p->v[i].n > most ? p->v[i].n : most;
    return most;
}

bool peft_expert_half(const struct params *p, int i, struct peft_half *of)
{
    for (int64_t layer = 0; layer < p->units - 2; layer++)
        for (int k = LORA_EXPERTS; k < LORA_TARGETS && p->layer[layer].at <= i && i < p->layer[layer + 1].at; k++)
            for (int64_t j = 0; j < p->experts; j++) {
                int a = params_expert(p, layer, j, lora_param(lora_weight(k)));

                *of = (struct peft_half){layer, j, lora_weight(k), i == a + 1};
                if (a >= 0 && (i == a || of->b))
                    return true;
            }
    return false;
}

int peft_adapted(const struct params *p, int i, bool *b)
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

void peft_name(char name[192], const struct hf_piece *piece, char half)
{
    int n = (int)(strlen(piece->name) - strlen(".weight"));

    snprintf(name, 192, "base_model.model.%.*s.lora_%c.weight", n, piece->name, half);
}

void peft_experts_name(char name[192], int64_t layer, bool inner, char half)
{
    const char *base = inner ? "base_layer." : "";

    snprintf(name, 192, "base_model.model.model.layers.%" PRId64 ".mlp.experts.%slora_%c.weight", layer, base, half);
}
const char *peft_experts_target(enum layer_param w)
{
    return w == EXPERT_FC1_W ? "mlp.experts.gate_up_proj" : "mlp.experts.down_proj";
}

bool peft_experts_inner(const struct model_config *m, enum layer_param w)
{
    int64_t both = LORA_TARGET_EXPERTS;

    return w == EXPERT_FC1_W && (m->lora_targets & both) == both;
}

int peft_pieces(const struct model_config *m, const struct hf_family *family, const struct params *p, int w,
                          struct hf_piece piece[HF_PIECES])
{
    int n = hf_pieces(m, family, p, w, piece);

    for (int k = 0; k < n; k++)
        piece[k].at.turned = false;
    return n;
}

int peft_check_experts(const char *what, const struct model_config *m, const struct hf_family *family, const struct params *p,
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

void peft_keep_type(struct checkpoint_info *info, const struct checkpoint_info *of)
{
    info->n_args = 0;
    for (int i = 0; i < of->n_args && !info->n_args; i++)
        if (strcmp(of->args[i].name, MODEL_TYPE_ARG) == 0) {
            info->args = &of->args[i];
            info->n_args = 1;
        }
}

int peft_save(const struct params *p, const struct checkpoint_info *info, const char *dir, safetensors_data_fn *fn, void *arg,
                struct err *e)
{
    struct piece *v = malloc((size_t)p->n * PIECES_PER_PARAM * sizeof *v);
    int rc = v ? checkpoint_save_from(dir, info, v, params_pieces(p, CHECKPOINT_WEIGHTS, NULL, DTYPE_F32, v), fn, arg, e)
               : err_set(e, ERR_NOMEM, "out of memory");

    free(v);
    return rc;
}

int peft_module_end(const struct hf_piece *piece, int k, int n)
{
    int end = k + 1;

    while (end < n && strcmp(piece[end].name, piece[k].name) == 0)
        end++;
    return end;
}
