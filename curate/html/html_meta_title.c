/* The title: the headline that repeats what the head of the page says, else that without the site's name. */
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "curate/html/html_meta_parts.h"

enum { WORDS_MAX = 200, SAID_MAX = 4 * META_TITLE_MAX };

static bool in_word(char c)
{
    return ascii_is_alnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Takes the next word off s; false at its end. */
static bool next_word(struct span *s, struct span *word)
{
    while (s->n && !in_word(*s->p))
        s->p++, s->n--;
    *word = (struct span){s->p, 0};
    while (s->n && in_word(*s->p))
        s->p++, s->n--, word->n++;
    return word->n > 0;
}

static bool has(struct span text, struct span word)
{
    struct span w;

    while (next_word(&text, &w))
        if (w.n == word.n && strncasecmp(w.p, word.p, w.n) == 0)
            return true;
    return false;
}

/* The share of a heading's words, in per cent, that the page's head has too.  -1: no words. */
static int share(struct span heading, struct span said)
{
    struct span word;
    int n = 0, there = 0;

    while (n < WORDS_MAX && next_word(&heading, &word)) {
        n++;
        there += has(said, word);
    }
    return n ? there * 100 / n : -1;
}

/* The length of title without the last or first part that a separator sets apart:
 * *start is where what is kept begins.  heading: of the page, may be empty. */
static size_t without_site(struct span title, struct span site, struct span heading, size_t *start)
{
    static const char *const separators[] = {" | ", " - ", " \xE2\x80\x93 ", " \xE2\x80\x94 ",
                                             " :: ", " \xC2\xBB ", " \xC2\xB7 ", " \xE2\x80\xA2 ",
                                             " : ", " / "};
    *start = 0;
    for (unsigned k = 0; k < sizeof separators / sizeof *separators; k++) {
        size_t n = strlen(separators[k]);
        if (heading.n && title.n > heading.n + n && memcmp(title.p, heading.p, heading.n) == 0 &&
            memcmp(title.p + heading.n, separators[k], n) == 0)
            return heading.n;
        const char *last = NULL, *p = title.p, *end = title.p + title.n;
        const char *first = memmem(p, title.n, separators[k], n);
        while ((p = memmem(p, (size_t)(end - p), separators[k], n)))
            last = p, p += n;
        if (!last)
            continue;
        struct span tail = {last + n, (size_t)(end - last) - n};
        struct span head = {title.p, (size_t)(first - title.p)};
        if (site.n && span_eq(head, site)) {
            *start = head.n + n;
            return title.n - *start;
        }
        /* The site's name; or, unsaid, a short end of a long title. */
        if ((site.n && span_eq(tail, site)) || (!site.n && k < 7 && tail.n * 2 < title.n && tail.n < 40))
            return (size_t)(last - title.p);
    }
    return title.n;
}

/* A heading's text, on one line, into m->heading. */
static int read_heading(struct meta_reader *r, uint32_t i)
{
    struct buf *h = &r->m->heading;

    TRY(meta_text(r, i, META_TITLE_MAX, h));
    for (size_t k = 0; k < h->n; k++)
        if (h->p[k] == META_BREAK)
            h->p[k] = ' ';
    return 0;
}

/* The heading that says most of what the head says, at least half of its words; 0: none. */
static int find_headline(struct meta_reader *r, struct span said, uint32_t *found)
{
    struct html_meta *m = r->m;
    int best = 49, s;

    if (said.n > SAID_MAX)
        said.n = SAID_MAX;
    *found = 0;
    for (int k = 0; k < r->n_headings; k++) {
        TRY(read_heading(r, r->headings[k]));
        s = share(buf_span(&m->heading), said);
        if (s > best && !span_eq(buf_span(&m->heading), buf_span(&m->site))) {
            best = s;
            *found = r->headings[k];
        }
    }
    return 0;
}

int meta_choose_title(struct meta_reader *r, uint32_t *heading)
{
    struct buf *title = &r->m->title, *h = &r->m->heading;
    size_t start, n;

    buf_clear(h);
    buf_clear(&r->m->tmp);
    if (r->title)
        TRY(meta_text(r, r->title, META_TITLE_MAX, &r->m->tmp));
    TRY(find_headline(r, buf_span(title->n ? title : &r->m->tmp), heading));
    if (*heading) {
        TRY(read_heading(r, *heading));
        buf_clear(title);
        return buf_put_span(title, buf_span(h));
    }
    buf_clear(h);
    if (r->n_headings)
        TRY(read_heading(r, *heading = r->headings[0]));
    if (!title->n)
        TRY(buf_put_span(title, buf_span(&r->m->tmp)));
    if (!title->n)
        return buf_put_span(title, buf_span(h));
    n = without_site(buf_span(title), buf_span(&r->m->site), buf_span(h), &start);
    memmove(title->p, title->p + start, n);
    title->n = n;
    return 0;
}
