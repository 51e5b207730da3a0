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
    const struct minhash_preset *preset;
    int n_bands, n_rows; /* as settled */
    struct minhash minhash;
    struct dedup_bands bands;
    struct dedup_sets *sets;
    struct id_list ids;
    struct dedup_fate *fate;
    struct dedup_tally tally;
};

/* The note of a document: this, the hashes of its shingles, the keys of its bands, its
 * sketch, its id.  Without shingles: this and the id. */
struct note {
    uint64_t count, id_n;
};
struct note_parts {
    uint64_t *hash;
    struct band_record record;
    char *id;
};

static size_t note_size(const struct fuzzy *f, uint64_t count, size_t id_n)
{
    size_t bands = count ? (size_t)f->bands.bands * sizeof(uint64_t) + f->bands.sketch_bytes : 0;

    return sizeof(struct note) + count * sizeof(uint64_t) + bands + id_n;
}

static struct note_parts note_parts(const struct fuzzy *f, struct note *h)
{
    struct note_parts p = {.hash = (uint64_t *)(h + 1)};

    p.record.key = p.hash + h->count;
    p.record.sketch = (uint8_t *)(p.record.key + (h->count ? f->bands.bands : 0));
    p.id = (char *)p.record.sketch + (h->count ? f->bands.sketch_bytes : 0);
    return p;
}

static int fuzzy_thread_open(void *stage, void **thread, struct err *e)
{
    struct fuzzy *f = stage;
    uint32_t seed = f->minhash.family == MINHASH_U32 ? f->minhash.a32[0] : 0;
    struct shingler *s;
    int rc = shingler_new(&s, f->preset, seed, e);

    *thread = s;
    return rc;
}

static void fuzzy_thread_close(void *stage, void *thread)
{
    (void)stage;
    shingler_free(thread);
}

static int fuzzy_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    struct fuzzy *f = stage;
    struct note *h;
    struct note_parts p;
    uint64_t sig[MINHASH_MAX];
    const uint64_t *hash;
    size_t count;

    (void)v;
    TRY(shingler_run(thread, d->text, &hash, &count, e));
    note->n = note_size(f, count, d->id.n);
    h = arena_alloc(d->arena, note->n);
    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", count);
    *h = (struct note){count, d->id.n};
    p = note_parts(f, h);
    memcpy(p.id, d->id.p, d->id.n);
    note->p = (char *)h;
    if (!count)
        return 0;
    memcpy(p.hash, hash, count * sizeof *hash);
    minhash_signature(&f->minhash, hash, count, sig);
    dedup_bands_record(&f->bands, sig, &p.record);
    return 0;
}

static int fuzzy_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct fuzzy *f = stage;
    union { const char *in; struct note *h; } u = {note.p}; /* only read */
    struct note_parts p = note_parts(f, u.h);

    (void)v, (void)reply, (void)a;
    TRY(dedup_sets_put(f->sets, p.hash, u.h->count, e));
    TRY(dedup_bands_add(&f->bands, u.h->count ? &p.record : NULL, e));
    if (id_list_add(&f->ids, (struct span){p.id, u.h->id_n}) < 0)
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
        if (size[i] > (uint64_t)f->conf.report_over)
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
    if (f->conf.report_over && f->tally.largest > (uint64_t)f->conf.report_over)
        TRY(warn_of_large(f, e));
    return f->conf.clusters ? write_clusters(f, e) : 0;
}

static int fuzzy_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                       struct err *e)
{
    const struct fuzzy *f = stage;
    const struct dedup_fate *fate = &f->fate[n];

    (void)reply, (void)a, (void)e;
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
    TRY(json_put_string(json, span_of(f->preset->name)));
    TRY(put_count(json, "bands", (uint64_t)f->n_bands));
    TRY(put_count(json, "rows", (uint64_t)f->n_rows));
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

/* Checks the settings; bands and rows come back. */
static int settle(const struct dedup_fuzzy_conf *c, const struct minhash_preset *p, int *bands, int *rows,
                  struct err *e)
{
    if (!(c->threshold > 0 && c->threshold <= 1))
        return err_set(e, ERR_ARG, "the threshold must be above 0 and at most 1, not %g",
                       c->threshold);
    if ((c->bands > 0) != (c->rows > 0))
        return err_set(e, ERR_ARG, "bands and rows go together");
    if (c->pairs && !c->verify)
        return err_set(e, ERR_ARG, "pairs are listed only where they are verified");
    *bands = c->bands ? (int)c->bands : p->bands;
    *rows = c->bands ? (int)c->rows : p->rows;
    if (!*bands)
        minhash_choose(c->threshold, MINHASH_OWN_HASHES, bands, rows);
    if (*bands > MINHASH_MAX_BANDS || *rows > MINHASH_MAX || *bands * *rows > MINHASH_MAX)
        return err_set(e, ERR_ARG, "at most %d bands and %d hashes, not %d bands of %d rows",
                       MINHASH_MAX_BANDS, MINHASH_MAX, *bands, *rows);
    return 0;
}

static int open_parts(struct fuzzy *f, struct err *e)
{
    f->preset = minhash_preset_at(f->conf.preset);
    TRY(settle(&f->conf, f->preset, &f->n_bands, &f->n_rows, e));
    if (minhash_init(&f->minhash, f->preset->family, f->n_bands * f->n_rows, f->preset->seed) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(dedup_bands_init(&f->bands, f->n_bands, f->n_rows, e));
    return dedup_sets_open(&f->sets, f->conf.dir, e);
}

void dedup_fuzzy_conf_init(struct dedup_fuzzy_conf *c)
{
    *c = (struct dedup_fuzzy_conf){.threshold = 0.8, .verify = true, .report_over = 1000};
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
