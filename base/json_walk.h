/* base/json_walk.h -- the tokens of one JSON text, validated one after another.
 *
 * What json.c and node_json.c stand on.  Iterative: nesting costs a bit a level.
 */
#ifndef BASE_JSON_WALK_H
#define BASE_JSON_WALK_H

#include "base/json.h"
#include "base/json_shim.h"

enum { JSON_DEPTH = 1000 };

enum json_event { JSON_KEY, JSON_SCALAR, JSON_OPEN, JSON_CLOSE };

struct json_token {
    enum json_event event;
    enum json_type type; /* of the value; a KEY is a STRING */
    size_t at;           /* where it begins */
    struct span raw;     /* its bytes; of OPEN and CLOSE the bracket */
};

struct json_walk {
    struct span text;
    const uint32_t *at;
    uint32_t count, next;
    int state, depth;
    uint64_t is_object[(JSON_DEPTH + 63) / 64];
};

/* Scans text and stands before its first token.  ERR_FORMAT, ERR_NOMEM. */
int json_walk_start(struct json_walk *w, struct json_scanner *s, struct span text, struct err *e);
/* The next token: 1; 0 when the one value has ended and nothing follows; ERR_FORMAT
 * with the byte. */
int json_walk_next(struct json_walk *w, struct json_token *t, struct err *e);
/* Right behind an OPEN: if the items of the container are rows, stands behind its end, as after its CLOSE; else nothing
 * has happened. */
bool json_walk_rows(struct json_walk *w, struct json_rows *rows);
/* A number, true, false or null. */
bool json_is_plain(struct span s);
/* Writes what the \u escape at p stands for to *dst; returns its length, or 0: it is none, or half of a
 * surrogate pair. */
size_t json_put_escape(const char *p, const char *end, char **dst);
/* One of two equal keys, or NULL; may reorder them. */
const struct span *json_find_twin(struct span *key, size_t n);
#endif
