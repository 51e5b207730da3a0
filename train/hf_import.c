/* A model of transformers as a checkpoint of ours. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "train/hf.h"
#include "train/hf_family.h"

enum { CONFIG_MAX = 1 << 24 };

struct import {
    const char *from;
    struct model_config model;
    const struct hf_family *family;
    struct hf_files *files;
    struct params params;
    float *room; /* of the largest parameter */
    bool *taken; /* of each tensor in the files */
};

/* The name without the prefix that GPT-2's first files lack. */
static const char *short_name(const char *name)
{
    static const char prefix[] = "transformer.";

    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static int find(const struct import *m, const char *name)
{
    int i = hf_files_find(m->files, name);

    return i >= 0 ? i : hf_files_find(m->files, short_name(name));
}

static int read_config(struct import *m, int64_t seq, int64_t divisor, struct err *e)
{
    struct buf text = {0};
    char path[4352];
    int rc;

    snprintf(path, sizeof path, "%s/config.json", m->from);
    rc = file_read_all(path, CONFIG_MAX, &text, e);
    if (rc == 0)
        rc = hf_config_parse(path, buf_span(&text), divisor, &m->model, &m->family, e);
    buf_free(&text);
    if (rc == 0 && seq > m->model.positions)
        rc = err_set(e, ERR_ARG, "--seq-length: %" PRId64 " is more than the %" PRId64 " positions of the model", seq,
                     m->model.positions);
    if (seq)
        m->model.seq = seq;
    return rc;
}

static int check_piece(struct import *m, const struct param *q, const struct hf_piece *p, struct err *e)
{
    const char *file;
    int at = find(m, p->name);
    const struct safetensor *t = hf_files_tensor(m->files, at, &file);
    int64_t sizes[3] = {p->members, p->at.of, q->shape[1]}, *want = sizes + !p->members;
    int dims = q->dims + (p->members > 0);

    if (!t)
        return err_set(e, ERR_FORMAT, "%s: no tensor '%s'", m->from, p->name);
    m->taken[at] = true;
    if (p->at.turned) {
        sizes[1] = q->shape[1];
        sizes[2] = p->at.of;
    }
    if (t->dims == dims && memcmp(t->shape, want, (size_t)dims * sizeof *want) == 0)
        return 0;
    if (t->dims > 2 || dims != 2)
        return err_set(e, ERR_FORMAT, "%s/%s: '%s' has %d dimensions and %" PRId64 " rows, not %d and %" PRId64, m->from,
                       file, p->name, t->dims, t->dims ? t->shape[0] : 0, dims, want[0]);
    return err_set(e, ERR_FORMAT, "%s/%s: '%s' is %" PRId64 " x %" PRId64 ", not %" PRId64 " x %" PRId64, m->from, file,
                   p->name, t->shape[0], t->dims == 2 ? t->shape[1] : 1, want[0], want[1]);
}

/* Whether a tensor is of the layer behind the last, and may be left out. */
static bool is_next(const struct import *m, const struct safetensor *t)
{
    char layer[64];

    snprintf(layer, sizeof layer, "model.layers.%" PRId64 ".", m->model.layers);
    return m->family->next_layer && span_starts(t->name, layer);
}

/* A tensor that nothing takes would be a model that we compute wrongly. */
static int check_left(const struct import *m, const struct safetensor *t, const char *file, struct err *e)
{
    static const char *const ignored[] = {".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias",
                                           ".rotary_emb.inv_freq"};

    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (span_ends(t->name, ignored[i]))
            return 0;
    if (!m->model.untie && hf_is_output(m->family, t->name))
        return 0; /* the word embedding once more */
    return err_set(e, ERR_UNSUPPORTED, "%s/%s: '%s' has no place in the model of config.json", m->from, file, t->name.p);
}

/* Everything that can be wrong, before anything is written. */
static int check(struct import *m, struct err *e)
{
    struct hf_piece p[HF_PIECES];
    const struct safetensor *t;
    const char *file;
    size_t most = 0;
    int tensors = 0, next = 0;

    while (hf_files_tensor(m->files, tensors, &file))
        tensors++;
    m->taken = calloc((size_t)tensors + 1, sizeof *m->taken);
    if (!m->taken)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < m->params.n; i++) {
        int n = hf_pieces(&m->model, m->family, &m->params, i, p);

        if (!n)
            return err_set(e, ERR_UNSUPPORTED, "%s: such a model has no '%s' in transformers", m->from, m->params.v[i].name);
        for (int k = 0; k < n; k++)
            TRY(check_piece(m, &m->params.v[i], &p[k], e));
        if (m->params.v[i].n > most)
            most = m->params.v[i].n;
    }
    for (int i = 0; (t = hf_files_tensor(m->files, i, &file)); i++)
        if (!m->taken[i] && is_next(m, t))
            next++;
        else if (!m->taken[i])
            TRY(check_left(m, t, file, e));
    if (next)
        log_msg(LOG_WARN, "%s: layer %" PRId64 ", which predicts a further token, is left out", m->from, m->model.layers);
    m->room = malloc(most * sizeof *m->room);
    return m->room ? 0 : err_set(e, ERR_NOMEM, "out of memory for a tensor of %zu MiB", most * sizeof *m->room >> 20);
}

/* A parameter: its pieces, one below the other; rows of padding are 0. */
static int give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct import *m = arg;
    const struct param *q = &m->params.v[i];
    int64_t cols = q->dims == 2 ? q->shape[1] : 1, row = 0;
    struct hf_piece p[HF_PIECES];
    int n = hf_pieces(&m->model, m->family, &m->params, i, p);

    (void)at; /* all of it at once */
    for (int k = 0; k < n; k++) {
        const char *file;
        const struct safetensor *t = hf_files_tensor(m->files, find(m, p[k].name), &file);
        const struct file_map of = {(const uint8_t *)t->data.p, t->data.n};
        size_t bytes = p[k].members ? t->data.n / (size_t)p[k].members : t->data.n;
        const char *from = t->data.p + (size_t)p[k].member * bytes;

        if (file_map_fetch(&of, from, bytes, e) < 0 ||
            hf_widen(m->room + p[k].row * cols, from, t->dtype, (struct hf_shape){p[k].rows, cols}, &p[k].at, e) < 0)
            return err_wrap(e, "%s/%s: '%s'", m->from, file, p[k].name);
        file_map_drop(&of, from, bytes);
        row = p[k].row + p[k].rows;
    }
    memset(m->room + row * cols, 0, (size_t)((q->shape[0] - row) * cols) * sizeof *m->room);
    *data = (struct span){(const char *)m->room, q->n * sizeof *m->room};
    return 0;
}

int hf_import(const char *from, const char *dir, int64_t seq, int64_t divisor, struct err *e)
{
    struct import m = {.from = from};
    struct checkpoint_arg as = {.name = MODEL_TYPE_ARG};
    struct checkpoint_info info = {.args = &as, .n_args = 1};
    struct piece *v = NULL;
    int rc = read_config(&m, seq, divisor, e);

    if (rc == 0)
        rc = hf_files_open(&m.files, from, e);
    if (rc == 0)
        rc = hf_params_init(&m.params, &m.model, e);
    if (rc == 0)
        rc = check(&m, e);
    info.model = m.model;
    as.text = rc == 0 ? m.family->type : "";
    if (rc == 0 && !(v = malloc((size_t)m.params.n * PIECES_PER_PARAM * sizeof *v)))
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = checkpoint_save_from(dir, &info, v, params_pieces(&m.params, CHECKPOINT_WEIGHTS, NULL, DTYPE_F32, v), give, &m, e);
    free(v);
    free(m.room);
    free(m.taken);
    params_free(&m.params);
    hf_files_close(m.files);
    return rc;
}
