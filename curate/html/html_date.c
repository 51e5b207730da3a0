#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "curate/html/html_meta.h"

/* Reads a number of min to max digits; false leaves *s as it was. */
static bool number(struct span *s, size_t min, size_t max, int *v)
{
    size_t n = 0;

    for (*v = 0; n < s->n && n < max && ascii_is_digit(s->p[n]); n++)
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

static bool valid(int y, int m, int d)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (y < 1990 || y > 2100 || m < 1 || m > 12 || d < 1)
        return false;
    return d <= days[m - 1] + (m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

/* English, German, French, Spanish, Italian, Portuguese, Dutch ... by their first three
 * letters, 0 if it is none. */
static int month_name(struct span *s)
{
    static const char *const names[12] = {
        "jan ene gen", "feb fev f\xC3\xA9v", "mar m\xC3\xA4r mrt", "apr avr abr", "may mai mei mag maj",
        "jun juin giu", "jul juil lug", "aug ao\xC3\xBB ago aou", "sep set", "oct okt ott out",
        "nov", ("dec dez d\xC3\xA9" "c dic des")};
    size_t n = 0;

    while (n < s->n && (((s->p[n] | 0x20) >= 'a' && (s->p[n] | 0x20) <= 'z') || s->p[n] < 0))
        n++;
    if (n < 3)
        return 0;
    for (int m = 0; m < 12; m++)
        for (const char *p = names[m]; *p;) {
            size_t k = strcspn(p, " ");
            if (k <= n && strncasecmp(p, s->p, k) == 0 && (k > 3 || memcmp(s->p, "jui", 3) != 0)) {
                s->p += n;
                s->n -= n;
                return m + 1;
            }
            p += k + (p[k] == ' ');
        }
    return 0;
}

static void blanks(struct span *s)
{
    while (literal(s, " ,\t\n.-"))
        ;
}

/* "Thh:mm[:ss[.fff]][zone]" behind a date, normalised, or nothing. */
static void clock_part(struct span s, char *out, size_t room)
{
    int h, m, sec = 0, zh, zm = 0, n;
    char zone[8] = "";

    *out = '\0';
    if (!literal(&s, "Tt ") || !number(&s, 2, 2, &h) || !literal(&s, ":") ||
        !number(&s, 2, 2, &m) || h > 23 || m > 59)
        return;
    if (literal(&s, ":") && !number(&s, 2, 2, &sec))
        return;
    if (literal(&s, "."))
        number(&s, 1, 9, &n);
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

/* 2024-05-01, 2024/5/1, 20240501 */
static bool year_first(struct span *s, int *y, int *m, int *d)
{
    struct span q = *s;

    if (!number(&q, 4, 4, y))
        return false;
    if (literal(&q, "-/.")) {
        if (!number(&q, 1, 2, m) || !literal(&q, "-/.") || !number(&q, 1, 2, d))
            return false;
    } else if (!number(&q, 2, 2, m) || !number(&q, 2, 2, d) || (q.n && ascii_is_digit(*q.p))) {
        return false;
    }
    *s = q;
    return true;
}

/* 1 May 2024, 1. Mai 2024, 1 de mayo de 2024, 01.05.2024; May 1, 2024 */
static bool year_last(struct span *s, int *y, int *m, int *d)
{
    struct span q = *s;

    if (number(&q, 1, 2, d)) {
        if (literal(&q, ".") && number(&q, 1, 2, m))
            return literal(&q, ".") && number(&q, 4, 4, y) && (*s = q, true);
        if (q.n > 2 && (strncasecmp(q.p, "st", 2) == 0 || strncasecmp(q.p, "nd", 2) == 0 ||
                        strncasecmp(q.p, "rd", 2) == 0 || strncasecmp(q.p, "th", 2) == 0))
            q.p += 2, q.n -= 2;
        blanks(&q);
        if (q.n > 3 && strncasecmp(q.p, "de ", 3) == 0)
            q.p += 3, q.n -= 3;
        if (!(*m = month_name(&q)))
            return false;
        blanks(&q);
        if (q.n > 3 && strncasecmp(q.p, "de ", 3) == 0)
            q.p += 3, q.n -= 3;
    } else {
        if (!(*m = month_name(&q)))
            return false;
        blanks(&q);
        if (!number(&q, 1, 2, d))
            return false;
        if (q.n > 2 && (q.p[0] | 0x20) >= 'a' && (q.p[0] | 0x20) <= 'z')
            q.p += 2, q.n -= 2;
        blanks(&q);
    }
    if (!number(&q, 4, 4, y))
        return false;
    *s = q;
    return true;
}

int html_date(struct span s, struct buf *out)
{
    char clock[24];
    int y, m, d;

    blanks(&s);
    /* A weekday in front: "Wed, 01 May 2024". */
    for (size_t i = 2; i < s.n && i < 12; i++)
        if (s.p[i] == ',' && !ascii_is_digit(s.p[0])) {
            struct span rest = {s.p + i + 1, s.n - i - 1};
            blanks(&rest);
            if (rest.n && ascii_is_digit(rest.p[0]) && !month_name(&(struct span){s.p, s.n}))
                s = rest;
            break;
        }
    if (!year_first(&s, &y, &m, &d) && !year_last(&s, &y, &m, &d))
        return 0;
    if (!valid(y, m, d))
        return 0;
    clock_part(s, clock, sizeof clock);
    buf_clear(out);
    TRY(buf_printf(out, "%04d-%02d-%02d%s", y, m, d, clock));
    return 1;
}
