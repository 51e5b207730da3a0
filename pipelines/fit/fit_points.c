#include "pipelines/fit/fit_points.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/node.h"
#include "base/utf8.h"
#include "pipelines/ablation/ablation_run.h"

#define SHARE_ERROR 1e-6 /* how far from 1 a sum of weights may be */
#define COUNT_MOST 1e30  /* parameters, tokens */

/* Points while they are read: rows have room for all sources and targets that may come. */
struct mix_reader {
    struct mix_points *p;
    size_t weight_room, loss_room;
};

/* What reads a line. */
typedef int read_line(void *arg, const struct node *line, struct err *e);

/* ---- lines ---- */

static bool is_blank(struct span s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
        s.n--;
    return s.n == 0;
}

static int read_text(struct span text, read_line *f, void *arg, struct err *e)
{
    const char *p = text.p, *end = text.p + text.n;
    struct arena mem = {0};
    int rc = 0;

    for (int line = 1; p < end && rc == 0; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        struct span one = {p, (size_t)((stop ? stop : end) - p)};
        struct node *n;

        p += one.n + 1;
        one = line == 1 ? utf8_without_mark(one) : one;
        if (is_blank(one))
            continue;
        rc = node_parse_json(&mem, one, &n, e);
        if (rc == 0)
            rc = n->type == NODE_MAP ? f(arg, n, e) : err_set(e, ERR_FORMAT, "this is no object");
        if (rc < 0)
            err_wrap(e, "line %d", line);
        arena_reset(&mem);
    }
    arena_free(&mem);
    return rc;
}

static bool is_number(const struct node *n)
{
    return n && (n->type == NODE_INT || n->type == NODE_NUM) && isfinite(n->num);
}

static int check_loss(const struct node *n, const char *name, struct err *e)
{
    if (!is_number(n))
        return err_set(e, ERR_FORMAT, "'%.100s' is no number", name);
    return n->num > 0 && n->num < 1e30 ? 0 : err_set(e, ERR_FORMAT, "'%.100s' is %g: a loss is above 0", name, n->num);
}

/* ---- mixtures ---- */

/* The place of a name in a list, to which it is added; negative: an error. */
static int place_of(struct mix_points *p, const char **list, int *n, int most, const char *what, struct span name, struct err *e)
{
    for (int i = 0; i < *n; i++)
        if (span_is(name, list[i]))
            return i;
    if (name.n == 0 || name.n > FIT_NAME)
        return err_set(e, ERR_FORMAT, "a name of a %s has 1 to %d bytes", what, FIT_NAME);
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 127)
            return err_set(e, ERR_FORMAT, "a name of a %s has a control character", what);
    if (*n == most)
        return err_set(e, ERR_LIMIT, "'%.100s' is one %s too many: %d at most", name.p, what, most);
    list[*n] = arena_dup(&p->arena, name).p;
    return list[*n] ? (*n)++ : err_set(e, ERR_NOMEM, "out of memory for points");
}

/* A new point with no weights and no losses yet. */
static int add_point(struct mix_reader *r, struct err *e)
{
    struct mix_points *p = r->p;

    if (p->n == FIT_POINTS)
        return err_set(e, ERR_LIMIT, "more than %d points", FIT_POINTS);
    if (mem_grow(&p->weight, &r->weight_room, (size_t)(p->n + 1) * FIT_SOURCES, sizeof *p->weight) < 0 ||
        mem_grow(&p->loss, &r->loss_room, (size_t)(p->n + 1) * FIT_TARGETS, sizeof *p->loss) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for points");
    for (int i = 0; i < FIT_SOURCES; i++)
        p->weight[p->n * FIT_SOURCES + i] = 0;
    for (int i = 0; i < FIT_TARGETS; i++)
        p->loss[p->n * FIT_TARGETS + i] = NAN;
    p->n++;
    return 0;
}

/* Weights of the last point.  exact: they have to sum to 1; else they are shares of their sum. */
static int read_weights(struct mix_points *p, const struct node *map, bool exact, struct err *e)
{
    double *row = &p->weight[(p->n - 1) * FIT_SOURCES], sum = 0;

    if (!map || map->type != NODE_MAP || !map->child)
        return err_set(e, ERR_FORMAT, "no 'weights': a map of sources to shares");
    for (const struct node *n = map->child; n; n = n->next) {
        int i = place_of(p, p->source, &p->sources, FIT_SOURCES, "source", n->key, e);

        TRY(i);
        if (!is_number(n) || n->num < 0 || n->num > 1e9)
            return err_set(e, ERR_FORMAT, "the weight of '%.100s' is no share from 0", n->key.p);
        row[i] = n->num;
        sum += n->num;
    }
    if (!(sum > 0) || (exact && fabs(sum - 1) > SHARE_ERROR))
        return err_set(e, ERR_FORMAT, "the weights sum to %.9g, not to 1", sum);
    for (int i = 0; i < FIT_SOURCES; i++)
        row[i] /= sum;
    return 0;
}

static int read_loss(struct mix_points *p, struct span name, const struct node *n, struct err *e)
{
    int i = place_of(p, p->target, &p->targets, FIT_TARGETS, "target", name, e);

    TRY(i);
    TRY(check_loss(n, p->target[i], e));
    p->loss[(p->n - 1) * FIT_TARGETS + i] = n->num;
    return 0;
}

/* All points have losses of the same targets. */
static int check_targets(const struct mix_points *p, struct err *e)
{
    for (int i = 0; i < p->targets; i++)
        if (isnan(p->loss[(p->n - 1) * FIT_TARGETS + i]))
            return err_set(e, ERR_FORMAT, "no loss of '%.100s'", p->target[i]);
    for (int i = 0; i < p->targets; i++)
        if (isnan(p->loss[i]))
            return err_set(e, ERR_FORMAT, "a loss of '%.100s', which points before have not", p->target[i]);
    return 0;
}

static int read_mixture(void *arg, const struct node *line, struct err *e)
{
    struct mix_reader *r = arg;
    const struct node *losses = node_get(line, "losses"), *loss = node_get(line, "loss");

    TRY(add_point(r, e));
    TRY(read_weights(r->p, node_get(line, "weights"), true, e));
    if (!losses == !loss)
        return err_set(e, ERR_FORMAT, "either 'loss', a number, or 'losses', a map of targets to numbers");
    if (loss)
        TRY(read_loss(r->p, span_of("loss"), loss, e));
    if (losses && (losses->type != NODE_MAP || !losses->child))
        return err_set(e, ERR_FORMAT, "'losses' is no map of targets to numbers");
    for (const struct node *n = losses ? losses->child : NULL; n; n = n->next)
        TRY(read_loss(r->p, n->key, n, e));
    return check_targets(r->p, e);
}

/* ---- statistics of an ablation ---- */

/* Score s of each evaluation; more: there is one.  A run that is not done yet has null and is no point. */
static int read_scores(struct mix_reader *r, const struct node *variant, int s, bool *more, struct err *e)
{
    struct mix_points *p = r->p;
    bool done = true;

    TRY(add_point(r, e));
    TRY(read_weights(p, node_get(variant, "weights"), false, e));
    *more = false;
    for (const struct node *n = node_get(variant, "evaluations")->child; n; n = n->next) {
        const char *metric = node_str(n, "metric");
        const struct node *scores = node_get(n, "scores"), *score = scores && scores->type == NODE_LIST ? scores->child : NULL;

        for (int i = 0; i < s && score; i++)
            score = score->next;
        if (!metric || !ablation_is_loss(metric))
            continue;
        *more |= score != NULL;
        if (!score || score->type == NODE_NULL)
            done = false;
        else
            TRY(read_loss(p, n->key, score, e));
    }
    if (!*more || !done) {
        p->n--;
        return 0;
    }
    return check_targets(p, e);
}

static int read_stats(struct mix_reader *r, const struct node *variants, struct err *e)
{
    for (const struct node *v = variants->child; v; v = v->next) {
        const struct node *evaluations = node_get(v, "evaluations"), *weights = node_get(v, "weights");
        bool more = weights && weights->type == NODE_MAP && evaluations && evaluations->type == NODE_MAP;

        for (int s = 0; more; s++)
            if (read_scores(r, v, s, &more, e) < 0)
                return err_wrap(e, "variant '%.64s'", node_str(v, "variant") ? node_str(v, "variant") : "?");
    }
    return r->p->n ? 0 : err_set(e, ERR_FORMAT, "no variant has weights and a loss");
}

/* One file.  What ablate wrote is one object with a list of variants. */
static int read_mixtures(void *arg, struct span text, struct err *e)
{
    struct mix_reader *r = arg;
    const struct node *variants = NULL;
    struct arena mem = {0};
    struct node *root;
    int rc = node_parse_json(&mem, utf8_without_mark(text), &root, e);

    if (rc == 0)
        variants = node_get(root, "variants");
    if (variants && variants->type == NODE_LIST)
        rc = read_stats(r, variants, e);
    else if (rc != ERR_NOMEM)
        rc = read_text(text, read_mixture, r, e);
    arena_free(&mem);
    return rc;
}

/* Rows as long as there are sources and targets, and which points are of one mixture. */
static int finish_mixtures(struct mix_points *p, struct err *e)
{
    p->mixture = calloc((size_t)p->n + 1, sizeof *p->mixture);
    if (!p->mixture)
        return err_set(e, ERR_NOMEM, "out of memory for points");
    for (int i = 0; i < p->n; i++) {
        memmove(&p->weight[i * p->sources], &p->weight[i * FIT_SOURCES], (size_t)p->sources * sizeof *p->weight);
        memmove(&p->loss[i * p->targets], &p->loss[i * FIT_TARGETS], (size_t)p->targets * sizeof *p->loss);
    }
    for (int i = 0; i < p->n; i++) {
        const size_t row = (size_t)p->sources * sizeof *p->weight;
        int k = 0;

        while (k < i && memcmp(&p->weight[k * p->sources], &p->weight[i * p->sources], row) != 0)
            k++;
        p->mixture[i] = k < i ? p->mixture[k] : p->mixtures++;
    }
    return 0;
}

/* Reads a file and hands its text over. */
static int with_text(const char *file, int (*f)(void *arg, struct span text, struct err *e), void *arg, struct err *e)
{
    struct buf b = {0};
    int rc = file_read_all(file, FIT_FILE_MOST, &b, e);

    if (rc == 0 && b.n == 0)
        rc = err_set(e, ERR_FORMAT, "'%s': the file is empty", file);
    else if (rc == 0) {
        rc = f(arg, buf_span(&b), e);
        if (rc < 0)
            err_wrap(e, "'%s'", file);
    }
    buf_free(&b);
    return rc;
}

int mix_points_read(struct mix_points *p, const char *const *files, int n, struct err *e)
{
    struct mix_reader r = {.p = p};

    *p = (struct mix_points){0};
    for (int i = 0; i < n; i++)
        TRY(with_text(files[i], read_mixtures, &r, e));
    return p->n ? finish_mixtures(p, e) : err_set(e, ERR_FORMAT, "'%s' has no points", n ? files[0] : "");
}

void mix_points_free(struct mix_points *p)
{
    arena_free(&p->arena);
    free(p->weight);
    free(p->loss);
    free(p->mixture);
    *p = (struct mix_points){0};
}

/* ---- sizes ---- */

struct scale_reader {
    struct scale_points *p;
    size_t room[3];
};

static int read_count(const struct node *line, const char *key, double *to, struct err *e)
{
    const struct node *n = node_get(line, key);

    if (!is_number(n) || !(n->num > 0 && n->num <= COUNT_MOST))
        return err_set(e, ERR_FORMAT, n ? "'%s' is no number above 0" : "no '%s'", key);
    *to = n->num;
    return 0;
}

static int read_size(void *arg, const struct node *line, struct err *e)
{
    struct scale_reader *r = arg;
    struct scale_points *p = r->p;
    size_t need = (size_t)p->n + 1;

    if (p->n == FIT_POINTS)
        return err_set(e, ERR_LIMIT, "more than %d points", FIT_POINTS);
    if (mem_grow(&p->params, &r->room[0], need, sizeof *p->params) < 0 ||
        mem_grow(&p->tokens, &r->room[1], need, sizeof *p->tokens) < 0 ||
        mem_grow(&p->loss, &r->room[2], need, sizeof *p->loss) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for points");
    TRY(read_count(line, "params", &p->params[p->n], e));
    TRY(read_count(line, "tokens", &p->tokens[p->n], e));
    if (!node_get(line, "loss"))
        return err_set(e, ERR_FORMAT, "no 'loss'");
    TRY(check_loss(node_get(line, "loss"), "loss", e));
    p->loss[p->n++] = node_get(line, "loss")->num;
    return 0;
}

static int sizes_of_text(void *arg, struct span text, struct err *e)
{
    return read_text(text, read_size, arg, e);
}

int scale_points_read(struct scale_points *p, const char *const *files, int n, struct err *e)
{
    struct scale_reader r = {.p = p};

    *p = (struct scale_points){0};
    for (int i = 0; i < n; i++)
        TRY(with_text(files[i], sizes_of_text, &r, e));
    return p->n ? 0 : err_set(e, ERR_FORMAT, "'%s' has no points", n ? files[0] : "");
}

void scale_points_keep_lowest(struct scale_points *p)
{
    int kept = 0;

    for (int i = 0; i < p->n; i++) {
        int same = 0;
        while (same < kept && (p->params[same] != p->params[i] || p->tokens[same] != p->tokens[i]))
            same++;
        if (same < kept) {
            p->loss[same] = fmin(p->loss[same], p->loss[i]);
            continue;
        }
        p->params[kept] = p->params[i];
        p->tokens[kept] = p->tokens[i];
        p->loss[kept++] = p->loss[i];
    }
    p->n = kept;
}

void scale_points_free(struct scale_points *p)
{
    free(p->params);
    free(p->tokens);
    free(p->loss);
    *p = (struct scale_points){0};
}
