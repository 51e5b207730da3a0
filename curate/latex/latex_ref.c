/* Counters, labels and citations: what a number in the text refers to. */
#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include "base/hash.h"

enum { COUNTERS_MAX = 256, REF_BEGIN = 2, REF_END = 3, NAMED = 4 };

struct counter {
    struct span name;
    int value, parent, same; /* parent -1: none; same: another counter, or itself */
};

struct named {
    struct span name, text, kind;
};

struct map {
    struct named *slot;
    size_t cap, n;
};

struct latex_refs {
    struct counter counter[COUNTERS_MAX];
    int n_counters, chapter, section;
    bool appendix;
    struct span current, kind; /* what \label names: "2.1", "Theorem" */
    struct map labels, cites;
    struct span *wanted; /* labels that were referred to */
    size_t n_wanted, cap_wanted;
    struct buf text;
};

static struct named *find(const struct map *m, struct span name)
{
    size_t i = hash_xxh3_64(name) & (m->cap - 1);

    while (m->slot[i].name.p && !span_eq(m->slot[i].name, name))
        i = (i + 1) & (m->cap - 1);
    return &m->slot[i];
}

static struct named *put(struct map *m, struct span name)
{
    struct named *s;

    if (m->n * 2 >= m->cap) {
        struct map big = {.cap = m->cap ? m->cap * 2 : 256, .n = m->n};
        big.slot = calloc(big.cap, sizeof *big.slot);
        if (!big.slot)
            return NULL;
        for (size_t i = 0; i < m->cap; i++)
            if (m->slot[i].name.p)
                *find(&big, m->slot[i].name) = m->slot[i];
        free(m->slot);
        *m = big;
    }
    s = find(m, name);
    m->n += !s->name.p;
    s->name = name;
    return s;
}

int latex_refs_new(struct latex_refs **r)
{
    *r = calloc(1, sizeof **r);
    return *r ? 0 : ERR_NOMEM;
}

void latex_refs_free(struct latex_refs *r)
{
    if (!r)
        return;
    free(r->labels.slot);
    free(r->cites.slot);
    free(r->wanted);
    buf_free(&r->text);
    free(r);
}

static void clear(struct map *m)
{
    if (m->n)
        memset(m->slot, 0, m->cap * sizeof *m->slot);
    m->n = 0;
}

static int add(struct latex_refs *r, struct span name, int parent)
{
    if (r->n_counters == COUNTERS_MAX)
        return 0;
    r->counter[r->n_counters] = (struct counter){name, 0, parent, r->n_counters};
    return r->n_counters++;
}

void latex_refs_reset(struct latex_refs *r)
{
    static const char *const alone[] = {"figure", "table", "equation", "algorithm", "footnote", "listing"};

    clear(&r->labels);
    clear(&r->cites);
    r->n_wanted = 0;
    r->n_counters = 0;
    r->appendix = false;
    r->current = r->kind = (struct span){NULL, 0};
    r->chapter = add(r, span_of("chapter"), -1);
    r->section = add(r, span_of("section"), -1);
    add(r, span_of("subsection"), r->section);
    add(r, span_of("subsubsection"), r->section + 1);
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        add(r, span_of(alone[i]), -1);
}

static int counter_of(const struct latex_refs *r, struct span name)
{
    for (int i = 0; i < r->n_counters; i++)
        if (span_eq(r->counter[i].name, name))
            return r->counter[i].same;
    return -1;
}

int latex_counter(struct latex_worker *w, struct span name, struct span within, struct span shared)
{
    struct latex_refs *r = w->refs;
    int i = counter_of(r, name), parent = counter_of(r, within), same = counter_of(r, shared);

    if (i < 0)
        i = add(r, name, -1);
    if (parent >= 0 && parent != i)
        r->counter[i].parent = parent;
    if (same >= 0)
        r->counter[i].same = same;
    return 0;
}

static int put_counter(struct latex_refs *r, int i, int depth)
{
    const struct counter *c = &r->counter[i];

    if (c->parent >= 0 && depth < 8 && r->counter[c->parent].value > 0) {
        TRY(put_counter(r, c->parent, depth + 1));
        TRY(buf_putc(&r->text, '.'));
    }
    if (r->appendix && c->value > 0 && c->value <= 26 &&
        i == (r->counter[r->section].parent >= 0 ? r->chapter : r->section))
        return buf_putc(&r->text, (char)('A' + c->value - 1));
    return buf_printf(&r->text, "%d", c->value);
}

struct span latex_counter_text(struct latex_worker *w, struct span name)
{
    struct latex_refs *r = w->refs;
    int i = counter_of(r, name);

    buf_clear(&r->text);
    if (i < 0 || put_counter(r, i, 0) < 0)
        return (struct span){"", 0};
    return buf_span(&r->text);
}

/* "Section" for subsubsection. */
static struct span kind_of(struct span counter)
{
    static const char *const kinds[][2] = {{"chapter", "Chapter"},       {"section", "Section"},   {"subsection", "Section"},
                                           {"subsubsection", "Section"}, {"figure", "Figure"},     {"table", "Table"},
                                           {"equation", "Equation"},     {"algorithm", "Algorithm"}, {"listing", "Listing"}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (span_is(counter, kinds[i][0]))
            return span_of(kinds[i][1]);
    return (struct span){"", 0};
}

void latex_kind(struct latex_worker *w, struct span kind)
{
    w->refs->kind = kind;
}

int latex_step(struct latex_worker *w, struct span name, int n)
{
    struct latex_refs *r = w->refs;
    int i = counter_of(r, name);

    if (i < 0)
        return 0;
    if (i == r->chapter && r->counter[r->section].parent < 0) /* so sections are within chapters, and so on */
        for (int k = 0; k < r->n_counters; k++)
            if (k != i && r->counter[k].parent < 0 && k < 10)
                r->counter[k].parent = i;
    w->work -= r->n_counters;
    r->counter[i].value += n;
    for (int k = 0; k < r->n_counters && n > 0; k++) /* those within it begin again */
        for (int up = r->counter[k].parent, d = 0; up >= 0 && d < 8; up = r->counter[up].parent, d++)
            if (up == i)
                r->counter[k].value = 0;
    r->kind = kind_of(name);
    r->current = arena_dup(&w->kept, latex_counter_text(w, name));
    return r->current.p ? 0 : latex_limit(w, "memory for labels");
}

void latex_appendix(struct latex_worker *w)
{
    struct latex_refs *r = w->refs;

    r->appendix = true;
    r->counter[r->counter[r->section].parent >= 0 ? r->chapter : r->section].value = 0;
}

int latex_label(struct latex_worker *w, struct span label)
{
    struct named *s;

    if (!label.n || !w->refs->current.p)
        return 0;
    s = put(&w->refs->labels, label);
    if (!s)
        return err_set(w->e, ERR_NOMEM, "out of memory for labels");
    s->text = w->refs->current;
    s->kind = w->refs->kind;
    return 0;
}

int latex_reference(struct latex_worker *w, struct span label, bool named, struct buf *b)
{
    struct latex_refs *r = w->refs;

    TRY(mem_grow(&r->wanted, &r->cap_wanted, r->n_wanted + 1, sizeof *r->wanted));
    r->wanted[r->n_wanted] = label;
    return buf_printf(b, "%c%s%zu%c", REF_BEGIN, named ? "\x04" : "", r->n_wanted++, REF_END);
}

/* The number behind REF_BEGIN; p is moved behind REF_END. */
static bool read_stand_in(const struct latex_refs *r, const char **p, const char *end, size_t *k)
{
    *k = 0;
    while (*p < end && **p >= '0' && **p <= '9' && *k < r->n_wanted)
        *k = *k * 10 + (size_t)(*(*p)++ - '0');
    if (*p < end && **p == REF_END)
        ++*p;
    return *k < r->n_wanted;
}

int latex_resolve(struct latex_worker *w, struct span from, struct buf *to)
{
    const struct latex_refs *r = w->refs;
    const char *p = from.p, *end;

    if (!from.n)
        return 0;
    end = p + from.n;
    while (p < end) {
        const char *mark = memchr(p, REF_BEGIN, (size_t)(end - p)), *stop = mark ? mark : end;
        const struct named *s = NULL;
        size_t k;
        TRY(buf_put(to, p, (size_t)(stop - p)));
        if (!mark)
            break;
        p = mark + 1;
        bool named = p < end && *p == NAMED;
        p += named;
        if (read_stand_in(r, &p, end, &k) && r->labels.cap && r->wanted[k].n)
            s = find(&r->labels, r->wanted[k]);
        if (s && s->text.n) {
            if (named && s->kind.n && (!w->lang.n || span_is(w->lang, "en"))) {
                TRY(buf_put_span(to, s->kind));
                TRY(buf_putc(to, ' '));
            }
            TRY(buf_put_span(to, s->text));
        } else { /* not known: nothing, and no empty parentheses or space before it */
            if (to->n && p < end && to->p[to->n - 1] == '(' && *p == ')') {
                to->n--;
                p++;
            }
            if (to->n && to->p[to->n - 1] == ' ' && (p == end || strchr(" .,;:)\n", *p)))
                to->n--;
        }
    }
    return 0;
}

int latex_citation(struct latex_worker *w, struct span key, struct buf *b)
{
    struct named *s = put(&w->refs->cites, key);

    if (!s)
        return ERR_NOMEM;
    if (!s->text.p) {
        struct buf n = {0};
        if (buf_printf(&n, "%d", ++w->n_cites) == 0)
            s->text = arena_dup(&w->kept, buf_span(&n));
        buf_free(&n);
        if (!s->text.p)
            return ERR_NOMEM;
    }
    return buf_put_span(b, s->text);
}
