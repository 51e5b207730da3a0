#include "curate/language/fasttext.h"

#include <math.h>
#include <stdlib.h>

#include "curate/language/fasttext_model.h"

enum { FETCH_MAX = 512 }; /* bytes of a row; the processor then goes on by itself */
#define PREFIX "__label__"
#define LINE_END "</s>"

int fasttext_n_labels(const struct fasttext *m) { return m->n_labels; }

struct span fasttext_label(const struct fasttext *m, int i) { return m->entry[m->n_words + i]; }

static bool has_prefix(struct span s)
{
    return s.n >= sizeof PREFIX - 1 && memcmp(s.p, PREFIX, sizeof PREFIX - 1) == 0;
}

struct span fasttext_label_name(const struct fasttext *m, int i)
{
    struct span s = fasttext_label(m, i);
    size_t n = has_prefix(s) ? sizeof PREFIX - 1 : 0;

    return (struct span){s.p + n, s.n - n};
}

int fasttext_label_find(const struct fasttext *m, struct span name)
{
    for (int i = 0; i < m->n_labels; i++)
        if (span_eq(name, fasttext_label(m, i)) || span_eq(name, fasttext_label_name(m, i)))
            return i;
    return -1;
}

void fasttext_scratch_free(struct fasttext_scratch *s)
{
    free(s->hidden);
    free(s->out);
    free(s->node);
    buf_free(&s->token);
    free(s->hash);
    free(s->seen);
    *s = (struct fasttext_scratch){0};
}

/* ---- the input: rows of the matrix ---- */

static void add_quantised_row(const struct fasttext_matrix *m, int64_t i, float *x)
{
    const uint8_t *code = m->codes + i * m->n_sub;
    float norm = m->norms ? fasttext_f32(m->norms, m->norm_codes[i]) : 1;

    for (int k = 0; k < m->n_sub; k++, x += m->sub) {
        int n = k == m->n_sub - 1 ? m->last : m->sub;
        const uint8_t *c = m->centroids + 4 * ((int64_t)k * 256 * m->sub + (int64_t)code[k] * n);
        for (int j = 0; j < n; j++)
            x[j] += norm * fasttext_f32(c, j);
    }
}

void fasttext_add_row(const struct fasttext_matrix *m, int64_t i, float *x)
{
    const uint8_t *row;

    if (!m->dense) {
        add_quantised_row(m, i, x);
        return;
    }
    row = m->dense + 4 * i * m->cols;
    for (int j = 0; j < m->cols; j++)
        x[j] += fasttext_f32(row, j);
}

/* Adds the rows that wait to columns [j, j + n); n is a constant where it matters. */
static inline void sum_columns(const struct fasttext *m, struct fasttext_scratch *s, int j, int n)
{
    float sum[16];

    memcpy(sum, s->hidden + j, (size_t)n * sizeof *sum);
    for (int i = 0; i < s->n_row; i++) {
        const uint8_t *row = m->input.dense + 4 * ((int64_t)s->row[i] * m->input.cols + j);
        for (int k = 0; k < n; k++)
            sum[k] += fasttext_f32(row, k);
    }
    memcpy(s->hidden + j, sum, (size_t)n * sizeof *sum);
}

static void sum_rows(const struct fasttext *m, struct fasttext_scratch *s)
{
    int j = 0;

    for (; m->input.dense && j + 16 <= m->dim; j += 16)
        sum_columns(m, s, j, 16);
    if (m->input.dense && j < m->dim)
        sum_columns(m, s, j, m->dim - j);
    for (int i = 0; !m->input.dense && i < s->n_row; i++)
        fasttext_add_row(&m->input, s->row[i], s->hidden);
    s->n_rows += s->n_row;
    s->n_row = 0;
}

/* Rows are fetched while others are computed: most of a big model is not in the cache. */
static inline void add_later(const struct fasttext *m, struct fasttext_scratch *s, uint32_t i)
{
    int64_t size = m->input.dense ? 4 * (int64_t)m->input.cols : m->input.n_sub;
    const uint8_t *row = (m->input.dense ? m->input.dense : m->input.codes) + i * size;

    for (int64_t at = 0; at < size && at < FETCH_MAX; at += 64)
        __builtin_prefetch(row + at);
    __builtin_prefetch(row + size - 1); /* rows lie across lines */
    s->row[s->n_row++] = i;
    if (s->n_row == (int)(sizeof s->row / sizeof *s->row))
        sum_rows(m, s);
}

static void put_row(const struct fasttext *m, struct fasttext_scratch *s, uint32_t i)
{
    struct fasttext_token *t = s->seeing;

    add_later(m, s, i);
    if (!t)
        return;
    if (t->n_rows < FASTTEXT_ROWS_MAX) {
        t->row[t->n_rows++] = i;
    } else {
        t->n = 0;
        s->seeing = NULL;
    }
}

/* h modulo the buckets, by multiplication (Lemire, Kaser, Kurz 2019). */
static uint32_t bucket_of(const struct fasttext *m, uint32_t h)
{
    return (uint32_t)((unsigned __int128)(m->bucket_inverse * h) * m->bucket >> 64);
}

static void put_bucket(const struct fasttext *m, struct fasttext_scratch *s, uint32_t bucket)
{
    uint32_t k = fasttext_scatter(bucket);

    if (!m->pruned) {
        put_row(m, s, (uint32_t)m->n_words + bucket);
        return;
    }
    if (!(m->maybe[(k & m->maybe_mask) / 64] >> k % 64 & 1))
        return;
    for (;; k++) {
        const struct fasttext_slot *slot = &m->kept.slot[k & m->kept.mask];
        if (slot->id < 0)
            return;
        if (slot->key == bucket) {
            put_row(m, s, (uint32_t)m->n_words + (uint32_t)slot->id);
            return;
        }
    }
}

/* ---- words, their parts, and n-grams of words ---- */

static bool inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* Runs of minn to maxn characters of the token between < and >; those marks do not
 * count alone. */
static int put_parts(const struct fasttext *m, struct fasttext_scratch *s, struct span token, struct err *e)
{
    const char *p, *end;

    buf_clear(&s->token);
    if (buf_putc(&s->token, '<') < 0 || buf_put_span(&s->token, token) < 0 || buf_putc(&s->token, '>') < 0)
        return err_set(e, ERR_NOMEM, "no memory for a word");
    end = s->token.p + s->token.n;
    for (p = s->token.p; p < end; p++) {
        uint32_t h = FASTTEXT_HASH;
        const char *q = p;
        if (inside(*p))
            continue;
        for (int n = 1; q < end && n <= m->maxn; n++) {
            do
                h = fasttext_hash_byte(h, *q++);
            while (q < end && inside(*q));
            if (n >= m->minn && !(n == 1 && (p == s->token.p || q == end)))
                put_bucket(m, s, bucket_of(m, h));
        }
    }
    return 0;
}

static int put_hash(struct fasttext_scratch *s, uint32_t h, struct err *e)
{
    if (mem_grow(&s->hash, &s->cap_hash, s->n_hash + 1, sizeof *s->hash) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a text's words");
    s->hash[s->n_hash++] = h;
    return 0;
}

/* The rows of a token in order: its own, then those of its parts. */
static int put_token(const struct fasttext *m, struct fasttext_scratch *s, struct span token, uint32_t h, struct err *e)
{
    struct fasttext_token *t = token.n <= FASTTEXT_TOKEN_MAX ? &s->seen[h % FASTTEXT_CACHE] : NULL;
    int32_t id;
    int rc = 0;

    if (t && t->hash == h && t->n == token.n && memcmp(t->p, token.p, t->n) == 0) {
        for (int i = 0; i < t->n_rows; i++)
            add_later(m, s, t->row[i]);
        return m->word_ngrams > 1 ? put_hash(s, h, e) : 0;
    }
    id = fasttext_find(m, token, h);
    if (id < 0 ? has_prefix(token) : id >= m->n_words)
        return 0; /* labels */
    if (t) {
        t->hash = h;
        t->n = (uint8_t)token.n;
        t->n_rows = 0;
        memcpy(t->p, token.p, token.n);
    }
    s->seeing = t;
    if (id >= 0)
        put_row(m, s, (uint32_t)id);
    if (m->maxn > 0 && !span_is(token, LINE_END))
        rc = put_parts(m, s, token, e);
    s->seeing = NULL;
    return rc < 0 || m->word_ngrams <= 1 ? rc : put_hash(s, h, e);
}

static bool is_fasttext_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0; }

struct word {
    struct span s;
    uint32_t h;
};

/* The next words of a line, at most n; the end of the line is one, and so is its mark in
 * the text, behind which nothing counts: then *p is NULL. */
static int take_words(const char **p, const char *end, struct word *w, int n)
{
    int k = 0;

    while (k < n && *p) {
        const char *q = *p, *start;
        uint32_t h = FASTTEXT_HASH;
        while (q < end && is_fasttext_space(*q))
            q++;
        if (q == end) {
            q = LINE_END;
            end = q + sizeof LINE_END - 1;
        }
        for (start = q; q < end && !is_fasttext_space(*q); q++)
            h = fasttext_hash_byte(h, *q);
        w[k] = (struct word){{start, (size_t)(q - start)}, h};
        *p = span_is(w[k++].s, LINE_END) ? NULL : q;
    }
    return k;
}

/* What a word's look-up will read, in two steps: the tables, and what they point to. */
static void fetch_words(const struct fasttext *m, const struct fasttext_scratch *s, const struct word *w, int n)
{
    for (int i = 0; i < n; i++) {
        __builtin_prefetch(&s->seen[w[i].h % FASTTEXT_CACHE]);
        __builtin_prefetch(&m->words.slot[w[i].h & m->words.mask]);
    }
    for (int i = 0; i < n; i++) {
        const struct fasttext_slot *slot = &m->words.slot[w[i].h & m->words.mask];
        if (s->seen[w[i].h % FASTTEXT_CACHE].hash != w[i].h && slot->id >= 0)
            __builtin_prefetch(&m->entry[slot->id]);
    }
}

static int put_text(const struct fasttext *m, struct fasttext_scratch *s, struct span text, struct err *e)
{
    const char *p = text.p ? text.p : "", *end = p + text.n;
    struct word w[32];
    int n;

    while ((n = take_words(&p, end, w, (int)(sizeof w / sizeof *w))) > 0) {
        fetch_words(m, s, w, n);
        for (int i = 0; i < n; i++)
            TRY(put_token(m, s, w[i].s, w[i].h, e));
    }
    for (size_t i = 0; i < s->n_hash; i++) {
        uint64_t g = (uint64_t)(int64_t)(int32_t)s->hash[i];
        for (size_t j = i + 1; j < s->n_hash && j < i + (size_t)m->word_ngrams; j++) {
            g = g * 116049371 + (uint64_t)(int64_t)(int32_t)s->hash[j];
            put_bucket(m, s, (uint32_t)(g % m->bucket));
        }
    }
    sum_rows(m, s);
    return 0;
}

/* ---- the output ---- */

/* fastText's logarithm, by which it ranks. */
static float log_score(double p) { return (float)log(p + 1e-5); }

static float sigmoid(const struct fasttext *m, float x)
{
    return x < -8 ? 0 : x > 8 ? 1 : m->sigmoid[(int)((x + 8) * 512 / 8 / 2)];
}

/* From the root down: a child's number is smaller than its parent's. */
static void walk_tree(const struct fasttext *m, struct fasttext_scratch *s)
{
    int n = m->n_labels;

    s->node[2 * n - 2] = 0;
    for (int i = n - 2; i >= 0; i--) {
        float f = (float)(1.0 / (1.0 + (double)expf(-s->out[i])));
        s->node[m->tree[i][0]] = s->node[n + i] + log_score((float)(1.0 - (double)f));
        s->node[m->tree[i][1]] = s->node[n + i] + log_score(f);
    }
    memcpy(s->out, s->node, (size_t)n * sizeof *s->out);
}

static void softmax(float *x, int n)
{
    float top = x[0], sum = 0;

    for (int i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (int i = 0; i < n; i++) {
        x[i] = expf(x[i] - top);
        sum += x[i];
    }
    for (int i = 0; i < n; i++)
        x[i] /= sum;
}

static void project(const struct fasttext *m, struct fasttext_scratch *s)
{
    size_t n = (size_t)m->n_labels;
    float mean = (float)(1.0 / (double)s->n_rows);

    memset(s->out, 0, n * sizeof *s->out);
    for (size_t j = 0; j < (size_t)m->dim; j++) {
        const float *w = m->output + j * n;
        float h = s->hidden[j] * mean;
        for (size_t i = 0; i < n; i++)
            s->out[i] += w[i] * h;
    }
}

static bool make_scratch(const struct fasttext *m, struct fasttext_scratch *s)
{
    if (s->out)
        return true;
    s->hidden = malloc((size_t)m->dim * sizeof *s->hidden);
    s->node = malloc(2 * (size_t)m->n_labels * sizeof *s->node);
    s->seen = calloc(FASTTEXT_CACHE, sizeof *s->seen);
    if (s->hidden && s->node && s->seen)
        s->out = malloc((size_t)m->n_labels * sizeof *s->out);
    return s->out != NULL;
}

int fasttext_predict(const struct fasttext *m, struct fasttext_scratch *s, struct span text, struct err *e)
{
    int best = 0;

    if (!make_scratch(m, s)) {
        err_set(e, ERR_NOMEM, "no memory to classify a text");
        return -2;
    }
    memset(s->hidden, 0, (size_t)m->dim * sizeof *s->hidden);
    s->n_rows = s->n_row = 0;
    s->n_hash = 0;
    if (put_text(m, s, text, e) < 0)
        return -2;
    if (s->n_rows == 0)
        return -1;
    project(m, s);
    for (int i = 0; i < m->n_labels; i++)
        if (!isfinite(s->out[i])) {
            err_set(e, ERR_UNSUPPORTED, "'%s': the model's numbers are not finite", m->name);
            return -2;
        }
    if (m->loss == FASTTEXT_SOFTMAX)
        softmax(s->out, m->n_labels);
    else if (m->loss == FASTTEXT_HS)
        walk_tree(m, s);
    else
        for (int i = 0; i < m->n_labels; i++)
            s->out[i] = sigmoid(m, s->out[i]);
    for (int i = 1; i < m->n_labels; i++)
        best = s->out[i] >= s->out[best] ? i : best;
    return best;
}

double fasttext_score(const struct fasttext *m, const struct fasttext_scratch *s, int label)
{
    float x = s->out[label];

    return expf(m->loss == FASTTEXT_HS ? x : log_score(x));
}
