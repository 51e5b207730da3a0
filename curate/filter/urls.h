/* curate/filter/urls.h -- block lists of hosts, URLs and words, as datatrove's URLFilter has them: capitals count. */
#ifndef CURATE_URLS_H
#define CURATE_URLS_H

#include "curate/text/url_host.h"
#include "curate/text/word_trie.h"

enum { URL_WORDS_MAX = 64 };

struct url_lists {
    struct word_set domains, urls, words, soft_words; /* words: letters and digits alone */
    struct word_trie subwords;
};

enum url_list { URL_DOMAINS, URL_URLS, URL_WORDS, URL_SOFT_WORDS, URL_SUBWORDS, N_URL_LISTS };

/* Reads a list from a file.  Errors of word_set_load and word_trie_build. */
int url_lists_load(struct url_lists *u, enum url_list which, const char *path, struct err *e);
void url_lists_free(struct url_lists *u);

/* Different entries of a list of words among the words of url (runs of letters and digits
 * of ASCII), capitals as they stand: entries have none.  No more than URL_WORDS_MAX. */
size_t url_count_words(const struct word_set *list, struct span url);
/* Does an entry stand in url, when this is made small letters and digits alone? */
bool url_has_subword(const struct word_trie *t, struct span url);
#endif
