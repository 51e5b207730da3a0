#include <inttypes.h>
#include <stdlib.h>

#include "base/parquet.h"

enum { HEAD = 4 };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the metadata");
}

/* A ColumnMetaData. */
struct column_meta {
    int64_t type, codec, n, bytes, data, dictionary;
    struct span statistics;
    bool there;
};

/* The bytes of the value that t stands at, which is passed over. */
static struct span take_value(struct thrift *t)
{
    const uint8_t *from = t->p;

    thrift_skip(t);
    return (struct span){(const char *)from, t->bad ? 0 : (size_t)(t->p - from)};
}

static void read_column_meta(struct thrift *t, struct column_meta *c)
{
    c->there = true;
    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        switch (id) {
        case 1: c->type = thrift_int(t); break;
        case 4: c->codec = thrift_int(t); break;
        case 5: c->n = thrift_int(t); break;
        case 7: c->bytes = thrift_int(t); break;
        case 9: c->data = thrift_int(t); break;
        case 11: c->dictionary = thrift_int(t); break;
        default: {
            bool statistics = id == 12 && t->type == THRIFT_STRUCT;
            struct span s = take_value(t);
            c->statistics = statistics ? s : c->statistics;
        }
        }
    }
}

/* A ColumnChunk of a leaf, held against where the pages of a file can be: behind PAR1 and before the metadata. */
static int read_chunk(struct thrift *t, const struct parquet_node *leaf, uint64_t end, struct parquet_chunk *c, struct err *e)
{
    struct column_meta m = {0};
    bool elsewhere = false, encrypted = false;

    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        if (id == 3 && t->type == THRIFT_STRUCT) {
            read_column_meta(t, &m);
        } else {
            elsewhere = elsewhere || id == 1;
            encrypted = encrypted || id == 8 || id == 9;
            thrift_skip(t);
        }
    }
    if (t->bad)
        return err_set(e, ERR_FORMAT, "the metadata are damaged");
    if (elsewhere)
        return err_set(e, ERR_UNSUPPORTED, "its pages are in another file");
    if (encrypted || !m.there)
        return err_set(e, ERR_UNSUPPORTED, "it is encrypted");
    if (m.type != (int64_t)leaf->type)
        return err_set(e, ERR_FORMAT, "its type is not that of the schema");
    if (m.n == 0) /* of no rows: its offsets may be whatever they like */
        m.data = HEAD, m.bytes = 0;
    if (m.dictionary > 0 && m.dictionary < m.data)
        m.data = m.dictionary;
    if (m.data < HEAD || m.bytes < 0 || m.n < 0 || (uint64_t)m.data > end || (uint64_t)m.bytes > end - (uint64_t)m.data)
        return err_set(e, ERR_FORMAT, "%" PRId64 " bytes at offset %" PRId64 " do not lie within the file", m.bytes, m.data);
    *c = (struct parquet_chunk){(uint64_t)m.data, (uint64_t)m.bytes, (uint64_t)m.n, (enum parquet_codec)m.codec, m.statistics};
    return 0;
}

static int read_chunks(struct parquet_meta *m, struct thrift *t, uint64_t end, struct parquet_group *g, struct err *e)
{
    size_t n = thrift_list(t);

    if (t->bad || t->type != THRIFT_STRUCT || n != (size_t)m->n_leaves)
        return err_set(e, ERR_FORMAT, "it has %zu columns, the schema %d", n, m->n_leaves);
    if (g->chunk)
        return err_set(e, ERR_FORMAT, "it has columns twice");
    g->chunk = arena_calloc(&m->arena, n, sizeof *g->chunk);
    if (!g->chunk)
        return no_memory(e);
    for (size_t i = 0; i < n; i++)
        if (read_chunk(t, m->leaf[i], end, &g->chunk[i], e) < 0)
            return err_wrap(e, "column '%.*s'", PARQUET_NAME(m->leaf[i]));
    return 0;
}

static int read_group(struct parquet_meta *m, struct thrift *t, uint64_t end, struct parquet_group *g, struct err *e)
{
    int64_t rows = -1;

    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        if (id == 1)
            TRY(read_chunks(m, t, end, g, e));
        else if (id == 3)
            rows = thrift_int(t);
        else
            thrift_skip(t);
    }
    if (t->bad || rows < 0 || !g->chunk)
        return err_set(e, ERR_FORMAT, "the metadata are damaged");
    g->rows = (uint64_t)rows;
    return 0;
}

static int read_groups(struct parquet_meta *m, struct thrift *t, uint64_t end, struct err *e)
{
    size_t n = thrift_list(t);

    if (!m->root)
        return err_set(e, ERR_FORMAT, "the schema does not stand before the row groups");
    if (t->type != THRIFT_STRUCT && n)
        return err_set(e, ERR_FORMAT, "the metadata are damaged");
    for (size_t i = 0; i < n; i++) {
        struct parquet_group g = {0};

        if (read_group(m, t, end, &g, e) < 0)
            return err_wrap(e, "row group %zu", m->n_groups);
        if (mem_grow(&m->group, &m->cap_groups, m->n_groups + 1, sizeof g) < 0)
            return no_memory(e);
        m->group[m->n_groups++] = g;
        if (g.rows > INT64_MAX - m->rows)
            return err_set(e, ERR_FORMAT, "the metadata at its end are damaged: more rows than can be");
        m->rows += g.rows;
    }
    return 0;
}

/* The ColumnOrders: whether each column is ordered as its type is, which is all that there was for long. */
static void read_orders(struct parquet_meta *m, struct thrift *t)
{
    size_t n = thrift_list(t);
    bool structs = t->type == THRIFT_STRUCT;

    m->ordered = structs && m->root && n == (size_t)m->n_leaves;
    for (size_t i = 0; i < n && !t->bad; i++) {
        if (!structs)
            thrift_skip(t);
        for (int id = 0; structs && (id = thrift_field(t, id)) > 0;) {
            m->ordered &= id == 1;
            thrift_skip(t);
        }
    }
}

/* A FileMetaData. */
static int read_meta(struct parquet_meta *m, struct span bytes, uint64_t end, struct err *e)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    struct thrift t = {.p = p, .end = p + bytes.n};
    int64_t rows = -1;

    for (int id = 0; (id = thrift_field(&t, id)) > 0;) {
        if (id == 2 && !m->root)
            TRY(parquet_schema_read(m, &t, e));
        else if (id == 3)
            rows = thrift_int(&t);
        else if (id == 4)
            TRY(read_groups(m, &t, end, e));
        else if (id == 8)
            return err_set(e, ERR_UNSUPPORTED, "it is encrypted");
        else if (id == 7 && t.type == THRIFT_LIST)
            read_orders(m, &t);
        else
            thrift_skip(&t);
    }
    if (t.bad || !m->root)
        return err_set(e, ERR_FORMAT, "the metadata at its end are damaged");
    if (rows < 0 || (uint64_t)rows != m->rows)
        return err_set(e, ERR_FORMAT, "the metadata at its end are damaged: %" PRId64 " rows, in %zu row groups %" PRIu64, rows,
                       m->n_groups, m->rows);
    return 0;
}

int parquet_meta_read(struct parquet_meta *m, const struct parquet_source *s, struct err *e)
{
    uint8_t tail[PARQUET_TAIL];
    struct span bytes;
    uint64_t n;
    char *p;

    if (s->size < HEAD + PARQUET_TAIL)
        return err_set(e, ERR_FORMAT, "it is cut short: %" PRIu64 " bytes hold no Parquet file", s->size);
    TRY(s->read(s->arg, s->size - PARQUET_TAIL, tail, PARQUET_TAIL, e));
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return err_set(e, ERR_FORMAT, "it is cut short: it does not end with PAR1");
    n = parquet_load32(tail);
    if (n > s->size - HEAD - PARQUET_TAIL)
        return err_set(e, ERR_FORMAT, "its metadata of %" PRIu64 " bytes would be larger than the file", n);
    if (n > PARQUET_FOOTER_MAX)
        return err_set(e, ERR_LIMIT, "its metadata have more than %d bytes", PARQUET_FOOTER_MAX);
    p = arena_alloc(&m->arena, n + 1); /* names stay in it */
    if (!p)
        return no_memory(e);
    TRY(s->read(s->arg, s->size - PARQUET_TAIL - n, p, n, e));
    bytes = (struct span){p, n};
    return read_meta(m, bytes, s->size - PARQUET_TAIL - n, e);
}

/* Moves the places of its leaves by `by`. */
static void move_leaves(struct parquet_node *n, int by)
{
    n->first_leaf += by;
    for (struct parquet_node *k = n->child; k; k = k->next)
        move_leaves(k, by);
}

int parquet_meta_keep(struct parquet_meta *m, bool (*keep)(void *arg, struct span name), void *arg)
{
    struct parquet_node **link = &m->root->child;
    int n = 0;

    for (struct parquet_node *k = m->root->child; k; k = k->next) {
        if (!keep(arg, k->name))
            continue;
        for (int i = k->first_leaf; i < k->first_leaf + k->n_leaves; i++, n++) {
            m->leaf[n] = m->leaf[i];
            for (size_t g = 0; g < m->n_groups; g++)
                m->group[g].chunk[n] = m->group[g].chunk[i];
        }
        *link = k;
        link = &k->next;
    }
    *link = NULL;
    n = 0;
    for (struct parquet_node *k = m->root->child; k; k = k->next) {
        move_leaves(k, n - k->first_leaf);
        n += k->n_leaves;
    }
    m->root->n_leaves = m->n_leaves = n;
    return n;
}

void parquet_meta_free(struct parquet_meta *m)
{
    arena_free(&m->arena);
    free(m->leaf);
    free(m->group);
    *m = (struct parquet_meta){0};
}
