#include "curate/stream/doc.h"

#include <stdio.h>

#include "base/ascii.h"
#include "base/utf8.h"

void doc_init(struct doc *d, struct arena *arena)
{
    *d = (struct doc){.arena = arena};
}

static bool inside(struct span part, struct span whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static int find(const struct doc *d, const char *key)
{
    for (int i = 0; i < d->n_fields; i++)
        if (span_is(d->field[i].key, key))
            return i;
    return -1;
}

/* The text of a string value; borrowed from raw when nothing in it is escaped. */
static int decode(struct doc *d, struct span raw, struct span *out, struct err *e)
{
    struct buf b = {0};
    int rc;

    if (!memchr(raw.p, '\\', raw.n)) {
        *out = (struct span){raw.p + 1, raw.n - 2};
        return 0;
    }
    /* Unescaping never makes text longer, so the buffer never has to grow. */
    b.p = arena_alloc(d->arena, raw.n + 1);
    if (!b.p)
        return err_set(e, ERR_NOMEM, "out of memory for a document of %zu bytes", raw.n);
    b.cap = raw.n + 1;
    b.max = raw.n;
    rc = json_unescape(raw, &b, e);
    *out = (struct span){b.p, b.n};
    return rc;
}

static int take_id(struct doc *d, enum json_type type, struct span raw, struct err *e)
{
    if (type == JSON_STRING)
        return decode(d, raw, &d->id, e);
    if (type == JSON_NULL) /* as rows without an id have it, where others have one */
        return 0;
    if (type != JSON_NUMBER)
        return err_set(e, ERR_FORMAT, "\"id\" is neither a string nor a number");
    d->id = raw;
    return 0;
}

static int default_id(struct doc *d, struct err *e)
{
    size_t n = strlen(d->file) + 24;
    char *p = arena_alloc(d->arena, n);

    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->id.n = (size_t)snprintf(p, n, "%s:%llu", d->file, (unsigned long long)d->offset);
    d->id.p = p;
    return 0;
}

/* What a line that is no object probably is. */
static int no_object(struct span line, struct err *e)
{
    static const struct { const char *start, *what; } known[] = {
        {"<", "is it HTML or XML? quern extract reads that"}, {"[", "documents stand in no list, but a line each"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (line.n >= strlen(known[i].start) && memcmp(line.p, known[i].start, strlen(known[i].start)) == 0)
            return err_set(e, ERR_FORMAT, "no JSON object (%s)", known[i].what);
    return err_set(e, ERR_FORMAT, "no JSON object");
}

int doc_parse(struct doc *d, struct json_reader *r, struct span line, struct err *e)
{
    return doc_parse_key(d, r, line, NULL, e);
}

int doc_parse_key(struct doc *d, struct json_reader *r, struct span line, const char *text_key, struct err *e)
{
    const char *wanted = text_key ? text_key : "text";
    bool renamed = strcmp(wanted, "text") != 0, has_text = false, other = false;
    const struct json_field *f;
    int n;

    line = utf8_without_mark(line);
    n = json_read_object(r, line, &f, e);
    if (n < 0)
        return n == ERR_FORMAT && line.n && line.p[0] != '{' ? no_object(line, e) : n;
    d->id = d->text = (struct span){0};
    d->n_fields = d->cap_fields = 0;
    d->field = arena_alloc(d->arena, (size_t)(n + 4) * sizeof *d->field);
    if (!d->field)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->cap_fields = n + 4;
    for (int i = 0; i < n; i++) {
        struct span key = inside(f[i].key, line) ? f[i].key : arena_dup(d->arena, f[i].key);
        if (!key.p)
            return err_set(e, ERR_NOMEM, "out of memory");
        d->field[d->n_fields++] = (struct doc_field){.key = key, .raw = f[i].raw};
        other |= renamed && span_is(key, "text");
        if (span_is(key, wanted)) {
            if (f[i].type != JSON_STRING)
                return err_set(e, ERR_FORMAT, "\"%s\" is not a string", wanted);
            TRY(decode(d, f[i].raw, &d->text, e));
            d->field[i].key = span_of("text");
            has_text = true;
        } else if (span_is(key, "id")) {
            TRY(take_id(d, f[i].type, f[i].raw, e));
        }
    }
    if (!has_text)
        return json_lacks_text(f, n, wanted, "; --json-key names another", e);
    if (other)
        return err_set(e, ERR_FORMAT, "the document has \"text\" beside \"%s\"", wanted);
    if (!d->id.p)
        TRY(default_id(d, e));
    d->line = line;
    if (renamed)
        d->line = (struct span){0};
    return 0;
}

struct span doc_raw(struct doc *d, const char *key)
{
    int i = find(d, key);
    struct buf b = {0};

    if (i < 0)
        return (struct span){0};
    if (!d->field[i].raw.p && json_put_string(&b, d->field[i].value) == 0)
        d->field[i].raw = arena_dup(d->arena, buf_span(&b));
    buf_free(&b);
    return d->field[i].raw;
}

struct span doc_string(struct doc *d, const char *key)
{
    int i = find(d, key);
    struct span s = {0};

    if (i < 0)
        return s;
    if (!d->field[i].raw.p)
        return d->field[i].value;
    if (d->field[i].raw.p[0] == '"' && decode(d, d->field[i].raw, &s, NULL) < 0)
        s = (struct span){0};
    return s;
}

/* Behind the string that begins at i of valid JSON. */
static size_t string_end(struct span s, size_t i)
{
    for (i++; s.p[i] != '"'; i++)
        i += s.p[i] == '\\';
    return i + 1;
}

/* Behind the value that begins at i, at the comma or bracket that ends it. */
static size_t value_end(struct span s, size_t i)
{
    for (int depth = 0; depth || !strchr(",}", s.p[i]);) {
        if (s.p[i] == '"') {
            i = string_end(s, i);
        } else {
            depth += (s.p[i] == '{' || s.p[i] == '[') - (s.p[i] == '}' || s.p[i] == ']');
            i++;
        }
    }
    return i;
}

/* The raw value under key of a valid object, maybe with blanks behind it; p NULL: none. */
static struct span member(struct span object, const char *key)
{
    for (size_t i = 1, end; object.p[i] != '}';) {
        if (object.p[i] != '"') { /* blanks and commas */
            i++;
            continue;
        }
        end = string_end(object, i);
        bool found = span_is((struct span){object.p + i + 1, end - i - 2}, key);
        for (i = end; strchr(" \t\r\n:", object.p[i]); i++)
            ;
        end = value_end(object, i);
        if (found)
            return (struct span){object.p + i, end - i};
        i = end;
    }
    return (struct span){0};
}

int doc_source(struct doc *d, const char *key, struct span *text)
{
    struct span source = doc_raw(d, "source"), raw = {0};

    *text = (struct span){0};
    if (source.n && source.p[0] == '{')
        raw = member(source, key);
    if (!raw.p)
        raw = doc_raw(d, key);
    if (raw.n && (ascii_is_digit((unsigned char)raw.p[0]) || raw.p[0] == '-')) { /* blanks may follow */
        while (strchr(" \t\r\n", raw.p[raw.n - 1]))
            raw.n--;
        *text = raw;
        return 0;
    }
    if (!raw.n || raw.p[0] != '"')
        return 0;
    raw.n = string_end(raw, 0);
    return decode(d, raw, text, NULL) == ERR_NOMEM ? ERR_NOMEM : 0;
}

/* The field of this name, made if there is none; NULL when memory is out. */
static struct doc_field *make_field(struct doc *d, const char *key)
{
    int i = find(d, key);
    struct span k;

    d->line.p = NULL;
    if (i >= 0)
        return &d->field[i];
    if (d->n_fields == d->cap_fields) {
        int cap = d->cap_fields * 2 + 8;
        struct doc_field *f = arena_alloc(d->arena, (size_t)cap * sizeof *f);
        if (!f)
            return NULL;
        if (d->n_fields)
            memcpy(f, d->field, (size_t)d->n_fields * sizeof *f);
        d->field = f;
        d->cap_fields = cap;
    }
    k = arena_dup(d->arena, span_of(key));
    if (!k.p)
        return NULL;
    d->field[d->n_fields] = (struct doc_field){.key = k};
    return &d->field[d->n_fields++];
}

int doc_set_raw(struct doc *d, const char *key, struct span json)
{
    struct span raw = arena_dup(d->arena, json);
    struct doc_field *f = raw.p ? make_field(d, key) : NULL;

    if (!f)
        return ERR_NOMEM;
    f->raw = raw;
    return 0;
}

int doc_set_string(struct doc *d, const char *key, struct span value)
{
    struct span copy = arena_dup(d->arena, value);
    struct doc_field *f = copy.p ? make_field(d, key) : NULL;

    if (!f)
        return ERR_NOMEM;
    f->raw = (struct span){0};
    f->value = copy;
    if (strcmp(key, "text") == 0)
        d->text = copy;
    else if (strcmp(key, "id") == 0)
        d->id = copy;
    return 0;
}

int doc_set_num(struct doc *d, const char *key, double value)
{
    struct buf b = {0};
    int rc = json_put_num(&b, value);

    if (rc == 0)
        rc = doc_set_raw(d, key, buf_span(&b));
    buf_free(&b);
    return rc;
}

char *doc_text_bytes(struct doc *d)
{
    int i = find(d, "text");
    union { const char *in; char *p; } bytes;

    if (i >= 0 && d->field[i].raw.p && inside(d->text, d->field[i].raw))
        d->text = arena_dup(d->arena, d->text);
    bytes.in = d->text.p;
    return bytes.p;
}

int doc_shorten_text(struct doc *d, size_t n)
{
    struct doc_field *f = make_field(d, "text");

    if (!f)
        return ERR_NOMEM;
    d->text.n = n;
    f->raw = (struct span){0};
    f->value = d->text;
    return 0;
}

int doc_write_key(const struct doc *d, int field, struct buf *out)
{
    TRY(buf_putc(out, field ? ',' : '{'));
    TRY(json_put_string(out, d->field[field].key));
    return buf_putc(out, ':');
}

int doc_write(const struct doc *d, struct buf *out)
{
    if (d->line.p) {
        TRY(buf_put_span(out, d->line));
        return buf_putc(out, '\n');
    }
    if (!d->n_fields)
        TRY(buf_putc(out, '{'));
    for (int i = 0; i < d->n_fields; i++) {
        TRY(doc_write_key(d, i, out));
        TRY(d->field[i].raw.p ? buf_put_span(out, d->field[i].raw)
                              : json_put_string(out, d->field[i].value));
    }
    return buf_puts(out, "}\n");
}
