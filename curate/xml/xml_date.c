#include "curate/xml/xml_date.h"

#include <stdlib.h>
#include <strings.h>

#include "base/ascii.h"

/* The number that n digits at p are; -1: they are none. */
static int digits(struct span s, size_t at, size_t n)
{
    int v = 0;

    if (at + n > s.n)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (!ascii_is_digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static int number(struct span s)
{
    return s.n >= 1 && s.n <= 4 ? digits(s, 0, s.n) : -1;
}

/* 1 to 12, by number or by the first three letters; 0: no month. */
static int month_of(struct span s)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    int n = number(s);

    if (n >= 1 && n <= 12)
        return n;
    for (int i = 0; i < 12 && s.n >= 3; i++)
        if (strncasecmp(s.p, names + (size_t)i * 3, 3) == 0)
            return i + 1;
    return 0;
}

int xml_date_of_parts(struct span year, struct span month, struct span day, struct buf *out)
{
    int y = number(year), m = month_of(month), d = number(day);

    if (y < 1000)
        return 0;
    TRY(buf_printf(out, "%04d", y));
    if (!m)
        return 0;
    TRY(buf_printf(out, "-%02d", m));
    return d >= 1 && d <= 31 ? buf_printf(out, "-%02d", d) : 0;
}

/* The next word of *s, set apart by blanks, commas or hyphens. */
static struct span word(struct span *s)
{
    size_t n = 0;

    while (s->n && strchr(" ,-\t", *s->p))
        s->p++, s->n--;
    while (n < s->n && !strchr(" ,-\t", s->p[n]))
        n++;
    struct span w = {s->p, n};
    s->p += n;
    s->n -= n;
    return w;
}

/* "Mon, 02 Jan 2006 15:04:05 GMT", the day of the week being optional. */
static int rfc822(struct span s, struct buf *out)
{
    struct span day = word(&s), month, year, time, zone;
    size_t from = out->n;

    if (number(day) < 0)
        day = word(&s);
    month = word(&s);
    year = word(&s);
    TRY(xml_date_of_parts(year, month, day, out));
    if (out->n - from < 10)
        return 0;
    time = word(&s);
    while (s.n && *s.p == ' ')
        s.p++, s.n--;
    zone = s;
    if (digits(time, 0, 2) < 0 || time.n < 5 || time.p[2] != ':' || digits(time, 3, 2) < 0)
        return 0;
    TRY(buf_printf(out, "T%.5s", time.p));
    TRY(time.n >= 8 && digits(time, 6, 2) >= 0 ? buf_printf(out, ":%.2s", time.p + 6) : buf_puts(out, ":00"));
    if (zone.n >= 5 && (*zone.p == '+' || *zone.p == '-') && digits(zone, 1, 4) >= 0)
        return buf_printf(out, "%.3s:%.2s", zone.p, zone.p + 3);
    return span_starts(zone, "GMT") || span_starts(zone, "UT") || span_starts(zone, "Z") ? buf_putc(out, 'Z') : 0;
}

int xml_date(struct span s, struct buf *out)
{
    if (s.n == 8 && digits(s, 0, 4) > 1000 && digits(s, 4, 4) >= 0)
        return buf_printf(out, "%.4s-%.2s-%.2s", s.p, s.p + 4, s.p + 6);
    if (digits(s, 0, 4) >= 0 && (s.n == 4 || s.p[4] == '-'))
        return buf_put_span(out, s);
    return rfc822(s, out);
}
