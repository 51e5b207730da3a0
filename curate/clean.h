/* curate/clean.h -- text made well: Unicode normalised, the invisible removed, white space
 * and newlines in order.
 *
 * Cleaning is idempotent, and a text that is clean stays as it is, byte for byte.
 */
#ifndef CURATE_CLEAN_H
#define CURATE_CLEAN_H

#include "curate/stage.h"

enum clean_form { CLEAN_NFC, CLEAN_NFKC, CLEAN_ANY };

struct clean_conf {
    int form;              /* enum clean_form; CLEAN_ANY: leave it as it is */
    bool controls;         /* remove C0, DEL, C1 but \t and \n; non-characters; U+FFF9..FFFB */
    bool zero_width;       /* remove what has no width, but where it means something */
    bool soft_hyphens;     /* remove U+00AD */
    bool bidi;             /* remove U+200E, 200F, 061C, 202A..202E, 2066..2069 */
    bool spaces;           /* spaces to U+0020, one at a time, none at line ends */
    bool newlines;         /* every kind to \n; no blank lines at either end */
    int64_t blank_lines;   /* at most so many in a row (with newlines) */
};
/* The defaults: all but bidi, NFC, at most 2 blank lines. */
#define CLEAN_DEFAULTS {CLEAN_NFC, true, true, true, false, true, true, 2}

/* Scratch memory for one thread; start with zeroes. */
struct clean {
    struct buf a, b;
    uint16_t *u16, *norm;
    size_t cap_u16, cap_norm;
};
void clean_free(struct clean *c);

/* The clean text: text itself if there is nothing to do, else bytes in c that are valid
 * until the next call.  Ill-formed UTF-8 becomes U+FFFD.  ERR_NOMEM; ERR_LIMIT beyond
 * 2^30 bytes. */
int clean_text(struct clean *c, const struct clean_conf *conf, struct span text, struct span *out,
               struct err *e);

/* Opens the stage "clean". */
int clean_stage_open(struct stage *s, const struct clean_conf *conf, struct err *e);
#endif
