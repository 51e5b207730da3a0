/* Reading a fastText model: every count is held against the bytes that are left. */
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/language/fasttext_model.h"

enum {
    MAGIC = 793712314,
    SUPERVISED = 3,
    CENTROIDS = 256,
    PROBES_MAX = 1000, /* in a half-empty table: never reached by chance */
    NGRAMS_MAX = 100, /* of letters or words: longer ones serve no model, but cost time */
};
#define COUNT_MAX 1000000000000000LL /* of a label; fastText's tree takes no more */
#define OUTPUT_MAX (1LL << 30)

struct cursor {
    const struct fasttext *m;
    const uint8_t *start, *p, *end;
    struct err *e;
};

static int bad(const struct cursor *c, const char *what)
{
    err_set(c->e, ERR_FORMAT, "'%s': at byte %lld: %s", c->m->name, (long long)(c->p - c->start), what);
    return ERR_FORMAT;
}

/* n things of size bytes each, where they lie. */
static int take(struct cursor *c, const uint8_t **p, int64_t n, int64_t size)
{
    if (n < 0 || n > (c->end - c->p) / size)
        return bad(c, n < 0 ? "a negative count" : "the model is cut short");
    *p = c->p;
    c->p += n * size;
    return 0;
}

static int take_i32(struct cursor *c, int32_t *v)
{
    const uint8_t *p;

    TRY(take(c, &p, 1, 4));
    memcpy(v, p, 4);
    return 0;
}

static int take_i64(struct cursor *c, int64_t *v)
{
    const uint8_t *p;

    TRY(take(c, &p, 1, 8));
    memcpy(v, p, 8);
    return 0;
}

static int take_bool(struct cursor *c, bool *v)
{
    const uint8_t *p;

    TRY(take(c, &p, 1, 1));
    *v = *p != 0;
    return 0;
}

static int table_new(struct fasttext_table *t, int64_t n, struct err *e)
{
    uint64_t size = 2;

    while (size < 2 * (uint64_t)n)
        size *= 2;
    t->slot = malloc(size * sizeof *t->slot);
    if (!t->slot)
        return err_set(e, ERR_NOMEM, "no memory for a model's dictionary");
    memset(t->slot, 0xFF, size * sizeof *t->slot);
    t->mask = (uint32_t)(size - 1);
    return 0;
}

static int read_settings(struct cursor *c, struct fasttext *m)
{
    int32_t magic, version, v[12];
    const uint8_t *t;

    if (take_i32(c, &magic) < 0 || magic != MAGIC)
        return err_set(c->e, ERR_FORMAT, "'%s' is no fastText model", m->name);
    TRY(take_i32(c, &version));
    if (version != 11 && version != 12)
        return err_set(c->e, ERR_UNSUPPORTED, "'%s' is a fastText model of version %d; 11 and 12 are known", m->name, version);
    /* dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate */
    for (int i = 0; i < 12; i++)
        TRY(take_i32(c, &v[i]));
    TRY(take(c, &t, 1, 8));
    if (v[7] != SUPERVISED)
        return err_set(c->e, ERR_UNSUPPORTED, "'%s' has word vectors but no labels: it is no classifier", m->name);
    if (v[0] < 1 || v[5] > NGRAMS_MAX || v[6] < FASTTEXT_HS || v[6] > FASTTEXT_OVA || v[8] < 0 || v[10] > NGRAMS_MAX)
        return bad(c, "a setting that no model has");
    m->dim = v[0];
    m->word_ngrams = v[5];
    m->loss = v[6];
    m->bucket = (uint32_t)v[8];
    m->minn = v[9];
    m->maxn = version == 11 ? 0 : v[10];
    if (m->bucket)
        m->bucket_inverse = UINT64_MAX / m->bucket + 1;
    else
        m->maxn = m->word_ngrams = 0;
    return 0;
}

/* One entry: its bytes to a NUL, a count, and what it is (0 a word, 1 a label). */
static int read_entry(struct cursor *c, struct fasttext *m, int32_t i, int64_t *count)
{
    const uint8_t *start = c->p, *nul = c->p < c->end ? memchr(c->p, 0, (size_t)(c->end - c->p)) : NULL, *type;
    struct fasttext_slot *s;
    uint32_t h = FASTTEXT_HASH;

    if (!nul)
        return bad(c, "the model is cut short");
    c->p = nul + 1;
    TRY(take_i64(c, count));
    TRY(take(c, &type, 1, 1));
    if (*type != (i >= m->n_words))
        return bad(c, "a label among the words");
    m->entry[i] = (struct span){(const char *)start, (size_t)(nul - start)};
    if (i >= m->n_words && !utf8_valid(m->entry[i]))
        return bad(c, "a label that is not UTF-8");
    for (const uint8_t *p = start; p < nul; p++)
        h = fasttext_hash_byte(h, (char)*p);
    s = &m->words.slot[h & m->words.mask];
    for (uint32_t k = 1; s->id >= 0 && !(s->key == h && span_eq(m->entry[s->id], m->entry[i])); k++) {
        if (k == PROBES_MAX)
            return bad(c, "words made to collide");
        s = &m->words.slot[(h + k) & m->words.mask];
    }
    *s = (struct fasttext_slot){h, i};
    return 0;
}

static int read_kept(struct cursor *c, struct fasttext *m, int64_t n)
{
    const uint8_t *p;

    TRY(take(c, &p, n, 8));
    m->pruned = true;
    TRY(table_new(&m->kept, n, c->e));
    while (m->maybe_mask < 16 * (uint64_t)n && m->maybe_mask < UINT32_MAX)
        m->maybe_mask = 2 * m->maybe_mask + 1;
    m->maybe = calloc(m->maybe_mask / 64 + 1, sizeof *m->maybe);
    if (!m->maybe)
        return err_set(c->e, ERR_NOMEM, "no memory for a model's dictionary");
    for (; n > 0; n--, p += 8) {
        uint32_t v[2], k, start;
        struct fasttext_slot *s;
        memcpy(v, p, sizeof v);
        if (v[1] > INT32_MAX)
            return bad(c, "a negative row");
        start = fasttext_scatter(v[0]);
        s = &m->kept.slot[start & m->kept.mask];
        for (k = 1; s->id >= 0 && s->key != v[0]; k++) {
            if (k == PROBES_MAX)
                return bad(c, "buckets made to collide");
            s = &m->kept.slot[(start + k) & m->kept.mask];
        }
        *s = (struct fasttext_slot){v[0], (int32_t)v[1]};
        m->maybe[(start & m->maybe_mask) / 64] |= 1ULL << start % 64;
    }
    return 0;
}

/* count: of each label, malloc'd here. */
static int read_dictionary(struct cursor *c, struct fasttext *m, int64_t **count)
{
    int32_t size;
    int64_t tokens, kept, n;

    TRY(take_i32(c, &size));
    TRY(take_i32(c, &m->n_words));
    TRY(take_i32(c, &m->n_labels));
    TRY(take_i64(c, &tokens));
    TRY(take_i64(c, &kept));
    if (m->n_words < 0 || m->n_labels < 1 || (int64_t)m->n_words + m->n_labels != size || size > (c->end - c->p) / 10)
        return bad(c, "counts of words and labels that do not fit the file");
    m->entry = malloc((size_t)size * sizeof *m->entry);
    *count = calloc((size_t)m->n_labels, sizeof **count);
    if (!m->entry || !*count)
        return err_set(c->e, ERR_NOMEM, "no memory for a model's dictionary");
    TRY(table_new(&m->words, size, c->e));
    for (int32_t i = 0; i < size; i++) {
        TRY(read_entry(c, m, i, &n));
        if (i >= m->n_words)
            (*count)[i - m->n_words] = n;
    }
    return kept >= 0 ? read_kept(c, m, kept) : 0;
}

static int read_quantizer(struct cursor *c, int64_t cols, const uint8_t **centroids, int *n_sub, int *sub, int *last)
{
    int32_t v[4]; /* columns, parts, columns of a part, of the last */

    for (int i = 0; i < 4; i++)
        TRY(take_i32(c, &v[i]));
    if (v[0] != cols || v[1] < 1 || v[2] < 1 || v[3] < 1 || v[3] > v[2] || (int64_t)(v[1] - 1) * v[2] + v[3] != v[0])
        return bad(c, "a quantiser that does not fit its matrix");
    *n_sub = v[1];
    *sub = v[2];
    *last = v[3];
    return take(c, centroids, cols, 4 * CENTROIDS);
}

static int read_matrix(struct cursor *c, struct fasttext_matrix *x, bool quantised, int cols)
{
    bool norms = false;
    int64_t n;
    int32_t n_codes = 0;
    int one[3];

    if (quantised)
        TRY(take_bool(c, &norms));
    TRY(take_i64(c, &x->rows));
    TRY(take_i64(c, &n));
    if (n != cols || x->rows < 0)
        return bad(c, "a matrix of the wrong shape");
    x->cols = cols;
    if (!quantised)
        return take(c, &x->dense, x->rows, 4 * (int64_t)cols);
    TRY(take_i32(c, &n_codes));
    TRY(take(c, &x->codes, n_codes, 1));
    TRY(read_quantizer(c, cols, &x->centroids, &x->n_sub, &x->sub, &x->last));
    if (n_codes % x->n_sub || n_codes / x->n_sub != x->rows)
        return bad(c, "a matrix of the wrong shape");
    if (!norms)
        return 0;
    TRY(take(c, &x->norm_codes, x->rows, 1));
    return read_quantizer(c, 1, &x->norms, &one[0], &one[1], &one[2]);
}

static int check_rows(struct cursor *c, const struct fasttext *m)
{
    int64_t behind = m->input.rows - m->n_words;

    if (behind < 0 || (!m->pruned && (m->maxn > 0 || m->word_ngrams > 1) && behind < m->bucket))
        return bad(c, "fewer rows than words and buckets");
    for (uint32_t i = 0; m->pruned && i <= m->kept.mask; i++)
        if (m->kept.slot[i].id >= behind)
            return bad(c, "a bucket without a row");
    return 0;
}

static int transpose_output(struct cursor *c, struct fasttext *m, const struct fasttext_matrix *x)
{
    size_t n = (size_t)m->n_labels;
    float *row;

    if (x->rows != m->n_labels)
        return bad(c, "not one row for each label");
    if ((int64_t)n > OUTPUT_MAX / 4 / m->dim)
        return err_set(c->e, ERR_LIMIT, "'%s': %zu labels of %d dimensions are over the limit of 1 GiB", m->name, n, m->dim);
    m->output = malloc(n * (size_t)m->dim * sizeof *m->output);
    row = malloc((size_t)m->dim * sizeof *row);
    for (size_t i = 0; m->output && row && i < n; i++) {
        memset(row, 0, (size_t)m->dim * sizeof *row);
        fasttext_add_row(x, (int64_t)i, row);
        for (size_t j = 0; j < (size_t)m->dim; j++)
            m->output[j * n + i] = row[j];
    }
    free(row);
    return m->output && row ? 0 : err_set(c->e, ERR_NOMEM, "no memory for a model's labels");
}

/* The Huffman tree of the labels by their counts, which stand in falling order.  Node
 * n_labels + i has a smaller number than its parent; the last is the root. */
static int build_tree(struct cursor *c, struct fasttext *m, const int64_t *count)
{
    int32_t n = m->n_labels, leaf = n - 1, node = 0;
    int64_t *sum = calloc((size_t)n, sizeof *sum), total = 0;

    m->tree = malloc((size_t)n * sizeof *m->tree);
    if (!sum || !m->tree) {
        free(sum);
        return err_set(c->e, ERR_NOMEM, "no memory for a model's labels");
    }
    for (int32_t i = 0; i < n && total >= 0; i++)
        total = count[i] < 0 || count[i] >= COUNT_MAX - total ? -1 : total + count[i];
    for (int32_t i = 0; total >= 0 && i < n - 1; i++) {
        sum[i] = 0;
        for (int j = 0; j < 2; j++) {
            bool take_leaf = leaf >= 0 && (node >= i || count[leaf] < sum[node]);
            m->tree[i][j] = take_leaf ? leaf : n + node;
            sum[i] += take_leaf ? count[leaf] : sum[node];
            leaf -= take_leaf;
            node += !take_leaf;
        }
    }
    free(sum);
    return total >= 0 ? 0 : bad(c, "label counts that no tree can be built from");
}

static int read_model(struct fasttext *m, struct span bytes, int64_t **count, struct err *e)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    struct cursor c = {m, p, p, p + bytes.n, e};
    struct fasttext_matrix output = {0};
    bool quantised, output_too;

    TRY(read_settings(&c, m));
    TRY(read_dictionary(&c, m, count));
    TRY(take_bool(&c, &quantised));
    if (m->pruned && !quantised)
        return bad(&c, "a pruned model that is not quantised");
    TRY(read_matrix(&c, &m->input, quantised, m->dim));
    TRY(check_rows(&c, m));
    TRY(take_bool(&c, &output_too));
    TRY(read_matrix(&c, &output, quantised && output_too, m->dim));
    TRY(transpose_output(&c, m, &output));
    if (m->loss == FASTTEXT_HS)
        TRY(build_tree(&c, m, *count));
    for (int i = 0; i <= 512; i++)
        m->sigmoid[i] = (float)(1.0 / (1.0 + expf(-((float)(i * 16) / 512 - 8))));
    return 0;
}

int fasttext_open_mem(struct fasttext **model, const char *name, struct span bytes, struct err *e)
{
    struct fasttext *m = calloc(1, sizeof *m);
    int64_t *count = NULL;
    int rc = ERR_NOMEM;

    *model = NULL;
    if (m && (m->name = strdup(name)) != NULL)
        rc = read_model(m, bytes, &count, e);
    else
        err_set(e, ERR_NOMEM, "no memory for a model");
    free(count);
    if (rc < 0) {
        fasttext_close(m);
        return rc;
    }
    *model = m;
    return 0;
}

int fasttext_open(struct fasttext **model, const char *path, struct err *e)
{
    struct file_map map;
    int rc;

    *model = NULL;
    TRY(file_map_open(&map, path, e));
    rc = fasttext_open_mem(model, path, (struct span){(const char *)map.p, map.n}, e);
    if (rc < 0)
        file_map_close(&map);
    else
        (*model)->map = map;
    return rc;
}

void fasttext_close(struct fasttext *m)
{
    if (!m)
        return;
    file_map_close(&m->map);
    free(m->name);
    free(m->entry);
    free(m->words.slot);
    free(m->kept.slot);
    free(m->maybe);
    free(m->output);
    free(m->tree);
    free(m);
}
