/* Expressions to trees. */
#include "tokenize/split_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenize/ucd.h"

uint16_t parse_give_up(struct parser *r, int rc)
{
    if (r->rc == 1)
        r->rc = rc;
    return 0;
}

static uint16_t new_part(struct parser *r, struct part x)
{
    if (r->n >= NODES_MOST)
        return parse_give_up(r, 0);
    r->part[r->n] = x;
    return r->n++;
}

int parse_keep_set(struct program_sets *sets, struct ranges *set)
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

/* The part of a character of the set, which is taken over. */
static uint16_t char_part(struct parser *r, struct ranges *set)
{
    int number;

    ranges_close(set);
    number = parse_keep_set(r->sets, set);
    return number < 0 ? parse_give_up(r, 0) : new_part(r, (struct part){.op = NODE_CHAR, .set = (uint16_t)number});
}

uint16_t parse_others_part(struct parser *r, uint16_t set)
{
    struct ranges others = {.b = {0}};

    if (ranges_add_all(&others, &r->sets->v[set]) < 0 || ranges_invert(&others) < 0) {
        ranges_free(&others);
        return parse_give_up(r, ERR_NOMEM);
    }
    return char_part(r, &others);
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
        parse_give_up(r, rc);
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
            return parse_give_up(r, 0);
        r->p += 4;
        return (uint32_t)strtoul((char[]){p[2], p[3], p[4], p[5], 0}, NULL, 16);
    default:
        if (!p[1] || isalnum((unsigned char)p[1]) || (unsigned char)p[1] >= 0x80) {
            r->p = p + strlen(p);
            return parse_give_up(r, 0);
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
            parse_give_up(r, 0);
        read_set(r, &inner);
        if (ranges_add_all(set, &inner) < 0)
            parse_give_up(r, ERR_NOMEM);
        ranges_free(&inner);
        return;
    }
    if ((r->p[0] == '-' || r->p[0] == '~') && r->p[1] == r->p[0])
        parse_give_up(r, 0);
    if (read_class(r, set, halves))
        return;
    from = to = read_char(r);
    if (r->p[0] == '-' && r->p[1] && r->p[1] != ']') {
        r->p++;
        if (*r->p == '[' || (*r->p == '\\' && strchr("sSpPdDwWhH", r->p[1])))
            parse_give_up(r, 0);
        to = read_char(r);
        if (to < from)
            parse_give_up(r, 0);
    }
    if (ranges_add(set, from, to + 1) < 0)
        parse_give_up(r, ERR_NOMEM);
}

/* A set from its bracket on, closed. */
static void read_set(struct parser *r, struct ranges *set)
{
    bool negated = r->p[1] == '^', cut = false;
    struct ranges before = {.b = {0}};
    unsigned halves = 0;

    r->p += 1 + negated;
    if (++r->depth > DEPTH_MOST || *r->p == ']')
        parse_give_up(r, 0);
    while (r->rc == 1 && *r->p && *r->p != ']') {
        if (r->p[0] != '&' || r->p[1] != '&') {
            read_item(r, set, &halves);
            continue;
        }
        r->p += 2;
        ranges_close(set);
        if (halves == HALF_LM || halves == HALF_LO)
            parse_give_up(r, 0);
        if (cut && ranges_intersect(set, &before) < 0)
            parse_give_up(r, ERR_NOMEM);
        ranges_free(&before);
        before = *set;
        *set = (struct ranges){.b = {0}};
        cut = true;
        halves = 0;
    }
    ranges_close(set);
    if (*r->p != ']' || halves == HALF_LM || halves == HALF_LO)
        parse_give_up(r, 0);
    r->p += *r->p == ']';
    if ((cut && ranges_intersect(set, &before) < 0) || (negated && ranges_invert(set) < 0))
        parse_give_up(r, ERR_NOMEM);
    ranges_free(&before);
    r->depth--;
}

/* Adds what folds to an ASCII letter: its other case, and two characters that are not ASCII. */
static int add_cases(struct ranges *set, uint32_t letter)
{
    TRY(ranges_add(set, letter ^ 0x20, (letter ^ 0x20) + 1));
    if ((letter | 0x20) == 's')
        TRY(ranges_add(set, 0x17F, 0x180));
    return (letter | 0x20) == 'k' ? ranges_add(set, 0x212A, 0x212B) : 0;
}

/* A set where case is ignored: of ASCII, and not in Oniguruma's words, where a character may fold to two. */
static void fold_set(struct parser *r, struct ranges *set)
{
    struct ranges cases = {.b = {0}};
    const struct range *v = ranges_get(set);
    int rc = 0;

    r->last = 0;
    for (size_t i = 0; i < ranges_n(set) && rc == 0; i++) {
        if (v[i].to > 0x80 || r->oniguruma) {
            parse_give_up(r, 0);
            break;
        }
        for (uint32_t cp = v[i].from; cp < v[i].to && rc == 0; cp++)
            rc = isalpha((int)cp) ? add_cases(&cases, cp) : 0;
    }
    if (rc < 0 || ranges_add_all(set, &cases) < 0)
        parse_give_up(r, ERR_NOMEM);
    ranges_free(&cases);
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
                parse_give_up(r, 0);
        r->last = pair[1];
        if (rc == 0)
            rc = add_cases(set, cp);
    } else {
        r->last = 0;
        if (r->fold && cp >= 0x80)
            parse_give_up(r, 0);
    }
    if (rc < 0)
        parse_give_up(r, rc);
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
        return parse_give_up(r, 0);
    r->p++;
    if (negated)
        x = parse_others_part(r, r->part[x].set);
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
        return parse_give_up(r, 0);
    } else {
        r->p++;
    }
    x = read_or(r);
    r->fold = fold;
    if (*r->p != ')')
        return parse_give_up(r, 0);
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
        return parse_give_up(r, ERR_NOMEM);
    x = char_part(r, &set);
    return new_part(r, (struct part){.op = NODE_LOOK, .set = r->part[x].set, .at_end = true});
}

static uint16_t read_one(struct parser *r)
{
    struct ranges set = {.b = {0}};
    unsigned halves = 0;

    if (++r->depth > DEPTH_MOST)
        return parse_give_up(r, 0);
    if (*r->p == '(' || *r->p == '$') {
        uint16_t x = *r->p == '(' ? read_group(r) : read_dollar(r);
        r->depth--;
        return x;
    }
    r->depth--;
    if (strchr("*+?{^.)", *r->p)) /* nothing to repeat, and what no tokenizer of ours has */
        return parse_give_up(r, 0);
    if (*r->p == '[') {
        read_set(r, &set);
        if (r->fold)
            fold_set(r, &set);
    } else if (!read_class(r, &set, &halves)) {
        add_literal(r, read_char(r), &set);
    }
    if (halves) /* \p{Lm} by itself */
        parse_give_up(r, 0);
    return char_part(r, &set);
}

/* The numbers of {n}, {n,} and {n,m}. */
static void read_counts(struct parser *r, struct part *x)
{
    char *end;
    unsigned long min = strtoul(r->p + 1, &end, 10), max = min;

    if (!isdigit((unsigned char)r->p[1]))
        parse_give_up(r, 0);
    if (*end == ',') {
        r->p = end;
        max = isdigit((unsigned char)end[1]) ? strtoul(r->p + 1, &end, 10) : (end++, (unsigned long)FOREVER);
    }
    if (*end != '}' || min > max || min > REPEATS_MOST || (max > REPEATS_MOST && max != FOREVER))
        parse_give_up(r, 0);
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
        return parse_give_up(r, 0);
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
            parse_give_up(r, 0);
        r->p++;
    }
    if (*r->p && strchr("*+?{", *r->p))
        parse_give_up(r, 0);
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
        return parse_give_up(r, 0);
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

uint16_t split_parse(struct parser *r)
{
    uint16_t whole = read_or(r);

    if (r->rc == 1 && (*r->p || may_be_empty(r, whole)))
        parse_give_up(r, 0);
    return whole;
}
