/* The least and the greatest of a chunk's texts, cut to PARQUET_BOUND bytes: of texts by their bytes, which is the order of their
 * characters. */
#include "base/parquet_chunk.h"
#include "base/utf8.h"

static struct parquet_bound bound_of(struct span s)
{
    struct parquet_bound b = {.n = (uint8_t)(s.n < PARQUET_BOUND ? s.n : PARQUET_BOUND), .cut = s.n > PARQUET_BOUND};

    if (b.n)
        memcpy(b.text, s.p, b.n);
    return b;
}

static int bound_cmp(struct span s, const struct parquet_bound *b)
{
    return span_cmp((struct span){s.p, s.n < PARQUET_BOUND ? s.n : PARQUET_BOUND}, (struct span){b->text, b->n});
}

void parquet_bound_take(struct parquet_written *x, struct span s)
{
    int least = x->has_range ? bound_cmp(s, &x->least_text) : -1, most = x->has_range ? bound_cmp(s, &x->most_text) : 1;

    if (least < 0)
        x->least_text = bound_of(s);
    else if (least == 0)
        x->least_text.cut &= s.n > PARQUET_BOUND;
    if (most > 0)
        x->most_text = bound_of(s);
    else if (most == 0)
        x->most_text.cut |= s.n > PARQUET_BOUND;
    x->has_range = true;
}

/* Where the last character of n bytes of text begins. */
static size_t last_at(const char *text, size_t n)
{
    do
        n--;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80);
    return n;
}

/* The bytes of a bound up to the end of its last whole character. */
static struct span whole(const struct parquet_bound *b)
{
    size_t at = b->cut ? last_at(b->text, b->n) : b->n;
    unsigned char lead = b->cut ? (unsigned char)b->text[at] : 0;
    size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    return (struct span){b->text, at + n <= b->n ? at + n : at};
}

struct span parquet_bound_least(const struct parquet_bound *b)
{
    return whole(b);
}

bool parquet_bound_most(const struct parquet_bound *b, char own[PARQUET_BOUND], struct span *s)
{
    size_t n, at;

    *s = whole(b);
    if (!b->cut)
        return true;
    memcpy(own, s->p, s->n);
    for (n = s->n; n > 0; n = at) { /* the last character that has a next one, if that is as long */
        char next[4];
        uint32_t c;

        at = last_at(own, n);
        utf8_next(own + at, own + n, &c);
        c = c == 0xd7ff ? 0xe000 : c + 1;
        if (c <= 0x10ffff && (size_t)utf8_put(next, c) == n - at) {
            memcpy(own + at, next, n - at);
            *s = (struct span){own, n};
            return true;
        }
    }
    return false;
}
