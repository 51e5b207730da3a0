#include "base/file_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int file_group_room(struct file_group *g, size_t more, struct err *e)
{
    return mem_grow(&g->file, &g->cap, g->n + more, sizeof *g->file) < 0 ? err_set(e, ERR_NOMEM, "out of memory for output files")
                                                                         : 0;
}

int file_group_add(struct file_group *g, struct file_out *f, struct err *e)
{
    int rc = file_group_room(g, 1, e);

    if (rc == 0)
        rc = file_flush(f, e);
    if (rc < 0)
        file_abort(f);
    else
        g->file[g->n++] = f;
    return rc;
}

int file_group_write(struct file_group *g, const char *path, struct span s, struct err *e)
{
    struct file_out *f;
    int rc;

    TRY(file_create(&f, path, 0, e));
    rc = file_write(f, s.p, s.n, e);
    if (rc == 0)
        return file_group_add(g, f, e);
    file_abort(f);
    return rc;
}

int file_group_join(struct file_group *g, struct file_group *from, struct err *e)
{
    if (from->n == 0)
        return 0;
    TRY(file_group_room(g, from->n, e));
    memcpy(g->file + g->n, from->file, from->n * sizeof *g->file);
    g->n += from->n;
    from->n = 0;
    file_group_abort(from);
    return 0;
}

int file_group_commit(struct file_group *g, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < g->n; i++)
        if (rc == 0)
            rc = file_commit(g->file[i], e);
        else
            file_abort(g->file[i]);
    g->n = 0;
    file_group_abort(g);
    return rc;
}

void file_group_abort(struct file_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        file_abort(g->file[i]);
    free(g->file);
    *g = (struct file_group){0};
}
