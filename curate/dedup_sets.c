#include "curate/dedup_sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

enum { BUFFER = 1 << 17 }; /* hashes buffered before a write: 1 MiB */

struct dedup_sets {
    int fd;
    uint64_t *at;   /* of each document, where it begins in the file, in hashes */
    uint32_t *size; /* and how many */
    size_t docs, cap;
    uint64_t hashes;
    uint64_t *buffer;
    size_t buffered;
};

struct dedup_compare {
    struct dedup_sets *sets;
    uint32_t a; /* the document whose hashes the table holds; UINT32_MAX: none */
    uint64_t *table;
    size_t table_cap, mask;
    bool zero; /* a's set has hash 0, which marks free slots */
    uint64_t *other;
    size_t other_cap;
};

int dedup_sets_open(struct dedup_sets **out, const char *dir, struct err *e)
{
    struct dedup_sets *s = calloc(1, sizeof *s);
    char name[4096];

    *out = s;
    if (!dir)
        dir = getenv("TMPDIR");
    if (!dir || !*dir)
        dir = "/tmp";
    if (!s || !(s->buffer = malloc(BUFFER * sizeof *s->buffer))) {
        free(s);
        *out = NULL;
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    snprintf(name, sizeof name, "%s/quern-sets", dir);
    s->fd = file_nameless(name, e);
    if (s->fd < 0) {
        dedup_sets_close(s);
        *out = NULL;
        return ERR_IO;
    }
    return 0;
}

void dedup_sets_close(struct dedup_sets *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->at);
    free(s->size);
    free(s->buffer);
    free(s);
}

static int write_all(int fd, const void *p, size_t n, struct err *e)
{
    const char *at = p;

    while (n) {
        ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, ERR_IO, "cannot write the temporary file of shingles");
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

int dedup_sets_flush(struct dedup_sets *s, struct err *e)
{
    TRY(write_all(s->fd, s->buffer, s->buffered * sizeof *s->buffer, e));
    s->buffered = 0;
    return 0;
}

static int add_doc(struct dedup_sets *s, size_t n, struct err *e)
{
    if (s->docs >= UINT32_MAX - 1 || n > UINT32_MAX)
        return err_set(e, ERR_LIMIT, "more than %u documents", UINT32_MAX - 1);
    if (s->docs == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 1024;
        uint64_t *at = realloc(s->at, cap * sizeof *at);
        uint32_t *size;
        if (at)
            s->at = at;
        size = at ? realloc(s->size, cap * sizeof *size) : NULL;
        if (!size)
            return err_set(e, ERR_NOMEM, "out of memory for %zu documents", cap);
        s->size = size;
        s->cap = cap;
    }
    s->at[s->docs] = s->hashes;
    s->size[s->docs++] = (uint32_t)n;
    s->hashes += n;
    return 0;
}

int dedup_sets_put(struct dedup_sets *s, const uint64_t *hash, size_t n, struct err *e)
{
    TRY(add_doc(s, n, e));
    if (s->buffered + n > BUFFER)
        TRY(dedup_sets_flush(s, e));
    if (n > BUFFER)
        return write_all(s->fd, hash, n * sizeof *hash, e);
    if (n)
        memcpy(s->buffer + s->buffered, hash, n * sizeof *hash);
    s->buffered += n;
    return 0;
}

size_t dedup_sets_docs(const struct dedup_sets *s)
{
    return s->docs;
}

uint32_t dedup_sets_size(const struct dedup_sets *s, uint32_t doc)
{
    return s->size[doc];
}

uint64_t dedup_sets_bytes(const struct dedup_sets *s)
{
    return s->hashes * sizeof(uint64_t);
}

/* ---- similarity ---- */

int dedup_compare_new(struct dedup_compare **c, struct dedup_sets *s, struct err *e)
{
    *c = calloc(1, sizeof **c);
    if (!*c)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    (*c)->sets = s;
    (*c)->a = UINT32_MAX;
    return 0;
}

void dedup_compare_free(struct dedup_compare *c)
{
    if (!c)
        return;
    free(c->table);
    free(c->other);
    free(c);
}

/* Reads doc's hashes into c->other. */
static int read_set(struct dedup_compare *c, uint32_t doc, struct err *e)
{
    size_t n = c->sets->size[doc], done = 0, bytes = n * sizeof(uint64_t);

    if (n > c->other_cap) {
        free(c->other);
        c->other_cap = n + n / 4;
        c->other = malloc(c->other_cap * sizeof *c->other);
        if (!c->other) {
            c->other_cap = 0;
            return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", n);
        }
    }
    while (done < bytes) {
        ssize_t k = pread(c->sets->fd, (char *)c->other + done, bytes - done,
                          (off_t)(c->sets->at[doc] * sizeof(uint64_t) + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, ERR_IO, "cannot read the temporary file of shingles");
        if (k == 0)
            return err_set(e, ERR_IO, "the temporary file of shingles ends too early");
        done += (size_t)k;
    }
    return 0;
}

static int load(struct dedup_compare *c, uint32_t a, struct err *e)
{
    size_t n = c->sets->size[a], cap = 64;

    c->a = UINT32_MAX;
    TRY(read_set(c, a, e));
    while (cap < 2 * n)
        cap *= 2;
    if (cap > c->table_cap) {
        free(c->table);
        c->table = malloc(cap * sizeof *c->table);
        c->table_cap = c->table ? cap : 0;
        if (!c->table)
            return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", n);
    }
    memset(c->table, 0, cap * sizeof *c->table);
    c->mask = cap - 1;
    c->zero = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = hash_mix64(c->other[i]) & c->mask;
        if (c->other[i] == 0) {
            c->zero = true;
            continue;
        }
        while (c->table[at])
            at = (at + 1) & c->mask;
        c->table[at] = c->other[i];
    }
    c->a = a;
    return 0;
}

static uint64_t common(const struct dedup_compare *c, size_t n)
{
    uint64_t both = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t h = c->other[i];
        size_t at = hash_mix64(h) & c->mask;
        while (c->table[at] != h && c->table[at])
            at = (at + 1) & c->mask;
        both += h ? c->table[at] == h : c->zero;
    }
    return both;
}

int dedup_jaccard(struct dedup_compare *c, uint32_t a, uint32_t b, double floor,
                  double *similarity, struct err *e)
{
    uint64_t na = c->sets->size[a], nb = c->sets->size[b], both;
    uint64_t less = na < nb ? na : nb, more = na < nb ? nb : na;

    *similarity = 0;
    if (less == 0 || (double)less / (double)more < floor)
        return 0;
    if (c->a != a)
        TRY(load(c, a, e));
    TRY(read_set(c, b, e));
    both = common(c, nb);
    *similarity = (double)both / (double)(na + nb - both);
    return 0;
}
