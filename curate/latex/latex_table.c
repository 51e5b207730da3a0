/* The table of definitions, with groups to which they are local. */
#include <stdlib.h>

#include "base/hash.h"
#include "curate/latex/latex_engine.h"
#include "curate/latex/latex_names.h"

struct slot {
    struct span name;
    const struct latex_def *def; /* NULL: undefined again */
};

/* Names that are defined are never taken out, so that slots stay where they are. */
struct names {
    struct slot *slot;
    size_t cap, n;
};

struct undo {
    struct span name;
    const struct latex_def *def;
};

struct latex_table {
    struct names known, own; /* builtins; the document's */
    struct latex_def *builtin;
    struct undo *undo;
    int n_undo, cap_undo;
};

static struct slot *find(const struct names *t, struct span name)
{
    size_t i = hash_xxh3_64(name) & (t->cap - 1);

    while (t->slot[i].name.p && !span_eq(t->slot[i].name, name))
        i = (i + 1) & (t->cap - 1);
    return &t->slot[i];
}

static int grow(struct names *t)
{
    struct names big = {.cap = t->cap ? t->cap * 2 : 1024, .n = t->n};

    big.slot = calloc(big.cap, sizeof *big.slot);
    if (!big.slot)
        return ERR_NOMEM;
    for (size_t i = 0; i < t->cap; i++)
        if (t->slot[i].name.p)
            *find(&big, t->slot[i].name) = t->slot[i];
    free(t->slot);
    *t = big;
    return 0;
}

static int set(struct names *t, struct span name, const struct latex_def *d)
{
    struct slot *s;

    if (t->n * 2 >= t->cap)
        TRY(grow(t));
    s = find(t, name);
    t->n += !s->name.p;
    *s = (struct slot){name, d};
    return 0;
}

int latex_table_new(struct latex_table **out)
{
    struct latex_table *t = *out = calloc(1, sizeof *t);

    if (!t)
        return ERR_NOMEM;
    t->builtin = calloc(latex_n_builtins, sizeof *t->builtin);
    if (!t->builtin || grow(&t->own) < 0)
        return ERR_NOMEM;
    for (size_t i = 0; i < latex_n_builtins; i++) {
        t->builtin[i] = (struct latex_def){.kind = LATEX_BUILTIN, .builtin = &latex_builtins[i]};
        for (const char *p = latex_builtins[i].names, *to; *p; p = *to ? to + 1 : to) {
            to = strchrnul(p, ' ');
            TRY(set(&t->known, (struct span){p, (size_t)(to - p)}, &t->builtin[i]));
        }
    }
    return 0;
}

void latex_table_free(struct latex_table *t)
{
    if (!t)
        return;
    free(t->known.slot);
    free(t->own.slot);
    free(t->builtin);
    free(t->undo);
    free(t);
}

void latex_table_reset(struct latex_table *t)
{
    t->n_undo = 0;
    t->own.n = 0;
    memset(t->own.slot, 0, t->own.cap * sizeof *t->own.slot);
}

const struct latex_def *latex_lookup(struct latex_worker *w, struct span name)
{
    const struct slot *s;

    if (!name.n)
        return NULL;
    s = find(&w->table->own, name);
    if (s->name.p && s->def)
        return s->def;
    return find(&w->table->known, name)->def;
}

const struct latex_def *latex_lookup_env(struct latex_worker *w, struct span name)
{
    char key[64];

    if (name.n + 1 > sizeof key)
        return NULL;
    key[0] = '{';
    memcpy(key + 1, name.p, name.n);
    return latex_lookup(w, (struct span){key, name.n + 1});
}

const struct latex_builtin *latex_builtin_of(const struct latex_def *d)
{
    return d && d->kind == LATEX_BUILTIN ? d->builtin : NULL;
}

/* ---- scopes ---- */

static int remember(struct latex_table *t, struct span name, const struct latex_def *old)
{
    if (t->n_undo == t->cap_undo) {
        int cap = t->cap_undo ? t->cap_undo * 2 : 256;
        struct undo *p = realloc(t->undo, (size_t)cap * sizeof *p);
        if (!p)
            return ERR_NOMEM;
        t->undo = p;
        t->cap_undo = cap;
    }
    t->undo[t->n_undo++] = (struct undo){name, old};
    return 0;
}

int latex_undo_mark(struct latex_worker *w)
{
    return w->table->n_undo;
}

int latex_undo(struct latex_worker *w, int to)
{
    struct latex_table *t = w->table;

    while (t->n_undo > to) {
        t->n_undo--;
        find(&t->own, t->undo[t->n_undo].name)->def = t->undo[t->n_undo].def;
    }
    return 0;
}

static int no_memory(struct latex_worker *w)
{
    return err_set(w->e, ERR_NOMEM, "out of memory for macros");
}

int latex_define(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    const struct slot *known = find(&w->table->known, name), *old;
    struct latex_def *copy;

    if (!name.n)
        return 0;
    if (known->name.p && (w->style || (known->def->builtin->flags & LB_FIXED)))
        return 0;
    copy = arena_alloc(&w->kept, sizeof *copy);
    if (!copy)
        return latex_limit(w, "memory for macros");
    *copy = *d;
    copy->name = name;
    old = find(&w->table->own, name);
    if (w->n_groups && remember(w->table, name, old->name.p ? old->def : NULL) < 0)
        return no_memory(w);
    return set(&w->table->own, name, copy) < 0 ? no_memory(w) : 0;
}
