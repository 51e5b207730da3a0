#include "train/generate.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct state {
    int32_t *prompt; /* (b, n) */
    int32_t *last;   /* (b) the newest token of each */
    bool *ended;
    bool *seen;    /* (b, vocab) which ids a sample has, those of its prompt too */
    float *logits; /* (b, padded_vocab) */
    char *room;    /* of sampling_draw for each thread */
};

/* The next token of each sample that goes on, to st->last, by all threads; position i is drawn for. */
static int draw_tokens(const struct model *m, const struct sampling *s, struct state *st, int64_t i, struct err *e)
{
    int64_t failed = m->b;

#pragma omp parallel for schedule(dynamic) if (m->b > 1)
    for (int64_t b = 0; b < m->b; b++) {
        float *logits = st->logits + b * m->config.padded_vocab;
        bool *seen = st->seen + b * m->config.vocab;
        char *room = st->room + (size_t)omp_get_thread_num() * sampling_room(m->config.vocab);
        struct err own;
        uint32_t w[4];
        int32_t id;

        if (st->ended[b])
            continue;
        sampling_penalize(s, seen, logits, m->config.vocab);
        rng_philox(s->seed, (uint64_t)i, (uint64_t)b, w);
        id = sampling_draw(s, logits, m->config.vocab, ((double)w[0] * 4294967296.0 + w[1]) * 0x1p-64, room, &own);
        if (id >= 0) {
            seen[id] = true;
            st->last[b] = id;
            continue;
        }
#pragma omp critical
        if (b < failed) {
            failed = b;
            *e = own;
        }
    }
    return failed < m->b ? e->code : 0;
}

/* One token for each sample that goes on.  Returns how many do. */
static int64_t next_tokens(struct model *m, const struct sampling *s, struct state *st, int64_t i,
                           generate_token_fn *fn, void *arg, struct err *e)
{
    int64_t going = 0;

    TRY(draw_tokens(m, s, st, i, e));
    for (int64_t b = 0; b < m->b; b++) {
        int rc = st->ended[b] ? 0 : fn(arg, b, st->last[b], e);

        if (rc < 0)
            return rc;
        st->ended[b] |= st->last[b] == s->eod || rc > 0;
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
        malloc((size_t)omp_get_max_threads() * sampling_room(m->config.vocab)),
    };
    int rc = 0;

    if (n < 1 || count < 0 || n + count - 1 > m->t)
        rc = err_set(e, ERR_ARG, "%" PRId64 " tokens behind a prompt of %" PRId64 " are more than the %" PRId64
                     " positions", count, n, m->t);
    else if (!st.prompt || !st.last || !st.ended || !st.seen || !st.logits || !st.room)
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
    free(st.room);
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

        free(prompts);
        prompts = calloc((size_t)(m->b * length + 1), sizeof *prompts);
        if (!prompts) {
            rc = err_set(e, ERR_NOMEM, "out of memory");
            break;
        }
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
