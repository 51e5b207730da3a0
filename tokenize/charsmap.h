/* tokenize/charsmap.h -- SentencePiece's compiled rules for characters: a double array
 * (Darts-clone, by S. Yata) over the bytes of what is replaced, and the texts it becomes. */
#ifndef TOKENIZE_CHARSMAP_H
#define TOKENIZE_CHARSMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

/* Zero-initialise; without units it has no rules. */
struct charsmap {
    uint32_t *units; /* owned */
    uint32_t n_units;
    char *texts;     /* NUL-terminated, one after another */
    uint32_t n_texts;
    bool plain[128]; /* characters of ASCII but \r that no rule is for */
};

/* From the bytes of a precompiled_charsmap; nothing at all is no rules.  ERR_FORMAT. */
int charsmap_read(struct charsmap *m, struct span blob, struct err *e);
void charsmap_free(struct charsmap *m);
/* The longest (else the shortest) rule that s begins with: its text, and the length that it
 * replaces in *n; false if there is none. */
bool charsmap_find(const struct charsmap *m, struct span s, bool longest, struct span *text, size_t *n);
/* True if some rule begins with s or is a part of it. */
bool charsmap_touches(const struct charsmap *m, struct span s);

#endif
