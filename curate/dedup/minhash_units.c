#include "curate/dedup/minhash_units.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>

#include "base/utf8.h"
#include "curate/text/chars.h"

enum unit_kind {
    UNIT_NONE,  /* separates */
    UNIT_WORD,  /* part of a word */
    UNIT_ALONE, /* a unit by itself, with the marks behind it */
    UNIT_MARK,
    UNIT_GONE,  /* normalisation takes it away */
    UNIT_SEVERAL /* becomes several characters: ask ICU */
};
struct unit_glyph {
    uint8_t kind, own; /* of what it becomes; of itself */
    uint8_t n;         /* bytes of s */
    bool joins;        /* may change together with the character in front of it */
    char s[4];
};

enum { PAGE = 256, MAX_JOINED = 32 };

/* ---- code points ---- */

/* Is a letter of a script that has no spaces, or that such scripts share? */
static bool stands_alone(UChar32 c)
{
    UScriptCode script[32];
    UErrorCode status = U_ZERO_ERROR;
    int n = uscript_getScriptExtensions(c, script, 32, &status);

    for (int i = 0; i < n && U_SUCCESS(status); i++)
        if (uscript_breaksBetweenLetters(script[i]))
            return true;
    return false;
}

static enum unit_kind kind_of(UChar32 c)
{
    uint32_t class = U_GET_GC_MASK(c);

    if (class & U_GC_M_MASK)
        return UNIT_MARK;
    if (class & U_GC_L_MASK && stands_alone(c))
        return UNIT_ALONE;
    return class & (U_GC_L_MASK | U_GC_N_MASK) ? UNIT_WORD : UNIT_NONE;
}

static struct unit_glyph glyph_make(const struct minhash_units *u, UChar32 c)
{
    struct unit_glyph g = {.own = (uint8_t)kind_of(c), .joins = !unorm2_hasBoundaryBefore(u->fold, c)};
    UErrorCode status = U_ZERO_ERROR;
    uint16_t from[2], to[64];
    int32_t from_n = 0, n, i = 0;

    U16_APPEND_UNSAFE(from, from_n, c);
    n = unorm2_normalize(u->fold, from, from_n, to, 64, &status);
    if (U_FAILURE(status)) /* a surrogate */
        return g;
    g.kind = UNIT_GONE;
    if (n == 0)
        return g;
    U16_NEXT(to, i, n, c);
    g.kind = (uint8_t)(i < n ? UNIT_SEVERAL : kind_of(c));
    g.n = (uint8_t)utf8_put(g.s, (uint32_t)c);
    return g;
}

/* What the character at p (beyond ASCII) is; *n is its length. */
static inline const struct unit_glyph *glyph_at(struct minhash_units *u, const char *p, int *n)
{
    static const struct unit_glyph none = {0};
    uint32_t c = chars_decode(p, n);
    struct unit_glyph *page = u->page[c / PAGE];

    if (!page) {
        page = malloc(PAGE * sizeof *page);
        if (!page) {
            u->failed = ERR_NOMEM;
            return &none;
        }
        for (uint32_t i = 0; i < PAGE; i++)
            page[i] = glyph_make(u, (UChar32)(c / PAGE * PAGE + i));
        u->page[c / PAGE] = page;
    }
    return &page[c % PAGE];
}

/* ---- units ---- */

static inline void end_unit(void *arg)
{
    struct minhash_units *u = arg;

    if (row_open(u->row))
        row_end(u->row);
    u->alone = false;
}

/* The next character in normal form, of n bytes; four can be read. */
static inline void put(struct minhash_units *u, unsigned kind, const char *s, unsigned n)
{
    struct minhash_row *r = u->row;

    if (kind == UNIT_GONE)
        return;
    if (kind == UNIT_NONE || kind == UNIT_ALONE || (kind == UNIT_WORD && u->alone))
        end_unit(u);
    if (kind == UNIT_NONE)
        return;
    u->alone |= kind == UNIT_ALONE;
    memcpy(r->text + r->used, s, 4);
    r->used += n;
}

/* The characters from p on that normalise together; returns where they end. */
static const char *put_joined(struct minhash_units *u, const char *p, const char *end)
{
    uint16_t from[2 * (MAX_JOINED + 1)], to[32 * (MAX_JOINED + 1)];
    UErrorCode status = U_ZERO_ERROR;
    int32_t from_n = 0, to_n;

    for (int n, i = 0; p < end && i <= MAX_JOINED; p += n, i++) {
        if (i && ((unsigned char)*p < 0x80 || !glyph_at(u, p, &n)->joins))
            break;
        U16_APPEND_UNSAFE(from, from_n, (UChar32)chars_decode(p, &n));
    }
    to_n = unorm2_normalize(u->fold, from, from_n, to, sizeof to / sizeof *to, &status);
    if (U_FAILURE(status) || row_more(u->row, 4 * (size_t)(to_n + (end - p)), (size_t)(to_n + (end - p))) < 0) {
        u->failed = ERR_NOMEM;
        return end;
    }
    for (int32_t i = 0; i < to_n;) {
        UChar32 c;
        char s[4];
        int n;

        U16_NEXT(to, i, to_n, c);
        n = utf8_put(s, (uint32_t)c);
        put(u, c < 0x80 ? (row_ascii((char)c, true) ? UNIT_WORD : UNIT_NONE) : glyph_at(u, s, &(int){0})->own, s, (unsigned)n);
    }
    return p;
}

/* The characters beyond ASCII from p on; returns where they end. */
static const char *take_beyond(struct minhash_units *u, struct span text, const char *p)
{
    const char *end = text.p + text.n;
    int n, next_n = 0;
    const struct unit_glyph *g = glyph_at(u, p, &n), *next;

    if (g->joins && p > text.p && (unsigned char)p[-1] < 0x80) { /* with the character in front of it, once more */
        u->row->used -= row_open(u->row);
        p = put_joined(u, p - 1, end);
        if (p == end || (unsigned char)*p < 0x80)
            return p;
        g = glyph_at(u, p, &n);
    }
    for (;;) {
        next = p + n < end && (unsigned char)p[n] >= 0x80 ? glyph_at(u, p + n, &next_n) : NULL;
        if (g->kind == UNIT_SEVERAL || (next && next->joins)) {
            p = put_joined(u, p, end);
            if (p == end || (unsigned char)*p < 0x80)
                return p;
            g = glyph_at(u, p, &n);
        } else {
            put(u, g->kind, g->s, g->n);
            p += n;
            if (!next)
                return p;
            g = next;
            n = next_n;
        }
    }
}

int minhash_units(struct minhash_units *u, struct span text, struct minhash_row *row)
{
    const char *p = text.p, *end = text.p + text.n;
    UErrorCode status = U_ZERO_ERROR;

    u->row = row;
    u->alone = false;
    u->failed = 0;
    if (!u->fold)
        u->fold = unorm2_getNFKCCasefoldInstance(&status);
    if (U_FAILURE(status))
        return ERR_NOMEM;
    /* A character becomes at most two bytes for one, and a space. */
    TRY(row_begin(row, 4 * text.n, text.n));
    while (p < end && !u->failed) {
        if (u->alone)
            end_unit(u);
        p = row_take_ascii(row, p, end, true, end_unit, u);
        for (char c; p < end && (unsigned char)*p < 0x80; p++) { /* near the end */
            if ((c = row_ascii(*p, true)))
                row->text[row->used++] = c;
            else
                end_unit(u);
        }
        if (p < end)
            p = take_beyond(u, text, p);
    }
    end_unit(u);
    return u->failed;
}

void minhash_units_free(struct minhash_units *u)
{
    for (size_t i = 0; i < sizeof u->page / sizeof *u->page; i++)
        free(u->page[i]);
}
