#include "curate/report/source_stats.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "curate/filter/filter_lists.h"
#include "curate/filter/urls.h"
#include "curate/report/note.h"

enum { OTHER_NAMES = 10000 }; /* of everything but domains that are counted exactly */

void source_stats_init(struct source_stats *s, size_t domains)
{
    *s = (struct source_stats){.domains.bound = domains, .months.bound = OTHER_NAMES, .dumps.bound = OTHER_NAMES,
                               .files.bound = OTHER_NAMES, .licenses.bound = OTHER_NAMES, .robots.bound = OTHER_NAMES};
}

void source_stats_free(struct source_stats *s)
{
    name_tally_free(&s->domains);
    name_tally_free(&s->months);
    name_tally_free(&s->dumps);
    name_tally_free(&s->files);
    name_tally_free(&s->licenses);
    name_tally_free(&s->robots);
}

/* ---- one document: strings (domain, day, dump, file, licence, robots), kind, TDM ---- */

/* A name in small letters. */
static int put_small(struct span s, struct buf *note)
{
    char small[SOURCE_NAME_BYTES];

    s.n = s.n <= sizeof small ? s.n : 0;
    for (size_t i = 0; i < s.n; i++)
        small[i] = ascii_is_upper((unsigned char)s.p[i]) ? (char)(s.p[i] | 0x20) : s.p[i];
    return note_put_string(note, (struct span){small, s.n});
}

/* What stands under a key of `source`; nothing where it is longer than any name. */
static int put_field(struct doc *d, const char *key, struct buf *note)
{
    struct span s;

    TRY(doc_source(d, key, &s));
    return note_put_string(note, s.n <= SOURCE_NAME_BYTES ? s : (struct span){"", 0});
}

/* The registered domain, or the host where it has none. */
static int put_domain(struct doc *d, struct span host, struct buf *note)
{
    struct url_host h;

    url_host(doc_string(d, "url"), &h);
    return put_small(h.registered.n && h.registered.n <= SOURCE_NAME_BYTES ? h.registered : host, note);
}

/* The day that a time begins with, 2024-05-21 or, as in an ARC, 20240521, as the former.  False: there is none. */
static bool get_day(struct span s, char day[SOURCE_DAY_BYTES])
{
    bool compact = s.n >= 8 && s.p[4] != '-';
    size_t at = 0;

    for (size_t i = 0; i < SOURCE_DAY_BYTES; i++) {
        bool dash = i == 4 || i == 7;

        if (dash && compact)
            day[i] = '-';
        else if (at < s.n && (dash ? s.p[at] == '-' : ascii_is_digit((unsigned char)s.p[at])))
            day[i] = s.p[at++];
        else
            return false;
    }
    return memcmp(day + 5, "01", 2) >= 0 && memcmp(day + 5, "12", 2) <= 0 && memcmp(day + 8, "01", 2) >= 0 &&
           memcmp(day + 8, "31", 2) <= 0;
}

/* The day of the crawl: a `date` beside `source` is when the page says it was written. */
static int put_day(struct doc *d, struct buf *note)
{
    struct span source = doc_raw(d, "source"), s;
    char day[SOURCE_DAY_BYTES];
    bool has;

    TRY(doc_source(d, "date", &s));
    if (!s.n || !source.n || s.p < source.p || s.p >= source.p + source.n)
        s = doc_string(d, "crawled");
    has = get_day(s, day);
    return note_put_string(note, (struct span){day, has ? SOURCE_DAY_BYTES : 0});
}

static int put_license(struct doc *d, struct buf *note)
{
    char text[SOURCE_NAME_BYTES];
    size_t n;
    struct span s;

    TRY(doc_source(d, "license", &s));
    if (s.n > sizeof text)
        return note_put_string(note, span_of("(long)"));
    if (s.n)
        memcpy(text, s.p, s.n);
    n = filter_license(text, s.n);
    return note_put_string(note, (struct span){text, n});
}

/* The kind of source: an offset is that of a record. */
static enum source_kind kind_of(struct doc *d)
{
    struct span source = doc_raw(d, "source");

    if (!source.n || source.p[0] != '{')
        return SOURCE_NOT_SAID;
    return memmem(source.p, source.n, "\"offset\":", strlen("\"offset\":")) ? SOURCE_ARCHIVE : SOURCE_FILE;
}

int source_note(struct doc *d, struct span host, struct buf *note)
{
    struct span tdm, robots;

    TRY(put_domain(d, host, note));
    TRY(put_day(d, note));
    TRY(put_field(d, "dump", note));
    TRY(put_field(d, "file", note));
    TRY(put_license(d, note));
    TRY(doc_source(d, "robots", &robots));
    TRY(put_small(robots, note));
    TRY(doc_source(d, "tdm_reservation", &tdm));
    TRY(buf_putc(note, (char)kind_of(d)));
    return buf_putc(note, (char)(span_is(tdm, "1") ? TDM_RESERVED : span_is(tdm, "0") ? TDM_NOT_RESERVED : TDM_NOT_SAID));
}

/* ---- all, in order ---- */

static void add_count(struct name_count *to, const struct name_count *more)
{
    to->docs += more->docs;
    to->bytes += more->bytes;
    to->chars += more->chars;
    to->words += more->words;
}

/* "noindex, nofollow": each directive, without what it is set to. */
static int add_robots(struct name_tally *t, struct span list, const struct name_count *size)
{
    if (!list.n)
        return name_tally_add(t, list, size);
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        struct span one = {list.p, comma ? (size_t)(comma - list.p) : list.n};
        const char *colon = memchr(one.p, ':', one.n);

        list = (struct span){list.p + one.n + (comma ? 1 : 0), list.n - one.n - (comma ? 1 : 0)};
        one.n = colon ? (size_t)(colon - one.p) : one.n;
        while (one.n && *one.p == ' ')
            one = (struct span){one.p + 1, one.n - 1};
        if (one.n)
            TRY(name_tally_add(t, one, size));
    }
    return 0;
}

static int add_day(struct source_stats *s, struct span day, const struct name_count *size)
{
    if (day.n) {
        if (!*s->first || memcmp(day.p, s->first, day.n) < 0)
            memcpy(s->first, day.p, day.n);
        if (memcmp(day.p, s->last, day.n) > 0)
            memcpy(s->last, day.p, day.n);
        day.n = strlen("2024-05");
    }
    return name_tally_add(&s->months, day, size);
}

int source_stats_add(struct source_stats *s, struct span *note, const struct name_count *size)
{
    TRY(name_tally_add(&s->domains, note_take_string(note), size));
    TRY(add_day(s, note_take_string(note), size));
    TRY(name_tally_add(&s->dumps, note_take_string(note), size));
    TRY(name_tally_add(&s->files, note_take_string(note), size));
    TRY(name_tally_add(&s->licenses, note_take_string(note), size));
    TRY(add_robots(&s->robots, note_take_string(note), size));
    add_count(&s->kind[(unsigned char)*note_take(note, 1).p], size);
    add_count(&s->tdm[(unsigned char)*note_take(note, 1).p], size);
    return 0;
}

static int by_bytes(const void *a, const void *b, void *of)
{
    const struct name_tally *t = of;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;

    if (t->count[i].bytes != t->count[k].bytes)
        return t->count[i].bytes > t->count[k].bytes ? -1 : 1;
    return span_compare(t->names.name[i], t->names.name[k]);
}

size_t *source_domains(const struct source_stats *s, size_t *n, size_t *tenth)
{
    const struct name_tally *t = &s->domains;
    size_t *order = malloc((t->names.n + 1) * sizeof *order);
    union { const struct name_tally *in; void *out; } u = {t};

    *n = *tenth = 0;
    for (size_t i = 0; i < t->names.n && order; i++)
        if (t->names.name[i].n)
            order[(*n)++] = i;
    if (order)
        qsort_r(order, *n, sizeof *order, by_bytes, u.out);
    *tenth = (*n + 9) / 10;
    return order;
}
