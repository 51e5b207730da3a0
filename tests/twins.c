#include "tests/twins_memory.h"

/* ---- inputs ---- */

/* Sequences of the lengths given and some more, with gaps between some; the extents on both. */
struct extents {
    int64_t n, length, *begin, *end;
    int on_begin, on_end;
};

static struct extents extents_of(struct made *m, int64_t n, const int64_t *first, int64_t firsts, int64_t most)
{
    struct extents x = {.n = n};
    int64_t at = 3;

    x.begin = host_of(m, (size_t)n * sizeof *x.begin);
    x.end = host_of(m, (size_t)n * sizeof *x.end);
    for (int64_t i = 0; i < n; i++) {
        x.begin[i] = at;
        at += i < firsts ? first[i] : (int64_t)(number(9, i) % (uint64_t)most);
        x.end[i] = at;
        at += number(10, i) % 4 == 0 ? (int64_t)(number(11, i) % 9) : 0;
    }
    x.length = at + 5;
    x.on_begin = give(m, x.begin, (size_t)n * sizeof *x.begin);
    x.on_end = give(m, x.end, (size_t)n * sizeof *x.end);
    return x;
}

static struct ragged ragged_on(const struct made *m, const struct extents *x, int w)
{
    return (struct ragged){x->n, x->length, m->on[w][x->on_begin], m->on[w][x->on_end]};
}

/* ---- signatures of hashes ---- */

static void sign_with(struct made *m, const struct minhash *mh, const struct extents *x, int hash)
{
    size_t bytes = (size_t)x->n * (size_t)mh->n * sizeof(uint64_t);
    int sig = room(m, bytes);

    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(m->t, w);
        struct ragged docs = ragged_on(m, x, w);
        struct minhash on = {0};
        CHECK(m, minhash_to_device(dev, mh, &on, &m->e));
        CHECK(m, dev->dedup->minhash_sign(dev, &on, &docs, m->on[w][hash], m->on[w][sig], &m->e));
        CHECK(m, device_sync(dev, &m->e));
        minhash_take_back(dev, &on);
    }
    compare(m, "signatures", sig, bytes);
}

static void sign_family(struct twins *t, enum minhash_family family)
{
    static const int64_t lengths[] = {0, 1, 2, 31, 33, 0, 1021, 1024, 1025, 2500, 0, 0, 5};
    static const int sizes[] = {1, 31, 33, 112, 128, 260, 1024};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct made m = {.t = t};
        struct extents x = extents_of(&m, 20 * t->scale, lengths, 13, 300);
        uint64_t *h = host_of(&m, (size_t)x.length * sizeof *h);
        struct minhash mh;
        for (int64_t j = 0; j < x.length; j++)
            h[j] = number(1, j);
        CHECK(&m, minhash_init(&mh, family, sizes[i], 7));
        sign_with(&m, &mh, &x, give(&m, h, (size_t)x.length * sizeof *h));
        minhash_free(&mh);
        forget(&m);
    }
}

static void sign_m61(struct twins *t) { sign_family(t, MINHASH_M61); }
static void sign_u32(struct twins *t) { sign_family(t, MINHASH_U32); }
static void sign_low32(struct twins *t) { sign_family(t, MINHASH_LOW32); }

/* Values around every place where the modulus, its carry or the wrap at 2^64 acts. */
static void sign_edges(struct twins *t)
{
    const uint64_t m61 = 0x1fffffffffffffffull, a[4] = {1, 1, 3, m61 - 1}, b[4] = {0, 1, m61 - 1, 0};
    struct made m = {.t = t};
    int64_t begin[9 * 24 * 2], end[9 * 24 * 2];
    uint64_t edge[9 * 24 * 2];
    struct extents x = {.n = 9 * 24 * 2, .length = 9 * 24 * 2};
    struct minhash mh;

    for (int64_t i = 0; i < x.n; i++) {
        uint64_t q = (uint64_t)i / 48, d = (uint64_t)i / 2 % 24;
        edge[i] = (i % 2 ? q << 61 : q * m61) + d - 12;
        begin[i] = i;
        end[i] = i + 1;
    }
    x.on_begin = give(&m, begin, sizeof begin);
    x.on_end = give(&m, end, sizeof end);
    CHECK(&m, minhash_init_with(&mh, MINHASH_M61, 4, a, b));
    sign_with(&m, &mh, &x, give(&m, edge, sizeof edge));
    for (int64_t i = 0; i < x.n; i++) { /* the same in sets of up to nine */
        begin[i] = i / 9 * 9;
        end[i] = i % 9 ? i / 9 * 9 : i / 9 * 9 + 9;
        begin[i] = i % 9 ? i / 9 * 9 + 9 : begin[i];
        end[i] = i % 9 ? begin[i] : end[i];
    }
    x.on_begin = give(&m, begin, sizeof begin);
    x.on_end = give(&m, end, sizeof end);
    sign_with(&m, &mh, &x, give(&m, edge, sizeof edge));
    minhash_free(&mh);
    forget(&m);
}

/* ---- bands ---- */

static void keys_with(struct made *m, int64_t docs, int bands, int rows)
{
    int n = bands * rows + 1, sketch_bytes = (bands * rows + 63) / 64 * 64, on_sig, key, sketch;
    uint64_t *sig = host_of(m, (size_t)docs * (size_t)n * sizeof *sig);
    size_t key_bytes = (size_t)docs * (size_t)bands * 8, all = (size_t)docs * (size_t)sketch_bytes;

    for (int64_t d = 0; d < docs; d++)
        for (int j = 0; j < n; j++)
            sig[d * n + j] = d % 7 == 3 ? MINHASH_EMPTY : number(6, d * n + j) >> 3;
    on_sig = give(m, sig, (size_t)docs * (size_t)n * sizeof *sig);
    key = room(m, key_bytes);
    sketch = room(m, all);
    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(m->t, w);
        struct band_keys p = {docs, n, bands, rows, m->on[w][on_sig], m->on[w][key], m->on[w][sketch], sketch_bytes};
        CHECK(m, dev->dedup->band_keys(dev, &p, &m->e));
    }
    compare(m, "keys", key, key_bytes);
    compare(m, "sketches", sketch, all);
}

static void band_keys(struct twins *t)
{
    static const int rows[] = {1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 18, 30, 31, 32, 33, 128, 129, 200};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = {.t = t};
        keys_with(&m, 30 * t->scale, 1 + 150 / rows[i] % 20, rows[i]);
        forget(&m);
    }
}

/* ---- the chain: hashes, signatures, keys and sketches, which stay on the device ---- */

static void chain_on(struct made *m, int w, const struct minhash *mh, const struct extents *x, const int *block)
{
    struct device *dev = device_of(m->t, w);
    struct ragged docs = ragged_on(m, x, w);
    struct band_keys k = {x->n, mh->n, 20, 13, m->on[w][block[1]], m->on[w][block[2]], m->on[w][block[3]], 320};
    struct minhash on = {0};

    CHECK(m, minhash_to_device(dev, mh, &on, &m->e));
    CHECK(m, dev->dedup->minhash_sign(dev, &on, &docs, m->on[w][block[0]], m->on[w][block[1]], &m->e));
    CHECK(m, dev->dedup->band_keys(dev, &k, &m->e));
    CHECK(m, device_sync(dev, &m->e));
    minhash_take_back(dev, &on);
}

static void chain(struct twins *t)
{
    static const int64_t lengths[] = {0, 1, 700, 0, 2100};
    struct made m = {.t = t};
    struct extents x = extents_of(&m, 16 * t->scale, lengths, 5, 600);
    uint64_t *h = host_of(&m, (size_t)x.length * sizeof *h);
    size_t keys = (size_t)x.n * 20 * 8, sketches = (size_t)x.n * 320;
    struct minhash mh;
    int block[4];

    for (int64_t i = 0; i < x.length; i++)
        h[i] = number(17, i);
    block[0] = give(&m, h, (size_t)x.length * sizeof *h);
    block[1] = room(&m, (size_t)x.n * 260 * 8);
    block[2] = room(&m, keys);
    block[3] = room(&m, sketches);
    CHECK(&m, minhash_init(&mh, MINHASH_U32, 260, 42));
    for (int w = 0; w < 2; w++)
        chain_on(&m, w, &mh, &x, block);
    compare(&m, "keys", block[2], keys);
    compare(&m, "sketches", block[3], sketches);
    minhash_free(&mh);
    forget(&m);
}

/* ---- the device itself ---- */

static void streams_in(struct made *m, struct device *dev, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(uint64_t);
    struct device_stream *s = NULL;
    struct device_event *before = NULL, *after = NULL, *untimed = NULL;
    uint64_t *pinned = NULL;
    void *mem = NULL;
    double seconds = -1;
    int failed = m->t->failed;

    CHECK(m, device_alloc_host(dev, (void **)&pinned, 2 * bytes, &m->e));
    CHECK(m, device_alloc(dev, &mem, bytes, &m->e));
    CHECK(m, device_stream_new(dev, &s, &m->e));
    CHECK(m, device_event_new_timed(dev, &before, &m->e));
    CHECK(m, device_event_new_timed(dev, &after, &m->e));
    if (m->t->failed == failed) {
        for (int64_t i = 0; i < n; i++)
            pinned[i] = number(20, i);
        dev->stream = s;
        CHECK(m, device_event_record(dev, before, &m->e));
        CHECK(m, device_put_later(dev, mem, pinned, bytes, &m->e));
        CHECK(m, device_event_record(dev, after, &m->e));
        dev->stream = NULL;
        CHECK(m, device_event_wait(dev, after, &m->e));
        CHECK(m, device_get_later(dev, pinned + n, mem, bytes, &m->e));
        CHECK(m, device_sync(dev, &m->e));
        CHECK(m, device_event_seconds(dev, before, after, &seconds, &m->e));
        if (memcmp(pinned, pinned + n, bytes) != 0 || !(seconds >= 0))
            wrong(m->t, "%s: what came back is not what went", dev->name);
        CHECK(m, device_zero(dev, mem, bytes, &m->e));
        CHECK(m, device_get(dev, pinned, mem, bytes, &m->e));
        for (int64_t i = 0; i < n; i++)
            if (pinned[i])
                wrong(m->t, "%s: not zero", dev->name);
    }
    CHECK(m, device_event_new(dev, &untimed, &m->e));
    CHECK(m, device_event_record(dev, untimed, &m->e));
    if (device_event_seconds(dev, before, untimed, &seconds, &m->e) == 0)
        wrong(m->t, "%s: an event without a time has one", dev->name);
    device_event_free(dev, untimed);
    device_event_free(dev, before);
    device_event_free(dev, after);
    device_stream_free(dev, s);
    device_free(dev, mem);
    device_free_host(dev, pinned);
}

static void streams(struct twins *t)
{
    struct made m = {.t = t};

    streams_in(&m, t->cpu, 10000 * t->scale);
    streams_in(&m, t->other, 10000 * t->scale);
}

const struct twins_case twins_cases[] = {
    {"memory, streams, events", streams},
    {"minhash_sign, mersenne 61", sign_m61},
    {"minhash_sign, 32 bits", sign_u32},
    {"minhash_sign, low 32 bits", sign_low32},
    {"minhash_sign, edges of the modulus", sign_edges},
    {"band_keys", band_keys},
    {"hashes to keys", chain},
    {NULL, NULL},
};
