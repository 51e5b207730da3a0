#include "curate/crawl/crawl_index.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/parquet_table.h"
#include "curate/crawl/crawl_lines.h"
#include "curate/crawl/crawl_places.h"
#include "curate/crawl/crawl_zipnum.h"

enum { HEAD = 4096, ROW_MAX = 16 << 20 /* bytes of a row as JSON */ };

struct crawl_index {
    struct crawl_index_conf conf;
    struct crawl_places places;
    struct crawl_keys keys;
    uint32_t needed; /* fields */
    struct crawl_index_counts counts; /* of what is closed */
    struct crawl_entry entry;
    int at;                 /* the place behind the one in hand */
    bool open;
    /* The one in hand: lines, of a file or of a member of ZipNum, or a table. */
    struct file_in *in;
    struct crawl_lines lines;
    struct crawl_zipnum *zipnum;
    struct crawl_block block;
    struct range_in *ranges;
    struct parquet_table *table;
    struct buf row;
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
    if (x->in && !x->zipnum)
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

/* Opens an index by what it begins with. */
static int open_place(struct crawl_index *x, const char *name, struct err *e)
{
    char head[HEAD];
    int64_t k = 0, n = 0;

    x->open = true;
    x->counts.files++;
    if (strcmp(name, "-") != 0) {
        TRY(range_in_turn(x->ranges, name, e));
        TRY(range_in_ask(x->ranges, 0, HEAD, e));
        while ((k = range_in_next(x->ranges, head + n, (size_t)(HEAD - n), e)) > 0)
            n += k;
        if (k < 0)
            return (int)k;
    }
    if (n >= 4 && memcmp(head, "PAR1", 4) == 0) {
        TRY(parquet_table_open(&x->table, x->ranges, crawl_column_needed, &x->needed, e));
        return check_columns(x, e);
    }
    if (crawl_is_zipnum((struct span){head, (size_t)n}))
        return crawl_zipnum_open(&x->zipnum, name, &x->keys, x->conf.pace, e);
    crawl_lines_reset(&x->lines);
    return file_open(&x->in, name, e);
}

/* Opens the next member of ZipNum: 1; 0: there is none. */
static int open_block(struct crawl_index *x, struct err *e)
{
    int rc = crawl_zipnum_next(x->zipnum, &x->block, e);

    if (rc <= 0)
        return rc;
    x->counts.blocks++;
    crawl_lines_reset(&x->lines);
    rc = file_open_mem(&x->in, x->block.file, x->block.bytes, e);
    return rc < 0 ? rc : 1;
}

/* ---- entries ---- */

/* Says where a bad line stands. */
static int name_line(const struct crawl_index *x, struct err *e)
{
    if (x->zipnum)
        return err_wrap(e, "'%s', member at byte %" PRIu64, x->block.file, x->block.offset);
    return err_wrap(e, "'%s'", file_name(x->in));
}

/* The next entry of the lines in hand: 1; 0: there is none. */
static int next_of_lines(struct crawl_index *x, struct err *e)
{
    struct span line;
    uint64_t offset;
    int rc;

    do {
        rc = crawl_lines_next(&x->lines, &line, &offset, e);
        if (rc < 0)
            return rc == ERR_FORMAT ? name_line(x, e) : rc;
        if (rc == 0)
            return 0;
        rc = crawl_entry_cdxj(&x->entry, line, e);
    } while (rc == 0);
    if (rc == ERR_FORMAT) {
        err_wrap(e, "line at byte %" PRIu64, offset);
        return name_line(x, e);
    }
    return rc;
}

static int next_of_table(struct crawl_index *x, struct err *e)
{
    uint64_t row = parquet_table_row(x->table);
    int rc;

    buf_clear(&x->row);
    rc = parquet_table_next(x->table, &x->row, e);
    if (rc <= 0)
        return rc == ERR_LIMIT || rc == ERR_UNSUPPORTED ? e->code = ERR_FORMAT : rc;
    if (buf_reserve(&x->row, JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a row");
    rc = crawl_entry_json(&x->entry, (struct span){x->row.p, x->row.n - 1}, e);
    return rc == ERR_FORMAT ? err_wrap(e, "'%s', row %" PRIu64, range_in_name(x->ranges), row) : rc;
}

/* The next entry of the index in hand: 1; 0: there is none. */
static int next_here(struct crawl_index *x, struct err *e)
{
    if (x->table)
        return next_of_table(x, e);
    for (;;) {
        int rc = x->in ? next_of_lines(x, e) : 0;

        if (rc != 0 || !x->zipnum)
            return rc;
        file_close(x->in);
        x->in = NULL;
        rc = open_block(x, e);
        if (rc <= 0)
            return rc;
    }
}

int crawl_index_next(struct crawl_index *x, struct crawl_entry **entry, struct err *e)
{
    for (;;) {
        int rc;

        if (!x->open) {
            if (x->at == x->places.n)
                return 0;
            TRY(open_place(x, x->places.v[x->at++], e));
        }
        rc = next_here(x, e);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            close_place(x);
            continue;
        }
        x->counts.entries++;
        rc = x->conf.where ? crawl_entry_meets(&x->entry, x->conf.where, e) : 1;
        if (rc < 0)
            return err_wrap(e, "'%s': an entry", x->places.v[x->at - 1]);
        if (rc == 1) {
            *entry = &x->entry;
            return 1;
        }
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
        x->row.max = ROW_MAX;
        x->needed = crawl_fields_needed(c->where);
        x->lines = (struct crawl_lines){.read = read_lines, .skip = skip_lines, .arg = x};
        rc = crawl_keys_find(&x->keys, c->where, e);
    }
    for (int i = 0; i < n && rc == 0; i++)
        rc = crawl_places_add(&x->places, names[i], c, !x->keys.all, e);
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
    crawl_entry_free(&x->entry);
    crawl_places_free(&x->places);
    crawl_keys_free(&x->keys);
    buf_free(&x->row);
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

const char *crawl_index_where(const struct crawl_index *x, int *done, int *all)
{
    *done = x->at - x->open;
    *all = x->places.n;
    return x->open ? x->places.v[x->at - 1] : NULL;
}
