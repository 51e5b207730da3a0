/* curate/filter/urls.h -- the host of a URL, and block lists of hosts, URLs and words.
 *
 * Everything as datatrove's URLFilter has it (which takes hosts apart as tldextract
 * does): capitals count; a registered domain is the label before a public suffix and
 * that suffix, by the ICANN part of the public suffix list (libpsl's).
 */
#ifndef CURATE_URLS_H
#define CURATE_URLS_H

#include "curate/text/word_trie.h"

enum { URL_HOST_MAX = 1000, URL_WORDS_MAX = 64 };

struct url_host {
    char text[URL_HOST_MAX + 1]; /* ideographic full stops are made plain ones */
    struct span name;            /* what tells it from others: "" for an IP address or without a suffix */
    struct span registered;      /* its end, from the registered domain on; "" likewise */
};

/* The authority of a URL (user, host and port as they stand). */
struct span url_authority(struct span url);
/* Takes the host of url apart.  One of more than URL_HOST_MAX bytes has no name. */
void url_host(struct span url, struct url_host *h);

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
