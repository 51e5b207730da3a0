/* The rules of FineWeb (Penedo et al. 2024) as datatrove 0.10 computes them:
 * fineweb_quality_filter.py. */
#include "curate/filter_text.h"

static bool is_short(struct span s, double most)
{
    return (double)s.n <= most || ((double)s.n <= 4 * most && (double)chars_count(s) <= most);
}

static void measure(struct filter_text *t)
{
    const uint16_t *class = chars_classes();
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t n = 0;

    if (!filter_first(t, PART_FINEWEB))
        return;
    memset(&t->fineweb, 0, sizeof t->fineweb);
    while (p <= end && t->text.n) {
        const char *q = memchr(p, '\n', (size_t)(end - p));
        struct span line = {p, (size_t)((q ? q : end) - p)};
        int len;

        t->fineweb.newlines += q != NULL;
        if (chars_lstrip(line).n) {
            if (!filter_room(t, n + 1))
                return;
            t->span[n++] = line;
            t->fineweb.terminal += (class[chars_last(line, &len)] & CHAR_TERMINAL) != 0;
            t->fineweb.shorts += is_short(line, t->params->short_line_length);
        }
        if (!q)
            break;
        p = q + 1;
    }
    t->fineweb.lines = n;
    if (grams_count_copies(&t->grams, t->span, n, &t->fineweb.copies) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
}

double fineweb_empty(struct filter_text *t, int arg)
{
    (void)arg;
    measure(t);
    return t->fineweb.lines == 0;
}

double fineweb_terminal_lines(struct filter_text *t, int arg)
{
    (void)arg;
    measure(t);
    return (double)t->fineweb.terminal / (double)t->fineweb.lines;
}

double fineweb_short_lines(struct filter_text *t, int arg)
{
    (void)arg;
    measure(t);
    return (double)t->fineweb.shorts / (double)t->fineweb.lines;
}

double fineweb_line_copies(struct filter_text *t, int arg)
{
    (void)arg;
    measure(t);
    return (double)t->fineweb.copies.chars / (double)(filter_chars(t) - t->fineweb.newlines);
}

double fineweb_newlines(struct filter_text *t, int arg)
{
    (void)arg;
    measure(t);
    return (double)t->fineweb.newlines / (double)filter_words(t);
}
