#include "curate/filter_text.h"

#include <stdlib.h>

enum { PART_CHARS = 1, PART_WORDS = 2, PART_TYPES = 4 };

void filter_text_set(struct filter_text *t, struct span text)
{
    t->text = text;
    t->have = 0;
}

void filter_text_free(struct filter_text *t)
{
    words_free(&t->words);
    grams_free(&t->grams);
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

double filter_fail(struct filter_text *t, int rc, const char *what)
{
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

size_t filter_words(struct filter_text *t)
{
    if (filter_first(&t->have, PART_WORDS)) {
        int rc = words_split(&t->words, t->text, t->err);
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
