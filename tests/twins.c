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

/* ---- signatures of text ---- */

/* Characters of one to four bytes; share of ASCII in percent.  The last are cut to fit. */
static void put_text(char *to, int64_t n, uint64_t seed, unsigned ascii)
{
    static const char *const others[] = {"\xc3\xa9", "\xd0\x96", "\xe2\x82\xac", "\xe4\xb8\xad", "\xf0\x9f\x99\x82"};

    for (int64_t i = 0, k = 0; i < n; k++) {
        uint64_t r = number(seed, k);
        const char *c = others[r / 100 % 5];
        int64_t bytes = (int64_t)strlen(c);
        if (r % 100 < ascii || i + bytes > n) {
            to[i++] = "etaoin shrdlu"[r / 100 % 13];
            continue;
        }
        memcpy(to + i, c, (size_t)bytes);
        i += bytes;
    }
}

static void chars_with(struct made *m, const struct minhash *mh, const struct extents *x, int text, int width,
                       bool short_whole)
{
    size_t bytes = (size_t)x->n * (size_t)mh->n * sizeof(uint64_t);
    int sig = room(m, bytes);

    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(m->t, w);
        struct minhash_chars p = {ragged_on(m, x, w), m->on[w][text], width, short_whole, mh->a32[0]};
        struct minhash on = {0};
        CHECK(m, minhash_to_device(dev, mh, &on, &m->e));
        CHECK(m, dev->dedup->minhash_chars(dev, &on, &p, m->on[w][sig], &m->e));
        CHECK(m, device_sync(dev, &m->e));
        minhash_take_back(dev, &on);
    }
    compare(m, "signatures", sig, bytes);
}

static void chars(struct twins *t)
{
    static const int64_t lengths[] = {0, 1, 2, 23, 24, 25, 47, 0, 1024, 1500, 30, 24, 22, 3000};
    static const struct { int width; unsigned ascii; bool whole; } how[] = {
        {24, 100, true}, {24, 80, true}, {24, 0, false}, {24, 99, true}, {5, 90, true}, {1, 50, false}, {64, 100, true},
        {256, 95, true},
    };

    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct made m = {.t = t};
        struct extents x = extents_of(&m, 20 * t->scale, lengths, 14, 400);
        char *text = host_of(&m, (size_t)x.length + MINHASH_CHARS_PADDING);
        struct minhash mh;
        for (int64_t d = 0; d < x.n; d++)
            put_text(text + x.begin[d], x.end[d] - x.begin[d], (uint64_t)d, how[i].ascii);
        CHECK(&m, minhash_init(&mh, MINHASH_U32, i == 0 ? 260 : 40, 42));
        chars_with(&m, &mh, &x, give(&m, text, (size_t)x.length + MINHASH_CHARS_PADDING), how[i].width, how[i].whole);
        minhash_free(&mh);
        forget(&m);
    }
}

/* ---- whole texts ---- */

/* Every length up to where the hash knows only one way, then some. */
static void text_hash(struct twins *t)
{
    static int64_t lengths[320];
    struct made m = {.t = t};
    struct extents x;
    size_t bytes;
    char *text;
    int on_text, hash;

    for (int i = 0; i < 300; i++)
        lengths[i] = i * 7 % 300;
    for (int i = 300; i < 320; i++)
        lengths[i] = 1024 * (i - 299) + i % 3 - 1;
    x = extents_of(&m, 320 + 20 * t->scale, lengths, 320, 5000);
    text = host_of(&m, (size_t)x.length + TEXT_HASH_PADDING);
    put_text(text, x.length, 17, 70);
    on_text = give(&m, text, (size_t)x.length + TEXT_HASH_PADDING);
    bytes = (size_t)x.n * 2 * sizeof(uint64_t);
    hash = room(&m, bytes);
    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(t, w);
        struct text_hash p = {ragged_on(&m, &x, w), m.on[w][on_text], m.on[w][hash]};
        CHECK(&m, dev->dedup->text_hash(dev, &p, &m.e));
    }
    compare(&m, "hashes", hash, bytes);
    forget(&m);
}

/* ---- windows of words ---- */

static void words(struct twins *t)
{
    static const int widths[] = {1, 2, 5, 13, 40};

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct made m = {.t = t};
        int64_t count = 700 * t->scale, n = count + widths[i];
        uint32_t *start = host_of(&m, (size_t)n * sizeof *start);
        size_t bytes = (size_t)count * sizeof(uint64_t);
        int hash = room(&m, bytes), on_start, on_text;
        char *text;
        uint32_t at = 0;
        for (int64_t k = 0; k < n; k++) {
            start[k] = at;
            at += 1 + (uint32_t)(number(3, k) % (number(4, k) % 50 ? 9 : 90)) + 1;
        }
        text = host_of(&m, at + 16);
        put_text(text, at, 8, 95);
        on_start = give(&m, start, (size_t)n * sizeof *start);
        on_text = give(&m, text, at + 16);
        for (int w = 0; w < 2; w++) {
            struct device *dev = device_of(t, w);
            CHECK(&m, dev->dedup->minhash_words(dev, m.on[w][on_text], m.on[w][on_start], widths[i], count,
                                                m.on[w][hash], &m.e));
        }
        compare(&m, "hashes", hash, bytes);
        forget(&m);
    }
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

/* Keys of which most are unlike, some shared by few and one by many. */
static void buckets_with(struct made *m, int64_t docs, int64_t stride)
{
    uint64_t *key = host_of(m, (size_t)(docs * stride) * sizeof *key);
    size_t member_bytes = (size_t)docs * 4, start_bytes = (size_t)(docs / 2 + 1) * 4;
    int on_key, member = room(m, member_bytes), start = room(m, start_bytes);
    struct buckets p[2];

    for (int64_t i = 0; i < docs * stride; i++) {
        uint64_t r = number(12, i);
        key[i] = r % 10 < 6   ? number(13, i)
                 : r % 10 < 8 ? number(14, (int64_t)(r % (uint64_t)(docs / 4 + 1)))
                              : (r % 10 == 8 ? 0 : BAND_KEY_NONE);
    }
    on_key = give(m, key, (size_t)(docs * stride) * sizeof *key);
    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(m->t, w);
        p[w] = (struct buckets){.docs = docs, .key = (const uint64_t *)m->on[w][on_key] + stride / 2, .stride = stride,
                                .member = m->on[w][member], .start = m->on[w][start]};
        CHECK(m, dev->dedup->buckets(dev, &p[w], &m->e));
    }
    if (p[0].buckets != p[1].buckets || p[0].members != p[1].members)
        wrong(m->t, "%lld buckets of %lld, not %lld of %lld", (long long)p[1].buckets, (long long)p[1].members,
              (long long)p[0].buckets, (long long)p[0].members);
    compare(m, "members", member, member_bytes);
    compare(m, "starts", start, start_bytes);
}

static void buckets(struct twins *t)
{
    static const int64_t docs[] = {0, 1, 2, 3, 5, 64, 1000};

    for (size_t i = 0; i < sizeof docs / sizeof *docs; i++)
        for (int64_t stride = 1; stride < 20; stride += 13) {
            struct made m = {.t = t};
            buckets_with(&m, docs[i] * (docs[i] > 5 ? t->scale : 1), stride);
            forget(&m);
        }
}

/* ---- sets ---- */

static void set_common(struct twins *t)
{
    static const int64_t lengths[] = {0, 1, 32, 33, 500, 0, 1, 64};
    struct made m = {.t = t};
    struct extents x = extents_of(&m, 24, lengths, 8, 900);
    int64_t pairs = 300 * t->scale;
    uint64_t *h = host_of(&m, (size_t)x.length * sizeof *h);
    uint32_t *a = host_of(&m, (size_t)pairs * 4), *b = host_of(&m, (size_t)pairs * 4);
    int on_h, on_a, on_b, common;

    for (int64_t i = 0; i < x.n; i++) /* dense, so that sets share much, 0 among them; in no order */
        for (int64_t j = x.begin[i], n = x.end[i] - j, k; j < x.end[i]; j++) {
            k = (j - x.begin[i]) * 7 % n;
            h[j] = (uint64_t)(n % 7 ? k : j - x.begin[i]) * 3 + number(15, j) % 3;
        }
    for (int64_t i = 0; i < pairs; i++) {
        a[i] = (uint32_t)(i / 3 % x.n);
        b[i] = (uint32_t)(number(16, i) % (uint64_t)x.n);
    }
    on_h = give(&m, h, (size_t)x.length * sizeof *h);
    on_a = give(&m, a, (size_t)pairs * 4);
    on_b = give(&m, b, (size_t)pairs * 4);
    common = room(&m, (size_t)pairs * 4);
    for (int w = 0; w < 2; w++) {
        struct device *dev = device_of(t, w);
        struct set_common p = {ragged_on(&m, &x, w), m.on[w][on_h], pairs, m.on[w][on_a], m.on[w][on_b], m.on[w][common]};
        CHECK(&m, dev->dedup->set_common(dev, &p, &m.e));
    }
    compare(&m, "counts", common, (size_t)pairs * 4);
    forget(&m);
}

/* ---- the chain: text, signatures, keys, the buckets of each band ---- */

static void chain_on(struct made *m, int w, const struct minhash *mh, const struct extents *x, const int *block)
{
    struct device *dev = device_of(m->t, w);
    struct minhash_chars c = {ragged_on(m, x, w), m->on[w][block[0]], 24, true, mh->a32[0]};
    struct band_keys k = {x->n, mh->n, 20, 13, m->on[w][block[1]], m->on[w][block[2]], NULL, 0};
    uint32_t *member = m->on[w][block[3]], *start = m->on[w][block[4]];
    struct minhash on = {0};

    CHECK(m, minhash_to_device(dev, mh, &on, &m->e));
    CHECK(m, dev->dedup->minhash_chars(dev, &on, &c, m->on[w][block[1]], &m->e));
    CHECK(m, dev->dedup->band_keys(dev, &k, &m->e));
    for (int64_t i = 0; i < 20; i++) {
        struct buckets p = {.docs = x->n, .key = k.key + i, .stride = 20, .member = member + i * x->n,
                            .start = start + i * (x->n / 2 + 1)};
        CHECK(m, dev->dedup->buckets(dev, &p, &m->e));
        if (p.buckets == 0)
            wrong(m->t, "band %lld has no bucket", (long long)i);
    }
    minhash_take_back(dev, &on);
}

static void chain(struct twins *t)
{
    struct made m = {.t = t};
    int64_t n = 16 * t->scale, *lengths = host_of(&m, (size_t)n * sizeof *lengths);
    for (int64_t d = 0; d < n; d++)
        lengths[d] = (int64_t)(number(17, d / 2) % 600);
    struct extents x = extents_of(&m, n, lengths, n, 1);
    char *text = host_of(&m, (size_t)x.length + MINHASH_CHARS_PADDING);
    size_t members = (size_t)x.n * 20 * 4, starts = (size_t)(x.n / 2 + 1) * 20 * 4;
    struct minhash mh;
    int block[5];

    for (int64_t d = 0; d < x.n; d++) { /* every second is the one before, but for a byte in the middle */
        put_text(text + x.begin[d], x.end[d] - x.begin[d], (uint64_t)d / 2, 97);
        int64_t middle = (x.begin[d] + x.end[d]) / 2;
        if (d % 4 == 3 && middle < x.end[d] && (unsigned char)text[middle] < 0x80)
            text[middle] = 'X';
    }
    block[0] = give(&m, text, (size_t)x.length + MINHASH_CHARS_PADDING);
    block[1] = room(&m, (size_t)x.n * 260 * 8);
    block[2] = room(&m, (size_t)x.n * 20 * 8);
    block[3] = room(&m, members);
    block[4] = room(&m, starts);
    CHECK(&m, minhash_init(&mh, MINHASH_U32, 260, 42));
    for (int w = 0; w < 2; w++)
        chain_on(&m, w, &mh, &x, block);
    compare(&m, "members", block[3], members);
    compare(&m, "starts", block[4], starts);
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
    {"minhash_chars", chars},
    {"minhash_words", words},
    {"text_hash", text_hash},
    {"band_keys", band_keys},
    {"buckets", buckets},
    {"set_common", set_common},
    {"text to buckets", chain},
    {NULL, NULL},
};
