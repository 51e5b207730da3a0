#include "curate/stream/file_list.h"

#include <glob.h>
#include <stdlib.h>

static int add_name(struct file_list *l, const char *name)
{
    char *copy = strdup(name);
    char **v = copy ? realloc(l->v, (size_t)(l->n + 1) * sizeof *v) : NULL;

    if (!v) {
        free(copy);
        return ERR_NOMEM;
    }
    l->v = v;
    l->v[l->n++] = copy;
    return 0;
}

int file_list_add(struct file_list *l, const struct opt_list *from, struct err *e)
{
    for (int i = 0; i < from->n; i++) {
        glob_t g;
        int rc = glob(from->v[i], strpbrk(from->v[i], "*?[") ? GLOB_ERR : GLOB_NOCHECK, NULL, &g);

        if (rc == GLOB_NOMATCH)
            return err_set(e, ERR_ARG, "no file matches '%s'", from->v[i]);
        if (rc)
            return rc == GLOB_NOSPACE ? err_set(e, ERR_NOMEM, "out of memory for a list of files")
                                      : err_set(e, ERR_IO, "cannot list '%s'", from->v[i]);
        for (size_t k = 0; k < g.gl_pathc && rc == 0; k++)
            rc = add_name(l, g.gl_pathv[k]);
        globfree(&g);
        if (rc < 0)
            return err_set(e, rc, "out of memory for a list of files");
    }
    return 0;
}

void file_list_free(struct file_list *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct file_list){0};
}
