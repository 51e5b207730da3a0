#include "curate/dedup/dedup_sign.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/mirror.h"

/* The signature of some hashes. */
static int sign(struct device *cpu, const struct minhash *m, const uint64_t *hash, size_t count, uint64_t *sig, struct err *e)
{
    int64_t begin = 0, end = (int64_t)count;
    struct ragged docs = {1, end, &begin, &end};

    return cpu->dedup->minhash_sign(cpu, m, &docs, hash, sig, e);
}

/* The record of a signature. */
static int make_record(struct device *cpu, const struct minhash *m, const struct dedup_bands *shape, uint64_t *sig,
                       const struct band_record *r, struct err *e)
{
    struct band_keys keys = {1, m->n, shape->bands, shape->rows, sig, r->key, r->sketch, (int)shape->sketch_bytes};

    return cpu->dedup->band_keys(cpu, &keys, e);
}

/* Documents of a batch at first; for a GPU as many as it mostly has. */
enum { FEW_DOCS = 512, GPU_DOCS = 2048 };
/* Hashes of a long text that are signed at a time. */
enum { PART = 1 << 15 };

/* Of a set in a file: its signature, the smallest of those of its parts; the hashes go to another file too, unless it is NULL. */
static int sign_parts(struct device *cpu, const struct minhash *m, const struct shingle_set *set, struct spill *to,
                      uint64_t *sig, struct err *e)
{
    uint64_t part[MINHASH_MAX], *hash = malloc(PART * sizeof *hash);
    int rc = hash ? 0 : err_set(e, ERR_NOMEM, "out of memory for the shingles of a long text");

    memset(sig, 0xff, (size_t)m->n * sizeof *sig);
    for (size_t at = 0, n; at < set->count && rc == 0; at += n) {
        n = set->count - at < PART ? set->count - at : PART;
        rc = shingle_set_copy(set, at, hash, n, e);
        if (rc == 0)
            rc = sign(cpu, m, hash, n, part, e);
        for (int i = 0; i < m->n && rc == 0; i++)
            sig[i] = sig[i] < part[i] ? sig[i] : part[i];
        if (rc == 0 && to)
            rc = set_put(to, set->bytes, hash, n, e);
    }
    free(hash);
    return rc;
}

int dedup_sign_one(struct device *cpu, const struct minhash *m, const struct dedup_bands *shape, const struct shingle_set *set,
                   const struct band_record *r, struct err *e)
{
    uint64_t sig[MINHASH_MAX];

    TRY(set->hash ? sign(cpu, m, set->hash, set->count, sig, e) : sign_parts(cpu, m, set, NULL, sig, e));
    return make_record(cpu, m, shape, sig, r, e);
}

struct batch {
    struct device *dev; /* that signs it, and whose the memory is; NULL: there is none yet */
    struct mirror in;   /* of a GPU: where each document begins and ends, then the hashes */
    struct mirror out;  /* keys of all, then sketches */
    uint64_t *number;   /* of each document; UINT64_MAX: not yet */
    size_t n, used;     /* documents, hashes */
    size_t cap, hashes; /* that there is room for */
};

struct dedup_signer {
    struct dedup_sign_conf *c;
    struct device *cpu, *gpu; /* gpu NULL: not yet, or none */
    struct spill *sets;
    uint64_t first;    /* of places in sets */
    struct minhash on; /* the GPU's */
    void *sig;         /* on it: signatures of a batch */
    size_t sig_bytes;
    struct batch batch[2];
    int filling; /* the other one is under way if it has documents */
};

/* ---- memory ---- */

static void batch_free(struct batch *b)
{
    if (b->dev) {
        mirror_free(b->dev, &b->in);
        mirror_free(b->dev, &b->out);
    }
    free(b->number);
    *b = (struct batch){0};
}

/* The parts of a batch's memory, of the host's or the device's. */
struct parts {
    int64_t *begin, *end;
    uint64_t *hash, *key;
    uint8_t *sketch;
};
static struct parts parts_of(const struct dedup_bands *shape, size_t cap, void *in, void *out)
{
    struct parts p = {.begin = in, .key = out};

    p.end = in ? p.begin + cap : NULL;
    p.hash = in ? (uint64_t *)(p.end + cap) : NULL;
    p.sketch = (uint8_t *)(p.key + cap * (size_t)shape->bands);
    return p;
}
static struct parts host_parts(const struct dedup_signer *s, const struct batch *b)
{
    return parts_of(s->c->shape, b->cap, b->in.host, b->out.host);
}

void dedup_signer_close(struct dedup_signer *s)
{
    if (!s)
        return;
    if (s->gpu && device_bind(s->gpu, NULL) == 0)
        device_sync(s->gpu, NULL);
    for (int i = 0; i < 2; i++)
        batch_free(&s->batch[i]);
    if (s->gpu) {
        device_free(s->gpu, s->sig);
        minhash_take_back(s->gpu, &s->on);
        dedup_gpu_device_close(s->gpu);
    }
    device_close(s->cpu);
    free(s);
}

int dedup_signer_new(struct dedup_signer **out, struct dedup_sign_conf *c, struct err *e)
{
    struct dedup_signer *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    s->c = c;
    rc = device_open_dedup(&s->cpu, "cpu", 1, NULL, e);
    if (rc == 0)
        rc = dedup_store_sets(c->store, &s->sets, &s->first, e);
    if (rc < 0)
        dedup_signer_close(s);
    else
        *out = s;
    return rc;
}

/* What the batch has so far, in memory of another size. */
static void copy_parts(const struct dedup_signer *s, const struct batch *b, const struct batch *to)
{
    struct parts x = host_parts(s, b), y = host_parts(s, to);

    memcpy(y.key, x.key, b->n * (size_t)s->c->shape->bands * sizeof *x.key);
    memcpy(y.sketch, x.sketch, b->n * s->c->shape->sketch_bytes);
    if (!x.begin)
        return;
    memcpy(y.begin, x.begin, b->n * sizeof *x.begin);
    memcpy(y.end, x.end, b->n * sizeof *x.end);
    memcpy(y.hash, x.hash, b->used * sizeof *x.hash);
}

/* Memory for so many documents and hashes. */
static int resize(struct dedup_signer *s, struct batch *b, size_t cap, size_t hashes, struct err *e)
{
    struct batch to = {.dev = b->dev, .cap = cap, .hashes = hashes};
    size_t in = 2 * cap * sizeof(int64_t) + hashes * sizeof(uint64_t);
    size_t out = cap * ((size_t)s->c->shape->bands * sizeof(uint64_t) + s->c->shape->sketch_bytes);

    to.number = realloc(b->number, cap * sizeof *b->number);
    if (!to.number)
        return err_set(e, ERR_NOMEM, "out of memory for a batch of documents");
    b->number = to.number;
    TRY(mirror_room(b->dev, &to.out, out, e));
    if (b->dev == s->gpu && mirror_room(b->dev, &to.in, in, e) < 0) {
        mirror_free(b->dev, &to.out);
        return ERR_NOMEM;
    }
    if (b->n)
        copy_parts(s, b, &to);
    mirror_free(b->dev, &b->in);
    mirror_free(b->dev, &b->out);
    b->in = to.in;
    b->out = to.out;
    b->cap = cap;
    b->hashes = hashes;
    return 0;
}

/* Room for a document of `count` hashes.  A batch has some more than fill it, for it ends with a block. */
static int room_for(struct dedup_signer *s, struct batch *b, size_t count, struct err *e)
{
    bool gpu = b->dev == s->gpu;
    size_t need = gpu ? b->used + count : 0, full = gpu ? s->c->hashes + s->c->hashes / 4 : 0;
    size_t cap = b->cap ? b->cap : gpu ? GPU_DOCS : FEW_DOCS;
    uint64_t t;

    if (b->n < b->cap && need <= b->hashes)
        return 0;
    t = laps_now();
    TRY(resize(s, b, b->n < cap ? cap : 2 * cap, need <= b->hashes ? b->hashes : need <= full ? full : need + need / 4, e));
    if (gpu)
        laps_add(s->c->laps, LAP_PINNED, t);
    return 0;
}

/* The device of the batch that begins: the GPU once it is there. */
static int begin_batch(struct dedup_signer *s, struct batch *b, struct err *e)
{
    struct device *dev;

    if (!s->gpu && s->c->gpu) {
        TRY(dedup_gpu_device(s->c->gpu, &s->gpu, e));
        if (s->gpu)
            TRY(minhash_to_device(s->gpu, s->c->m, &s->on, e));
    }
    dev = s->gpu ? s->gpu : s->cpu;
    TRY(device_bind(dev, e)); /* threads may have changed */
    if (b->dev != dev)
        batch_free(b);
    b->dev = dev;
    return 0;
}

/* ---- documents ---- */

/* Hashes to the file, if they are put aside. */
static int put_aside(struct dedup_signer *s, const uint64_t *hash, size_t n, struct err *e)
{
    return s->c->no_sets ? 0 : set_put(s->sets, s->c->shape->hash_bytes, hash, n, e);
}

/* On the CPU: its shingles to the file, its record to its place. */
static int sign_now(struct dedup_signer *s, struct batch *b, const struct shingle_set *set, struct err *e)
{
    const struct dedup_bands *shape = s->c->shape;
    struct parts p = host_parts(s, b);
    struct band_record r = {p.key + b->n * (size_t)shape->bands, p.sketch + b->n * shape->sketch_bytes};
    uint64_t sig[MINHASH_MAX], t = laps_now();

    TRY(set->hash ? sign(s->cpu, s->c->m, set->hash, set->count, sig, e)
                  : sign_parts(s->cpu, s->c->m, set, s->c->no_sets ? NULL : s->sets, sig, e));
    TRY(make_record(s->cpu, s->c->m, shape, sig, &r, e));
    t = laps_add(s->c->laps, LAP_SIGN, t);
    if (set->hash)
        TRY(put_aside(s, set->hash, set->count, e));
    laps_add(s->c->laps, LAP_ASIDE, t);
    return 0;
}

int dedup_signer_add(struct dedup_signer *s, const struct shingle_set *set, struct signed_doc *d, struct err *e)
{
    struct batch *b = &s->batch[s->filling];
    size_t count = set->count;

    *d = (struct signed_doc){0};
    if (!count)
        return 0;
    if (!b->n)
        TRY(begin_batch(s, b, e));
    TRY(room_for(s, b, count, e));
    *d = (struct signed_doc){s, {s->first + s->sets->size / s->c->shape->hash_bytes + b->used, s->c->no_sets ? 0 : count},
                             (uint32_t)s->filling, (uint32_t)b->n};
    if (b->dev == s->cpu) {
        TRY(sign_now(s, b, set, e));
    } else {
        struct parts p = host_parts(s, b);

        p.begin[b->n] = (int64_t)b->used;
        TRY(shingle_set_copy(set, 0, p.hash + b->used, count, e));
        b->used += count;
        p.end[b->n] = (int64_t)b->used;
    }
    b->number[b->n++] = UINT64_MAX;
    return 0;
}

void dedup_signer_number(const struct signed_doc *d, uint64_t number)
{
    if (d->signer)
        d->signer->batch[d->batch].number[d->at] = number;
}

/* ---- batches ---- */

/* Room for the signatures of a batch; no other is under way. */
static int room_for_signatures(struct dedup_signer *s, size_t bytes, struct err *e)
{
    if (bytes <= s->sig_bytes)
        return 0;
    device_free(s->gpu, s->sig);
    s->sig = NULL;
    s->sig_bytes = 0;
    TRY(device_alloc(s->gpu, &s->sig, bytes, e));
    s->sig_bytes = bytes;
    return 0;
}

/* To the GPU; the batch's memory is its own until it is waited for. */
static int queue(struct dedup_signer *s, struct batch *b, struct err *e)
{
    struct device *dev = b->dev;
    const struct dedup_bands *shape = s->c->shape;
    struct parts p = parts_of(shape, b->cap, b->in.on, b->out.on);
    struct ragged docs = {(int64_t)b->n, (int64_t)b->used, p.begin, p.end};
    struct band_keys keys = {docs.n, s->on.n, shape->bands, shape->rows, NULL, p.key, p.sketch, (int)shape->sketch_bytes};

    TRY(room_for_signatures(s, b->cap * (size_t)s->on.n * sizeof(uint64_t), e));
    keys.sig = s->sig;
    TRY(mirror_put(dev, &b->in, (2 * b->cap + b->used) * sizeof(uint64_t), e));
    TRY(dev->dedup->minhash_sign(dev, &s->on, &docs, p.hash, s->sig, e));
    TRY(dev->dedup->band_keys(dev, &keys, e));
    return mirror_get(dev, &b->out, (size_t)(p.sketch - (uint8_t *)b->out.on) + b->n * shape->sketch_bytes, e);
}

/* Sends a batch on its way; meanwhile its hashes go to the file. */
static int start(struct dedup_signer *s, struct batch *b, struct err *e)
{
    uint64_t t = laps_now();

    if (!b->n || b->dev == s->cpu)
        return 0;
    TRY(queue(s, b, e));
    t = laps_add(s->c->laps, LAP_QUEUE, t);
    TRY(put_aside(s, host_parts(s, b).hash, b->used, e));
    laps_add(s->c->laps, LAP_ASIDE, t);
    return 0;
}

/* Records of a batch to the store; it is empty then. */
static int collect(struct dedup_signer *s, struct batch *b, struct err *e)
{
    uint64_t t = laps_now();
    struct parts p;

    if (!b->n)
        return 0;
    if (b->dev != s->cpu) {
        TRY(device_sync(b->dev, e));
        t = laps_add(s->c->laps, LAP_WAIT, t);
        __atomic_fetch_add(&s->c->on_gpu, b->n, __ATOMIC_RELAXED);
    }
    p = host_parts(s, b);
    TRY(dedup_store_put_records(s->c->store, b->number, b->n, &(struct band_record){p.key, p.sketch}, e));
    laps_add(s->c->laps, LAP_ASIDE, t);
    b->n = b->used = 0;
    return 0;
}

static int swap(struct dedup_signer *s, struct err *e)
{
    struct batch *filled = &s->batch[s->filling], *before = &s->batch[!s->filling];

    TRY(device_bind(s->gpu ? s->gpu : s->cpu, e));
    TRY(collect(s, before, e));
    TRY(start(s, filled, e));
    s->filling = !s->filling;
    return 0;
}

int dedup_signer_turn(struct dedup_signer *s, struct err *e)
{
    const struct batch *b = &s->batch[s->filling];

    return b->dev == s->cpu || b->used >= s->c->hashes || b->n >= s->c->docs ? swap(s, e) : 0;
}

int dedup_signer_finish(struct dedup_signer *s, struct err *e)
{
    TRY(swap(s, e));
    return swap(s, e);
}
