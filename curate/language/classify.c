#include "curate/language/classify.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"
#include "curate/text/chars.h"
#include "curate/language/fasttext.h"

enum { BINS = 50 };

/* From work to commit. */
struct note {
    double score;
    double draw; /* uniform, [0, 1) */
};

struct classify {
    struct classify_conf conf;
    struct fasttext *model;
    int label;
    bool in_order; /* decided in commit */
    struct rng_mt rng;
    /* Of what was committed. */
    uint64_t n, bin[BINS];
    double sum, lowest, highest;
};
struct classify_thread {
    struct fasttext_scratch scratch;
    struct buf text;
};

/* ---- text in ---- */

/* Lines joined by sep, each label prefix by a space. */
static int join_lines(struct span text, const char *sep, struct buf *b)
{
    struct span line;
    bool first = true;

    while (chars_next_line(&text, &line)) {
        if (!first)
            TRY(buf_puts(b, sep));
        first = false;
        TRY(buf_put_span(b, line));
    }
    return 0;
}

/* Every `what` replaced. */
static int replace(struct span text, struct span what, const char *by, struct buf *b)
{
    const char *p = text.p, *end = p + text.n, *q;

    while (p < end && (q = memmem(p, (size_t)(end - p), what.p, what.n)) != NULL) {
        TRY(buf_put(b, p, (size_t)(q - p)));
        TRY(buf_puts(b, by));
        p = q + what.n;
    }
    return p < end ? buf_put(b, p, (size_t)(end - p)) : 0;
}

int classify_prepare(int dialect, struct span text, struct buf *b, struct span *out)
{
    struct span newline = {"\n", 1}, prefix = span_of("__label__");
    int rc = 0;

    buf_clear(b);
    *out = text;
    if (!text.n)
        return 0;
    if (dialect == CLASSIFY_NEMO) {
        if (!memmem(text.p, text.n, prefix.p, prefix.n))
            return 0;
        rc = replace(text, prefix, " ", b);
    } else if (dialect == CLASSIFY_DATATROVE) {
        *out = chars_strip(text);
        if (!out->n || !memchr(out->p, '\n', out->n))
            return 0;
        rc = replace(*out, newline, "", b);
    } else if (dialect == CLASSIFY_DCLM) {
        rc = join_lines(chars_strip(text), " ", b);
    } else {
        return 0;
    }
    *out = buf_span(b);
    return rc;
}

/* ---- scores ---- */

static double score_of(const struct classify *c, const struct fasttext_scratch *s, int best)
{
    if (best < 0)
        return 0;
    if (c->conf.dialect == CLASSIFY_FASTTEXT || c->conf.dialect == CLASSIFY_DATATROVE)
        return fasttext_score(c->model, s, c->label);
    return best == c->label ? fasttext_score(c->model, s, best) : 1 - fasttext_score(c->model, s, best);
}

static double uniform(struct span key, int64_t seed)
{
    return (double)(hash_mix64(hash_xxh3_64_seed(key, (uint64_t)seed)) >> 11) * 0x1p-53;
}

/* numpy's legacy pareto: exp(E / alpha) - 1 with E = -log(1 - u). */
static double pareto(double u, double alpha) { return exp(-log(1 - u) / alpha) - 1; }

enum { SCORE, PARETO };
const struct stage_rule classify_rules[] = {
    [SCORE] = {"score", "score of the classifier", NULL, "below", false},
    [PARETO] = {"pareto", "score of the classifier", "The score is not above the number drawn for this document.", "below",
                false},
    {0},
};

static int decide(const struct classify *c, const struct note *n, struct verdict *v)
{
    double floor = c->conf.pareto > 0 ? 1 - pareto(n->draw, c->conf.pareto) : -INFINITY;

    if (n->score < c->conf.threshold)
        return verdict_drop(v, &classify_rules[SCORE], n->score, c->conf.threshold);
    return n->score > floor ? 0 : verdict_drop(v, &classify_rules[PARETO], n->score, floor);
}

static int classify_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct classify *c = stage;
    struct classify_thread *t = thread;
    struct note *n = arena_alloc(d->arena, sizeof *n);
    struct span text;
    int best;

    if (!n || classify_prepare(c->conf.dialect, d->text, &t->text, &text) < 0)
        return err_set(e, ERR_NOMEM, "no memory to classify a document");
    best = fasttext_predict(c->model, &t->scratch, text, e);
    if (best == -2)
        return e->code;
    n->score = score_of(c, &t->scratch, best);
    n->draw = uniform(c->conf.draw == CLASSIFY_BY_TEXT ? d->text : d->id, c->conf.seed);
    if (doc_set_num(d, c->conf.field, n->score) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a document");
    if (!c->in_order)
        return decide(c, n, v);
    *note = (struct span){(const char *)n, sizeof *n};
    return 0;
}

static void count(struct classify *c, double score)
{
    int i = (int)(score * BINS);

    c->bin[i < 0 ? 0 : i >= BINS ? BINS - 1 : i]++;
    c->sum += score;
    c->lowest = c->n == 0 || score < c->lowest ? score : c->lowest;
    c->highest = c->n == 0 || score > c->highest ? score : c->highest;
    c->n++;
}

static int classify_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                           struct err *e)
{
    struct classify *c = stage;
    struct note n;

    (void)reply;
    (void)a;
    (void)e;
    memcpy(&n, note.p, sizeof n);
    if (c->conf.histogram)
        count(c, n.score);
    if (c->conf.draw == CLASSIFY_NUMPY)
        n.draw = rng_mt_double(&c->rng);
    return decide(c, &n, v);
}

/* ---- the stage ---- */

static int classify_thread_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    *thread = calloc(1, sizeof(struct classify_thread));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "no memory to classify documents");
}

static void classify_thread_close(void *stage, void *thread)
{
    struct classify_thread *t = thread;

    (void)stage;
    fasttext_scratch_free(&t->scratch);
    buf_free(&t->text);
    free(t);
}

static int classify_stats(void *stage, struct buf *json)
{
    const struct classify *c = stage;

    TRY(json_put_key(json, "field"));
    TRY(json_put_string(json, span_of(c->conf.field)));
    TRY(json_put_key(json, "label"));
    TRY(json_put_string(json, fasttext_label_name(c->model, c->label)));
    if (!c->conf.histogram)
        return 0;
    TRY(json_put_key(json, "mean"));
    TRY(json_put_num(json, c->n ? c->sum / (double)c->n : NAN));
    TRY(json_put_key(json, "lowest"));
    TRY(json_put_num(json, c->n ? c->lowest : NAN));
    TRY(json_put_key(json, "highest"));
    TRY(json_put_num(json, c->n ? c->highest : NAN));
    TRY(json_put_key(json, "histogram")); /* from 0 to 1 */
    for (int i = 0; i < BINS; i++)
        TRY(buf_printf(json, "%c%" PRIu64, i ? ',' : '[', c->bin[i]));
    return buf_putc(json, ']');
}

static void classify_close(void *stage)
{
    struct classify *c = stage;

    fasttext_close(c->model);
    free(c);
}

#define OPS .name = "classify", .thread_open = classify_thread_open, .thread_close = classify_thread_close, \
            .work = classify_work, .stats = classify_stats, .close = classify_close
static const struct stage_ops ops = {OPS}, ops_in_order = {OPS, .commit = classify_commit};

void classify_conf_init(struct classify_conf *c)
{
    *c = (struct classify_conf){.label = "hq", .field = "quality_score", .seed = 42};
}

static int open_model(struct classify *c, struct err *e)
{
    struct buf names = {.max = 200};
    int n;

    if (!c->conf.model)
        return err_set(e, ERR_ARG, "which model? (--model FILE)");
    if (!*c->conf.field || strcmp(c->conf.field, "text") == 0 || strcmp(c->conf.field, "id") == 0)
        return err_set(e, ERR_ARG, "a score cannot stand in the field '%s'", c->conf.field);
    TRY(fasttext_open(&c->model, c->conf.model, e));
    c->label = fasttext_label_find(c->model, span_of(c->conf.label));
    if (c->label >= 0)
        return 0;
    n = fasttext_n_labels(c->model);
    for (int i = 0; i < n; i++) {
        struct span name = fasttext_label_name(c->model, i);
        if (buf_printf(&names, "%s%.*s", i ? ", " : "", (int)name.n, name.p) < 0)
            break;
    }
    err_set(e, ERR_ARG, "'%s' has no label '%s'; its %d: %.*s", c->conf.model, c->conf.label, n, (int)names.n,
            names.n ? names.p : "");
    buf_free(&names);
    return ERR_ARG;
}

int classify_stage_open(struct stage *s, const struct classify_conf *conf, struct err *e)
{
    struct classify *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return err_set(e, ERR_NOMEM, "no memory to classify documents");
    c->conf = *conf;
    rng_mt_seed(&c->rng, (uint32_t)conf->seed);
    rc = open_model(c, e);
    if (rc < 0) {
        classify_close(c);
        return rc;
    }
    c->in_order = conf->histogram || (conf->pareto > 0 && conf->draw == CLASSIFY_NUMPY);
    s->ops = c->in_order ? &ops_in_order : &ops;
    s->state = c;
    return 0;
}
