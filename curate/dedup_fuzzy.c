#include "curate/dedup_fuzzy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/dedup_bands.h"
#include "curate/dedup_clusters.h"
#include "curate/dedup_ids.h"
#include "curate/dedup_sets.h"
#include "curate/minhash_text.h"

struct fuzzy {
    struct dedup_fuzzy_conf conf;
    struct minhash minhash;
    struct dedup_bands bands;
    struct dedup_sets *sets;
    struct id_list ids;
    struct dedup_fate *fate;
    struct dedup_tally tally;
};

/* What work hands to commit, in the document's arena.  count 0: no shingles. */
struct carry {
    uint64_t *hash;
    size_t count;
    struct band_record record;
};

static int fuzzy_thread_open(void *stage, void **thread, struct err *e)
{
    struct fuzzy *f = stage;
    uint32_t seed = f->minhash.family == MINHASH_U32 ? f->minhash.a32[0] : 0;
    struct shingler *s;
    int rc = shingler_new(&s, f->conf.preset, seed, e);

    *thread = s;
    return rc;
}

static void fuzzy_thread_close(void *stage, void *thread)
{
    (void)stage;
    shingler_free(thread);
}

static int fuzzy_work(void *stage, void *thread, struct doc *d, struct verdict *v, void **carry,
                      struct err *e)
{
    struct fuzzy *f = stage;
    struct carry *c = arena_calloc(d->arena, 1, sizeof *c);
    uint64_t sig[MINHASH_MAX];
    const uint64_t *hash;
    size_t count;

    (void)v;
    TRY(shingler_run(thread, d->text, &hash, &count, e));
    if (c && count) {
        c->count = count;
        c->hash = arena_alloc(d->arena, count * sizeof *hash);
        c->record.key = arena_alloc(d->arena, (size_t)f->bands.bands * sizeof *c->record.key);
        c->record.sketch = arena_alloc(d->arena, f->bands.sketch_bytes);
    }
    if (!c || (count && (!c->hash || !c->record.key || !c->record.sketch)))
        return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", count);
    *carry = c;
    if (!count)
        return 0;
    memcpy(c->hash, hash, count * sizeof *hash);
    minhash_signature(&f->minhash, hash, count, sig);
    dedup_bands_record(&f->bands, sig, &c->record);
    return 0;
}

static int fuzzy_commit(void *stage, struct doc *d, struct verdict *v, void *carry, struct err *e)
{
    struct fuzzy *f = stage;
    const struct carry *c = carry;

    (void)v;
    TRY(dedup_sets_put(f->sets, c->hash, c->count, e));
    TRY(dedup_bands_add(&f->bands, c->count ? &c->record : NULL, e));
    if (id_list_add(&f->ids, d->id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the ids of %zu documents", f->ids.n);
    return 0;
}

/* ---- the end ---- */

/* An id as a field of a line: tabs, newlines and backslashes are escaped. */
static int put_field(struct buf *b, struct span id)
{
    for (size_t i = 0; i < id.n; i++) {
        const char *escape = id.p[i] == '\t'   ? "\\t"
                             : id.p[i] == '\n' ? "\\n"
                             : id.p[i] == '\r' ? "\\r"
                             : id.p[i] == '\\' ? "\\\\"
                                               : NULL;
        if (escape)
            TRY(buf_puts(b, escape));
        else
            TRY(buf_putc(b, id.p[i]));
    }
    return 0;
}

static int put_pair(struct buf *b, const struct fuzzy *f, uint32_t x, uint32_t y, float similarity)
{
    TRY(put_field(b, f->ids.id[x]));
    TRY(buf_putc(b, '\t'));
    TRY(put_field(b, f->ids.id[y]));
    return buf_printf(b, "\t%.6f\n", similarity);
}

/* A file of pairs that is being written. */
struct pair_file {
    const struct fuzzy *f;
    struct file_out *out;
    struct buf line;
};

static int write_pair(void *arg, uint32_t x, uint32_t y, float similarity, struct err *e)
{
    struct pair_file *p = arg;

    buf_clear(&p->line);
    if (put_pair(&p->line, p->f, x, y, similarity) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a line of '%s'", file_out_name(p->out));
    return file_write(p->out, p->line.p, p->line.n, e);
}

/* Ends the file, whole or, after a failure, not at all. */
static int finish_pairs(struct pair_file *p, int rc, struct err *e)
{
    buf_free(&p->line);
    if (p->out && rc == 0)
        return file_commit(p->out, e);
    file_abort(p->out);
    return rc;
}

static int write_clusters(const struct fuzzy *f, struct err *e)
{
    struct pair_file p = {.f = f};
    int rc = 0;

    TRY(file_create(&p.out, f->conf.clusters, 0, e));
    for (size_t i = 0; i < f->ids.n && rc == 0; i++)
        if (f->fate[i].survivor != i)
            rc = write_pair(&p, f->fate[i].survivor, (uint32_t)i, f->fate[i].similarity, e);
    return finish_pairs(&p, rc, e);
}

static int cluster_verified(struct fuzzy *f, int jobs, struct err *e)
{
    struct pair_file p = {.f = f};
    struct dedup_listener listener = {write_pair, &p};
    int rc;

    if (f->conf.pairs)
        TRY(file_create(&p.out, f->conf.pairs, 0, e));
    rc = dedup_cluster_verified(&f->bands, f->sets, f->conf.threshold, jobs,
                                f->conf.pairs ? &listener : NULL, f->fate, &f->tally, e);
    return finish_pairs(&p, rc, e);
}

/* A cluster of very many is more often a template than a text. */
static int warn_of_large(const struct fuzzy *f, struct err *e)
{
    size_t n = f->ids.n;
    uint32_t *size = calloc(n ? n : 1, sizeof *size);

    if (!size)
        return err_set(e, ERR_NOMEM, "out of memory for %zu documents", n);
    for (size_t i = 0; i < n; i++)
        size[f->fate[i].survivor]++;
    for (size_t i = 0; i < n; i++)
        if (size[i] > f->conf.report_over)
            log_msg(LOG_WARN, "large cluster: '%.*s' stands for %" PRIu32 " documents",
                    (int)(f->ids.id[i].n < 200 ? f->ids.id[i].n : 200), f->ids.id[i].p, size[i]);
    free(size);
    return 0;
}

static int fuzzy_resolve(void *stage, int jobs, struct err *e)
{
    struct fuzzy *f = stage;
    size_t n = f->ids.n;

    f->fate = malloc((n ? n : 1) * sizeof *f->fate);
    if (!f->fate)
        return err_set(e, ERR_NOMEM, "out of memory for %zu documents", n);
    TRY(dedup_sets_flush(f->sets, e));
    TRY(dedup_bands_index(&f->bands, jobs, e));
    if (f->conf.verify)
        TRY(cluster_verified(f, jobs, e));
    else
        TRY(dedup_cluster_united(&f->bands, f->sets, jobs, f->fate, &f->tally, e));
    dedup_bands_free(&f->bands);
    if (f->conf.report_over && f->tally.largest > f->conf.report_over)
        TRY(warn_of_large(f, e));
    return f->conf.clusters ? write_clusters(f, e) : 0;
}

static int fuzzy_judge(void *stage, uint64_t n, struct verdict *v, struct err *e)
{
    const struct fuzzy *f = stage;
    const struct dedup_fate *fate = &f->fate[n];

    (void)e;
    if (fate->survivor != n) {
        verdict_drop(v, "near-duplicate", round(fate->similarity * 1e6) / 1e6,
                     f->conf.verify ? f->conf.threshold : NAN);
        v->survivor = f->ids.id[fate->survivor];
    }
    return 0;
}

static int put_count(struct buf *json, const char *key, uint64_t n)
{
    TRY(json_put_key(json, key));
    return json_put_int(json, (int64_t)n);
}

static int fuzzy_stats(void *stage, struct buf *json)
{
    const struct fuzzy *f = stage;
    const struct dedup_tally *t = &f->tally;

    TRY(json_put_key(json, "preset"));
    TRY(json_put_string(json, span_of(f->conf.preset->name)));
    TRY(put_count(json, "bands", (uint64_t)f->conf.bands));
    TRY(put_count(json, "rows", (uint64_t)f->conf.rows));
    TRY(put_count(json, "shingle_bytes", dedup_sets_bytes(f->sets)));
    TRY(put_count(json, "candidates", t->candidates));
    TRY(put_count(json, "compared", t->compared));
    TRY(put_count(json, "clusters", t->clusters));
    TRY(put_count(json, "largest_cluster", t->clusters ? t->largest : 0));
    TRY(json_put_key(json, "largest_survivor"));
    if (!t->clusters)
        return buf_puts(json, "null");
    return json_put_string(json, f->ids.id[t->largest_of]);
}

static void fuzzy_close(void *stage)
{
    struct fuzzy *f = stage;

    if (!f)
        return;
    minhash_free(&f->minhash);
    dedup_bands_free(&f->bands);
    dedup_sets_close(f->sets);
    id_list_free(&f->ids);
    free(f->fate);
    free(f);
}

static const struct stage_ops fuzzy_ops = {
    .name = "dedup fuzzy",
    .thread_open = fuzzy_thread_open,
    .thread_close = fuzzy_thread_close,
    .work = fuzzy_work,
    .commit = fuzzy_commit,
    .resolve = fuzzy_resolve,
    .judge = fuzzy_judge,
    .stats = fuzzy_stats,
    .close = fuzzy_close,
};

static int settle(struct dedup_fuzzy_conf *c, struct err *e)
{
    if (!(c->threshold > 0 && c->threshold <= 1))
        return err_set(e, ERR_ARG, "the threshold must be above 0 and at most 1, not %g",
                       c->threshold);
    if ((c->bands > 0) != (c->rows > 0))
        return err_set(e, ERR_ARG, "bands and rows go together");
    if (c->pairs && !c->verify)
        return err_set(e, ERR_ARG, "pairs are listed only where they are verified");
    if (!c->bands) {
        c->bands = c->preset->bands;
        c->rows = c->preset->rows;
    }
    if (!c->bands)
        minhash_choose(c->threshold, MINHASH_OWN_HASHES, &c->bands, &c->rows);
    if (c->bands > MINHASH_MAX_BANDS || c->rows > MINHASH_MAX || c->bands * c->rows > MINHASH_MAX)
        return err_set(e, ERR_ARG, "at most %d bands and %d hashes, not %d bands of %d rows",
                       MINHASH_MAX_BANDS, MINHASH_MAX, c->bands, c->rows);
    return 0;
}

static int open_parts(struct fuzzy *f, struct err *e)
{
    const struct dedup_fuzzy_conf *c = &f->conf;

    TRY(settle(&f->conf, e));
    if (minhash_init(&f->minhash, c->preset->family, c->bands * c->rows, c->preset->seed) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(dedup_bands_init(&f->bands, c->bands, c->rows, e));
    return dedup_sets_open(&f->sets, c->dir, e);
}

int dedup_fuzzy_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e)
{
    struct fuzzy *f = calloc(1, sizeof *f);
    int rc;

    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->conf = *conf;
    rc = open_parts(f, e);
    if (rc < 0) {
        fuzzy_close(f);
        return rc;
    }
    *st = (struct stage){&fuzzy_ops, f};
    return 0;
}
