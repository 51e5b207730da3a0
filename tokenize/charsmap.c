#include "tokenize/charsmap.h"

#include <stdlib.h>

/* A unit of the double array. */
static bool has_leaf(uint32_t u) { return u >> 8 & 1; }
static uint32_t label(uint32_t u) { return u & (1u << 31 | 0xFF); }
static uint32_t offset(uint32_t u) { return u >> 10 << ((u & 1u << 9) >> 6); }

enum { RESULTS_MAX = 32 }; /* SentencePiece looks no further */

int charsmap_read(struct charsmap *m, struct span blob, struct err *e)
{
    const unsigned char *p = (const unsigned char *)blob.p;
    uint32_t n;

    if (!blob.n)
        return 0;
    n = blob.n < 4 ? 0 : p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (n < 4 || n % 4 || n > blob.n - 4 || blob.n > INT32_MAX || blob.n - 4 == n || p[blob.n - 1] != 0)
        return err_set(e, ERR_FORMAT, "its precompiled_charsmap is damaged");
    m->n_units = n / 4;
    m->n_texts = (uint32_t)(blob.n - 4 - n);
    m->units = malloc(n);
    m->texts = malloc(m->n_texts);
    if (!m->units || !m->texts)
        return err_set(e, ERR_NOMEM, "out of memory for a precompiled_charsmap");
    for (uint32_t i = 0; i < m->n_units; i++) {
        const unsigned char *u = p + 4 + 4 * i;
        m->units[i] = u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
    }
    memcpy(m->texts, blob.p + 4 + n, m->n_texts);
    for (int c = 0; c < 128; c++) {
        struct span text;
        size_t taken;
        m->plain[c] = c != '\r' && !charsmap_find(m, (struct span){(char[]){(char)c}, 1}, false, &text, &taken);
    }
    return 0;
}

void charsmap_free(struct charsmap *m)
{
    free(m->units);
    free(m->texts);
    memset(m, 0, sizeof *m);
}

bool charsmap_find(const struct charsmap *m, struct span s, bool longest, struct span *text, size_t *n)
{
    uint32_t at, u, found = UINT32_MAX;
    int results = 0;

    if (!m->units)
        return false;
    at = offset(m->units[0]);
    for (size_t i = 0; i < s.n && results < RESULTS_MAX; i++) {
        uint8_t c = (uint8_t)s.p[i];
        at ^= c;
        if (at >= m->n_units || label(u = m->units[at]) != c)
            break;
        at ^= offset(u);
        if (!has_leaf(u))
            continue;
        if (at >= m->n_units)
            break;
        found = m->units[at] & 0x7FFFFFFF;
        *n = i + 1;
        results++;
        if (!longest)
            break;
    }
    if (found >= m->n_texts)
        return false;
    text->p = m->texts + found;
    text->n = strlen(text->p);
    return true;
}

bool charsmap_touches(const struct charsmap *m, struct span s)
{
    struct span text;
    uint32_t at;
    size_t n, i = 0;

    if (!m->units)
        return false;
    at = offset(m->units[0]);
    for (; i < s.n; i++) {
        at ^= (uint8_t)s.p[i];
        if (at >= m->n_units || label(m->units[at]) != (uint8_t)s.p[i])
            break;
        at ^= offset(m->units[at]);
    }
    return i == s.n || charsmap_find(m, s, true, &text, &n);
}
