/* Months' names from ICU's data (CLDR).  They are read from its resources, not by its formats: a format opens a calendar, a
 * time zone and what else the machine is set to, and takes a hundred times as long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ures.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "curate/html/html_date.h"

enum {
    MONTHS = 12, STYLES = 4,
    WIDE = 2, /* styles that are whole names, the first */
    NAME_MAX = 24, LANGS_MAX = 128, ID_MAX = 16, CUT_LEAST = 3
};

/* Letters folded: small, without accents. */
struct folded {
    UChar32 c[NAME_MAX];
    uint8_t end[NAME_MAX]; /* bytes up to behind each */
    int n;
};

struct date_words {
    char id[ID_MAX]; /* ICU's: "de", "sr_Latn" */
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

/* ICU's names of a language; none of one that it does not know.  ERR_NOMEM. */
static int ask_icu(struct date_words *w)
{
    static const char *const path[] = {"calendar", "gregorian", "monthNames"},
                      *const styles[STYLES][2] = {{"format", "wide"}, {"stand-alone", "wide"}, {"format", "abbreviated"},
                                                  {"stand-alone", "abbreviated"}};
    UErrorCode u = U_ZERO_ERROR, missing;
    UResourceBundle *names = ures_openDirect(NULL, w->id, &u), *style = NULL; /* without falling back to the machine's own */
    int32_t n;

    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        names = ures_getByKey(names, path[i], names, &u);
    for (int s = 0; s < STYLES && U_SUCCESS(u); s++) {
        missing = U_ZERO_ERROR;
        style = ures_getByKey(names, styles[s][0], style, &missing);
        style = ures_getByKey(style, styles[s][1], style, &missing);
        for (int m = 0; m < MONTHS && U_SUCCESS(missing); m++) {
            const UChar *name = ures_getStringByIndex(style, m, &n, &missing);
            if (U_SUCCESS(missing))
                take_name(w, s, m, name, n);
        }
        u = missing == U_MEMORY_ALLOCATION_ERROR ? missing : u;
    }
    ures_close(style);
    ures_close(names);
    return u == U_MEMORY_ALLOCATION_ERROR ? ERR_NOMEM : 0;
}

/* ICU's identifier of a language and its script: "sr_Latn" of "sr-Latn-RS", "en" of "en-GB". */
static void name_language(struct span lang, char id[ID_MAX])
{
    size_t n = 0, script;

    while (n < lang.n && n < 3 && ascii_is_letter((unsigned char)lang.p[n]))
        n++;
    for (size_t i = 0; i < n; i++)
        id[i] = (char)(lang.p[i] | 0x20);
    for (script = n + 1; script < lang.n && ascii_is_letter((unsigned char)lang.p[script]); script++)
        ;
    if (script == n + 5) {
        id[n] = '_';
        memcpy(id + n + 1, lang.p + n + 1, 4);
        n += 5;
    }
    id[n] = '\0';
    if (strcmp(id, "nb") == 0) /* what CLDR has of Norwegian is there */
        memcpy(id, "no", 2);
}

const struct date_words *html_date_words(struct html_dates *d, struct span lang)
{
    struct date_words *w;
    char id[ID_MAX];
    size_t at = d->n;

    name_language(lang, id);
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(id, d->lang[i]->id) == 0)
            return d->lang[i];
    w = calloc(1, sizeof *w);
    if (!w || (d->n < LANGS_MAX && mem_grow(&d->lang, &d->cap, d->n + 1, sizeof *d->lang) < 0)) {
        free(w);
        return NULL;
    }
    snprintf(w->id, sizeof w->id, "%s", id);
    if (ask_icu(w) < 0) {
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
            } else if (style < WIDE && k < n && k == letters && k >= CUT_LEAST) {
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
