#include "curate/dedup/minhash_text.h"

#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include "base/digest.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "curate/dedup/minhash_repeats.h"
#include "curate/dedup/minhash_row.h"
#include "curate/dedup/minhash_units.h"
#include "curate/dedup/minhash_words.h"
#include "curate/text/words_rules.h"
#include "kernels/minhash_window.h"

/* What becomes of a code point. */
enum glyph_kind { GLYPH_TEXT, GLYPH_SPACE, GLYPH_DIGIT, GLYPH_SIGMA };
struct glyph {
    uint8_t kind, n; /* the first n bytes of s go to the words */
    bool odd;        /* a rule of the tokenizer may cut at it */
    char s[13];      /* the longest is a musical symbol of three code points: 12 */
};

enum { PAGE = 256, PAGES = 0x110000 / PAGE, MAX_TEXT = 1 << 28, TABLE_MOST = 1400000 /* hashes: 32 MiB */ };

struct shingler {
    const struct minhash_preset *preset;
    uint32_t seed;
    const UNormalizer2 *nfd;
    struct glyph *page[PAGES]; /* made when first met: a text uses few of them */

    struct minhash_row row; /* the words */
    bool whole;          /* words stay as they are: the tokenizer is not asked */
    bool odd, number;    /* of the word at the end: the tokenizer must see it; has a 0 */
    struct words tokens; /* what the tokenizer makes of such a word */
    int failed;
    struct minhash_units units; /* of SHINGLE_UNITS */
    struct rpv2_text rpv2;      /* of SHINGLE_RPV2_WORDS */
    uint64_t *hash;
    size_t hash_cap;
    struct repeats repeats;
    uint64_t *repeat; /* a bit for each hash */
    size_t repeat_cap;
    bool begun; /* a shingle of the text was there */
};

/* ---- code points ---- */

bool minhash_is_ccnet_mark(uint32_t c)
{
    static const uint16_t list[] = {
        0x00ab, 0x00b4, 0x00bb, 0x2013, 0x2014, 0x2019, 0x201c, 0x201d, 0x201e, 0x2026, 0x2236, 0x2501,
        0x25ba, 0x3001, 0x3002, 0x3008, 0x3009, 0x300a, 0x300b, 0x300c, 0x300d, 0x3010, 0x3011, 0xff01,
        0xff05, 0xff08, 0xff09, 0xff0c, 0xff0e, 0xff11, 0xff1a, 0xff1b, 0xff1f, 0xff5e,
    };

    for (size_t i = 0; c >= list[0] && i < sizeof list / sizeof *list; i++)
        if (list[i] == c)
            return true;
    return false;
}

/* What datatrove turns into a space, but for digits: white space (Python's), ASCII that is no letter, the C1 controls,
 * cc_net's marks. */
static bool is_trove_space(UChar32 c)
{
    if (c < 0xa0)
        return c >= 0x80 || !u_isalnum(c);
    return chars_classes()[c] & CHAR_SPACE || minhash_is_ccnet_mark((uint32_t)c);
}

static void glyph_add(struct glyph *g, UChar32 c)
{
    char utf8[4];
    int n = utf8_put(utf8, (uint32_t)c);

    g->odd |= !(chars_classes()[c] & CHAR_INERT);
    if (g->n + n <= (int)sizeof g->s) {
        memcpy(g->s + g->n, utf8, (size_t)n);
        g->n = (uint8_t)(g->n + n);
    }
}

/* Canonical decomposition without the non-spacing marks.  (NFD would also put spacing
 * marks of unequal combining class in order where two follow one another; there are
 * some thirty such marks in Unicode, and no word has two.) */
static void glyph_decompose(const struct shingler *s, struct glyph *g, UChar32 c)
{
    UChar d[32];
    UErrorCode status = U_ZERO_ERROR;
    int32_t n = unorm2_getDecomposition(s->nfd, c, d, 32, &status);

    if (n < 0 || U_FAILURE(status)) {
        if (u_charType(c) != U_NON_SPACING_MARK)
            glyph_add(g, c);
        return;
    }
    for (int32_t i = 0; i < n;) {
        UChar32 part;
        U16_NEXT(d, i, n, part);
        if (u_charType(part) != U_NON_SPACING_MARK)
            glyph_add(g, part);
    }
}

static struct glyph glyph_make(const struct shingler *s, UChar32 c)
{
    bool trove = s->preset->kind == SHINGLE_TROVE_WORDS;
    struct glyph g = {.kind = GLYPH_TEXT};
    UChar32 lower = u_tolower(c);

    if (c == 0x3a3) {
        g.kind = GLYPH_SIGMA;
    } else if (trove && u_charType(c) == U_DECIMAL_DIGIT_NUMBER) {
        g.kind = GLYPH_DIGIT;
    } else if (trove && is_trove_space(c)) {
        g.kind = GLYPH_SPACE;
    } else if (trove) {
        glyph_decompose(s, &g, c == 0x130 ? 'i' : lower);
    } else if ((U_MASK(u_charType(c)) & (U_GC_L_MASK | U_GC_N_MASK)) == 0) {
        g.kind = GLYPH_SPACE;
    } else if (c == 0x130) { /* i and a dot above, which is no letter */
        g.n = 2;
        memcpy(g.s, "i ", 2);
    } else {
        glyph_add(&g, lower);
    }
    return g;
}

static struct glyph *page_make(struct shingler *s, uint32_t number)
{
    struct glyph *page = malloc(PAGE * sizeof *page);

    for (uint32_t i = 0; page && i < PAGE; i++)
        page[i] = glyph_make(s, (UChar32)(number * PAGE + i));
    s->page[number] = page;
    return page;
}

/* NULL: out of memory. */
static inline const struct glyph *glyph_of(struct shingler *s, uint32_t c)
{
    const struct glyph *page = s->page[c / PAGE];

    if (!page)
        page = page_make(s, c / PAGE);
    return page ? &page[c % PAGE] : NULL;
}

/* ---- words ---- */

/* Puts spaces where the tokenizer cuts the word that ends at s->row.used. */
static void cut_word(struct shingler *s)
{
    size_t from = s->row.start[s->row.n];
    struct span word = {s->row.text + from, s->row.used - from};
    struct words *t = &s->tokens;
    struct err e;
    int rc = words_split(t, word, &e);

    if (rc < 0) {
        s->failed = rc;
        return;
    }
    for (size_t i = t->n; i-- > 1;) {
        char *to = s->row.text + from + t->w[i].off + i;
        memmove(to, to - i, t->w[i].len);
        to[-1] = ' ';
    }
    for (size_t i = 1; i < t->n; i++)
        s->row.start[++s->row.n] = (uint32_t)(from + t->w[i].off + i);
    s->row.used += t->n ? t->n - 1 : 0;
}

/* The word that ends at s->row.used, if there is one, is whole.  The tokenizer has to see it
 * only if a rule can apply: an exception, a number with something to it, an odd character.
 * (Its rules across words need marks that simplified text has not.) */
static inline void end_word(void *arg)
{
    struct shingler *s = arg;
    const char *word = s->row.text + s->row.start[s->row.n];
    size_t n = s->row.used - s->row.start[s->row.n];

    if (n == 0)
        return;
    if (s->preset->kind == SHINGLE_TROVE_WORDS && !s->whole &&
        (s->odd || (s->number && n > 1) || (n <= SPECIAL_MAX && words_maybe_special(word, n))))
        cut_word(s);
    s->odd = s->number = false;
    row_end(&s->row);
}

static bool is_digit(struct shingler *s, const char *p, const char *end, int *n)
{
    uint32_t c;
    const struct glyph *g;

    if (p >= end)
        return false;
    *n = utf8_next(p, end, &c);
    g = glyph_of(s, c);
    return g && g->kind == GLYPH_DIGIT;
}

/* Behind a number that begins at p: digits, and once a separator and more digits. */
static const char *skip_number(struct shingler *s, const char *p, const char *end)
{
    int n;
    uint32_t c;

    while (is_digit(s, p, end, &n))
        p += n;
    if (p >= end)
        return p;
    n = utf8_next(p, end, &c);
    if (c != '.' && c != ',' && c != 0x60c && c != 0x66b && !(c >= 0x2396 && c <= 0x2398))
        return p;
    if (!is_digit(s, p + n, end, &(int){0}))
        return p;
    for (p += n; is_digit(s, p, end, &n); p += n)
        ;
    return p;
}

/* One code point that is no ASCII letter; returns where the next begins. */
static const char *take_other(struct shingler *s, struct span text, const char *p)
{
    const char *next;
    int n;
    const struct glyph *g = glyph_of(s, chars_decode(p, &n));

    next = p + n;
    if (!g)
        return NULL;
    if (g->kind == GLYPH_SPACE) {
        end_word(s);
    } else if (g->kind == GLYPH_DIGIT) {
        s->row.text[s->row.used++] = '0';
        s->number = true;
        next = skip_number(s, p, text.p + text.n);
    } else if (g->kind == GLYPH_SIGMA) {
        s->row.used += (size_t)utf8_put(s->row.text + s->row.used, chars_lower_sigma(text, p));
    } else if (g->n == 2 && g->s[1] == ' ') {
        s->row.text[s->row.used++] = g->s[0];
        end_word(s);
    } else {
        memcpy(s->row.text + s->row.used, g->s, sizeof g->s);
        s->row.used += g->n;
        s->odd |= g->odd;
    }
    return next;
}

static int split_words(struct shingler *s, struct span text)
{
    const char *p = text.p, *end = text.p + text.n;
    const bool digits = s->preset->kind == SHINGLE_PLAIN_WORDS;

    /* At worst three bytes for one (Hangul: 3 to 9), and a space behind a letter. */
    TRY(row_begin(&s->row, 4 * text.n, text.n));
    s->failed = 0;
    while (p < end) {
        p = row_take_ascii(&s->row, p, end, digits, end_word, s);
        while (p < end) { /* letters beyond ASCII come in runs */
            char c = row_ascii(*p, digits);
            if (c && end - p >= 16)
                break;
            if (c) {
                s->row.text[s->row.used++] = c;
                p++;
            } else if (!(p = take_other(s, text, p))) {
                return ERR_NOMEM;
            }
        }
    }
    end_word(s);
    return s->failed;
}

/* ---- shingles ---- */

/* alone: a text of fewer words than a shingle has may be one. */
static void hash_words(struct shingler *s, bool alone, size_t *count)
{
    size_t width = (size_t)s->preset->width, n = s->row.n;

    *count = 0;
    if (n < width) {
        if (alone && s->preset->short_whole && n && s->row.text)
            s->hash[(*count)++] = XXH64(s->row.text, s->row.used - 1, 0);
        return;
    }
    *count = n - width + 1;
    if (s->preset->kind == SHINGLE_SPLIT_WORDS || s->preset->kind == SHINGLE_RPV2_WORDS) {
        for (size_t i = 0; i < *count; i++) {
            const uint32_t *at = s->row.start + i;
            struct span words = {s->row.text + *at, at[width] - 1 - *at};
            s->hash[i] = s->preset->kind == SHINGLE_SPLIT_WORDS ? (uint32_t)hash_xxh3_64(words) : digest_sha1_32(words);
        }
        return;
    }
    ISA_PICK(minhash_window)(s->row.text, s->row.start, (int)width, *count, s->hash);
}

static int hash_chars(struct shingler *s, struct span text, size_t *count)
{
    size_t n = 0, width = (size_t)s->preset->width;

    TRY(mem_room(&s->row.start, &s->row.start_cap, text.n + 2, sizeof *s->row.start));
    for (size_t i = 0; i < text.n; i++)
        if (((unsigned char)text.p[i] & 0xc0) != 0x80)
            s->row.start[n++] = (uint32_t)i;
    s->row.start[n] = (uint32_t)text.n;
    if (n < width) { /* one short window from the first character to the last */
        *count = n && s->preset->short_whole;
        s->row.start[1] = (uint32_t)text.n;
        width = 1;
    } else {
        *count = n - width + 1;
    }
    ISA_PICK(minhash_window_chars)(text.p, s->row.start, (int)width, *count, s->seed, s->hash);
    return 0;
}

/* Sets the bits of those of hash[count] that came before, among those of part p of so many. */
static int mark_repeats(struct shingler *s, size_t count, size_t p, size_t parts)
{
    size_t n = count;

    for (size_t i = 0; i < count && parts > 1; i++)
        n -= repeats_part(s->hash[i], parts) != p;
    TRY(repeats_begin(&s->repeats, n));
    for (size_t i = 0; i < count; i++)
        if (repeats_part(s->hash[i], parts) == p && repeats_next(&s->repeats, s->hash[i]))
            s->repeat[i / 64] |= UINT64_C(1) << i % 64;
    return 0;
}

/* Keeps the first of equal hashes.  Those of a long text are looked at in parts, so that the table stays small. */
static int make_unique(struct shingler *s, size_t *count)
{
    size_t parts = 1, kept = 0;

    while (*count / parts > TABLE_MOST)
        parts *= 2;
    TRY(mem_room(&s->repeat, &s->repeat_cap, *count / 64 + 1, sizeof *s->repeat));
    memset(s->repeat, 0, (*count / 64 + 1) * sizeof *s->repeat);
    for (size_t p = 0; p < parts; p++)
        TRY(mark_repeats(s, *count, p, parts));
    for (size_t i = 0; i < *count; i++)
        if (!(s->repeat[i / 64] >> i % 64 & 1))
            s->hash[kept++] = s->hash[i];
    *count = kept;
    return 0;
}

/* The words of text, as the preset has them, in s->row. */
static int cut_words(struct shingler *s, struct span text)
{
    switch (s->preset->kind) {
    case SHINGLE_UNITS: return minhash_units(&s->units, text, &s->row);
    case SHINGLE_SPLIT_WORDS: return minhash_words_text_dedup(text, &s->row);
    case SHINGLE_RPV2_WORDS: return minhash_words_rpv2(&s->rpv2, text, &s->row);
    default: return split_words(s, text);
    }
}

/* The hashes of all shingles of the next piece of a text. */
static int run(struct shingler *s, struct span piece, bool first, bool last, size_t *count)
{
    size_t before = (size_t)s->preset->width - 1;

    s->begun &= !first;
    if (s->preset->kind == SHINGLE_CHARS) {
        TRY(mem_room(&s->hash, &s->hash_cap, piece.n + 1, sizeof *s->hash));
        return hash_chars(s, piece, count);
    }
    row_keep(&s->row, first ? 0 : s->row.n < before ? s->row.n : before);
    TRY(cut_words(s, piece));
    TRY(mem_room(&s->hash, &s->hash_cap, s->row.n + 1, sizeof *s->hash));
    hash_words(s, last && !s->begun, count);
    s->begun |= *count > 0;
    return 0;
}

/* Of a text that is too long: with its length. */
static int fine_length(struct span text, struct err *e)
{
    return text.n < MAX_TEXT ? 0 : err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to compare", text.n);
}

int shingler_run(struct shingler *s, struct span text, const uint64_t **hash, size_t *count,
                 struct err *e)
{
    int rc;

    *count = 0;
    TRY(fine_length(text, e));
    rc = run(s, text, true, true, count);
    if (rc == 0)
        rc = make_unique(s, count);
    if (rc < 0)
        err_set(e, rc, "out of memory for the words of a text of %zu bytes", text.n);
    *hash = s->hash;
    return rc;
}

int shingler_piece(struct shingler *s, struct span piece, bool first, bool last, const uint64_t **hash, size_t *count,
                   struct err *e)
{
    int rc;

    *count = 0;
    TRY(fine_length(piece, e));
    rc = run(s, piece, first, last, count);
    *hash = s->hash;
    return rc < 0 ? err_set(e, rc, "out of memory for the words of a text of %zu bytes", piece.n) : 0;
}

/* Behind so many characters from `at` on. */
static size_t characters_on(struct span text, size_t at, int n)
{
    while (at < text.n && (n > 0 || ((unsigned char)text.p[at] & 0xc0) == 0x80))
        n -= ((unsigned char)text.p[at++] & 0xc0) != 0x80;
    return at;
}

size_t shingler_cut(const struct shingler *s, struct span text, size_t least, size_t *next)
{
    if (s->preset->kind == SHINGLE_CHARS && text.n > least) {
        *next = characters_on(text, least, 0);
        least = characters_on(text, *next, s->preset->width - 1);
        if (least < text.n)
            return least;
    }
    for (size_t i = least; s->preset->kind != SHINGLE_CHARS && i + 1 < text.n; i++)
        if ((text.p[i] == ' ' || text.p[i] == '\n') && row_ascii(text.p[i + 1], false)) {
            *next = i + 1;
            return i;
        }
    *next = text.n;
    return text.n;
}

size_t shingler_hash_bytes(const struct shingler *s)
{
    return minhash_hash_bytes(s->preset);
}

int shingler_simplify(struct shingler *s, struct span text, struct span *simple, struct err *e)
{
    int rc;

    TRY(fine_length(text, e));
    row_keep(&s->row, 0);
    s->whole = true;
    rc = split_words(s, text);
    s->whole = false;
    if (rc < 0)
        err_set(e, rc, "out of memory for the words of a text of %zu bytes", text.n);
    *simple = shingler_words(s);
    return rc;
}

struct span shingler_words(const struct shingler *s)
{
    return (struct span){s->row.text, s->row.used ? s->row.used - 1 : 0};
}

int shingler_new(struct shingler **out, const struct minhash_preset *p, uint32_t seed,
                 struct err *e)
{
    UErrorCode status = U_ZERO_ERROR;
    struct shingler *s = calloc(1, sizeof *s);

    *out = s;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    s->preset = p;
    s->seed = seed;
    s->nfd = unorm2_getNFDInstance(&status);
    if (U_FAILURE(status))
        return err_set(e, ERR_UNSUPPORTED, "cannot load ICU's normalisation data: %s",
                       u_errorName(status));
    if (!chars_classes() || !words_rules_init())
        return err_set(e, ERR_NOMEM, "out of memory for the tables of words");
    return 0;
}

void shingler_give_back(struct shingler *s)
{
    row_free(&s->row);
    repeats_free(&s->repeats);
    free(s->repeat);
    free(s->hash);
    s->hash = s->repeat = NULL;
    s->hash_cap = s->repeat_cap = 0;
}

void shingler_free(struct shingler *s)
{
    if (!s)
        return;
    for (int i = 0; i < PAGES; i++)
        free(s->page[i]);
    shingler_give_back(s);
    minhash_units_free(&s->units);
    words_free(&s->tokens);
    rpv2_text_free(&s->rpv2);
    free(s);
}
