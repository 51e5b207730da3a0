#include "curate/dedup/dedup_key.h"

#include <stdlib.h>
#include <string.h>

int dedup_key_check(const char *key, struct err *e)
{
    if (!*key)
        return err_set(e, ERR_ARG, "a field without a name");
    if (strlen(key) > DEDUP_KEY_MAX || strpbrk(key, "\t\n\r"))
        return err_set(e, ERR_ARG, "a field's name of more than %d bytes, or with a tab or newline in it", DEDUP_KEY_MAX);
    for (const char *p = *key == '/' ? key : ""; *p; p++)
        if (*p == '~' && p[1] != '0' && p[1] != '1')
            return err_set(e, ERR_ARG, "'%s' is no JSON pointer: behind ~ there is 0 or 1", key);
    return 0;
}

/* The steps of a key that are left; NULL: none. */
struct steps {
    const char *rest;
    bool pointer;
};

/* Takes the first one off, unescaped, in the arena; NULL: out of memory. */
static const char *next_step(struct arena *a, struct steps *s)
{
    const char *p = s->rest;
    size_t n = strcspn(p, s->pointer ? "/" : ".");
    char *step = arena_alloc(a, n + 1), *to = step;

    if (!step)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        bool escaped = s->pointer && p[i] == '~';

        i += escaped;
        *to++ = (char)(!escaped ? p[i] : p[i] == '1' ? '/' : '~');
    }
    *to = '\0';
    s->rest = p[n] ? p + n + 1 : NULL;
    return step;
}

/* The child under a name, or at a number without leading zeros. */
static const struct node *child_at(const struct node *n, const char *step)
{
    size_t digits = strspn(step, "0123456789");
    const struct node *c = n->child;

    if (n->type != NODE_LIST)
        return node_get(n, step);
    if (!digits || digits > 9 || step[digits] || (*step == '0' && digits > 1))
        return NULL;
    for (long i = strtol(step, NULL, 10); c && i > 0; i--)
        c = c->next;
    return c;
}

/* As JSON without white space; scalars as they are written. */
static int put_node(struct buf *b, const struct node *n)
{
    const char *ends = n->type == NODE_LIST ? "[]" : "{}";

    if (n->type == NODE_STR)
        return json_put_string(b, n->str);
    if (n->type != NODE_LIST && n->type != NODE_MAP)
        return buf_put_span(b, n->str);
    TRY(buf_putc(b, ends[0]));
    for (const struct node *c = n->child; c; c = c->next) {
        if (c != n->child)
            TRY(buf_putc(b, ','));
        if (n->type == NODE_MAP) {
            TRY(json_put_string(b, c->key));
            TRY(buf_putc(b, ':'));
        }
        TRY(put_node(b, c));
    }
    return buf_putc(b, ends[1]);
}

/* The first step's field, raw; p NULL: there is none. */
static int first_field(struct doc *d, const char *key, struct steps *s, const char **field, struct span *raw, struct err *e)
{
    *s = (struct steps){key + (*key == '/'), *key == '/'};
    *field = next_step(d->arena, s);
    if (!*field)
        return err_set(e, ERR_NOMEM, "out of memory for a field");
    *raw = doc_raw(d, *field);
    return 0;
}

/* Where the other steps lead to in raw. */
static int follow(struct doc *d, struct steps *s, struct span raw, const struct node **at, struct err *e)
{
    struct node *root;

    TRY(node_parse_json(d->arena, raw, &root, e));
    for (*at = root; *at && s->rest;) {
        const char *step = next_step(d->arena, s);

        if (!step)
            return err_set(e, ERR_NOMEM, "out of memory for a field");
        *at = child_at(*at, step);
    }
    return *at != NULL;
}

int dedup_key_node(struct doc *d, const char *key, const struct node **at, struct err *e)
{
    const char *field;
    struct steps s;
    struct span raw;

    TRY(first_field(d, key, &s, &field, &raw, e));
    return raw.p ? follow(d, &s, raw, at, e) : 0;
}

int dedup_key_text(struct doc *d, const char *key, struct span *text, struct err *e)
{
    const struct node *at;
    struct buf b = {0};
    const char *field;
    struct steps s;
    struct span raw;
    int rc;

    TRY(first_field(d, key, &s, &field, &raw, e));
    if (!raw.p)
        return 0;
    if (!s.rest && *raw.p == '"') { /* most keys are strings */
        *text = strcmp(field, "text") == 0 ? d->text : doc_string(d, field);
        return text->p ? text->n > 0 : err_set(e, ERR_FORMAT, "field '%s' is no valid string", field);
    }
    rc = follow(d, &s, raw, &at, e);
    if (rc <= 0 || at->type == NODE_NULL)
        return rc < 0 ? rc : 0;
    *text = at->str;
    if (at->type == NODE_LIST || at->type == NODE_MAP) {
        rc = put_node(&b, at);
        *text = rc == 0 ? arena_dup(d->arena, buf_span(&b)) : (struct span){0};
        buf_free(&b);
    }
    return rc < 0 || !text->p ? err_set(e, ERR_NOMEM, "out of memory for a field") : text->n > 0;
}
