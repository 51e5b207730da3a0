/* What answers are worth. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "tokenize/tasks/parts.h"

/* A question with its answers. */
struct scored {
    const struct task_kept *kept;
    const struct task_answer *a; /* (kept->requests) */
    const struct task_request *r; /* the same */
    const int64_t *length, *gold;
};

static bool is_gold(const struct scored *q, int64_t choice)
{
    for (int64_t i = 0; i < q->kept->golds; i++)
        if (q->gold[i] == choice)
            return true;
    return false;
}

/* The first of the likeliest choices, as a metric compares likelihoods: as they are, a character, a byte, a token, or without
 * what they have behind nothing. */
static int64_t likeliest(const struct scored *q, enum task_metric by)
{
    int64_t best = 0, n = q->kept->choices;
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        double v = q->a[i].likelihood;

        if (by == METRIC_ACC_NORM || by == METRIC_ACC_BYTES)
            v /= (double)q->length[2 * i + (by == METRIC_ACC_BYTES)];
        else if (by == METRIC_ACC_TOKENS)
            v /= (double)(q->r[i].n - q->r[i].from);
        else if (by == METRIC_MUTUAL)
            v -= q->a[n + i].likelihood;
        if (i == 0 || v > most) {
            best = i;
            most = v;
        }
    }
    return best;
}

static bool greedily(const struct scored *q)
{
    for (int64_t i = 0; i < q->kept->golds; i++)
        if (q->gold[i] >= 0 && q->a[q->gold[i]].greedy)
            return true;
    return false;
}

/* What a metric takes of a question: *v over *weight. */
static void measure(const struct scored *q, enum task_kind kind, enum task_metric m, double *v, double *weight)
{
    double sum = 0;

    for (int64_t i = 0; i < q->kept->requests; i++)
        sum += q->a[i].likelihood;
    *weight = 1;
    switch (m) {
    case METRIC_ACC:
        *v = kind == TASK_CHOICE ? is_gold(q, likeliest(q, m)) : q->a[0].greedy;
        break;
    case METRIC_ACC_NORM:
    case METRIC_ACC_BYTES:
    case METRIC_ACC_TOKENS:
    case METRIC_MUTUAL:
        *v = is_gold(q, likeliest(q, m));
        break;
    case METRIC_EXACT:
        *v = greedily(q);
        break;
    default:
        *v = sum;
        *weight = m == METRIC_WORD_PERPLEXITY ? (double)q->kept->words
                  : m == METRIC_BYTE_PERPLEXITY || m == METRIC_BITS_PER_BYTE ? (double)q->kept->bytes : 1;
    }
}

/* The numbers in b from the i-th on; where it has none, one that nobody asks for. */
static const int64_t *numbers(const struct buf *b, int64_t i)
{
    static const int64_t none;

    return b->n ? (const int64_t *)(const void *)b->p + i : &none;
}

static struct scored question(const struct task *t, const struct task_answer *a, int64_t i)
{
    const struct task_kept *k = (const struct task_kept *)(const void *)t->kept.p + i;

    return (struct scored){k, a + k->first, (const struct task_request *)(const void *)t->requests.p + k->first,
                           numbers(&t->lengths, k->lengths), numbers(&t->golds, k->gold)};
}

/* The mean of v (n) over weights w, or what follows from it; its error is that of a ratio of sums. */
static struct task_score total(const char *name, enum task_metric m, const double *v, const double *w, int64_t n)
{
    struct task_score s = {name, NAN, NAN, m <= METRIC_MUTUAL};
    double sum = 0, weights = 0, squares = 0, mean, error;

    for (int64_t i = 0; i < n; i++) {
        sum += v[i];
        weights += w[i];
    }
    mean = sum / weights;
    for (int64_t i = 0; i < n; i++)
        squares += (v[i] - mean * w[i]) * (v[i] - mean * w[i]);
    error = n > 1 ? sqrt(squares * (double)n / (double)(n - 1)) / weights : NAN;
    s.value = m <= METRIC_MUTUAL ? mean : m == METRIC_BITS_PER_BYTE ? -mean / M_LN2 : exp(-mean);
    s.error = m <= METRIC_MUTUAL ? error : m == METRIC_BITS_PER_BYTE ? error / M_LN2 : s.value * error;
    return s;
}

static int put_record(const struct task *t, const struct task_answer *a, int64_t i, struct buf *line, struct file_out *records,
                      struct err *e)
{
    const struct scored q = question(t, a, i);
    double v, w;

    buf_clear(line);
    buf_putc(line, '{');
    json_put_key(line, "task");
    json_put_name(line, t->conf.name);
    json_put_count(line, "question", (uint64_t)i);
    json_put_key(line, "likelihoods");
    for (int64_t k = 0; k < q.kept->requests; k++) {
        buf_putc(line, k ? ',' : '[');
        json_put_num(line, q.a[k].likelihood);
    }
    buf_putc(line, ']');
    if (task_asks_greedy(t)) {
        json_put_key(line, "greedy");
        for (int64_t k = 0; k < q.kept->requests; k++) {
            buf_putc(line, k ? ',' : '[');
            buf_puts(line, q.a[k].greedy ? "true" : "false");
        }
        buf_putc(line, ']');
    }
    if (q.kept->golds) {
        json_put_key(line, "gold");
        for (int64_t k = 0; k < q.kept->golds; k++) {
            buf_putc(line, k ? ',' : '[');
            json_put_int(line, q.gold[k]);
        }
        buf_putc(line, ']');
    }
    for (int m = 0; m < t->conf.n_metrics; m++) {
        measure(&q, t->conf.kind, t->conf.order[m], &v, &w);
        if (t->conf.order[m] <= METRIC_MUTUAL) {
            json_put_key(line, task_metric_name(t->conf.order[m]));
            json_put_num(line, v);
        }
    }
    if (t->conf.kind == TASK_ROLLING) {
        json_put_count(line, "words", (uint64_t)q.kept->words);
        json_put_count(line, "bytes", (uint64_t)q.kept->bytes);
    }
    buf_puts(line, "}\n");
    return line->failed ? err_set(e, ERR_NOMEM, "out of memory") : file_write(records, line->p, line->n, e);
}

/* ---- texts that were written ---- */

/* Whether what was written for question i is right by each filter, to v[filter * all + i]; its record, unless records is NULL. */
static int judge(const struct task *t, const struct task_answer *a, int64_t i, double *v, struct arena *arena, struct buf *line,
                 struct file_out *records, struct err *e)
{
    const struct scored q = question(t, a, i);
    struct buf text = {0};
    bool whole, right;
    int rc = task_text(t, q.a->ids, q.a->n, &text, &whole, e);

    buf_clear(line);
    buf_putc(line, '{');
    json_put_key(line, "task");
    json_put_name(line, t->conf.name);
    json_put_count(line, "question", (uint64_t)i);
    json_put_key(line, "text");
    json_put_string(line, buf_span(&text));
    json_put_key(line, "filtered");
    for (int f = 0; rc == 0 && f < task_judge_metrics(t->judge); f++) {
        struct span s = buf_span(&text);

        rc = task_judge_filtered(t->judge, f, arena, &s, e);
        rc = rc ? rc : task_judge_right(t->judge, arena, s, q.kept->right, q.kept->rights, &right, e);
        v[f * t->questions + i] = rc == 0 && right;
        buf_putc(line, f ? ',' : '[');
        json_put_string(line, s);
    }
    buf_putc(line, ']');
    for (int f = 0; f < task_judge_metrics(t->judge); f++) {
        json_put_key(line, task_judge_metric(t->judge, f));
        json_put_num(line, v[f * t->questions + i]);
    }
    buf_puts(line, "}\n");
    buf_free(&text);
    if (rc == 0 && line->failed)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    return rc || !records ? rc : file_write(records, line->p, line->n, e);
}

/* v and w: room for a number a question and metric. */
static int score_texts(const struct task *t, const struct task_answer *a, struct task_score scores[TASK_SCORES], double *v,
                       double *w, struct file_out *records, struct err *e)
{
    struct arena arena = {0};
    struct buf line = {0};
    int rc = 0, n = task_judge_metrics(t->judge);

    for (int64_t i = 0; i < t->questions && rc == 0; i++) {
        arena_reset(&arena);
        w[i] = 1;
        rc = judge(t, a, i, v, &arena, &line, records, e);
        if (rc < 0)
            rc = err_wrap(e, "'%s': question %" PRId64, t->conf.path[0], i + 1);
    }
    for (int f = 0; f < n && rc == 0; f++)
        scores[f] = total(task_judge_metric(t->judge, f), METRIC_EXACT, v + f * t->questions, w, t->questions);
    arena_free(&arena);
    buf_free(&line);
    return rc < 0 ? rc : n;
}

/* ---- all ---- */

static int score_likelihoods(const struct task *t, const struct task_answer *a, struct task_score scores[TASK_SCORES], double *v,
                             double *w, struct file_out *records, struct err *e)
{
    struct buf line = {0};
    int rc = 0;

    for (size_t i = 0; i < t->requests.n / sizeof(struct task_request); i++)
        if (!isfinite(a[i].likelihood))
            return err_set(e, ERR_LIMIT, "%s: the likelihood of request %zu is not finite", t->conf.name, i);
    for (int m = 0; m < t->conf.n_metrics; m++) {
        for (int64_t i = 0; i < t->questions; i++) {
            const struct scored q = question(t, a, i);

            measure(&q, t->conf.kind, t->conf.order[m], &v[i], &w[i]);
        }
        scores[m] = total(task_metric_name(t->conf.order[m]), t->conf.order[m], v, w, t->questions);
    }
    for (int64_t i = 0; records && i < t->questions && rc == 0; i++)
        rc = put_record(t, a, i, &line, records, e);
    buf_free(&line);
    return rc < 0 ? rc : t->conf.n_metrics;
}

int task_score(const struct task *t, const struct task_answer *a, struct task_score scores[TASK_SCORES], struct file_out *records,
               struct err *e)
{
    double *v = calloc((size_t)t->questions * (TASK_SCORES + 1) + 1, sizeof *v);
    int rc = v ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = (t->judge ? score_texts : score_likelihoods)(t, a, scores, v, v + t->questions * TASK_SCORES, records, e);
    free(v);
    return rc;
}

double task_chance(const struct task *t)
{
    double sum = 0;

    if (!isnan(t->conf.chance))
        return t->conf.chance;
    for (int64_t i = 0; i < t->questions && t->conf.kind == TASK_CHOICE; i++)
        sum += 1 / (double)((const struct task_kept *)(const void *)t->kept.p)[i].choices;
    return t->questions ? sum / (double)t->questions : 0;
}
