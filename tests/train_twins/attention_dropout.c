/* Dropout of attention, whose mask may be the device's own: it is read off the op, and everything else is held to attention with
 * that mask in double. */
#include "tests/train_twins/train_twins.h"

/* A call over packed q, k and v, on the other device; what should come is put on the CPU. */
struct dropped {
    int64_t b, t, heads, kv, d;
    float p;
    bool documents;
};
struct kit {
    struct made m;
    const struct dropped *of;
    struct tensor qkv, o, lse, dout, dqkv;
    struct dropout drop;
    struct attention op;
    int now;
    int32_t *start;       /* (b, t) */
    uint16_t *values;     /* of qkv */
    unsigned char *mask;  /* (b, heads, t queries, t keys): 1 where kept */
};

static int64_t row_of(const struct dropped *h) { return (h->heads + 2 * h->kv) * h->d; }
static int64_t pairs(const struct dropped *h) { return h->b * h->heads * h->t * h->t; }
static unsigned char *mask_at(unsigned char *mask, const struct dropped *h, int64_t bh, int64_t i)
{
    return mask + (bh * h->t + i) * h->t;
}

static struct attention_view packed(const struct kit *k, int w, const struct tensor *t, int64_t column, int64_t row)
{
    return (struct attention_view){(uint16_t *)on(&k->m, w, t) + column, k->of->t * row, row};
}

static void put_now(struct kit *k, uint64_t step, int64_t sample)
{
    const struct dropout_now now = {step, sample};

    CHECK(&k->m, device_put(k->m.t->other, k->m.on[1][k->now], &now, sizeof now, &k->m.e));
}

/* Documents of some 30 tokens. */
static int put_starts(struct kit *k)
{
    const struct dropped *h = k->of;

    k->start = host_of(&k->m, (size_t)(h->b * h->t) * 4);
    for (int64_t i = 0; i < h->b * h->t; i++)
        k->start[i] = i % h->t == 0 ? 0 : h->documents && number(17, i) % 30 == 0 ? (int32_t)(i % h->t) : k->start[i - 1];
    return give(&k->m, k->start, (size_t)(h->b * h->t) * 4);
}

static void open_kit(struct kit *k, struct twins *t, const struct dropped *h)
{
    int64_t row = row_of(h), out = h->heads * h->d, n = h->b * h->t;
    const struct dropout_now now = {3, 1};
    struct made *m = &k->m;
    int start;

    *k = (struct kit){.m = {.t = t}, .of = h};
    start = put_starts(k);
    t->other->how = t->how;
    k->qkv = normal(m, DTYPE_BF16, n * row, 0, 100, 1, 0), k->dout = normal(m, DTYPE_BF16, n * out, 0, 101, 1, 0);
    k->o = result(m, DTYPE_BF16, n * out, 0), k->dqkv = result(m, DTYPE_BF16, n * row, 0);
    k->lse = result(m, DTYPE_F32, n * h->heads, 0);
    k->now = give(m, &now, sizeof now);
    k->values = host_of(m, (size_t)(n * row) * 2);
    k->mask = host_of(m, (size_t)pairs(h));
    CHECK(m, device_get(t->cpu, k->values, on(m, 0, &k->qkv), (size_t)(n * row) * 2, &m->e));
    k->drop = (struct dropout){.p = h->p, .key = 99, .stream = 3, .row0 = 40, .every = h->heads * h->t, .now = m->on[1][k->now]};
    k->op = (struct attention){.b = h->b, .t = h->t, .t_kv = h->t, .heads = h->heads, .kv_heads = h->kv, .d = h->d,
                               .scale = 1 / sqrtf((float)h->d), .drop = &k->drop, .lse = on(m, 1, &k->lse),
                               .q = packed(k, 1, &k->qkv, 0, row), .k = packed(k, 1, &k->qkv, out, row),
                               .v = packed(k, 1, &k->qkv, out + h->kv * h->d, row), .o = packed(k, 1, &k->o, 0, out)};
    if (h->documents)
        k->op.start = m->on[1][start], k->op.documents = n, k->op.longest = h->t;
}

static void forward(struct kit *k)
{
    CHECK(&k->m, k->m.t->other->ops->attention_fwd(k->m.t->other, DTYPE_BF16, &k->op, &k->m.e));
}

/* ---- the mask ---- */

/* q and k are 0, so a query weighs all keys alike; values are 1 in the column of their number, from key `at` on. */
static void put_units(struct kit *k, uint16_t *unit, int64_t at)
{
    const struct dropped *h = k->of;
    int64_t row = row_of(h), n = h->b * h->t, values = (h->heads + h->kv) * h->d;

    memset(unit, 0, (size_t)(n * row) * 2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t g = 0; g < h->kv && i % h->t >= at && i % h->t < at + h->d; g++)
            unit[i * row + values + g * h->d + i % h->t - at] = bf16_of(1);
    CHECK(&k->m, device_put(k->m.t->other, on(&k->m, 1, &k->qkv), unit, (size_t)(n * row) * 2, &k->m.e));
}

/* What is left of the probabilities of keys at .. at + d. */
static void read_columns(struct kit *k, const uint16_t *o, int64_t at, unsigned char *mask)
{
    const struct dropped *h = k->of;

    for (int64_t b = 0; b < h->b; b++)
        for (int64_t head = 0; head < h->heads; head++)
            for (int64_t i = 0; i < h->t; i++)
                for (int64_t j = at; j < at + h->d && j < h->t; j++)
                    mask_at(mask, h, b * h->heads + head, i)[j] =
                        bf16_to(o[((b * h->t + i) * h->heads + head) * h->d + j - at]) > 0;
}

static void read_mask(struct kit *k, unsigned char *mask)
{
    const struct dropped *h = k->of;
    size_t bytes = (size_t)(h->b * h->t * row_of(h)) * 2, out = (size_t)(h->b * h->t * h->heads * h->d) * 2;
    uint16_t *unit = malloc(bytes), *o = malloc(out);

    for (int64_t at = 0; at < h->t; at += h->d) {
        put_units(k, unit, at);
        forward(k);
        CHECK(&k->m, device_get(k->m.t->other, o, on(&k->m, 1, &k->o), out, &k->m.e));
        read_columns(k, o, at, mask);
    }
    CHECK(&k->m, device_put(k->m.t->other, on(&k->m, 1, &k->qkv), k->values, bytes, &k->m.e));
    free(unit);
    free(o);
}

/* Of the pairs that are seen: how many there are, how many are kept, and how many are not as in another mask. */
struct counts {
    double all, kept, other;
};
static struct counts count(const struct kit *k, const unsigned char *mask, const unsigned char *other)
{
    const struct dropped *h = k->of;
    struct counts c = {0, 0, 0};

    for (int64_t bh = 0; bh < h->b * h->heads; bh++)
        for (int64_t i = 0; i < h->t; i++)
            for (int64_t j = k->start[bh / h->heads * h->t + i], at = (bh * h->t + i) * h->t; j <= i; j++) {
                c.all++;
                c.kept += mask[at + j];
                c.other += mask[at + j] != other[at + j];
            }
    return c;
}

/* As many as are likely, by six deviations and what a threshold of 8 bits may be off. */
static void expect(struct kit *k, const char *what, double n, double of, double likely)
{
    double off = fabs(n - of * likely);

    if (!(off <= 6 * sqrt(of * likely * (1 - likely)) + of / 256))
        wrong(k->m.t, "dropout of attention, %s: %.0f of %.0f, where %.4f are likely", what, n, of, likely);
}

/* Another mask is as different as one by chance; the state is as it was afterwards. */
static void expect_other(struct kit *k, const char *what)
{
    unsigned char *other = malloc((size_t)pairs(k->of));
    struct counts c;
    double p = (double)k->of->p;

    read_mask(k, other);
    c = count(k, k->mask, other);
    expect(k, what, c.other, c.all, 2 * p * (1 - p));
    put_now(k, 3, 1);
    free(other);
}

static void check_masks(struct kit *k)
{
    const struct dropped *h = k->of;
    unsigned char *again = malloc((size_t)pairs(h));
    double p = (double)h->p;
    struct counts c;

    read_mask(k, k->mask);
    read_mask(k, again);
    c = count(k, k->mask, again);
    expect(k, "kept", c.kept, c.all, 1 - p);
    if (c.other > 0)
        wrong(k->m.t, "dropout of attention: the same state drew %.0f of %.0f otherwise", c.other, c.all);
    for (int64_t bh = 0; bh < h->b * h->heads; bh++) /* each against its neighbour */
        memcpy(mask_at(again, h, bh, 0), mask_at(k->mask, h, (bh + 1) % (h->b * h->heads), 0), (size_t)(h->t * h->t));
    c = count(k, k->mask, again);
    if (!h->documents && h->b * h->heads > 1) /* neighbours of documents see other pairs */
        expect(k, "heads", c.other, c.all, 2 * p * (1 - p));
    free(again);
    put_now(k, 4, 1);
    expect_other(k, "another step");
    put_now(k, 3, 2);
    expect_other(k, "another sample");
    k->drop.stream++;
    expect_other(k, "another place");
    k->drop.stream--;
    k->op.all_heads = 2 * h->heads, k->op.first_head = h->heads;
    expect_other(k, "heads of another rank");
    k->op.all_heads = k->op.first_head = 0;
}

/* ---- attention with that mask ---- */

/* One query of a head: what it sees. */
struct seen {
    int64_t b, head, group, i;
    double *p, *left; /* its probabilities, and what dropout leaves of them */
};

static double at(const uint16_t *x, int64_t i) { return (double)bf16_to(x[i]); }

static int64_t column(const struct kit *k, int which, const struct seen *s) /* of q, k, v */
{
    const struct dropped *h = k->of;

    return (which == 0 ? s->head : h->heads + (which - 1) * h->kv + s->group) * h->d;
}
static int64_t place(const struct kit *k, int which, const struct seen *s, int64_t i)
{
    return (s->b * k->of->t + i) * row_of(k->of) + column(k, which, s);
}

static double dot(const uint16_t *a, int64_t i, const uint16_t *b, int64_t j, int64_t d)
{
    double sum = 0;

    for (int64_t c = 0; c < d; c++)
        sum += at(a, i + c) * at(b, j + c);
    return sum;
}

/* Its log-sum-exp. */
static double weigh(struct kit *k, struct seen *s)
{
    const struct dropped *h = k->of;
    int64_t from = k->start[s->b * h->t + s->i];
    const unsigned char *mask = mask_at(k->mask, h, s->b * h->heads + s->head, s->i);
    double most = -INFINITY, sum = 0;

    for (int64_t j = from; j <= s->i; j++) {
        s->p[j] = (double)k->op.scale * dot(k->values, place(k, 0, s, s->i), k->values, place(k, 1, s, j), h->d);
        most = s->p[j] > most ? s->p[j] : most;
    }
    for (int64_t j = from; j <= s->i; j++)
        sum += s->p[j] = exp(s->p[j] - most);
    for (int64_t j = from; j <= s->i; j++) {
        s->p[j] /= sum;
        s->left[j] = mask[j] ? s->p[j] / (1 - (double)h->p) : 0;
    }
    return most + log(sum);
}

/* o, and what the query adds to the gradients. */
static void go_back(struct kit *k, const struct seen *s, const uint16_t *dout, double *o, double *dqkv)
{
    const struct dropped *h = k->of;
    int64_t from = k->start[s->b * h->t + s->i], own = ((s->b * h->t + s->i) * h->heads + s->head) * h->d;
    double delta = 0;

    for (int64_t j = from; j <= s->i; j++)
        for (int64_t c = 0; c < h->d; c++)
            o[own + c] += s->left[j] * at(k->values, place(k, 2, s, j) + c);
    for (int64_t c = 0; c < h->d; c++)
        delta += at(dout, own + c) * o[own + c];
    for (int64_t j = from; j <= s->i; j++) {
        double share = s->left[j] * dot(dout, own, k->values, place(k, 2, s, j), h->d);
        double ds = (share - s->p[j] * delta) * (double)k->op.scale;
        for (int64_t c = 0; c < h->d; c++) {
            dqkv[place(k, 0, s, s->i) + c] += ds * at(k->values, place(k, 1, s, j) + c);
            dqkv[place(k, 1, s, j) + c] += ds * at(k->values, place(k, 0, s, s->i) + c);
            dqkv[place(k, 2, s, j) + c] += s->left[j] * at(dout, own + c);
        }
    }
}

static void put_wanted(struct kit *k, const struct tensor *t, const double *x)
{
    uint16_t *low = malloc((size_t)t->n * 2);

    for (int64_t i = 0; i < t->n; i++)
        low[i] = bf16_of((float)x[i]);
    CHECK(&k->m, device_put(k->m.t->cpu, on(&k->m, 0, t), low, (size_t)t->n * 2, &k->m.e));
    free(low);
}

/* What the CPU's memory is to hold. */
static void want(struct kit *k)
{
    const struct dropped *h = k->of;
    double *o = calloc((size_t)k->o.n, sizeof *o), *dqkv = calloc((size_t)k->dqkv.n, sizeof *dqkv);
    double *p = calloc((size_t)(2 * h->t), sizeof *p);
    float *lse = calloc((size_t)k->lse.n, sizeof *lse);
    uint16_t *dout = malloc((size_t)k->dout.n * 2);

    CHECK(&k->m, device_get(k->m.t->cpu, dout, on(&k->m, 0, &k->dout), (size_t)k->dout.n * 2, &k->m.e));
    for (int64_t n = 0; n < h->b * h->heads * h->t; n++) {
        int64_t head = n / h->t % h->heads;
        struct seen s = {n / h->t / h->heads, head, head / (h->heads / h->kv), n % h->t, p, p + h->t};
        lse[n] = (float)weigh(k, &s);
        go_back(k, &s, dout, o, dqkv);
    }
    put_wanted(k, &k->o, o);
    put_wanted(k, &k->dqkv, dqkv);
    CHECK(&k->m, device_put(k->m.t->cpu, on(&k->m, 0, &k->lse), lse, (size_t)k->lse.n * 4, &k->m.e));
    free(o), free(dqkv), free(p), free(lse), free(dout);
}

static void check_values(struct kit *k)
{
    const struct dropped *h = k->of;
    int64_t row = row_of(h), out = h->heads * h->d;

    forward(k);
    CHECK(&k->m, k->m.t->other->ops->attention_bwd(k->m.t->other, DTYPE_BF16, &k->op, packed(k, 1, &k->dout, 0, out),
                                                   packed(k, 1, &k->dqkv, 0, row), packed(k, 1, &k->dqkv, out, row),
                                                   packed(k, 1, &k->dqkv, out + h->kv * h->d, row), &k->m.e));
    want(k);
    near(&k->m, "attention with the mask that was drawn", &k->o, 0x1p-7, 1);
    near(&k->m, "its log-sum-exp", &k->lse, 2e-5, 1);
    near(&k->m, "its gradients", &k->dqkv, 3e-2, 1);
}

void twins_attention_dropout(struct twins *t)
{
    static const struct dropped shape[TWINS_DROPPED] = {
        {1, 128, 2, 1, 64, 0.25f, false}, {1, 64, 1, 1, 128, 0.1f, false}, {2, 64, 2, 2, 64, 0.2f, true},
        {1, 64, 1, 1, 256, 0.1f, false}, {1, 64, 1, 1, 256, 0.1f, true},
    };

    for (int i = 0; i < TWINS_DROPPED; i++) {
        struct dropped h = shape[i];
        struct kit k;

        if (t->scale > 1)
            h.b *= 3, h.t *= 3, h.heads *= 2, h.kv *= 2;
        open_kit(&k, t, &h);
        check_masks(&k);
        check_values(&k);
        forget(&k.m);
    }
}
