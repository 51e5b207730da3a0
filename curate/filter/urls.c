#include "curate/filter/urls.h"

#include "base/ascii.h"

/* ---- lists ---- */

int url_lists_load(struct url_lists *u, enum url_list which, const char *path, struct err *e)
{
    struct word_set *const set[] = {&u->domains, &u->urls, &u->words, &u->soft_words};
    struct word_set s = {0};
    int rc;

    if (which != URL_SUBWORDS)
        return word_set_load(set[which], path, which >= URL_WORDS ? word_set_alnum : NULL, e);
    TRY(word_set_load(&s, path, word_set_alnum, e));
    rc = word_trie_build(&u->subwords, &s, e);
    word_set_free(&s);
    return rc < 0 ? err_wrap(e, "'%s'", path) : 0;
}

void url_lists_free(struct url_lists *u)
{
    word_set_free(&u->domains);
    word_set_free(&u->urls);
    word_set_free(&u->words);
    word_set_free(&u->soft_words);
    word_trie_free(&u->subwords);
}

/* The next run of letters and digits from *at on. */
static bool next_word(struct span url, size_t *at, struct span *w)
{
    size_t i = *at;

    while (i < url.n && !ascii_is_alnum(url.p[i]))
        i++;
    w->p = url.p + i;
    while (i < url.n && ascii_is_alnum(url.p[i]))
        i++;
    w->n = (size_t)(url.p + i - w->p);
    *at = i;
    return w->n != 0;
}

size_t url_count_words(const struct word_set *list, struct span url)
{
    struct span seen[URL_WORDS_MAX], w;
    size_t n = 0, at = 0;

    while (n < URL_WORDS_MAX && next_word(url, &at, &w)) {
        size_t i = 0;

        if (!word_set_has(list, w))
            continue;
        while (i < n && !span_eq(seen[i], w))
            i++;
        if (i == n)
            seen[n++] = w;
    }
    return n;
}

bool url_has_subword(const struct word_trie *t, struct span url)
{
    for (size_t i = 0; i < url.n; i++) {
        uint32_t node = 0;

        if (!ascii_is_alnum(url.p[i]))
            continue;
        for (size_t k = i; k < url.n; k++) {
            char c = url.p[k];

            if (!ascii_is_alnum(c))
                continue;
            node = word_trie_next(t, node, (unsigned char)(c >= 'A' && c <= 'Z' ? c | 32 : c));
            if (!node)
                break;
            if (t->ends[node])
                return true;
        }
    }
    return false;
}
