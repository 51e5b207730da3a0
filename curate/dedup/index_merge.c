/* Several indexes of near-duplicates become one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "curate/dedup/dedup_index.h"

/* Keys of an index on their way, its documents coming after `before` others. */
struct moving {
    struct index_out *out;
    uint64_t before;
};

static int move_key(void *to, struct index_entry x, struct err *e)
{
    const struct moving *m = to;

    x.value += m->before;
    return index_out_add_key(m->out, x, e);
}

static int move_docs(struct index_out *out, const struct dedup_index *x, uint32_t first_source, struct err *e)
{
    struct index_doc d;
    struct buf b = {0};
    int rc = 0;

    for (uint64_t n = 0; n < x->docs && rc == 0; n++) {
        rc = dedup_index_doc(x, n, &d, &b, e);
        d.source += first_source;
        if (rc == 0)
            rc = index_out_add_doc(out, &d, e);
    }
    buf_free(&b);
    return rc;
}

static int move_index(struct index_out *out, const struct dedup_index *x, struct err *e)
{
    struct moving m = {out, index_out_docs(out) * (uint64_t)x->bands};
    struct index_cursor *c;
    uint32_t first = 0, number;
    int rc;

    for (uint32_t i = 0; i < x->sources; i++) {
        TRY(index_out_add_source(out, x->source[i].kind, x->source[i].path, &number, e));
        first = i ? first : number;
    }
    if (index_out_docs(out) + x->docs > UINT32_MAX)
        return err_set(e, ERR_LIMIT, "more than %u documents with those of '%s'", UINT32_MAX, x->name);
    TRY(move_docs(out, x, first, e));
    TRY(index_cursor_new(&c, &x->tree, e));
    rc = index_cursor_all(c, move_key, &m, e);
    index_cursor_free(c);
    return rc;
}

static int open_one(struct dedup_index **x, const char *path, const struct dedup_index *first, struct err *e)
{
    int rc = dedup_index_open(x, path, e);

    if (rc == 0)
        return err_set(e, ERR_FORMAT, "'%s' is no index of near-duplicates, or one of an older version", path);
    if (rc > 0 && first && strcmp(first->kind, (*x)->kind) != 0) {
        rc = err_set(e, ERR_FORMAT, "'%s' is an index of '%s', '%s' one of '%s'", first->name, first->kind, path, (*x)->kind);
        dedup_index_close(*x);
        *x = NULL;
    }
    return rc < 0 ? rc : 0;
}

int dedup_index_merge(const char *path, char *const *from, int n, const char *dir, int64_t memory, struct err *e)
{
    struct dedup_index *first, *x;
    struct index_out *out = NULL;
    struct file_group files = {0};
    int rc;

    TRY(open_one(&first, from[0], NULL, e));
    rc = index_out_create(&out, &(struct index_out_conf){.path = path, .kind = first->kind, .bands = first->bands,
                                                         .rows = first->rows, .dir = dir, .memory = memory}, e);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = open_one(&x, from[i], first, e);
        if (rc == 0) {
            rc = move_index(out, x, e);
            dedup_index_close(x);
        }
    }
    if (out)
        rc = index_out_end(out, rc, &files, e);
    dedup_index_close(first);
    if (rc == 0)
        rc = file_group_commit(&files, e);
    file_group_abort(&files);
    return rc;
}
