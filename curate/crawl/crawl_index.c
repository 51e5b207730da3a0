#include "curate/crawl/crawl_index.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/http.h"
#include "base/parquet_table.h"
#include "curate/crawl/crawl_lines.h"
#include "curate/crawl/crawl_places.h"
#include "curate/crawl/crawl_prune.h"
#include "curate/crawl/crawl_zipnum.h"

enum { HEAD = 4096, LINES = 1 << 20 /* bytes of lines that are a piece, about */ };

struct crawl_index {
    struct crawl_index_conf conf;
    struct crawl_places places;
    char **shown;           /* what messages call each that was opened */
    struct crawl_keys keys;
    uint32_t needed; /* fields */
    struct crawl_index_counts counts; /* of what is closed */
    struct crawl_prune prune;
    int at;                 /* the place behind the one in hand */
    bool open;
    /* The one in hand: lines, ZipNum, or a table. */
    struct file_in *in;
    struct crawl_lines lines;
    struct crawl_zipnum *zipnum;
    struct range_in *ranges;
    struct parquet_table *table;
    size_t group;           /* the next one */
};

static ssize_t read_lines(void *index, void *p, size_t n, struct err *e)
{
    return file_read(((struct crawl_index *)index)->in, p, n, e);
}

static int skip_lines(void *index, struct err *e)
{
    return file_skip_member(((struct crawl_index *)index)->in, e);
}

/* ---- opening ---- */

static void close_place(struct crawl_index *x)
{
    if (x->in)
        x->counts.bytes += file_consumed(x->in);
    if (x->zipnum) {
        x->counts.bytes += crawl_zipnum_bytes(x->zipnum);
        x->counts.requests += crawl_zipnum_requests(x->zipnum);
    }
    file_close(x->in);
    crawl_zipnum_close(x->zipnum);
    parquet_table_close(x->table);
    x->in = NULL;
    x->zipnum = NULL;
    x->table = NULL;
    x->open = false;
}

static bool wants_column(void *index, struct span name)
{
    return crawl_column_needed(&((struct crawl_index *)index)->needed, name);
}

static bool wants_group(void *index, const struct parquet_table *t, size_t group)
{
    return crawl_prune_wants(&((const struct crawl_index *)index)->prune, t, group);
}

/* A table must have the columns that no entry can do without. */
static int check_columns(const struct crawl_index *x, struct err *e)
{
    static const char *const wanted[] = {"warc_filename", "warc_record_offset", "warc_record_length"};
    static const char *const else_wanted[] = {"file", "offset", "length"};

    for (int i = 0; i < 3; i++)
        if (!parquet_table_has(x->table, wanted[i]) && !parquet_table_has(x->table, else_wanted[i]))
            return err_set(e, ERR_ARG, "'%s' is no index of a crawl: it has no column '%s'", range_in_name(x->ranges), wanted[i]);
    return 0;
}

/* What messages call a file: of an address what stands before its query. */
static int show_name(char **shown, const char *name, struct err *e)
{
    *shown = http_is_address(name) ? http_name(name) : strdup(strcmp(name, "-") == 0 ? "standard input" : name);
    return *shown ? 0 : err_set(e, ERR_NOMEM, "out of memory for an index");
}

/* Opens an index by what it begins with. */
static int open_place(struct crawl_index *x, const char *name, struct err *e)
{
    char head[HEAD];
    int64_t k = 0, n = 0;

    x->open = true;
    x->counts.files++;
    TRY(show_name(&x->shown[x->at - 1], name, e));
    if (strcmp(name, "-") != 0) {
        TRY(range_in_turn(x->ranges, name, e));
        TRY(range_in_ask(x->ranges, 0, HEAD, e));
        while ((k = range_in_next(x->ranges, head + n, (size_t)(HEAD - n), e)) > 0)
            n += k;
        if (k < 0)
            return (int)k;
    }
    if (n >= 4 && memcmp(head, "PAR1", 4) == 0) {
        x->group = 0;
        TRY(parquet_table_open(&x->table, x->ranges, &(struct parquet_wants){wants_column, wants_group, x}, e));
        return check_columns(x, e);
    }
    if (crawl_is_zipnum((struct span){head, (size_t)n}))
        return crawl_zipnum_open(&x->zipnum, name, &x->keys, x->conf.pace, e);
    crawl_lines_reset(&x->lines);
    return file_open(&x->in, name, e);
}

/* ---- pieces ---- */

/* Puts down what a piece had in hand but for its memory. */
static void renew(struct crawl_piece *p)
{
    parquet_table_close(p->table);
    p->table = NULL;
    free(p->run.file);
    p->run.file = NULL;
    buf_clear(&p->lines);
    p->why.code = 0;
    p->kind = CRAWL_PIECE_NOTHING;
}

/* Takes lines up to LINES bytes: 1; 0: there are none.  What is wrong behind them is the piece's. */
static int take_lines(struct crawl_index *x, struct crawl_piece *p, struct err *e)
{
    struct buf *b = &p->lines;
    struct span line;
    uint64_t offset;
    int rc = 0;

    p->offset = x->lines.offset;
    while (b->n < LINES) {
        rc = crawl_lines_next(&x->lines, &line, &offset, &p->why);
        if (rc <= 0)
            break;
        if (b->n == 0)
            p->offset = offset;
        if (buf_put(b, line.p, (size_t)(x->lines.offset - offset)) < 0) /* its end with it */
            return err_set(e, ERR_NOMEM, "out of memory for lines");
    }
    if (rc == ERR_FORMAT)
        err_wrap(&p->why, "'%s'", file_name(x->in));
    if (rc < 0 && b->n == 0) {
        *e = p->why;
        return rc;
    }
    if (buf_reserve(b, JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for lines");
    p->kind = CRAWL_PIECE_LINES;
    return b->n > 0;
}

/* Takes the next row group that is wanted: 1; 0: there is none. */
static int take_group(struct crawl_index *x, struct crawl_piece *p)
{
    while (x->group < parquet_table_groups(x->table)) {
        size_t g = x->group++;

        x->counts.groups++;
        if (parquet_table_wanted(x->table, g)) {
            p->kind = CRAWL_PIECE_ROWS;
            p->table = parquet_table_share(x->table);
            p->group = g;
            return 1;
        }
        x->counts.passed_groups++;
        x->counts.passed_bytes += parquet_table_bytes(x->table, g);
    }
    return 0;
}

/* The next piece of the index in hand: 1; 0: there is none. */
static int take_piece(struct crawl_index *x, struct crawl_piece *p, struct err *e)
{
    if (x->table)
        return take_group(x, p);
    if (x->zipnum) {
        p->kind = CRAWL_PIECE_MEMBERS;
        return crawl_zipnum_next(x->zipnum, &p->run, e);
    }
    return x->in ? take_lines(x, p, e) : 0;
}

int crawl_index_next(struct crawl_index *x, struct crawl_piece *p, struct err *e)
{
    renew(p);
    for (;;) {
        int rc;

        if (!x->open) {
            if (x->at == x->places.n)
                return 0;
            TRY(open_place(x, x->places.v[x->at++], e));
        }
        p->name = x->shown[x->at - 1];
        p->path = x->places.v[x->at - 1];
        rc = take_piece(x, p, e);
        if (rc != 0)
            return rc;
        close_place(x);
    }
}

/* ---- the whole ---- */

int crawl_index_open(struct crawl_index **out, const struct crawl_index_conf *c, const char *const *names, int n, struct err *e)
{
    struct crawl_index *x = calloc(1, sizeof *x);
    int rc = x ? range_in_new(&x->ranges, c->pace, e) : err_set(e, ERR_NOMEM, "out of memory for an index");

    *out = NULL;
    if (rc == 0) {
        x->conf = *c;
        x->prune = (struct crawl_prune){c->where, &x->keys};
        x->needed = crawl_fields_needed(c->where);
        x->lines = (struct crawl_lines){.read = read_lines, .skip = skip_lines, .arg = x};
        rc = crawl_keys_find(&x->keys, c->where, e);
    }
    for (int i = 0; i < n && rc == 0; i++)
        rc = crawl_places_add(&x->places, names[i], c, !x->keys.all, e);
    if (rc == 0 && !(x->shown = calloc((size_t)x->places.n + 1, sizeof *x->shown)))
        rc = err_set(e, ERR_NOMEM, "out of memory for an index");
    if (rc < 0)
        crawl_index_close(x);
    else
        *out = x;
    return rc;
}

void crawl_index_close(struct crawl_index *x)
{
    if (!x)
        return;
    close_place(x);
    range_in_free(x->ranges);
    crawl_lines_free(&x->lines);
    for (int i = 0; x->shown && i < x->places.n; i++)
        free(x->shown[i]);
    free(x->shown);
    crawl_places_free(&x->places);
    crawl_keys_free(&x->keys);
    free(x);
}

void crawl_index_count(const struct crawl_index *x, struct crawl_index_counts *n)
{
    *n = x->counts;
    n->bytes += range_in_bytes(x->ranges);
    n->requests += range_in_requests(x->ranges);
    if (x->zipnum) {
        n->bytes += crawl_zipnum_bytes(x->zipnum);
        n->requests += crawl_zipnum_requests(x->zipnum);
    } else if (x->in) {
        n->bytes += file_consumed(x->in);
    }
}
