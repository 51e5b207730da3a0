/* tokenize/split_worlds.h -- the states of a finite machine that cuts text by steps, for split_compile.c. */
#ifndef TOKENIZE_SPLIT_WORLDS_H
#define TOKENIZE_SPLIT_WORLDS_H

#include "tokenize/split_program.h"
#include "tokenize/split_table.h"

enum {
    STEPS_MOST = 8,
    THREADS_MOST = 48,
    WORLDS_MOST = 64,
    RAW_STATES_MOST = 1000,
    SEATS_MOST = 100000, /* settled in all: what hostile expressions may cost */
    NO_CHAR = 255 /* the symbol of the end of text */
};

enum mode { MODE_BEGIN, MODE_MATCH, MODE_GAP };

/* These are compared as bytes: nothing but uint16_t, and what is not used is 0. */
struct threads {
    uint16_t n;
    uint16_t at[THREADS_MOST]; /* CHAR, LOOK or MATCH instructions */
};

/* One step in one world. */
struct seat {
    uint16_t mode;
    struct threads go, debt;
};

struct world {
    uint16_t open; /* bits: what it has at open places */
    struct seat seat[STEPS_MOST];
};

/* Places that are open in a state. */
enum { OPEN_MARK = 1, OPEN_BACK = 2, OPEN_HERE = 4 };

struct compiler {
    struct program program[STEPS_MOST];
    size_t n_steps;
    struct program_sets sets;
    /* Symbols: which sets they are in. */
    uint64_t in[SYMBOLS_MOST];
    unsigned n_symbols;
    struct buf intervals; /* struct interval, all code points */
    /* States as bytes, found by hash. */
    struct buf keys, where; /* where: struct key */
    struct buf slots;       /* uint32_t: number + 1 */
    struct buf moves;       /* struct move, n_symbols + 1 a state */
    struct buf verdicts[STEPS_MOST];
    struct world *world, *next; /* WORLDS_MOST each */
    size_t n_world, n_next;
    uint8_t open;
    uint32_t seats; /* settled so far */
    int rc; /* 1; 0: beyond us; ERR_NOMEM */
};

struct interval {
    uint32_t from;
    uint8_t symbol;
};

struct key {
    uint32_t at, n;
};

/* From a state by a symbol. */
struct move {
    uint16_t to; /* NOWHERE: no text does that */
    uint8_t event;
};
enum { NOWHERE = 0xFFFF };

/* Follows text from its beginning on: fills c->where and c->moves from programs and symbols. */
void worlds_make_states(struct compiler *c);
/* Notes that this is beyond a table (0), or that memory is out. */
void compiler_give_up(struct compiler *c, int rc);

#endif
