/* Bad words as datatrove 0.10 has them of C4 (c4_filters.py, C4BadWordsFilter; Raffel et al.
 * 2020), with lists from files.  A word counts between characters that are no word
 * characters; in Japanese, Thai and Chinese anywhere. */
#include "curate/filter/filter_preset.h"

#include <stdlib.h>
#include <unicode/ucasemap.h>

#include "base/hash.h"
#include "curate/text/py_chars.h"

enum { FOUND, KEEP, SEED };

struct badwords {
    unsigned have;
    UCaseMap *map;
    struct buf lower;
};

/* The text in lower case, as str.lower() has it; p is NULL on failure. */
static struct span lower(struct filter_text *t)
{
    struct badwords *b = t->own;
    UErrorCode u = U_ZERO_ERROR;
    size_t room = t->text.n + t->text.n / 2 + 16; /* i with a dot above takes 3 bytes for 2 */
    int32_t n;

    if (!b->map)
        b->map = ucasemap_open("", 0, &u);
    buf_clear(&b->lower);
    if (t->text.n >= 1U << 30) {
        filter_fail(t, err_set(t->err, ERR_LIMIT, "a text of %zu bytes, 2^30 or more", t->text.n), "a text");
        return (struct span){0};
    }
    if (U_FAILURE(u) || buf_reserve(&b->lower, room) < 0) {
        filter_fail(t, ERR_NOMEM, "a text");
        return (struct span){0};
    }
    n = ucasemap_utf8ToLower(b->map, b->lower.p, (int32_t)room, t->text.p, (int32_t)t->text.n, &u);
    if (U_FAILURE(u)) {
        filter_fail(t, ERR_NOMEM, "a text");
        return (struct span){0};
    }
    b->lower.n = (size_t)n;
    return buf_span(&b->lower);
}

static bool stands_at(const struct word_trie *trie, const char *p, const char *end, bool anywhere)
{
    const uint8_t *class = py_chars();
    uint32_t node = 0;
    int n;

    while (p < end && (node = word_trie_next(trie, node, (unsigned char)*p)) != 0) {
        p++;
        if (trie->ends[node] && (anywhere || p == end || !(class[chars_decode(p, &n)] & PY_WORD)))
            return true;
    }
    return false;
}

static bool stands_in(const struct word_trie *trie, struct span s, bool anywhere)
{
    const uint8_t *class = py_chars();
    const char *p = s.p, *end = s.p + s.n;
    bool may = true; /* a word may begin here */
    int n;

    for (; p < end; p += n) {
        if (may && word_trie_may(trie, p, end) && stands_at(trie, p, end, anywhere))
            return true;
        may = !(class[chars_decode(p, &n)] & PY_WORD) || anywhere;
    }
    return false;
}

/* 1 if a bad word is there; NAN if no list is for the language. */
static double found(struct filter_text *t, int arg)
{
    const struct bad_words *b = NULL;
    struct span s = {0};
    bool any = false;

    (void)arg;
    if (!py_chars())
        return filter_fail(t, ERR_NOMEM, "the classes of characters");
    if (!filter_next_bad_words(t, &b))
        return NAN;
    s = lower(t);
    do
        any = s.p && stands_in(&b->trie, s, lang_traits(filter_lang(t)) & LANG_UNSPACED);
    while (!any && filter_next_bad_words(t, &b));
    if (any && !t->all && t->set[KEEP].threshold > 0) {
        uint64_t h = hash_xxh3_64_seed(t->doc->id, (uint64_t)t->set[SEED].threshold);
        any = !((double)(h >> 11) * 0x1p-53 < t->set[KEEP].threshold);
    }
    return any;
}

static void release(void *own)
{
    struct badwords *b = own;

    ucasemap_close(b->map);
    buf_free(&b->lower);
}

static const struct rule rules[] = {
    [FOUND] = {RULE("document_removed_with_badwords", found, 0, RULE_ABOVE, 0,
                    "1 if a word on the list is there"), .needs = NEEDS_BAD_WORDS},
    [KEEP] = {RULE("keep_fraction", NULL, 0, RULE_SETTING, 0,
                   "share of documents with a bad word that stay"), .needs = NEEDS_BAD_WORDS},
    [SEED] = {RULE("seed", NULL, 0, RULE_SETTING, 0, "seed by which they are drawn"), .needs = NEEDS_BAD_WORDS},
    {0},
};

const struct preset filter_c4_badwords = {
    .name = "c4-badwords",
    .source = "datatrove 0.10 C4BadWordsFilter; Raffel et al. 2020",
    .rules = rules,
    .size = sizeof(struct badwords),
    .free = release,
};
