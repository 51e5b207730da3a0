/* base/node.h -- a small tree for configuration and metadata: JSON or YAML.
 *
 * For files that are read once (plans, tokenizer.json, checkpoint metadata).  The
 * documents of a corpus do not go through it: see base/json.h.
 */
#ifndef BASE_NODE_H
#define BASE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum node_type { NODE_NULL, NODE_BOOL, NODE_INT, NODE_NUM, NODE_STR, NODE_LIST, NODE_MAP, NODE_ROWS };

/* Lives in the arena it was parsed into.  Children of a LIST or MAP are chained by
 * next in their order; in a MAP each has a key.  key and str are NUL-terminated; for
 * scalars that are no strings str is the text as written. */
struct node {
    enum node_type type;
    int line; /* 1-based where the value begins; 0 if unknown (JSON) */
    struct span key;
    struct span str;
    int64_t integer; /* INT; also BOOL as 0 or 1 */
    double num;      /* NUM and INT */
    union {
        struct node *child;
        const struct json_rows *rows; /* of ROWS */
    };
    struct node *next;
    int64_t count; /* children, rows */
};

struct json_rows;
struct json_scanner;

/* The whole of text must be one JSON value.  Strings are UTF-8 checked; nesting is
 * bounded at 1,000, duplicate keys are errors; ERR_FORMAT says what and at which byte
 * when it is known.  An integer beyond 64 bits is a NUM. */
int node_parse_json(struct arena *a, struct span text, struct node **root, struct err *e);
/* The same, but the containers right under the key `in` of the root, or the root's own "vocab" (NULL: the root itself), that are
 * rows (json.h) are not built, being large: each is a ROWS, which is good as long as text is and s is not used again. */
int node_parse_json_rows(struct arena *a, struct json_scanner *s, struct span text, const char *in, struct node **root,
                         struct err *e);
/* One YAML document (libyaml), core schema: plain null/true/false/integers/floats are
 * typed, quoted scalars are strings.  Anchors, aliases and tags are refused, duplicate
 * keys are errors, all with line numbers.  Nothing at all is a NULL. */
int node_parse_yaml(struct arena *a, struct span text, struct node **root, struct err *e);
/* Reads the file (at most 1 GiB) and parses it; the error names the file. */
int node_load_json(struct arena *a, const char *path, struct node **root, struct err *e);
int node_load_yaml(struct arena *a, const char *path, struct node **root, struct err *e);

/* Appends it as JSON again, which is YAML too; numbers as they were written.  gap: what follows commas and colons, "" or " ". */
int node_put_json(struct buf *b, const struct node *n, const char *gap);

/* The child of a MAP with this key, or NULL (also when n is NULL or no MAP). */
const struct node *node_get(const struct node *n, const char *key);
/* Its text if it is a STR, else NULL. */
const char *node_str(const struct node *n, const char *key);
/* Its value, or fallback if it is absent or of another type. */
int64_t node_int(const struct node *n, const char *key, int64_t fallback);
double node_num(const struct node *n, const char *key, double fallback);
bool node_bool(const struct node *n, const char *key, bool fallback);

#ifdef __cplusplus
}
#endif
#endif
