/* Writing checkpoints: to a temporary folder, then one rename. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "train/checkpoint.h"

enum { PATH_ROOM = 4224, BEGIN_TRIES = 100, CLAIM_TRIES = 300 };

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

/* Whether the folder of that descriptor is being written.  sure: also where locks do not tell. */
static bool is_written(int fd, bool sure)
{
    return flock(fd, LOCK_EX | LOCK_NB) < 0 && (sure || errno == EWOULDBLOCK);
}

/* Removes a folder unless somebody is writing it. */
static void remove_left(const char *path, bool sure)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (!is_written(fd, sure))
        remove_folder(path);
    close(fd);
}

/* What runs that were killed while they saved have left. */
static void remove_leftovers(const char *dir, bool sure)
{
    DIR *d = opendir(dir);
    struct dirent *f;
    char path[PATH_ROOM];
    uint64_t mark;
    int64_t step;

    if (!d)
        return;
    while ((f = readdir(d))) {
        int end = 0, old = 0; /* older ones have no mark */

        sscanf(f->d_name, ".iter_%" SCNd64 ".%" SCNx64 ".tmp%n", &step, &mark, &end);
        sscanf(f->d_name, ".iter_%" SCNd64 ".tmp%n", &step, &old);
        end = end ? end : old;
        if (end && !f->d_name[end]) {
            snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
            remove_left(path, sure);
        }
    }
    closedir(d);
}

void checkpoint_sweep(const char *dir)
{
    remove_leftovers(dir, true);
}

static void temporary(const struct checkpoint_folder *f, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/.iter_%07" PRId64 ".%016" PRIx64 ".tmp", f->dir, f->step, f->mark);
}

/* Makes the folder and locks it.  1; 0: one who looks for what killed runs left has just removed it. */
static int make_temporary(struct checkpoint_folder *f, struct err *e)
{
    char path[PATH_ROOM];
    int rc = 0;

    temporary(f, path);
    if (mkdir(path, 0777) < 0)
        return err_sys(e, ERR_IO, "cannot make folder '%s'", path);
    f->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock >= 0 && !is_written(f->lock, false) && access(path, F_OK) == 0)
        return 1;
    if (f->lock < 0 && errno != ENOENT)
        rc = err_sys(e, ERR_IO, "cannot open '%s'", path);
    if (f->lock >= 0)
        close(f->lock);
    rmdir(path);
    return rc;
}

int checkpoint_claim(const char *dir, struct err *e)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct stat st;
    int fd, tries = 0;

    TRY(file_make_folders(dir, e));
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_IO, "cannot save in '%s': it is no folder", dir);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || access(dir, W_OK | X_OK) < 0) {
        int rc = err_sys(e, ERR_IO, "cannot save in '%s'", dir);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (is_written(fd, false)) {
        if (tries == CLAIM_TRIES) {
            close(fd);
            return err_set(e, ERR_IO, "cannot save in '%s': another run saves there", dir);
        }
        if (!tries++)
            log_msg(LOG_WARN, "another run saves in '%s'; waiting for its end, %d s at most", dir, CLAIM_TRIES / 10);
        nanosleep(&pause, NULL);
    }
    return 0; /* the lock is the open folder's, and goes with the process */
}

int checkpoint_begin(struct checkpoint_folder *f, struct err *e)
{
    struct timespec now;
    int rc = 0;

    TRY(file_make_folders(f->dir, e));
    remove_leftovers(f->dir, false);
    for (int i = 0; i < BEGIN_TRIES && rc == 0; i++) {
        /* Ranks of a killed run may live on for a while; they must not meet these. */
        clock_gettime(CLOCK_REALTIME, &now);
        f->mark = hash_mix64((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40));
        rc = make_temporary(f, e);
    }
    if (rc == 0)
        return err_set(e, ERR_IO, "cannot save in '%s': others keep removing what is begun there", f->dir);
    return rc < 0 ? rc : 0;
}

void checkpoint_abort(const struct checkpoint_folder *f)
{
    char path[PATH_ROOM];

    temporary(f, path);
    remove_folder(path);
    close(f->lock);
}

/* ---- a rank's files ---- */

/* The pieces of one file, and where their bytes come from. */
struct source {
    const int *piece; /* indices */
    safetensors_data_fn *fn;
    void *arg;
};

static int give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    const struct source *s = arg;

    return s->fn(s->arg, s->piece[i], at, data, e);
}

static int list_tensor(struct arena *a, const struct piece *p, struct safetensor *t, struct err *e)
{
    char name[SLICE_NAME];

    TRY(slice_name(p, name, e));
    t->name = arena_dup(a, span_of(name));
    t->dtype = "F32";
    t->dims = p->dims;
    t->shape[0] = p->rows;
    t->shape[1] = p->cols;
    t->data.n = (size_t)(p->rows * p->cols) * sizeof(float);
    return t->name.p ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* The entry of a file in the metadata. */
static int put_file(struct buf *b, const char *name, uint64_t bytes, uint64_t header, const struct safetensor *v, int n)
{
    TRY(buf_printf(b, "%s{\"name\":\"%s\",\"bytes\":%" PRIu64 ",\"header\":\"%016" PRIx64 "\",\"tensors\":{",
                   b->n ? "," : "", name, bytes, header));
    for (int i = 0; i < n; i++) {
        if (i)
            TRY(buf_putc(b, ','));
        TRY(json_put_string(b, v[i].name));
        TRY(buf_printf(b, ":\"%016" PRIx64 "\"", v[i].hash));
    }
    return buf_puts(b, "}}");
}

/* The pieces of parts first to last; no file when there are none. */
static int write_file(const struct checkpoint_folder *f, const char *name, const struct piece *p, int n, int first, int last,
                      struct source *s, struct buf *entries, struct err *e)
{
    struct safetensor *v = calloc((size_t)n + 1, sizeof *v);
    int *piece = calloc((size_t)n + 1, sizeof *piece), k = 0, rc = 0;
    char path[PATH_ROOM];
    uint64_t header, bytes;
    struct file_group g = {0};
    struct arena a = {0};

    if (!v || !piece)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; rc == 0 && i < n; i++)
        if ((int)p[i].part >= first && (int)p[i].part <= last) {
            piece[k] = i;
            rc = list_tensor(&a, &p[i], &v[k++], e);
        }
    if (rc == 0 && k) {
        temporary(f, path);
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
        s->piece = piece;
        rc = safetensors_write(&g, path, v, k, NULL, give, s, &header, &bytes, e);
        if (rc == 0)
            rc = file_group_commit(&g, e);
        if (rc == 0 && put_file(entries, name, bytes, header, v, k) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory");
        file_group_abort(&g);
    }
    free(v);
    free(piece);
    arena_free(&a);
    return rc;
}

int checkpoint_write(const struct checkpoint_folder *f, int rank, int ranks, const struct piece *v, int n,
                     safetensors_data_fn *fn, void *arg, struct buf *entries, struct err *e)
{
    struct source s = {.fn = fn, .arg = arg};
    char of[32] = "", name[64];

    if (ranks > 1)
        snprintf(of, sizeof of, "-rank-%05d", rank);
    snprintf(name, sizeof name, "model%s.safetensors", of);
    TRY(write_file(f, name, v, n, CHECKPOINT_WEIGHTS, CHECKPOINT_WEIGHTS, &s, entries, e));
    snprintf(name, sizeof name, "optimizer%s.safetensors", of);
    return write_file(f, name, v, n, CHECKPOINT_EXP_AVG, CHECKPOINT_FP8, &s, entries, e);
}

/* ---- metadata, and the name ---- */

static int put_model(struct buf *b, const struct model_config *m)
{
    char text[256];

    TRY(buf_puts(b, ",\"model\":{"));
    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        const char *quote = f->type == FIELD_WORD || f->type == FIELD_RUNS ? "\"" : "";

        TRY(buf_printf(b, "%s\"%s\":%s%s%s", i ? "," : "", f->key, quote, model_field_text(f, m, text, sizeof text),
                       quote));
    }
    return buf_putc(b, '}');
}

static int put_metadata(struct buf *b, const struct checkpoint_info *info, const struct span *entries, int ranks)
{
    bool first = true;

    /* Version 1 has whole tensors alone. */
    TRY(buf_printf(b, "{\"format\":\"quern-checkpoint\",\"version\":%d,\"iteration\":%" PRId64
                      ",\"consumed_samples\":%" PRId64, ranks > 1 ? 2 : 1, info->iteration, info->consumed));
    TRY(put_model(b, &info->model));
    TRY(buf_puts(b, ",\"args\":{"));
    for (int i = 0; i < info->n_args; i++) {
        TRY(json_put_key(b, info->args[i].name));
        TRY(json_put_string(b, span_of(info->args[i].text)));
    }
    TRY(buf_putc(b, '}'));
    TRY(buf_printf(b, ",\"running\":{\"loss\":%.17g,\"grad_norm\":%.17g,\"steps\":%" PRId64 "},\"updates\":%" PRId64,
                   info->guard.loss, info->guard.norm, info->guard.n, info->updates));
    if (info->history.n) {
        TRY(buf_puts(b, ",\"history\":"));
        TRY(buf_put_span(b, info->history));
    }
    TRY(buf_puts(b, ",\"files\":["));
    for (int r = 0; r < ranks; r++) {
        if (!entries[r].n)
            continue;
        if (!first)
            TRY(buf_putc(b, ','));
        TRY(buf_put_span(b, entries[r]));
        first = false;
    }
    TRY(buf_putc(b, ']'));
    return buf_printf(b, ",\"xxh3\":\"%016" PRIx64 "\"}\n", hash_xxh3_64(buf_span(b)));
}

/* Puts tmp in the place of final.  An older checkpoint of this step changes places
 * with it in one system call, so that there is a whole one at every moment. */
static int put_in_place(const char *tmp, const char *final, struct err *e)
{
    if (rename(tmp, final) != 0) {
        if (errno != ENOTEMPTY && errno != EEXIST)
            return err_sys(e, ERR_IO, "cannot rename '%s' to '%s'", tmp, final);
        if (renameat2(AT_FDCWD, tmp, AT_FDCWD, final, RENAME_EXCHANGE) != 0)
            return err_sys(e, ERR_IO, "cannot exchange '%s' and '%s'", tmp, final);
    }
    TRY(file_sync_parent(final, e));
    remove_folder(tmp); /* the older one, if it was there */
    return 0;
}

int checkpoint_commit(const struct checkpoint_folder *f, const struct checkpoint_info *info, const struct span *entries,
                      int ranks, struct err *e)
{
    char tmp[PATH_ROOM], path[PATH_ROOM + 64], text[32];
    struct buf meta = {0};
    int rc = put_metadata(&meta, info, entries, ranks);

    temporary(f, tmp);
    snprintf(path, sizeof path, "%s/metadata.json", tmp);
    if (rc < 0)
        err_set(e, rc, "%s: no memory", path);
    else if (meta.n > CHECKPOINT_METADATA)
        rc = err_set(e, ERR_LIMIT, "%s: %zu MB would not be read again: the ranks have too many slices", path, meta.n / 1000000);
    else
        rc = file_write_all(path, buf_span(&meta), e); /* and the folder is on disk, with all ranks' files */
    buf_free(&meta);
    snprintf(path, sizeof path, "%s/iter_%07" PRId64, f->dir, f->step);
    if (rc == 0)
        rc = put_in_place(tmp, path, e);
    if (rc < 0)
        remove_folder(tmp);
    close(f->lock);
    TRY(rc);
    snprintf(path, sizeof path, "%s/latest_checkpointed_iteration.txt", f->dir);
    snprintf(text, sizeof text, "%" PRId64 "\n", f->step);
    return file_write_all(path, span_of(text), e);
}

/* Takes the name of a step's checkpoint away, then its files. */
static int forget(const char *dir, int64_t step, struct err *e)
{
    const uint64_t mark = hash_mix64((uint64_t)step + ((uint64_t)getpid() << 40));
    const struct checkpoint_folder f = {.dir = dir, .step = step, .mark = mark};
    char path[PATH_ROOM], tmp[PATH_ROOM];

    snprintf(path, sizeof path, "%s/iter_%07" PRId64, dir, step);
    temporary(&f, tmp);
    if (rename(path, tmp) != 0)
        return err_sys(e, ERR_IO, "cannot rename '%s'", path);
    remove_folder(tmp);
    return 0;
}

int checkpoint_thin(const char *dir, int64_t step, const struct checkpoint_keep *keep, struct err *e)
{
    int64_t *steps, seen = 0;
    int n = keep->last > 0 ? checkpoint_steps(dir, &steps, e) : 0, rc = n < 0 ? n : 0;

    for (int i = 0; rc == 0 && i < n; i++) { /* newest first */
        if (steps[i] > step || ++seen <= keep->last || (keep->every > 0 && steps[i] % keep->every == 0))
            continue;
        rc = forget(dir, steps[i], e);
    }
    if (n > 0)
        free(steps);
    return rc;
}

int checkpoint_save_from(const char *dir, const struct checkpoint_info *info, const struct piece *v, int n,
                         safetensors_data_fn *fn, void *arg, struct err *e)
{
    struct checkpoint_folder f = {.dir = dir, .step = info->iteration};
    struct buf entries = {0};
    struct span all;
    int rc;

    TRY(checkpoint_begin(&f, e));
    rc = checkpoint_write(&f, 0, 1, v, n, fn, arg, &entries, e);
    all = buf_span(&entries);
    if (rc == 0)
        rc = checkpoint_commit(&f, info, &all, 1, e);
    else
        checkpoint_abort(&f);
    buf_free(&entries);
    return rc;
}
