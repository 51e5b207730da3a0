/* Writing an index of near-duplicates. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "curate/dedup/dedup_index.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/index_format.h"
#include "kernels/minhash.h"

enum { READ = 1 << 18, LEAST_KEYS = 1 << 12 };

struct index_out {
    struct index_out_conf conf;
    char *real;                  /* the index's path, all links followed */
    size_t base;                 /* of these bytes is its folder, with the slash */
    struct file_out *out, *sets; /* sets NULL: none are written */
    struct spill docs;           /* records */
    struct members keys;
    struct index_pages_out pages;
    uint64_t n;
    struct buf sources;
    uint32_t n_sources;
    char *last_path; /* of the source that was added last */
    uint32_t last;
};

int index_out_check(const char *path, struct err *e)
{
    if (file_codec_by_name(path) != FILE_PLAIN)
        return err_set(e, ERR_ARG, "'%s': an index is not compressed, for it is read here and there", path);
    return 0;
}

/* The path from the root on, also of a file that is gone. */
static char *whole_path(const char *path)
{
    char *real = file_resolve(path), *cwd, *whole = real;

    if (!real)
        real = whole = strdup(path);
    if (real && real[0] != '/') {
        cwd = getcwd(NULL, 0);
        if (!cwd || asprintf(&whole, "%s/%s", cwd, real) < 0)
            whole = NULL;
        free(cwd);
        free(real);
    }
    return whole;
}

static int create_sets(struct index_out *x, struct err *e)
{
    char *path = NULL;
    int rc;

    if (!x->conf.sets)
        return 0;
    if (asprintf(&path, "%s.sets", x->real) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    rc = file_create(&x->sets, path, 0, e);
    if (rc == 0)
        rc = file_write(x->sets, SETS_MAGIC, sizeof SETS_MAGIC - 1, e);
    free(path);
    return rc;
}

static int create_files(struct index_out *x, struct err *e)
{
    size_t room = (size_t)x->conf.memory / 2 / sizeof(struct member);

    TRY(index_out_check(x->conf.path, e));
    TRY(file_create(&x->out, x->conf.path, 0, e));
    x->real = whole_path(x->conf.path);
    if (!x->real)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    x->base = (size_t)(strrchr(x->real, '/') + 1 - x->real);
    TRY(create_sets(x, e));
    TRY(spill_open(&x->docs, x->conf.dir, READ, e));
    TRY(members_open(&x->keys, room < LEAST_KEYS ? LEAST_KEYS : room, x->conf.dir, e));
    TRY(file_write(x->out, INDEX_MAGIC, sizeof INDEX_MAGIC - 1, e));
    TRY(file_write(x->out, x->conf.kind, strlen(x->conf.kind), e));
    return file_write(x->out, "\n", 1, e);
}

static void index_out_free(struct index_out *x)
{
    if (!x)
        return;
    file_abort(x->out);
    file_abort(x->sets);
    spill_close(&x->docs);
    members_close(&x->keys);
    index_pages_free(&x->pages);
    buf_free(&x->sources);
    free(x->last_path);
    free(x->real);
    free(x);
}

int index_out_create(struct index_out **out, const struct index_out_conf *c, struct err *e)
{
    struct index_out *x = calloc(1, sizeof *x);
    int rc;

    *out = NULL;
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    x->conf = *c;
    x->docs.fd = -1;
    rc = create_files(x, e);
    if (rc < 0)
        index_out_free(x);
    else
        *out = x;
    return rc;
}

uint64_t index_out_docs(const struct index_out *x)
{
    return x->n;
}

/* ---- sources ---- */

/* Paths are from the index's folder on if they are in it or below, else from the root on. */
static int put_source(struct index_out *x, int kind, const char *whole, struct err *e)
{
    const char *name = strncmp(whole, x->real, x->base) == 0 ? whole + x->base : whole;
    uint32_t n = (uint32_t)strlen(name);

    if (n >= INDEX_MOST_PATH || x->sources.n + n + 5 > INDEX_MOST_SOURCES)
        return err_set(e, ERR_LIMIT, "the names of the files of '%s' take more than %d bytes", x->conf.path, INDEX_MOST_SOURCES);
    if (buf_putc(&x->sources, (char)kind) < 0 || buf_put(&x->sources, &n, sizeof n) < 0 || buf_put(&x->sources, name, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    return 0;
}

int index_out_add_source(struct index_out *x, int kind, const char *path, uint32_t *number, struct err *e)
{
    char *whole = whole_path(path);
    int rc = whole ? put_source(x, kind, whole, e) : err_set(e, ERR_NOMEM, "out of memory for an index");

    free(whole);
    *number = x->n_sources;
    x->n_sources += rc == 0;
    return rc;
}

/* The source of a text, and where in it; documents of one file follow one another. */
static int find_source(struct index_out *x, struct span place, struct index_doc *d, struct err *e)
{
    const char *colon = place.p ? memrchr(place.p, ':', place.n) : NULL;
    size_t n = colon ? (size_t)(colon - place.p) : 0;

    if (!colon)
        return err_set(e, ERR_ARG, "a document has no place at which its text could be read again");
    for (const char *p = colon + 1; p < place.p + place.n; p++)
        d->at = 10 * d->at + (uint64_t)(*p - '0');
    if (!x->last_path || strlen(x->last_path) != n || memcmp(x->last_path, place.p, n) != 0) {
        free(x->last_path);
        x->last_path = strndup(place.p, n);
        if (!x->last_path)
            return err_set(e, ERR_NOMEM, "out of memory for an index");
        TRY(index_out_add_source(x, INDEX_TEXTS, x->last_path, &x->last, e));
    }
    d->source = x->last;
    return 0;
}

/* The shingles go to the set file, which is the one source. */
static int put_set(struct index_out *x, struct index_doc *d, const uint64_t *hash, struct err *e)
{
    if (!x->n_sources)
        TRY(index_out_add_source(x, INDEX_SETS, file_out_name(x->sets), &d->source, e));
    d->at = file_out_tell(x->sets);
    return file_write(x->sets, hash, d->count * sizeof *hash, e);
}

/* ---- documents and keys ---- */

int index_out_add_doc(struct index_out *x, const struct index_doc *d, struct err *e)
{
    size_t sketch = (size_t)x->conf.bands * (size_t)x->conf.rows;
    struct index_record r = {.id_at = file_out_tell(x->out), .hash = d->hash, .at = d->at, .count = d->count,
                             .source = d->source, .id_n = (uint32_t)d->id.n};
    struct buf b = {0};

    if (buf_put(&b, &r, sizeof r) < 0 || buf_put(&b, d->sketch, sketch) < 0 || buf_put_span(&b, d->id) < 0) {
        buf_free(&b);
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    }
    r.sum = hash_xxh3_64((struct span){b.p + sizeof r.sum, b.n - sizeof r.sum});
    buf_free(&b);
    x->n++;
    TRY(file_write(x->out, d->id.p, d->id.n, e));
    TRY(spill_put(&x->docs, &r, sizeof r, e));
    return spill_put(&x->docs, d->sketch, sketch, e);
}

int index_out_add_key(struct index_out *x, struct index_entry k, struct err *e)
{
    struct member m = member_of_pair(k.key, k.value);

    return members_add(&x->keys, &m, e);
}

int index_out_put(struct index_out *x, struct span id, struct span place, const uint64_t *hash, size_t count,
                  const struct band_record *record, struct err *e)
{
    static const uint8_t none[MINHASH_MAX];
    struct index_doc d = {.id = id, .count = (uint32_t)count, .sketch = record ? record->sketch : none,
                          .hash = hash_xxh3_64((struct span){(const char *)hash, count * sizeof *hash})};

    if (!x->sets)
        TRY(find_source(x, place, &d, e));
    else
        TRY(put_set(x, &d, hash, e));
    TRY(index_out_add_doc(x, &d, e));
    for (int k = 0; record && k < x->conf.bands; k++)
        TRY(index_out_add_key(x, (struct index_entry){dedup_band_mix(record->key[k], k),
                                                      (x->n - 1) * (uint64_t)x->conf.bands + (uint64_t)k}, e));
    return 0;
}

/* ---- the end ---- */

static int copy_docs(struct index_out *x, struct err *e)
{
    struct spill_reader in;
    size_t got = 1;
    int rc = spill_flush(&x->docs, e);

    if (rc == 0)
        rc = spill_reader_open(&in, &x->docs, 0, x->docs.size, READ, e);
    TRY(rc);
    while (rc == 0 && got) {
        rc = spill_ahead(&in, READ, &got, e);
        if (rc == 0)
            rc = file_write(x->out, in.buf + in.pos, got, e);
        in.pos += got;
    }
    spill_reader_close(&in);
    return rc;
}

static int put_pages(struct index_out *x, struct err *e)
{
    struct member m[512];
    size_t n;

    TRY(members_sort(&x->keys, e));
    TRY(index_pages_begin(&x->pages, x->out, x->n * (uint64_t)x->conf.bands, x->conf.dir, e));
    for (uint64_t at = 0; at < x->keys.n; at += n) {
        n = x->keys.n - at < sizeof m / sizeof *m ? (size_t)(x->keys.n - at) : sizeof m / sizeof *m;
        TRY(members_get(&x->keys, at, n, m, e));
        for (size_t i = 0; i < n; i++)
            TRY(index_pages_put(&x->pages, (struct index_entry){member_first(&m[i]), member_second(&m[i])}, e));
    }
    return index_pages_end(&x->pages, e);
}

static int finish(struct index_out *x, struct err *e)
{
    static const char zeros[INDEX_PAGE];
    struct index_trailer t = {.docs = x->n, .docs_at = file_out_tell(x->out), .sources = x->n_sources,
                              .sources_n = x->sources.n, .sources_sum = hash_xxh3_64(buf_span(&x->sources)),
                              .bands = (uint64_t)x->conf.bands, .rows = (uint64_t)x->conf.rows};
    struct buf b = {0};
    int rc;

    TRY(copy_docs(x, e));
    t.sources_at = file_out_tell(x->out);
    TRY(file_write(x->out, x->sources.p, x->sources.n, e));
    t.pages_at = (file_out_tell(x->out) + INDEX_PAGE - 1) / INDEX_PAGE * INDEX_PAGE;
    TRY(file_write(x->out, zeros, (size_t)(t.pages_at - file_out_tell(x->out)), e));
    TRY(put_pages(x, e));
    t.leaves = x->pages.leaves;
    t.entries = x->pages.entries;
    rc = buf_puts(&b, INDEX_MAGIC);
    if (rc == 0)
        rc = buf_puts(&b, x->conf.kind);
    if (rc == 0)
        rc = buf_putc(&b, '\n');
    if (rc == 0)
        rc = buf_put(&b, &t, sizeof t - sizeof t.sum);
    t.sum = hash_xxh3_64(buf_span(&b));
    buf_free(&b);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for an index") : file_write(x->out, &t, sizeof t, e);
}

int index_out_end(struct index_out *x, int rc, struct file_group *files, struct err *e)
{
    if (rc == 0)
        rc = finish(x, e);
    if (rc == 0 && x->sets) {
        struct file_out *f = x->sets;
        x->sets = NULL;
        rc = file_group_add(files, f, e);
    }
    if (rc == 0) {
        struct file_out *f = x->out;
        x->out = NULL;
        rc = file_group_add(files, f, e);
    }
    index_out_free(x);
    return rc;
}
