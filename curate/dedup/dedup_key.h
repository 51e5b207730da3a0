/* curate/dedup/dedup_key.h -- a place in a document, by name: what is compared, or what decides who stays. */
#ifndef CURATE_DEDUP_KEY_H
#define CURATE_DEDUP_KEY_H

#include "base/node.h"
#include "curate/stream/doc.h"

enum { DEDUP_KEY_MAX = 1000 }; /* bytes of a key */

/* A place is a field ("url"), a field within others ("signals.x"), or from a slash on a JSON pointer (RFC 6901:
 * "/signals/x", "/tags/0").  ERR_ARG: neither. */
int dedup_key_check(const char *key, struct err *e);
/* 1: *at is what the document has there, in its arena; 0: nothing.  ERR_FORMAT: the field cannot be read; ERR_NOMEM. */
int dedup_key_node(struct doc *d, const char *key, const struct node **at, struct err *e);
/* The same as text: a string as it is, of anything else its JSON without white space.  0: nothing, null or an empty string. */
int dedup_key_text(struct doc *d, const char *key, struct span *text, struct err *e);
#endif
