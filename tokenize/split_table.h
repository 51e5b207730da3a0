/* tokenize/split_table.h -- expressions of pre-tokenizers, one or a sequence of them, as one table that cuts text in one scan.
 *
 * A byte of text becomes a symbol: the first byte of a character the class of characters that the expressions do not tell apart,
 * the other bytes `more`; a maximal ill-formed part is U+FFFD.  A finite machine reads symbols.  Its state says, beside what it knows of the text so far,
 * where a piece begins:
 *   - before the character just read;
 *   - before the one before it (what was read tells, as in the last of a row of spaces);
 *   - at the mark, a place further back that may turn out to begin a piece (behind the last line end of a row of white space):
 *     the scan looks ahead where a mark is set, up to where a state tells or the next mark is.
 * split_compile.c makes the machine, so that pieces are exactly what a backtracking engine finds step by step.
 */
#ifndef TOKENIZE_SPLIT_TABLE_H
#define TOKENIZE_SPLIT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/isa.h"
#include "tokenize/split_run.h"

enum {
    SYMBOLS_MOST = 62,
    STATES_MOST = 256,
};

/* What a state says of the character just read. */
enum split_event {
    EVENT_HERE = 1, /* a piece begins before it */
    EVENT_BACK = 2, /* one begins before the character before it */
    EVENT_SET = 4,  /* the mark is before the character before it */
    EVENT_MARK = 8  /* a piece begins at the mark that was set last */
};

struct split_table {
    uint8_t next[SYMBOLS_MOST + 2][STATES_MOST]; /* by symbol, then state */
    uint8_t more; /* the symbol of all bytes of a character but the first */
    uint8_t begin; /* the state before any text */
    uint8_t guess; /* a state in the midst of text */
    /* States with no event, then those with HERE alone (from first_here), then others (from first_other). */
    uint8_t first_here;
    unsigned first_other, states;
    uint8_t event[STATES_MOST], at_end[STATES_MOST]; /* the latter: when the text ends in this state */
    uint8_t same[STATES_MOST]; /* states with the same go on in the same way */
    bool waits[STATES_MOST];   /* a mark that was set may turn out to begin a piece */
    uint8_t ascii[128];
    uint16_t index[0x110000 / 64]; /* of the block of 64 code points */
    uint8_t (*blocks)[64];         /* owned */
    size_t n_blocks;
    uint8_t lead[256];             /* of the first byte of three: the symbol of all its characters, or 0xFF */
};

static inline unsigned split_table_symbol(const struct split_table *t, uint32_t cp)
{
    return t->blocks[t->index[cp >> 6]][cp & 63];
}

/* Where a scan stands; zero-initialise. */
struct split_scan_state {
    bool begun;
    uint8_t state;
    uint32_t back;       /* where the last character read begins */
    uint32_t per_end;    /* bytes that an end lately took, times 16 */
};

/* A step of a sequence: what it isolates. */
enum split_step_kind { SPLIT_STEP_EXPRESSION, SPLIT_STEP_NUMBERS, SPLIT_STEP_PUNCTUATION };
struct split_step {
    enum split_step_kind kind;
    const char *expression;
    bool oniguruma; /* its words, as in split_expression.h */
    bool rows;      /* NUMBERS, PUNCTUATION: rows of them, not each */
};

/* 1; 0: what the steps say, or how far they look, is beyond such a table; ERR_NOMEM. */
int split_table_make(struct split_table **t, const struct split_step *steps, size_t n);
void split_table_free(struct split_table *t);

/* Writes ends of pieces of text[r->at..n) as split_run.h says, with at least SPLIT_RUN_ROOM free; the end of the text is one.
 * r->at is then how far it has read. */
ISA_DECLARE(void, split_table_run, (const struct split_table *t, const uint8_t *text, size_t n, struct split_scan_state *s,
                                    struct split_run *r));

#endif
