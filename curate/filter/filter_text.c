#include "curate/filter/filter_text.h"

#include <stdlib.h>

#include "curate/filter/filter_lists.h"

enum { PART_CHARS = 1, PART_WORDS = 2, PART_TYPES = 4, PART_SCAN = 8, PART_SPLIT = 16, PART_SPLIT_TYPES = 32,
       PART_LANG = 64 };

void filter_text_set(struct filter_text *t, struct span text)
{
    t->text = text.n ? text : span_of("");
    t->have = 0;
}

void filter_text_free(struct filter_text *t)
{
    words_free(&t->words);
    segment_free(&t->segmenter);
    grams_free(&t->grams);
    scan_free(&t->scan);
    words_free(&t->split);
    grams_free(&t->split_grams);
    free(t->span);
    memset(t, 0, sizeof *t);
}

bool filter_first(unsigned *have, unsigned part)
{
    if (*have & part)
        return false;
    *have |= part;
    return true;
}

/* The text is empty from here on, so that whoever is still looking at it finds nothing. */
double filter_fail(struct filter_text *t, int rc, const char *what)
{
    t->text.n = t->words.n = t->split.n = t->grams.n_types = t->split_grams.n_types = 0;
    if (!t->rc)
        t->rc = rc == ERR_NOMEM ? err_set(t->err, rc, "no memory for %s", what) : rc;
    return 0;
}

bool filter_room(struct filter_text *t, size_t n)
{
    size_t cap = t->cap_span ? t->cap_span : 256;
    struct span *s;

    if (n <= t->cap_span)
        return true;
    while (cap < n)
        cap *= 2;
    s = realloc(t->span, cap * sizeof *s);
    if (!s) {
        filter_fail(t, ERR_NOMEM, "the lines of a text");
        return false;
    }
    t->span = s;
    t->cap_span = cap;
    return true;
}

size_t filter_chars(struct filter_text *t)
{
    if (filter_first(&t->have, PART_CHARS)) {
        t->chars = chars_count(t->text);
        t->ascii = t->chars == t->text.n;
    }
    return t->chars;
}

struct span filter_field(struct filter_text *t, const char *key)
{
    struct span s = doc_string(t->doc, key);

    if (!s.p && doc_raw(t->doc, key).n && doc_raw(t->doc, key).p[0] == '"')
        filter_fail(t, ERR_NOMEM, "a field");
    return s;
}

struct span filter_source(struct filter_text *t, const char *key)
{
    struct span s;

    if (doc_source(t->doc, key, &s) < 0)
        filter_fail(t, ERR_NOMEM, "a field");
    return s;
}

const struct lang *filter_lang(struct filter_text *t)
{
    if (filter_first(&t->have, PART_LANG)) {
        t->lang = t->lists->lang;
        if (t->lists->lang_by_field)
            t->lang = lang_find(filter_field(t, "lang"));
    }
    return t->lang;
}

/* Are the codes of one language? */
static bool same_language(const char *code, struct span other)
{
    const struct lang *l = lang_find(span_of(code));

    return l ? l == lang_find(other) : span_is(other, code);
}

bool filter_next_bad_words(struct filter_text *t, const struct bad_words **b)
{
    const struct filter_lists *l = t->lists;
    const struct bad_words *end = l->bad + l->n_bad, *next = *b ? *b + 1 : l->bad;
    struct span code = {0};

    if (l->lang_by_field)
        code = filter_field(t, "lang");
    else
        code = span_of(lang_code(l->lang));
    while (next < end && next->code && !same_language(next->code, code))
        next++;
    *b = next;
    return next < end;
}

int filter_split_words(struct filter_text *t, struct span text, struct words *ws)
{
    const struct lang *l = filter_lang(t);

    if (l == lang_english())
        return words_split(ws, text, t->err);
    return segment_split(&t->segmenter, l, text, ws, t->err);
}

size_t filter_words(struct filter_text *t)
{
    if (filter_first(&t->have, PART_WORDS)) {
        int rc = filter_split_words(t, t->text, &t->words);
        if (rc < 0) {
            t->words.n = 0;
            filter_fail(t, rc, "words");
        }
    }
    return t->words.n;
}

const struct word_type *filter_types(struct filter_text *t, size_t *n)
{
    if (filter_first(&t->have, PART_TYPES)) {
        filter_words(t);
        filter_chars(t);
        if (grams_number_words(&t->grams, &t->words, t->text, t->ascii) < 0) {
            t->grams.n_types = 0;
            filter_fail(t, ERR_NOMEM, "the words of a text");
        }
    }
    *n = t->grams.n_types;
    return t->grams.type;
}

const struct scan *filter_scan(struct filter_text *t)
{
    if (filter_first(&t->have, PART_SCAN) && scan_text(&t->scan, t->text) < 0)
        filter_fail(t, ERR_NOMEM, "a text");
    return &t->scan;
}

const struct words *filter_split(struct filter_text *t)
{
    if (filter_first(&t->have, PART_SPLIT)) {
        const struct scan *scan = filter_scan(t); /* first: it may fail */
        int rc = scan_split(scan, t->text, &t->split, t->err);
        if (t->rc < 0 || rc < 0) {
            t->split.n = 0;
            filter_fail(t, rc, "words");
        }
    }
    return &t->split;
}

const struct word_type *filter_split_types(struct filter_text *t, size_t *n)
{
    if (filter_first(&t->have, PART_SPLIT_TYPES) &&
        grams_number_words(&t->split_grams, filter_split(t), t->text, t->scan.ascii) < 0) {
        t->split_grams.n_types = 0;
        filter_fail(t, ERR_NOMEM, "the words of a text");
    }
    *n = t->split_grams.n_types;
    return t->split_grams.type;
}

double filter_of_split(struct filter_text *t, size_t n) { return (double)n / (double)filter_split(t)->n; }

bool filter_stop_word(struct span s)
{
    static const char *const list[] = {"the", "be", "to", "of", "and", "that", "have", "with"};

    for (size_t i = 0; s.n <= 4 && i < sizeof list / sizeof *list; i++)
        if (span_is(s, list[i]))
            return true;
    return false;
}

bool filter_has_letter(struct span s)
{
    const uint16_t *class = chars_classes();
    int len;

    for (size_t k = 0; k < s.n; k += (size_t)len)
        if (class[chars_decode(s.p + k, &len)] & CHAR_LETTER)
            return true;
    return false;
}

size_t filter_count(struct span s, const char *what)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t count = 0, n = strlen(what);

    while ((size_t)(end - p) >= n && (p = memchr(p, what[0], (size_t)(end - p) - n + 1)) != NULL) {
        bool found = memcmp(p, what, n) == 0;

        count += found;
        p += found ? n : 1;
    }
    return count;
}
