#include "curate/dedup/dedup_normal.h"

#include "curate/text/chars.h"

int normal_space(struct span text, struct buf *out)
{
    const uint16_t *class = chars_classes();
    const char *p = text.p, *end = p + text.n;
    bool gap = false;
    size_t from = out->n;
    int n;

    if (!class || buf_reserve(out, text.n + 1) < 0)
        return ERR_NOMEM;
    while (p < end) {
        if (class[chars_decode(p, &n)] & CHAR_SPACE) {
            gap = out->n > from;
        } else {
            if (gap)
                out->p[out->n++] = ' ';
            memcpy(out->p + out->n, p, (size_t)n);
            out->n += (size_t)n;
            gap = false;
        }
        p += n;
    }
    return 0;
}

int normal_words(struct span text, struct normal_scratch *s, struct buf *out, struct err *e)
{
    const struct minhash_row *r = &s->row;

    if (text.n >= 1u << 28)
        return err_set(e, ERR_LIMIT, "text of %zu bytes: normalisation takes less than 2^28", text.n);
    if (minhash_units(&s->units, text, &s->row) < 0 || buf_reserve(out, r->used) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    for (size_t i = 0; i < r->n; i++)
        buf_put(out, r->text + r->start[i], r->start[i + 1] - 1 - r->start[i]);
    return 0;
}

void normal_free(struct normal_scratch *s)
{
    minhash_units_free(&s->units);
    row_free(&s->row);
}
