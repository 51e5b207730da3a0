/* Undoing mojibake: back to the bytes, and those read as UTF-8. */
#include "curate/clean/mojibake.h"

#include <stdlib.h>

#include "base/utf8.h"

int cps_reserve(struct cps *c, size_t n)
{
    if (n > c->cap) {
        size_t cap = n + n / 2 + 64;
        uint32_t *p = cap <= SIZE_MAX / sizeof *p ? realloc(c->p, cap * sizeof *p) : NULL;
        if (!p)
            return ERR_NOMEM;
        c->p = p;
        c->cap = cap;
    }
    return 0;
}

int cps_put(struct cps *c, const uint32_t *p, size_t n)
{
    TRY(cps_reserve(c, c->n + n));
    if (n)
        memcpy(c->p + c->n, p, n * sizeof *p);
    c->n += n;
    return 0;
}

static int cps_set(struct cps *c, const uint32_t *p, size_t n)
{
    c->n = 0;
    return cps_put(c, p, n);
}

static bool cps_eq(const struct cps *a, const struct cps *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n * sizeof *a->p) == 0);
}

void mojibake_free(struct mojibake *m)
{
    for (int d = 0; d < MOJIBAKE_DEPTH; d++)
        for (int i = 0; i < 3; i++)
            free(m->level[d][i].p);
    free(m->bytes);
    free(m->bytes2);
    memset(m, 0, sizeof *m);
}

/* Room for what n characters may become as bytes, in both buffers. */
static int reserve_bytes(struct mojibake *m, size_t n)
{
    size_t cap = n * 3 + 64;

    if (cap > m->cap) {
        free(m->bytes);
        free(m->bytes2);
        m->bytes = malloc(cap);
        m->bytes2 = malloc(cap);
        m->cap = m->bytes && m->bytes2 ? cap : 0;
    }
    return m->cap ? 0 : ERR_NOMEM;
}

/* ---- bytes that were lost on the way ---- */

static bool is_cont(unsigned b) { return b >= 0x80 && b <= 0xBF; }
/* Not 85 nor A0, which look like the end of a line and a space. */
static bool is_cont_apart(unsigned b) { return is_cont(b) && b != 0x85 && b != 0xA0; }

/* The bytes of a sequence at p in which a space stands where A0 should; 0: there is none.
 * *at is where the space is. */
static int spaced_sequence(const unsigned char *p, size_t n, int *at)
{
    unsigned a = p[0], b = n > 1 ? p[1] : 0, c = n > 2 ? p[2] : 0, d = n > 3 ? p[3] : 0;

    *at = 1;
    if (b == ' ' && (a == 0xC2 || a == 0xC3 || a == 0xC5 || a == 0xCE || a == 0xD0 || a == 0xD9))
        return 2;
    if (b == ' ' && (a == 0xE2 || a == 0xE3) && is_cont_apart(c))
        return 3;
    if (a == 0xF0 && b == ' ' && is_cont(c) && is_cont(d))
        return 4;
    *at = 2;
    if (a >= 0xE0 && a <= 0xE3 && is_cont_apart(b) && c == ' ')
        return 3;
    if (a == 0xF0 && is_cont(b) && c == ' ' && is_cont(d))
        return 4;
    *at = 3;
    return a == 0xF0 && is_cont(b) && is_cont(c) && d == ' ' ? 4 : 0;
}

static bool starts_with(const unsigned char *p, size_t n, const char *word)
{
    size_t len = strlen(word);

    return n >= len && memcmp(p, word, len) == 0;
}

/* True if "a with grave" and the space at p are a word of their own, as in French, and
 * not the beginning of a Portuguese word. */
static bool is_grave_word(const unsigned char *p, size_t n)
{
    static const char *const not[] = {" ", "quele", "quela", "quilo", "s "};

    if (n < 2 || p[0] != 0xC3 || p[1] != ' ')
        return false;
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        if (starts_with(p + 2, n - 2, not[i]))
            return false;
    return true;
}

/* Puts A0 back where a space took its place within a sequence: b[0..n) to out. */
static size_t restore_a0(const unsigned char *b, size_t n, unsigned char *out)
{
    size_t m = 0;
    int at, len;

    for (size_t i = 0; i < n; i++) {
        out[m++] = b[i];
        if (is_grave_word(b + i, n - i))
            out[m++] = 0xA0;
    }
    for (size_t i = 0; i < m; i += (size_t)(len ? len : 1)) {
        len = out[i] < 0x80 ? 0 : spaced_sequence(out + i, m - i, &at);
        if (len)
            out[i + (size_t)at] = 0xA0;
    }
    return m;
}

static bool needs_a0(const unsigned char *b, size_t n)
{
    int at;

    for (size_t i = 0; i < n; i++)
        if (b[i] >= 0xC2 && spaced_sequence(b + i, n - i, &at))
            return true;
    return false;
}

static bool is_lost(unsigned b) { return b == 0x1A || b == '?'; }
static bool is_cont_or_sub(unsigned b) { return is_cont(b) || b == 0x1A; }

/* The bytes of a sequence at p of which a byte was lost (0x1A or a question mark). */
static size_t lossy_sequence(const unsigned char *p, size_t n)
{
    unsigned a = p[0], b = n > 1 ? p[1] : 0, c = n > 2 ? p[2] : 0, d = n > 3 ? p[3] : 0;

    if (a == 0x1A)
        return 1;
    if ((b == 0x1A && a >= 0xC2 && a <= 0xDF) || (b == '?' && (a == 0xC2 || a == 0xC3)))
        return 2;
    if (a == 0xED && n > 5 && p[3] == 0xED && p[4] >= 0xB0 && p[4] <= 0xBF && b >= 0xA0 && b <= 0xAF &&
        ((is_lost(c) && (is_lost(p[5]) || is_cont(p[5]))) || (is_cont(c) && is_lost(p[5]))))
        return 6;
    if (a >= 0xE0 && a <= 0xEF && ((is_lost(b) && is_cont_or_sub(c)) || (is_cont_or_sub(b) && is_lost(c))))
        return 3;
    if (a >= 0xF0 && a <= 0xF4 &&
        ((is_lost(b) && is_cont_or_sub(c) && is_cont_or_sub(d)) ||
         (is_cont_or_sub(b) && is_lost(c) && is_cont_or_sub(d)) ||
         (is_cont_or_sub(b) && is_cont_or_sub(c) && is_lost(d))))
        return 4;
    return 0;
}

/* Each such sequence becomes U+FFFD. */
static size_t replace_lossy(const unsigned char *b, size_t n, unsigned char *out)
{
    size_t m = 0;

    for (size_t i = 0; i < n;) {
        size_t len = b[i] == 0x1A || b[i] >= 0xC2 ? lossy_sequence(b + i, n - i) : 0;
        if (len) {
            memcpy(out + m, "\xEF\xBF\xBD", 3);
            m += 3;
        } else {
            out[m++] = b[i];
        }
        i += len ? len : 1;
    }
    return m;
}

/* ---- UTF-8 to code points ---- */

/* Two halves of a character that went through UTF-16 (CESU-8); 0: not here. */
static uint32_t cesu(const unsigned char *p, size_t n)
{
    if (n < 6 || p[0] != 0xED || (p[1] & 0xF0) != 0xA0 || !is_cont(p[2]) || p[3] != 0xED ||
        (p[4] & 0xF0) != 0xB0 || !is_cont(p[5]))
        return 0;
    return 0x10000 + ((p[1] & 0xFu) << 16 | (p[2] & 0x3Fu) << 10 | (p[4] & 0xFu) << 6 | (p[5] & 0x3Fu));
}

/* Strict, but for CESU-8 and Java's C0 80.  False if it is not UTF-8.  out has room. */
static bool decode(const unsigned char *b, size_t n, struct cps *out)
{
    size_t i = 0;

    out->n = 0;
    while (i < n) {
        uint32_t cp;
        int len;

        if (b[i] < 0x80) {
            out->p[out->n++] = b[i++];
            continue;
        }
        if (b[i] == 0xC0 && n - i > 1 && b[i + 1] == 0x80) {
            cp = 0;
            len = 2;
        } else if ((cp = cesu(b + i, n - i)) != 0) {
            len = 6;
        } else {
            len = utf8_next((const char *)b + i, (const char *)b + n, &cp);
            if (cp == 0xFFFD && !(len == 3 && b[i] == 0xEF && b[i + 1] == 0xBF && b[i + 2] == 0xBD))
                return false;
        }
        out->p[out->n++] = cp;
        i += (size_t)len;
    }
    return true;
}

/* ---- a whole text, or parts of it ---- */

/* Reads t through character set s: to bytes, mended, and as UTF-8 into out.  1: done,
 * 0: it is no UTF-8; ERR_NOMEM. */
static int undo_charset(struct mojibake *m, int s, const struct cps *t, struct cps *out)
{
    unsigned char *b, *swap;
    size_t n = t->n;

    TRY(reserve_bytes(m, n));
    b = m->bytes;
    swap = m->bytes2;
    for (size_t i = 0; i < n; i++)
        b[i] = mojibake_char(t->p[i])->byte[s];
    /* In MacRoman the lead bytes are dashes, which spaces follow. */
    if (s != MOJIBAKE_MACROMAN && needs_a0(b, n)) {
        n = restore_a0(b, n, swap);
        b = swap;
        swap = m->bytes;
    }
    if (mojibake_charsets[s].sloppy) {
        n = replace_lossy(b, n, swap);
        b = swap;
    }
    TRY(cps_reserve(out, n));
    return decode(b, n, out);
}

static bool has_role(const struct cps *t, size_t i, uint32_t role)
{
    return i < t->n && (mojibake_roles(t->p[i]) & role);
}

/* The length of the sequences at t[i] that look like UTF-8 read as something else. */
static size_t embedded(const struct cps *t, size_t i)
{
    size_t from = i;

    if (i && has_role(t, i - 1, ROLE_CONT_STRICT))
        return 0;
    for (;;) {
        uint32_t r = i < t->n ? mojibake_roles(t->p[i]) : 0;
        size_t more = r & ROLE_FIRST_OF_2 ? 1 : r & ROLE_FIRST_OF_3 ? 2 : r & ROLE_FIRST_OF_4 ? 3 : 0, k = 1;

        while (k <= more && has_role(t, i + k, ROLE_CONT))
            k++;
        if (!more || k <= more)
            return i - from;
        i += k;
    }
}

static int undo(struct mojibake *m, struct cps *t, int depth);

/* Undoes in t the parts that look like UTF-8, each for itself. */
static int undo_parts(struct mojibake *m, const struct cps *t, struct cps *out, int depth)
{
    size_t done = 0;

    out->n = 0;
    for (size_t i = 0; i < t->n;) {
        size_t n = t->p[i] < 0x80 ? 0 : embedded(t, i);
        if (n && n < t->n && depth + 1 < MOJIBAKE_DEPTH && mojibake_is_bad(t->p + i, n)) {
            struct cps *part = &m->level[depth + 1][0];
            TRY(cps_put(out, t->p + done, i - done));
            TRY(cps_set(part, t->p + i, n));
            TRY(undo(m, part, depth + 1));
            TRY(cps_put(out, part->p, part->n));
            done = i + n;
        }
        i += n ? n : 1;
    }
    return cps_put(out, t->p + done, t->n - done);
}

/* One step, from t to out.  1: out is what it gave; 0: nothing to do. */
static int undo_step(struct mojibake *m, const struct cps *t, struct cps *out, int depth)
{
    unsigned sets = (1u << MOJIBAKE_CHARSETS) - 1;
    uint32_t any = 0;

    for (size_t i = 0; i < t->n; i++)
        any |= t->p[i];
    if (any < 0x80 || !mojibake_is_bad(t->p, t->n))
        return 0;
    for (size_t i = 0; i < t->n && sets; i++)
        sets &= mojibake_char(t->p[i])->charsets;
    for (int s = 0; s < MOJIBAKE_CHARSETS; s++)
        if (sets & 1u << s) {
            int rc = undo_charset(m, s, t, out);
            if (rc)
                return rc;
        }
    TRY(undo_parts(m, t, out, depth));
    if (!cps_eq(t, out))
        return 1;
    mojibake_fix_c1(out);
    return !cps_eq(t, out);
}

static int undo(struct mojibake *m, struct cps *t, int depth)
{
    struct cps *out = &m->level[depth][1];

    for (;;) {
        int rc;

        if ((m->budget -= (int64_t)t->n) < 0)
            return ERR_LIMIT;
        rc = undo_step(m, t, out, depth);
        if (rc < 0)
            return rc;
        if (!rc || cps_eq(t, out))
            return 0;
        TRY(cps_set(t, out->p, out->n));
    }
}

int mojibake_undo(struct mojibake *m, struct cps *t) { return undo(m, t, 0); }

void mojibake_fix_c1(struct cps *t)
{
    const uint16_t *high = mojibake_charsets[MOJIBAKE_WINDOWS_1252].high;

    for (size_t i = 0; i < t->n; i++)
        if (t->p[i] >= 0x80 && t->p[i] < 0xA0)
            t->p[i] = high[t->p[i] - 0x80];
}
