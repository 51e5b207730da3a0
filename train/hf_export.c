/* A checkpoint of ours as a model of transformers. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "train/hf.h"
#include "train/hf_family.h"

enum { TOKENIZER_MAX = 1 << 28, STACKED = 4 };

/* Where a piece of a tensor of theirs comes from. */
struct source {
    int tensor, number; /* in their order */
    int param;
    struct hf_piece piece;
};
/* The pieces that make up a tensor, and the file that it goes to. */
struct made_of {
    int first, n, shard;
};

struct export {
    const struct checkpoint *ck;
    const struct model_config *model;
    const struct hf_family *family;
    struct params params;
    struct arena arena;
    struct safetensor *v; /* n */
    struct made_of *of;
    struct source *source; /* n_sources */
    int n, n_sources, shards, first; /* first: of the shard being written */
    size_t used; /* bytes of the last shard */
    const struct hf_written *as;
    void *room;
    float *ours; /* a piece in fp32, as it stands in the checkpoint */
};

static const char *dtype_of(const struct export *x, const struct hf_piece *p)
{
    return p->fp32 ? "F32" : x->as->dtype;
}

/* A tensor that begins with piece p of parameter q. */
static int begin_tensor(struct export *x, const struct param *q, const struct hf_piece *p, struct err *e)
{
    struct safetensor *t = &x->v[x->n];
    int64_t cols = q->dims == 2 ? q->shape[1] : 1;

    t->name = arena_dup(&x->arena, span_of(p->name));
    if (!t->name.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    t->dtype = dtype_of(x, p);
    t->dims = q->dims;
    t->shape[0] = p->at.turned ? cols : p->at.of;
    t->shape[1] = p->at.turned ? p->at.of : cols;
    t->data.n = (size_t)(p->at.of * cols) * safetensors_size(t->dtype);
    if (p->members) {
        memmove(t->shape + 1, t->shape, 2 * sizeof *t->shape);
        t->shape[0] = p->members;
        t->dims++;
        t->data.n *= (size_t)p->members;
    }
    if (x->used && x->used + t->data.n > (size_t)x->as->shard) {
        x->shards++;
        x->used = 0;
    }
    x->used += t->data.n;
    x->of[x->n++] = (struct made_of){0, 0, x->shards};
    return 0;
}

/* The number of the tensor that a piece is of, which it may begin.  Those that experts share are a few, of all of them in
 * turn. */
static int tensor_of(struct export *x, const struct param *q, const struct hf_piece *p, int *tensor, struct err *e)
{
    int back = p->members ? STACKED : 1;

    for (*tensor = x->n - 1; *tensor >= 0 && *tensor >= x->n - back; --*tensor)
        if (span_is(x->v[*tensor].name, p->name))
            return 0;
    *tensor = x->n;
    return begin_tensor(x, q, p, e);
}

static int by_tensor(const void *a, const void *b)
{
    const struct source *x = a, *y = b;

    return x->tensor != y->tensor ? (x->tensor > y->tensor) - (x->tensor < y->tensor) :
                                    (x->number > y->number) - (x->number < y->number);
}

/* The sources of a tensor one after the other. */
static void arrange(struct export *x)
{
    qsort(x->source, (size_t)x->n_sources, sizeof *x->source, by_tensor);
    for (int i = x->n_sources - 1; i >= 0; i--) {
        struct made_of *of = &x->of[x->source[i].tensor];

        of->first = i;
        of->n++;
    }
}

/* The tensors and what they are made of, in the order of our parameters. */
static int list(struct export *x, struct err *e)
{
    size_t size = safetensors_size(x->as->dtype), most = 0, whole = 0; /* elements of a piece, bytes of a tensor */

    x->v = arena_calloc(&x->arena, (size_t)x->params.n * HF_PIECES, sizeof *x->v);
    x->of = arena_calloc(&x->arena, (size_t)x->params.n * HF_PIECES, sizeof *x->of);
    x->source = arena_calloc(&x->arena, (size_t)x->params.n * HF_PIECES, sizeof *x->source);
    if (!x->v || !x->of || !x->source)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < x->params.n; i++) {
        const struct param *q = &x->params.v[i];
        struct hf_piece p[HF_PIECES];
        int n = hf_pieces(x->model, x->family, &x->params, i, p);

        if (!n)
            return err_set(e, ERR_UNSUPPORTED, "transformers' %s has no '%s'", x->family->type, q->name);
        for (int k = 0; k < n; k++) {
            int tensor;
            size_t elements = (size_t)(p[k].rows * (q->dims == 2 ? q->shape[1] : 1));

            TRY(tensor_of(x, q, &p[k], &tensor, e));
            x->source[x->n_sources] = (struct source){tensor, x->n_sources, i, p[k]};
            x->n_sources++;
            most = elements > most ? elements : most;
            whole = x->v[tensor].data.n > whole ? x->v[tensor].data.n : whole;
        }
    }
    arrange(x);
    x->shards++;
    x->room = malloc(whole);
    x->ours = malloc(most * sizeof *x->ours);
    return x->room && x->ours ? 0 : err_set(e, ERR_NOMEM, "out of memory for a tensor of %zu million elements",
                                            whole / size / 1000000);
}

static int give_piece(struct export *x, const struct source *s, struct err *e)
{
    const struct param *q = &x->params.v[s->param];
    const int64_t cols = q->dims == 2 ? q->shape[1] : 1;
    const struct piece ours = {
        .part = CHECKPOINT_WEIGHTS, .name = q->name, .dims = q->dims, .shape = {q->shape[0], q->shape[1]},
        .row = s->piece.row, .rows = s->piece.rows, .cols = cols, .data = x->ours, .ld = cols,
    };

    const char *dtype = dtype_of(x, &s->piece);
    size_t skip = (size_t)(s->piece.member * s->piece.at.of * cols) * safetensors_size(dtype);

    TRY(checkpoint_load(x->ck, NULL, &ours, 1, e));
    if (hf_narrow((char *)x->room + skip, x->ours, dtype, (struct hf_shape){s->piece.rows, cols}, &s->piece.at, e) < 0)
        return err_wrap(e, "'%s'", s->piece.name);
    return 0;
}

static int give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct export *x = arg;
    const struct made_of *of = &x->of[x->first + i];

    (void)at; /* all of it at once */
    for (int k = of->first; k < of->first + of->n; k++)
        TRY(give_piece(x, &x->source[k], e));
    *data = (struct span){x->room, x->v[x->first + i].data.n};
    return 0;
}

static void shard_name(const struct export *x, int shard, char *name, size_t size)
{
    if (x->shards == 1)
        snprintf(name, size, "model.safetensors");
    else
        snprintf(name, size, "model-%05d-of-%05d.safetensors", shard + 1, x->shards);
}

static int write_shards(struct export *x, const char *to, struct file_group *g, struct err *e)
{
    char path[4352], name[64];
    uint64_t hash, bytes;
    int end;

    for (x->first = 0; x->first < x->n; x->first = end) {
        int shard = x->of[x->first].shard;

        for (end = x->first; end < x->n && x->of[end].shard == shard; end++)
            ;
        shard_name(x, shard, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", to, name);
        TRY(safetensors_write(g, path, x->v + x->first, end - x->first, "{\"format\":\"pt\"}", give, x, &hash, &bytes, e));
    }
    return 0;
}

static int put_index(const struct export *x, struct buf *b)
{
    uint64_t total = 0;
    char name[64];

    for (int i = 0; i < x->n; i++)
        total += x->v[i].data.n;
    TRY(buf_printf(b, "{\"metadata\":{\"total_size\":%" PRIu64 "},\"weight_map\":{", total));
    for (int i = 0; i < x->n; i++) {
        shard_name(x, x->of[i].shard, name, sizeof name);
        TRY(buf_printf(b, "%s\"%s\":\"%s\"", i ? "," : "", x->v[i].name.p, name));
    }
    return buf_puts(b, "}}\n");
}

/* config.json comes last: a folder without it was not finished. */
static int write_json(const struct export *x, const char *to, struct file_group *g, struct err *e)
{
    const char *name = strcmp(x->as->dtype, "F32") == 0 ? "float32" : strcmp(x->as->dtype, "BF16") == 0 ? "bfloat16" : "float16";
    struct buf b = {0};
    char path[4352];
    int rc = 0;

    if (x->shards > 1) {
        snprintf(path, sizeof path, "%s/model.safetensors.index.json", to);
        rc = put_index(x, &b) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : file_group_write(g, path, buf_span(&b), e);
        buf_clear(&b);
    }
    snprintf(path, sizeof path, "%s/config.json", to);
    if (rc == 0)
        rc = hf_config_put(&b, x->model, x->family, name) < 0 ? err_set(e, ERR_NOMEM, "out of memory")
                                                              : file_group_write(g, path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

int hf_make_empty(const char *to, const char *last, struct err *e)
{
    bool empty = true, unfinished = false;
    size_t n = strlen(last);
    struct dirent *f;
    DIR *d;

    if (mkdir(to, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return err_sys(e, ERR_IO, "cannot make folder '%s'", to);
    d = opendir(to);
    if (!d)
        return err_sys(e, ERR_IO, "cannot read folder '%s'", to);
    while ((f = readdir(d)))
        if (f->d_name[0] == '.' && span_ends(span_of(f->d_name), ".part")) /* what a killed run left of a file: base/file.h */
            unfinished = unfinished || (strncmp(f->d_name + 1, last, n) == 0 && f->d_name[1 + n] == '.');
        else if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
            empty = false;
    closedir(d);
    return empty || unfinished ? 0 : err_set(e, ERR_ARG, "folder '%s' is not empty", to);
}

/* ---- what stands beside the weights ---- */

static int copy_file(const char *from, const char *to, struct file_group *g, struct err *e)
{
    struct buf b = {0};
    int rc = file_read_all(from, TOKENIZER_MAX, &b, e);

    if (rc == 0)
        rc = file_group_write(g, to, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* A tokenizer's files, of a folder or one by itself, and how to generate. */
static int copy_tokenizer(const char *from, const char *to, struct file_group *g, struct err *e)
{
    static const char *const files[] = {
        "tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "chat_template.jinja", "chat_template.json", "generation_config.json",
    };
    char path[4352], out[4352];
    struct stat st;
    int n = 0;

    if (stat(from, &st) < 0)
        return err_sys(e, ERR_IO, "cannot read '%s'", from);
    if (!S_ISDIR(st.st_mode)) {
        snprintf(out, sizeof out, "%s/%s", to, strrchr(from, '/') ? strrchr(from, '/') + 1 : from);
        return copy_file(from, out, g, e);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", from, files[i]);
        snprintf(out, sizeof out, "%s/%s", to, files[i]);
        if (stat(path, &st) < 0)
            continue;
        TRY(copy_file(path, out, g, e));
        n++;
    }
    return n ? 0 : err_set(e, ERR_IO, "folder '%s' has no file of a tokenizer", from);
}

int hf_family_for(const struct checkpoint_info *info, const char *type, const struct hf_family **family, struct err *e)
{
    struct model_config m = info->model; /* but for adapters, which no family has */

    m.lora_rank = m.lora_targets = 0;
    m.lora_alpha = 0;
    m.lora_rslora = false;
    if (type && !(*family = hf_family_named(type)))
        return err_set(e, ERR_ARG, "--model-type: '%s' is not known", type);
    if (type)
        return hf_family_has(*family, &m, e);
    for (int i = 0; i < info->n_args; i++)
        if (strcmp(info->args[i].name, MODEL_TYPE_ARG) == 0 && (*family = hf_family_named(info->args[i].text)) &&
            hf_family_has(*family, &m, e) == 0)
            return 0;
    return hf_family_of(&m, family, e);
}

int hf_export(const struct checkpoint *ck, const char *to, const struct hf_written *as, struct err *e)
{
    struct export x = {.ck = ck, .model = &checkpoint_info(ck)->model, .as = as};
    struct file_group g = {0};
    int rc = hf_family_for(checkpoint_info(ck), as->type, &x.family, e);

    if (rc == 0)
        rc = hf_params_init(&x.params, x.model, e);
    if (rc == 0)
        rc = list(&x, e);
    if (rc == 0)
        rc = hf_make_empty(to, "config.json", e);
    if (rc == 0 && as->tokenizer)
        rc = copy_tokenizer(as->tokenizer, to, &g, e);
    if (rc == 0)
        rc = write_shards(&x, to, &g, e);
    if (rc == 0)
        rc = write_json(&x, to, &g, e);
    if (rc == 0)
        rc = file_group_commit(&g, e);
    file_group_abort(&g);
    free(x.room);
    free(x.ours);
    params_free(&x.params);
    arena_free(&x.arena);
    return rc;
}
