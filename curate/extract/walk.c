#include "curate/extract/walk.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/http.h"
#include "base/mem.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a list of files");
}

/* Takes ownership of path. */
static int add(struct walk *w, char *path, bool named, struct err *e)
{
    if (!path)
        return no_memory(e);
    if (w->n == INT_MAX || mem_grow(&w->file, &w->cap, (size_t)w->n + 1, sizeof *w->file) < 0) {
        free(path);
        return no_memory(e);
    }
    w->file[w->n++] = (struct walk_file){.path = path, .named = named};
    return 0;
}

static char *join(const char *dir, const char *name)
{
    size_t n = strlen(dir), k = strlen(name);
    bool slash = n && dir[n - 1] != '/';
    char *p = malloc(n + slash + k + 1);

    if (!p)
        return NULL;
    memcpy(p, dir, n);
    if (slash)
        p[n] = '/';
    memcpy(p + n + slash, name, k + 1);
    return p;
}

/* Adds the files of one folder to w and its folders to dirs. */
static int list_one(struct walk *w, struct walk *dirs, const char *dir, struct err *e)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    int rc = 0;

    if (!d)
        return err_sys(e, ERR_IO, "cannot read the folder '%s'", dir);
    errno = 0;
    while (rc == 0 && (entry = readdir(d))) {
        struct stat st;
        char *path;
        if (entry->d_name[0] == '.')
            continue;
        path = join(dir, entry->d_name);
        if (!path)
            rc = no_memory(e);
        else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            rc = add(dirs, path, false, e);
        else if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            rc = add(w, path, false, e);
        else
            free(path);
        errno = 0;
    }
    if (rc == 0 && errno)
        rc = err_sys(e, ERR_IO, "cannot read the folder '%s'", dir);
    closedir(d);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    const struct walk_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

static int list_folder(struct walk *w, const char *top, struct err *e)
{
    struct walk dirs = {0};
    int first = w->n, rc = add(&dirs, strdup(top), true, e);

    while (rc == 0 && dirs.n) {
        char *dir = dirs.file[--dirs.n].path;
        rc = list_one(w, &dirs, dir, e);
        free(dir);
    }
    walk_free(&dirs);
    for (int i = first; i < w->n; i++) {
        size_t n = strlen(top);
        w->file[i].top = n + (n && top[n - 1] != '/');
    }
    if (rc == 0 && w->n > first)
        qsort(w->file + first, (size_t)(w->n - first), sizeof *w->file, by_path);
    return rc;
}

static int add_operand(struct walk *w, const char *operand, struct err *e)
{
    bool remote = http_is_address(operand);

    TRY(add(w, remote ? http_name(operand) : strdup(operand), true, e));
    w->file[w->n - 1].address = remote ? operand : NULL;
    return 0;
}

int walk_list(struct walk *w, char *const *operands, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct stat st = {0};
        if (strcmp(operands[i], "-") != 0 && !http_is_address(operands[i]) && stat(operands[i], &st) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", operands[i]);
        if (S_ISDIR(st.st_mode))
            TRY(list_folder(w, operands[i], e));
        else
            TRY(add_operand(w, operands[i], e));
    }
    return 0;
}

void walk_free(struct walk *w)
{
    for (int i = 0; i < w->n; i++)
        free(w->file[i].path);
    free(w->file);
    *w = (struct walk){0};
}
