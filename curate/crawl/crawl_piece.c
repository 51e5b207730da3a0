#include "curate/crawl/crawl_piece.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "curate/crawl/crawl_lines.h"

enum { ROW_MAX = 16 << 20 /* bytes of a row as JSON */ };

struct crawl_reader {
    const struct where *where;
    struct range_in *ranges;
    struct crawl_entry entry;
    struct crawl_piece_counts counts;
    struct crawl_piece *piece; /* in hand */
    char *open;                /* the file that ranges has in hand */
    size_t at;                 /* of the next line in it; the next member */
    struct buf bytes;          /* of members */
    size_t members_at;         /* of the next one's bytes */
    uint64_t member;           /* where the one in hand stands in its file */
    struct file_in *in;
    struct crawl_lines lines;  /* of the member in hand */
    struct parquet_scan *scan;
    struct buf row;
    bool ended;
};

void crawl_piece_free(struct crawl_piece *p)
{
    buf_free(&p->lines);
    crawl_run_free(&p->run);
    parquet_table_close(p->table);
    *p = (struct crawl_piece){.kind = CRAWL_PIECE_NOTHING};
}

static ssize_t read_member(void *reader, void *p, size_t n, struct err *e)
{
    return file_read(((struct crawl_reader *)reader)->in, p, n, e);
}

static int skip_member(void *reader, struct err *e)
{
    return file_skip_member(((struct crawl_reader *)reader)->in, e);
}

int crawl_reader_new(struct crawl_reader **out, const struct where *w, struct range_in_pace *pace, struct err *e)
{
    struct crawl_reader *r = calloc(1, sizeof *r);
    int rc = r ? range_in_new(&r->ranges, pace, e) : err_set(e, ERR_NOMEM, "out of memory for an index");

    *out = NULL;
    if (rc == 0)
        rc = parquet_scan_new(&r->scan, e);
    if (rc < 0) {
        crawl_reader_free(r);
        return rc;
    }
    r->where = w;
    r->row.max = ROW_MAX;
    r->lines = (struct crawl_lines){.read = read_member, .skip = skip_member, .arg = r};
    *out = r;
    return 0;
}

void crawl_reader_free(struct crawl_reader *r)
{
    if (!r)
        return;
    file_close(r->in);
    parquet_scan_free(r->scan);
    range_in_free(r->ranges);
    crawl_lines_free(&r->lines);
    crawl_entry_free(&r->entry);
    buf_free(&r->bytes);
    buf_free(&r->row);
    free(r->open);
    free(r);
}

/* ---- beginning ---- */

/* Takes a file in hand, if it is not. */
static int turn(struct crawl_reader *r, const char *name, struct err *e)
{
    int rc;

    if (r->open && strcmp(r->open, name) == 0)
        return 0;
    free(r->open);
    r->open = NULL;
    rc = range_in_turn(r->ranges, name, e);
    if (rc == 0 && !(r->open = strdup(name)))
        rc = err_set(e, ERR_NOMEM, "out of memory for an index");
    return rc;
}

static int read_members(struct crawl_reader *r, const struct crawl_run *run, struct err *e)
{
    buf_clear(&r->bytes);
    if (buf_reserve(&r->bytes, (size_t)run->bytes) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    TRY(turn(r, run->file, e));
    return range_in_read(r->ranges, run->offset, r->bytes.p, (size_t)run->bytes, e);
}

int crawl_reader_begin(struct crawl_reader *r, struct crawl_piece *p, struct err *e)
{
    r->piece = p;
    r->at = r->members_at = 0;
    r->ended = true;
    if (p->kind == CRAWL_PIECE_MEMBERS)
        TRY(read_members(r, &p->run, e));
    if (p->kind == CRAWL_PIECE_ROWS) {
        TRY(turn(r, p->path, e));
        TRY(parquet_scan_begin(r->scan, p->table, p->group, r->ranges, e));
    }
    r->ended = false;
    return 0;
}

/* ---- entries ---- */

/* An entry of a line: as crawl_entry_cdxj; an error says where the line stands. */
static int take_line(struct crawl_reader *r, struct span line, uint64_t offset, struct err *e)
{
    int rc = crawl_entry_cdxj(&r->entry, line, e);

    return rc == ERR_FORMAT ? err_wrap(e, "line at byte %" PRIu64, offset) : rc;
}

static int next_of_lines(struct crawl_reader *r, struct err *e)
{
    const struct crawl_piece *p = r->piece;
    int rc = 0;

    while (rc == 0 && r->at < p->lines.n) {
        size_t from = r->at, left = p->lines.n - from;
        const char *line = p->lines.p + from, *nl = memchr(line, '\n', left);
        size_t n = nl ? (size_t)(nl - line) : left;

        r->at += n + (nl != NULL);
        n -= n && line[n - 1] == '\r';
        rc = take_line(r, (struct span){line, n}, p->offset + from, e);
    }
    return rc == ERR_FORMAT ? err_wrap(e, "'%s'", p->name) : rc;
}

/* Opens the next member: 1; 0: there is none. */
static int open_member(struct crawl_reader *r, struct err *e)
{
    const struct crawl_run *run = &r->piece->run;
    struct span bytes;

    if (r->at == run->n)
        return 0;
    bytes = (struct span){r->bytes.p + r->members_at, (size_t)run->length[r->at]};
    r->member = run->offset + r->members_at;
    r->members_at += bytes.n;
    r->at++;
    r->counts.members++;
    crawl_lines_reset(&r->lines);
    TRY(file_open_mem(&r->in, run->file, bytes, e));
    return 1;
}

/* The next entry of the member in hand: 1; 0: there is none. */
static int next_of_member(struct crawl_reader *r, struct err *e)
{
    struct span line;
    uint64_t offset;
    int rc;

    do {
        rc = crawl_lines_next(&r->lines, &line, &offset, e);
        if (rc == 1)
            rc = take_line(r, line, offset, e);
        else if (rc == 0)
            return 0;
    } while (rc == 0);
    return rc == ERR_FORMAT ? err_wrap(e, "'%s', member at byte %" PRIu64, r->piece->run.file, r->member) : rc;
}

static int next_of_members(struct crawl_reader *r, struct err *e)
{
    for (;;) {
        int rc = r->in ? next_of_member(r, e) : 0;

        if (rc != 0)
            return rc;
        file_close(r->in);
        r->in = NULL;
        rc = open_member(r, e);
        if (rc <= 0)
            return rc;
    }
}

static int next_of_rows(struct crawl_reader *r, struct err *e)
{
    int rc;

    buf_clear(&r->row);
    rc = parquet_scan_next(r->scan, &r->row, e);
    r->ended = rc < 0;
    if (rc <= 0)
        return rc == ERR_LIMIT || rc == ERR_UNSUPPORTED ? e->code = ERR_FORMAT : rc;
    if (buf_reserve(&r->row, JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a row");
    rc = crawl_entry_json(&r->entry, (struct span){r->row.p, r->row.n - 1}, e);
    return rc == ERR_FORMAT ? err_wrap(e, "'%s', row %" PRIu64, r->piece->name, parquet_scan_row(r->scan)) : rc;
}

/* The next entry of the piece in hand: 1; 0: there is none. */
static int next_here(struct crawl_reader *r, struct err *e)
{
    if (r->ended)
        return 0;
    switch (r->piece->kind) {
    case CRAWL_PIECE_LINES: return next_of_lines(r, e);
    case CRAWL_PIECE_MEMBERS: return next_of_members(r, e);
    case CRAWL_PIECE_ROWS: return next_of_rows(r, e);
    case CRAWL_PIECE_NOTHING: break;
    }
    return 0;
}

int crawl_reader_next(struct crawl_reader *r, struct crawl_entry **entry, struct err *e)
{
    for (;;) {
        int rc = next_here(r, e);

        if (rc <= 0)
            return rc;
        r->counts.entries++;
        rc = r->where ? crawl_entry_meets(&r->entry, r->where, e) : 1;
        if (rc < 0)
            return err_wrap(e, "'%s': an entry", r->piece->name);
        *entry = &r->entry;
        if (rc == 1)
            return 1;
    }
}

void crawl_reader_count(const struct crawl_reader *r, struct crawl_piece_counts *n)
{
    *n = r->counts;
}

uint64_t crawl_reader_bytes(const struct crawl_reader *r)
{
    return range_in_bytes(r->ranges);
}

uint64_t crawl_reader_requests(const struct crawl_reader *r)
{
    return range_in_requests(r->ranges);
}
