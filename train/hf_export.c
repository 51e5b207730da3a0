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
#include "train/hf_copy.h"

/* Where a tensor of theirs comes from. */
struct source {
    int param;
    struct hf_piece piece;
    int shard;
};

struct export {
    const struct checkpoint *ck;
    const struct model_config *model;
    struct params params;
    struct arena arena;
    struct safetensor *v; /* n */
    struct source *source;
    int n, shards, first; /* first: of the shard being written */
    const char *dtype;
    void *room;
    float *ours; /* the same in fp32, as it stands in the checkpoint */
};

static int list(struct export *x, enum hf_family family, int64_t shard, struct err *e)
{
    size_t size = safetensors_size(x->dtype), most = 0, used = 0; /* most: elements */

    x->v = arena_calloc(&x->arena, (size_t)x->params.n * HF_PIECES, sizeof *x->v);
    x->source = arena_calloc(&x->arena, (size_t)x->params.n * HF_PIECES, sizeof *x->source);
    if (!x->v || !x->source)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < x->params.n; i++) {
        const struct param *q = &x->params.v[i];
        struct hf_piece p[HF_PIECES];
        int n = hf_pieces(x->model, family, &x->params, i, p);

        for (int k = 0; k < n; k++) {
            struct safetensor *t = &x->v[x->n];
            int64_t cols = q->dims == 2 ? q->shape[1] : 1;

            x->source[x->n] = (struct source){i, p[k], 0};
            t->name = arena_dup(&x->arena, span_of(p[k].name));
            if (!t->name.p)
                return err_set(e, ERR_NOMEM, "out of memory");
            t->dtype = x->dtype;
            t->dims = q->dims;
            t->shape[0] = p[k].transposed ? cols : p[k].rows;
            t->shape[1] = p[k].transposed ? p[k].rows : cols;
            t->data.n = (size_t)(p[k].rows * cols) * size;
            if (used && used + t->data.n > (size_t)shard) {
                x->shards++;
                used = 0;
            }
            used += t->data.n;
            most = t->data.n / size > most ? t->data.n / size : most;
            x->source[x->n++].shard = x->shards;
        }
    }
    x->shards++;
    x->room = malloc(most * size);
    x->ours = malloc(most * sizeof *x->ours);
    return x->room && x->ours ? 0 : err_set(e, ERR_NOMEM, "out of memory for a tensor of %zu million elements", most / 1000000);
}

static int give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct export *x = arg;
    const struct source *s = &x->source[x->first + i];
    const struct param *q = &x->params.v[s->param];
    const int64_t cols = q->dims == 2 ? q->shape[1] : 1;
    const struct piece ours = {
        .part = CHECKPOINT_WEIGHTS, .name = q->name, .dims = q->dims, .shape = {q->shape[0], q->shape[1]},
        .row = s->piece.row, .rows = s->piece.rows, .cols = cols, .data = x->ours, .ld = cols,
    };

    (void)at; /* all of it at once */
    TRY(checkpoint_load(x->ck, NULL, &ours, 1, e));
    if (hf_narrow(x->room, x->ours, x->dtype, s->piece.rows, cols, s->piece.transposed, e) < 0)
        return err_wrap(e, "'%s'", s->piece.name);
    *data = (struct span){x->room, (size_t)(s->piece.rows * cols) * safetensors_size(x->dtype)};
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
        int shard = x->source[x->first].shard;

        for (end = x->first; end < x->n && x->source[end].shard == shard; end++)
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
        shard_name(x, x->source[i].shard, name, sizeof name);
        TRY(buf_printf(b, "%s\"%s\":\"%s\"", i ? "," : "", x->v[i].name.p, name));
    }
    return buf_puts(b, "}}\n");
}

/* config.json comes last: a folder without it was not finished. */
static int write_json(const struct export *x, const char *to, enum hf_family family, struct file_group *g, struct err *e)
{
    const char *name = strcmp(x->dtype, "F32") == 0 ? "float32" : strcmp(x->dtype, "BF16") == 0 ? "bfloat16" : "float16";
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
        rc = hf_config_put(&b, x->model, family, name) < 0 ? err_set(e, ERR_NOMEM, "out of memory")
                                                            : file_group_write(g, path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* What a killed run left of a file: base/file.h. */
static bool is_unfinished(const char *name)
{
    return name[0] == '.' && span_ends(span_of(name), ".part");
}

/* Makes the folder, or holds it to be empty but for what a killed export left: files of another model beside ours would be
 * read with them. */
static int make_empty(const char *to, struct err *e)
{
    DIR *d;
    struct dirent *f;
    int rc = 0;

    if (mkdir(to, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return err_sys(e, ERR_IO, "cannot make folder '%s'", to);
    d = opendir(to);
    if (!d)
        return err_sys(e, ERR_IO, "cannot read folder '%s'", to);
    while (rc == 0 && (f = readdir(d)))
        if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0 && !is_unfinished(f->d_name))
            rc = err_set(e, ERR_ARG, "folder '%s' is not empty", to);
    closedir(d);
    return rc;
}

int hf_export(const struct checkpoint *ck, const char *to, const char *dtype, int64_t shard, struct err *e)
{
    struct export x = {.ck = ck, .model = &checkpoint_info(ck)->model, .dtype = dtype};
    struct file_group g = {0};
    enum hf_family family;
    int rc = hf_family_of(x.model, &family, e);

    if (rc == 0)
        rc = params_init(&x.params, x.model, NULL, e);
    if (rc == 0)
        rc = list(&x, family, shard, e);
    if (rc == 0)
        rc = make_empty(to, e);
    if (rc == 0)
        rc = write_shards(&x, to, &g, e);
    if (rc == 0)
        rc = write_json(&x, to, family, &g, e);
    if (rc == 0)
        rc = file_group_commit(&g, e);
    file_group_abort(&g);
    free(x.room);
    free(x.ours);
    params_free(&x.params);
    arena_free(&x.arena);
    return rc;
}
