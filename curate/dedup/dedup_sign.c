#include "curate/dedup/dedup_sign.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/mirror.h"

int dedup_sign_one(struct device *cpu, const struct minhash *m, const struct dedup_bands *shape, const uint64_t *hash,
                   size_t count, uint64_t *sig, const struct band_record *r, struct err *e)
{
    int64_t begin = 0, end = (int64_t)count;
    struct ragged docs = {1, end, &begin, &end};
    struct band_keys keys = {1, m->n, shape->bands, shape->rows, sig, r->key, r->sketch, (int)shape->sketch_bytes};

    TRY(cpu->dedup->minhash_sign(cpu, m, &docs, hash, sig, e));
    return cpu->dedup->band_keys(cpu, &keys, e);
}

/* begin, end and hash are for a GPU alone. */
struct batch {
    struct device *dev; /* that signs it, and whose the memory is; NULL: there is none yet */
    struct mirror hash, begin, end, key, sketch;
    uint64_t *number; /* of each document; UINT64_MAX: not yet */
    size_t n, used;   /* documents, hashes */
    size_t cap;       /* documents that there is room for */
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
    struct mirror *const all[] = {&b->hash, &b->begin, &b->end, &b->key, &b->sketch};

    for (size_t i = 0; b->dev && i < sizeof all / sizeof *all; i++)
        mirror_free(b->dev, all[i]);
    free(b->number);
    *b = (struct batch){0};
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

/* Room for `bytes`, of which the first `used` of the host's stay. */
static int grow(struct device *dev, struct mirror *m, size_t used, size_t bytes, struct err *e)
{
    struct mirror more = {0};

    if (bytes <= m->bytes)
        return 0;
    TRY(mirror_room(dev, &more, bytes, e));
    if (used)
        memcpy(more.host, m->host, used);
    mirror_free(dev, m);
    *m = more;
    return 0;
}

/* Room for one document more. */
static int room_for_docs(struct dedup_signer *s, struct batch *b, struct err *e)
{
    const struct dedup_bands *shape = s->c->shape;
    size_t cap = b->cap ? 2 * b->cap : 512, key = (size_t)shape->bands * sizeof(uint64_t);

    if (b->n < b->cap)
        return 0;
    TRY(grow(b->dev, &b->key, b->n * key, cap * key, e));
    TRY(grow(b->dev, &b->sketch, b->n * shape->sketch_bytes, cap * shape->sketch_bytes, e));
    if (b->dev == s->gpu) {
        TRY(grow(b->dev, &b->begin, b->n * sizeof(int64_t), cap * sizeof(int64_t), e));
        TRY(grow(b->dev, &b->end, b->n * sizeof(int64_t), cap * sizeof(int64_t), e));
    }
    if (mem_grow(&b->number, &b->cap, cap, sizeof *b->number) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a batch of documents");
    b->cap = cap;
    return 0;
}

/* Room for a document of `count` hashes; a batch has some more than fill it, for it ends with a block. */
static int room_for(struct dedup_signer *s, struct batch *b, size_t count, struct err *e)
{
    size_t full = s->c->hashes + s->c->hashes / 4, need = b->used + count;
    uint64_t t = s->c->laps && b->dev == s->gpu ? laps_now() : 0;
    int rc = room_for_docs(s, b, e);

    if (rc == 0 && b->dev == s->gpu)
        rc = grow(b->dev, &b->hash, b->used * sizeof(uint64_t), (need < full ? full : need + need / 4) * sizeof(uint64_t), e);
    if (b->dev == s->gpu)
        laps_add(s->c->laps, LAP_PINNED, t);
    return rc;
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

/* On the CPU: its shingles to the file, its record to its place. */
static int sign_now(struct dedup_signer *s, struct batch *b, const uint64_t *hash, size_t count, struct err *e)
{
    const struct dedup_bands *shape = s->c->shape;
    struct band_record r = {(uint64_t *)b->key.host + b->n * (size_t)shape->bands,
                            (uint8_t *)b->sketch.host + b->n * shape->sketch_bytes};
    uint64_t sig[MINHASH_MAX], t = laps_now();

    TRY(dedup_sign_one(s->cpu, s->c->m, shape, hash, count, sig, &r, e));
    t = laps_add(s->c->laps, LAP_SIGN, t);
    TRY(spill_put(s->sets, hash, count * sizeof *hash, e));
    laps_add(s->c->laps, LAP_ASIDE, t);
    return 0;
}

int dedup_signer_add(struct dedup_signer *s, const uint64_t *hash, size_t count, struct signed_doc *d, struct err *e)
{
    struct batch *b = &s->batch[s->filling];

    *d = (struct signed_doc){0};
    if (!count)
        return 0;
    if (!b->n)
        TRY(begin_batch(s, b, e));
    TRY(room_for(s, b, count, e));
    *d = (struct signed_doc){s, {s->first + s->sets->size / sizeof *hash + b->used, count}, (uint32_t)s->filling, (uint32_t)b->n};
    if (b->dev == s->cpu) {
        TRY(sign_now(s, b, hash, count, e));
    } else {
        ((int64_t *)b->begin.host)[b->n] = (int64_t)b->used;
        memcpy((uint64_t *)b->hash.host + b->used, hash, count * sizeof *hash);
        b->used += count;
        ((int64_t *)b->end.host)[b->n] = (int64_t)b->used;
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
    struct ragged docs = {(int64_t)b->n, (int64_t)b->used, b->begin.on, b->end.on};
    struct band_keys keys = {docs.n, s->on.n, shape->bands, shape->rows, NULL, b->key.on, b->sketch.on, (int)shape->sketch_bytes};

    TRY(room_for_signatures(s, b->cap * (size_t)s->on.n * sizeof(uint64_t), e));
    keys.sig = s->sig;
    TRY(mirror_put(dev, &b->hash, b->used * sizeof(uint64_t), e));
    TRY(mirror_put(dev, &b->begin, b->n * sizeof(int64_t), e));
    TRY(mirror_put(dev, &b->end, b->n * sizeof(int64_t), e));
    TRY(dev->dedup->minhash_sign(dev, &s->on, &docs, b->hash.on, s->sig, e));
    TRY(dev->dedup->band_keys(dev, &keys, e));
    TRY(mirror_get(dev, &b->key, b->n * (size_t)shape->bands * sizeof(uint64_t), e));
    return mirror_get(dev, &b->sketch, b->n * shape->sketch_bytes, e);
}

/* Sends a batch on its way; meanwhile its hashes go to the file. */
static int start(struct dedup_signer *s, struct batch *b, struct err *e)
{
    uint64_t t = laps_now();

    if (!b->n || b->dev == s->cpu)
        return 0;
    TRY(queue(s, b, e));
    t = laps_add(s->c->laps, LAP_QUEUE, t);
    TRY(spill_put(s->sets, b->hash.host, b->used * sizeof(uint64_t), e));
    laps_add(s->c->laps, LAP_ASIDE, t);
    return 0;
}

/* Records of a batch to the store; it is empty then. */
static int collect(struct dedup_signer *s, struct batch *b, struct err *e)
{
    uint64_t t = laps_now();

    if (!b->n)
        return 0;
    if (b->dev != s->cpu) {
        TRY(device_sync(b->dev, e));
        t = laps_add(s->c->laps, LAP_WAIT, t);
        __atomic_fetch_add(&s->c->on_gpu, b->n, __ATOMIC_RELAXED);
    }
    TRY(dedup_store_put_records(s->c->store, b->number, b->n, &(struct band_record){b->key.host, b->sketch.host}, e));
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
