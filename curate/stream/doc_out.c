#include "curate/stream/doc_out.h"

#include <stdlib.h>

#include "base/json.h"

enum { CHUNK = 1 << 18 /* bytes that are escaped, or read, at a time */ };

void doc_out_free(struct doc_out *o)
{
    buf_free(&o->b);
    free(o->part);
    *o = (struct doc_out){0};
}

void doc_out_clear(struct doc_out *o, size_t most)
{
    buf_clear_most(&o->b, most);
    o->n = 0;
    o->more = 0;
}

/* Gives a long string escaped, a chunk at a time. */
static int escape(struct span s, doc_out_taker *take, void *to, struct err *e)
{
    struct buf b = {0};
    int rc = 0;

    for (size_t at = 0; at < s.n && rc == 0; at += CHUNK) {
        struct span chunk = {s.p + at, s.n - at < CHUNK ? s.n - at : CHUNK};

        buf_clear(&b);
        rc = json_put_string(&b, chunk) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", s.n)
                                            : take(to, (struct span){b.p + 1, b.n - 2}, e);
    }
    buf_free(&b);
    return rc;
}

static int count(void *to, struct span bytes, struct err *e)
{
    uint64_t *n = to;

    (void)e;
    *n += bytes.n;
    return 0;
}

/* ---- documents ---- */

static int put_part(struct doc_out *o, struct span s, bool escaped)
{
    struct err e;

    if (mem_grow(&o->part, &o->cap, o->n + 1, sizeof *o->part) < 0)
        return ERR_NOMEM;
    o->part[o->n++] = (struct doc_out_part){.at = o->b.n, .s = s, .escape = escaped};
    return escaped ? escape(s, count, &o->more, &e) : count(&o->more, s, &e);
}

int doc_out_put_long(struct doc_out *o, struct span s)
{
    return put_part(o, s, false);
}

int doc_out_put_file(struct doc_out *o, const struct spill_part *p)
{
    TRY(put_part(o, (struct span){0}, false));
    o->part[o->n - 1].file = *p;
    o->more += p->n;
    return 0;
}

static bool is_long(const struct doc_field *f)
{
    return (f->raw.p ? f->raw : f->value).n >= DOC_OUT_LONG;
}

/* Whether it has something of which no copy is to be made. */
static bool any_long(const struct doc *d)
{
    bool any = d->line.p && d->line.n >= DOC_OUT_LONG;

    for (int i = 0; i < d->n_fields && !d->line.p && !any; i++)
        any = is_long(&d->field[i]);
    return any;
}

static int put_value(struct doc_out *o, const struct doc_field *f)
{
    if (f->raw.p)
        return is_long(f) ? put_part(o, f->raw, false) : buf_put_span(&o->b, f->raw);
    if (!is_long(f))
        return json_put_string(&o->b, f->value);
    TRY(buf_putc(&o->b, '"'));
    TRY(put_part(o, f->value, true));
    return buf_putc(&o->b, '"');
}

int doc_out_put(struct doc_out *o, const struct doc *d)
{
    if (!any_long(d))
        return doc_write(d, &o->b);
    if (d->line.p) {
        TRY(put_part(o, d->line, false));
        return buf_putc(&o->b, '\n');
    }
    for (int i = 0; i < d->n_fields; i++) {
        TRY(doc_write_key(d, i, &o->b));
        TRY(put_value(o, &d->field[i]));
    }
    return buf_puts(&o->b, "}\n");
}

/* ---- their bytes ---- */

/* The bytes [from, to) of b, which has no memory while it is empty. */
static struct span between(const struct buf *b, size_t from, size_t to)
{
    return from < to ? (struct span){b->p + from, to - from} : (struct span){NULL, 0};
}

/* Gives bytes of a file, a chunk at a time. */
static int give_file(const struct spill_part *p, doc_out_taker *take, void *to, struct err *e)
{
    struct spill_reader r;
    size_t got;
    int rc = spill_reader_open(&r, p->s, p->at, p->at + p->n, CHUNK, e);

    while (rc == 0 && (rc = spill_ahead(&r, CHUNK, &got, e)) == 0 && got) {
        rc = take(to, (struct span){r.buf + r.pos, got}, e);
        r.pos += got;
    }
    spill_reader_close(&r);
    return rc < 0 ? rc : spill_part_done(p, e);
}

int doc_out_give(const struct doc_out *o, doc_out_taker *take, void *to, struct err *e)
{
    size_t at = 0;

    for (size_t i = 0; i < o->n; i++) {
        const struct doc_out_part *p = &o->part[i];

        TRY(take(to, between(&o->b, at, p->at), e));
        TRY(p->file.s ? give_file(&p->file, take, to, e) : p->escape ? escape(p->s, take, to, e) : take(to, p->s, e));
        at = p->at;
    }
    return take(to, between(&o->b, at, o->b.n), e);
}

static int append(void *to, struct span bytes, struct err *e)
{
    (void)e;
    return buf_put_span(to, bytes);
}

int doc_out_join(struct doc_out *o)
{
    struct buf all = {0};
    struct err e;
    int rc = 0;

    if (!o->n)
        return 0;
    rc = buf_reserve(&all, doc_out_size(o));
    if (rc == 0)
        rc = doc_out_give(o, append, &all, &e);
    if (rc < 0) {
        buf_free(&all);
        return rc;
    }
    doc_out_clear(o, 0);
    buf_free(&o->b);
    o->b = all;
    return 0;
}
