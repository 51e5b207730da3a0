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

struct batch {
    struct mirror hash, begin, end, key, sketch;
    size_t n, used; /* documents, hashes */
};

struct dedup_sign {
    struct device *dev;
    const struct dedup_bands *shape;
    struct dedup_store *store;
    struct minhash on; /* the device's */
    void *sig;
    size_t docs; /* most of a batch */
    struct batch batch[2];
    struct batch *filling, *under_way; /* the latter NULL: none */
};

void dedup_sign_close(struct dedup_sign *s)
{
    if (!s)
        return;
    device_sync(s->dev, NULL);
    for (int i = 0; i < 2; i++) {
        mirror_free(s->dev, &s->batch[i].hash);
        mirror_free(s->dev, &s->batch[i].begin);
        mirror_free(s->dev, &s->batch[i].end);
        mirror_free(s->dev, &s->batch[i].key);
        mirror_free(s->dev, &s->batch[i].sketch);
    }
    device_free(s->dev, s->sig);
    minhash_take_back(s->dev, &s->on);
    free(s);
}

static int open_parts(struct dedup_sign *s, const struct minhash *m, size_t hashes, struct err *e)
{
    TRY(minhash_to_device(s->dev, m, &s->on, e));
    TRY(device_alloc(s->dev, &s->sig, s->docs * (size_t)m->n * sizeof(uint64_t), e));
    for (int i = 0; i < 2; i++) {
        struct batch *b = &s->batch[i];
        TRY(mirror_room(s->dev, &b->hash, hashes * sizeof(uint64_t), e));
        TRY(mirror_room(s->dev, &b->begin, s->docs * sizeof(int64_t), e));
        TRY(mirror_room(s->dev, &b->end, s->docs * sizeof(int64_t), e));
        TRY(mirror_room(s->dev, &b->key, s->docs * (size_t)s->shape->bands * sizeof(uint64_t), e));
        TRY(mirror_room(s->dev, &b->sketch, s->docs * s->shape->sketch_bytes, e));
    }
    return 0;
}

int dedup_sign_open(struct dedup_sign **out, struct device *dev, const struct minhash *m, const struct dedup_bands *shape,
                    struct dedup_store *store, size_t docs, size_t bytes, struct err *e)
{
    size_t each = 2 * sizeof(int64_t) + (size_t)shape->bands * sizeof(uint64_t) + shape->sketch_bytes;
    struct dedup_sign *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->dev = dev;
    s->shape = shape;
    s->store = store;
    s->docs = docs < bytes / 2 / each ? docs : bytes / 2 / each + 1;
    s->filling = s->batch;
    rc = open_parts(s, m, bytes / 2 / sizeof(uint64_t), e);
    if (rc < 0)
        dedup_sign_close(s);
    else
        *out = s;
    return rc;
}

/* Waits for the batch that is under way; its records go to the store. */
static int collect(struct dedup_sign *s, struct err *e)
{
    struct batch *b = s->under_way;
    struct band_record r;

    if (!b)
        return 0;
    TRY(device_sync(s->dev, e));
    for (size_t i = 0; i < b->n; i++) {
        r.key = (uint64_t *)b->key.host + i * (size_t)s->shape->bands;
        r.sketch = (uint8_t *)b->sketch.host + i * s->shape->sketch_bytes;
        TRY(dedup_store_put_record(s->store, &r, e));
    }
    b->n = b->used = 0;
    s->under_way = NULL;
    return 0;
}

/* Sends what has been filled on its way. */
static int start(struct dedup_sign *s, struct err *e)
{
    struct device *dev = s->dev;
    struct batch *b = s->filling;
    struct ragged docs = {(int64_t)b->n, (int64_t)b->used, b->begin.on, b->end.on};
    struct band_keys keys = {docs.n, s->on.n, s->shape->bands, s->shape->rows, s->sig, b->key.on, b->sketch.on,
                             (int)s->shape->sketch_bytes};

    TRY(collect(s, e));
    if (!b->n)
        return 0;
    TRY(mirror_put(dev, &b->hash, b->used * sizeof(uint64_t), e));
    TRY(mirror_put(dev, &b->begin, b->n * sizeof(int64_t), e));
    TRY(mirror_put(dev, &b->end, b->n * sizeof(int64_t), e));
    TRY(dev->dedup->minhash_sign(dev, &s->on, &docs, b->hash.on, s->sig, e));
    TRY(dev->dedup->band_keys(dev, &keys, e));
    TRY(mirror_get(dev, &b->key, b->n * (size_t)s->shape->bands * sizeof(uint64_t), e));
    TRY(mirror_get(dev, &b->sketch, b->n * s->shape->sketch_bytes, e));
    s->under_way = b;
    s->filling = b == s->batch ? s->batch + 1 : s->batch;
    return 0;
}

int dedup_sign_add(struct dedup_sign *s, const uint64_t *hash, size_t count, struct err *e)
{
    struct batch *b = s->filling;

    if (b->n == s->docs || (b->n && (b->used + count) * sizeof *hash > b->hash.bytes)) {
        TRY(start(s, e));
        b = s->filling;
    }
    if (!b->n)
        TRY(mirror_room(s->dev, &b->hash, count * sizeof *hash, e));
    ((int64_t *)b->begin.host)[b->n] = (int64_t)b->used;
    if (count)
        memcpy((uint64_t *)b->hash.host + b->used, hash, count * sizeof *hash);
    b->used += count;
    ((int64_t *)b->end.host)[b->n++] = (int64_t)b->used;
    return 0;
}

int dedup_sign_finish(struct dedup_sign *s, struct err *e)
{
    TRY(start(s, e));
    return collect(s, e);
}
