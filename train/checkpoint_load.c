/* Finding, verifying and reading checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/node.h"
#include "train/checkpoint.h"

enum { FILES_MAX = 65536, METADATA_MAX = 1 << 28 };

struct checkpoint {
    struct checkpoint_info info;
    struct arena arena;
    struct file_map *maps;
    struct safetensors *files;
    int n;
    bool verify;
    char path[4160];
};

const struct checkpoint_info *checkpoint_info(const struct checkpoint *ck)
{
    return &ck->info;
}

const char *checkpoint_path(const struct checkpoint *ck)
{
    return ck->path;
}

void checkpoint_close(struct checkpoint *ck)
{
    if (!ck)
        return;
    for (int i = 0; i < ck->n; i++)
        file_map_close(&ck->maps[i]);
    arena_free(&ck->arena);
    free(ck);
}

/* ---- metadata ---- */

/* The text ends in ,"xxh3":"0123456789abcdef"}\n over all that is before it. */
static int check_seal(const char *what, struct span text, struct err *e)
{
    char seal[32];
    size_t n = strlen(",\"xxh3\":\"0123456789abcdef\"}\n");

    if (text.n < n)
        return err_set(e, ERR_FORMAT, "%s: cut short: %zu bytes", what, text.n);
    snprintf(seal, sizeof seal, ",\"xxh3\":\"%016" PRIx64 "\"}\n",
             hash_xxh3_64((struct span){text.p, text.n - n}));
    if (memcmp(seal, text.p + text.n - n, n) != 0)
        return err_set(e, ERR_FORMAT, "%s: damaged: its checksum does not match", what);
    return 0;
}

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
    case FIELD_BOOL:
        *(bool *)at = n->integer != 0;
        return n->type == NODE_BOOL;
    default:
        while (w < 4 && f->words[w] && !(n->type == NODE_STR && span_is(n->str, f->words[w])))
            w++;
        *(int *)at = w;
        return w < 4 && f->words[w];
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
            info->args[info->n_args++] = (struct checkpoint_arg){c->key.p, c->str.p};
    return 0;
}

int checkpoint_parse_metadata(struct arena *a, const char *what, struct span text,
                              struct checkpoint_info *info, const struct node **files, struct err *e)
{
    struct node *root;
    const char *format;

    memset(info, 0, sizeof *info);
    TRY(check_seal(what, text, e));
    if (node_parse_json(a, text, &root, e) < 0)
        return err_wrap(e, "%s", what);
    format = node_str(root, "format");
    if (!format || strcmp(format, "quern-checkpoint") != 0)
        return err_set(e, ERR_FORMAT, "%s: not the metadata of a checkpoint", what);
    if (node_int(root, "version", 0) != 1)
        return err_set(e, ERR_UNSUPPORTED, "%s: version %" PRId64 " is not known here", what,
                       node_int(root, "version", 0));
    info->iteration = node_int(root, "iteration", -1);
    info->consumed = node_int(root, "consumed_samples", -1);
    if (info->iteration < 0 || info->consumed < 0)
        return err_set(e, ERR_FORMAT, "%s: no iteration or consumed_samples", what);
    TRY(parse_model(node_get(root, "model"), &info->model, what, e));
    TRY(parse_args(a, node_get(root, "args"), info, e));
    info->guard.loss = node_num(node_get(root, "running"), "loss", 0);
    info->guard.norm = node_num(node_get(root, "running"), "grad_norm", 0);
    info->guard.n = node_int(node_get(root, "running"), "steps", 0);
    *files = node_get(root, "files");
    if (!*files || (*files)->type != NODE_LIST || (*files)->count < 1 || (*files)->count > FILES_MAX)
        return err_set(e, ERR_FORMAT, "%s: no files", what);
    return 0;
}

/* ---- one checkpoint ---- */

static bool hash_is(const char *hex, uint64_t hash)
{
    char want[24];

    snprintf(want, sizeof want, "%016" PRIx64, hash);
    return hex && strcmp(hex, want) == 0;
}

static int verify_file(struct checkpoint *ck, const struct node *n, struct err *e)
{
    const char *name = node_str(n, "name");
    const struct node *hashes = node_get(n, "tensors");
    struct safetensors *st = &ck->files[ck->n];
    struct file_map *map = &ck->maps[ck->n];
    struct span file;
    char path[4352];

    if (!name || strchr(name, '/') || strlen(name) > 160 || !hashes)
        return err_set(e, ERR_FORMAT, "%s/metadata.json: a file without name or tensors", ck->path);
    snprintf(path, sizeof path, "%s/%s", ck->path, name);
    TRY(file_map_open(map, path, e));
    ck->n++;
    if (map->n != (uint64_t)node_int(n, "bytes", -1))
        return err_set(e, ERR_FORMAT, "%s: %zu bytes, not the %" PRId64 " that were written", path, map->n,
                       node_int(n, "bytes", -1));
    file = (struct span){(const char *)map->p, map->n};
    if (!hash_is(node_str(n, "header"), hash_xxh3_64(safetensors_header(file))))
        return err_set(e, ERR_FORMAT, "%s: damaged: the checksum of its header does not match", path);
    TRY(safetensors_parse(&ck->arena, path, file, st, e));
    for (int i = 0; ck->verify && i < st->n; i++) {
        st->v[i].hash = hash_xxh3_64(st->v[i].data);
        if (!hash_is(node_str(hashes, st->v[i].name.p), st->v[i].hash))
            return err_set(e, ERR_FORMAT, "%s: damaged: the checksum of '%s' does not match", path,
                           st->v[i].name.p);
    }
    return 0;
}

static int read_checkpoint(struct checkpoint *ck, struct err *e)
{
    const struct node *files;
    struct buf text = {0};
    struct span kept;
    char path[4352];
    int rc;

    snprintf(path, sizeof path, "%s/metadata.json", ck->path);
    rc = file_read_all(path, METADATA_MAX, &text, e);
    kept = arena_dup(&ck->arena, buf_span(&text));
    buf_free(&text);
    TRY(rc);
    if (!kept.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(checkpoint_parse_metadata(&ck->arena, path, kept, &ck->info, &files, e));
    ck->maps = arena_calloc(&ck->arena, (size_t)files->count, sizeof *ck->maps);
    ck->files = arena_calloc(&ck->arena, (size_t)files->count, sizeof *ck->files);
    if (!ck->maps || !ck->files)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *f = files->child; f; f = f->next)
        TRY(verify_file(ck, f, e));
    return 0;
}

static int open_step(struct checkpoint **out, const char *dir, int64_t step, bool verify, struct err *e)
{
    struct checkpoint *ck = calloc(1, sizeof *ck);
    int rc;

    if (!ck)
        return err_set(e, ERR_NOMEM, "out of memory");
    ck->verify = verify;
    snprintf(ck->path, sizeof ck->path, "%s/iter_%07" PRId64, dir, step);
    rc = read_checkpoint(ck, e);
    if (rc == 0 && ck->info.iteration != step)
        rc = err_set(e, ERR_FORMAT, "%s/metadata.json: it is of step %" PRId64, ck->path, ck->info.iteration);
    if (rc < 0) {
        checkpoint_close(ck);
        return rc;
    }
    *out = ck;
    return 0;
}

/* ---- which one ---- */

static int newest_first(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a < b) - (a > b);
}

int checkpoint_steps(const char *dir, int64_t **steps, struct err *e)
{
    DIR *d = opendir(dir);
    struct dirent *f;
    struct buf b = {0};
    int64_t step;
    int end, n, rc = 0;

    *steps = NULL;
    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, ERR_IO, "cannot read folder '%s'", dir);
    while (rc == 0 && (f = readdir(d))) {
        end = 0;
        if (sscanf(f->d_name, "iter_%" SCNd64 "%n", &step, &end) == 1 && end && !f->d_name[end] && step >= 0)
            rc = buf_put(&b, &step, sizeof step);
    }
    closedir(d);
    if (rc < 0) {
        buf_free(&b);
        return err_set(e, rc, "out of memory");
    }
    n = (int)(b.n / sizeof step);
    *steps = (void *)b.p;
    if (n)
        qsort(*steps, (size_t)n, sizeof step, newest_first);
    return n;
}

/* The step that latest_checkpointed_iteration.txt names, or INT64_MAX. */
static int64_t latest_step(const char *dir)
{
    struct buf b = {0};
    struct err e;
    char path[4352], *end;
    long long v;

    snprintf(path, sizeof path, "%s/latest_checkpointed_iteration.txt", dir);
    if (file_read_all(path, 64, &b, &e) < 0) {
        buf_free(&b);
        return INT64_MAX;
    }
    v = b.n ? strtoll(b.p, &end, 10) : -1;
    if (v < 0 || end == b.p || (*end && *end != '\n')) {
        log_msg(LOG_WARN, "%s: no step number in it; looking for the newest checkpoint", path);
        v = INT64_MAX;
    }
    buf_free(&b);
    return v;
}

static int open_any(struct checkpoint **ck, const char *dir, int64_t step, bool verify, struct err *e)
{
    int64_t *steps, latest;
    int n, tried = 0, rc = 0;

    *ck = NULL;
    if (strlen(dir) > 4000)
        return err_set(e, ERR_ARG, "folder name too long: '%s'", dir);
    if (step != CHECKPOINT_LAST)
        return open_step(ck, dir, step, verify, e);
    n = checkpoint_steps(dir, &steps, e);
    if (n < 0)
        return n;
    latest = latest_step(dir);
    for (int i = 0; i < n && !*ck; i++) {
        if (steps[i] > latest)
            continue;
        tried++;
        rc = open_step(ck, dir, steps[i], verify, e);
        if (rc == ERR_NOMEM || rc == ERR_UNSUPPORTED)
            break;
        if (rc < 0)
            log_msg(LOG_WARN, "%s; trying the checkpoint before it", e->msg);
    }
    free(steps);
    if (*ck || rc == ERR_NOMEM || rc == ERR_UNSUPPORTED)
        return *ck ? 0 : rc;
    if (tried)
        return err_set(e, ERR_FORMAT, "%s: none of its %d checkpoints is whole", dir, tried);
    if (latest != INT64_MAX || n)
        return err_set(e, ERR_FORMAT, "%s: latest_checkpointed_iteration.txt names step %" PRId64
                       ", but there is no such checkpoint and none before it", dir, latest);
    return 0;
}

int checkpoint_open(struct checkpoint **ck, const char *dir, int64_t step, struct err *e)
{
    return open_any(ck, dir, step, true, e);
}

int checkpoint_peek(struct checkpoint **ck, const char *dir, int64_t step, struct err *e)
{
    return open_any(ck, dir, step, false, e);
}

/* ---- tensors ---- */

const struct safetensor *checkpoint_tensor(const struct checkpoint *ck, int i)
{
    for (int f = 0; f < ck->n; i -= ck->files[f++].n)
        if (i < ck->files[f].n)
            return &ck->files[f].v[i];
    return NULL;
}

static const struct safetensor *find(const struct checkpoint *ck, const char *name)
{
    const struct safetensor *t = NULL;

    for (int f = 0; f < ck->n && !t; f++)
        t = safetensors_find(&ck->files[f], name);
    return t;
}

bool checkpoint_has(const struct checkpoint *ck, enum checkpoint_part part)
{
    const struct safetensor *t;
    size_t n = strlen(checkpoint_prefix[part]);

    for (int i = 0; (t = checkpoint_tensor(ck, i)); i++)
        if (t->name.n > n && memcmp(t->name.p, checkpoint_prefix[part], n) == 0)
            return true;
    return false;
}

int checkpoint_find(const struct checkpoint *ck, enum checkpoint_part part, const struct param *q, struct span *data,
                    struct err *e)
{
    const struct safetensor *t;
    char name[96];

    snprintf(name, sizeof name, "%s%s", checkpoint_prefix[part], q->name);
    t = find(ck, name);
    if (!t)
        return err_set(e, ERR_FORMAT, "%s: no tensor '%s'", ck->path, name);
    if (strcmp(t->dtype, "F32") != 0 || t->dims != q->dims || t->shape[0] != q->shape[0] ||
        (q->dims == 2 && t->shape[1] != q->shape[1]))
        return err_set(e, ERR_FORMAT, "%s: '%s' has another type or shape than this model's", ck->path, name);
    *data = t->data;
    return 0;
}

int checkpoint_load(const struct checkpoint *ck, enum checkpoint_part part, const struct params *p,
                    float *slab, struct err *e)
{
    struct span data;

    memset(slab, 0, p->elements * sizeof *slab);
    for (int i = 0; i < p->n; i++) {
        TRY(checkpoint_find(ck, part, &p->v[i], &data, e));
        memcpy(slab + p->v[i].at, data.p, data.n);
    }
    return 0;
}
