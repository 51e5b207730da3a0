#include "tokenize/origin.h"

#include <inttypes.h>

#include "indexed_dataset/ledger.h"

/* A string or a number as text, in b; empty: it is neither. */
static int take_text(const struct json_field *f, struct buf *b, struct err *e)
{
    buf_clear(b);
    if (f->type == JSON_NUMBER)
        return buf_put_span(b, f->raw);
    return f->type == JSON_STRING ? json_unescape(f->raw, b, e) : 0;
}

static int put_place(const struct line *x, struct buf *b)
{
    TRY(buf_puts(b, "{\"file\":"));
    TRY(json_put_name(b, x->file));
    TRY(json_put_count(b, "within", x->offset));
    return buf_putc(b, '}');
}

/* The document's fields, of those that it has. */
static int take_fields(const struct line *x, struct line_reader *r, struct err *e)
{
    const struct json_field *f;
    int n = x->plain ? 0 : json_read_object(r->json, x->text, &f, e);

    buf_clear(&r->id);
    buf_clear(&r->url);
    buf_clear(&r->source);
    for (int i = 0; i < n; i++) { /* what is no object is told of by who makes tokens of it */
        if (span_is(f[i].key, "id"))
            TRY(take_text(&f[i], &r->id, e));
        else if (span_is(f[i].key, "url"))
            TRY(take_text(&f[i], &r->url, e));
        else if (span_is(f[i].key, "source") && f[i].type == JSON_OBJECT)
            TRY(buf_put_span(&r->source, f[i].raw));
    }
    return n == ERR_NOMEM ? n : 0;
}

static int put(const struct line *x, struct line_reader *r, struct buf *records, struct err *e)
{
    TRY(take_fields(x, r, e));
    if (!r->id.n)
        TRY(buf_printf(&r->id, "%s:%" PRIu64, x->file, x->offset));
    if (!r->source.n)
        TRY(put_place(x, &r->source));
    return ledger_put_record(records, buf_span(&r->id), buf_span(&r->url), buf_span(&r->source));
}

int origin_put(const struct line *x, struct line_reader *r, struct buf *records, struct err *e)
{
    int rc = x->fault ? 0 : put(x, r, records, e);

    return rc == ERR_NOMEM || rc == ERR_LIMIT ? err_set(e, rc, "out of memory for a document's origin") : rc;
}
