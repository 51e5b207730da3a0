/* Reading an index of near-duplicates, here and there. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/http.h"
#include "curate/dedup/dedup_index.h"
#include "curate/dedup/index_format.h"
#include "kernels/minhash.h"

void dedup_index_close(struct dedup_index *x)
{
    if (!x)
        return;
    if (x->fd >= 0)
        close(x->fd);
    for (uint32_t i = 0; x->source && i < x->sources; i++)
        free(x->source[i].path);
    free(x->source);
    free(x->name);
    free(x);
}

static int damaged(const struct dedup_index *x, uint64_t at, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "the index '%s' is damaged at byte %" PRIu64 ": %s; make it anew", x->name, at, what);
}

static size_t record_bytes(const struct dedup_index *x)
{
    return sizeof(struct index_record) + (size_t)x->bands * (size_t)x->rows;
}

/* Do the numbers of the trailer, which is at byte `at`, go together?  start: where the ids begin. */
static bool adds_up(const struct index_trailer *t, uint64_t start, uint64_t at)
{
    uint64_t record, pages;

    if (!t->bands || !t->rows || t->bands > MINHASH_MAX || t->rows > MINHASH_MAX || t->bands * t->rows > MINHASH_MAX)
        return false;
    record = sizeof(struct index_record) + t->bands * t->rows;
    if (t->docs > UINT32_MAX || t->docs_at < start || t->docs_at > at || t->docs > (at - t->docs_at) / record ||
        t->sources_at != t->docs_at + t->docs * record)
        return false;
    if (t->sources_n > INDEX_MOST_SOURCES || t->sources_n > at - t->sources_at || t->sources > t->sources_n / 5 ||
        t->pages_at != (t->sources_at + t->sources_n + INDEX_PAGE - 1) / INDEX_PAGE * INDEX_PAGE || t->pages_at > at)
        return false;
    pages = (at - t->pages_at) / INDEX_PAGE;
    return (at - t->pages_at) % INDEX_PAGE == 0 && t->leaves <= pages && index_pages_count(t->leaves) == pages &&
           t->entries <= t->docs * t->bands && t->entries >= t->leaves;
}

/* The path of a source as it can be opened from here; index: that of the index, whose links are followed. */
static char *path_from(const char *index, struct span name)
{
    int folder = name.p[0] == '/' ? 0 : (int)(strrchr(index, '/') + 1 - index);
    char *path = NULL;

    return asprintf(&path, "%.*s%.*s", folder, index, (int)name.n, name.p) < 0 ? NULL : path;
}

static int take_sources(struct dedup_index *x, const char *index, const struct index_trailer *t, struct span all, struct err *e)
{
    const char *p = all.p, *end = all.p + all.n;
    uint32_t n;

    x->source = calloc(t->sources + 1, sizeof *x->source);
    if (!x->source)
        return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);
    for (; end - p >= 5 && x->sources < t->sources; p += 5 + n) {
        struct index_source *s = &x->source[x->sources];

        memcpy(&n, p + 1, sizeof n);
        if ((*p != INDEX_TEXTS && *p != INDEX_SETS) || n == 0 || n >= INDEX_MOST_PATH || n > (size_t)(end - p) - 5 ||
            memchr(p + 5, '\0', n))
            break;
        s->kind = *p;
        s->path = path_from(index, (struct span){p + 5, n});
        if (!s->path)
            return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);
        x->sources++;
    }
    return p == end && x->sources == t->sources ? 0 : damaged(x, t->sources_at, "the names of its files", e);
}

static int read_sources(struct dedup_index *x, const struct index_trailer *t, struct err *e)
{
    struct span all = {NULL, t->sources_n};
    char *p = malloc(t->sources_n + 1), *index = realpath(x->name, NULL);
    int rc = p && index ? 0 : err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);

    all.p = p;
    if (rc == 0)
        rc = index_read_at(x->fd, x->name, t->sources_at, p, all.n, e);
    if (rc == 0 && hash_xxh3_64(all) != t->sources_sum)
        rc = damaged(x, t->sources_at, "the names of its files have another checksum", e);
    if (rc == 0)
        rc = take_sources(x, index, t, all, e);
    free(index);
    free(p);
    return rc;
}

/* The two lines at the beginning, and the trailer; the file has that many bytes. */
static int read_ends(struct dedup_index *x, uint64_t size, struct index_trailer *t, struct err *e)
{
    enum { MAGIC = sizeof INDEX_MAGIC - 1 };
    char first[MAGIC + NOTE_INDEX_KIND];
    size_t n = size < sizeof first ? (size_t)size : sizeof first, kind;
    struct buf b = {0};
    uint64_t sum;
    char *end;

    TRY(index_read_at(x->fd, x->name, 0, first, n, e));
    end = memchr(first + MAGIC, '\n', n - MAGIC);
    if (!end || memchr(first, '\0', (size_t)(end - first)))
        return damaged(x, MAGIC, "its second line is none", e);
    kind = (size_t)(end - first) - MAGIC;
    memcpy(x->kind, first + MAGIC, kind);
    if (size < (size_t)(end + 1 - first) + sizeof *t)
        return err_set(e, ERR_FORMAT, "the index '%s' is cut short at byte %" PRIu64 "; make it anew", x->name, size);
    TRY(index_read_at(x->fd, x->name, size - sizeof *t, t, sizeof *t, e));
    if (buf_put(&b, first, (size_t)(end + 1 - first)) < 0 || buf_put(&b, t, sizeof *t - sizeof t->sum) < 0) {
        buf_free(&b);
        return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);
    }
    sum = hash_xxh3_64(buf_span(&b));
    buf_free(&b);
    if (sum != t->sum || !adds_up(t, (uint64_t)(end + 1 - first), size - sizeof *t))
        return damaged(x, size - sizeof *t, "it does not end as an index does, or its first lines were changed", e);
    return 0;
}

static int open_file(struct dedup_index *x, uint64_t size, struct err *e)
{
    struct index_trailer t;

    TRY(read_ends(x, size, &t, e));
    x->bands = (int)t.bands;
    x->rows = (int)t.rows;
    x->docs = t.docs;
    x->docs_at = t.docs_at;
    x->tree = (struct index_tree){x->fd, x->name, t.pages_at, t.leaves, t.entries, t.docs * t.bands};
    return read_sources(x, &t, e);
}

int dedup_index_open(struct dedup_index **out, const char *path, struct err *e)
{
    char kind[NOTE_INDEX_KIND], magic[sizeof INDEX_MAGIC - 1];
    struct dedup_index *x;
    struct stat st;
    int rc;

    *out = NULL;
    rc = note_index_kind(path, kind, e);
    if (rc != 2)
        return rc < 0 ? rc : 0;
    if (http_is_address(path))
        return err_set(e, ERR_UNSUPPORTED, "'%.*s' is an address; an index has to be a file here, for it is read here and there",
                       http_name_length(path), path);
    x = calloc(1, sizeof *x);
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", path);
    x->fd = open(path, O_RDONLY | O_CLOEXEC);
    x->name = strdup(path);
    rc = x->name ? 0 : err_set(e, ERR_NOMEM, "out of memory for the index '%s'", path);
    if (rc == 0 && (x->fd < 0 || fstat(x->fd, &st) < 0))
        rc = err_sys(e, ERR_IO, "cannot open '%s'", path);
    if (rc == 0)
        rc = index_read_at(x->fd, path, 0, magic, sizeof magic, e);
    if (rc == 0 && memcmp(magic, INDEX_MAGIC, sizeof magic) != 0)
        rc = err_set(e, ERR_FORMAT, "the index '%s' is compressed; decompress it, for it is read here and there", path);
    if (rc == 0)
        rc = open_file(x, (uint64_t)st.st_size, e);
    if (rc < 0)
        dedup_index_close(x);
    else
        *out = x;
    return rc < 0 ? rc : 1;
}

int dedup_index_doc(const struct dedup_index *x, uint64_t n, struct index_doc *d, struct buf *b, struct err *e)
{
    size_t bytes = record_bytes(x);
    uint64_t at = x->docs_at + n * bytes;
    struct index_record r;

    if (n >= x->docs)
        return err_set(e, ERR_ARG, "the index '%s' has no document %" PRIu64, x->name, n);
    buf_clear(b);
    if (buf_reserve(b, bytes) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);
    TRY(index_read_at(x->fd, x->name, at, b->p, bytes, e));
    memcpy(&r, b->p, sizeof r);
    if (r.id_at > x->docs_at || r.id_n > x->docs_at - r.id_at || r.source >= x->sources || r.count > INDEX_MOST_SHINGLES)
        return damaged(x, at, "a document", e);
    b->n = bytes;
    if (buf_reserve(b, r.id_n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the index '%s'", x->name);
    TRY(index_read_at(x->fd, x->name, r.id_at, b->p + bytes, r.id_n, e));
    b->n += r.id_n;
    if (hash_xxh3_64((struct span){b->p + sizeof r.sum, b->n - sizeof r.sum}) != r.sum)
        return damaged(x, at, "a document has another checksum", e);
    *d = (struct index_doc){{b->p + bytes, r.id_n}, r.count, r.source, r.at, r.hash, (const uint8_t *)b->p + sizeof r};
    return 0;
}
