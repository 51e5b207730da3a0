/* Opening n-gram models; scores of sentences. */
#include "curate/language/ngram.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "curate/language/ngram_model.h"

enum {
    MAGIC_BYTES = 56, /* with the zeros behind it */
    SANITY_BYTES = 88,
    FIXED_BYTES = 20,
    PROBES_MAX = 1 << 20, /* in one search of a table: never reached by chance */
    AHEAD = 4             /* words whose bigrams are fetched before they are needed */
};
static const char start_of_magic[] = "mmap lm http://kheafield.com/code";
static const char magic[MAGIC_BYTES] = "mmap lm http://kheafield.com/code format version 5\n";

/* ---- words ---- */

uint64_t ngram_hash(struct span word)
{
    const uint64_t by = 0xc6a4a7935bd1e995u;
    const uint8_t *p = (const uint8_t *)word.p, *end = p + (word.n & ~(size_t)7);
    uint64_t h = word.n * by, k;

    for (; p < end; p += 8) {
        k = ngram_u64(p) * by;
        h = (h ^ (k ^ k >> 47) * by) * by;
    }
    if (word.n & 7) {
        k = 0;
        memcpy(&k, p, word.n & 7);
        h = (h ^ k) * by;
    }
    h = (h ^ h >> 47) * by;
    return h ^ h >> 47;
}

/* The slot of a key; NULL: it is not there. */
static const uint8_t *table_find(const struct ngram_table *t, uint64_t key, struct ngram_fault *f)
{
    const uint8_t *p = t->slot + key % t->buckets * t->size, *end = t->slot + t->buckets * t->size;

    for (int i = 0; i < PROBES_MAX; i++) {
        uint64_t have = ngram_u64(p);
        if (have == key)
            return p;
        if (!have)
            return NULL;
        p += t->size;
        if (p == end)
            p = t->slot;
    }
    *f = (struct ngram_fault){p, "a hash table without free places"};
    return NULL;
}

/* The place of a hash among the sorted ones, plus one: by interpolation, as they are even, then by halves. */
static uint32_t find_hash(const struct ngram_model *m, uint64_t hash)
{
    uint64_t lo = 0, hi = m->n_hashes, least = 0, most = UINT64_MAX;

    for (int i = 0; lo < hi; i++) {
        uint64_t at = lo + (hi - lo) / 2, have;
        if (i < 16 && most > least) {
            double part = (double)(hash - least) / (double)(most - least) * (double)(hi - lo);
            at = part >= (double)(hi - lo) ? hi - 1 : lo + (uint64_t)part;
            at = at >= hi ? hi - 1 : at;
        }
        have = ngram_u64(m->hashes + 8 * at);
        if (have == hash)
            return (uint32_t)at + 1;
        if (have < hash) {
            lo = at + 1;
            least = have;
        } else {
            hi = at;
            most = have;
        }
    }
    return 0;
}

/* What a file says of a word may be beyond all words; then ngram_score says so. */
uint32_t ngram_word(const struct ngram_model *m, struct span word)
{
    struct ngram_fault f = {0};
    const uint8_t *p;

    if (m->trie)
        return find_hash(m, ngram_hash(word));
    p = table_find(&m->words, ngram_hash(word), &f);
    return p ? ngram_u32(p + 8) : f.at ? UINT32_MAX : 0;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The same, remembered by a thread. */
static uint32_t recall_word(const struct ngram_model *m, struct ngram_line *l, struct span word)
{
    uint64_t hash = ngram_hash(word);
    size_t i = hash % NGRAM_RECALLED;

    if (!hash || l->hash[i] != hash) {
        l->number[i] = ngram_word(m, word);
        l->hash[i] = hash;
    }
    return l->number[i];
}

int ngram_words(const struct ngram_model *m, struct ngram_line *l, struct span line)
{
    const char *p = line.n ? line.p : "", *end = p + line.n, *start;
    uint32_t word;

    buf_clear(&l->words);
    while (p < end) {
        if (is_space(*p)) {
            p++;
            continue;
        }
        for (start = p; p < end && !is_space(*p); p++)
            ;
        word = recall_word(m, l, (struct span){start, (size_t)(p - start)});
        TRY(buf_put(&l->words, &word, sizeof word));
    }
    return 0;
}

/* ---- scores ---- */

/* As ngram_trie_step, by hash tables.  A probability without its sign: longer n-grams end so. */
static float table_step(const struct ngram_model *m, const struct ngram_state *in, uint32_t word, struct ngram_state *out,
                        int *found, struct ngram_fault *f)
{
    const uint8_t *p = m->unigrams + (uint64_t)NGRAM_UNIGRAM * word;
    float prob = ngram_float(p);
    uint64_t key = word;
    int i;

    out->backoff[0] = ngram_float(p + 4);
    out->n = ngram_extends(out->backoff[0]);
    *found = 1;
    for (i = 0; i < in->n && !signbit(prob); i++) {
        key = ngram_key(key, in->word[i]);
        p = table_find(&m->table[i], key, f);
        if (!p)
            break;
        prob = ngram_float(p + 8);
        *found = i + 2;
        if (i == m->order - 2)
            break;
        out->backoff[i + 1] = ngram_float(p + 12);
        if (ngram_extends(out->backoff[i + 1]))
            out->n = i + 2;
    }
    return -fabsf(prob);
}

/* Fetches what the words that follow will ask for. */
static void fetch_ahead(const struct ngram_model *m, const uint32_t *word, size_t n)
{
    const struct ngram_table *t = &m->table[0];

    if (m->trie && n > AHEAD) {
        __builtin_prefetch(m->unigrams + (uint64_t)NGRAM_TRIE_UNIGRAM * word[AHEAD]);
        ngram_trie_fetch(m, word[AHEAD / 2 - 1], word[AHEAD / 2]);
    } else if (n > AHEAD) {
        __builtin_prefetch(m->unigrams + (uint64_t)NGRAM_UNIGRAM * word[AHEAD]);
        __builtin_prefetch(t->slot + ngram_key(word[AHEAD], word[AHEAD - 1]) % t->buckets * t->size);
    }
}

static int score_words(const struct ngram_model *m, const uint32_t *word, size_t n, float *sum, struct ngram_fault *f)
{
    size_t unigram = m->trie ? NGRAM_TRIE_UNIGRAM : NGRAM_UNIGRAM;
    struct ngram_state one = {.n = 1, .word = {m->begin}, .backoff = {ngram_float(m->unigrams + unigram * m->begin + 4)}};
    struct ngram_state other = {0}, *in = &one, *out = &other, *t;
    int found;

    *sum = 0;
    for (size_t i = 0; i <= n; i++) {
        uint32_t w = i < n ? word[i] : m->end;
        float prob;
        if (i < n)
            fetch_ahead(m, word + i, n - i);
        prob = m->trie ? ngram_trie_step(m, in, w, out, &found, f) : table_step(m, in, w, out, &found, f);
        if (f->at)
            return ERR_FORMAT;
        out->word[0] = w;
        for (int k = 1; k < out->n; k++)
            out->word[k] = in->word[k - 1];
        for (int k = found - 1; k < in->n; k++)
            prob += in->backoff[k];
        *sum += prob;
        t = in;
        in = out;
        out = t;
    }
    return 0;
}

int ngram_score(const struct ngram_model *m, const uint32_t *word, size_t n, float *log10, struct err *e)
{
    struct ngram_fault f = {0};

    for (size_t i = 0; i < n; i++)
        if (word[i] >= m->bound)
            return err_set(e, ERR_FORMAT, "'%s': a word's number is not one of its %" PRIu32 " words", m->name, m->bound);
    if (score_words(m, word, n, log10, &f) < 0)
        return ngram_bad(m, m->start ? (uint64_t)(f.at - m->start) : 0, f.what, e);
    if (!isfinite(*log10))
        return err_set(e, ERR_FORMAT, "'%s': a probability that is none", m->name);
    return 0;
}

/* ---- binary files ---- */

/* A table of so many entries at *p. */
static int place_table(struct ngram_model *m, struct ngram_table *t, const uint8_t **p, const uint8_t *end, uint64_t entries,
                       float multiplier, size_t size, struct err *e)
{
    uint64_t more = (uint64_t)(multiplier * (float)entries);

    *t = (struct ngram_table){*p, more > entries + 1 ? more : entries + 1, size};
    if (t->buckets > (uint64_t)(end - *p) / size)
        return ngram_bad(m, (uint64_t)(*p - m->start), "the file ends within a table that its counts ask for", e);
    *p += t->buckets * size;
    return 0;
}

static int place_tables(struct ngram_model *m, const uint8_t **p, const uint8_t *end, float multiplier, struct err *e)
{
    const uint8_t *head = *p;

    if (end - *p < 8)
        return ngram_bad(m, (uint64_t)(*p - m->start), "the file ends before its words", e);
    m->bound = ngram_u32(head + 4);
    if (ngram_u32(head) != 0)
        return ngram_bad(m, (uint64_t)(head - m->start), "a version of the words' table that is not known", e);
    if (m->bound < 1 || m->bound > m->count[0] + 1)
        return ngram_bad(m, (uint64_t)(head + 4 - m->start), "more words than unigrams", e);
    *p += 8;
    TRY(place_table(m, &m->words, p, end, m->count[0], multiplier, NGRAM_WORD_SLOT, e));
    m->unigrams = *p;
    if (m->count[0] + 1 > (uint64_t)(end - *p) / NGRAM_UNIGRAM)
        return ngram_bad(m, (uint64_t)(*p - m->start), "the file ends within its unigrams", e);
    *p += (m->count[0] + 1) * NGRAM_UNIGRAM;
    for (int i = 0; i < m->order - 1; i++)
        TRY(place_table(m, &m->table[i], p, end, m->count[i + 1], multiplier,
                        i == m->order - 2 ? NGRAM_LONGEST_SLOT : NGRAM_SLOT, e));
    return 0;
}

static int place_trie(struct ngram_model *m, const uint8_t **p, const uint8_t *end, bool compressed, struct err *e)
{
    uint64_t size;

    if (m->count[0] + 1 > (uint64_t)(end - *p) / 8)
        return ngram_bad(m, (uint64_t)(*p - m->start), "the file ends within its words", e);
    m->n_hashes = ngram_u64(*p);
    if (m->n_hashes > m->count[0])
        return ngram_bad(m, (uint64_t)(*p - m->start), "more words than unigrams", e);
    m->hashes = *p + 8;
    m->bound = (uint32_t)m->n_hashes + 1;
    *p += 8 * (m->count[0] + 1);
    TRY(ngram_trie_layout(m, *p, end, compressed, &size, e));
    *p += size;
    return 0;
}

/* The numbers behind the magic word by which KenLM tells machines that store them in another way. */
static bool is_sane(const uint8_t *p)
{
    static const float floats[] = {0, 1, -0.5f};
    static const uint32_t words[] = {1, UINT32_MAX, 0};
    static const uint64_t one = 1;

    return memcmp(p + 56, floats, 12) == 0 && memcmp(p + 68, words, 12) == 0 && memcmp(p + 80, &one, 8) == 0;
}

/* Order, kind and counts. */
static int read_header(struct ngram_model *m, struct span bytes, uint32_t *type, float *multiplier, size_t *size, struct err *e)
{
    static const char *const kinds[] = {"probing", "", "trie", "quantised trie", "array trie", "quantised array trie"};
    const uint8_t *p = m->start + SANITY_BYTES;

    if (bytes.n < SANITY_BYTES + FIXED_BYTES)
        return ngram_bad(m, bytes.n, "the file ends within its header", e);
    if (memcmp(m->start, magic, MAGIC_BYTES) != 0)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is a file of KenLM's, but not of version 5, or unfinished", m->name);
    if (!is_sane(m->start))
        return ngram_bad(m, MAGIC_BYTES, "test numbers that another kind of machine wrote", e);
    m->order = p[0];
    *multiplier = ngram_float(p + 4);
    *type = ngram_u32(p + 8);
    if (m->order < 2 || m->order > NGRAM_MAX_ORDER)
        return err_set(e, ERR_UNSUPPORTED, "'%s': a model of order %d; 2 to %d are known", m->name, m->order, NGRAM_MAX_ORDER);
    if (*type > 5 || *type == 1)
        return err_set(e, ERR_UNSUPPORTED, "'%s': a model of type %" PRIu32 "; probing (0) and tries (2 to 5) are known", m->name,
                       *type);
    if (!(*multiplier >= 1) || *multiplier > 1000)
        return ngram_bad(m, SANITY_BYTES + 4, "a multiplier that no model has", e);
    if (ngram_u32(p + 16) != (*type ? 1 : 0))
        return ngram_bad(m, SANITY_BYTES + 16, "a version of this kind that is not known", e);
    *size = (SANITY_BYTES + FIXED_BYTES + 8 * (size_t)m->order + 7) / 8 * 8;
    if (bytes.n < *size)
        return ngram_bad(m, bytes.n, "the file ends within its header", e);
    m->kind = kinds[*type];
    for (int i = 0; i < m->order; i++) {
        m->count[i] = ngram_u64(p + FIXED_BYTES + 8 * i);
        if (m->count[i] / 8 > bytes.n || (i == 0 && m->count[i] >= UINT32_MAX - 1))
            return ngram_bad(m, SANITY_BYTES + FIXED_BYTES + 8 * (uint64_t)i, "more n-grams than the file has room for", e);
    }
    return 0;
}

static int read_binary(struct ngram_model *m, struct span bytes, struct err *e)
{
    const uint8_t *p, *end;
    float multiplier = 0;
    uint32_t type = 0;
    size_t size = 0;

    m->start = (const uint8_t *)bytes.p;
    TRY(read_header(m, bytes, &type, &multiplier, &size, e));
    p = m->start + size;
    end = m->start + bytes.n;
    m->trie = type >= 2;
    m->quantised = type == 3 || type == 5;
    TRY(m->trie ? place_trie(m, &p, end, type >= 4, e) : place_tables(m, &p, end, multiplier, e));
    if (m->start[SANITY_BYTES + 12] && (end - p < 6 || memcmp(p, "<unk>", 6) != 0))
        return ngram_bad(m, (uint64_t)(p - m->start), "the words do not begin here with <unk>: cut short, or other counts", e);
    m->begin = ngram_word(m, span_of("<s>"));
    m->end = ngram_word(m, span_of("</s>"));
    if (m->begin >= m->bound || m->end >= m->bound)
        return ngram_bad(m, size, "a word's number is beyond the words", e);
    return 0;
}

/* ---- open ---- */

static bool is_binary(struct span bytes) { return bytes.n >= sizeof start_of_magic - 1 && span_starts(bytes, start_of_magic); }

/* The first bytes of f, at most n. */
static int read_start(struct file_in *f, size_t n, struct buf *b, struct err *e)
{
    ssize_t got = 1;

    if (buf_reserve(b, n) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a model");
    while (b->n < n && (got = file_read(f, b->p + b->n, n - b->n, e)) > 0)
        b->n += (size_t)got;
    return got < 0 ? (int)got : 0;
}

/* A file: mapped if it is a binary one, else read. */
static int open_file(struct ngram_model *m, const char *path, struct err *e)
{
    struct buf head = {0};
    struct file_in *f;
    bool binary, plain;
    int rc;

    TRY(file_open(&f, path, e));
    plain = file_codec(f) == FILE_PLAIN;
    rc = read_start(f, sizeof start_of_magic - 1, &head, e);
    binary = rc == 0 && is_binary(buf_span(&head));
    if (rc == 0 && !binary)
        rc = ngram_arpa_read(m, f, buf_span(&head), e);
    buf_free(&head);
    file_close(f);
    if (rc < 0 || !binary)
        return rc;
    if (!plain)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is a binary file of KenLM's, which is mapped and so cannot be compressed", path);
    TRY(file_map_open(&m->map, path, e));
    return read_binary(m, (struct span){(const char *)m->map.p, m->map.n}, e);
}

static int open_bytes(struct ngram_model *m, struct span bytes, struct err *e)
{
    struct file_in *f;
    int rc;

    if (is_binary(bytes))
        return read_binary(m, bytes, e);
    TRY(file_open_mem(&f, m->name, bytes, e));
    rc = ngram_arpa_read(m, f, (struct span){0}, e);
    file_close(f);
    return rc;
}

/* bytes: NULL for the file of that name. */
static int open_model(struct ngram_model **out, const char *name, const struct span *bytes, struct err *e)
{
    struct ngram_model *m = calloc(1, sizeof *m);
    int rc;

    *out = NULL;
    if (!m || (m->name = strdup(name)) == NULL) {
        free(m);
        return err_set(e, ERR_NOMEM, "no memory for a model");
    }
    rc = bytes ? open_bytes(m, *bytes, e) : open_file(m, name, e);
    if (rc < 0) {
        ngram_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

int ngram_open(struct ngram_model **m, const char *path, struct err *e) { return open_model(m, path, NULL, e); }

int ngram_open_mem(struct ngram_model **m, const char *name, struct span bytes, struct err *e)
{
    return open_model(m, name, &bytes, e);
}

void ngram_close(struct ngram_model *m)
{
    if (!m)
        return;
    file_map_close(&m->map);
    for (size_t i = 0; i < sizeof m->owned / sizeof *m->owned; i++)
        free(m->owned[i]);
    free(m->name);
    free(m);
}

struct ngram_facts ngram_facts(const struct ngram_model *m) { return (struct ngram_facts){m->kind, m->order, m->bound}; }
