#include "train/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct choice {
    float logit;
    int32_t id;
};

/* Larger for a larger logit, and of one size for both zeros. */
static uint32_t key_of(float logit)
{
    uint32_t bits;

    logit += 0; /* -0 becomes 0 */
    memcpy(&bits, &logit, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

/* Likeliest first; ties by id, as they come, so that the order is total.  By 11 bits at a time, c and spare (n each) in turn:
 * the result is in spare. */
static void sort(struct choice *c, struct choice *spare, int64_t n)
{
    for (int shift = 0; shift < 33; shift += 11) {
        int64_t at[2049] = {0};
        struct choice *swap = c;

        for (int64_t i = 0; i < n; i++)
            at[2048 - (key_of(c[i].logit) >> shift & 2047)]++;
        for (int i = 1; i <= 2048; i++)
            at[i] += at[i - 1];
        for (int64_t i = 0; i < n; i++)
            spare[at[2047 - (key_of(c[i].logit) >> shift & 2047)]++] = c[i];
        c = spare;
        spare = swap;
    }
}

/* Draws among c[0 .. n), ordered by logit: their softmax at the temperature, cut to top_p.  e: room for n. */
static int32_t draw(const struct sampling *s, const struct choice *c, int64_t n, double u, double *e)
{
    double sum = 0, kept = 0, at = 0;
    int64_t last = 0;

    for (int64_t i = 0; i < n; i++)
        sum += e[i] = exp(((double)c[i].logit - c[0].logit) / s->temperature);
    for (; last < n; last++) {
        kept += e[last];
        if (kept >= s->top_p * sum)
            break;
    }
    for (int64_t i = 0; i < n && i <= last; i++) {
        at += e[i];
        if (u * kept < at)
            return c[i].id;
    }
    return c[last < n ? last : n - 1].id;
}

/* The ids that may be drawn, to c; how many. */
static int64_t choices(const struct sampling *s, const float *logits, int64_t n, struct choice *c, struct err *e)
{
    int64_t m = 0;

    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(logits[i]))
            return err_set(e, ERR_LIMIT, "the logit of token %" PRId64 " is not finite", i);
        if (!s->drawn || s->drawn[i])
            c[m++] = (struct choice){logits[i], (int32_t)i};
    }
    return m ? m : err_set(e, ERR_LIMIT, "none of the %" PRId64 " ids may be drawn", n);
}

/* The first of the likeliest. */
static int32_t likeliest(const struct choice *c, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        best = c[i].logit > c[best].logit ? i : best;
    return c[best].id;
}

int32_t sampling_draw(const struct sampling *s, const float *logits, int64_t n, double u, struct err *e)
{
    struct choice *c = malloc((size_t)n * (2 * sizeof *c + sizeof(double)));
    int64_t m = c ? choices(s, logits, n, c, e) : err_set(e, ERR_NOMEM, "out of memory");
    int32_t id = (int32_t)m;

    if (m > 0 && s->temperature > 0) {
        sort(c, c + n, m);
        id = draw(s, c + n, s->top_k > 0 && s->top_k < m ? s->top_k : m, u, (double *)(void *)(c + 2 * n));
    } else if (m > 0) {
        id = likeliest(c, m);
    }
    free(c);
    return id;
}

void sampling_penalize(const struct sampling *s, const bool *seen, float *logits, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (seen[i])
            logits[i] = (float)(logits[i] < 0 ? logits[i] * s->penalty : logits[i] / s->penalty);
}

struct state {
    int32_t *prompt; /* (b, n) */
    int32_t *last;   /* (b) the newest token of each */
    bool *ended;
    bool *seen;    /* (b, vocab) which ids a sample has, those of its prompt too */
    float *logits; /* (b, padded_vocab) */
};

/* One token for each sample that goes on.  Returns how many do. */
static int64_t next_tokens(struct model *m, const struct sampling *s, struct state *st, int64_t i,
                           generate_token_fn *fn, void *arg, struct err *e)
{
    int64_t going = 0;

    for (int64_t b = 0; b < m->b; b++) {
        float *logits = st->logits + b * m->config.padded_vocab;
        bool *seen = st->seen + b * m->config.vocab;
        uint32_t w[4];
        double u;
        int32_t id;
        int rc;

        if (st->ended[b])
            continue;
        sampling_penalize(s, seen, logits, m->config.vocab);
        rng_philox(s->seed, (uint64_t)i, (uint64_t)b, w);
        u = ((double)w[0] * 4294967296.0 + w[1]) * 0x1p-64;
        id = sampling_draw(s, logits, m->config.vocab, u, e);
        if (id < 0)
            return id;
        seen[id] = true;
        st->last[b] = id;
        rc = fn(arg, b, id, e);
        if (rc < 0)
            return rc;
        st->ended[b] = id == s->eod || rc > 0;
        going += !st->ended[b];
    }
    return going;
}

static int run(struct model *m, const struct sampling *s, struct state *st, int64_t n, int64_t count,
               generate_token_fn *fn, void *arg, struct err *e)
{
    TRY(model_extend(m, st->prompt, m->b, n, 0, st->logits, e));
    for (int64_t i = 0; i < count; i++) {
        int64_t going = next_tokens(m, s, st, i, fn, arg, e);

        if (going <= 0)
            return (int)going;
        if (i + 1 < count)
            TRY(model_extend(m, st->last, m->b, 1, n + i, st->logits, e));
    }
    return 0;
}

int generate(struct model *m, const struct sampling *s, const int32_t *prompt, int64_t prompts, int64_t n, int64_t count,
             generate_token_fn *fn, void *arg, struct err *e)
{
    struct state st = {
        malloc((size_t)(m->b * n) * sizeof *st.prompt), calloc((size_t)m->b, sizeof *st.last),
        calloc((size_t)m->b, sizeof *st.ended), calloc((size_t)(m->b * m->config.vocab), sizeof *st.seen),
        malloc((size_t)(m->b * m->config.padded_vocab) * sizeof *st.logits),
    };
    int rc = 0;

    if (n < 1 || count < 0 || n + count - 1 > m->t)
        rc = err_set(e, ERR_ARG, "%" PRId64 " tokens behind a prompt of %" PRId64 " are more than the %" PRId64
                     " positions", count, n, m->t);
    else if (!st.prompt || !st.last || !st.ended || !st.seen || !st.logits)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; rc == 0 && i < m->b * n; i++) {
        int32_t id = st.prompt[i] = prompt[i % (prompts * n)];

        if (id < 0 || id >= m->config.vocab)
            rc = err_set(e, ERR_ARG, "the prompt has token %" PRId32 ", outside a vocabulary of %" PRId64, id, m->config.vocab);
        else
            st.seen[i / n * m->config.vocab + id] = true;
    }
    if (rc == 0 && count > 0)
        rc = run(m, s, &st, n, count, fn, arg, e);
    free(st.prompt);
    free(st.last);
    free(st.ended);
    free(st.seen);
    free(st.logits);
    return rc;
}

/* ---- many texts ---- */

struct batch {
    struct generate_request **r; /* (used) */
    int64_t used;
    generate_ends_fn *ends;
    void *arg;
};

static int take_token(void *arg, int64_t sample, int32_t id, struct err *e)
{
    const struct batch *b = arg;
    struct generate_request *r = sample < b->used ? b->r[sample] : NULL;
    int rc;

    if (!r)
        return 1;
    r->out[r->made++] = id;
    rc = b->ends(b->arg, r, e);
    return rc ? rc : r->made == r->most;
}

/* The shortest prompts first. */
static int by_length(const void *x, const void *y)
{
    const struct generate_request *a = *(struct generate_request *const *)x, *b = *(struct generate_request *const *)y;

    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a < b ? -1 : a > b;
}

int generate_all(struct model *m, const struct sampling *s, struct generate_request *r, int64_t n, generate_ends_fn *ends,
                 generate_told_fn *told, void *arg, struct err *e)
{
    struct generate_request **order = malloc((size_t)(n + 1) * sizeof *order);
    struct batch b = {.ends = ends, .arg = arg};
    int32_t *prompts = NULL;
    int rc = order ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t i = 0; rc == 0 && i < n; i++) {
        order[i] = &r[i];
        r[i].made = 0;
    }
    if (rc == 0)
        qsort(order, (size_t)n, sizeof *order, by_length);
    for (int64_t at = 0; rc == 0 && at < n; at += b.used) {
        int64_t length = order[at]->n, most = 0;
        int32_t *more = realloc(prompts, (size_t)(m->b * length + 1) * sizeof *prompts);

        if (!more) {
            rc = err_set(e, ERR_NOMEM, "out of memory");
            break;
        }
        prompts = more;
        b.r = order + at;
        for (b.used = 0; b.used < m->b && at + b.used < n && b.r[b.used]->n == length; b.used++)
            most = b.r[b.used]->most > most ? b.r[b.used]->most : most;
        for (int64_t i = 0; i < m->b; i++)
            memcpy(prompts + i * length, b.r[i < b.used ? i : 0]->ids, (size_t)length * sizeof *prompts);
        rc = generate(m, s, prompts, m->b, length, most, take_token, &b, e);
        if (told)
            told(arg, at + b.used, n);
    }
    free(order);
    free(prompts);
    return rc;
}
