/* curate/filter/filter_lists.h -- what rules go by beside the text: the language, and lists from files. */
#ifndef CURATE_FILTER_LISTS_H
#define CURATE_FILTER_LISTS_H

#include "curate/filter/filter.h"
#include "curate/text/lang.h"
#include "curate/filter/urls.h"

/* What a rule cannot do without. */
enum filter_needs {
    NEEDS_NOTHING,
    NEEDS_MODEL, /* which this filter never has */
    NEEDS_URL_DOMAINS, /* in the order of enum url_list */
    NEEDS_URL_BLOCKLIST,
    NEEDS_BANNED_WORDS,
    NEEDS_SOFT_WORDS,
    NEEDS_BANNED_SUBWORDS,
    NEEDS_BAD_WORDS,
    NEEDS_LICENSES,
    NEEDS_LANG, /* --lang, of one kind or the other */
    N_NEEDS
};

/* Words that make a text bad, of one language or (code NULL) of all. */
struct bad_words {
    char *code;
    struct word_trie trie;
};

struct filter_lists {
    bool have[N_NEEDS];
    bool lang_by_field;      /* the language is that of the document's field "lang" */
    const struct lang *lang; /* else it is this */
    struct url_lists urls;
    struct bad_words *bad;
    int n_bad;
    struct word_set licenses; /* in the form of filter_license */
};

/* Reads what conf names.  ERR_ARG: no such language; errors of word_set_load. */
int filter_lists_open(struct filter_lists *l, const struct filter_conf *conf, struct err *e);
void filter_lists_close(struct filter_lists *l);
/* The one form of a licence, in place: "https://creativecommons.org/licenses/by-sa/4.0/deed.de" and "CC BY-SA 4.0" become
 * "cc-by-sa-4.0", other URLs lose scheme and last slash, other words get hyphens.  Returns the length, not more than n. */
size_t filter_license(char *p, size_t n);
/* What to call it in a message. */
const char *filter_needs_name(enum filter_needs what);
#endif
