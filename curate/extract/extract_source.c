/* The field `source` of a document. */
#include "base/json.h"
#include "base/utf8.h"
#include "curate/extract/extract_format.h"

/* A pair of bytes that may be anything. */
static int put_text(struct buf *b, const char *key, struct span value)
{
    struct buf repaired = {0};
    int rc;

    if (!value.n)
        return 0;
    TRY(json_put_key(b, key));
    if (utf8_valid(value))
        return json_put_string(b, value);
    rc = utf8_repair(value, &repaired);
    if (rc == 0)
        rc = json_put_string(b, buf_span(&repaired));
    buf_free(&repaired);
    return rc;
}

int extract_put_source(struct buf *b, const struct extract_source *s)
{
    const struct {
        const char *key;
        struct span value;
    } text[] = {
        {"digest", s->digest},
        {"content_type", s->content_type},
        {"charset_declared", s->charset_declared},
        {"charset", s->charset ? span_of(s->charset) : (struct span){NULL, 0}},
        {"date", s->date},
        {"license", s->license},
        {"robots", s->robots},
        {"tdm_reservation", s->tdm_reservation},
        {"tdm_policy", s->tdm_policy},
    };

    TRY(buf_putc(b, '{'));
    TRY(put_text(b, "dump", s->dump));
    TRY(put_text(b, "file", s->file));
    if (s->record)
        TRY(json_put_count(b, "offset", s->offset));
    if (s->length)
        TRY(json_put_count(b, "length", s->length));
    if (s->within)
        TRY(json_put_count(b, "within", s->within));
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        TRY(put_text(b, text[i].key, text[i].value));
    return buf_putc(b, '}');
}
