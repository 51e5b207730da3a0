/* Months' names, and the order of numbers in dates, from ICU's data (CLDR). */
#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/udat.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include "base/utf8.h"
#include "curate/html/html_date.h"

enum { MONTHS = 12, STYLES = 4, NAME_MAX = 24, PATTERN_MAX = 64, LANGS_MAX = 128, TAG_MAX = 24, CUT_LEAST = 3 };

/* Letters folded: small, without accents. */
struct folded {
    UChar32 c[NAME_MAX];
    uint8_t end[NAME_MAX]; /* bytes up to behind each */
    int n;
};

struct date_words {
    char tag[TAG_MAX];
    bool month_first;
    uint8_t n[STYLES][MONTHS];
    UChar32 name[STYLES][MONTHS][NAME_MAX];
};

static UChar32 fold(const UNormalizer2 *nfd, UChar32 c)
{
    UErrorCode u = U_ZERO_ERROR;
    UChar apart[8];
    int32_t n = nfd && c >= 0x80 ? unorm2_getDecomposition(nfd, c, apart, 8, &u) : -1;

    if (n > 0 && U_SUCCESS(u) && !U16_IS_SURROGATE(apart[0]))
        c = apart[0];
    return u_tolower(c);
}

static bool is_accent(UChar32 c)
{
    return c >= 0x300 && c < 0x370;
}

static void fold_start(struct span s, struct folded *f)
{
    UErrorCode u = U_ZERO_ERROR;
    const UNormalizer2 *nfd = unorm2_getNFDInstance(&u);
    const char *p = s.p, *end = s.p + s.n;
    uint32_t c;

    for (f->n = 0; p < end && f->n < NAME_MAX; f->n++) {
        p += utf8_next(p, end, &c);
        if (is_accent((UChar32)c) && f->n) {
            f->end[--f->n] = (uint8_t)(p - s.p);
            continue;
        }
        f->c[f->n] = fold(nfd, (UChar32)c);
        f->end[f->n] = (uint8_t)(p - s.p);
    }
}

/* A name as ICU has it, without the full stop of an abbreviation. */
static void take_name(struct date_words *w, int style, int month, const UChar *name, int32_t n)
{
    UErrorCode u = U_ZERO_ERROR;
    const UNormalizer2 *nfd = unorm2_getNFDInstance(&u);
    uint8_t *to = &w->n[style][month];

    for (int32_t i = 0; i < n && *to < NAME_MAX;) {
        UChar32 c;
        U16_NEXT(name, i, n, c);
        if (!is_accent(c))
            w->name[style][month][(*to)++] = fold(nfd, c);
    }
    if (*to && w->name[style][month][*to - 1] == '.')
        --*to;
}

static void ask_icu(struct date_words *w, bool *short_of_memory)
{
    static const UDateFormatSymbolType styles[STYLES] = {UDAT_MONTHS, UDAT_STANDALONE_MONTHS, UDAT_SHORT_MONTHS,
                                                         UDAT_STANDALONE_SHORT_MONTHS};
    UErrorCode u = U_ZERO_ERROR;
    UChar text[PATTERN_MAX];
    char id[TAG_MAX * 2];
    UDateFormat *f;
    int32_t n;

    uloc_forLanguageTag(w->tag, id, sizeof id, NULL, &u);
    if (U_FAILURE(u)) {
        u = U_ZERO_ERROR;
        id[0] = '\0';
    }
    f = udat_open(UDAT_NONE, UDAT_SHORT, id[0] ? id : "en", NULL, 0, NULL, 0, &u);
    for (int s = 0; s < STYLES && U_SUCCESS(u); s++)
        for (int m = 0; m < MONTHS && U_SUCCESS(u); m++) {
            n = udat_getSymbols(f, styles[s], m, text, PATTERN_MAX, &u);
            if (U_SUCCESS(u))
                take_name(w, s, m, text, n);
            else if (u != U_MEMORY_ALLOCATION_ERROR)
                u = U_ZERO_ERROR;
        }
    n = U_SUCCESS(u) ? udat_toPattern(f, false, text, PATTERN_MAX, &u) : 0;
    for (int32_t i = 0; U_SUCCESS(u) && i < n; i++)
        if (text[i] == 'd' || text[i] == 'M') {
            w->month_first = text[i] == 'M';
            break;
        }
    *short_of_memory = u == U_MEMORY_ALLOCATION_ERROR;
    udat_close(f);
}

const struct date_words *html_date_words(struct html_dates *d, struct span lang)
{
    struct date_words *w;
    bool failed;
    size_t at = d->n;

    if (lang.n >= TAG_MAX)
        lang.n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (span_is(lang, d->lang[i]->tag))
            return d->lang[i];
    w = calloc(1, sizeof *w);
    if (!w || (d->n < LANGS_MAX && mem_grow(&d->lang, &d->cap, d->n + 1, sizeof *d->lang) < 0)) {
        free(w);
        return NULL;
    }
    if (lang.n)
        memcpy(w->tag, lang.p, lang.n);
    ask_icu(w, &failed);
    if (failed) {
        free(w);
        return NULL;
    }
    if (d->n == LANGS_MAX) { /* the one that was asked for first makes room */
        at = d->oldest++ % LANGS_MAX;
        free(d->lang[at]);
    } else {
        d->n++;
    }
    d->lang[at] = w;
    return w;
}

void html_dates_free(struct html_dates *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->lang[i]);
    free(d->lang);
    *d = (struct html_dates){0};
}

bool html_date_month_first(const struct date_words *w)
{
    return w->month_first;
}

/* How many characters of f a name has in common with it. */
static int common(const UChar32 *name, int n, const struct folded *f)
{
    int k = 0;

    while (k < n && k < f->n && name[k] == f->c[k])
        k++;
    return k;
}

int html_date_month(const struct date_words *w, struct span s, size_t *length)
{
    struct folded f;
    int best = 0, month = 0, letters = 0, cut = 0;

    fold_start(s, &f);
    while (letters < f.n && u_isalpha(f.c[letters]))
        letters++;
    for (int m = 0; m < MONTHS; m++)
        for (int style = 0; style < STYLES; style++) {
            int n = w->n[style][m], k = common(w->name[style][m], n, &f);
            /* a whole name; behind its last letter none may follow */
            if (k == n && n > best && (k == f.n || !u_isalpha(f.c[k - 1]) || !u_isalpha(f.c[k]))) {
                best = n;
                month = m + 1;
            } else if (style < 2 && k < n && k == letters && k >= CUT_LEAST) {
                cut = !cut || cut == m + 1 ? m + 1 : -1; /* of two months it says nothing */
            }
        }
    if (!month && cut > 0) {
        month = cut;
        best = letters;
    }
    *length = month ? f.end[best - 1] : 0;
    return month;
}
