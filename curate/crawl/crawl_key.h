/* curate/crawl/crawl_key.h -- which keys of an index can belong to entries that meet a condition.
 *
 * An index is sorted by keys: SURT, a URL with its host's labels in reverse, "de,example)/path" (Internet Archive, "Sort-friendly
 * URI Reordering Transform").  A leading "www." with or without digits is left out, letters are small; what is done to
 * paths and queries is not relied on.
 */
#ifndef CURATE_CRAWL_KEY_H
#define CURATE_CRAWL_KEY_H

#include "curate/stream/where.h"

enum { CRAWL_KEYS_MAX = 10000 };

/* Prefixes, in order, none of which begins with another. */
struct crawl_keys {
    struct arena arena;
    struct span *v;
    size_t n, cap;
    bool all; /* any key can */
};
/* w NULL: all.  ERR_NOMEM. */
int crawl_keys_find(struct crawl_keys *k, const struct where *w, struct err *e);
/* Whether a key between these, which are in order, can begin with a prefix. */
bool crawl_keys_meet(const struct crawl_keys *k, struct span least, struct span most);
/* Whether a key lies before all that begin with a prefix (below 0), begins with it (0), or lies behind. */
int crawl_key_side(struct span key, struct span prefix);
void crawl_keys_free(struct crawl_keys *k);
#endif
