/* The candidates' suffix arrays. */
#include <divsufsort.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "curate/dedup/dedup_repeats_parts.h"

enum { BUFFER = 1 << 18, ARRAY = 41 /* bits of memory a byte: itself, its place, and whether a passage begins there */ };
#define APART ((int64_t)24 << 20) /* of the memory for everything else */

void candidates_init(struct candidates *c)
{
    *c = (struct candidates){.text.fd = -1, .bits.fd = -1, .runs.fd = -1};
}

int candidates_open(struct candidates *c, const struct repeats_conf *conf, struct err *e)
{
    c->c = *conf;
    TRY(spill_open(&c->text, conf->dir, BUFFER, e));
    TRY(spill_open(&c->bits, conf->dir, BUFFER, e));
    return spill_open(&c->runs, conf->dir, 1, e);
}

void candidates_close(struct candidates *c)
{
    spill_map_close(&c->text_map);
    spill_map_close(&c->bits_map);
    spill_map_close(&c->struck);
    spill_close(&c->text);
    spill_close(&c->bits);
    spill_close(&c->runs);
    free(c->run);
    candidates_init(c);
}

static int flush_byte(struct candidates *c, struct err *e)
{
    int rc = spill_put(&c->bits, &c->byte, 1, e);

    c->byte = 0;
    c->in_byte = 0;
    return rc;
}

int candidates_put_starts(struct candidates *c, int bit, uint64_t n, struct err *e)
{
    while (n) {
        if (!c->in_byte && n >= 8) {
            c->byte = bit ? 0xff : 0;
            n -= 8;
            TRY(flush_byte(c, e));
            continue;
        }
        c->byte = (unsigned char)(c->byte | bit << c->in_byte);
        n--;
        if (++c->in_byte == 8)
            TRY(flush_byte(c, e));
    }
    return 0;
}

void candidates_trim(struct candidates *c)
{
    size_t mapped = c->text_map.n + c->bits_map.n + c->struck.n;

    if (mapped < (uint64_t)c->c.memory / 2 || mem_resident().all < (uint64_t)c->c.memory / 8 * 7)
        return;
    spill_map_forget(&c->text_map);
    spill_map_forget(&c->bits_map);
    spill_map_forget(&c->struck);
}

/* ---- shards ---- */

struct sorting {
    struct candidates *c;
    uint64_t next;
};

/* Keeps of the suffix array the passages of the shard [from, from + own). */
static size_t keep_passages(const struct candidates *c, int32_t *sa, size_t n, uint64_t from, size_t own)
{
    const unsigned char *bits = c->bits_map.p;
    size_t kept = 0, shift = c->c.width == 4 ? 2 : 0, odd = c->c.width == 4 ? 3 : 0;

    for (size_t k = 0; k < n; k++) {
        size_t i = (size_t)sa[k];
        uint64_t at;
        if (i & odd || (i >>= shift) >= own)
            continue;
        at = from + i;
        if (bits[at / 8] >> (at & 7) & 1)
            sa[kept++] = (int32_t)i;
    }
    return kept;
}

static int sort_shard(struct candidates *c, uint64_t k, struct err *e)
{
    uint64_t from = k * c->shard, end = from + c->shard + c->c.length - 1;
    size_t own = c->n - from < c->shard ? (size_t)(c->n - from) : (size_t)c->shard;
    size_t n = (size_t)((end < c->n ? end : c->n) - from) * (size_t)c->c.width;
    unsigned char *text = malloc(n);
    int32_t *sa = malloc(n * sizeof *sa);
    int rc = 0;

    if (!text || !sa)
        rc = err_set(e, ERR_NOMEM, "out of memory for a suffix array of %zu bytes", n);
    if (rc == 0)
        rc = spill_read(&c->text, from * (uint64_t)c->c.width, text, n, e);
    if (rc == 0 && divsufsort(text, sa, (saidx_t)n) != 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for a suffix array of %zu bytes", n);
    if (rc == 0) {
        c->run[k] = keep_passages(c, sa, n, from, own);
        rc = spill_write(&c->runs, from * sizeof *sa, sa, c->run[k] * sizeof *sa, e);
    }
    free(text);
    free(sa);
    spill_map_forget(&c->bits_map); /* else those of all shards add up, beside the arrays */
    return rc;
}

static int work(void *arg, int thread, struct err *e)
{
    struct sorting *s = arg;
    uint64_t k;
    int rc = 0;

    (void)thread;
    while (rc == 0 && (k = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->c->shards)
        rc = sort_shard(s->c, k, e);
    return rc;
}

/* As large as memory allows for `jobs` at a time, of about the same size. */
static int choose_shards(struct candidates *c, int *jobs, struct err *e)
{
    int64_t room = c->c.memory - APART;
    uint64_t most, few = (uint64_t)1 << 20;

    if (*jobs > 1 && c->n < few * (uint64_t)*jobs)
        *jobs = 1 + (int)(c->n / few);
    if (room < c->c.memory / 4)
        room = c->c.memory / 4;
    most = (uint64_t)room / (uint64_t)*jobs;
    most = most * 8 / ARRAY;
    if (most > INT32_MAX / 2)
        most = INT32_MAX / 2;
    most /= (uint64_t)c->c.width;
    /* the overlap counts too */
    most = most > 2 * c->c.length ? most - c->c.length : c->c.length;
    c->shards = (c->n + most - 1) / most;
    c->shards = (c->shards + (uint64_t)*jobs - 1) / (uint64_t)*jobs * (uint64_t)*jobs;
    c->shard = c->shards ? (c->n + c->shards - 1) / c->shards : 0;
    c->shards = c->shard ? (c->n + c->shard - 1) / c->shard : 0;
    c->run = calloc((size_t)c->shards + 1, sizeof *c->run);
    return c->run ? 0 : err_set(e, ERR_NOMEM, "out of memory for %llu shards", (unsigned long long)c->shards);
}

int candidates_sort(struct candidates *c, int jobs, struct err *e)
{
    struct sorting s = {.c = c};
    int rc;

    if (c->in_byte)
        TRY(flush_byte(c, e));
    TRY(spill_flush(&c->text, e));
    TRY(spill_flush(&c->bits, e));
    TRY(spill_map_file(&c->bits_map, &c->bits, e));
    TRY(choose_shards(c, &jobs, e));
    rc = pool_share(jobs, work, &s, e);
    spill_map_close(&c->bits_map);
    return rc;
}
