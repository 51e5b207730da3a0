/* From expressions to a table.
 *
 * A step of a sequence walls text: before each match, and before what no match has.  The next step sees each walled part as a
 * text of its own.  While characters are read it is not known yet where walls will be, so we follow worlds: in each, every step
 * has decided whether there is a wall before each character so far, and has to see its decisions come true.  A step of a
 * world is in a match, of which it has threads (places in its program, the preferred first), one of which has to arrive; or in a
 * gap, where nothing matches.  And it has debts: threads that must never arrive, because they were preferred to a match that
 * was ended, or would begin one in a gap.  A world where a debt arrives or no thread is left is dropped.
 *
 * What remains after a character is a set of worlds, one of which is true: this is a state of the machine.  Where all of them
 * have (or have not) a wall of the last step, it is decided; where they differ, that place is open: it may be the one before the
 * last character, or one further back, the mark.  An expression that leaves more open than that is not for a table. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tokenize/hf_table.h"
#include "tokenize/split_program.h"
#include "tokenize/split_table.h"
#include "tokenize/ucd.h"

enum {
    STEPS_MOST = 8,
    THREADS_MOST = 48,
    WORLDS_MOST = 64,
    RAW_STATES_MOST = 3000,
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
    struct world *world, *next; /* WORLDS_MOST each */
    size_t n_world, n_next;
    uint8_t open;
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

static void give_up(struct compiler *c, int rc)
{
    if (c->rc == 1)
        c->rc = rc;
}

/* ---- symbols ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint8_t symbol_of(struct compiler *c, uint64_t in)
{
    unsigned i = 0;

    while (i < c->n_symbols && c->in[i] != in)
        i++;
    if (i == SYMBOLS_MOST) {
        give_up(c, 0);
        return 0;
    }
    if (i == c->n_symbols)
        c->in[c->n_symbols++] = in;
    return (uint8_t)i;
}

/* Cuts the code points wherever a set begins or ends. */
static void make_symbols(struct compiler *c)
{
    struct buf cuts = {0};
    size_t at[PROGRAM_SETS] = {0}, n;
    const uint32_t *v;

    buf_put(&cuts, &(uint32_t){0}, sizeof *v);
    for (size_t k = 0; k < c->sets.n; k++)
        buf_put(&cuts, ranges_get(&c->sets.v[k]), c->sets.v[k].b.n);
    if (cuts.failed) {
        give_up(c, ERR_NOMEM);
        buf_free(&cuts);
        return;
    }
    n = cuts.n / sizeof *v;
    qsort(cuts.p, n, sizeof *v, by_number);
    v = (const uint32_t *)(const void *)cuts.p;
    for (size_t i = 0; i < n && c->rc == 1; i++) {
        struct interval x = {.from = v[i]};
        uint64_t in = 0;
        if ((i && v[i] == v[i - 1]) || v[i] == RANGES_END)
            continue;
        for (size_t k = 0; k < c->sets.n; k++) {
            const struct range *r = ranges_get(&c->sets.v[k]);
            while (at[k] < ranges_n(&c->sets.v[k]) && r[at[k]].to <= v[i])
                at[k]++;
            if (at[k] < ranges_n(&c->sets.v[k]) && r[at[k]].from <= v[i])
                in |= (uint64_t)1 << k;
        }
        x.symbol = symbol_of(c, in);
        if (buf_put(&c->intervals, &x, sizeof x) < 0)
            give_up(c, ERR_NOMEM);
    }
    buf_free(&cuts);
}

/* ---- threads ---- */

static const struct program_inst *inst_of(const struct compiler *c, size_t step, uint16_t at)
{
    return &program_insts(&c->program[step])[at];
}

/* True if a character (or NO_CHAR) is what a CHAR or LOOK instruction wants. */
static bool wants(const struct compiler *c, const struct program_inst *x, unsigned symbol)
{
    return symbol == NO_CHAR ? x->at_end : c->in[symbol] >> x->set & 1;
}

/* Adds the instruction at `at`, or what follows it without a character.  LOOK stays if `symbol` is not known (SYMBOLS_MOST). */
static void add_thread(struct compiler *c, size_t step, uint16_t at, unsigned symbol, struct threads *t, uint64_t *seen)
{
    const struct program_inst *x = inst_of(c, step, at);

    if (seen[at / 64] >> at % 64 & 1)
        return;
    seen[at / 64] |= (uint64_t)1 << at % 64;
    if (x->op == OP_SPLIT) {
        add_thread(c, step, x->a, symbol, t, seen);
        add_thread(c, step, x->b, symbol, t, seen);
    } else if (x->op == OP_LOOK && symbol != SYMBOLS_MOST) {
        if (wants(c, x, symbol))
            add_thread(c, step, x->a, symbol, t, seen);
    } else if (t->n == THREADS_MOST) {
        give_up(c, 0);
    } else {
        t->at[t->n++] = at;
    }
}

typedef uint64_t seen_set[PROGRAM_MOST / 64 + 1];

/* The same threads once the next character is known: no LOOK is left. */
static struct threads looked(struct compiler *c, size_t step, const struct threads *t, unsigned symbol)
{
    struct threads out = {.n = 0};
    seen_set seen = {0};

    for (int i = 0; i < t->n; i++)
        add_thread(c, step, t->at[i], symbol, &out, seen);
    return out;
}

/* Those of the first n threads (without LOOK) that take the character, behind it, added to out. */
static void take(struct compiler *c, size_t step, const struct threads *t, int n, unsigned symbol, struct threads *out,
                 uint64_t *seen)
{
    for (int i = 0; i < n; i++) {
        const struct program_inst *x = inst_of(c, step, t->at[i]);
        if (x->op == OP_CHAR && wants(c, x, symbol))
            add_thread(c, step, x->a, SYMBOLS_MOST, out, seen);
    }
}

/* The place of MATCH among the threads, or -1. */
static int arrival(const struct compiler *c, size_t step, const struct threads *t)
{
    for (int i = 0; i < t->n; i++)
        if (inst_of(c, step, t->at[i])->op == OP_MATCH)
            return i;
    return -1;
}

static int by_place(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Brings a seat into the one form it has; false if it cannot be: a debt has arrived, or no thread is left. */
static bool settle(const struct compiler *c, size_t step, struct seat *s)
{
    int end = arrival(c, step, &s->go);

    for (int i = end + 1; end >= 0 && i < s->go.n; i++) /* what is behind it is not wanted any more */
        s->go.at[i] = 0;
    if (end >= 0)
        s->go.n = (uint16_t)(end + 1);
    if (arrival(c, step, &s->debt) >= 0 || (s->mode == MODE_MATCH && !s->go.n))
        return false;
    qsort(s->debt.at, s->debt.n, sizeof *s->debt.at, by_place);
    return true;
}

/* ---- worlds ---- */

static void step_on(struct compiler *c, const struct world *from, struct world *to, size_t step, bool wall, unsigned symbol);

/* A step of a world is settled: the next step, or the world is one more. */
static void go_on(struct compiler *c, const struct world *from, struct world *to, size_t step, bool wall, unsigned symbol)
{
    if (symbol != NO_CHAR && !settle(c, step, &to->seat[step]))
        return;
    if (step + 1 < c->n_steps) {
        step_on(c, from, to, step + 1, wall, symbol);
        return;
    }
    to->open = (uint16_t)((from->open & ~OPEN_HERE) | (wall ? OPEN_HERE : 0));
    for (size_t i = 0; i < c->n_next; i++)
        if (memcmp(&c->next[i], to, sizeof *to) == 0)
            return;
    if (c->n_next == WORLDS_MOST)
        give_up(c, 0);
    else
        c->next[c->n_next++] = *to;
}

/* A match begins with the character, or a gap.  The debts there are stay. */
static void begin(struct compiler *c, const struct world *from, struct world *to, size_t step, struct threads debt, unsigned symbol)
{
    struct threads start = {.n = 0};
    seen_set seen = {0}, taken = {0};
    struct seat *s = &to->seat[step];

    add_thread(c, step, c->program[step].begin, symbol, &start, seen);
    *s = (struct seat){.mode = MODE_MATCH, .debt = debt};
    take(c, step, &start, start.n, symbol, &s->go, taken);
    go_on(c, from, to, step, true, symbol);
    *s = (struct seat){.mode = MODE_GAP, .debt = debt};
    memset(taken, 0, sizeof taken);
    for (int i = 0; i < debt.n; i++)
        taken[debt.at[i] / 64] |= (uint64_t)1 << debt.at[i] % 64;
    take(c, step, &start, start.n, symbol, &s->debt, taken);
    go_on(c, from, to, step, true, symbol);
}

/* All that a step of a world may do at a character, or at the end (NO_CHAR).  wall: the step before has one there. */
static void step_on(struct compiler *c, const struct world *from, struct world *to, size_t step, bool wall, unsigned symbol)
{
    const struct seat *s = &from->seat[step];
    unsigned next = wall ? NO_CHAR : symbol; /* what the part of text goes on with */
    struct threads debt = looked(c, step, &s->debt, next), go = looked(c, step, &s->go, next), owed = {.n = 0};
    int end = arrival(c, step, &go);
    seen_set taken = {0}, more = {0};

    if (c->rc != 1 || arrival(c, step, &debt) >= 0)
        return;
    if (wall) {
        if (s->mode == MODE_MATCH && end < 0)
            return;
        to->seat[step] = (struct seat){.mode = MODE_BEGIN};
        if (symbol == NO_CHAR)
            go_on(c, from, to, step, true, symbol);
        else
            begin(c, from, to, step, owed, symbol);
        return;
    }
    take(c, step, &debt, debt.n, symbol, &owed, taken);
    if (s->mode == MODE_GAP) {
        struct threads start = {.n = 0};
        seen_set seen = {0};
        add_thread(c, step, c->program[step].begin, symbol, &start, seen);
        to->seat[step] = (struct seat){.mode = MODE_MATCH, .debt = owed};
        take(c, step, &start, start.n, symbol, &to->seat[step].go, more);
        go_on(c, from, to, step, true, symbol);
        to->seat[step] = (struct seat){.mode = MODE_GAP, .debt = owed};
        take(c, step, &start, start.n, symbol, &to->seat[step].debt, taken);
        go_on(c, from, to, step, false, symbol);
        return;
    }
    /* The match goes on by those threads that are preferred to ending here, */
    to->seat[step] = (struct seat){.mode = MODE_MATCH, .debt = owed};
    take(c, step, &go, end < 0 ? go.n : end, symbol, &to->seat[step].go, more);
    go_on(c, from, to, step, false, symbol);
    /* or ends here, and they must not arrive. */
    if (end >= 0) {
        take(c, step, &go, end, symbol, &owed, taken);
        begin(c, from, to, step, owed, symbol);
    }
}

/* ---- states ---- */

static void put_threads(const struct threads *t, struct buf *out)
{
    buf_putc(out, (char)t->n); /* at most THREADS_MOST */
    buf_put(out, t->at, t->n * sizeof *t->at);
}

static const char *get_threads(struct threads *t, const char *p)
{
    *t = (struct threads){.n = (uint8_t)*p};
    memcpy(t->at, p + 1, t->n * sizeof *t->at);
    return p + 1 + t->n * sizeof *t->at;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct world));
}

/* The number of the state of the worlds in c->next, which is new perhaps. */
static uint16_t find_state(struct compiler *c)
{
    struct key k = {.at = (uint32_t)c->keys.n}, *old = (struct key *)(void *)c->where.p;
    uint32_t *slots = (uint32_t *)(void *)c->slots.p, mask = (uint32_t)(c->slots.n / sizeof *slots) - 1, i;
    uint32_t n = (uint32_t)(c->where.n / sizeof k);

    qsort(c->next, c->n_next, sizeof *c->next, by_bytes);
    buf_putc(&c->keys, (char)c->open);
    for (size_t w = 0; w < c->n_next; w++) {
        buf_putc(&c->keys, (char)c->next[w].open);
        for (size_t s = 0; s < c->n_steps; s++) {
            buf_putc(&c->keys, (char)c->next[w].seat[s].mode);
            put_threads(&c->next[w].seat[s].go, &c->keys);
            put_threads(&c->next[w].seat[s].debt, &c->keys);
        }
    }
    if (c->keys.failed) {
        give_up(c, ERR_NOMEM);
        return 0;
    }
    k.n = (uint32_t)c->keys.n - k.at;
    i = (uint32_t)hash_xxh3_64((struct span){c->keys.p + k.at, k.n}) & mask;
    for (; slots[i]; i = (i + 1) & mask) {
        const struct key *o = &old[slots[i] - 1];
        if (o->n == k.n && memcmp(c->keys.p + o->at, c->keys.p + k.at, k.n) == 0) {
            c->keys.n = k.at;
            return (uint16_t)(slots[i] - 1);
        }
    }
    if (n == RAW_STATES_MOST)
        give_up(c, 0);
    else if (buf_put(&c->where, &k, sizeof k) < 0)
        give_up(c, ERR_NOMEM);
    slots[i] = n + 1;
    return (uint16_t)n;
}

/* The worlds of a state, into c->world. */
static void get_state(struct compiler *c, uint32_t number)
{
    const struct key *k = (const struct key *)(const void *)c->where.p + number;
    const char *p = c->keys.p + k->at, *end = p + k->n;

    c->open = (uint8_t)*p++;
    for (c->n_world = 0; p < end; c->n_world++) {
        struct world *w = &c->world[c->n_world];
        memset(w, 0, sizeof *w);
        w->open = (uint8_t)*p++;
        for (size_t s = 0; s < c->n_steps; s++) {
            w->seat[s].mode = (uint8_t)*p++;
            p = get_threads(&w->seat[s].go, p);
            p = get_threads(&w->seat[s].debt, p);
        }
    }
}

/* What is decided now: the event of the move that led to c->next.  What stays open is one character further back then. */
static uint8_t decide(struct compiler *c, bool at_end)
{
    uint8_t all = 0xFF, any = 0, open = c->open | OPEN_HERE, still, event;

    for (size_t w = 0; w < c->n_next; w++) {
        all &= (uint8_t)c->next[w].open;
        any |= (uint8_t)c->next[w].open;
    }
    still = open & any & (uint8_t)~all;
    all &= open;
    /* Pieces have to come in order, there is one mark, and nothing is open at the end. */
    if (((all & OPEN_HERE) && (still & (OPEN_MARK | OPEN_BACK))) || ((all & OPEN_BACK) && (still & OPEN_MARK)) ||
        ((still & OPEN_MARK) && (still & OPEN_BACK)) || (at_end && still))
        give_up(c, 0);
    event = (uint8_t)((all & OPEN_HERE ? EVENT_HERE : 0) | (all & OPEN_BACK ? EVENT_BACK : 0) |
                      (still & OPEN_BACK ? EVENT_SET : 0) | (all & OPEN_MARK ? EVENT_MARK : 0));
    c->open = (uint8_t)((still & OPEN_HERE ? OPEN_BACK : 0) | (still & (OPEN_BACK | OPEN_MARK) ? OPEN_MARK : 0));
    for (size_t w = 0; w < c->n_next; w++) {
        unsigned has = c->next[w].open & still;
        c->next[w].open = (uint16_t)((has & OPEN_HERE ? OPEN_BACK : 0) | (has & (OPEN_BACK | OPEN_MARK) ? OPEN_MARK : 0));
    }
    return event;
}

static void make_move(struct compiler *c, uint32_t from, unsigned symbol)
{
    struct move m = {.to = NOWHERE};
    struct world *to = calloc(1, sizeof *to);

    if (!to)
        give_up(c, ERR_NOMEM);
    get_state(c, from);
    c->n_next = 0;
    for (size_t w = 0; w < c->n_world && c->rc == 1; w++)
        step_on(c, &c->world[w], to, 0, from == 0 || symbol == NO_CHAR, symbol);
    free(to);
    if (!c->n_next && from) /* text that no reading explains: it cannot be */
        give_up(c, 0);
    if (c->rc == 1 && c->n_next) {
        m.event = decide(c, symbol == NO_CHAR);
        if (symbol != NO_CHAR)
            m.to = find_state(c);
    }
    if (c->rc == 1 && buf_put(&c->moves, &m, sizeof m) < 0)
        give_up(c, ERR_NOMEM);
}

/* All states that text leads to. */
static void make_states(struct compiler *c)
{
    enum { SLOTS = 8192 };

    c->world = calloc(WORLDS_MOST, sizeof *c->world);
    c->next = calloc(WORLDS_MOST, sizeof *c->next);
    if (!c->world || !c->next || buf_reserve(&c->slots, SLOTS * sizeof(uint32_t)) < 0) {
        give_up(c, ERR_NOMEM);
        return;
    }
    memset(c->slots.p, 0, SLOTS * sizeof(uint32_t));
    c->slots.n = SLOTS * sizeof(uint32_t);
    c->n_next = 1; /* one world, in which nothing has begun */
    find_state(c);
    for (uint32_t i = 0; c->rc == 1 && i < c->where.n / sizeof(struct key); i++) {
        for (unsigned s = 0; s < c->n_symbols && c->rc == 1; s++)
            make_move(c, i, s);
        make_move(c, i, NO_CHAR);
    }
}

/* ---- the fewest states ---- */

/* Parts the n states by what they do, until nothing parts them any more; returns how many kinds there are. */
static uint32_t part_states(struct compiler *c, uint16_t *kind, uint16_t *then)
{
    const struct move *m = (const struct move *)(const void *)c->moves.p;
    size_t width = c->n_symbols + 1, n = c->where.n / sizeof(struct key);
    uint32_t kinds = 0, before;

    memset(kind, 0, n * sizeof *kind);
    do {
        before = kinds;
        kinds = 0;
        for (size_t i = 0; i < n; i++) {
            size_t k = 0;
            for (; k < i; k++) {
                size_t s = 0;
                if (kind[k] != kind[i])
                    continue;
                while (s < width && m[i * width + s].event == m[k * width + s].event &&
                       (m[i * width + s].to == NOWHERE ? m[k * width + s].to == NOWHERE
                                                       : m[k * width + s].to != NOWHERE &&
                                                             kind[m[i * width + s].to] == kind[m[k * width + s].to]))
                    s++;
                if (s == width)
                    break;
            }
            then[i] = k < i ? then[k] : (uint16_t)kinds++;
        }
        memcpy(kind, then, n * sizeof *kind);
    } while (kinds != before);
    return kinds;
}

/* ---- the table ---- */

/* A state of the table: a kind of state, and the event of the move that led there. */
struct pair {
    uint16_t state; /* one of its kind */
    uint8_t kind, event;
};

static unsigned find_pair(struct pair *v, unsigned *n, struct pair x)
{
    unsigned i = 0;

    while (i < *n && (v[i].kind != x.kind || v[i].event != x.event))
        i++;
    if (i == *n && *n < STATES_MOST)
        v[(*n)++] = x;
    else if (i == *n)
        return STATES_MOST;
    return i;
}

/* The order of states in the table: no event, HERE alone, others. */
static int by_event(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int p = x->event == 0 ? 0 : x->event == EVENT_HERE ? 1 : 2, q = y->event == 0 ? 0 : y->event == EVENT_HERE ? 1 : 2;

    return p != q ? p - q : x->event != y->event ? x->event - y->event : x->kind - y->kind;
}

static void fill_moves(struct compiler *c, struct split_table *t, const uint16_t *kind)
{
    const struct move *m = (const struct move *)(const void *)c->moves.p;
    size_t width = c->n_symbols + 1;
    struct pair v[STATES_MOST];
    unsigned n = 0;

    /* What is reached from the beginning. */
    find_pair(v, &n, (struct pair){.state = 0, .kind = (uint8_t)kind[0]});
    for (unsigned i = 0; i < n; i++) {
        find_pair(v, &n, (struct pair){.state = v[i].state, .kind = v[i].kind});
        for (unsigned s = 0; s < c->n_symbols; s++) {
            struct move x = m[v[i].state * width + s];
            if (find_pair(v, &n, (struct pair){x.to, (uint8_t)kind[x.to], x.event}) == STATES_MOST) {
                give_up(c, 0);
                return;
            }
        }
    }
    qsort(v, n, sizeof *v, by_event);
    t->states = n;
    for (unsigned i = 0; i < n; i++) {
        t->first_here = (uint8_t)(t->first_here + (v[i].event == 0));
        t->first_other += v[i].event <= EVENT_HERE;
        t->event[i] = v[i].event;
        t->same[i] = v[i].kind;
        t->at_end[i] = m[v[i].state * width + c->n_symbols].event;
        for (unsigned s = 0; s < c->n_symbols; s++) {
            struct move x = m[v[i].state * width + s];
            t->next[s][i] = (uint8_t)find_pair(v, &n, (struct pair){x.to, (uint8_t)kind[x.to], x.event});
        }
        t->next[c->n_symbols][i] = (uint8_t)find_pair(v, &n, (struct pair){v[i].state, v[i].kind, 0});
    }
    t->begin = (uint8_t)find_pair(v, &n, (struct pair){.state = 0, .kind = (uint8_t)kind[0]});
}

/* Blocks of 64 code points, each different one once. */
static void fill_symbols(struct compiler *c, struct split_table *t)
{
    enum { POINTS = RANGES_END, BLOCKS = POINTS / 64, SLOTS = 1 << 15 };
    const struct interval *v = (const struct interval *)(const void *)c->intervals.p;
    size_t n = c->intervals.n / sizeof *v;
    uint8_t *all = malloc(POINTS);
    uint16_t *slots = calloc(SLOTS, sizeof *slots);

    t->blocks = malloc(POINTS);
    if (!all || !slots || !t->blocks) {
        give_up(c, ERR_NOMEM);
        free(all);
        free(slots);
        return;
    }
    for (size_t i = 0; i < n; i++)
        memset(all + v[i].from, v[i].symbol, (i + 1 < n ? v[i + 1].from : POINTS) - v[i].from);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        const uint8_t *block = all + 64 * (size_t)b;
        uint32_t at = (uint32_t)hash_xxh3_64((struct span){(const char *)block, 64}) & (SLOTS - 1);
        while (slots[at] && memcmp(t->blocks[slots[at] - 1], block, 64) != 0)
            at = (at + 1) & (SLOTS - 1);
        if (!slots[at]) {
            memcpy(t->blocks[t->n_blocks], block, 64);
            slots[at] = (uint16_t)++t->n_blocks;
        }
        t->index[b] = (uint16_t)(slots[at] - 1);
    }
    memcpy(t->ascii, all, sizeof t->ascii);
    t->bad = all[0xFFFD];
    memset(t->lead, 0xFF, sizeof t->lead);
    for (uint32_t lead = 0xE1; lead < 0xF0; lead++) {
        const uint8_t *p = all + ((lead & 15) << 12);
        if (memcmp(p, p + 1, 4095) == 0)
            t->lead[lead] = *p;
    }
    free(all);
    free(slots);
    all = realloc(t->blocks, t->n_blocks * sizeof *t->blocks);
    t->blocks = all ? (uint8_t (*)[64])(void *)all : t->blocks;
}

static struct split_table *make_table(struct compiler *c)
{
    size_t n = c->where.n / sizeof(struct key);
    uint16_t *kind = malloc(2 * (n + 1) * sizeof *kind);
    struct split_table *t = calloc(1, sizeof *t);

    if (!kind || !t)
        give_up(c, ERR_NOMEM);
    else if (part_states(c, kind, kind + n) > 255)
        give_up(c, 0);
    if (c->rc == 1)
        fill_moves(c, t, kind);
    if (c->rc == 1)
        fill_symbols(c, t);
    free(kind);
    if (c->rc != 1) {
        split_table_free(t);
        return NULL;
    }
    t->more = (uint8_t)c->n_symbols;
    t->guess = t->begin;
    for (int i = 0; i < 4; i++)
        t->guess = t->next[t->ascii['a']][t->guess];
    return t;
}

/* ---- steps ---- */

static int make_program(struct compiler *c, const struct split_step *s, struct program *p)
{
    struct ranges set = {.b = {0}};

    if (s->kind == SPLIT_STEP_EXPRESSION)
        return program_parse(p, s->expression, s->oniguruma, &c->sets);
    if (ranges_add_hf_class(&set, s->kind == SPLIT_STEP_NUMBERS ? HF_NUMBER : HF_PUNCT) < 0) {
        ranges_free(&set);
        return ERR_NOMEM;
    }
    return program_of_set(p, &set, s->rows, &c->sets);
}

int split_table_make(struct split_table **t, const struct split_step *steps, size_t n)
{
    struct compiler *c = calloc(1, sizeof *c);
    int rc;

    *t = NULL;
    if (!c)
        return ERR_NOMEM;
    c->rc = n >= 1 && n <= STEPS_MOST;
    for (size_t i = 0; i < n && c->rc == 1; i++)
        give_up(c, make_program(c, &steps[i], &c->program[c->n_steps++]));
    if (c->rc == 1)
        make_symbols(c);
    if (c->rc == 1)
        make_states(c);
    if (c->rc == 1)
        *t = make_table(c);
    rc = c->rc;
    for (size_t i = 0; i < STEPS_MOST; i++)
        program_free(&c->program[i]);
    program_sets_free(&c->sets);
    buf_free(&c->intervals);
    buf_free(&c->keys);
    buf_free(&c->where);
    buf_free(&c->slots);
    buf_free(&c->moves);
    free(c->world);
    free(c->next);
    free(c);
    return rc;
}

void split_table_free(struct split_table *t)
{
    if (t)
        free(t->blocks);
    free(t);
}
