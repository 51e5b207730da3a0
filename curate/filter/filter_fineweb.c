/* The rules of FineWeb (Penedo et al. 2024) as datatrove 0.10 computes them:
 * fineweb_quality_filter.py. */
#include "curate/filter/filter_preset.h"

enum { EMPTY, LINE_PUNCT, SHORT_LINE, SHORT_LENGTH, CHAR_DUP, LIST };

struct fineweb {
    unsigned have;
    size_t lines, terminal, shorts, newlines;
    struct copies copies;
};

static bool is_short(struct span s, double most)
{
    return (double)s.n <= most || ((double)s.n <= 4 * most && (double)chars_count(s) <= most);
}

static const struct fineweb *measure(struct filter_text *t)
{
    struct fineweb *f = t->own;
    const uint16_t *class = chars_classes();
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t n = 0;

    if (!filter_first(&f->have, 1))
        return f;
    *f = (struct fineweb){.have = f->have};
    while (p <= end && t->text.n) {
        const char *q = memchr(p, '\n', (size_t)(end - p));
        struct span line = {p, (size_t)((q ? q : end) - p)};
        int len;

        f->newlines += q != NULL;
        if (chars_lstrip(line).n) {
            if (!filter_room(t, n + 1))
                return f;
            t->span[n++] = line;
            f->terminal += (class[chars_last(line, &len)] & CHAR_TERMINAL) != 0;
            f->shorts += is_short(line, t->set[SHORT_LENGTH].threshold);
        }
        if (!q)
            break;
        p = q + 1;
    }
    f->lines = n;
    if (grams_count_copies(&t->grams, t->span, n, &f->copies) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
    return f;
}

static double empty(struct filter_text *t, int arg)
{
    const struct fineweb *f = measure(t);

    (void)arg;
    return f->lines == 0;
}

static double terminal_lines(struct filter_text *t, int arg)
{
    const struct fineweb *f = measure(t);

    (void)arg;
    return (double)f->terminal / (double)f->lines;
}

static double short_lines(struct filter_text *t, int arg)
{
    const struct fineweb *f = measure(t);

    (void)arg;
    return (double)f->shorts / (double)f->lines;
}

static double line_copies(struct filter_text *t, int arg)
{
    const struct fineweb *f = measure(t);

    (void)arg;
    return (double)f->copies.chars / (double)(filter_chars(t) - f->newlines);
}

static double newlines(struct filter_text *t, int arg)
{
    const struct fineweb *f = measure(t);

    (void)arg;
    return (double)f->newlines / (double)filter_words(t);
}

static const struct rule rules[] = {
    [EMPTY] = {RULE("empty", empty, 0, RULE_ABOVE, 0, "1 if there is no text"), .key = "fineweb_empty"},
    [LINE_PUNCT] = {RULE("line_punct_ratio", terminal_lines, 0, RULE_BELOW, 0.12, "share of lines that end in punctuation")},
    [SHORT_LINE] = {RULE("short_line_ratio", short_lines, 0, RULE_ABOVE, 0.67, "share of short lines")},
    [SHORT_LENGTH] = {RULE("short_line_length", NULL, 0, RULE_SETTING, 30, "characters that a short line has at most")},
    [CHAR_DUP] = {RULE("char_dup_ratio", line_copies, 0, RULE_ABOVE, 0.01, "share of characters in copies of lines")},
    [LIST] = {RULE("list_ratio", newlines, 0, RULE_ABOVE, 0.3, "newlines / words")},
    {0},
};

const struct preset filter_fineweb = {
    .name = "fineweb",
    .source = "datatrove 0.10 FineWebQualityFilter; Penedo et al. 2024",
    .rules = rules,
    .size = sizeof(struct fineweb),
};
