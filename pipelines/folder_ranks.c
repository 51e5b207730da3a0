#include "pipelines/folder_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/version.h"
#include "comm/files.h"
#include "comm/rendezvous.h"
#include "pipelines/tasks.h"

/* ---- who ---- */

static int who(const struct folder_ranks *f, int *rank, int *size, struct err *e)
{
    struct tasks t;

    if (!f->tasks && rendezvous_rank(rank, size)) {
        if (*rank < 0 || *rank >= *size)
            return err_set(e, ERR_ARG, "RANK is %d of WORLD_SIZE %d", *rank, *size);
        return 0;
    }
    TRY(tasks_find(&t, (int)f->task, (int)f->tasks, e));
    if (!f->tasks && t.n == 1)
        return err_set(e, ERR_ARG, "which rank is this?  Neither --task and --tasks nor the environment says it");
    *rank = t.task;
    *size = t.n;
    return 0;
}

int folder_ranks_open(struct comm **c, const struct folder_ranks *f, struct work_lock *lock, struct err *e)
{
    struct comm_files files = {.key = f->key};
    char prefix[4096];

    *c = NULL;
    lock->fd = -1;
    TRY(who(f, &files.rank, &files.size, e));
    if (f->folder) {
        if (snprintf(prefix, sizeof prefix, "%s/", f->folder) >= (int)sizeof prefix)
            return err_set(e, ERR_ARG, "the name '%.100s...' is too long", f->folder);
        TRY(file_make_folders(f->folder, e));
        TRY(work_lock_take(lock, f->folder, files.rank, files.size, "", e));
        files.prefix = prefix;
    }
    return comm_open_files(c, &files, f->minutes > 0 ? f->minutes * 60 : INFINITY, e);
}

/* ---- what run ---- */

static int put_file(struct buf *b, const char *name)
{
    struct stat st;
    char text[100];

    TRY(buf_put(b, name, strlen(name) + 1));
    if (stat(name, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    snprintf(text, sizeof text, "%" PRId64 " %" PRId64 ".%09ld\n", (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
             st.st_mtim.tv_nsec);
    return buf_puts(b, text);
}

static int put_option(struct buf *b, const struct opt *o)
{
    const struct opt_list *l = o->value;
    const char *file;

    TRY(buf_put(b, o->name, strlen(o->name) + 1));
    if (o->type == OPT_TYPE_LIST) {
        for (int i = 0; i < l->n; i++)
            TRY(put_file(b, l->v[i]));
        return 0;
    }
    file = o->names == OPT_NAMES_INPUT ? *(const char *const *)o->value : NULL;
    if (file)
        return put_file(b, file);
    TRY(opt_put_text(b, o));
    return buf_putc(b, '\0');
}

static int put_all(struct buf *b, const struct opt *opts, const char *last, char *const *inputs, int n)
{
    TRY(buf_put(b, QUERN_VERSION, sizeof QUERN_VERSION));
    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++) {
        if (o->type != OPT_TYPE_HEAD && o->names != OPT_NAMES_FOLDER)
            TRY(put_option(b, o));
        if (strcmp(o->name, last) == 0)
            break;
    }
    for (int i = 0; i < n; i++)
        TRY(put_file(b, inputs[i]));
    return 0;
}

int folder_ranks_key(uint64_t *key, const struct opt *opts, const char *last, char *const *inputs, int n, struct err *e)
{
    struct buf b = {0};
    int rc = put_all(&b, opts, last, inputs, n);

    *key = hash_xxh3_64(buf_span(&b));
    buf_free(&b);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}
