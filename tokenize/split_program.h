/* tokenize/split_program.h -- the expressions of pre-tokenizers as small programs, for split_compile.c.
 *
 * A subset of what Rust's and Oniguruma's expressions can say: characters, sets (also within sets and cut by &&), categories,
 * groups, alternatives, quantifiers (possessive ones of single characters), a look at the next character, and case
 * ignored in ASCII.  That is all that the published tokenizers need, but not all there is.
 */
#ifndef TOKENIZE_SPLIT_PROGRAM_H
#define TOKENIZE_SPLIT_PROGRAM_H

#include "base/err.h"
#include "tokenize/ranges.h"

enum {
    PROGRAM_SETS = 60,   /* of all programs together */
    PROGRAM_MOST = 1000, /* instructions */
};

enum program_op {
    OP_CHAR,   /* takes a character of the set, goes on at a */
    OP_SPLIT,  /* goes on at a; if that leads nowhere at b */
    OP_LOOK,   /* goes on at a if the next character is of the set, or, if so, the text ends */
    OP_MATCH
};

struct program_inst {
    uint8_t op;
    bool at_end; /* LOOK: holds at the end of the text */
    uint16_t set, a, b;
};

/* Sets are shared by the programs of a sequence.  Zero-initialise. */
struct program_sets {
    struct ranges v[PROGRAM_SETS];
    size_t n;
};
void program_sets_free(struct program_sets *s);

struct program {
    struct buf insts; /* struct program_inst */
    uint16_t begin;
};

static inline const struct program_inst *program_insts(const struct program *p)
{
    return (const struct program_inst *)(const void *)p->insts.p;
}
static inline size_t program_size(const struct program *p)
{
    return p->insts.n / sizeof(struct program_inst);
}

/* Makes the program of an expression.  oniguruma: as in split_expression.h.  1; 0: it says what no program can, or may match
 * nothing; ERR_NOMEM. */
int program_parse(struct program *p, const char *expression, bool oniguruma, struct program_sets *sets);
/* The program that takes one character of the set, or a row of them.  Takes `set` over. */
int program_of_set(struct program *p, struct ranges *set, bool row, struct program_sets *sets);
void program_free(struct program *p);

#endif
