#include "tokenize/measure.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "tokenize/model.h"
#include "tokenize/ucd.h"

enum {
    MEASURE_GROUPS = 1000, /* values of the field that are told apart; later ones are "other" */
    MEASURE_NAME = 32      /* bytes of a value, and a zero; longer ones are "other" too */
};

struct measure_sums {
    uint64_t documents, bytes, characters, words, tokens;
    uint64_t unknown; /* tokens that say that a character has none */
    uint64_t partial; /* tokens of bytes that are no whole characters; all those of byte fallback */
};

struct measure_group {
    char name[MEASURE_NAME];
    struct measure_sums sums;
};

struct measure {
    struct buf groups; /* struct measure_group */
    struct measure_sums all;
    uint64_t bad;      /* lines without a text */
};

enum token_kind { WHOLE, UNKNOWN, PARTIAL };

struct measuring {
    const struct measure_options *x;
    const struct tokenizer *t;
    struct lines_in in;
    uint8_t *kinds; /* enum token_kind, by id */
    struct gate read, add;
    uint64_t next;
    struct measure *m; /* added to block by block, in order */
    pthread_mutex_t lock; /* of what follows, and of x->bad */
    struct err err;
    int rc;
};

struct measurer { /* of a thread */
    struct measuring *s;
    struct encoder *enc;
    struct line_block block;
    struct line_reader reader;
    struct buf ids;
    struct measure found; /* in a block */
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for measuring");
}

static void measure_free(struct measure *m)
{
    buf_free(&m->groups);
}

/* ---- tokens ---- */

/* Which ids say that a character has no token, and which are parts of characters.  NULL: out of memory. */
static uint8_t *find_kinds(const struct tokenizer *t)
{
    uint32_t n = tokenizer_vocab_size(t);
    const struct rules *r = t->rules;
    bool bytes = !r || r->model == MODEL_BYTES;
    int64_t unknown = bytes ? -1 : r->model == MODEL_CHARS ? r->chars.unknown : r->model == MODEL_UNIGRAM ? r->unigram.unknown
                                                                                                         : r->words.unknown;
    const int64_t *fallback = bytes || r->model == MODEL_WORDS ? NULL
                              : r->model == MODEL_CHARS ? r->chars.byte_id : r->unigram.byte_id;
    uint8_t *kinds = calloc((size_t)n + 1, 1);

    for (uint32_t id = 0; kinds && bytes && id < n; id++) {
        struct span s = tokenizer_bytes(t, id);
        kinds[id] = s.p && !utf8_valid(s) ? PARTIAL : WHOLE;
    }
    for (int i = 0; kinds && fallback && i < 256; i++)
        if (fallback[i] >= 0 && fallback[i] < n)
            kinds[fallback[i]] = PARTIAL;
    if (kinds && unknown >= 0 && unknown < n)
        kinds[unknown] = UNKNOWN;
    return kinds;
}

/* ---- texts ---- */

/* White space as Python's str.split() has it: Unicode's, and four separators. */
static bool is_space(uint32_t cp)
{
    return (ucd_class(cp) & UCD_SPACE) || (cp >= 0x1C && cp <= 0x1F);
}

static void count_text(struct span text, struct measure_sums *sums)
{
    bool space = true;
    uint32_t cp;

    sums->documents++;
    sums->bytes += text.n;
    for (size_t i = 0; i < text.n; sums->characters++) {
        bool before = space;
        i += (size_t)utf8_next(text.p + i, text.p + text.n, &cp);
        space = is_space(cp);
        sums->words += before && !space;
    }
}

static void add_sums(struct measure_sums *to, const struct measure_sums *x)
{
    to->documents += x->documents;
    to->bytes += x->bytes;
    to->characters += x->characters;
    to->words += x->words;
    to->tokens += x->tokens;
    to->unknown += x->unknown;
    to->partial += x->partial;
}

static size_t n_groups(const struct measure *m)
{
    return m->groups.n / sizeof(struct measure_group);
}

static struct measure_group *group_at(const struct measure *m, size_t i)
{
    return (struct measure_group *)(void *)m->groups.p + i;
}

/* The sums of the group of this name, made if need be.  NULL: out of memory. */
static struct measure_sums *find_group(struct measure *m, struct span name)
{
    struct measure_group x = {.name = ""};

    if (name.n >= MEASURE_NAME || memchr(name.p, 0, name.n))
        name = span_of("other");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < n_groups(m); i++)
            if (span_is(name, group_at(m, i)->name))
                return &group_at(m, i)->sums;
        if (n_groups(m) < MEASURE_GROUPS)
            break;
        name = span_of("other");
    }
    memcpy(x.name, name.p, name.n);
    return buf_put(&m->groups, &x, sizeof x) < 0 ? NULL : &group_at(m, n_groups(m) - 1)->sums;
}

/* True if a line is a document, and no text by itself. */
static bool is_document(const struct line *x)
{
    size_t i = 0;

    while (i < x->text.n && strchr(" \t\r", x->text.p[i]))
        i++;
    return !x->plain && i < x->text.n && x->text.p[i] == '{';
}

/* A line's text, and its value of the field, or "none". */
static int read_line(struct measurer *w, size_t i, struct span *text, struct span *name, struct err *e)
{
    const struct measuring *s = w->s;
    const char *keys[] = {s->x->key, s->x->by};
    struct span both[2];
    int rc = is_document(&w->block.line[i]) ? line_texts(&w->block.line[i], keys, 2, &w->reader, both, e) : ERR_FORMAT;

    *name = span_of("none");
    if (rc == ERR_FORMAT)
        return line_text(&w->block.line[i], s->x->key, &w->reader, text, e);
    if (rc < 0)
        return rc;
    *text = both[0];
    if (both[1].n)
        *name = both[1];
    return 0;
}

static int measure_line(struct measurer *w, size_t i, struct err *e)
{
    struct measure_sums *sums;
    struct span text, name;
    const uint32_t *ids;

    TRY(read_line(w, i, &text, &name, e));
    buf_clear(&w->ids);
    TRY(encoder_encode(w->enc, text, 0, 4, &w->ids, e));
    if (!(sums = find_group(&w->found, name)))
        return no_memory(e);
    count_text(text, sums);
    ids = (const uint32_t *)(const void *)w->ids.p;
    sums->tokens += w->ids.n / sizeof *ids;
    for (size_t k = 0; k < w->ids.n / sizeof *ids; k++) {
        sums->unknown += w->s->kinds[ids[k]] == UNKNOWN;
        sums->partial += w->s->kinds[ids[k]] == PARTIAL;
    }
    return 0;
}

static int measure_block(struct measurer *w, struct err *e)
{
    struct measuring *s = w->s;

    buf_clear(&w->found.groups);
    w->found.bad = 0;
    for (size_t i = 0; i < w->block.n; i++) {
        int rc = measure_line(w, i, e);
        if (rc == ERR_FORMAT || rc == ERR_LIMIT) {
            pthread_mutex_lock(&s->lock);
            s->x->bad(&w->block.line[i], e);
            pthread_mutex_unlock(&s->lock);
            w->found.bad++;
        } else if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int add_block(struct measure *m, const struct measure *found, struct err *e)
{
    m->bad += found->bad;
    for (size_t i = 0; i < n_groups(found); i++) {
        struct measure_sums *sums = find_group(m, span_of(group_at(found, i)->name));
        if (!sums)
            return no_memory(e);
        add_sums(sums, &group_at(found, i)->sums);
        add_sums(&m->all, &group_at(found, i)->sums);
    }
    return 0;
}

static void measure_thread(void *arg, int thread)
{
    struct measuring *s = arg;
    struct measurer w = {.s = s, .enc = encoder_new(s->t)};
    struct err e;
    int rc = w.enc ? line_reader_init(&w.reader, &e) : no_memory(&e);

    (void)thread;
    while (rc == 0) {
        uint64_t ticket = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
        if (gate_enter(&s->read, ticket) < 0)
            break;
        rc = lines_fill(&s->in, &w.block, &e);
        gate_leave(&s->read);
        if (rc < 0 || w.block.n == 0)
            break;
        rc = measure_block(&w, &e);
        if (rc < 0 || gate_enter(&s->add, ticket) < 0)
            break;
        rc = add_block(s->m, &w.found, &e);
        gate_leave(&s->add);
    }
    if (rc < 0) {
        pthread_mutex_lock(&s->lock);
        if (s->rc == 0) {
            s->rc = rc;
            s->err = e;
        }
        pthread_mutex_unlock(&s->lock);
        gate_stop(&s->read);
        gate_stop(&s->add);
    }
    encoder_free(w.enc);
    line_reader_free(&w.reader);
    line_block_free(&w.block);
    buf_free(&w.ids);
    measure_free(&w.found);
}

static int by_bytes(const void *a, const void *b)
{
    const struct measure_group *x = a, *y = b;

    return x->sums.bytes != y->sums.bytes ? (x->sums.bytes < y->sums.bytes ? 1 : -1) : strcmp(x->name, y->name);
}

/* Measures all texts.  Free in any case. */
static int measure_make(struct measure *m, const struct tokenizer *t, const char *const *paths, int n_paths,
                        const struct measure_options *x, struct err *e)
{
    struct measuring s = {.x = x, .t = t, .m = m, .kinds = find_kinds(t)};
    int rc;

    memset(m, 0, sizeof *m);
    if (!s.kinds)
        return no_memory(e);
    if (strcmp(x->key, x->by) == 0) {
        free(s.kinds);
        return err_set(e, ERR_ARG, "the field of the text, '%s', is no field to measure by", x->by);
    }
    s.in = LINES_OF_TEXTS(LINES_AUTO, (char *const *)(uintptr_t)paths, n_paths);
    s.in.columns = x->columns;
    rc = lines_check(&s.in, NULL, e);
    gate_init(&s.read);
    gate_init(&s.add);
    pthread_mutex_init(&s.lock, NULL);
    if (rc == 0)
        rc = pool_run(x->threads, measure_thread, &s, e);
    if (rc == 0 && (rc = s.rc) < 0)
        *e = s.err;
    pthread_mutex_destroy(&s.lock);
    gate_destroy(&s.add);
    gate_destroy(&s.read);
    lines_close(&s.in);
    free(s.kinds);
    if (n_groups(m))
        qsort(m->groups.p, n_groups(m), sizeof(struct measure_group), by_bytes);
    return rc;
}

/* ---- reports ---- */

/* 0 of 0 is 0. */
static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static void put_row(struct buf *out, const char *name, const struct measure_sums *s)
{
    struct buf shown = {0};

    if (json_put_string(&shown, span_of(name)) < 0) { /* what is not to reach a terminal is escaped there */
        out->failed = ERR_NOMEM;
        buf_free(&shown);
        return;
    }
    buf_printf(out, "%-12.*s %10" PRIu64 " %13" PRIu64 " %13" PRIu64 " %7.3f %7.3f %7.3f %8.4f %8.4f\n",
               (int)shown.n - 2, shown.p + 1, s->documents, s->bytes, s->tokens,
               ratio(s->bytes, s->tokens), ratio(s->characters, s->tokens), ratio(s->tokens, s->words),
               100 * ratio(s->unknown, s->tokens), 100 * ratio(s->partial, s->tokens));
    buf_free(&shown);
}

static int put_table(const struct measure *m, struct buf *out, struct err *e)
{
    buf_printf(out, "%-12s %10s %13s %13s %7s %7s %7s %8s %8s\n", "language", "documents", "bytes", "tokens", "bytes/t",
               "chars/t", "t/word", "unknown%", "partial%");
    for (size_t i = 0; i < n_groups(m); i++)
        put_row(out, group_at(m, i)->name, &group_at(m, i)->sums);
    put_row(out, "all", &m->all);
    return out->failed ? no_memory(e) : 0;
}

static void put_ratio(struct buf *out, const char *key, uint64_t a, uint64_t b)
{
    json_put_key(out, key);
    json_put_num(out, ratio(a, b));
}

static void put_sums(struct buf *out, const struct measure_sums *s)
{
    json_put_count(out, "documents", s->documents);
    json_put_count(out, "bytes", s->bytes);
    json_put_count(out, "characters", s->characters);
    json_put_count(out, "words", s->words);
    json_put_count(out, "tokens", s->tokens);
    json_put_count(out, "unknown", s->unknown);
    json_put_count(out, "partial", s->partial);
    put_ratio(out, "bytes_per_token", s->bytes, s->tokens);
    put_ratio(out, "characters_per_token", s->characters, s->tokens);
    put_ratio(out, "tokens_per_word", s->tokens, s->words);
    put_ratio(out, "unknown_share", s->unknown, s->tokens);
    put_ratio(out, "partial_share", s->partial, s->tokens);
}

static int put_json(const struct measure *m, struct buf *out, struct err *e)
{
    buf_putc(out, '{');
    json_put_count(out, "bad", m->bad);
    put_sums(out, &m->all);
    json_put_key(out, "languages");
    buf_putc(out, '[');
    for (size_t i = 0; i < n_groups(m); i++) {
        buf_puts(out, i ? ",{" : "{");
        json_put_key(out, "language");
        json_put_string(out, span_of(group_at(m, i)->name));
        put_sums(out, &group_at(m, i)->sums);
        buf_putc(out, '}');
    }
    return buf_puts(out, "]}\n") < 0 ? no_memory(e) : 0;
}

int measure_report(const struct tokenizer *t, const char *const *paths, int n_paths, const struct measure_options *x,
                   struct buf *table, uint64_t *bad, struct err *e)
{
    struct measure m;
    struct buf json = {0};
    int rc = measure_make(&m, t, paths, n_paths, x, e);

    if (rc == 0)
        rc = put_table(&m, table, e);
    if (rc == 0 && x->stats) {
        rc = put_json(&m, &json, e);
        rc = rc < 0 ? rc : file_write_all(x->stats, buf_span(&json), e);
    }
    if (m.bad)
        log_msg(LOG_WARN, "%" PRIu64 " lines were bad and were skipped", m.bad);
    *bad = m.bad;
    measure_free(&m);
    buf_free(&json);
    return rc;
}
