#include "curate/html/html_date.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"

/* A date that is being read. */
struct date {
    struct html_dates *known;
    struct span lang;
    int year, month, day;
    bool no_memory;
};

/* Reads a number of min to max digits; false leaves *s as it was. */
static bool number(struct span *s, size_t min, size_t max, int *v)
{
    size_t n = 0;

    for (*v = 0; n < s->n && n < max && ascii_is_digit((unsigned char)s->p[n]); n++)
        *v = *v * 10 + s->p[n] - '0';
    if (n < min)
        return false;
    s->p += n;
    s->n -= n;
    return true;
}

static bool literal(struct span *s, const char *any)
{
    if (!s->n || !strchr(any, s->p[0]))
        return false;
    s->p++;
    s->n--;
    return true;
}

/* Passes over one of some words or marks. */
static bool one_of(struct span *s, const char *const *words)
{
    for (; *words; words++)
        if (span_starts_nocase(*s, *words)) {
            s->p += strlen(*words);
            s->n -= strlen(*words);
            return true;
        }
    return false;
}

static void blanks(struct span *s)
{
    while (literal(s, " ,\t\n.-"))
        ;
}

/* What may stand between a day, a month and a year: blanks, "de", "of". */
static void between(struct span *s)
{
    static const char *const words[] = {"de ", "del ", "di ", "of ", "d'", "d\xE2\x80\x99", NULL};

    blanks(s);
    if (one_of(s, words))
        blanks(s);
}

static bool valid(const struct date *d)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y = d->year, m = d->month;

    if (y < 1990 || y > 2100 || m < 1 || m > 12 || d->day < 1)
        return false;
    return d->day <= days[m - 1] + (m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

/* The name of a month, in the page's language or one of those in which months are written most. */
static bool month_name(struct date *d, struct span *s)
{
    static const char *const others[] = {"en", "de", "fr", "es", "it", "pt", "nl"};
    size_t length = 0;

    d->month = 0;
    if (!s->n || ascii_is_digit((unsigned char)s->p[0]))
        return false;
    for (size_t i = d->lang.n ? 0 : 1; !d->month && i <= sizeof others / sizeof *others; i++) {
        const struct date_words *w = html_date_words(d->known, i ? span_of(others[i - 1]) : d->lang);
        if (!w)
            d->no_memory = true;
        d->month = w ? html_date_month(w, *s, &length) : 0;
    }
    s->p += length;
    s->n -= length;
    return d->month > 0;
}

/* "am" or "pm" behind an hour of twelve. */
static int hour_of_day(int h, struct span *s)
{
    static const char *const am[] = {"am", "a.m.", NULL}, *const pm[] = {"pm", "p.m.", NULL};
    struct span q = *s;
    bool after = false;

    while (literal(&q, " "))
        ;
    if (h < 1 || h > 12 || (!(after = one_of(&q, pm)) && !one_of(&q, am)) || (q.n && ascii_is_letter((unsigned char)*q.p)))
        return h;
    *s = q;
    return h % 12 + (after ? 12 : 0);
}

/* "Thh:mm[:ss[.fff]][zone]" behind a date, normalised, or nothing. */
static void clock_part(struct span s, char *out, size_t room)
{
    int h, m, sec = 0, zh, zm = 0, n;
    char zone[8] = "";

    *out = '\0';
    if (!literal(&s, "Tt ") || !number(&s, 1, 2, &h) || !literal(&s, ":") ||
        !number(&s, 2, 2, &m) || h > 23 || m > 59)
        return;
    if (literal(&s, ":") && !number(&s, 2, 2, &sec))
        return;
    if (literal(&s, "."))
        number(&s, 1, 9, &n);
    h = hour_of_day(h, &s);
    literal(&s, " ");
    if (s.n && (s.p[0] == 'Z' || s.p[0] == 'z')) {
        snprintf(zone, sizeof zone, "Z");
    } else if (s.n && (s.p[0] == '+' || s.p[0] == '-')) {
        char sign = s.p[0];
        literal(&s, "+-");
        if (number(&s, 2, 2, &zh) && zh < 15) {
            literal(&s, ":");
            if (!number(&s, 2, 2, &zm) || zm > 59)
                zm = 0;
            snprintf(zone, sizeof zone, "%c%02d:%02d", sign, zh, zm);
        }
    }
    if (sec < 61)
        snprintf(out, room, "T%02d:%02d:%02d%s", h, m, sec, zone);
}

/* 2024-05-01, 2024/5/1, 20240501, 2024年5月1日, 2024 May 1 */
static bool year_first(struct date *d, struct span *s)
{
    static const char *const year[] = {"\xE5\xB9\xB4", "\xEB\x85\x84", NULL},
                             *const month[] = {"\xE6\x9C\x88", "\xEC\x9B\x94", NULL};
    struct span q = *s;

    if (!number(&q, 4, 4, &d->year))
        return false;
    if (one_of(&q, year)) {
        literal(&q, " ");
        if (!number(&q, 1, 2, &d->month) || !one_of(&q, month))
            return false;
        literal(&q, " ");
        if (!number(&q, 1, 2, &d->day))
            return false;
    } else if (literal(&q, "-/.")) {
        literal(&q, " "); /* "2024. 5. 1." */
        if (!number(&q, 1, 2, &d->month)) {
            if (!month_name(d, &q))
                return false;
            between(&q);
        } else if (!literal(&q, "-/.")) {
            return false;
        }
        literal(&q, " ");
        if (!number(&q, 1, 2, &d->day))
            return false;
    } else if (literal(&q, " ")) {
        if (!month_name(d, &q))
            return false;
        between(&q);
        if (!number(&q, 1, 2, &d->day))
            return false;
    } else if (!number(&q, 2, 2, &d->month) || !number(&q, 2, 2, &d->day) || (q.n && ascii_is_digit((unsigned char)*q.p))) {
        return false;
    }
    *s = q;
    return true;
}

/* Whether the month comes first where numbers alone are written. */
static bool month_first(struct span lang)
{
    return lang.n == 0 || span_is_nocase(lang, "en") || span_is_nocase(lang, "en-US");
}

/* 01.05.2024, 1/5/2024: behind the first number, which is in d->day. */
static bool numbers(struct date *d, struct span *s)
{
    struct span q = *s;
    char mark = q.n ? *q.p : '\0';
    int first = d->day;

    if (!literal(&q, "./-") || !number(&q, 1, 2, &d->month) || !q.n || *q.p != mark || !literal(&q, "./-") ||
        !number(&q, 4, 4, &d->year))
        return false;
    *s = q;
    if (mark == '.' || first > 12)
        return true;
    if (d->month > 12 || month_first(d->lang)) {
        d->day = d->month;
        d->month = first;
    }
    return true;
}

/* 1 May 2024, 1. Mai 2024, 1 de mayo de 2024, 01.05.2024; May 1, 2024 */
static bool year_last(struct date *d, struct span *s)
{
    static const char *const ordinals[] = {"st", "nd", "rd", "th", "er", "\xC2\xBA", NULL};
    struct span q = *s;

    if (number(&q, 1, 2, &d->day)) {
        if (numbers(d, &q)) {
            *s = q;
            return true;
        }
        one_of(&q, ordinals);
        between(&q);
        if (!month_name(d, &q))
            return false;
    } else {
        if (!month_name(d, &q))
            return false;
        between(&q);
        if (!number(&q, 1, 2, &d->day))
            return false;
        one_of(&q, ordinals);
    }
    between(&q);
    if (!number(&q, 4, 4, &d->year) || (q.n && ascii_is_digit((unsigned char)*q.p)))
        return false;
    *s = q;
    return true;
}

static int read_date(struct html_dates *known, struct span lang, struct span s, struct buf *out)
{
    struct date d = {.known = known, .lang = lang};
    char clock[24];
    bool is = (year_first(&d, &s) || year_last(&d, &s)) && valid(&d);

    if (d.no_memory)
        return ERR_NOMEM;
    if (!is)
        return 0;
    clock_part(s, clock, sizeof clock);
    buf_clear(out);
    TRY(buf_printf(out, "%04d-%02d-%02d%s", d.year, d.month, d.day, clock));
    return 1;
}

int html_date(struct html_dates *known, struct span lang, struct span s, struct buf *out)
{
    int rc;

    blanks(&s);
    rc = read_date(known, lang, s, out);
    /* A weekday in front: "Wed, 01 May 2024". */
    for (size_t i = 2; rc == 0 && i < s.n && i < 16; i++)
        if (s.p[i] == ',' && !ascii_is_digit((unsigned char)s.p[0])) {
            struct span rest = {s.p + i + 1, s.n - i - 1};
            blanks(&rest);
            return read_date(known, lang, rest, out);
        }
    return rc;
}

/* Whether it has the four digits of a year, without which no date is looked for. */
static bool has_year(struct span s)
{
    for (size_t i = 0, n = 0; i < s.n; i++) {
        n = ascii_is_digit((unsigned char)s.p[i]) ? n + 1 : 0;
        if (n == 4)
            return true;
    }
    return false;
}

/* Whether a word or a number may begin at i. */
static bool begins(struct span s, size_t i)
{
    unsigned char c = (unsigned char)s.p[i], before = i ? (unsigned char)s.p[i - 1] : ' ';

    return ascii_is_alnum(c) ? !ascii_is_alnum(before) : c >= 0xC0 && !(before & 0x80) && !ascii_is_alnum(before);
}

int html_date_within(struct html_dates *known, struct span lang, struct span s, struct buf *out)
{
    int rc = 0;

    if (!has_year(s))
        return 0;
    for (size_t i = 0; i < s.n && rc == 0; i++)
        if (begins(s, i))
            rc = read_date(known, lang, (struct span){s.p + i, s.n - i}, out);
    return rc;
}
