#include "curate/dedup/dedup_against.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/pool.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/index_shingles.h"

enum { READ = 1 << 18, LEAST_KEYS = 1 << 12, MOST_KEYS = 1 << 22, PLACE_BITS = 40, MOST_FILES = 1 << 24 };

struct against_file {
    char *path;
    struct dedup_index *index; /* NULL: it has documents */
};
struct dedup_against {
    struct dedup_against_conf conf;
    struct against_file *file;
    size_t n, cap;
    bool has_index;
};

/* ---- the files ---- */

void dedup_against_close(struct dedup_against *a)
{
    for (size_t i = 0; a && i < a->n; i++) {
        free(a->file[i].path);
        dedup_index_close(a->file[i].index);
    }
    if (a)
        free(a->file);
    free(a);
}

bool dedup_against_has_index(const struct dedup_against *a)
{
    return a->has_index;
}

static int check_index(const struct dedup_against *a, const struct dedup_index *x, struct err *e)
{
    if (strcmp(x->kind, a->conf.kind) != 0 || x->bands != a->conf.shape->bands || x->rows != a->conf.shape->rows)
        return err_set(e, ERR_FORMAT, "'%s' is an index of '%s', not of '%s'", x->name, x->kind, a->conf.kind);
    return a->conf.verify ? index_sources_check(x, e) : 0;
}

static int add_file(void *to, const char *path, struct err *e)
{
    struct dedup_against *a = to;
    struct against_file *f;
    int rc;

    if (a->n == a->cap) {
        size_t cap = 2 * a->cap + 8;
        f = cap > MOST_FILES ? NULL : realloc(a->file, cap * sizeof *f);
        if (!f)
            return err_set(e, ERR_NOMEM, "out of memory for %zu files", cap);
        a->file = f;
        a->cap = cap;
    }
    TRY(file_check_readable(path, e));
    f = &a->file[a->n];
    f->path = strdup(path);
    if (!f->path)
        return err_set(e, ERR_NOMEM, "out of memory for the name of a file");
    a->n++;
    rc = dedup_index_open(&f->index, path, e);
    if (rc == 1) {
        a->has_index = true;
        rc = check_index(a, f->index, e);
    }
    return rc;
}

static int tell_names(const char *name, against_name *tell, void *to, struct err *e)
{
    glob_t found;
    int rc = 0;

    if (access(name, F_OK) == 0 || glob(name, 0, NULL, &found) != 0)
        return tell(to, name, e);
    for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
        rc = tell(to, found.gl_pathv[i], e);
    globfree(&found);
    return rc;
}

int dedup_against_names(const struct opt_list *files, against_name *tell, void *to, struct err *e)
{
    for (int i = 0; i < files->n; i++)
        TRY(tell_names(files->v[i], tell, to, e));
    return 0;
}

int dedup_against_open(struct dedup_against **out, const struct opt_list *files, const struct dedup_against_conf *c,
                       struct err *e)
{
    struct dedup_against *a = calloc(1, sizeof *a);
    int rc = a ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    *out = NULL;
    if (a)
        a->conf = *c;
    if (rc == 0)
        rc = dedup_against_names(files, add_file, a, e);
    if (rc < 0)
        dedup_against_close(a);
    else
        *out = a;
    return rc;
}

/* ---- looking up ---- */

struct finding {
    struct dedup_against *a;
    const struct spill *part;
    int n, next;
    size_t room; /* keys that a thread holds */
    against_taker *take;
    void *to;
    uint64_t read;
    pthread_mutex_t lock; /* one hit at a time is taken */
};

/* Hits of one index, on their way. */
struct finder {
    struct finding *f;
    uint64_t file;
};

static int take_entry(void *to, struct index_entry x, struct err *e)
{
    const struct finder *d = to;
    struct against_hit hit = {d->file << PLACE_BITS | x.value, x.key};
    int rc;

    pthread_mutex_lock(&d->f->lock);
    rc = d->f->take(d->f->to, &hit, e);
    pthread_mutex_unlock(&d->f->lock);
    return rc;
}

static int by_value(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

/* Looks up n keys in an index; they are sorted. */
static int find_in(struct finding *f, size_t file, const uint64_t *key, size_t n, struct err *e)
{
    struct finder d = {f, file};
    struct index_cursor *c;
    int rc = index_cursor_new(&c, &f->a->file[file].index->tree, e);

    for (size_t i = 0; i < n && rc == 0; i++)
        if (i == 0 || key[i] != key[i - 1])
            rc = index_cursor_find(c, key[i], take_entry, &d, e);
    if (c)
        __atomic_fetch_add(&f->read, index_cursor_bytes(c), __ATOMIC_RELAXED);
    index_cursor_free(c);
    return rc;
}

static int find_keys(struct finding *f, uint64_t *key, size_t *n, struct err *e)
{
    int rc = 0;

    qsort(key, *n, sizeof *key, by_value);
    for (size_t i = 0; i < f->a->n && rc == 0; i++)
        if (f->a->file[i].index)
            rc = find_in(f, i, key, *n, e);
    *n = 0;
    return rc;
}

/* Keys of a part; those that are yet to be looked up stay in key[0 .. n). */
static int find_part(struct finding *f, const struct spill *part, uint64_t *key, size_t *n, struct err *e)
{
    struct spill_reader in;
    struct store_key k;
    int rc = spill_reader_open(&in, part, 0, part->size, READ, e);

    for (uint64_t left = part->size / sizeof k; left-- > 0 && rc == 0;) {
        rc = spill_next(&in, &k, sizeof k, e);
        key[(*n)++] = k.key;
        if (*n == f->room && rc == 0)
            rc = find_keys(f, key, n, e);
    }
    spill_reader_close(&in);
    return rc;
}

static int find_some(void *arg, int thread, struct err *e)
{
    struct finding *f = arg;
    uint64_t *key = malloc(f->room * sizeof *key);
    size_t n = 0;
    int i, rc = key ? 0 : err_set(e, ERR_NOMEM, "out of memory for keys");

    (void)thread;
    while (rc == 0 && (i = __atomic_fetch_add(&f->next, 1, __ATOMIC_RELAXED)) < f->n)
        rc = find_part(f, &f->part[i], key, &n, e);
    if (rc == 0)
        rc = find_keys(f, key, &n, e);
    free(key);
    return rc;
}

int dedup_against_find(struct dedup_against *a, const struct spill *parts, int n, int64_t memory, int jobs,
                       against_taker *take, void *to, struct err *e)
{
    struct finding f = {.a = a, .part = parts, .n = n, .take = take, .to = to};
    uint64_t all = 0;
    int rc;

    f.room = (size_t)memory / 2 / (size_t)jobs / sizeof(uint64_t); /* sorting takes as much again */
    f.room = f.room < LEAST_KEYS ? LEAST_KEYS : f.room > MOST_KEYS ? MOST_KEYS : f.room;
    pthread_mutex_init(&f.lock, NULL);
    rc = pool_share(jobs < n ? jobs : n, find_some, &f, e);
    pthread_mutex_destroy(&f.lock);
    for (size_t i = 0; i < a->n; i++)
        all += a->file[i].index ? index_pages_count(a->file[i].index->tree.leaves) * INDEX_PAGE : 0;
    if (rc == 0)
        log_msg(LOG_DEBUG, "of the indexes' keys %.1f of %.1f MB were read", (double)f.read / 1e6, (double)all / 1e6);
    return rc;
}

/* ---- giving ---- */

/* A file of documents is one rank's; an index is of several where there are fewer files than ranks. */
static int first_rank(const struct dedup_against *a, size_t file, int ranks)
{
    return (int)(file * (size_t)ranks / a->n);
}

int dedup_against_owner(const struct dedup_against *a, const struct against_hit *x, int ranks)
{
    size_t file = (size_t)(x->place >> PLACE_BITS);
    const struct dedup_index *index = a->file[file].index;
    uint64_t doc = (x->place & ((UINT64_C(1) << PLACE_BITS) - 1)) / (uint64_t)index->bands;
    int first = first_rank(a, file, ranks), span = first_rank(a, file + 1, ranks) - first;

    return first + (int)(doc * (uint64_t)(span > 1 ? span : 1) / index->docs);
}

/* Notes of documents of indexes, one after the other. */
struct giving {
    const struct dedup_against *a;
    const struct members *hits;
    uint64_t at; /* of these the next one */
    struct shingler *shingler;
    struct index_shingles *shingles;
    struct arena arena;
    struct buf doc;
    note_taker *take;
    void *to;
};

static int get_hit(const struct giving *g, uint64_t at, struct against_hit *x, struct err *e)
{
    struct member m;

    TRY(members_get(g->hits, at, 1, &m, e));
    *x = (struct against_hit){member_first(&m), member_second(&m)};
    return 0;
}

/* The note of document n, of which the keys are to come. */
static int make_note(struct giving *g, const struct dedup_index *x, uint64_t n, struct fuzzy_parts *p, struct span *note,
                     struct err *e)
{
    struct fuzzy_note h = {0};
    const uint64_t *hash = NULL;
    struct index_doc d;

    TRY(dedup_index_doc(x, n, &d, &g->doc, e));
    if (g->shingles)
        TRY(index_shingles_of(g->shingles, x, &d, &hash, e));
    h.count = hash ? d.count : 0;
    h.id_n = d.id.n;
    arena_reset(&g->arena);
    if (!fuzzy_note_new(g->a->conf.shape, &g->arena, &h, true, p, note, e))
        return ERR_NOMEM;
    if (h.count)
        set_pack(p->hash, g->a->conf.shape->hash_bytes, hash, h.count);
    memcpy(p->id, d.id.p, d.id.n);
    memset(p->record.sketch, 0, g->a->conf.shape->sketch_bytes);
    memcpy(p->record.sketch, d.sketch, (size_t)x->bands * (size_t)x->rows);
    for (int k = 0; k < x->bands; k++)
        p->record.key[k] = BUCKET_NONE;
    return 0;
}

/* The document of the next hit, with all its hits. */
static int give_doc(struct giving *g, const struct dedup_index *x, uint64_t file, struct against_hit hit, struct err *e)
{
    uint64_t first = file << PLACE_BITS, doc = (hit.place - first) / (uint64_t)x->bands;
    struct fuzzy_parts p;
    struct span note;

    TRY(make_note(g, x, doc, &p, &note, e));
    while (hit.place >> PLACE_BITS == file && (hit.place - first) / (uint64_t)x->bands == doc) {
        int band = (int)((hit.place - first) % (uint64_t)x->bands);

        p.record.key[band] = dedup_band_unmix(hit.key, band);
        if (++g->at == g->hits->n)
            break;
        TRY(get_hit(g, g->at, &hit, e));
    }
    return g->take(g->to, note, e);
}

static int give_index(struct giving *g, uint64_t file, struct err *e)
{
    struct against_hit hit;

    while (g->at < g->hits->n) {
        TRY(get_hit(g, g->at, &hit, e));
        if (hit.place >> PLACE_BITS != file)
            break;
        TRY(give_doc(g, g->a->file[file].index, file, hit, e));
    }
    return 0;
}

static int give_all(struct giving *g, const struct stage *st, int rank, int ranks, struct err *e)
{
    const struct dedup_against *a = g->a;

    for (size_t i = 0; i < a->n; i++) {
        if (a->file[i].index)
            TRY(give_index(g, i, e));
        else if (first_rank(a, i, ranks) == rank)
            TRY(notes_of(a->file[i].path, st, a->conf.kind, limits_cpus(), g->take, g->to, e));
    }
    return 0;
}

int dedup_against_give(struct dedup_against *a, const struct members *hits, const struct stage *st, int rank, int ranks,
                       note_taker *take, void *to, struct err *e)
{
    struct giving g = {.a = a, .hits = hits, .take = take, .to = to};
    int rc = 0;

    if (a->has_index && a->conf.verify) {
        rc = shingler_new(&g.shingler, a->conf.preset, a->conf.shingle_seed, e);
        if (rc == 0)
            rc = index_shingles_new(&g.shingles, g.shingler, e);
    }
    if (rc == 0)
        rc = give_all(&g, st, rank, ranks, e);
    index_shingles_free(g.shingles);
    shingler_free(g.shingler);
    arena_free(&g.arena);
    buf_free(&g.doc);
    return rc;
}
