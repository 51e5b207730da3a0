#include "curate/language/perplexity.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "curate/text/ccnet.h"

enum { LINES, DOCUMENT };
enum bucket { HEAD, MIDDLE, TAIL, ALL, BUCKETS };
static const char *const bucket_names[] = {"head", "middle", "tail", "all"};

struct perplexity {
    struct perplexity_conf conf;
    struct ngram_model *model;
    struct perplexity_fields fields;
    bool buckets;      /* they are wanted */
    bool kept[BUCKETS];
    double cutoff[2];  /* below the first is the head, below the second the middle */
    double percent[2]; /* with percentiles, from which cutoffs come */
    double *seen;      /* of the documents in order, NAN: none; with percentiles */
    size_t n_seen, cap_seen;
};
struct perplexity_thread {
    struct ngram_line line;
    struct ccnet_text ccnet;
    struct buf text;
    void *words; /* conf.words's */
};

/* Of a document. */
struct score {
    double log10;
    uint64_t tokens; /* 0: nothing was to be scored */
};

/* ---- fields ---- */

static char *field_name(const char *name, const char *end)
{
    struct buf b = {0};

    if (buf_puts(&b, name) < 0 || buf_puts(&b, end) < 0 || buf_putc(&b, 0) < 0)
        buf_free(&b);
    return b.p;
}

int perplexity_fields_open(struct perplexity_fields *f, const char *name, struct err *e)
{
    *f = (struct perplexity_fields){.perplexity = name};
    if (!*name || strcmp(name, "text") == 0 || strcmp(name, "id") == 0)
        return err_set(e, ERR_ARG, "a perplexity cannot stand in the field '%s'", name);
    f->log10 = field_name(name, "_log10");
    f->tokens = field_name(name, "_tokens");
    f->bucket = field_name(name, "_bucket");
    f->bits = field_name(name, "_bits");
    return f->log10 && f->tokens && f->bucket && f->bits ? 0 : err_set(e, ERR_NOMEM, "no memory to score documents");
}

void perplexity_fields_close(struct perplexity_fields *f)
{
    free(f->log10);
    free(f->tokens);
    free(f->bucket);
    free(f->bits);
}

int perplexity_fields_set(const struct perplexity_fields *f, struct doc *d, double log10, uint64_t tokens, double *x)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, tokens);
    *x = tokens ? pow(10, -log10 / (double)tokens) : NAN;
    TRY(doc_set_num(d, f->perplexity, *x));
    TRY(doc_set_num(d, f->log10, tokens ? log10 : NAN));
    return doc_set_raw(d, f->tokens, span_of(digits));
}

/* ---- scores ---- */

static int score_sentence(const struct perplexity *p, struct perplexity_thread *t, struct span s, struct score *sum,
                          struct err *e)
{
    const struct perplexity_words *w = p->conf.words;
    size_t n;
    float log10;

    buf_clear(&t->line.words);
    if (p->conf.normalize) {
        buf_clear(&t->text);
        TRY(ccnet_normalize(&t->ccnet, s, &t->text, e));
        s = buf_span(&t->text);
    }
    if (w)
        TRY(w->cut(p->conf.arg, t->words, s, &t->line.words, e));
    else if (ngram_words(p->model, &t->line, s) < 0)
        return err_set(e, ERR_NOMEM, "no memory for the words of a document");
    n = t->line.words.n / sizeof(uint32_t);
    TRY(ngram_score(p->model, (const uint32_t *)(const void *)t->line.words.p, n, &log10, e));
    sum->log10 += log10;
    sum->tokens += n + 1;
    return 0;
}

/* All sentences of a text; lines are what newlines divide, the empty ones too. */
static int score_text(const struct perplexity *p, struct perplexity_thread *t, struct span text, struct score *sum, struct err *e)
{
    const char *end = text.p + text.n, *nl;

    *sum = (struct score){0};
    while (p->conf.sentences == LINES && text.n && (nl = memchr(text.p, '\n', text.n)) != NULL) {
        TRY(score_sentence(p, t, (struct span){text.p, (size_t)(nl - text.p)}, sum, e));
        text = (struct span){nl + 1, (size_t)(end - nl - 1)};
    }
    return score_sentence(p, t, text, sum, e);
}

/* ---- what is decided ---- */

enum { LEAST, MOST, BUCKET };
const struct stage_rule perplexity_rules[] = {
    [LEAST] = {"min_perplexity", "perplexity", NULL, "below", false},
    [MOST] = {"max_perplexity", "perplexity", NULL, "above", false},
    [BUCKET] = {"bucket", "perplexity", "The bucket of this perplexity is not one of those kept.", NULL, false},
    {0},
};

static enum bucket bucket_of(const struct perplexity *p, double x)
{
    return isnan(x) ? ALL : x < p->cutoff[0] ? HEAD : x < p->cutoff[1] ? MIDDLE : TAIL;
}

/* Drops by the bucket, or gives its name. */
static int decide_bucket(const struct perplexity *p, double x, struct verdict *v, struct span *name)
{
    enum bucket b = bucket_of(p, x);

    *name = span_of(bucket_names[b]);
    return p->kept[b] ? 0 : verdict_drop(v, &perplexity_rules[BUCKET], x, NAN);
}

void perplexity_bound(double least, double most, double x, struct verdict *v)
{
    if (least > 0 && x < least)
        verdict_drop(v, &perplexity_rules[LEAST], x, least);
    else if (most > 0 && x > most)
        verdict_drop(v, &perplexity_rules[MOST], x, most);
}

int perplexity_check_bounds(double least, double most, struct err *e)
{
    return least > 0 && most > 0 && least > most ? err_set(e, ERR_ARG, "min-perplexity is above max-perplexity") : 0;
}

static int perplexity_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct perplexity *p = stage;
    struct score s = {0, 0};
    struct span bucket;
    double x, *kept;

    if (d->text.n)
        TRY(score_text(p, thread, d->text, &s, e));
    if (perplexity_fields_set(&p->fields, d, s.log10, s.tokens, &x) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a document");
    perplexity_bound(p->conf.least, p->conf.most, x, v);
    if (v->drop)
        return 0;
    if (p->conf.percentiles) {
        kept = arena_alloc(d->arena, sizeof *kept);
        if (!kept)
            return err_set(e, ERR_NOMEM, "no memory for a document");
        *kept = x;
        *note = (struct span){(const char *)kept, sizeof *kept};
        return 0;
    }
    if (!p->buckets)
        return 0;
    TRY(decide_bucket(p, x, v, &bucket));
    return doc_set_string(d, p->fields.bucket, bucket) < 0 ? err_set(e, ERR_NOMEM, "no memory for a document") : 0;
}

/* ---- percentiles: of all documents ---- */

static int perplexity_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct perplexity *p = stage;

    (void)v, (void)reply, (void)a;
    if (note.n != sizeof *p->seen)
        return err_set(e, ERR_FORMAT, "a note of a perplexity has %zu bytes", note.n);
    if (mem_grow(&p->seen, &p->cap_seen, p->n_seen + 1, sizeof *p->seen) < 0)
        return err_set(e, ERR_NOMEM, "no memory for perplexities");
    memcpy(&p->seen[p->n_seen++], note.p, sizeof *p->seen);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* As numpy.percentile: between the two values nearest to it, linearly. */
static double percentile(const double *sorted, size_t n, double percent)
{
    double at = percent / 100 * (double)(n - 1), below = floor(at);
    size_t i = (size_t)below;

    return i + 1 < n ? sorted[i] + (at - below) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static int perplexity_resolve(void *stage, int jobs, struct err *e)
{
    struct perplexity *p = stage;
    double *sorted = malloc((p->n_seen + 1) * sizeof *sorted);
    size_t n = 0;

    (void)jobs;
    if (!sorted)
        return err_set(e, ERR_NOMEM, "no memory for perplexities");
    for (size_t i = 0; i < p->n_seen; i++)
        if (!isnan(p->seen[i]))
            sorted[n++] = p->seen[i];
    qsort(sorted, n, sizeof *sorted, by_value);
    for (int i = 0; i < 2 && n; i++)
        p->cutoff[i] = percentile(sorted, n, p->percent[i]);
    free(sorted);
    return 0;
}

static int perplexity_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    const struct perplexity *p = stage;

    (void)a;
    if (n >= p->n_seen)
        return err_set(e, ERR_FORMAT, "a document without a note of its perplexity");
    return decide_bucket(p, p->seen[n], v, reply);
}

static int perplexity_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct perplexity *p = stage;

    (void)thread, (void)v;
    return doc_set_string(d, p->fields.bucket, reply) < 0 ? err_set(e, ERR_NOMEM, "no memory for a document") : 0;
}

/* ---- the stage ---- */

static void perplexity_thread_close(void *stage, void *thread)
{
    const struct perplexity *p = stage;
    struct perplexity_thread *t = thread;

    if (p->conf.words && t->words)
        p->conf.words->thread_close(p->conf.arg, t->words);
    ccnet_text_free(&t->ccnet);
    buf_free(&t->text);
    buf_free(&t->line.words);
    free(t);
}

static int perplexity_thread_open(void *stage, void **thread, struct err *e)
{
    const struct perplexity *p = stage;
    struct perplexity_thread *t = *thread = calloc(1, sizeof *t);

    if (!t)
        return err_set(e, ERR_NOMEM, "no memory to score documents");
    return p->conf.words ? p->conf.words->thread_open(p->conf.arg, &t->words, e) : 0;
}

static int perplexity_stats(void *stage, struct buf *json)
{
    const struct perplexity *p = stage;
    struct ngram_facts f = ngram_facts(p->model);

    TRY(json_put_key(json, "field"));
    TRY(json_put_string(json, span_of(p->conf.field)));
    TRY(json_put_key(json, "model"));
    TRY(buf_printf(json, "\"%s of order %d\"", f.kind, f.order));
    if (!p->buckets || (p->conf.percentiles && !p->n_seen))
        return 0;
    TRY(json_put_key(json, "cutoffs"));
    TRY(buf_putc(json, '['));
    TRY(json_put_num(json, p->cutoff[0]));
    TRY(buf_putc(json, ','));
    TRY(json_put_num(json, p->cutoff[1]));
    return buf_putc(json, ']');
}

static void perplexity_close(void *stage)
{
    struct perplexity *p = stage;

    if (p->conf.words)
        p->conf.words->close(p->conf.arg);
    ngram_close(p->model);
    perplexity_fields_close(&p->fields);
    free(p->seen);
    free(p);
}

#define OPS .name = "perplexity", .thread_open = perplexity_thread_open, .thread_close = perplexity_thread_close, \
            .work = perplexity_work, .stats = perplexity_stats, .close = perplexity_close
static const struct stage_ops ops = {OPS},
                              ops_all = {OPS, .commit = perplexity_commit, .resolve = perplexity_resolve,
                                         .judge = perplexity_judge, .apply = perplexity_apply};

/* ---- settings ---- */

void perplexity_conf_init(struct perplexity_conf *c) { *c = (struct perplexity_conf){.field = "perplexity"}; }

/* Two numbers that do not fall. */
static int read_pair(const char *option, const char *text, double most, double v[2], struct err *e)
{
    char *end, *end2 = NULL;

    v[0] = strtod(text, &end);
    if (end > text && *end == ',')
        v[1] = strtod(end + 1, &end2);
    if (!end2 || end2 == end + 1 || *end2 || !(v[0] >= 0 && v[0] <= v[1] && v[1] <= most))
        return err_set(e, ERR_ARG, "%s: '%s' is not HEAD,TAIL: two numbers from 0%s, the second not below the first", option,
                       text, most == 100 ? " to 100" : "");
    return 0;
}

static int read_keep(struct perplexity *p, struct err *e)
{
    const char *s = p->conf.keep;

    for (int b = 0; b < BUCKETS; b++)
        p->kept[b] = s == NULL;
    while (s) {
        const char *comma = strchr(s, ',');
        struct span name = {s, comma ? (size_t)(comma - s) : strlen(s)};
        int b = 0;
        while (b < BUCKETS && !span_is(name, bucket_names[b]))
            b++;
        if (b == BUCKETS)
            return err_set(e, ERR_ARG, "keep: '%.*s' is no bucket: head, middle, tail, all", (int)name.n, name.p);
        p->kept[b] = true;
        s = comma ? comma + 1 : NULL;
    }
    return 0;
}

static int read_settings(struct perplexity *p, struct err *e)
{
    const struct perplexity_conf *c = &p->conf;

    if (!c->lm)
        return err_set(e, ERR_ARG, "which model? (--lm FILE)");
    TRY(perplexity_fields_open(&p->fields, c->field, e));
    TRY(perplexity_check_bounds(c->least, c->most, e));
    if (c->cutoffs && c->percentiles)
        return err_set(e, ERR_ARG, "cutoffs and percentiles are two ways to the same buckets: one of them");
    p->buckets = c->cutoffs || c->percentiles;
    if (c->keep && !p->buckets)
        return err_set(e, ERR_ARG, "keep needs cutoffs or percentiles, which make the buckets");
    if (c->cutoffs)
        TRY(read_pair("cutoffs", c->cutoffs, INFINITY, p->cutoff, e));
    if (c->percentiles)
        TRY(read_pair("percentiles", c->percentiles, 100, p->percent, e));
    return read_keep(p, e);
}

int perplexity_stage_open(struct stage *s, const struct perplexity_conf *conf, struct err *e)
{
    struct perplexity *p = calloc(1, sizeof *p);
    int rc;

    if (!p)
        return err_set(e, ERR_NOMEM, "no memory to score documents");
    p->conf = *conf;
    rc = read_settings(p, e);
    if (rc == 0)
        rc = ngram_open(&p->model, conf->lm, e);
    if (rc == 0 && conf->words)
        rc = conf->words->begin(conf->arg, p->model, e);
    if (rc < 0) {
        perplexity_close(p);
        return rc;
    }
    *s = (struct stage){conf->percentiles ? &ops_all : &ops, p};
    return 0;
}
