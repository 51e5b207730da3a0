#include "base/parquet_write.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/parquet_chunk.h"
#include "base/version.h"

enum { LINE_MAX_BYTES = 1 << 30 };

/* A column: its values in the row group that is gathered, and its chunks in those that are written. */
struct column {
    struct span name; /* in the writer's arena */
    unsigned seen, now; /* kinds of all values, and of this row group's */
    struct parquet_cell *cell;
    size_t n, cap;
    struct parquet_written *chunk; /* of each group from `first` on */
    size_t first, n_chunks, cap_chunks;
};

struct parquet_writer {
    struct parquet_packer packer;
    struct arena arena;
    struct json_reader *json;
    struct buf lines;
    size_t done;     /* bytes of lines that are cells */
    uint32_t rows;   /* of this row group, */
    uint32_t most;   /*   at most */
    uint64_t line;   /* read so far */
    struct column *column;
    size_t n_columns, cap_columns;
    uint32_t *group; /* rows of those written */
    size_t n_groups, cap_groups;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for rows");
}

int parquet_writer_open(struct parquet_writer **out, const struct parquet_sink *s, int64_t group_rows, struct err *e)
{
    struct parquet_writer *w = calloc(1, sizeof *w);
    int rc = w ? parquet_packer_open(&w->packer, s, e) : no_memory(e);

    *out = NULL;
    if (rc == 0 && !(w->json = json_reader_new()))
        rc = no_memory(e);
    if (rc < 0) {
        parquet_writer_close(w);
        return rc;
    }
    w->most = group_rows ? (uint32_t)group_rows : PARQUET_GROUP_ROWS;
    *out = w;
    return 0;
}

void parquet_writer_close(struct parquet_writer *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_columns; i++) {
        free(w->column[i].cell);
        free(w->column[i].chunk);
    }
    free(w->column);
    free(w->group);
    parquet_packer_close(&w->packer);
    json_reader_free(w->json);
    buf_free(&w->lines);
    arena_free(&w->arena);
    free(w);
}

/* ---- lines ---- */

/* The column of a key, which may be new; `at` is where it is if the line has the keys of the one before. */
static struct column *column_of(struct parquet_writer *w, struct span key, size_t at, struct err *e)
{
    struct column *c;

    if (at < w->n_columns && span_eq(w->column[at].name, key))
        return &w->column[at];
    for (size_t i = 0; i < w->n_columns; i++)
        if (span_eq(w->column[i].name, key))
            return &w->column[i];
    if (w->n_columns == PARQUET_COLUMNS_MAX) {
        err_set(e, ERR_LIMIT, "line %" PRIu64 ": more than %d different keys are no columns of a Parquet file", w->line,
                PARQUET_COLUMNS_MAX);
        return NULL;
    }
    if (mem_grow(&w->column, &w->cap_columns, w->n_columns + 1, sizeof *c) < 0) {
        no_memory(e);
        return NULL;
    }
    c = &w->column[w->n_columns];
    *c = (struct column){.name = arena_dup(&w->arena, key), .first = w->n_groups};
    if (!c->name.p) {
        no_memory(e);
        return NULL;
    }
    w->n_columns++;
    return c;
}

/* The values of a line become cells. */
static int add_line(struct parquet_writer *w, struct span line, struct err *e)
{
    const struct json_field *field;
    int n = json_read_object(w->json, line, &field, e);

    if (n < 0)
        return err_wrap(e, "line %" PRIu64 " is no row", w->line);
    for (int i = 0; i < n; i++) {
        unsigned seen = parquet_seen(field[i].raw, field[i].type);
        struct column *c = column_of(w, field[i].key, (size_t)i, e);

        if (!c)
            return e->code;
        if (!seen)
            continue;
        if (mem_grow(&c->cell, &c->cap, c->n + 1, sizeof *c->cell) < 0)
            return no_memory(e);
        c->cell[c->n++] = (struct parquet_cell){(uint64_t)(field[i].raw.p - w->lines.p), (uint32_t)field[i].raw.n, w->rows};
        c->seen |= seen;
        c->now |= seen;
    }
    w->rows++;
    return 0;
}

static int add_chunk(struct column *c, const struct parquet_written *x, struct err *e)
{
    if (mem_grow(&c->chunk, &c->cap_chunks, c->n_chunks + 1, sizeof *x) < 0)
        return no_memory(e);
    c->chunk[c->n_chunks++] = *x;
    return 0;
}

/* Writes the row group that has been gathered. */
static int end_group(struct parquet_writer *w, struct err *e)
{
    for (size_t i = 0; i < w->n_columns; i++) {
        struct column *c = &w->column[i];
        struct parquet_written x = {.nulls = w->rows};

        if (c->n)
            TRY(parquet_pack_chunk(&w->packer, parquet_kind_now(c->now), w->lines.p, c->cell, c->n, w->rows, &x, e));
        TRY(add_chunk(c, &x, e));
        c->n = 0;
        c->now = 0;
    }
    if (mem_grow(&w->group, &w->cap_groups, w->n_groups + 1, sizeof *w->group) < 0)
        return no_memory(e);
    w->group[w->n_groups++] = w->rows;
    memmove(w->lines.p, w->lines.p + w->done, w->lines.n - w->done);
    w->lines.n -= w->done;
    w->done = 0;
    w->rows = 0;
    return 0;
}

static bool is_blank(struct span line)
{
    while (line.n && ascii_is_space((unsigned char)*line.p))
        line.p++, line.n--;
    return line.n == 0;
}

/* Takes the lines that have come whole, and with `all` what stands behind the last newline. */
static int take_lines(struct parquet_writer *w, size_t looked, bool all, struct err *e)
{
    if (buf_reserve(&w->lines, JSON_PADDING) < 0)
        return no_memory(e);
    while (w->done < w->lines.n) {
        const char *p = w->lines.p + w->done, *from = looked > w->done ? w->lines.p + looked : p;
        const char *nl = memchr(from, '\n', (size_t)(w->lines.p + w->lines.n - from));
        struct span line = {p, (size_t)((nl ? nl : w->lines.p + w->lines.n) - p)};

        if (line.n > LINE_MAX_BYTES)
            return err_set(e, ERR_LIMIT, "line %" PRIu64 " is longer than %d bytes", w->line + 1, LINE_MAX_BYTES);
        if (!nl && !all)
            return 0;
        looked = 0;
        w->line++;
        if (!is_blank(line))
            TRY(add_line(w, line, e));
        w->done += line.n + (nl != NULL);
        if (w->done >= PARQUET_GROUP_BYTES || w->rows == w->most)
            TRY(end_group(w, e));
    }
    return 0;
}

int parquet_writer_put(struct parquet_writer *w, const char *p, size_t n, struct err *e)
{
    size_t looked = w->lines.n;

    if (w->packer.at == 0)
        TRY(parquet_pack_put(&w->packer, span_of("PAR1"), e));
    if (buf_put(&w->lines, p, n) < 0)
        return no_memory(e);
    return take_lines(w, looked, false, e);
}

/* ---- what is known at the end only ---- */

static int read_back(void *arg, uint64_t at, void *p, size_t n, struct err *e)
{
    const struct parquet_sink *s = arg;

    return s->get(s->arg, at, p, n, e);
}

/* The values of a chunk that was written, as JSON in w->lines and cells of c. */
static int read_cells(struct parquet_writer *w, struct column *c, const struct parquet_written *x, uint32_t rows, struct err *e)
{
    struct parquet_source source = {.read = read_back, .arg = &w->packer.sink, .size = w->packer.at};
    struct parquet_node leaf = parquet_leaf_of(x->kind);
    struct parquet_column in = {0};
    int rc = 0;

    parquet_column_start(&in, &source, &leaf,
                         &(struct parquet_chunk){.at = x->at, .bytes = x->bytes, .n = rows, .codec = PARQUET_ZSTD});
    buf_clear(&w->lines);
    c->n = 0;
    for (uint32_t row = 0; row < rows && rc >= 0; row++) {
        size_t from = w->lines.n;
        struct span value;

        rc = parquet_column_peek(&in, e);
        if (rc == 0)
            rc = err_set(e, ERR_IO, "what was written is not what is read");
        in.ready = false;
        if (rc < 0 || in.def == 0)
            continue;
        rc = parquet_values_next(&in.values, &value, e);
        if (rc == 0)
            rc = x->kind == KIND_JSON ? buf_put_span(&w->lines, value) : parquet_put_value(&w->lines, &leaf, value);
        if (rc == 0)
            rc = mem_grow(&c->cell, &c->cap, c->n + 1, sizeof *c->cell);
        if (rc == 0)
            c->cell[c->n++] = (struct parquet_cell){from, (uint32_t)(w->lines.n - from), row};
    }
    parquet_column_free(&in);
    return rc == ERR_NOMEM ? no_memory(e) : rc < 0 ? rc : 0;
}

/* Writes what is not as it has to be: chunks of another kind than the column has by all its values, and those of nulls alone. */
static int settle(struct parquet_writer *w, struct column *c, struct err *e)
{
    enum parquet_kind kind = parquet_kind_of(c->seen);
    size_t n = c->n_chunks;

    if (kind == KIND_NONE)
        kind = KIND_TEXT;
    for (size_t g = 0; g < w->n_groups; g++) {
        struct parquet_written none = {.nulls = w->group[g]}, *x = g < c->first ? &none : &c->chunk[g - c->first];

        if (x->kind == kind)
            continue;
        c->n = 0;
        if (x->kind != KIND_NONE)
            TRY(read_cells(w, c, x, w->group[g], e));
        TRY(parquet_pack_chunk(&w->packer, kind, w->lines.p, c->cell, c->n, w->group[g], x, e));
        if (g < c->first)
            TRY(add_chunk(c, x, e));
    }
    /* those before the column was known stand behind the others: turn them round */
    for (size_t i = 0; c->n_chunks > n; i++, n++) {
        struct parquet_written x = c->chunk[n];
        memmove(c->chunk + i + 1, c->chunk + i, (n - i) * sizeof x);
        c->chunk[i] = x;
    }
    c->first = 0;
    return 0;
}

static int put_key_value(struct buf *b, const char *key, const char *value)
{
    int last = 0;

    TRY(thrift_put_binary(b, &last, 1, span_of(key)));
    TRY(thrift_put_binary(b, &last, 2, span_of(value)));
    return thrift_put_stop(b);
}

/* A Statistics: nulls, and the range of integers and of texts. */
static int put_statistics(struct buf *b, const struct parquet_written *x)
{
    struct span least = {(const char *)&x->least, sizeof x->least}, most = {(const char *)&x->most, sizeof x->most};
    bool text = x->kind == KIND_TEXT, bounded = x->has_range;
    char own[PARQUET_BOUND];
    int last = 0;

    if (text && bounded) {
        least = parquet_bound_least(&x->least_text);
        bounded = parquet_bound_most(&x->most_text, own, &most);
    }
    TRY(thrift_put_int(b, &last, 3, THRIFT_I64, (int64_t)x->nulls));
    if (bounded) {
        TRY(thrift_put_binary(b, &last, 5, most));
        TRY(thrift_put_binary(b, &last, 6, least));
    }
    if (text && bounded) {
        TRY(thrift_put_field(b, &last, 7, x->most_text.cut ? THRIFT_FALSE : THRIFT_TRUE));
        TRY(thrift_put_field(b, &last, 8, x->least_text.cut ? THRIFT_FALSE : THRIFT_TRUE));
    }
    return thrift_put_stop(b);
}

/* A ColumnChunk. */
static int put_chunk(struct buf *b, const struct column *c, size_t group, uint32_t rows)
{
    const struct parquet_written *x = &c->chunk[group];
    int chunk = 0, meta = 0;

    TRY(thrift_put_int(b, &chunk, 2, THRIFT_I64, 0));
    TRY(thrift_put_field(b, &chunk, 3, THRIFT_STRUCT));
    TRY(thrift_put_int(b, &meta, 1, THRIFT_I32, parquet_leaf_of(x->kind).type));
    TRY(thrift_put_list(b, &meta, 2, THRIFT_I32, x->dictionary ? 3 : 2));
    TRY(thrift_put_zigzag(b, PARQUET_PLAIN));
    TRY(thrift_put_zigzag(b, PARQUET_RLE));
    if (x->dictionary)
        TRY(thrift_put_zigzag(b, PARQUET_RLE_DICTIONARY));
    TRY(thrift_put_list(b, &meta, 3, THRIFT_BINARY, 1));
    TRY(thrift_put_bytes(b, c->name));
    TRY(thrift_put_int(b, &meta, 4, THRIFT_I32, PARQUET_ZSTD));
    TRY(thrift_put_int(b, &meta, 5, THRIFT_I64, rows));
    TRY(thrift_put_int(b, &meta, 6, THRIFT_I64, (int64_t)x->plain_bytes));
    TRY(thrift_put_int(b, &meta, 7, THRIFT_I64, (int64_t)x->bytes));
    TRY(thrift_put_int(b, &meta, 9, THRIFT_I64, (int64_t)x->data_at));
    if (x->dictionary)
        TRY(thrift_put_int(b, &meta, 11, THRIFT_I64, (int64_t)x->at));
    TRY(thrift_put_field(b, &meta, 12, THRIFT_STRUCT));
    TRY(put_statistics(b, x));
    TRY(thrift_put_stop(b));
    return thrift_put_stop(b);
}

/* A RowGroup. */
static int put_group(struct buf *b, const struct parquet_writer *w, size_t group)
{
    int64_t plain = 0, bytes = 0;
    int last = 0;

    TRY(thrift_put_list(b, &last, 1, THRIFT_STRUCT, w->n_columns));
    for (size_t i = 0; i < w->n_columns; i++) {
        TRY(put_chunk(b, &w->column[i], group, w->group[group]));
        plain += (int64_t)w->column[i].chunk[group].plain_bytes;
        bytes += (int64_t)w->column[i].chunk[group].bytes;
    }
    TRY(thrift_put_int(b, &last, 2, THRIFT_I64, plain));
    TRY(thrift_put_int(b, &last, 3, THRIFT_I64, w->group[group]));
    TRY(thrift_put_int(b, &last, 6, THRIFT_I64, bytes));
    return thrift_put_stop(b);
}

/* A SchemaElement; the root has no column. */
static int put_element(struct buf *b, const struct column *c, size_t children)
{
    enum parquet_kind kind = c ? parquet_kind_of(c->seen) : KIND_NONE;
    bool text = kind == KIND_NONE || kind == KIND_TEXT || kind == KIND_JSON, json = kind == KIND_JSON;
    int last = 0, logical = 0;

    if (!c) {
        TRY(thrift_put_binary(b, &last, 4, span_of("schema")));
        TRY(thrift_put_int(b, &last, 5, THRIFT_I32, (int64_t)children));
        return thrift_put_stop(b);
    }
    TRY(thrift_put_int(b, &last, 1, THRIFT_I32, parquet_leaf_of(kind).type));
    TRY(thrift_put_int(b, &last, 3, THRIFT_I32, 1)); /* optional */
    TRY(thrift_put_binary(b, &last, 4, c->name));
    if (text) {
        TRY(thrift_put_int(b, &last, 6, THRIFT_I32, json ? 19 : 0)); /* ConvertedType: JSON, UTF8 */
        TRY(thrift_put_field(b, &last, 10, THRIFT_STRUCT));
        TRY(thrift_put_field(b, &logical, json ? 12 : 1, THRIFT_STRUCT)); /* LogicalType: JSON, STRING */
        TRY(thrift_put_stop(b));
        TRY(thrift_put_stop(b));
    }
    return thrift_put_stop(b);
}

/* The FileMetaData. */
static int put_meta(struct buf *b, const struct parquet_writer *w)
{
    int64_t rows = 0;
    int last = 0;

    TRY(thrift_put_int(b, &last, 1, THRIFT_I32, 2));
    TRY(thrift_put_list(b, &last, 2, THRIFT_STRUCT, w->n_columns + 1));
    TRY(put_element(b, NULL, w->n_columns));
    for (size_t i = 0; i < w->n_columns; i++)
        TRY(put_element(b, &w->column[i], 0));
    for (size_t g = 0; g < w->n_groups; g++)
        rows += w->group[g];
    TRY(thrift_put_int(b, &last, 3, THRIFT_I64, rows));
    TRY(thrift_put_list(b, &last, 4, THRIFT_STRUCT, w->n_groups));
    for (size_t g = 0; g < w->n_groups; g++)
        TRY(put_group(b, w, g));
    TRY(thrift_put_list(b, &last, 5, THRIFT_STRUCT, 1));
    TRY(put_key_value(b, "quern", QUERN_VERSION));
    TRY(thrift_put_binary(b, &last, 6, span_of("quern version " QUERN_VERSION)));
    TRY(thrift_put_list(b, &last, 7, THRIFT_STRUCT, w->n_columns));
    for (size_t i = 0; i < w->n_columns; i++) { /* ColumnOrder: as the type has it */
        int order = 0;
        TRY(thrift_put_field(b, &order, 1, THRIFT_STRUCT));
        TRY(thrift_put_stop(b));
        TRY(thrift_put_stop(b));
    }
    return thrift_put_stop(b);
}

int parquet_writer_finish(struct parquet_writer *w, struct err *e)
{
    struct buf meta = {0};
    uint32_t n;
    int rc;

    TRY(parquet_writer_put(w, "", 0, e)); /* PAR1, if nothing else */
    TRY(take_lines(w, 0, true, e));
    if (w->rows)
        TRY(end_group(w, e));
    if (w->n_columns == 0 && !column_of(w, span_of("text"), 0, e)) /* a file of no columns is none */
        return e->code;
    for (size_t i = 0; i < w->n_columns; i++)
        TRY(settle(w, &w->column[i], e));
    rc = put_meta(&meta, w);
    n = (uint32_t)meta.n;
    if (rc == 0)
        rc = buf_put(&meta, &n, sizeof n);
    if (rc == 0)
        rc = buf_puts(&meta, "PAR1");
    if (rc < 0)
        no_memory(e);
    else if (n > PARQUET_FOOTER_MAX)
        rc = err_set(e, ERR_LIMIT, "the metadata have more than %d bytes", PARQUET_FOOTER_MAX);
    else
        rc = parquet_pack_put(&w->packer, buf_span(&meta), e);
    buf_free(&meta);
    return rc;
}
