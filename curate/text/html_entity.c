#include "curate/text/html_entity.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

static const struct {
    const char *name, *value;
    bool bare; /* may stand without a semicolon */
} entities[] = {
#include "curate/text/html_entities.inc"
};
enum { N_ENTITIES = sizeof entities / sizeof *entities, BARE_MAX = 6, NAME_MAX_LEN = 32 };

/* What bytes 0x80-0x9F mean in numeric references: windows-1252. */
static const uint16_t c1_controls[32] = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

static int digit(char c, int base)
{
    int v = ascii_hex(c);

    return v < base ? v : -1;
}

static size_t numeric(const char *p, const char *end, char out[8], int *n_out)
{
    const char *q = p + 2;
    int base = q < end && (*q == 'x' || *q == 'X') ? 16 : 10;
    uint32_t cp = 0;

    q += base == 16;
    const char *first = q;
    for (; q < end && digit(*q, base) >= 0; q++)
        if (cp <= 0x10FFFF)
            cp = cp * (uint32_t)base + (uint32_t)digit(*q, base);
    if (q == first)
        return 0;
    q += q < end && *q == ';';
    if (cp >= 0x80 && cp < 0xA0)
        cp = c1_controls[cp - 0x80];
    else if (cp == 0 || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
        cp = 0xFFFD;
    *n_out = utf8_put(out, cp);
    return (size_t)(q - p);
}

/* The entry whose name is the n bytes at p, or -1. */
static int find(const char *p, size_t n)
{
    int lo = 0, hi = N_ENTITIES;

    while (lo < hi) {
        int mid = (lo + hi) / 2;
        int c = strncmp(entities[mid].name, p, n);
        if (c == 0 && entities[mid].name[n] == '\0')
            return mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

size_t html_entity(const char *p, const char *end, bool in_attr, char out[8], int *n_out)
{
    size_t room = (size_t)(end - p), n = 0, used = 0;
    int found = -1;

    if (room < 3)
        return 0;
    if (p[1] == '#')
        return numeric(p, end, out, n_out);
    while (n + 1 < room && n < NAME_MAX_LEN && ascii_is_alnum(p[1 + n]))
        n++;
    if (n + 1 < room && p[1 + n] == ';' && (found = find(p + 1, n)) >= 0)
        used = n + 2;
    for (size_t m = n < BARE_MAX ? n : BARE_MAX; found < 0 && m >= 2; m--) {
        found = find(p + 1, m);
        if (found >= 0 && !entities[found].bare)
            found = -1;
        used = m + 1;
    }
    if (found < 0)
        return 0;
    if (in_attr && p[used - 1] != ';' && used < room && (p[used] == '=' || ascii_is_alnum(p[used])))
        return 0;
    *n_out = (int)strlen(entities[found].value);
    memcpy(out, entities[found].value, (size_t)*n_out);
    return used;
}

int html_decode(struct span s, bool in_attr, struct buf *b)
{
    const char *p = s.p, *end;

    if (!s.n)
        return 0;
    end = s.p + s.n;
    TRY(buf_reserve(b, s.n));
    while (p < end) {
        const char *amp = memchr(p, '&', (size_t)(end - p));
        char out[8];
        int n;

        TRY(buf_put(b, p, (size_t)((amp ? amp : end) - p)));
        if (!amp)
            break;
        size_t used = html_entity(amp, end, in_attr, out, &n);
        TRY(used ? buf_put(b, out, (size_t)n) : buf_putc(b, '&'));
        p = amp + (used ? used : 1);
    }
    return 0;
}
