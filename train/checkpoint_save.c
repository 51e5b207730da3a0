/* Writing checkpoints: to a temporary folder, then one rename. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "train/checkpoint.h"

/* What one safetensors file of the checkpoint has. */
struct part_file {
    const char *name;
    int first, parts; /* enum checkpoint_part */
    struct safetensor *v;
    int n;
    uint64_t header_hash, bytes;
};

const char *const checkpoint_prefix[CHECKPOINT_PARTS] = {"", "exp_avg.", "exp_avg_sq."};

/* Removes a flat folder; what cannot be removed stays and is no error here. */
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *f;

    if (!d)
        return;
    while ((f = readdir(d)))
        if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
            unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    rmdir(path);
}

/* What a run that was killed while it saved has left. */
static void remove_leftovers(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *f;
    char path[4096];
    int64_t step;
    int end;

    if (!d)
        return;
    while ((f = readdir(d))) {
        end = 0;
        if (sscanf(f->d_name, ".iter_%" SCNd64 ".tmp%n", &step, &end) == 1 && end && !f->d_name[end]) {
            snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
            remove_folder(path);
        }
    }
    closedir(d);
}

static int make_folders(const char *dir, struct err *e)
{
    char path[4096];
    size_t n = strlen(dir);

    if (n + 64 > sizeof path)
        return err_set(e, ERR_ARG, "folder name too long: '%s'", dir);
    memcpy(path, dir, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return err_sys(e, ERR_IO, "cannot make folder '%s'", path);
        path[i] = dir[i];
    }
    return 0;
}

static int sync_folder(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    int rc = 0;

    if (fd < 0)
        return err_sys(e, ERR_IO, "cannot open folder '%s'", path);
    if (fsync(fd) != 0)
        rc = err_sys(e, ERR_IO, "cannot sync folder '%s'", path);
    close(fd);
    return rc;
}

/* Lists the tensors of f; names live in a. */
static int list_tensors(struct arena *a, struct part_file *f, const struct params *p, struct err *e)
{
    f->v = arena_calloc(a, (size_t)(f->parts * p->n), sizeof *f->v);
    if (!f->v)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int k = f->first; k < f->first + f->parts; k++)
        for (int i = 0; i < p->n; i++) {
            struct safetensor *t = &f->v[f->n++];
            const struct param *q = &p->v[i];
            char name[96];

            snprintf(name, sizeof name, "%s%s", checkpoint_prefix[k], q->name);
            t->name = arena_dup(a, span_of(name));
            if (!t->name.p)
                return err_set(e, ERR_NOMEM, "out of memory");
            t->dtype = "F32";
            t->dims = q->dims;
            t->shape[0] = q->shape[0];
            t->shape[1] = q->shape[1];
            t->data.n = q->n * sizeof(float);
        }
    return 0;
}

/* Where the tensors of a file come from. */
struct source {
    const struct part_file *file;
    const struct params *p;
    checkpoint_data_fn *fn;
    void *arg;
};

static int give(void *arg, int i, struct span *data, struct err *e)
{
    const struct source *s = arg;

    return s->fn(s->arg, (enum checkpoint_part)(s->file->first + i / s->p->n), i % s->p->n, data, e);
}

static int put_model(struct buf *b, const struct model_config *m)
{
    char text[64];

    TRY(buf_puts(b, ",\"model\":{"));
    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        const char *quote = f->type == FIELD_WORD ? "\"" : "";

        TRY(buf_printf(b, "%s\"%s\":%s%s%s", i ? "," : "", f->key, quote, model_field_text(f, m, text, sizeof text),
                       quote));
    }
    return buf_putc(b, '}');
}

static int put_files(struct buf *b, const struct part_file *files, int n)
{
    TRY(buf_puts(b, ",\"files\":["));
    for (int i = 0; i < n; i++) {
        const struct part_file *f = &files[i];

        TRY(buf_printf(b, "%s{\"name\":\"%s\",\"bytes\":%" PRIu64 ",\"header\":\"%016" PRIx64 "\",\"tensors\":{",
                       i ? "," : "", f->name, f->bytes, f->header_hash));
        for (int j = 0; j < f->n; j++)
            TRY(buf_printf(b, "%s\"%s\":\"%016" PRIx64 "\"", j ? "," : "", f->v[j].name.p, f->v[j].hash));
        TRY(buf_puts(b, "}}"));
    }
    return buf_puts(b, "]");
}

static int put_metadata(struct buf *b, const struct checkpoint_info *info, const struct part_file *files, int n)
{
    TRY(buf_printf(b, "{\"format\":\"quern-checkpoint\",\"version\":1,\"iteration\":%" PRId64
                      ",\"consumed_samples\":%" PRId64, info->iteration, info->consumed));
    TRY(put_model(b, &info->model));
    TRY(buf_puts(b, ",\"args\":{"));
    for (int i = 0; i < info->n_args; i++) {
        TRY(json_put_key(b, info->args[i].name));
        TRY(json_put_string(b, span_of(info->args[i].text)));
    }
    TRY(buf_putc(b, '}'));
    TRY(buf_printf(b, ",\"running\":{\"loss\":%.17g,\"grad_norm\":%.17g,\"steps\":%" PRId64 "}", info->guard.loss,
                   info->guard.norm, info->guard.n));
    TRY(put_files(b, files, n));
    return buf_printf(b, ",\"xxh3\":\"%016" PRIx64 "\"}\n", hash_xxh3_64(buf_span(b)));
}

static int write_folder(const char *tmp, const struct checkpoint_info *info, struct part_file *files, int n,
                        struct source *source, struct err *e)
{
    struct buf meta = {0};
    char path[4224];
    int rc;

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", tmp, files[i].name);
        source->file = &files[i];
        TRY(safetensors_write(path, files[i].v, files[i].n, NULL, give, source, &files[i].header_hash, &files[i].bytes,
                              e));
    }
    rc = put_metadata(&meta, info, files, n);
    snprintf(path, sizeof path, "%s/metadata.json", tmp);
    rc = rc < 0 ? err_set(e, rc, "%s: no memory", path) : file_write_all(path, buf_span(&meta), e);
    buf_free(&meta);
    return rc < 0 ? rc : sync_folder(tmp, e);
}

/* Puts tmp in the place of final.  An older checkpoint of this step changes places
 * with it in one system call, so that there is a whole one at every moment. */
static int commit_folder(const char *dir, const char *tmp, const char *final, struct err *e)
{
    if (rename(tmp, final) != 0) {
        if (errno != ENOTEMPTY && errno != EEXIST)
            return err_sys(e, ERR_IO, "cannot rename '%s' to '%s'", tmp, final);
        if (renameat2(AT_FDCWD, tmp, AT_FDCWD, final, RENAME_EXCHANGE) != 0)
            return err_sys(e, ERR_IO, "cannot exchange '%s' and '%s'", tmp, final);
        remove_folder(tmp);
    }
    return sync_folder(dir, e);
}

int checkpoint_save_from(const char *dir, const struct checkpoint_info *info, const struct params *p, int parts,
                         checkpoint_data_fn *fn, void *arg, struct err *e)
{
    struct part_file files[] = {
        {.name = "model.safetensors", .first = CHECKPOINT_WEIGHTS, .parts = 1},
        {.name = "optimizer.safetensors", .first = CHECKPOINT_EXP_AVG, .parts = 2},
    };
    struct source source = {.p = p, .fn = fn, .arg = arg};
    const int n = parts > 1 ? 2 : 1;
    char tmp[4160], final[4160], latest[4160], text[32];
    struct arena a = {0};
    int rc;

    TRY(make_folders(dir, e));
    remove_leftovers(dir);
    snprintf(tmp, sizeof tmp, "%s/.iter_%07" PRId64 ".tmp", dir, info->iteration);
    snprintf(final, sizeof final, "%s/iter_%07" PRId64, dir, info->iteration);
    snprintf(latest, sizeof latest, "%s/latest_checkpointed_iteration.txt", dir);
    if (mkdir(tmp, 0777) != 0)
        return err_sys(e, ERR_IO, "cannot make folder '%s'", tmp);
    rc = 0;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = list_tensors(&a, &files[i], p, e);
    if (rc == 0)
        rc = write_folder(tmp, info, files, n, &source, e);
    if (rc == 0)
        rc = commit_folder(dir, tmp, final, e);
    if (rc < 0)
        remove_folder(tmp);
    arena_free(&a);
    TRY(rc);
    snprintf(text, sizeof text, "%" PRId64 "\n", info->iteration);
    return file_write_all(latest, span_of(text), e);
}

struct slabs {
    const struct params *p;
    const float *const *slab;
};

static int from_slabs(void *arg, enum checkpoint_part part, int i, struct span *data, struct err *e)
{
    const struct slabs *s = arg;
    const struct param *q = &s->p->v[i];

    (void)e;
    *data = (struct span){(const char *)(s->slab[part] + q->at), q->n * sizeof(float)};
    return 0;
}

int checkpoint_save(const char *dir, const struct checkpoint_info *info, const struct params *p,
                    const float *const slab[CHECKPOINT_PARTS], struct err *e)
{
    struct slabs s = {p, slab};

    return checkpoint_save_from(dir, info, p, CHECKPOINT_PARTS, from_slabs, &s, e);
}
