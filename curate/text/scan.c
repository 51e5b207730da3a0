#include "curate/text/scan.h"

#include <stdlib.h>

#include "curate/text/scan_simd.h"

/* Counts what is beyond ASCII, and sets the bits of its white space. */
static void scan_beyond(struct scan *s, struct span text)
{
    const char *p = text.p, *end = text.p + text.n;

    while (p < end) {
        uint64_t x;
        int n, white;

        while (end - p >= 8 && (memcpy(&x, p, 8), !(x & 0x8080808080808080ULL)))
            p += 8;
        while (p < end && (unsigned char)*p < 0x80)
            p++;
        if (p == end)
            break;
        s->brackets += end - p >= 3 && p[0] == '\xE2' && p[1] == '\x9F' && (p[2] == '\xA8' || p[2] == '\xA9');
        n = (unsigned char)*p < 0xE0 ? 2 : (unsigned char)*p < 0xF0 ? 3 : 4;
        if (chars_space_at(p, end, &white))
            for (size_t at = (size_t)(p - text.p), to = at + (size_t)n; at < to; at++)
                s->space[at / 64] |= 1ULL << at % 64;
        p += n;
    }
}

int scan_text(struct scan *s, struct span text)
{
    bool (*classes)(const uint8_t *, size_t, struct scan *) = ISA_PICK(scan_classes);
    size_t blocks = text.n / 64 + 1;

    if (blocks > s->cap) {
        free(s->space);
        s->cap = blocks + blocks / 2;
        s->space = malloc(s->cap * sizeof *s->space);
        if (!s->space) {
            s->cap = 0;
            return ERR_NOMEM;
        }
    }
    s->ascii = classes((const uint8_t *)text.p, text.n, s);
    if (!s->ascii)
        scan_beyond(s, text);
    return 0;
}

/* Room for n more words. */
static int more_words(struct words *ws, size_t n)
{
    size_t cap = ws->cap ? ws->cap : 1024;
    struct word *w;

    if (ws->n + n <= ws->cap)
        return 0;
    while (cap < ws->n + n)
        cap += cap / 2;
    w = realloc(ws->w, cap * sizeof *w);
    if (!w)
        return ERR_NOMEM;
    ws->w = w;
    ws->cap = cap;
    return 0;
}

int scan_split(const struct scan *s, struct span text, struct words *ws, struct err *e)
{
    uint32_t *(*edges)(const uint64_t *, size_t, size_t, uint64_t *, uint32_t *) = ISA_PICK(scan_edges);
    enum { STEP = 32 }; /* blocks at a time: at most 2 048 edges */
    size_t blocks = (text.n + 63) / 64, n = 0;
    uint64_t last = 1;

    _Static_assert(sizeof(struct word) == 2 * sizeof(uint32_t), "a word is a pair of edges");
    ws->n = 0;
    if (text.n >= 1u << 30)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to filter", text.n);
    for (size_t i = 0; i < blocks; i += STEP) {
        uint32_t *out;

        ws->n = n / 2;
        TRY(more_words(ws, STEP * 32 + 64));
        out = (uint32_t *)(void *)ws->w;
        n = (size_t)(edges(s->space, i, i + STEP < blocks ? i + STEP : blocks, &last, out + n) - out);
    }
    if (n % 2) { /* the last word ends with the text, not with white space */
        uint32_t *out = (uint32_t *)(void *)ws->w;
        out[n++] = (uint32_t)text.n;
    }
    ws->n = n / 2;
    for (size_t i = 0; i < ws->n; i++)
        ws->w[i].len -= ws->w[i].off;
    return 0;
}

void scan_free(struct scan *s)
{
    free(s->space);
    memset(s, 0, sizeof *s);
}
