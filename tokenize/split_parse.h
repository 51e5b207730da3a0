/* tokenize/split_parse.h -- the tree of an expression, for split_program.c: quantifiers write a part several times. */
#ifndef TOKENIZE_SPLIT_PARSE_H
#define TOKENIZE_SPLIT_PARSE_H

#include "tokenize/split_program.h"

enum { NODES_MOST = 400, DEPTH_MOST = 20, REPEATS_MOST = 16, FOREVER = 255 };

enum node_op { NODE_CHAR, NODE_LOOK, NODE_EMPTY, NODE_THEN, NODE_OR, NODE_REPEAT };

/* A part of an expression; 0 is no part. */
struct part {
    uint8_t op, min, max; /* REPEAT: FOREVER: without bound */
    bool lazy, possessive, at_end;
    uint16_t set, a, b;   /* THEN and OR: two parts; REPEAT: a */
};

struct parser {
    const char *p;
    bool oniguruma, fold;
    struct program_sets *sets;
    struct part part[NODES_MOST];
    uint16_t n;
    int depth;
    int rc; /* 1: so far so good; 0: beyond what we can; ERR_NOMEM */
    char last; /* the literal before, while case is ignored */
};

/* Reads all of r->p; the number of the whole's part, where r->rc is 1 then. */
uint16_t split_parse(struct parser *r);
/* The part of a character of any other than those of set number `set`. */
uint16_t parse_others_part(struct parser *r, uint16_t set);
/* The number of a closed set, which is taken over; -1: too many. */
int parse_keep_set(struct program_sets *sets, struct ranges *set);
/* Notes that this is beyond a program (0), or that memory is out; returns 0. */
uint16_t parse_give_up(struct parser *r, int rc);

#endif
