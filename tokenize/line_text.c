#include "tokenize/line_text.h"

#include "base/utf8.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a line's text");
}

int line_cut_keys(char *list, const char *keys[LINE_KEYS_MAX])
{
    int n = 0;

    for (char *p = list; p;) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma = '\0';
        if (!*p || n == LINE_KEYS_MAX)
            return 0;
        for (int k = 0; k < n; k++)
            if (strcmp(keys[k], p) == 0)
                return 0;
        keys[n++] = p;
        p = comma ? comma + 1 : NULL;
    }
    return n;
}

int line_reader_init(struct line_reader *r, struct err *e)
{
    *r = (struct line_reader){.json = json_reader_new()};
    return r->json ? 0 : err_set(e, ERR_NOMEM, "out of memory for a JSON reader");
}

void line_reader_free(struct line_reader *r)
{
    json_reader_free(r->json);
    buf_free(&r->object);
    buf_free(&r->text);
    chat_text_free(&r->chat);
    buf_free(&r->id);
    buf_free(&r->url);
    buf_free(&r->source);
    arena_free(&r->chat_room);
}

/* The fields of the object that a line holds; a line that is a string is one under "". */
static int read_line(struct line_reader *r, struct span line, bool *string, const struct json_field **f,
                     struct err *e)
{
    line = utf8_without_mark(line);
    while (line.n && memchr(" \t\r", line.p[0], 3))
        line.p++, line.n--;
    *string = line.n && line.p[0] == '"';
    if (*string) { /* the JSON reader wants an object */
        buf_clear(&r->object);
        if (buf_puts(&r->object, "{\"\":") < 0 || buf_put_span(&r->object, line) < 0 ||
            buf_putc(&r->object, '}') < 0 || buf_reserve(&r->object, JSON_PADDING) < 0)
            return no_memory(e);
        line = buf_span(&r->object);
    }
    return json_read_object(r->json, line, f, e);
}

static int find_string(const struct json_field *f, int n, const char *key, const char *hint, struct span *raw, struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (!span_is(f[i].key, key))
            continue;
        if (f[i].type != JSON_STRING)
            return err_set(e, ERR_FORMAT, "\"%s\" is no string", key);
        *raw = f[i].raw;
        return 0;
    }
    return json_lacks_text(f, n, key, hint, e);
}

/* The texts of a line of JSON, which r->text has room for. */
static int read_texts(struct span line, const char *const *keys, int n, const char *hint, struct line_reader *r,
                      struct span *texts, struct err *e)
{
    const struct json_field *f;
    bool string;
    int fields;

    if (json_read_texts(line, keys, n, r->text.p, texts))
        return 0;
    fields = read_line(r, line, &string, &f, e);
    TRY(fields);
    for (int k = 0; k < n; k++)
        TRY(find_string(f, fields, string ? "" : keys[k], hint, &texts[k], e));
    for (int k = 0; k < n; k++) {
        size_t from = r->text.n;
        TRY(json_unescape(texts[k], &r->text, e));
        texts[k] = (struct span){r->text.p + from, r->text.n - from};
    }
    return 0;
}

/* hint: how to name other keys. */
static int take_texts(const struct line *x, const char *const *keys, int n, const char *hint, struct line_reader *r,
                      struct span *texts, struct err *e)
{
    if (x->fault)
        return err_set(e, ERR_FORMAT, "%s", x->fault);
    for (int k = 0; k < n; k++)
        texts[k] = x->text;
    if (x->plain)
        return 0;
    buf_clear(&r->text);
    if (buf_reserve(&r->text, x->text.n + JSON_PADDING) < 0)
        return no_memory(e);
    return read_texts(x->text, keys, n, hint, r, texts, e);
}

int line_texts(const struct line *x, const char *const *keys, int n, struct line_reader *r, struct span *texts, struct err *e)
{
    return take_texts(x, keys, n, "; --json-keys names another", r, texts, e);
}

int line_text(const struct line *x, const char *key, struct line_reader *r, struct span *text, struct err *e)
{
    return take_texts(x, &key, 1, "; --json-key names another", r, text, e);
}

int line_json(const struct line *x, struct span *json, struct err *e)
{
    if (x->fault)
        return err_set(e, ERR_FORMAT, "%s", x->fault);
    *json = x->text;
    return x->plain ? err_set(e, ERR_FORMAT, "no JSON") : 0;
}
