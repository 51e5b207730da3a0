#include "curate/mix/mix_sources.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/node.h"

enum { CHUNK = 1 << 16, CELLS = 1 << 16, MAX_SOURCES = 60000 };

/* ---- which ---- */

static struct mix_source *add_source(struct mix_sources *s, struct err *e)
{
    struct mix_source *v = s->n < MAX_SOURCES ? realloc(s->v, ((size_t)s->n + 1) * sizeof *v) : NULL;

    if (!v) {
        if (s->n < MAX_SOURCES)
            err_set(e, ERR_NOMEM, "out of memory for a source");
        else
            err_set(e, ERR_ARG, "%d sources are too many", s->n + 1);
        return NULL;
    }
    s->v = v;
    s->v[s->n] = (struct mix_source){.weight = 1};
    return &s->v[s->n++];
}

static int add_file(struct mix_sources *s, struct mix_source *to, struct span name, struct err *e)
{
    struct span copy = arena_dup(&s->bytes, name);
    union { const char *in; char *out; } u = {copy.p};

    if (!copy.p || mem_grow(&to->files, &to->room, (size_t)to->n_files + 1, sizeof *to->files) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the sources");
    to->files[to->n_files++] = u.out;
    if (!to->name.p)
        to->name = copy;
    return 0;
}

static int check_weight(double w, const char *where, int line, struct err *e)
{
    if (w > 0 && w <= 1e9)
        return 0;
    if (!line)
        return err_set(e, ERR_ARG, "'%s': a weight is a number above 0, at most 1e9", where);
    return err_set(e, ERR_FORMAT, "'%s' line %d: a weight is a number above 0, at most 1e9", where, line);
}

/* "0.7:web.jsonl.zst" */
static int read_option(struct mix_sources *s, const char *text, struct err *e)
{
    char *end;
    double weight = strtod(text, &end);
    struct mix_source *to;

    if (end == text || *end != ':' || !end[1])
        return err_set(e, ERR_ARG, "'%s' is no source: write WEIGHT:FILE", text);
    TRY(check_weight(weight, text, 0, e));
    to = add_source(s, e);
    if (!to)
        return e ? e->code : ERR_NOMEM;
    to->weight = weight;
    return add_file(s, to, span_of(end + 1), e);
}

static int read_files(struct mix_sources *s, struct mix_source *to, const char *path, const struct node *files,
                      struct err *e)
{
    if (files->type == NODE_STR)
        return add_file(s, to, files->str, e);
    if (files->type != NODE_LIST || !files->child)
        return err_set(e, ERR_FORMAT, "'%s' line %d: 'files' is a name or a list of names", path, files->line);
    for (const struct node *f = files->child; f; f = f->next) {
        if (f->type != NODE_STR)
            return err_set(e, ERR_FORMAT, "'%s' line %d: a file's name is a text", path, f->line);
        TRY(add_file(s, to, f->str, e));
    }
    return 0;
}

static int read_source(struct mix_sources *s, const char *path, const struct node *n, struct err *e)
{
    struct mix_source *to = add_source(s, e);

    if (!to)
        return e ? e->code : ERR_NOMEM;
    to->line = n->line;
    if (n->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "'%s' line %d: a source is a map of name, weight and files", path, n->line);
    for (const struct node *k = n->child; k; k = k->next) {
        if (span_is(k->key, "name") && k->type == NODE_STR)
            to->name = arena_dup(&s->bytes, k->str);
        else if (span_is(k->key, "weight") && (k->type == NODE_INT || k->type == NODE_NUM))
            to->weight = k->num;
        else if (!span_is(k->key, "files"))
            return err_set(e, ERR_FORMAT, "'%s' line %d: '%s' is unknown or of another type; a source has name, "
                                          "weight, files", path, k->line, k->key.p);
    }
    TRY(check_weight(to->weight, path, to->line, e));
    if (!node_get(n, "files"))
        return err_set(e, ERR_FORMAT, "'%s' line %d: a source without files", path, n->line);
    return read_files(s, to, path, node_get(n, "files"), e);
}

static int read_plan(struct mix_sources *s, const char *path, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    const struct node *list;
    int rc = node_load_yaml(&a, path, &root, e);

    list = rc == 0 ? node_get(root, "sources") : NULL;
    if (rc == 0 && (!list || list->type != NODE_LIST || !list->child || root->count != 1))
        rc = err_set(e, ERR_FORMAT, "'%s': a plan is a list 'sources', and nothing else", path);
    for (const struct node *n = rc == 0 ? list->child : NULL; n && rc == 0; n = n->next)
        rc = read_source(s, path, n, e);
    arena_free(&a);
    return rc;
}

int mix_sources_read(struct mix_sources *s, const struct mix_conf *c, struct err *e)
{
    if (c->plan)
        TRY(read_plan(s, c->plan, e));
    for (int i = 0; i < c->sources.n; i++)
        TRY(read_option(s, c->sources.v[i], e));
    if (c->n_inputs || !s->n) {
        struct mix_source *to = add_source(s, e);
        if (!to)
            return e ? e->code : ERR_NOMEM;
        for (int i = 0; i < c->n_inputs; i++)
            TRY(add_file(s, to, span_of(c->inputs[i]), e));
        if (!c->n_inputs)
            TRY(add_file(s, to, span_of("-"), e));
    }
    return 0;
}

void mix_sources_free(struct mix_sources *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->v[i].files);
    free(s->v);
    arena_free(&s->bytes);
    *s = (struct mix_sources){0};
}

/* ---- how much ---- */

static int by_pick(const void *a, const void *b)
{
    const struct mix_pick *x = a, *y = b;

    if (x->pick != y->pick)
        return x->pick < y->pick ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Calls each for chunks of the source's picks. */
static int read_picks(const struct mix_source *s, const struct spill *picks,
                      int (*each)(void *arg, const struct mix_pick *p, size_t n), void *arg, struct err *e)
{
    struct mix_pick *chunk = malloc(CHUNK * sizeof *chunk);
    int rc = chunk ? 0 : ERR_NOMEM;

    for (uint64_t at = s->begin; at < s->end && rc == 0;) {
        size_t n = (size_t)((s->end - at) / sizeof *chunk);
        n = n < CHUNK ? n : CHUNK;
        rc = spill_read(picks, at, chunk, n * sizeof *chunk, e);
        if (rc == 0)
            rc = each(arg, chunk, n);
        at += n * sizeof *chunk;
    }
    free(chunk);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory to choose documents") : rc;
}

struct choice {
    uint64_t *cell; /* sizes, by the first 16 bits of the pick */
    uint64_t at;    /* the cell in which the last document is */
    struct mix_pick *v;
    size_t n, cap;
};

static int add_sizes(void *arg, const struct mix_pick *p, size_t n)
{
    struct choice *c = arg;

    for (size_t i = 0; i < n; i++)
        c->cell[p[i].pick >> 48] += p[i].size;
    return 0;
}

static int keep_cell(void *arg, const struct mix_pick *p, size_t n)
{
    struct choice *c = arg;

    for (size_t i = 0; i < n; i++) {
        if (p[i].pick >> 48 != c->at)
            continue;
        TRY(mem_grow(&c->v, &c->cap, c->n + 1, sizeof *c->v));
        c->v[c->n++] = p[i];
    }
    return 0;
}

/* The pick of the first document that does not fit into rest, in the order of picks. */
static int choose(struct mix_source *s, const struct spill *picks, double rest, struct err *e)
{
    struct choice c = {.cell = calloc(CELLS, sizeof *c.cell)};
    double sum = 0;
    int rc = c.cell ? read_picks(s, picks, add_sizes, &c, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (; rc == 0 && c.at < CELLS - 1 && sum + (double)c.cell[c.at] <= rest; c.at++)
        sum += (double)c.cell[c.at];
    if (rc == 0)
        rc = read_picks(s, picks, keep_cell, &c, e);
    if (rc == 0) {
        if (c.n)
            qsort(c.v, c.n, sizeof *c.v, by_pick);
        s->below = c.at == CELLS - 1 ? UINT64_MAX : (c.at + 1) << 48;
        for (size_t i = 0; i < c.n; i++) {
            sum += (double)c.v[i].size;
            if (sum > rest) {
                s->below = c.v[i].pick;
                break;
            }
        }
    }
    free(c.cell);
    free(c.v);
    return rc;
}

/* The budget: as given, or what there is without repeating a document. */
static double whole_budget(const struct mix_sources *s, const struct mix_conf *c, double weights)
{
    double least = INFINITY;

    if (c->budget > 0)
        return c->budget;
    for (int i = 0; i < s->n; i++)
        least = fmin(least, (double)s->v[i].size / (s->v[i].weight / weights));
    return least;
}

/* A budget repeats a source so often: said, and refused beyond what was asked for. */
static int check_repeats(const struct mix_source *v, const struct mix_conf *c, double times, struct err *e)
{
    static const char *const units[] = {"bytes", "tokens", "documents"};
    double most = c->by == MIX_SHARE ? c->max_epochs : 1e6;

    if (times > most * (1 + 1e-12))
        return err_set(e, ERR_ARG, "source '%.*s' has %.10g %s and would be taken %.10g times: more than %g epochs (%s) are "
                       "refused", (int)v->name.n, v->name.p, (double)v->size, units[c->unit], times, most,
                       c->by == MIX_SHARE ? "--max-epochs" : "the most");
    if (times > 1 + 1e-12)
        log_msg(LOG_INFO, "source '%.*s' is repeated: taken %.4g times", (int)v->name.n, v->name.p, times);
    return 0;
}

int mix_sources_decide(struct mix_sources *s, const struct mix_conf *c, const struct spill *picks, struct err *e)
{
    double weights = 0, budget;

    for (int i = 0; i < s->n; i++)
        weights += s->v[i].weight;
    budget = c->by == MIX_SHARE ? whole_budget(s, c, weights) : 0;
    for (int i = 0; i < s->n; i++) {
        struct mix_source *v = &s->v[i];
        double epochs;
        v->target = c->by == MIX_SHARE ? budget * (v->weight / weights) : v->weight * (double)v->size;
        if (!v->size) {
            log_msg(LOG_WARN, "source '%.*s' has nothing to take", (int)v->name.n, v->name.p);
            continue;
        }
        epochs = floor(v->target / (double)v->size * (1 + 1e-15));
        TRY(check_repeats(v, c, v->target / (double)v->size, e));
        v->epochs = (uint64_t)epochs;
        TRY(choose(v, picks, v->target - epochs * (double)v->size, e));
    }
    return 0;
}
