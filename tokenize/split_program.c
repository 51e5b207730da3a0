/* Expressions to programs: a tree first, since quantifiers write a part several times, then instructions. */
#include "tokenize/split_program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenize/ucd.h"

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

/* Notes that this is beyond us, or that memory is out. */
static uint16_t give_up(struct parser *r, int rc)
{
    if (r->rc == 1)
        r->rc = rc;
    return 0;
}

static uint16_t new_part(struct parser *r, struct part x)
{
    if (r->n >= NODES_MOST)
        return give_up(r, 0);
    r->part[r->n] = x;
    return r->n++;
}

/* The number of a closed set, which is taken over; -1: too many. */
static int keep_set(struct program_sets *sets, struct ranges *set)
{
    for (size_t i = 0; i < sets->n; i++)
        if (ranges_equal(&sets->v[i], set)) {
            ranges_free(set);
            return (int)i;
        }
    if (sets->n == PROGRAM_SETS) {
        ranges_free(set);
        return -1;
    }
    sets->v[sets->n] = *set;
    *set = (struct ranges){.b = {0}};
    return (int)sets->n++;
}

static uint16_t char_part(struct parser *r, struct ranges *set)
{
    int number;

    ranges_close(set);
    number = keep_set(r->sets, set);
    return number < 0 ? give_up(r, 0) : new_part(r, (struct part){.op = NODE_CHAR, .set = (uint16_t)number});
}

/* ---- characters and sets ---- */

/* Scripts=Han of Unicode 16.0. */
static const struct range han[] = {
    {0x2E80, 0x2E9A}, {0x2E9B, 0x2EF4}, {0x2F00, 0x2FD6}, {0x3005, 0x3006}, {0x3007, 0x3008}, {0x3021, 0x302A},
    {0x3038, 0x303C}, {0x3400, 0x4DC0}, {0x4E00, 0xA000}, {0xF900, 0xFA6E}, {0xFA70, 0xFADA}, {0x16FE2, 0x16FE4},
    {0x16FF0, 0x16FF2}, {0x20000, 0x2A6E0}, {0x2A700, 0x2B73A}, {0x2B740, 0x2B81E}, {0x2B820, 0x2CEA2},
    {0x2CEB0, 0x2EBE1}, {0x2EBF0, 0x2EE5E}, {0x2F800, 0x2FA1E}, {0x30000, 0x3134B}, {0x31350, 0x323B0}};
/* Titlecase letters, which the class of capitals has too. */
static const struct range title[] = {{0x1C5, 0x1C6}, {0x1C8, 0x1C9}, {0x1CB, 0x1CC}, {0x1F2, 0x1F3}, {0x1F88, 0x1F90},
    {0x1F98, 0x1FA0}, {0x1FA8, 0x1FB0}, {0x1FBC, 0x1FBD}, {0x1FCC, 0x1FCD}, {0x1FFC, 0x1FFD}};

static int add_table(struct ranges *set, const struct range *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        TRY(ranges_add(set, v[i].from, v[i].to));
    return 0;
}

/* Capitals but for titlecase letters. */
static int add_capitals(struct ranges *set)
{
    struct ranges lu = {.b = {0}}, not_title = {.b = {0}};
    int rc = ranges_add_class(&lu, UCD_UPPER);

    if (rc == 0)
        rc = add_table(&not_title, title, sizeof title / sizeof *title);
    if (rc == 0)
        rc = ranges_invert(&not_title);
    if (rc == 0)
        rc = ranges_intersect(&lu, &not_title);
    if (rc == 0)
        rc = ranges_add_all(set, &lu);
    ranges_free(&lu);
    ranges_free(&not_title);
    return rc;
}

/* Lm and Lo are one class here: either counts only where the other stands beside it (`halves`). */
enum { HALF_LM = 1, HALF_LO = 2 };

/* Adds a category or script.  1, 0: not one of these, ERR_NOMEM. */
static int add_property(struct ranges *set, const char *name, size_t n, unsigned *halves)
{
    static const struct {
        char name[12];
        unsigned class;
    } classes[] = {{"L", UCD_LETTER}, {"Letter", UCD_LETTER}, {"Ll", UCD_LOWER}, {"M", UCD_MARK}, {"Mark", UCD_MARK},
                   {"N", UCD_NUMBER}, {"Number", UCD_NUMBER}, {"P", UCD_PUNCT}, {"Punct", UCD_PUNCT},
                   {"Punctuation", UCD_PUNCT}, {"S", UCD_SYMBOL}, {"Symbol", UCD_SYMBOL}};
    int rc;

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
            return (rc = ranges_add_class(set, classes[i].class)) < 0 ? rc : 1;
    if (n == 3 && memcmp(name, "Han", 3) == 0)
        rc = add_table(set, han, sizeof han / sizeof *han);
    else if (n != 2 || *name != 'L' || !strchr("utmo", name[1]))
        return 0;
    else if (name[1] == 'u')
        rc = add_capitals(set);
    else if (name[1] == 't')
        rc = add_table(set, title, sizeof title / sizeof *title);
    else
        rc = (*halves |= name[1] == 'm' ? HALF_LM : HALF_LO) == (HALF_LM | HALF_LO) ? ranges_add_class(set, UCD_CASELESS) : 0;
    return rc < 0 ? rc : 1;
}

/* Adds \s, \S, \p{...}, \P{...}, \pL where r->p is: true, and r->p is behind it. */
static bool read_class(struct parser *r, struct ranges *set, unsigned *halves)
{
    struct ranges x = {.b = {0}};
    const char *name = r->p + 2;
    bool negated = r->p[1] == 'S' || r->p[1] == 'P';
    unsigned own = 0;
    int rc;

    if (*r->p != '\\' || !r->p[1] || !strchr("sSpP", r->p[1]))
        return false;
    r->p += 2;
    if (name[-1] == 's' || name[-1] == 'S') {
        rc = ranges_add_class(&x, UCD_SPACE);
        rc = rc < 0 ? rc : 1;
    } else {
        size_t n = 1;
        if (*name == '{') {
            negated ^= name[1] == '^';
            name += 1 + (name[1] == '^');
            n = strcspn(name, "}");
        }
        rc = *name && (r->p[0] != '{' || name[n] == '}') ? add_property(&x, name, n, negated ? &own : halves) : 0;
        r->p = rc == 1 ? name + n + (*r->p == '{') : r->p + strlen(r->p);
    }
    if (rc == 1 && own && own != (HALF_LM | HALF_LO))
        rc = 0;
    ranges_close(&x);
    if (rc == 1 && negated && ranges_invert(&x) < 0)
        rc = ERR_NOMEM;
    if (rc == 1 && ranges_add_all(set, &x) < 0)
        rc = ERR_NOMEM;
    ranges_free(&x);
    if (rc != 1)
        give_up(r, rc);
    return true;
}

/* The character written at r->p, which is moved on; in sets a few more stand for themselves. */
static uint32_t read_char(struct parser *r)
{
    uint32_t cp;
    const char *p = r->p;

    if (*p != '\\') {
        r->p += utf8_next(p, p + strlen(p), &cp);
        return cp;
    }
    r->p += 2;
    switch (p[1]) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'f':
        return '\f';
    case 'u':
        if (strspn(p + 2, "0123456789abcdefABCDEF") < 4)
            return give_up(r, 0);
        r->p += 4;
        return (uint32_t)strtoul((char[]){p[2], p[3], p[4], p[5], 0}, NULL, 16);
    default:
        if (!p[1] || isalnum((unsigned char)p[1]) || (unsigned char)p[1] >= 0x80) {
            r->p = p + strlen(p);
            return give_up(r, 0);
        }
        return (uint32_t)p[1];
    }
}

static void read_set(struct parser *r, struct ranges *set);

/* What stands in a set at r->p, added. */
static void read_item(struct parser *r, struct ranges *set, unsigned *halves)
{
    uint32_t from, to;

    if (r->p[0] == '[') {
        struct ranges inner = {.b = {0}};
        if (r->p[1] == ':')
            give_up(r, 0);
        read_set(r, &inner);
        if (ranges_add_all(set, &inner) < 0)
            give_up(r, ERR_NOMEM);
        ranges_free(&inner);
        return;
    }
    if ((r->p[0] == '-' || r->p[0] == '~') && r->p[1] == r->p[0])
        give_up(r, 0);
    if (read_class(r, set, halves))
        return;
    from = to = read_char(r);
    if (r->p[0] == '-' && r->p[1] && r->p[1] != ']') {
        r->p++;
        if (*r->p == '[' || (*r->p == '\\' && strchr("sSpPdDwWhH", r->p[1])))
            give_up(r, 0);
        to = read_char(r);
        if (to < from)
            give_up(r, 0);
    }
    if (ranges_add(set, from, to + 1) < 0)
        give_up(r, ERR_NOMEM);
}

/* A set from its bracket on, closed. */
static void read_set(struct parser *r, struct ranges *set)
{
    bool negated = r->p[1] == '^', cut = false;
    struct ranges before = {.b = {0}};
    unsigned halves = 0;

    r->p += 1 + negated;
    if (++r->depth > DEPTH_MOST || *r->p == ']')
        give_up(r, 0);
    while (r->rc == 1 && *r->p && *r->p != ']') {
        if (r->p[0] != '&' || r->p[1] != '&') {
            read_item(r, set, &halves);
            continue;
        }
        r->p += 2;
        ranges_close(set);
        if (halves == HALF_LM || halves == HALF_LO)
            give_up(r, 0);
        if (cut && ranges_intersect(set, &before) < 0)
            give_up(r, ERR_NOMEM);
        ranges_free(&before);
        before = *set;
        *set = (struct ranges){.b = {0}};
        cut = true;
        halves = 0;
    }
    ranges_close(set);
    if (*r->p != ']' || halves == HALF_LM || halves == HALF_LO)
        give_up(r, 0);
    r->p += *r->p == ']';
    if ((cut && ranges_intersect(set, &before) < 0) || (negated && ranges_invert(set) < 0))
        give_up(r, ERR_NOMEM);
    ranges_free(&before);
    r->depth--;
}

/* A character that stands for itself, or with its other case and what else folds to it. */
static void add_literal(struct parser *r, uint32_t cp, struct ranges *set)
{
    int rc = ranges_add(set, cp, cp + 1);

    if (r->fold && cp < 0x80 && isalpha((int)cp)) {
        /* Two letters to which one character folds (U+FB00 and others). */
        char pair[3] = {r->last, (char)tolower((int)cp), 0};
        static const char *const pairs[] = {"ff", "fi", "fl", "st", "ss"};
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (strcmp(pairs[i], pair) == 0)
                give_up(r, 0);
        r->last = pair[1];
        if (rc == 0)
            rc = ranges_add(set, cp ^ 0x20, (cp ^ 0x20) + 1);
        if (rc == 0 && pair[1] == 's')
            rc = ranges_add(set, 0x17F, 0x180);
        if (rc == 0 && pair[1] == 'k')
            rc = ranges_add(set, 0x212A, 0x212B);
    } else {
        r->last = 0;
        if (r->fold && cp >= 0x80)
            give_up(r, 0);
    }
    if (rc < 0)
        give_up(r, rc);
}

/* ---- the tree ---- */

/* Whether a part may match nothing. */
static bool may_be_empty(const struct parser *r, uint16_t part)
{
    const struct part *x = &r->part[part];

    switch ((enum node_op)x->op) {
    case NODE_CHAR:
        return false;
    case NODE_THEN:
        return may_be_empty(r, x->a) && may_be_empty(r, x->b);
    case NODE_OR:
        return may_be_empty(r, x->a) || may_be_empty(r, x->b);
    case NODE_REPEAT:
        return x->min == 0 || may_be_empty(r, x->a);
    default:
        return true;
    }
}

static uint16_t read_or(struct parser *r);

/* What stands in a look ahead: one part that is a character. */
static uint16_t read_look(struct parser *r)
{
    bool negated = r->p[2] == '!';
    uint16_t x;

    r->p += 3;
    x = read_or(r);
    if (r->rc != 1 || *r->p != ')' || r->part[x].op != NODE_CHAR)
        return give_up(r, 0);
    r->p++;
    if (negated) {
        struct ranges others = {.b = {0}};
        if (ranges_add_all(&others, &r->sets->v[r->part[x].set]) < 0 || ranges_invert(&others) < 0) {
            ranges_free(&others);
            return give_up(r, ERR_NOMEM);
        }
        x = char_part(r, &others);
    }
    return new_part(r, (struct part){.op = NODE_LOOK, .set = r->part[x].set, .at_end = negated});
}

static uint16_t read_group(struct parser *r)
{
    bool fold = r->fold;
    uint16_t x;

    if (r->p[1] == '?' && (r->p[2] == '!' || r->p[2] == '='))
        return read_look(r);
    if (strncmp(r->p, "(?i:", 4) == 0) {
        r->fold = true;
        r->p += 4;
    } else if (strncmp(r->p, "(?:", 3) == 0) {
        r->p += 3;
    } else if (r->p[1] == '?' || r->p[1] == '*') {
        return give_up(r, 0);
    } else {
        r->p++;
    }
    x = read_or(r);
    r->fold = fold;
    if (*r->p != ')')
        return give_up(r, 0);
    r->p++;
    return x;
}

/* $: before a line end and at the end of the text, or (Rust) at the end alone. */
static uint16_t read_dollar(struct parser *r)
{
    struct ranges set = {.b = {0}};
    uint16_t x;

    r->p++;
    if (r->oniguruma && ranges_add(&set, '\n', '\n' + 1) < 0)
        return give_up(r, ERR_NOMEM);
    x = char_part(r, &set);
    return new_part(r, (struct part){.op = NODE_LOOK, .set = r->part[x].set, .at_end = true});
}

static uint16_t read_one(struct parser *r)
{
    struct ranges set = {.b = {0}};
    unsigned halves = 0;

    if (++r->depth > DEPTH_MOST)
        return give_up(r, 0);
    if (*r->p == '(' || *r->p == '$') {
        uint16_t x = *r->p == '(' ? read_group(r) : read_dollar(r);
        r->depth--;
        return x;
    }
    r->depth--;
    if (strchr("*+?{^.)", *r->p)) /* nothing to repeat, and what no tokenizer of ours has */
        return give_up(r, 0);
    if (*r->p == '[') {
        if (r->fold)
            give_up(r, 0);
        read_set(r, &set);
    } else if (!read_class(r, &set, &halves)) {
        add_literal(r, read_char(r), &set);
    }
    if (halves) /* \p{Lm} by itself */
        give_up(r, 0);
    return char_part(r, &set);
}

/* The numbers of {n}, {n,} and {n,m}. */
static void read_counts(struct parser *r, struct part *x)
{
    char *end;
    unsigned long min = strtoul(r->p + 1, &end, 10), max = min;

    if (!isdigit((unsigned char)r->p[1]))
        give_up(r, 0);
    if (*end == ',') {
        r->p = end;
        max = isdigit((unsigned char)end[1]) ? strtoul(r->p + 1, &end, 10) : (end++, (unsigned long)FOREVER);
    }
    if (*end != '}' || min > max || min > REPEATS_MOST || (max > REPEATS_MOST && max != FOREVER))
        give_up(r, 0);
    x->min = (uint8_t)min;
    x->max = (uint8_t)max;
    r->p = end + (*end == '}');
}

static uint16_t read_repeated(struct parser *r)
{
    uint16_t a = read_one(r);
    struct part x = {.op = NODE_REPEAT, .a = a};

    if (r->rc != 1 || !*r->p || !strchr("*+?{", *r->p))
        return a;
    r->last = 0;
    if (may_be_empty(r, a))
        return give_up(r, 0);
    if (*r->p == '{') {
        read_counts(r, &x);
    } else {
        x.min = *r->p == '+';
        x.max = *r->p == '?' ? 1 : FOREVER;
        r->p++;
    }
    if (*r->p == '?' || *r->p == '+') {
        x.lazy = *r->p == '?';
        x.possessive = *r->p == '+';
        /* Oniguruma's {n,m}+ is a repetition of a repetition. */
        if ((x.possessive && (r->part[a].op != NODE_CHAR || (r->oniguruma && r->p[-1] == '}'))))
            give_up(r, 0);
        r->p++;
    }
    if (*r->p && strchr("*+?{", *r->p))
        give_up(r, 0);
    return new_part(r, x);
}

static uint16_t read_then(struct parser *r)
{
    uint16_t x = 0;

    r->last = 0;
    while (r->rc == 1 && *r->p && *r->p != '|' && *r->p != ')') {
        uint16_t y = read_repeated(r);
        x = x ? new_part(r, (struct part){.op = NODE_THEN, .a = x, .b = y}) : y;
    }
    return x ? x : new_part(r, (struct part){.op = NODE_EMPTY});
}

static uint16_t read_or(struct parser *r)
{
    uint16_t x;

    if (++r->depth > DEPTH_MOST)
        return give_up(r, 0);
    x = read_then(r);
    if (r->rc == 1 && *r->p == '|') {
        uint16_t y;
        r->p++;
        r->depth--; /* alternatives stand side by side */
        y = read_or(r);
        return new_part(r, (struct part){.op = NODE_OR, .a = x, .b = y});
    }
    r->depth--;
    return x;
}

/* ---- instructions ---- */

static uint16_t put(struct parser *r, struct program *p, struct program_inst x)
{
    uint16_t at = (uint16_t)program_size(p);

    if (at >= PROGRAM_MOST)
        return give_up(r, 0);
    if (buf_put(&p->insts, &x, sizeof x) < 0)
        return give_up(r, ERR_NOMEM);
    return at;
}

static uint16_t emit(struct parser *r, struct program *p, uint16_t part, uint16_t next);

/* A choice between going on with a part and `next`. */
static uint16_t put_choice(struct parser *r, struct program *p, const struct part *x, uint16_t more, uint16_t next)
{
    struct program_inst s = {.op = OP_SPLIT, .a = x->lazy ? next : more, .b = x->lazy ? more : next};

    if (x->possessive) { /* no way back: it ends only where no more follows */
        struct ranges others = {.b = {0}};
        uint16_t set;
        if (ranges_add_all(&others, &r->sets->v[r->part[x->a].set]) < 0 || ranges_invert(&others) < 0) {
            ranges_free(&others);
            return give_up(r, ERR_NOMEM);
        }
        set = r->part[char_part(r, &others)].set;
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
    whole = read_or(r);
    if (r->rc == 1 && (*r->p || may_be_empty(r, whole)))
        r->rc = 0;
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
    if ((number = keep_set(sets, set)) < 0)
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
