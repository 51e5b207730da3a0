/* tokenize/steps_find.h -- where a step's pattern stands in a text. */
#ifndef TOKENIZE_STEPS_FIND_H
#define TOKENIZE_STEPS_FIND_H

#include "base/isa.h"
#include "tokenize/steps.h"

/* A part of a text, from the end of the one before it. */
struct step_match {
    uint32_t end;
    bool match;
};

/* All of text in parts (struct step_match, overwritten): those that the step looks for, and what lies between. */
int steps_find(const struct step *s, struct span text, struct buf *matches, struct err *e);
/* What a text of n bytes may grow to by replacements. */
static inline size_t steps_most(size_t n)
{
    enum { FREE = 16 << 20, TIMES = 32 };

    return n > FREE / TIMES ? n * TIMES : FREE;
}
/* Appends text with what the step looks for replaced by its content.  ERR_LIMIT, before memory is taken: that would be more than
 * `most` bytes. */
int steps_replace(const struct step *s, struct step_scratch *w, struct span text, size_t most, struct buf *out, struct err *e);

/* How often a byte occurs; and text with at most 8 bytes in its place, written to o, which has room for 16 more. */
enum { REPLACE_WITH = 8, REPLACE_SLACK = 16 };
ISA_DECLARE(size_t, bytes_count, (char what, struct span text));
ISA_DECLARE(void, bytes_replace, (char what, struct span with, struct span text, char *o));

#endif
