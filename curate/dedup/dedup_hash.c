#include "curate/dedup/dedup_hash.h"

#include <stdlib.h>

#include "kernels/mirror.h"

int dedup_hash_one(struct device *cpu, struct span text, struct hash128 *key, struct err *e)
{
    int64_t begin = 0, end = (int64_t)text.n;
    uint64_t hash[2];
    struct text_hash p = {{1, end, &begin, &end}, text.p, hash};

    TRY(cpu->dedup->text_hash(cpu, &p, e));
    *key = (struct hash128){hash[0], hash[1]};
    return 0;
}

struct waiting {
    uint64_t rank;
    size_t id; /* where its id begins */
};

struct dedup_hash {
    struct device *dev;
    size_t most;
    hash_taker *take;
    void *to;
    struct mirror text, begin, end, hash;
    size_t n, used; /* texts, bytes */
    struct waiting *waiting; /* most + 1 */
    struct buf ids;
};

void dedup_hash_close(struct dedup_hash *h)
{
    if (!h)
        return;
    mirror_free(h->dev, &h->text);
    mirror_free(h->dev, &h->begin);
    mirror_free(h->dev, &h->end);
    mirror_free(h->dev, &h->hash);
    free(h->waiting);
    buf_free(&h->ids);
    free(h);
}

static int open_parts(struct dedup_hash *h, size_t bytes, struct err *e)
{
    h->waiting = malloc((h->most + 1) * sizeof *h->waiting);
    if (!h->waiting)
        return err_set(e, ERR_NOMEM, "out of memory for a batch of texts");
    TRY(mirror_room(h->dev, &h->text, bytes + TEXT_HASH_PADDING, e));
    TRY(mirror_room(h->dev, &h->begin, h->most * sizeof(int64_t), e));
    TRY(mirror_room(h->dev, &h->end, h->most * sizeof(int64_t), e));
    return mirror_room(h->dev, &h->hash, h->most * 2 * sizeof(uint64_t), e);
}

int dedup_hash_open(struct dedup_hash **out, struct device *dev, size_t texts, size_t bytes, hash_taker *take, void *to,
                    struct err *e)
{
    struct dedup_hash *h = calloc(1, sizeof *h);
    int rc;

    *out = NULL;
    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory");
    *h = (struct dedup_hash){.dev = dev, .most = texts, .take = take, .to = to};
    rc = open_parts(h, bytes, e);
    if (rc < 0)
        dedup_hash_close(h);
    else
        *out = h;
    return rc;
}

int dedup_hash_finish(struct dedup_hash *h, struct err *e)
{
    struct device *dev = h->dev;
    struct text_hash p = {{(int64_t)h->n, (int64_t)h->used, h->begin.on, h->end.on}, h->text.on, h->hash.on};
    const uint64_t *hash = h->hash.host;
    size_t n = h->n;

    if (!n)
        return 0;
    TRY(mirror_put(dev, &h->text, h->used, e));
    TRY(mirror_put(dev, &h->begin, n * sizeof(int64_t), e));
    TRY(mirror_put(dev, &h->end, n * sizeof(int64_t), e));
    TRY(dev->dedup->text_hash(dev, &p, e));
    TRY(mirror_get(dev, &h->hash, n * 2 * sizeof(uint64_t), e));
    TRY(device_sync(dev, e));
    h->waiting[n].id = h->ids.n;
    for (size_t i = 0; i < n; i++) {
        struct waiting *w = &h->waiting[i];
        TRY(h->take(h->to, (struct hash128){hash[2 * i], hash[2 * i + 1]}, w->rank,
                    (struct span){h->ids.p + w->id, w[1].id - w->id}, e));
    }
    h->n = h->used = 0;
    buf_clear(&h->ids);
    return 0;
}

int dedup_hash_add(struct dedup_hash *h, struct span text, uint64_t rank, struct span id, struct err *e)
{
    size_t room = h->text.bytes - TEXT_HASH_PADDING;

    if (h->n == h->most || (h->n && text.n > room - h->used))
        TRY(dedup_hash_finish(h, e));
    if (!h->n)
        TRY(mirror_room(h->dev, &h->text, text.n + TEXT_HASH_PADDING, e));
    h->waiting[h->n] = (struct waiting){rank, h->ids.n};
    if (buf_put_span(&h->ids, id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the ids of a batch");
    if (text.n)
        memcpy((char *)h->text.host + h->used, text.p, text.n);
    ((int64_t *)h->begin.host)[h->n] = (int64_t)h->used;
    h->used += text.n;
    ((int64_t *)h->end.host)[h->n++] = (int64_t)h->used;
    return 0;
}
