#include "curate/dedup/index_shingles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "curate/stream/doc.h"

/* Bytes read at a time; how far on in a file reading is cheaper than going there; the longest line. */
enum { READ = 1 << 16, NEAR = 1 << 18, MOST_LINE = 1 << 28 };

struct index_shingles {
    struct shingler *shingler;
    struct json_reader *json;
    struct arena arena;
    const char *path; /* of the file that is open */
    struct file_in *in;
    struct buf bytes; /* of the file, decompressed, from byte `start` on */
    uint64_t start;
    struct buf set;
};

#define WHAT_TO_DO "give it back as it was, make the index anew (with --index-sets it needs no texts), or drop by estimate " \
                   "with --no-verify"

int index_sources_check(const struct dedup_index *x, struct err *e)
{
    for (uint32_t i = 0; i < x->sources; i++) {
        const struct index_source *s = &x->source[i];
        struct stat st;

        if (access(s->path, R_OK) < 0 || stat(s->path, &st) < 0 || !S_ISREG(st.st_mode))
            return err_set(e, ERR_IO, "the index '%s' needs %s '%s', which cannot be read: " WHAT_TO_DO, x->name,
                           s->kind == INDEX_SETS ? "its set file" : "the texts of", s->path);
    }
    return 0;
}

int index_shingles_new(struct index_shingles **out, struct shingler *shingler, struct err *e)
{
    struct index_shingles *s = calloc(1, sizeof *s);

    *out = s;
    if (s)
        s->json = json_reader_new();
    if (s && s->json) {
        s->shingler = shingler;
        return 0;
    }
    index_shingles_free(s);
    *out = NULL;
    return err_set(e, ERR_NOMEM, "out of memory for the texts of an index");
}

void index_shingles_free(struct index_shingles *s)
{
    if (!s)
        return;
    json_reader_free(s->json);
    arena_free(&s->arena);
    file_close(s->in);
    buf_free(&s->bytes);
    buf_free(&s->set);
    free(s);
}

/* The file is open, and what was read of it begins at byte `at` or before. */
static int go_to(struct index_shingles *s, const char *path, uint64_t at, struct err *e)
{
    int rc = 0;

    if (s->in && strcmp(s->path, path) == 0 && at >= s->start &&
        (at - s->start <= s->bytes.n + NEAR || file_codec(s->in) != FILE_PLAIN))
        return 0;
    file_close(s->in);
    s->in = NULL;
    buf_clear(&s->bytes);
    s->path = path;
    TRY(file_open(&s->in, path, e));
    if (file_codec(s->in) == FILE_PLAIN)
        rc = file_seek(s->in, at, e);
    s->start = rc == 1 ? at : 0;
    return rc < 0 ? rc : 0;
}

/* More bytes of the file; 0: there are none. */
static int read_more(struct index_shingles *s, struct err *e)
{
    ssize_t k;

    if (buf_reserve(&s->bytes, READ + JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the texts of an index");
    k = file_read(s->in, s->bytes.p + s->bytes.n, READ, e);
    s->bytes.n += k > 0 ? (size_t)k : 0;
    return k < 0 ? (int)k : k > 0;
}

/* What is in memory begins at byte `at` of the file; there is at least one byte. */
static int begin_at(struct index_shingles *s, const char *path, uint64_t at, struct err *e)
{
    size_t from;

    TRY(go_to(s, path, at, e));
    while (s->start + s->bytes.n <= at) {
        int more;

        s->start += s->bytes.n;
        buf_clear(&s->bytes);
        TRY(more = read_more(s, e));
        if (!more)
            return err_set(e, ERR_FORMAT, "the file ends before");
    }
    from = (size_t)(at - s->start);
    memmove(s->bytes.p, s->bytes.p + from, s->bytes.n - from);
    s->bytes.n -= from;
    s->start = at;
    return 0;
}

static int from_text(struct index_shingles *s, const char *path, uint64_t at, const uint64_t **hash, size_t *count, struct err *e)
{
    size_t done = 0;
    char *end;
    struct doc d;
    int more = 1;

    TRY(begin_at(s, path, at, e));
    while (!(end = memchr(s->bytes.p + done, '\n', s->bytes.n - done)) && more) {
        done = s->bytes.n;
        if (done > MOST_LINE)
            return err_set(e, ERR_FORMAT, "the line is longer than %d bytes", MOST_LINE);
        TRY(more = read_more(s, e));
    }
    arena_reset(&s->arena);
    doc_init(&d, &s->arena);
    TRY(doc_parse(&d, s->json, (struct span){s->bytes.p, end ? (size_t)(end - s->bytes.p) : s->bytes.n}, e));
    return shingler_run(s->shingler, d.text, hash, count, e);
}

static int from_set(struct index_shingles *s, const char *path, uint64_t at, size_t count, const uint64_t **hash, struct err *e)
{
    union { char *p; const uint64_t *hash; } set;
    int more = 1;

    if (count == 0)
        return 0;
    TRY(begin_at(s, path, at, e));
    while (more && s->bytes.n / sizeof **hash < count)
        TRY(more = read_more(s, e));
    if (!more)
        return err_set(e, ERR_FORMAT, "the file ends before");
    set.p = s->bytes.p; /* as malloc gave it, so it is aligned */
    *hash = set.hash;
    return 0;
}

int index_shingles_of(struct index_shingles *s, const struct dedup_index *x, const struct index_doc *d, const uint64_t **hash,
                      struct err *e)
{
    const struct index_source *from = &x->source[d->source];
    size_t count = d->count;
    struct err why;
    int rc = from->kind == INDEX_SETS ? from_set(s, from->path, d->at, count, hash, &why)
                                      : from_text(s, from->path, d->at, hash, &count, &why);

    if (rc == 0 && count == d->count && (!count || XXH3_64bits(*hash, count * sizeof **hash) == d->hash))
        return 0;
    if (rc == ERR_NOMEM)
        return err_set(e, rc, "%s", why.msg);
    return err_set(e, ERR_FORMAT, "'%s' does not have at byte %" PRIu64 " what it had when the index '%s' was made%s%.100s; "
                   WHAT_TO_DO, from->path, d->at, x->name, rc < 0 ? ": " : "", rc < 0 ? why.msg : "");
}
