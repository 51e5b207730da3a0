#include "curate/crawl/crawl_zipnum.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/http.h"
#include "curate/crawl/crawl_entry.h"
#include "curate/crawl/crawl_piece.h"
#include "curate/crawl/crawl_lines.h"
#include "curate/crawl/crawl_places.h"

enum {
    SCAN = 32 << 10,                   /* bytes of cluster.idx that are not bisected further */
    FIRST_READ = 16 << 10, MOST_READ = 1 << 20, /* bytes of it that are read at once */
    RUN_BYTES = 2 << 20, RUN_MEMBERS = 1024, /* members that follow each other are read together, up to these */
    NAME_MAX_BYTES = 256
};

/* A line of cluster.idx. */
struct member {
    uint64_t line; /* where it stands */
    char file[NAME_MAX_BYTES];
    uint64_t offset, length;
};

struct crawl_zipnum {
    struct range_in *index;
    const struct crawl_keys *keys;
    char *folder, *name;
    uint64_t size;
    size_t key;       /* the prefix in hand */
    bool scanning;    /* its lines are being read */
    struct crawl_lines lines;
    uint64_t read_at; /* of the next bytes of cluster.idx */
    size_t at_once;
    uint64_t given;   /* members of lines before this one have been given */
    struct member line, before; /* the one read last; the last that begins before the prefix */
    bool has_before, has_line;  /* they are still to be given */
    bool past;        /* all lines of the prefix have been read */
    struct member held;   /* the one behind those that were given last */
    bool has_held;
    struct err why;       /* code < 0: what is wrong behind them */
    struct buf bytes;
    char file[NAME_MAX_BYTES]; /* that of the members given last */
};

/* ---- lines of cluster.idx ---- */

bool crawl_is_zipnum(struct span s)
{
    const char *nl = s.n ? memchr(s.p, '\n', s.n) : NULL, *tab;
    size_t n = nl ? (size_t)(nl - s.p) : s.n;
    int tabs = 0;

    for (const char *p = s.p; (tab = n ? memchr(p, '\t', (size_t)(s.p + n - p)) : NULL); p = tab + 1)
        tabs++;
    return tabs >= 3 && !memchr(s.p, '{', n);
}

/* The next field of a line, up to a tab. */
static struct span next_field(struct span *line)
{
    const char *tab = line->n ? memchr(line->p, '\t', line->n) : NULL;
    struct span s = {line->p, tab ? (size_t)(tab - line->p) : line->n};

    *line = (struct span){s.p + s.n + (tab != NULL), line->n - s.n - (tab != NULL)};
    return s;
}

/* The key of a line: up to the timestamp. */
static struct span key_of(struct span line)
{
    size_t n = 0;

    while (n < line.n && line.p[n] != ' ' && line.p[n] != '\t')
        n++;
    return (struct span){line.p, n};
}

static int read_line(const struct crawl_zipnum *z, struct span line, struct member *m, struct err *e)
{
    struct span rest = line, file;

    next_field(&rest);
    file = next_field(&rest);
    if (!file.n || file.n >= sizeof m->file || !crawl_read_count(next_field(&rest), &m->offset) ||
        !crawl_read_count(next_field(&rest), &m->length) || m->length == 0)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": it is no line of cluster.idx", z->name, m->line);
    if (!crawl_name_is_below(file))
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": '%.*s' is no file of its folder", z->name, m->line,
                       (int)(file.n < 100 ? file.n : 100), file.p);
    if (m->length > CRAWL_BLOCK_MAX || m->length > INT64_MAX - m->offset)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": a member of %" PRIu64 " bytes is longer than %d", z->name,
                       m->line, m->length, CRAWL_BLOCK_MAX);
    memcpy(m->file, file.p, file.n);
    m->file[file.n] = '\0';
    return 1;
}

/* crawl_lines' stream: cluster.idx from z->read_at on, more at once the longer it is read. */
static ssize_t read_index(void *zipnum, void *p, size_t n, struct err *e)
{
    struct crawl_zipnum *z = zipnum;
    uint64_t left = z->size - z->read_at;

    n = n < z->at_once ? n : z->at_once;
    n = n < left ? n : (size_t)left;
    if (n == 0)
        return 0;
    TRY(range_in_read(z->index, z->read_at, p, n, e));
    z->read_at += n;
    z->at_once = z->at_once * 2 < MOST_READ ? z->at_once * 2 : MOST_READ;
    return (ssize_t)n;
}

/* It has become shorter. */
static int skip_index(void *zipnum, struct err *e)
{
    (void)zipnum;
    (void)e;
    return 0;
}

static void scan_from(struct crawl_zipnum *z, uint64_t at)
{
    crawl_lines_reset(&z->lines);
    z->lines.offset = z->read_at = at;
    z->at_once = FIRST_READ;
    z->has_before = z->has_line = z->past = false;
    z->scanning = true;
}

/* ---- bisection ---- */

/* Where the first line behind `at` begins, and whether its key lies before all of the prefix's; UINT64_MAX: there is none. */
static int probe(struct crawl_zipnum *z, uint64_t at, struct span prefix, uint64_t *start, bool *before, struct err *e)
{
    *start = UINT64_MAX;
    for (size_t n = 4096; n <= CRAWL_LINE_MAX; n *= 4) {
        size_t have = z->size - at < n ? (size_t)(z->size - at) : n;
        const char *nl, *end;

        buf_clear(&z->bytes);
        if (buf_reserve(&z->bytes, have) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for an index");
        TRY(range_in_read(z->index, at, z->bytes.p, have, e));
        nl = memchr(z->bytes.p, '\n', have);
        end = nl ? memchr(nl + 1, '\t', (size_t)(z->bytes.p + have - nl - 1)) : NULL;
        if (end) {
            *start = at + (uint64_t)(nl + 1 - z->bytes.p);
            *before = crawl_key_side(key_of((struct span){nl + 1, (size_t)(end - nl - 1)}), prefix) < 0;
            return 0;
        }
        if (have < n)
            return 0;
    }
    return 0;
}

/* The beginning of a line that stands before all keys of the prefix, near to these; or 0. */
static int bisect(struct crawl_zipnum *z, struct span prefix, uint64_t *from, struct err *e)
{
    uint64_t low = 0, high = z->size;

    while (high - low > SCAN) {
        uint64_t middle = low + (high - low) / 2, start;
        bool before = false;

        TRY(probe(z, middle, prefix, &start, &before, e));
        if (start < high && before)
            low = start;
        else
            high = middle;
    }
    *from = low;
    return 0;
}

/* ---- members ---- */

static int next_line(struct crawl_zipnum *z, struct member *m, struct span *key, struct err *e)
{
    struct span line;
    int rc = crawl_lines_next(&z->lines, &line, &m->line, e);

    if (rc < 0)
        return rc == ERR_FORMAT ? err_wrap(e, "'%s'", z->name) : rc;
    if (rc == 0)
        return 0;
    *key = key_of(line);
    return read_line(z, line, m, e);
}

/* Gives a member unless that was done for a prefix before. */
static bool give(struct crawl_zipnum *z, const struct member *from, struct member *m)
{
    if (from->line < z->given)
        return false;
    z->given = from->line + 1;
    *m = *from;
    return true;
}

/* The next member of the prefix in hand: 1; 0: it has no more. */
static int next_of_prefix(struct crawl_zipnum *z, struct member *m, struct err *e)
{
    for (;;) {
        struct span key = {0};
        int rc, at;

        if (z->has_line) { /* held back for the one before it */
            z->has_line = false;
            if (give(z, &z->line, m))
                return 1;
        }
        if (z->past)
            return 0;
        rc = next_line(z, &z->line, &key, e);
        if (rc < 0)
            return rc;
        at = rc == 0 ? 1 : crawl_key_side(key, z->keys->v[z->key]);
        if (at < 0) {
            z->before = z->line;
            z->has_before = true;
            continue;
        }
        z->has_line = at == 0;
        z->past = at > 0;
        if (z->has_before && give(z, &z->before, m)) {
            z->has_before = false;
            return 1;
        }
        z->has_before = false;
    }
}

/* The next member that can hold keys: 1; 0: the end. */
static int next_member(struct crawl_zipnum *z, struct member *m, struct err *e)
{
    struct span key;

    if (z->keys->all) {
        if (!z->scanning)
            scan_from(z, 0);
        return next_line(z, m, &key, e);
    }
    for (; z->key < z->keys->n; z->key++, z->scanning = false) {
        uint64_t from;
        int rc;

        if (!z->scanning) {
            TRY(bisect(z, z->keys->v[z->key], &from, e));
            scan_from(z, from);
        }
        rc = next_of_prefix(z, m, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Collects members that follow each other: their bytes; 0: there are none. */
static int64_t collect(struct crawl_zipnum *z, struct crawl_run *run, struct err *e)
{
    uint64_t total = 0;

    for (run->n = 0; run->n < RUN_MEMBERS;) {
        int rc = z->has_held ? 1 : next_member(z, &z->held, run->n ? &z->why : e);

        if (rc == 0 || (rc < 0 && run->n))
            return (int64_t)total;
        if (rc < 0)
            return rc;
        z->has_held = true;
        if (run->n && (strcmp(z->file, z->held.file) != 0 || run->offset + total != z->held.offset ||
                       total + z->held.length > RUN_BYTES))
            break;
        if (mem_grow(&run->length, &run->cap, run->n + 1, sizeof *run->length) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for an index");
        if (run->n == 0) {
            memcpy(z->file, z->held.file, sizeof z->file);
            run->offset = z->held.offset;
        }
        run->length[run->n++] = z->held.length;
        total += z->held.length;
        z->has_held = false;
    }
    return (int64_t)total;
}

int crawl_zipnum_next(struct crawl_zipnum *z, struct crawl_run *run, struct err *e)
{
    int64_t total;

    if (z->why.code) {
        *e = z->why;
        z->why.code = 0;
        return e->code;
    }
    total = collect(z, run, e);
    if (total <= 0)
        return (int)total;
    run->bytes = (uint64_t)total;
    run->file = crawl_join(z->folder, z->file);
    return run->file ? 1 : err_set(e, ERR_NOMEM, "out of memory for an index");
}

void crawl_run_free(struct crawl_run *run)
{
    free(run->file);
    free(run->length);
    *run = (struct crawl_run){.file = NULL};
}

int crawl_zipnum_open(struct crawl_zipnum **out, const char *name, const struct crawl_keys *keys, struct range_in_pace *pace,
                      struct err *e)
{
    struct crawl_zipnum *z = calloc(1, sizeof *z);
    bool fine = z && (z->folder = crawl_folder_of(name)) && (z->name = http_is_address(name) ? http_name(name) : strdup(name));
    int rc = fine ? 0 : err_set(e, ERR_NOMEM, "out of memory for an index");

    *out = NULL;
    if (rc == 0)
        rc = range_in_new(&z->index, pace, e);
    if (rc == 0)
        rc = range_in_turn(z->index, name, e);
    if (rc == 0)
        rc = range_in_size(z->index, &z->size, e);
    if (rc < 0) {
        crawl_zipnum_close(z);
        return rc;
    }
    z->keys = keys;
    z->lines = (struct crawl_lines){.read = read_index, .skip = skip_index, .arg = z};
    *out = z;
    return 0;
}

void crawl_zipnum_close(struct crawl_zipnum *z)
{
    if (!z)
        return;
    range_in_free(z->index);
    crawl_lines_free(&z->lines);
    buf_free(&z->bytes);
    free(z->folder);
    free(z->name);
    free(z);
}

uint64_t crawl_zipnum_bytes(const struct crawl_zipnum *z)
{
    return range_in_bytes(z->index);
}

uint64_t crawl_zipnum_requests(const struct crawl_zipnum *z)
{
    return range_in_requests(z->index);
}
