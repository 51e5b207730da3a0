/* From expressions to a table: their characters to symbols, states (split_worlds.c) to the fewest, and these to bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tokenize/hf_table.h"
#include "tokenize/split_worlds.h"

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
        compiler_give_up(c, 0);
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
        compiler_give_up(c, ERR_NOMEM);
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
            compiler_give_up(c, ERR_NOMEM);
    }
    buf_free(&cuts);
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

/* Which states may still hear of the mark, by the moves between them, until nothing changes. */
static void find_waits(struct split_table *t, unsigned n_symbols)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (unsigned i = 0; i < t->states; i++) {
            bool waits = t->at_end[i] & EVENT_MARK;
            for (unsigned s = 0; s < n_symbols && !waits; s++) {
                uint8_t to = t->next[s][i];
                waits = t->event[to] & EVENT_MARK || (!(t->event[to] & EVENT_SET) && t->waits[to]);
            }
            changed |= waits && !t->waits[i];
            t->waits[i] |= waits;
        }
    }
}

static void fill_moves(struct compiler *c, struct split_table *t, const uint16_t *kind)
{
    const struct move *m = (const struct move *)(const void *)c->moves.p;
    size_t width = c->n_symbols + 1;
    struct pair v[STATES_MOST] = {{.state = 0, .kind = (uint8_t)kind[0]}};
    unsigned n = 1;

    /* What is reached from the beginning. */
    for (unsigned i = 0; i < n; i++) {
        find_pair(v, &n, (struct pair){.state = v[i].state, .kind = v[i].kind});
        for (unsigned s = 0; s < c->n_symbols; s++) {
            struct move x = m[v[i].state * width + s];
            if (find_pair(v, &n, (struct pair){x.to, (uint8_t)kind[x.to], x.event}) == STATES_MOST) {
                compiler_give_up(c, 0);
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
    find_waits(t, c->n_symbols);
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
        compiler_give_up(c, ERR_NOMEM);
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

    if (!kind || !t) {
        compiler_give_up(c, ERR_NOMEM);
        free(kind);
        free(t);
        return NULL;
    }
    if (part_states(c, kind, kind + n) > 255)
        compiler_give_up(c, 0);
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
        compiler_give_up(c, make_program(c, &steps[i], &c->program[c->n_steps++]));
    if (c->rc == 1)
        make_symbols(c);
    if (c->rc == 1)
        worlds_make_states(c);
    if (c->rc == 1)
        *t = make_table(c);
    rc = c->rc;
    for (size_t i = 0; i < STEPS_MOST; i++) {
        program_free(&c->program[i]);
        buf_free(&c->verdicts[i]);
    }
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
