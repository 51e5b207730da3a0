/* curate/text/phrase.h -- phrases in a text, whatever their case.
 *
 * Inside the filter only.  As Python's `phrase in text.lower()`.
 */
#ifndef CURATE_PHRASE_H
#define CURATE_PHRASE_H

#include "base/mem.h"

/* Which phrases may be in s: a quick pass that looks for some letters of each.  A phrase
 * with none of the hints' words in it has to be looked for. */
enum {
    PHRASE_SCRIPT = 1,  /* "javascript" */
    PHRASE_COOKIE = 2,  /* "cookie" */
    PHRASE_LOREM = 4,   /* "lorem" */
    PHRASE_PRIVACY = 8, /* "privacy" */
    PHRASE_TERMS = 16,  /* "terms of use" */
    PHRASE_CART = 32    /* "cart" */
};
/* Those of the above that can be in s; what is not named is not in it. */
unsigned phrase_hints(struct span s);
/* Is the phrase (ASCII, small letters) in s? */
bool phrase_in(struct span s, const char *phrase);
bool phrase_in_any(struct span s, const char *const *phrases, size_t n);
/* Does it stand at the end of s? */
bool phrase_ends(struct span s, const char *phrase);
#endif
