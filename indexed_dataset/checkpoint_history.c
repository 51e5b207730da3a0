#include "indexed_dataset/checkpoint_history.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

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

/* The text ends in ,"xxh3":"0123456789abcdef"}\n over all that is before it. */
int checkpoint_check_seal(const char *what, struct span text, struct err *e)
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

/* Of metadata.json. */
static int read_history(struct history *h, const char *path, int64_t *of, struct err *e)
{
    const struct node *own;
    struct arena a = {0};
    struct buf text = {0};
    struct node *root;
    int rc = file_read_all(path, CHECKPOINT_METADATA, &text, e);

    if (rc == 0)
        rc = checkpoint_check_seal(path, buf_span(&text), e);
    if (rc == 0 && node_parse_json(&a, buf_span(&text), &root, e) < 0)
        rc = err_wrap(e, "%s", path);
    own = rc == 0 ? node_get(root, "history") : NULL;
    if (rc == 0 && !own)
        rc = err_set(e, ERR_UNSUPPORTED, "%s: it does not say which samples its steps took: it is older than that, or has been"
                     " imported", path);
    if (rc == 0)
        rc = history_parse(h, own, path, e);
    if (rc == 0 && of)
        *of = node_int(root, "iteration", 0);
    arena_free(&a);
    buf_free(&text);
    return rc;
}

int checkpoint_history(struct history *h, const char *dir, int64_t step, int64_t *of, struct err *e)
{
    char path[4352];
    int64_t *steps = NULL;
    int n;

    snprintf(path, sizeof path, "%s/metadata.json", dir);
    if (step < 0 && access(path, F_OK) != 0) {
        n = checkpoint_steps(dir, &steps, e);
        step = n > 0 ? steps[0] : -1;
        free(steps);
        if (n <= 0)
            return n < 0 ? n : err_set(e, ERR_IO, "no checkpoint in '%s'", dir);
    }
    if (step >= 0)
        snprintf(path, sizeof path, "%s/iter_%07" PRId64 "/metadata.json", dir, step);
    return read_history(h, path, of, e);
}
