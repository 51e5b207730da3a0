/* ARPA files to hash tables. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "curate/language/ngram_model.h"

enum { FIRST_BUCKETS = 1023 };

/* A table that grows. */
struct growing {
    struct ngram_table t;
    uint8_t *slot;
    uint64_t n;
};

struct arpa {
    struct ngram_model *m;
    struct file_in *f;
    struct buf bytes; /* read; a line begins at `at` */
    size_t at;
    uint64_t offset;  /* in the file, of the line at hand */
    bool all_read;
    struct err *e;
    struct growing words, table[NGRAM_MAX_ORDER - 1];
    uint8_t *unigrams;
    size_t cap_unigrams; /* of NGRAM_UNIGRAM bytes */
    bool saw_unknown;
};

static int bad(struct arpa *a, const char *what) { return ngram_bad(a->m, a->offset, what, a->e); }
static int no_memory(struct arpa *a) { return err_set(a->e, ERR_NOMEM, "'%s': no memory for the model", a->m->name); }

/* ---- tables ---- */

static void put_slot(const struct ngram_table *t, uint8_t *slots, const uint8_t *slot)
{
    uint64_t i = ngram_u64(slot) % t->buckets;

    while (ngram_u64(slots + i * t->size))
        i = i + 1 == t->buckets ? 0 : i + 1;
    memcpy(slots + i * t->size, slot, t->size);
}

/* The slot of a key, which is new if it was not there (*is_new); NULL: no memory. */
static uint8_t *find_or_add(struct growing *g, size_t size, uint64_t key, bool *is_new)
{
    struct ngram_table more = {.buckets = g->t.buckets ? 2 * g->t.buckets + 1 : FIRST_BUCKETS, .size = size};
    uint8_t *slots;
    uint64_t i;

    if (g->n >= g->t.buckets / 3 * 2) {
        slots = calloc(more.buckets, size);
        if (!slots)
            return NULL;
        for (i = 0; i < g->t.buckets; i++)
            if (ngram_u64(g->slot + i * size))
                put_slot(&more, slots, g->slot + i * size);
        free(g->slot);
        more.slot = g->slot = slots;
        g->t = more;
    }
    for (i = key % g->t.buckets; ngram_u64(g->slot + i * size); i = i + 1 == g->t.buckets ? 0 : i + 1)
        if (ngram_u64(g->slot + i * size) == key) {
            *is_new = false;
            return g->slot + i * size;
        }
    memcpy(g->slot + i * size, &key, sizeof key);
    g->n++;
    *is_new = true;
    return g->slot + i * size;
}

/* The values of a key; NULL: it is not there. */
static uint8_t *find(const struct growing *g, uint64_t key)
{
    if (g->n)
        for (uint64_t i = key % g->t.buckets; ngram_u64(g->slot + i * g->t.size); i = i + 1 == g->t.buckets ? 0 : i + 1)
            if (ngram_u64(g->slot + i * g->t.size) == key)
                return g->slot + i * g->t.size + 8;
    return NULL;
}

static void put_float(uint8_t *p, float x) { memcpy(p, &x, sizeof x); }
/* A longer n-gram ends so; begins so. */
static void mark_ends(uint8_t *prob) { put_float(prob, fabsf(ngram_float(prob))); }
static void mark_begins(uint8_t *backoff)
{
    if (ngram_float(backoff) == 0)
        put_float(backoff, 0);
}

/* ---- lines ---- */

static int read_more(struct arpa *a)
{
    enum { CHUNK = 1 << 16 };
    ssize_t got;

    memmove(a->bytes.p, a->bytes.p + a->at, a->bytes.n - a->at);
    a->bytes.n -= a->at;
    a->at = 0;
    if (a->bytes.n > NGRAM_MAX_LINE)
        return err_set(a->e, ERR_LIMIT, "'%s': at byte %" PRIu64 ": a line of more than %d bytes", a->m->name, a->offset,
                       NGRAM_MAX_LINE);
    if (buf_reserve(&a->bytes, CHUNK) < 0)
        return no_memory(a);
    got = file_read(a->f, a->bytes.p + a->bytes.n, CHUNK, a->e);
    if (got < 0)
        return (int)got;
    a->bytes.n += (size_t)got;
    a->all_read = got == 0;
    return 0;
}

/* The next line, ended by a NUL in its newline's place, in *line; 1, or 0 at the end. */
static int next_line(struct arpa *a, struct span *line)
{
    char *end = NULL;

    a->offset += line->n + (line->p != NULL);
    while ((end = a->bytes.n > a->at ? memchr(a->bytes.p + a->at, '\n', a->bytes.n - a->at) : NULL) == NULL && !a->all_read)
        TRY(read_more(a));
    if (!end && a->at == a->bytes.n)
        return 0;
    if (!end) {
        if (buf_reserve(&a->bytes, 1) < 0)
            return no_memory(a);
        end = a->bytes.p + a->bytes.n++;
    }
    *end = 0;
    *line = (struct span){a->bytes.p + a->at, (size_t)(end - a->bytes.p) - a->at};
    a->at += line->n + 1;
    return 1;
}

static struct span without_return(struct span s)
{
    while (s.n && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The next line that is not empty; what it means that there is none. */
static int next_full(struct arpa *a, struct span *line, const char *none)
{
    int got;

    while ((got = next_line(a, line)) > 0)
        if (without_return(*line).n)
            return 0;
    return got < 0 ? got : bad(a, none);
}

/* ---- entries ---- */

/* One entry of a section. */
struct entry {
    float prob, backoff;
    uint32_t word[NGRAM_MAX_ORDER]; /* from the last one back */
    struct span first;              /* as written */
};

static struct span next_field(char **p, char *end)
{
    char *start;

    while (*p < end && (**p == ' ' || **p == '\t' || **p == '\r'))
        ++*p;
    start = *p;
    while (*p < end && !(**p == ' ' || **p == '\t' || **p == '\r'))
        ++*p;
    return (struct span){start, (size_t)(*p - start)};
}

static int read_float(struct arpa *a, struct span s, float *x, const char *what)
{
    char *end;

    *x = strtof(s.p, &end);
    return s.n && end == s.p + s.n && isfinite(*x) ? 0 : bad(a, what);
}

/* A line of n words; their numbers unless it is a unigram. */
static int read_entry(struct arpa *a, struct span line, int n, struct entry *x)
{
    char *p = a->bytes.p + (line.p - a->bytes.p), *end = p + line.n;
    bool longest = n == a->m->order;
    struct span s;
    uint8_t *slot;

    TRY(read_float(a, next_field(&p, end), &x->prob, "a line that does not begin with a log probability"));
    if (x->prob > 0)
        return bad(a, "a log probability above 0");
    for (int i = 0; i < n; i++) {
        s = next_field(&p, end);
        if (!s.n)
            return bad(a, "fewer words than the section's n-grams have");
        if (n == 1) {
            x->first = s;
            continue;
        }
        slot = find(&a->words, ngram_hash(s));
        if (!slot && !span_is(s, "<unk>") && !span_is(s, "<UNK>"))
            return bad(a, "a word that is not among the unigrams");
        x->word[n - 1 - i] = slot ? ngram_u32(slot) : 0;
    }
    x->backoff = -0.0f;
    s = next_field(&p, end);
    if (!s.n)
        return 0;
    TRY(read_float(a, s, &x->backoff, "a backoff that is no number"));
    if (x->backoff == 0)
        x->backoff = -0.0f;
    else if (longest)
        return bad(a, "a backoff of a longest n-gram");
    return next_field(&p, end).n ? bad(a, "more words than the section's n-grams have") : 0;
}

static int add_unigram(struct arpa *a, const struct entry *x)
{
    bool unknown = span_is(x->first, "<unk>") || span_is(x->first, "<UNK>"), is_new = true;
    uint32_t number = unknown ? 0 : a->m->bound;
    uint8_t *slot;

    if (!unknown) {
        if (number == UINT32_MAX - 1)
            return bad(a, "more words than numbers");
        slot = find_or_add(&a->words, NGRAM_WORD_SLOT, ngram_hash(x->first), &is_new);
        if (!slot || mem_grow(&a->unigrams, &a->cap_unigrams, number + 1, NGRAM_UNIGRAM) < 0)
            return no_memory(a);
        if (!is_new)
            return bad(a, "a unigram that has been there");
        memcpy(slot + 8, &number, sizeof number);
        a->m->bound++;
    }
    a->saw_unknown |= unknown;
    put_float(a->unigrams + (size_t)number * NGRAM_UNIGRAM, x->prob);
    put_float(a->unigrams + (size_t)number * NGRAM_UNIGRAM + 4, x->backoff);
    return 0;
}

/* The values of the n-gram of the first n of these words, n at least 1; NULL: it is not there. */
static uint8_t *values_of(const struct arpa *a, const uint32_t *word, int n)
{
    uint64_t key = word[0];

    for (int i = 1; i < n; i++)
        key = ngram_key(key, word[i]);
    return n == 1 ? a->unigrams + (size_t)word[0] * NGRAM_UNIGRAM : find(&a->table[n - 2], key);
}

/* Shorter n-grams that end an n-gram but were pruned have to be there, so that it is found: they get what backing off gives.
 * All that end it are marked. */
static int fill_shorter(struct arpa *a, const struct entry *x, int n)
{
    uint64_t key[NGRAM_MAX_ORDER] = {x->word[0]};
    float prob;
    int have = n - 1;
    uint8_t *v, *slot;
    bool is_new;

    for (int i = 1; i < n; i++)
        key[i] = ngram_key(key[i - 1], x->word[i]);
    while ((v = values_of(a, x->word, have)) == NULL)
        have--;
    mark_ends(v);
    prob = -fabsf(ngram_float(v));
    for (int i = have + 1; i < n; i++) {
        v = values_of(a, x->word + 1, i - 1);
        if (v) {
            mark_begins(v + 4);
            prob += ngram_float(v + 4);
        }
        slot = find_or_add(&a->table[i - 2], NGRAM_SLOT, key[i - 1], &is_new);
        if (!slot)
            return no_memory(a);
        put_float(slot + 8, fabsf(prob));
        put_float(slot + 12, -0.0f);
    }
    return 0;
}

static int add_longer(struct arpa *a, const struct entry *x, int n)
{
    bool longest = n == a->m->order, is_new;
    uint64_t key = x->word[0];
    uint8_t *slot, *v;

    for (int i = 1; i < n; i++)
        key = ngram_key(key, x->word[i]);
    TRY(fill_shorter(a, x, n));
    slot = find_or_add(&a->table[n - 2], longest ? NGRAM_LONGEST_SLOT : NGRAM_SLOT, key, &is_new);
    if (!slot)
        return no_memory(a);
    if (!is_new)
        return bad(a, "an n-gram that has been there");
    put_float(slot + 8, -fabsf(x->prob));
    if (!longest)
        put_float(slot + 12, x->backoff);
    v = values_of(a, x->word + 1, n - 1);
    if (!v)
        return bad(a, "an n-gram whose first words are no n-gram");
    mark_begins(v + 4);
    return 0;
}

/* ---- the file ---- */

/* "\data\" and the counts. */
static int read_counts(struct arpa *a, struct span *line)
{
    struct ngram_model *m = a->m;
    char *end;
    int got;

    do
        TRY(next_full(a, line, "no \\data\\: neither an ARPA file nor a binary one of KenLM's"));
    while (*line->p == '#');
    if (!span_is(without_return(*line), "\\data\\"))
        return bad(a, "not \\data\\: neither an ARPA file nor a binary one of KenLM's");
    while ((got = next_line(a, line)) > 0 && without_return(*line).n) {
        char want[24];
        int n = snprintf(want, sizeof want, "ngram %d=", m->order + 1);
        if (!span_starts(*line, want) || !isdigit((unsigned char)line->p[n]))
            return bad(a, "not the count of the next order");
        if (m->order == NGRAM_MAX_ORDER)
            return err_set(a->e, ERR_UNSUPPORTED, "'%s': an order above %d", m->name, NGRAM_MAX_ORDER);
        m->count[m->order++] = strtoull(line->p + n, &end, 10);
        if (without_return((struct span){end, (size_t)(line->p + line->n - end)}).n)
            return bad(a, "a count that is no number");
    }
    TRY(got);
    return m->order < 2 ? bad(a, "no counts of at least unigrams and bigrams") : 0;
}

/* A section of n-grams, as many as were announced. */
static int read_section(struct arpa *a, int n, struct span *line)
{
    char head[24];
    struct entry x;

    TRY(next_full(a, line, "the file ends before all sections"));
    snprintf(head, sizeof head, "\\%d-grams:", n);
    if (!span_is(without_return(*line), head))
        return bad(a, "not the section of the next order: more or fewer n-grams than announced");
    for (uint64_t i = 0; i < a->m->count[n - 1]; i++) {
        int got = next_line(a, line);
        TRY(got);
        if (!got)
            return bad(a, "the file ends within its n-grams");
        TRY(read_entry(a, *line, n, &x));
        TRY(n == 1 ? add_unigram(a, &x) : add_longer(a, &x, n));
    }
    return 0;
}

static int read_all(struct arpa *a)
{
    struct span line = {0};
    float unknown = -100;
    int got;

    if (mem_grow(&a->unigrams, &a->cap_unigrams, 1, NGRAM_UNIGRAM) < 0)
        return no_memory(a);
    put_float(a->unigrams, unknown);
    put_float(a->unigrams + 4, 0);
    a->m->bound = 1;
    TRY(read_counts(a, &line));
    for (int n = 1; n <= a->m->order; n++)
        TRY(read_section(a, n, &line));
    TRY(next_full(a, &line, "no \\end\\"));
    if (!span_is(without_return(line), "\\end\\"))
        return bad(a, "not \\end\\: more n-grams than announced");
    while ((got = next_line(a, &line)) > 0)
        if (without_return(line).n)
            return bad(a, "a line after \\end\\");
    return got;
}

/* Tables without entries can be searched too. */
static int hand_over(struct arpa *a)
{
    static const uint8_t empty[NGRAM_SLOT];
    struct ngram_model *m = a->m;

    m->kind = "arpa";
    m->unigrams = a->unigrams;
    m->words = a->words.t;
    for (int i = 0; i < m->order - 1; i++)
        m->table[i] = a->table[i].n ? a->table[i].t : (struct ngram_table){empty, 1, NGRAM_SLOT};
    if (!a->words.n)
        m->words = (struct ngram_table){empty, 1, NGRAM_SLOT};
    m->begin = ngram_word(m, span_of("<s>"));
    m->end = ngram_word(m, span_of("</s>"));
    if (!m->begin || !m->end)
        return err_set(a->e, ERR_FORMAT, "'%s' lacks the unigram %s", m->name, m->begin ? "</s>" : "<s>");
    return 0;
}

int ngram_arpa_read(struct ngram_model *m, struct file_in *f, struct span head, struct err *e)
{
    struct arpa a = {.m = m, .f = f, .e = e};
    int rc = buf_put_span(&a.bytes, head) < 0 ? no_memory(&a) : 0;

    if (rc == 0)
        rc = read_all(&a);
    if (rc == 0)
        rc = hand_over(&a);
    m->owned[0] = a.unigrams;
    m->owned[1] = a.words.slot;
    for (int i = 0; i < NGRAM_MAX_ORDER - 1; i++)
        m->owned[i + 2] = a.table[i].slot;
    buf_free(&a.bytes);
    return rc;
}
