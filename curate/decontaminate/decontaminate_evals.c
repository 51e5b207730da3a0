#include "curate/decontaminate/decontaminate_evals.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/failure.h"
#include "base/file.h"
#include "base/json.h"
#include "base/node.h"
#include "base/utf8.h"

#define MAX_FILE ((size_t)4 << 30)

struct reader {
    struct eval_set *set;
    const struct eval_fields *f;
    const char *name;
    struct span task; /* where a line has none */
    struct json_reader *json;
    struct buf text;
    uint64_t line;
};

/* "gsm8k-test" of "evals/gsm8k-test.jsonl.gz". */
static struct span stem(const char *path)
{
    const char *base = strrchr(path, '/');
    struct span s = span_of(base ? base + 1 : path);
    const char *dot = s.n ? memchr(s.p + 1, '.', s.n - 1) : NULL;

    if (dot)
        s.n = (size_t)(dot - s.p);
    return s;
}

static const struct json_field *find(const struct json_field *v, int n, const char *name)
{
    for (int i = 0; i < n && name && *name; i++)
        if (span_is(v[i].key, name))
            return v[i].type == JSON_NULL ? NULL : &v[i];
    return NULL;
}

static int put_list(struct buf *b, const struct json_field *f, struct err *e)
{
    struct arena a = {0};
    struct node *list;
    int rc = node_parse_json(&a, f->raw, &list, e);

    for (const struct node *n = rc < 0 ? NULL : list->child; n && rc == 0; n = n->next) {
        if (n->type == NODE_LIST || n->type == NODE_MAP)
            rc = err_set(e, ERR_FORMAT, "\"%.*s\" is a list of something else than texts", (int)f->key.n, f->key.p);
        else if (buf_put_span(b, n->str) < 0 || (n->next && buf_putc(b, '\n') < 0))
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    arena_free(&a);
    return rc;
}

/* Appends the text of a value. */
static int put_value(struct buf *b, const struct json_field *f, struct err *e)
{
    switch (f->type) {
    case JSON_STRING:
        return json_unescape(f->raw, b, e);
    case JSON_ARRAY:
        return put_list(b, f, e);
    case JSON_OBJECT:
        return err_set(e, ERR_FORMAT, "\"%.*s\" is an object, not a text", (int)f->key.n, f->key.p);
    default:
        return buf_put_span(b, f->raw) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
    }
}

/* A copy of the value's text; what there is not stays as it is. */
static int keep(struct reader *r, const struct json_field *f, struct span *out, struct err *e)
{
    if (!f)
        return 0;
    buf_clear(&r->text);
    TRY(put_value(&r->text, f, e));
    *out = arena_dup(&r->set->bytes, (struct span){r->text.n ? r->text.p : "", r->text.n});
    return out->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for the questions");
}

static int default_id(struct reader *r, struct span *id, struct err *e)
{
    char own[64];
    struct buf b = {0};

    snprintf(own, sizeof own, ":%llu", (unsigned long long)r->line);
    if (buf_puts(&b, r->name) == 0 && buf_puts(&b, own) == 0)
        *id = arena_dup(&r->set->bytes, buf_span(&b));
    buf_free(&b);
    return id->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for the questions");
}

static int make_item(struct reader *r, const struct json_field *v, int n, struct eval_item *it, struct err *e)
{
    const struct json_field *question = find(v, n, r->f->question), *answer = find(v, n, r->f->answer);

    *it = (struct eval_item){.task = r->task};
    if (!question)
        return err_set(e, ERR_FORMAT, "no \"%s\" in the line (--question-field names it)", r->f->question);
    TRY(keep(r, find(v, n, r->f->id), &it->id, e));
    if (!it->id.p)
        TRY(default_id(r, &it->id, e));
    TRY(keep(r, find(v, n, r->f->task), &it->task, e));
    TRY(keep(r, find(v, n, r->f->passage), &it->passage, e));
    buf_clear(&r->text);
    TRY(put_value(&r->text, question, e));
    it->question = r->text.n;
    if (answer) {
        if (buf_putc(&r->text, '\n') < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
        TRY(put_value(&r->text, answer, e));
        if (r->text.n == it->question + 1)
            r->text.n--;
    }
    it->text = arena_dup(&r->set->bytes, (struct span){r->text.n ? r->text.p : "", r->text.n});
    return it->text.p ? 0 : err_set(e, ERR_NOMEM, "out of memory for the questions");
}

static int take_line(struct reader *r, struct span line, struct err *e)
{
    struct eval_set *set = r->set;
    const struct json_field *v;
    int n = json_read_object(r->json, utf8_without_mark(line), &v, e);

    if (n < 0)
        return n;
    if (mem_grow(&set->v, &set->cap, set->n + 1, sizeof *set->v) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu questions", set->n + 1);
    TRY(make_item(r, v, n, &set->v[set->n], e));
    set->n++;
    return 0;
}

static bool is_empty(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
            return false;
    return true;
}

static int take_lines(struct reader *r, struct span text, struct err *e)
{
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        struct span line = {text.p, end ? (size_t)(end - text.p) : text.n};
        size_t step = line.n + (end != NULL);
        int rc;

        r->line++;
        text.p += step;
        text.n -= step;
        rc = is_empty(line) ? 0 : failure_find(line, e);
        if (rc == 0 && !is_empty(line))
            rc = take_line(r, line, e);
        if (rc < 0) {
            err_wrap(e, "'%s' line %llu", r->name, (unsigned long long)r->line);
            return rc;
        }
    }
    return 0;
}

int eval_set_parse(struct eval_set *set, const char *name, struct span text, const struct eval_fields *f,
                   struct err *e)
{
    struct reader r = {.set = set, .f = f, .name = name, .json = json_reader_new()};
    int rc;

    r.task = arena_dup(&set->bytes, stem(name));
    rc = r.json && r.task.p ? take_lines(&r, text, e) : err_set(e, ERR_NOMEM, "out of memory");
    json_reader_free(r.json);
    buf_free(&r.text);
    return rc;
}

int eval_set_read(struct eval_set *set, const char *path, const struct eval_fields *f, struct err *e)
{
    struct buf b = {0};
    int rc = file_read_all(path, MAX_FILE, &b, e);

    if (rc == 0 && buf_reserve(&b, JSON_PADDING) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for '%s'", path);
    if (rc == 0)
        rc = eval_set_parse(set, path, buf_span(&b), f, e);
    buf_free(&b);
    return rc;
}

void eval_set_free(struct eval_set *set)
{
    free(set->v);
    arena_free(&set->bytes);
    *set = (struct eval_set){0};
}
