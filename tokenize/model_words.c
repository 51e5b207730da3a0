#include "tokenize/model_words.h"

#include <stdlib.h>

int wordlist_finish(struct wordlist *w, const struct vocab *v, struct err *e)
{
    size_t n = w->prefix ? strlen(w->prefix) : 0;

    for (uint32_t id = 0; id < v->n && !w->whole; id++) {
        struct span s = vocab_get(v, id);
        if (!s.n || vocab_is_added(v, id))
            continue;
        TRY(trie_add(&w->first, s, (int32_t)id, e));
        if (s.n > n && (!n || memcmp(s.p, w->prefix, n) == 0))
            TRY(trie_add(&w->next, (struct span){s.p + n, s.n - n}, (int32_t)id, e));
    }
    return 0;
}

void wordlist_free(struct wordlist *w)
{
    trie_free(&w->first);
    trie_free(&w->next);
    free(w->prefix);
    memset(w, 0, sizeof *w);
}

static int64_t unknown(const struct wordlist *w, uint32_t *ids)
{
    ids[0] = (uint32_t)w->unknown;
    return w->unknown < 0 ? ERR_FORMAT : 1;
}

int64_t wordlist_encode(const struct wordlist *w, const struct vocab *v, const uint8_t *p, size_t n, uint32_t *ids)
{
    int64_t count = 0, chars = 0;

    if (w->whole) {
        int64_t id = vocab_find_own(v, (struct span){(const char *)p, n});
        if (id < 0)
            return unknown(w, ids);
        ids[0] = (uint32_t)id;
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        chars += (p[i] & 0xC0) != 0x80;
    if (chars > w->max_chars)
        return unknown(w, ids);
    for (size_t at = 0, len = 0; at < n; at += len) {
        const struct trie *t = at ? &w->next : &w->first;
        int32_t id = trie_longest(t, (const char *)p + at, n - at, &len);
        if (id == TRIE_NONE)
            return unknown(w, ids);
        ids[count++] = (uint32_t)id;
    }
    return count;
}
