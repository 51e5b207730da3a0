/* Templates that put numbers, units and dates together. */
#include <stdlib.h>

#include "curate/wiki/wikitext_parts.h"

/* The arguments of a template, by position, each as a part of the page. */
struct args {
    struct wt_arg v[8]; /* copies: the array may move */
    int n;
};

static struct args by_position(const struct wt_arg *arg, int n)
{
    struct args a = {.n = 0};

    for (int i = 0; i < n && a.n < 8; i++)
        if (!arg[i].name.p)
            a.v[a.n++] = arg[i];
    return a;
}

static struct span text(const struct wt *w, const struct wt_arg *a)
{
    return a ? wt_span(w, a->value.at, a->value.end) : (struct span){"", 0};
}

static void say(struct wt *w, struct wt_frame *f, const char *s)
{
    wt_text(w, f, s, strlen(s));
}

static void part(struct wt *w, struct wt_frame *f, const struct wt_arg *a)
{
    wt_part(w, f, a->value, false);
}

static bool is_number(struct span s)
{
    return s.n && (s.p[0] == '-' || s.p[0] == '+' || s.p[0] == '.' || (s.p[0] >= '0' && s.p[0] <= '9') ||
                   (s.n >= 3 && memcmp(s.p, "−", 3) == 0));
}

static const char *range_word(struct span s)
{
    static const struct { const char *in, *out; } words[] = {
        {"to", " to "}, {"-", "–"}, {"–", "–"}, {"and", " and "}, {"or", " or "}, {"by", " by "}, {"x", " × "},
        {"×", " × "}, {"*", " × "}, {"xx", " × "}, {"+/-", " ± "}, {"±", " ± "}, {"&", " and "}, {"to(-)", " to "}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_is(s, words[i].in))
            return words[i].out;
    return NULL;
}

/* {{convert|10|km|mi}}: what is converted, "10 km", without what it is converted to. */
static void convert(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    struct args a = by_position(arg, n);
    int i = 0;

    while (i < a.n && is_number(text(w, &a.v[i]))) {
        const char *word = i + 2 < a.n ? range_word(text(w, &a.v[i + 1])) : NULL;
        if (i)
            say(w, f, " ");
        part(w, f, &a.v[i++]);
        while (word && i + 1 < a.n) {
            say(w, f, word);
            part(w, f, &a.v[i + 1]);
            i += 2;
            word = i + 1 < a.n ? range_word(text(w, &a.v[i])) : NULL;
        }
        if (i < a.n) {
            say(w, f, " ");
            part(w, f, &a.v[i++]); /* the unit */
        }
        /* 5 ft 6 in: a number and a unit again, not a number of digits */
        if (i + 1 >= a.n || !is_number(text(w, &a.v[i])) || is_number(text(w, &a.v[i + 1])))
            break;
    }
    if (i == 0)
        wt_dropped(w, f);
}

static void named(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n, const char *name, const char *before)
{
    const struct wt_arg *a = wt_argument(arg, n, span_of(name));

    if (a) {
        struct wt_arg copy = *a;
        say(w, f, before);
        part(w, f, &copy);
    }
}

/* {{val|1.5|0.2|e=3|u=km}} */
static void value(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    static const struct { const char *name, *before; } more[] = {
        {"2", " ± "}, {"e", " × 10^"}, {"u", " "}, {"ul", " "}, {"upl", " "}, {"s", ""}};
    int first = (int)(arg - w->arg);

    named(w, f, arg, n, "p", "");
    named(w, f, w->arg + first, n, "1", "");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        named(w, f, w->arg + first, n, more[i].name, more[i].before);
}

/* {{frac|1|2}}, {{frac|3|1|2}}, {{frac|2}} */
static void fraction(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    struct args a = by_position(arg, n);

    if (a.n == 1)
        say(w, f, "1/");
    for (int i = 0; i < a.n && i < 3; i++) {
        if (i)
            say(w, f, i + 1 == a.n ? "/" : " ");
        part(w, f, &a.v[i]);
    }
}

static void circa(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    struct args a = by_position(arg, n);

    say(w, f, "c. ");
    for (int i = 0; i < a.n && i < 2; i++) {
        if (i)
            say(w, f, " – c. ");
        part(w, f, &a.v[i]);
    }
}

/* Year, month, day of arguments from the first on; what is no number is written as it is. */
static void date(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August",
                                         "September", "October", "November", "December"};
    struct args a = by_position(arg, n);
    long month = a.n > 1 ? strtol(text(w, &a.v[1]).p, NULL, 10) : 0;

    if (!a.n) {
        wt_dropped(w, f);
        return;
    }
    if (month >= 1 && month <= 12 && is_number(text(w, &a.v[0]))) {
        if (a.n > 2 && is_number(text(w, &a.v[2]))) {
            part(w, f, &a.v[2]);
            say(w, f, " ");
        }
        say(w, f, months[month - 1]);
        say(w, f, " ");
        part(w, f, &a.v[0]);
        return;
    }
    for (int i = 0; i < a.n && i < 3; i++) { /* {{date|12|mars|1950}} */
        if (i)
            say(w, f, " ");
        part(w, f, &a.v[i]);
    }
}

static void as_of(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    const struct wt_arg *alt = wt_argument(arg, n, span_of("alt"));
    struct wt_arg copy;

    if (alt) {
        copy = *alt;
        part(w, f, &copy);
        return;
    }
    if (!wt_argument(arg, n, span_of("bare"))) {
        bool since = wt_argument(arg, n, span_of("since")), low = wt_argument(arg, n, span_of("lc"));
        say(w, f, since ? (low ? "since " : "Since ") : low ? "as of " : "As of ");
    }
    date(w, f, arg, n);
}

/* {{USS|Enterprise|CVN-65}}, {{ship|HMS|Hood|51}} */
static void ship(struct wt *w, struct wt_frame *f, const char *template, const struct wt_arg *arg, int n)
{
    struct args a = by_position(arg, n);
    int i = 0;

    if (strcmp(template, "ship") != 0) {
        char upper[8] = {0};
        for (int k = 0; k < 7 && template[k]; k++)
            upper[k] = (char)(template[k] - ('a' - 'A'));
        say(w, f, upper);
    } else if (a.n) {
        part(w, f, &a.v[i++]);
    }
    say(w, f, " ");
    if (i < a.n)
        part(w, f, &a.v[i++]);
    if (i < a.n && a.v[i].value.at < a.v[i].value.end) {
        say(w, f, " (");
        part(w, f, &a.v[i]);
        say(w, f, ")");
    }
}

/* {{zh|t=...|s=...|p=...}}: the words in their scripts, and how they are read. */
static void languages(struct wt *w, struct wt_frame *f, const struct wt_arg *arg, int n)
{
    static const char *const names[] = {"c", "t", "s", "hangul", "hanja", "p", "rr", "1", "2"};
    int first = (int)(arg - w->arg);
    bool any = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wt_argument(w->arg + first, n, span_of(names[i]))) {
            named(w, f, w->arg + first, n, names[i], any ? "; " : "");
            any = true;
        }
    if (!any)
        wt_dropped(w, f);
}

void wt_function(struct wt *w, struct wt_frame *f, const char *name, const char *template, const struct wt_arg *arg, int n)
{
    if (strcmp(name, "convert") == 0)
        convert(w, f, arg, n);
    else if (strcmp(name, "value") == 0)
        value(w, f, arg, n);
    else if (strcmp(name, "fraction") == 0)
        fraction(w, f, arg, n);
    else if (strcmp(name, "circa") == 0)
        circa(w, f, arg, n);
    else if (strcmp(name, "date") == 0)
        date(w, f, arg, n);
    else if (strcmp(name, "as of") == 0)
        as_of(w, f, arg, n);
    else if (strcmp(name, "ship") == 0)
        ship(w, f, template, arg, n);
    else
        languages(w, f, arg, n);
}
