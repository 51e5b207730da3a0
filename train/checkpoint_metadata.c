/* metadata.json as it is read. */
#include <inttypes.h>
#include <stdio.h>

#include "base/node.h"
#include "indexed_dataset/history.h"
#include "train/checkpoint.h"

enum { FILES_MAX = 65536 };

/* False: it is of another type, or impossible. */
static bool parse_field(const struct model_field *f, const struct node *n, struct model_config *m)
{
    void *at = (char *)m + f->at;
    int w = 0;

    switch (f->type) {
    case FIELD_INT:
        *(int64_t *)at = n->integer;
        return n->type == NODE_INT && n->integer >= f->needed && n->integer <= 1 << 30;
    case FIELD_NUM:
        *(double *)at = n->num;
        return (n->type == NODE_NUM || n->type == NODE_INT) && n->num >= 0 && n->num <= 1e18;
    case FIELD_RUNS:
        snprintf(at, sizeof m->moe_list, "%s", n->type == NODE_STR ? n->str.p : "");
        return n->type == NODE_STR && n->str.n < sizeof m->moe_list;
    case FIELD_BOOL:
        *(bool *)at = n->integer != 0;
        return n->type == NODE_BOOL;
    default:
        while (f->words[w] && !(n->type == NODE_STR && span_is(n->str, f->words[w])))
            w++;
        *(int *)at = w;
        return f->words[w] != NULL;
    }
}

static int parse_model(const struct node *n, struct model_config *m, const char *what, struct err *e)
{
    int64_t padded;

    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        const struct node *v = node_get(n, f->key);

        if (v ? !parse_field(f, v, m) : f->needed)
            return err_set(e, ERR_FORMAT, "%s: model.%s is missing or impossible", what, f->key);
    }
    if (!node_get(n, "mlp_activation") && node_bool(n, "swiglu", false)) /* as version 0.1 said it */
        m->mlp = MLP_SWIGLU;
    padded = m->padded_vocab;
    if (model_config_check(m, 1, e) < 0 || padded < m->vocab)
        return err_set(e, ERR_FORMAT, "%s: the model makes no sense", what);
    m->padded_vocab = padded;
    return 0;
}

static int parse_args(struct arena *a, const struct node *n, struct checkpoint_info *info, struct err *e)
{
    const struct node *c = n && n->type == NODE_MAP ? n->child : NULL;

    info->args = arena_calloc(a, c ? (size_t)n->count : 1, sizeof *info->args);
    if (!info->args)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (; c; c = c->next)
        if (c->type == NODE_STR)
            info->args[info->n_args++] = (struct checkpoint_arg){.name = c->key.p, .text = c->str.p};
    return 0;
}

/* Held against what a history may say, and put as text again. */
static int parse_history(struct arena *a, const struct node *n, struct checkpoint_info *info, const char *what, struct err *e)
{
    struct history h = {0};
    struct buf text = {0};
    int rc = n ? history_parse(&h, n, what, e) : 0;

    if (rc == 0 && n) {
        if (history_put(&h, &text) == 0)
            info->history = arena_dup(a, buf_span(&text));
        rc = info->history.p ? 0 : err_set(e, ERR_NOMEM, "out of memory");
    }
    history_free(&h);
    buf_free(&text);
    return rc;
}

int checkpoint_parse_metadata(struct arena *a, const char *what, struct span text,
                              struct checkpoint_info *info, const struct node **files, struct err *e)
{
    struct node *root;
    const char *format;
    int64_t version;

    memset(info, 0, sizeof *info);
    TRY(checkpoint_check_seal(what, text, e));
    if (node_parse_json(a, text, &root, e) < 0)
        return err_wrap(e, "%s", what);
    format = node_str(root, "format");
    if (!format || strcmp(format, "quern-checkpoint") != 0)
        return err_set(e, ERR_FORMAT, "%s: not the metadata of a checkpoint", what);
    version = node_int(root, "version", 0);
    if (version < 1 || version > 2)
        return err_set(e, ERR_UNSUPPORTED, "%s: version %" PRId64 " is not known here", what, version);
    info->iteration = node_int(root, "iteration", -1);
    info->consumed = node_int(root, "consumed_samples", -1);
    info->updates = node_int(root, "updates", info->iteration); /* older ones took each step for one */
    if (info->iteration < 0 || info->consumed < 0 || info->updates < 0)
        return err_set(e, ERR_FORMAT, "%s: no iteration, consumed_samples or updates", what);
    TRY(parse_model(node_get(root, "model"), &info->model, what, e));
    TRY(parse_args(a, node_get(root, "args"), info, e));
    info->guard.loss = node_num(node_get(root, "running"), "loss", 0);
    info->guard.norm = node_num(node_get(root, "running"), "grad_norm", 0);
    info->guard.n = node_int(node_get(root, "running"), "steps", 0);
    TRY(parse_history(a, node_get(root, "history"), info, what, e));
    *files = node_get(root, "files");
    if (!*files || (*files)->type != NODE_LIST || (*files)->count < 1 || (*files)->count > FILES_MAX)
        return err_set(e, ERR_FORMAT, "%s: no files", what);
    return 0;
}
