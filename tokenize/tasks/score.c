/* What answers are worth. */
#include <inttypes.h>
#include <math.h>

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

static struct scored question(const struct task *t, const struct task_answer *a, int64_t i)
{
    const struct task_kept *k = (const struct task_kept *)(const void *)t->kept.p + i;

    return (struct scored){k, a + k->first, (const struct task_request *)(const void *)t->requests.p + k->first,
                           (const int64_t *)(const void *)t->lengths.p + k->lengths,
                           (const int64_t *)(const void *)t->golds.p + k->gold};
}

/* The mean, or what follows from it; its error is that of a ratio of sums. */
static struct task_score total(const struct task *t, const struct task_answer *a, enum task_metric m)
{
    struct task_score s = {task_metric_name(m), NAN, NAN, m <= METRIC_MUTUAL};
    double sum = 0, weights = 0, squares = 0, v, w, n = (double)t->questions, mean, error;

    for (int64_t i = 0; i < t->questions; i++) {
        struct scored q = question(t, a, i);

        measure(&q, t->conf.kind, m, &v, &w);
        sum += v;
        weights += w;
    }
    mean = sum / weights;
    for (int64_t i = 0; i < t->questions; i++) {
        struct scored q = question(t, a, i);

        measure(&q, t->conf.kind, m, &v, &w);
        squares += (v - mean * w) * (v - mean * w);
    }
    error = t->questions > 1 ? sqrt(squares * n / (n - 1)) / weights : NAN;
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

int task_score(const struct task *t, const struct task_answer *a, struct task_score scores[TASK_SCORES], struct file_out *records,
               struct err *e)
{
    struct buf line = {0};
    int rc = 0;

    for (size_t i = 0; i < t->requests.n / sizeof(struct task_request); i++)
        if (!isfinite(a[i].likelihood))
            return err_set(e, ERR_LIMIT, "%s: the likelihood of request %zu is not finite", t->conf.name, i);
    for (int m = 0; m < t->conf.n_metrics; m++)
        scores[m] = total(t, a, t->conf.order[m]);
    for (int64_t i = 0; records && i < t->questions && rc == 0; i++)
        rc = put_record(t, a, i, &line, records, e);
    buf_free(&line);
    return rc < 0 ? rc : t->conf.n_metrics;
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
