/* The data of a task. */
#include <stdlib.h>

#include "tokenize/tasks/parts.h"

enum { FILE_MOST = 1 << 30 };

static int add(struct task_docs *d, struct buf *docs, struct node *n, struct err *e)
{
    if (buf_put(docs, &n, sizeof n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->n++;
    return 0;
}

static int read_file(struct task_docs *d, struct buf *docs, struct arena *a, const char *path, struct err *e)
{
    struct buf text = {0};
    struct node *n;
    int64_t line = 0;
    int rc = file_read_all(path, FILE_MOST, &text, e);

    for (char *at = text.p, *end; rc == 0 && at < text.p + text.n; at = end + 1) {
        struct span s = {at, 0};

        end = memchr(at, '\n', (size_t)(text.p + text.n - at));
        end = end ? end : text.p + text.n;
        s.n = (size_t)(end - at);
        line++;
        if (jinja_strip(s, (struct span){NULL, 0}, true, true).n == 0)
            continue;
        rc = node_parse_json(a, s, &n, e);
        if (rc == 0 && n->type != NODE_MAP)
            rc = err_set(e, ERR_FORMAT, "it is no object");
        if (rc < 0)
            rc = err_wrap(e, "'%s': line %lld", path, (long long)line);
        else
            rc = add(d, docs, n, e);
    }
    buf_free(&text);
    return rc;
}

/* The pointers that docs gathered become d's, in a. */
static int take(struct task_docs *d, struct arena *a, struct buf *docs, int rc, struct err *e)
{
    if (rc == 0 && docs->n && !(d->doc = arena_calloc(a, (size_t)d->n, sizeof *d->doc)))
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0 && docs->n)
        memcpy(d->doc, docs->p, docs->n);
    buf_free(docs);
    d->open = rc == 0;
    return rc;
}

int task_docs_read(struct task_docs *d, const struct task_conf *c, struct arena *a, const char *split, struct err *e)
{
    const struct node *path = task_conf_get(c, "dataset_path"),
                      *files = node_get(task_conf_get(c, "dataset_kwargs"), "data_files");
    struct buf docs = {0};
    int rc = 0;

    *d = (struct task_docs){0};
    if (!files || !path || path->type != NODE_STR || !(span_is(path->str, "json") || span_is(path->str, "parquet")))
        return task_conf_error(c, path, e,
                               "data has to be local: dataset_path: json (or parquet), with data_files in dataset_kwargs");
    if (files->type == NODE_MAP) {
        const struct node *named = node_get(files, split);

        if (!named)
            return task_conf_error(c, files, e, "data_files has no '%s'", split);
        files = named;
    } else if (strcmp(split, "train") != 0) {
        return task_conf_error(c, files, e, "data_files without names are the split 'train'; there is no '%s'", split);
    }
    if (files->type == NODE_STR)
        rc = read_file(d, &docs, a, files->str.p, e);
    for (const struct node *f = files->type == NODE_LIST ? files->child : NULL; f && rc == 0; f = f->next)
        rc = f->type == NODE_STR ? read_file(d, &docs, a, f->str.p, e) : task_conf_error(c, f, e, "this is no file's name");
    if (rc == 0 && d->n == 0)
        rc = task_conf_error(c, files, e, "the split '%s' is empty", split);
    return take(d, a, &docs, rc, e);
}

int task_docs_list(struct task_docs *d, const struct node *list, struct arena *a, struct err *e)
{
    struct buf docs = {0};
    int rc = 0;

    *d = (struct task_docs){0};
    for (struct node *n = list->child; n && rc == 0; n = n->next)
        rc = add(d, &docs, n, e);
    return take(d, a, &docs, rc, e);
}

static int add_name(struct task_about *t, struct arena *a, struct span name)
{
    struct span copy = arena_dup(a, name);

    t->file[t->n_files++] = copy.p;
    return copy.p ? 0 : ERR_NOMEM;
}

/* The files of all splits: a name, a list of names, or a map of splits to such. */
static int add_names(struct task_about *t, struct arena *a, const struct node *files)
{
    if (files && files->type == NODE_STR)
        return add_name(t, a, files->str);
    for (const struct node *f = files ? files->child : NULL; f; f = f->next)
        TRY(add_names(t, a, f));
    return 0;
}

static int64_t count_names(const struct node *files)
{
    int64_t n = 1;

    for (const struct node *f = files ? files->child : NULL; f; f = f->next)
        n += count_names(f);
    return n;
}

int task_about(struct task_about *t, const char *path, struct arena *a, struct err *e)
{
    struct task_conf c;
    const struct node *files;
    int rc = task_conf_open(&c, path, e);

    *t = (struct task_about){0};
    if (rc == 0) {
        files = node_get(task_conf_get(&c, "dataset_kwargs"), "data_files");
        t->name = arena_dup(a, span_of(c.name)).p;
        t->file = arena_calloc(a, (size_t)(c.n + count_names(files)), sizeof *t->file);
        rc = t->name && t->file ? 0 : ERR_NOMEM;
        for (int i = 0; i < c.n && rc == 0; i++)
            rc = add_name(t, a, span_of(c.path[i]));
        if (rc == 0)
            rc = add_names(t, a, files);
        if (rc < 0)
            err_set(e, rc, "out of memory");
    }
    task_conf_close(&c);
    return rc;
}
