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
#include "tokenize/split_worlds.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void compiler_give_up(struct compiler *c, int rc)
{
    if (c->rc == 1)
        c->rc = rc;
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
        compiler_give_up(c, 0);
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

/* A seat that was looked at by is_doomed, and what was found. */
struct verdict {
    struct seat s;
    uint16_t doomed;
};

/* Whether a step can be content after the symbol, from what it has: 1 yes, 0 never, -1: *then will tell. */
static int foresee(struct compiler *c, size_t step, const struct seat *s, unsigned symbol, struct seat *then)
{
    struct threads debt = looked(c, step, &s->debt, symbol), go = looked(c, step, &s->go, symbol);
    seen_set taken = {0}, more = {0};

    if (arrival(c, step, &debt) >= 0)
        return 0;
    if (s->mode == MODE_MATCH && arrival(c, step, &go) >= 0)
        return 1;
    if (symbol == NO_CHAR)
        return s->mode != MODE_MATCH;
    *then = (struct seat){.mode = s->mode};
    take(c, step, &debt, debt.n, symbol, &then->debt, taken);
    take(c, step, &go, go.n, symbol, &then->go, more);
    if (!then->debt.n)
        return s->mode != MODE_MATCH || then->go.n;
    if (arrival(c, step, &then->debt) >= 0 || (s->mode == MODE_MATCH && !then->go.n))
        return 0;
    qsort(then->debt.at, then->debt.n, sizeof *then->debt.at, by_place);
    return -1;
}

/* True if, whatever comes, a debt arrives before the match may end (or the gap's debts are gone), so that there is nothing
 * to wait for.  Follows all that may come; false if that is much. */
static bool follow(struct compiler *c, size_t step, const struct seat *s)
{
    enum { SEATS = 48 };
    struct seat *v = calloc(SEATS, sizeof *v), then;
    size_t n = 0, k;
    int found = 0;

    if (!v) {
        compiler_give_up(c, ERR_NOMEM);
        return false;
    }
    v[n++] = *s;
    for (size_t i = 0; i < n && found <= 0; i++)
        for (unsigned symbol = 0; symbol <= c->n_symbols && found <= 0; symbol++) {
            found = foresee(c, step, &v[i], symbol < c->n_symbols ? symbol : NO_CHAR, &then);
            for (k = 0; found < 0 && k < n && memcmp(&v[k], &then, sizeof then) != 0;)
                k++;
            if (found < 0 && k == SEATS)
                found = 1;
            else if (found < 0 && k == n)
                v[n++] = then;
        }
    free(v);
    return found <= 0;
}

static bool is_doomed(struct compiler *c, size_t step, const struct seat *s)
{
    struct buf *b = &c->verdicts[step];
    const struct verdict *v = (const struct verdict *)(const void *)b->p;
    struct verdict x;

    if (!s->debt.n)
        return false;
    for (size_t i = 0; i < b->n / sizeof x; i++)
        if (memcmp(&v[i].s, s, sizeof *s) == 0)
            return v[i].doomed;
    x = (struct verdict){*s, follow(c, step, s)};
    if (buf_put(b, &x, sizeof x) < 0)
        compiler_give_up(c, ERR_NOMEM);
    return x.doomed;
}

/* Brings a seat into the one form it has; false if it cannot be: a debt has arrived, or no thread is left. */
static bool settle(struct compiler *c, size_t step, struct seat *s)
{
    int end = arrival(c, step, &s->go);

    for (int i = end + 1; end >= 0 && i < s->go.n; i++) /* what is behind it is not wanted any more */
        s->go.at[i] = 0;
    if (end >= 0)
        s->go.n = (uint16_t)(end + 1);
    if (arrival(c, step, &s->debt) >= 0 || (s->mode == MODE_MATCH && !s->go.n))
        return false;
    qsort(s->debt.at, s->debt.n, sizeof *s->debt.at, by_place);
    return !is_doomed(c, step, s);
}

/* ---- worlds ---- */

static void step_on(struct compiler *c, const struct world *from, struct world *to, size_t step, bool wall, unsigned symbol);

/* A step of a world is settled: the next step, or the world is one more. */
static void go_on(struct compiler *c, const struct world *from, struct world *to, size_t step, bool wall, unsigned symbol)
{
    if (++c->seats > SEATS_MOST)
        compiler_give_up(c, 0);
    if (c->rc != 1 || (symbol != NO_CHAR && !settle(c, step, &to->seat[step])))
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
        compiler_give_up(c, 0);
    else
        c->next[c->n_next++] = *to;
}

/* A match begins with the character, or a gap.  The debts there are stay. */
static void begin(struct compiler *c, const struct world *from, struct world *to, size_t step, struct threads debt,
                  unsigned symbol)
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
        compiler_give_up(c, ERR_NOMEM);
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
        compiler_give_up(c, 0);
    else if (buf_put(&c->where, &k, sizeof k) < 0)
        compiler_give_up(c, ERR_NOMEM);
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
    all &= open;
    still = any & open & (uint8_t)~all;
    /* There is one mark, and nothing is open at the end. */
    if (((still & OPEN_MARK) && (still & OPEN_BACK)) || (at_end && still))
        compiler_give_up(c, 0);
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
        compiler_give_up(c, ERR_NOMEM);
    get_state(c, from);
    c->n_next = 0;
    for (size_t w = 0; w < c->n_world && c->rc == 1; w++)
        step_on(c, &c->world[w], to, 0, from == 0 || symbol == NO_CHAR, symbol);
    free(to);
    if (!c->n_next && from) /* text that no reading explains: it cannot be */
        compiler_give_up(c, 0);
    if (c->rc == 1 && c->n_next) {
        m.event = decide(c, symbol == NO_CHAR);
        if (symbol != NO_CHAR)
            m.to = find_state(c);
    }
    if (c->rc == 1 && buf_put(&c->moves, &m, sizeof m) < 0)
        compiler_give_up(c, ERR_NOMEM);
}

void worlds_make_states(struct compiler *c)
{
    enum { SLOTS = 8192 };

    c->world = calloc(WORLDS_MOST, sizeof *c->world);
    c->next = calloc(WORLDS_MOST, sizeof *c->next);
    if (!c->world || !c->next || buf_reserve(&c->slots, SLOTS * sizeof(uint32_t)) < 0) {
        compiler_give_up(c, ERR_NOMEM);
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
