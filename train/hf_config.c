/* config.json, by the table of families. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/node.h"
#include "kernels/rope.h"
#include "train/hf.h"
#include "train/hf_family.h"

/* ---- reading ---- */

/* A config.json on its way into a model. */
struct reading {
    const char *what; /* the file, for messages */
    const struct node *root;
    const struct hf_family *family;
    struct model_config *m;
};

/* A size; fallback where it is absent or null; fallback < 0: it is needed. */
static int size_of(const char *what, const struct node *root, const char *key, int64_t fallback, int64_t *v, struct err *e)
{
    const struct node *n = node_get(root, key);

    if (!n || n->type == NODE_NULL) {
        *v = fallback;
        return fallback < 0 ? err_set(e, ERR_FORMAT, "%s: no %s", what, key) : 0;
    }
    if (n->type != NODE_INT || n->integer < 1 || n->integer > 1 << 30)
        return err_set(e, ERR_FORMAT, "%s: %s is not a size", what, key);
    *v = n->integer;
    return 0;
}

/* A positive number. */
static int number_of(const char *what, const struct node *root, const char *key, double fallback, double *v, struct err *e)
{
    const struct node *n = node_get(root, key);

    *v = fallback;
    if (!n || n->type == NODE_NULL)
        return 0;
    if ((n->type != NODE_NUM && n->type != NODE_INT) || !(n->num > 0) || !(n->num < 1e18))
        return err_set(e, ERR_FORMAT, "%s: %s is not a positive number", what, key);
    *v = n->num;
    return 0;
}

/* The row of a family that has a key, or its other name; NULL: none has. */
static const struct hf_key *row_of(const struct hf_family *f, const char *key)
{
    for (const struct hf_key *k = f->keys; k->key; k++)
        if (strcmp(k->key, key) == 0 || (k->also && strcmp(k->also, key) == 0))
            return k;
    return NULL;
}

/* The kind of MLP that has the activation which a key says, gated as the one of the family, which it is without the key. */
static int read_act(const struct reading *r, const struct hf_key *k, const struct node *n, struct err *e)
{
    bool gated = mlp_kinds[r->m->mlp].gated;
    int i = 0;

    if (n->type != NODE_STR)
        return err_set(e, ERR_FORMAT, "%s: %s is not a word", r->what, k->key);
    if (k->value && span_is(n->str, k->value))
        return 0;
    while (i < MLP_KINDS_N && (mlp_kinds[i].gated != gated || !*mlp_kinds[i].hf[0] ||
                               !(span_is(n->str, mlp_kinds[i].hf[0]) || span_is(n->str, mlp_kinds[i].hf[1]))))
        i++;
    if (i == MLP_KINDS_N)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s '%s' cannot be done here%s", r->what, k->key, n->str.p,
                       gated ? " with a gate" : "");
    r->m->mlp = i;
    return 0;
}

/* Numbers of a rope_type, in r or, some of them, at the root. */
static int parse_scaling(const char *what, const struct node *root, const struct node *r, struct model_config *m, struct err *e)
{
    const struct node *outside = node_get(root, "original_max_position_embeddings");
    double scale, all;

    m->rope_scaling = true;
    if (m->rope_kind == ROPE_LLAMA3 || m->rope_kind == ROPE_YARN)
        TRY(size_of(what, outside ? root : r, "original_max_position_embeddings", m->positions, &m->rope_original, e));
    TRY(number_of(what, r, "factor", m->rope_kind == ROPE_YARN ? (double)m->positions / (double)m->rope_original : 0,
                  &m->rope_factor, e));
    if (m->rope_factor < 1)
        return err_set(e, ERR_FORMAT, "%s: rope_type '%s' without a factor of at least 1", what, hf_rope_name[m->rope_kind]);
    if (m->rope_kind == ROPE_LLAMA3) {
        TRY(number_of(what, r, "low_freq_factor", 1, &m->rope_low, e));
        return number_of(what, r, "high_freq_factor", 4, &m->rope_high, e);
    }
    if (m->rope_kind != ROPE_YARN && m->latent && node_get(r, "mscale_all_dim"))
        return err_set(e, ERR_UNSUPPORTED, "%s: mscale_all_dim without yarn cannot be done here", what);
    if (m->rope_kind != ROPE_YARN)
        return 0;
    TRY(number_of(what, r, "beta_slow", 1, &m->rope_low, e));
    TRY(number_of(what, r, "beta_fast", 32, &m->rope_high, e));
    TRY(number_of(what, r, "mscale", 0, &scale, e));
    TRY(number_of(what, r, "mscale_all_dim", 0, &all, e));
    if (m->latent) {
        m->mscale = scale;
        m->mscale_all = all;
    }
    if (scale == 0 || all == 0) {
        scale = 1;
        all = 0;
    }
    m->rope_exact = !node_bool(r, "truncate", true);
    return number_of(what, r, "attention_factor",
                     hf_yarn_attention(m->rope_factor, scale) / hf_yarn_attention(m->rope_factor, all),
                     &m->rope_attention, e);
}

/* The row of a kind; NULL: the family has none. */
static const struct hf_key *row_of_kind(const struct hf_family *f, enum hf_kind kind)
{
    for (const struct hf_key *k = f->keys; k->key; k++)
        if (k->kind == kind)
            return k;
    return NULL;
}

/* A key of rope_parameters or rope_scaling that is not known would be another rotation. */
static int check_rope_keys(const struct reading *r, const struct node *rope, struct err *e)
{
    static const char known[] = " rope_theta rope_type type factor original_max_position_embeddings low_freq_factor"
                                " high_freq_factor beta_fast beta_slow mscale mscale_all_dim truncate attention_factor"
                                " partial_rotary_factor ";

    for (const struct node *c = rope && rope->type == NODE_MAP ? rope->child : NULL; c; c = c->next) {
        if (c->type == NODE_MAP)
            return err_set(e, ERR_UNSUPPORTED, "%s: rotary angles that differ from layer to layer cannot be done here", r->what);
        if (c->type != NODE_NULL && !hf_listed(known, c->key.p))
            return err_set(e, ERR_UNSUPPORTED, "%s: rotary angles with %s cannot be done here", r->what, c->key.p);
    }
    return 0;
}

/* rope_parameters as transformers 5 writes it; before that rope_scaling. */
static const struct node *rope_of(const struct reading *r)
{
    const struct node *n = node_get(r->root, "rope_parameters"), *full = node_get(n, "full_attention");

    if (full && row_of_kind(r->family, HF_LOCAL))
        return full; /* transformers 5, where layers with a window have another */
    return n && n->type == NODE_MAP ? n : node_get(r->root, "rope_scaling");
}

static int read_share(const struct reading *r, const struct hf_key *k, struct err *e)
{
    double share;

    TRY(number_of(r->what, r->root, k->key, k->fallback, &share, e));
    TRY(number_of(r->what, rope_of(r), "partial_rotary_factor", share, &share, e));
    if (k->value && share != 1)
        return err_set(e, ERR_UNSUPPORTED, "%s: partial_rotary_factor: transformers turns whole heads in such a model",
                       r->what);
    r->m->rotary_percent = share;
    return 0;
}

/* The base of rotary angles, under the row's key or with how they are scaled. */
static int read_rope(const struct reading *r, const struct hf_key *k, struct err *e)
{
    const struct node *rope = rope_of(r);
    struct model_config *m = r->m;
    const char *type;

    TRY(number_of(r->what, r->root, k->key, k->fallback, &m->rotary_base, e));
    TRY(number_of(r->what, rope, "rope_theta", m->rotary_base, &m->rotary_base, e));
    if (m->rotary_base < 0)
        return err_set(e, ERR_FORMAT, "%s: no %s", r->what, k->key);
    type = node_str(rope, "rope_type");
    if (!type)
        type = node_str(rope, "type");
    while (type && strcmp(type, "default") != 0 && m->rope_kind < HF_ROPES && strcmp(type, hf_rope_name[m->rope_kind]) != 0)
        m->rope_kind++;
    if (m->rope_kind == HF_ROPES || (r->family->plain_rope && type && strcmp(type, "default") != 0))
        return err_set(e, ERR_UNSUPPORTED, "%s: rope_type '%s' cannot be done here", r->what, type);
    TRY(check_rope_keys(r, rope, e));
    if (r->family->scaled_rope && !type)
        return err_set(e, ERR_UNSUPPORTED, "%s: no rope_scaling, without which transformers scales angles here", r->what);
    return type && strcmp(type, "default") != 0 ? parse_scaling(r->what, r->root, rope, m, e) : 0;
}

/* The base of rotary angles of layers with a window, where it is another one or the others are scaled. */
static int read_local(const struct reading *r, const struct hf_key *k, struct err *e)
{
    const struct node *rope = node_get(node_get(r->root, "rope_parameters"), "sliding_attention");
    const char *type = node_str(rope, "rope_type");
    struct model_config *m = r->m;

    if (type && strcmp(type, "default") != 0)
        return err_set(e, ERR_UNSUPPORTED, "%s: scaled rotary angles of layers with a window cannot be done here", r->what);
    TRY(number_of(r->what, r->root, k->key, k->fallback, &m->rotary_base_local, e));
    TRY(number_of(r->what, rope, "rope_theta", m->rotary_base_local, &m->rotary_base_local, e));
    if (!m->window || (m->rotary_base_local == m->rotary_base && !m->rope_scaling))
        m->rotary_base_local = 0;
    return 0;
}

/* The n of which the last of every n layers is another than those before, by a function that says it of each; 0: none is, -1: it
 * is otherwise. */
typedef int layer_fn(const struct reading *r, const struct hf_key *k, int64_t layer); /* 1: another; 0: not; -1: cannot be */
static int64_t every_of(const struct reading *r, const struct hf_key *k, layer_fn *other)
{
    int64_t n = 0;

    for (int64_t i = 0; i < r->m->layers && !n; i++)
        n = other(r, k, i) == 1 ? i + 1 : 0;
    for (int64_t i = 0; i < r->m->layers; i++)
        if (other(r, k, i) != (n && (i + 1) % n == 0))
            return -1;
    return n;
}

static const struct node *item(const struct node *list, int64_t i)
{
    const struct node *n = list && list->type == NODE_LIST ? list->child : NULL;

    while (n && i--)
        n = n->next;
    return n;
}

/* Whether a layer sees all: by layer_types, by max_window_layers, by sliding_window_pattern or as the family has it. */
static int sees_all(const struct reading *r, const struct hf_key *k, int64_t layer)
{
    const struct node *types = node_get(r->root, "layer_types"), *n = item(types, layer);
    int64_t first = node_int(r->root, "max_window_layers", 0), every = node_int(r->root, "sliding_window_pattern", k->on);

    if (types && types->type == NODE_LIST)
        return n && n->type == NODE_STR ? span_is(n->str, "full_attention") : -1; /* check_types: else it slides */
    if (row_of_kind(r->family, HF_SLIDES))
        return layer < first;
    return every > 0 && (layer + 1) % every == 0;
}

/* No window, where attention of some layers is another than a window and all of the sequence. */
static int check_types(const struct reading *r, struct err *e)
{
    const struct node *types = node_get(r->root, "layer_types");

    for (const struct node *t = types ? types->child : NULL; t; t = t->next)
        if (t->type != NODE_STR || !(span_is(t->str, "full_attention") || span_is(t->str, "sliding_attention")))
            return err_set(e, ERR_UNSUPPORTED, "%s: layer_types has another than full_attention and sliding_attention", r->what);
    return 0;
}

/* A window that all layers have, or all but the last of every n.  Within a window's length it makes no difference: where other
 * layers have it, that is how long the model is here. */
static int read_window(const struct reading *r, const struct hf_key *k, struct err *e)
{
    bool slides = !row_of_kind(r->family, HF_SLIDES) || node_bool(r->root, "use_sliding_window", false);
    struct model_config *m = r->m;
    int64_t window = 0, every;

    TRY(check_types(r, e));
    if (slides)
        TRY(size_of(r->what, r->root, k->key, node_get(r->root, k->key) ? 0 : (int64_t)k->fallback, &window, e));
    every = every_of(r, k, sees_all);
    if (!window || every == 1 || (window >= m->positions && !row_of_kind(r->family, HF_LOCAL)))
        return 0;
    if (every >= 0) {
        m->window = window - 1;
        m->window_freq = every;
        return m->window ? 0 : err_set(e, ERR_UNSUPPORTED, "%s: %s of 1 cannot be done here", r->what, k->key);
    }
    if (window >= m->positions)
        return 0;
    log_msg(LOG_WARN, "%s: %s of some layers: sequences of %" PRId64 " tokens at most, where it makes no difference, not %"
            PRId64, r->what, k->key, window, m->positions);
    m->positions = window;
    return 0;
}

static int stands_still(const struct reading *r, const struct hf_key *k, int64_t layer)
{
    const struct node *list = node_get(r->root, k->key), *n = item(list, layer);
    int64_t every = node_int(r->root, k->also, (int64_t)k->fallback);

    if (list && list->type == NODE_LIST)
        return n && n->type == NODE_INT ? !n->integer : -1;
    return every > 0 && (layer + 1) % every == 0;
}

static int read_no_rope(const struct reading *r, const struct hf_key *k, struct err *e)
{
    int64_t every = every_of(r, k, stands_still);

    if (every == 1)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s: no layer turns", r->what, k->key);
    if (every < 0)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s: not the last of every so many layers", r->what, k->key);
    r->m->no_rope_freq = every;
    return 0;
}

/* What queries times keys are multiplied with; 0 where it is what it is elsewhere. */
static int read_scale(const struct reading *r, const struct hf_key *k, struct err *e)
{
    struct model_config *m = r->m;
    int64_t d = m->head_dim ? m->head_dim : m->hidden / m->heads;
    double v;

    TRY(number_of(r->what, r->root, k->key, k->fallback, &v, e));
    m->softmax_scale = k->on ? 1 / sqrt(v) : v;
    if (fabs(m->softmax_scale * sqrt((double)d) - 1) < 1e-6)
        m->softmax_scale = 0;
    return 0;
}

static int read_dense(const struct reading *r, const struct hf_key *k, struct err *e)
{
    struct model_config *m = r->m;
    int64_t n = node_int(r->root, k->key, (int64_t)k->fallback);

    if (n < 0 || n >= m->layers)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s: %" PRId64 " of %" PRId64 " layers", r->what, k->key, n, m->layers);
    if (n)
        snprintf(m->moe_list, sizeof m->moe_list, "%" PRId64 "x0,%" PRId64 "x1", n, m->layers - n);
    return 0;
}

static int read_groups(const struct reading *r, const struct hf_key *k, struct err *e)
{
    struct model_config *m = r->m;
    int64_t n = 1, of = 1;

    TRY(size_of(r->what, r->root, k->key, (int64_t)k->fallback, &n, e));
    TRY(size_of(r->what, r->root, k->also, (int64_t)k->fallback, &of, e));
    if (n == 1)
        return 0;
    if (m->topk != 2 * of)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s: groups of experts are judged by their two best, which is so here with"
                       " num_experts_per_tok of twice %s alone", r->what, k->key, k->also);
    m->router_groups = n;
    m->router_group_topk = of;
    return 0;
}

static int read_method(const struct reading *r, const struct hf_key *k, struct err *e)
{
    struct model_config *m = r->m;
    const char *method = node_str(r->root, k->key);

    if (!method || strcmp(method, "greedy") == 0)
        return 0;
    if (strcmp(method, "group_limited_greedy") != 0)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s '%s' cannot be done here", r->what, k->key, method);
    m->router_group_limited = true;
    TRY(size_of(r->what, r->root, "n_group", -1, &m->router_groups, e));
    return size_of(r->what, r->root, "topk_group", -1, &m->router_group_topk, e);
}

/* Numbers that are written otherwise and mean the same: 1 and 1.0. */
static bool is_value(const struct node *n, const char *value)
{
    char *end;
    double v = strtod(value, &end);

    if (n->type == NODE_STR)
        return value[0] == '"' && strlen(value) == n->str.n + 2 && memcmp(value + 1, n->str.p, n->str.n) == 0;
    if (n->type == NODE_LIST)
        return strcmp(value, "[]") == 0 && !n->child;
    if (n->type == NODE_BOOL)
        return strcmp(value, n->integer ? "true" : "false") == 0;
    return (n->type == NODE_INT || n->type == NODE_NUM) && end != value && !*end && n->num == v;
}

static int read_flag(const struct reading *r, const struct hf_key *k, const struct node *n, struct err *e)
{
    struct model_config *m = r->m;
    bool v = n ? n->integer : k->fallback != 0;

    if (n && n->type != NODE_BOOL)
        return err_set(e, ERR_FORMAT, "%s: %s is neither true nor false", r->what, k->key);
    if (k->kind == HF_SWITCH)
        *(int *)hf_field(m, k) = v ? k->on : 0;
    else if (k->kind == HF_BIAS_QKV)
        m->qkv_bias = v;
    else if (k->kind == HF_BIAS_ATTENTION)
        m->qkv_bias = m->proj_bias = v;
    else if (k->kind == HF_BIAS_MLP)
        m->mlp_bias = v;
    else
        *(bool *)hf_field(m, k) = v != (k->kind == HF_NOT);
    return 0;
}

static int read_number(const struct reading *r, const struct hf_key *k, const char *key, struct err *e)
{
    double v;

    TRY(number_of(r->what, r->root, key, k->fallback, &v, e));
    if (v < 0)
        return err_set(e, ERR_FORMAT, "%s: no %s", r->what, k->key);
    *(double *)hf_field(r->m, k) = k->kind == HF_INVERSE ? 1 / v : v;
    return 0;
}

static int read_key(const struct reading *r, const struct hf_key *k, struct err *e)
{
    const char *key = k->also && !node_get(r->root, k->key) ? k->also : k->key;
    const struct node *n = node_get(r->root, key);
    int64_t width = 0;

    if (n && n->type == NODE_NULL)
        n = NULL;
    switch (k->kind) {
    case HF_SIZE:
        return size_of(r->what, r->root, n ? key : k->key, (int64_t)k->fallback, hf_field(r->m, k), e);
    case HF_WIDTH:
        TRY(size_of(r->what, r->root, key, (int64_t)k->fallback, &width, e));
        r->m->ffn = r->m->moe_ffn = width;
        return 0;
    case HF_NUM:
    case HF_INVERSE:
        return read_number(r, k, key, e);
    case HF_ACT:
        return n ? read_act(r, k, n, e) : 0;
    case HF_THETA:
        return read_rope(r, k, e);
    case HF_SHARE:
        return read_share(r, k, e);
    case HF_CAP:
        return node_get(r->root, k->key) && !n ? 0 : number_of(r->what, r->root, key, k->fallback, hf_field(r->m, k), e);
    case HF_SCALE:
        return read_scale(r, k, e);
    case HF_LOCAL:
        return read_local(r, k, e);
    case HF_NO_ROPE:
        return read_no_rope(r, k, e);
    case HF_WINDOW:
        return read_window(r, k, e);
    case HF_DENSE:
        return read_dense(r, k, e);
    case HF_SHARED:
        TRY(size_of(r->what, r->root, key, (int64_t)k->fallback, &width, e));
        r->m->moe_shared = width * r->m->moe_ffn;
        return 0;
    case HF_GROUPS:
        return read_groups(r, k, e);
    case HF_METHOD:
        return read_method(r, k, e);
    case HF_NORMED:
        return node_bool(r->root, key, k->fallback != 0) == (r->m->topk > 1) ? 0 :
               err_set(e, ERR_UNSUPPORTED, "%s: %s: with sigmoids several experts' weights are divided by their sum here, that of"
                       " one is not", r->what, key);
    case HF_IS:
        return !n || is_value(n, k->value) ? 0 : err_set(e, ERR_UNSUPPORTED, "%s: %s: in a %s it can only be %s here", r->what,
                                                         key, r->family->type, k->value);
    case HF_PART:
    case HF_LEFT:
    case HF_LAYERS:
    case HF_SLIDES:
        return 0;
    default:
        return read_flag(r, k, n, e);
    }
}

/* Every key is one whose meaning is known: any other could be of another model. */
static int check_keys(const struct reading *r, struct err *e)
{
    for (const struct node *n = r->root->child; n; n = n->next)
        if (n->type != NODE_NULL && strcmp(n->key.p, "vocab_size") != 0 && !hf_key_idle(n->key.p) &&
            !row_of(r->family, n->key.p))
            return err_set(e, ERR_UNSUPPORTED, "%s: '%s' is no key of a %s that is known here, and may change the model", r->what,
                           n->key.p, r->family->type);
    return 0;
}

static int find_family(struct reading *r, struct err *e)
{
    const char *type = node_str(r->root, "model_type");
    const struct node *quantized = node_get(r->root, "quantization_config");
    char list[256] = "";
    size_t used = 0;

    r->family = type ? hf_family_named(type) : NULL;
    for (int i = 0; i < hf_families_n && !r->family && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 hf_families[i].type);
    if (!r->family)
        return err_set(e, type ? ERR_UNSUPPORTED : ERR_FORMAT, "%s: model_type '%s' is not one of %s", r->what, type ? type : "",
                       list);
    if (quantized && quantized->type != NODE_NULL)
        return err_set(e, ERR_UNSUPPORTED, "%s: quantization_config: quantized weights cannot be read here (of MXFP4 transformers"
                       " writes whole ones: from_pretrained with quantization_config=Mxfp4Config(dequantize=True), then"
                       " save_pretrained)",
                       r->what);
    return 0;
}

/* Sizes first, by which others go; rotary angles by all positions, which a window may make fewer. */
static int pass_of(const struct hf_key *k)
{
    return k->kind == HF_SIZE ? 0 : k->kind == HF_WINDOW ? 2 : k->kind == HF_LOCAL ? 3 : 1;
}

static int read_root(struct reading *r, struct err *e)
{
    if (r->root->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "%s: no object", r->what);
    TRY(find_family(r, e));
    *r->m = r->family->base;
    r->m->init_std = 0.02;
    TRY(size_of(r->what, r->root, "vocab_size", -1, &r->m->vocab, e));
    for (int pass = 0; pass < 4; pass++)
        for (const struct hf_key *k = r->family->keys; k->key; k++)
            if (pass_of(k) == pass)
                TRY(read_key(r, k, e));
    return check_keys(r, e);
}

int hf_config_parse(const char *what, struct span text, int64_t divisor, struct model_config *m,
                    const struct hf_family **family, struct err *e)
{
    struct arena a = {.max = 64 << 20};
    struct reading r = {.what = what, .m = m};
    struct node *root;
    int rc;

    memset(m, 0, sizeof *m);
    rc = node_parse_json(&a, text, &root, e);
    if (rc < 0) {
        arena_free(&a);
        return err_wrap(e, "%s", what);
    }
    r.root = root;
    rc = read_root(&r, e);
    *family = r.family;
    m->seq = m->positions;
    if (rc == 0 && r.family->embeds_root)
        m->embedding_scale = sqrt((double)m->hidden);
    if (rc == 0 && model_config_check(m, divisor, e) < 0)
        rc = err_wrap(e, "%s", what);
    arena_free(&a);
    return rc;
}
