/* Trees of expressions to instructions. */
#include <stdlib.h>

#include "tokenize/split_parse.h"

static uint16_t put(struct parser *r, struct program *p, struct program_inst x)
{
    uint16_t at = (uint16_t)program_size(p);

    if (at >= PROGRAM_MOST)
        return parse_give_up(r, 0);
    if (buf_put(&p->insts, &x, sizeof x) < 0)
        return parse_give_up(r, ERR_NOMEM);
    return at;
}

static uint16_t emit(struct parser *r, struct program *p, uint16_t part, uint16_t next);

/* A choice between going on with a part and `next`. */
static uint16_t put_choice(struct parser *r, struct program *p, const struct part *x, uint16_t more, uint16_t next)
{
    struct program_inst s = {.op = OP_SPLIT, .a = x->lazy ? next : more, .b = x->lazy ? more : next};

    if (x->possessive) { /* no way back: it ends only where no more follows */
        uint16_t set = r->part[parse_others_part(r, r->part[x->a].set)].set;
        s.b = put(r, p, (struct program_inst){.op = OP_LOOK, .set = set, .at_end = true, .a = next});
    }
    return put(r, p, s);
}

/* Instructions are written backwards: each knows where it goes on. */
static uint16_t emit_repeat(struct parser *r, struct program *p, const struct part *x, uint16_t next)
{
    uint16_t at = next;

    if (x->max == FOREVER) {
        /* The loop's choice comes first and is mended when its body is there. */
        uint16_t loop = put_choice(r, p, x, 0, next), body = emit(r, p, x->a, loop);
        struct program_inst *s = (struct program_inst *)(void *)p->insts.p + loop;
        if (r->rc != 1)
            return 0;
        if (x->lazy)
            s->b = body;
        else
            s->a = body;
        at = loop;
    }
    for (int i = x->max == FOREVER ? x->min : x->max; i > 0 && r->rc == 1; i--) {
        at = emit(r, p, x->a, at);
        if (i > x->min)
            at = put_choice(r, p, x, at, next);
    }
    return at;
}

static uint16_t emit(struct parser *r, struct program *p, uint16_t part, uint16_t next)
{
    const struct part *x = &r->part[part];

    if (r->rc != 1)
        return 0;
    switch ((enum node_op)x->op) {
    case NODE_CHAR:
        return put(r, p, (struct program_inst){.op = OP_CHAR, .set = x->set, .a = next});
    case NODE_LOOK:
        return put(r, p, (struct program_inst){.op = OP_LOOK, .set = x->set, .at_end = x->at_end, .a = next});
    case NODE_EMPTY:
        return next;
    case NODE_THEN:
        return emit(r, p, x->a, emit(r, p, x->b, next));
    case NODE_OR: {
        uint16_t b = emit(r, p, x->b, next), a = emit(r, p, x->a, next);
        return put(r, p, (struct program_inst){.op = OP_SPLIT, .a = a, .b = b});
    }
    case NODE_REPEAT:
        return emit_repeat(r, p, x, next);
    }
    return 0;
}

int program_parse(struct program *p, const char *expression, bool oniguruma, struct program_sets *sets)
{
    struct parser *r = calloc(1, sizeof *r);
    uint16_t whole, match;
    int rc;

    if (!r)
        return ERR_NOMEM;
    *r = (struct parser){.p = expression, .oniguruma = oniguruma, .sets = sets, .n = 1, .rc = 1};
    whole = split_parse(r);
    match = put(r, p, (struct program_inst){.op = OP_MATCH});
    p->begin = r->rc == 1 ? emit(r, p, whole, match) : 0;
    rc = r->rc;
    free(r);
    return rc;
}

int program_of_set(struct program *p, struct ranges *set, bool row, struct program_sets *sets)
{
    struct program_inst insts[3] = {{.op = OP_MATCH}, {.op = OP_SPLIT, .a = 2, .b = 0}, {.op = OP_CHAR, .a = row ? 1 : 0}};
    int number;

    ranges_close(set);
    if ((number = parse_keep_set(sets, set)) < 0)
        return 0;
    insts[2].set = (uint16_t)number;
    p->begin = 2;
    return buf_put(&p->insts, insts, sizeof insts) < 0 ? ERR_NOMEM : 1;
}

void program_free(struct program *p)
{
    buf_free(&p->insts);
}

void program_sets_free(struct program_sets *s)
{
    for (size_t i = 0; i < s->n; i++)
        ranges_free(&s->v[i]);
    s->n = 0;
}
