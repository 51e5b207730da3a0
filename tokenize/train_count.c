#include "tokenize/train_count.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/utf8.h"
#include "tokenize/model.h"
#include "tokenize/train_write.h"

enum { ENDS = 1024, READ_BUFFER = 1 << 16, WRITE_BUFFER = 1 << 20, THREAD_NEEDS = 6 << 20, TALLY_LEAST = 8 << 20 };

/* ---- reading ---- */

struct counting {
    const struct train_options *x;
    const struct train_across *across; /* or NULL */
    struct lines_in in;
    struct split split;
    struct tokenizer *steps; /* of kinds that have them: what they do to text; else NULL, and split cuts it */
    struct gate read;
    struct tally *tally; /* one a thread */
    struct tally_disk disk;
    uint64_t share; /* bytes that each tally may take */
    uint64_t next;
    pthread_mutex_t lock; /* of what follows */
    uint64_t texts, bytes, bad;
    struct err err;
    int rc;
};

struct counter { /* of a thread */
    struct counting *c;
    struct tally *tally;
    struct line_block block;
    struct line_reader reader;
    uint32_t ends[ENDS];
    uint64_t place; /* of the next word in the corpus: words are numbered within blocks */
    struct rules_scratch rules;
    struct buf repaired, normal;
    struct across_cutter cutter;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for words");
}

static void fail(struct counting *c, int rc, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    if (c->rc == 0) {
        c->rc = rc;
        c->err = *e;
    }
    pthread_mutex_unlock(&c->lock);
    gate_stop(&c->read);
}

/* What decoders take (zstd: its window) is known by having been taken only. */
static bool is_crowded(const struct counter *k, uint64_t size)
{
    uint64_t more = size - tally_size(k->tally);

    return size > TALLY_LEAST && mem_resident().all + more > k->c->x->memory;
}

/* No room is left for n more words of so many bytes. */
static bool is_full(const struct counter *k, uint64_t n, uint64_t bytes)
{
    uint64_t size = tally_size_with(k->tally, n, bytes);

    return size > k->c->share || (size > tally_size(k->tally) + TALLY_LEAST && is_crowded(k, size));
}

/* The words of a text that end at ends[0..n-1]. */
static int count_words(struct counter *k, const char *text, uint32_t begin, const uint32_t *ends, size_t n, struct err *e)
{
    if (k->tally->n && is_full(k, n, ends[n - 1] - begin))
        TRY(tally_disk_put(&k->c->disk, k->tally, e));
    if (tally_text(k->tally, (const uint8_t *)text, begin, ends, n, k->place) < 0)
        return no_memory(e);
    k->place += n;
    return 0;
}

/* The words that steps make of a text. */
static int count_steps(struct counter *k, struct span text, struct err *e)
{
    const struct rules *r = k->c->steps->rules;
    struct strings *pieces = &k->rules.pieces;
    uint32_t *ends, begin = 0;

    buf_clear(&k->repaired);
    if (!utf8_valid(text)) {
        if (utf8_repair(text, &k->repaired) < 0)
            return no_memory(e);
        text = buf_span(&k->repaired);
    }
    TRY(rules_normalize(r, &k->rules, text, true, &k->normal, &text, e));
    if (!text.n)
        return 0;
    TRY(rules_pieces(r, &k->rules, text, e));
    ends = (uint32_t *)(void *)pieces->ends.p;
    if (train_kinds[k->c->x->model].scored && pieces->ends.n) {
        if (buf_putc(&pieces->text, 0) < 0)
            return no_memory(e);
        ends[strings_n(pieces) - 1]++;
    }
    for (size_t i = 0, n, all = strings_n(pieces); i < all; i += n) {
        n = all - i < ENDS ? all - i : ENDS;
        TRY(count_words(k, pieces->text.p, begin, ends + i, n, e));
        begin = ends[i + n - 1];
    }
    return 0;
}

/* The segments of a text. */
static int count_across(struct counter *k, struct span text, struct err *e)
{
    for (size_t at = 0, n; at < text.n; at += n) {
        const uint32_t *ends;
        uint32_t begin = 0;
        n = text.n - at < ACROSS_SLICE ? text.n - at : ACROSS_SLICE;
        TRY(across_cut(&k->cutter, k->c->across, (struct span){text.p + at, n}, e));
        ends = (const uint32_t *)(const void *)k->cutter.ends.p;
        for (size_t i = 0, some, all = k->cutter.ends.n / sizeof *ends; i < all; i += some) {
            some = all - i < ENDS ? all - i : ENDS;
            TRY(count_words(k, k->cutter.ids.p, begin, ends + i, some, e));
            begin = ends[i + some - 1];
        }
    }
    return 0;
}

static int count_text(struct counter *k, struct span text, struct err *e)
{
    struct split_state st;
    uint32_t begin = 0;
    int64_t n;

    if (text.n > INT32_MAX)
        return err_set(e, ERR_FORMAT, "the text is longer than 2 GiB");
    if (k->c->across)
        return count_across(k, text, e);
    if (k->c->steps)
        return count_steps(k, text, e);
    split_begin(&st, text.p, text.n);
    while ((n = split_next(&k->c->split, &st, k->ends, ENDS, e)) > 0) {
        TRY(count_words(k, text.p, begin, k->ends, (size_t)n, e));
        begin = k->ends[n - 1];
    }
    return n < 0 ? (int)n : 0;
}

/* The words of a block; its bad lines are told at once: their order among threads is free,
 * so the caller gets them under the lock. */
static int count_block(struct counter *k, struct err *e)
{
    struct counting *c = k->c;
    uint64_t texts = 0, bytes = 0;

    if (k->tally->n && is_crowded(k, tally_size(k->tally)))
        TRY(tally_disk_put(&c->disk, k->tally, e));
    for (size_t i = 0; i < k->block.n; i++) {
        struct span text;
        int rc = line_text(&k->block.line[i], c->x->key, &k->reader, &text, e);
        if (rc == 0)
            rc = count_text(k, text, e);
        if (rc == ERR_FORMAT) {
            pthread_mutex_lock(&c->lock);
            c->bad++;
            if (c->x->bad)
                c->x->bad(&k->block.line[i], e);
            pthread_mutex_unlock(&c->lock);
            continue;
        }
        if (rc < 0)
            return err_wrap(e, "'%s', offset %llu", k->block.line[i].file,
                            (unsigned long long)k->block.line[i].offset);
        texts++;
        bytes += text.n;
    }
    pthread_mutex_lock(&c->lock);
    c->texts += texts;
    c->bytes += bytes;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static void count_thread(void *arg, int thread)
{
    struct counting *c = arg;
    struct counter *k = calloc(1, sizeof *k);
    struct err e;
    int rc = k ? line_reader_init(&k->reader, &e) : no_memory(&e);

    while (rc == 0) {
        uint64_t ticket = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        if (gate_enter(&c->read, ticket) < 0)
            break;
        rc = lines_fill(&c->in, &k->block, &e);
        gate_leave(&c->read);
        if (rc < 0 || k->block.n == 0)
            break;
        k->c = c;
        k->tally = &c->tally[thread];
        k->place = ticket << 32;
        rc = count_block(k, &e);
    }
    if (rc < 0)
        fail(c, rc, &e);
    if (k) {
        line_reader_free(&k->reader);
        line_block_free(&k->block);
        rules_scratch_free(&k->rules);
        buf_free(&k->repaired);
        buf_free(&k->normal);
        across_cutter_free(&k->cutter);
    }
    free(k);
}

/* Makes ready what cuts text: the pattern, or a tokenizer that has the kind's steps and no words. */
static int find_cutter(struct counting *c, struct err *e)
{
    const struct train_options *x = c->x;
    const struct train_kind *kind = &train_kinds[x->model];
    struct buf json = {0};
    int rc;

    if (c->across)
        return 0;
    if (!kind->pre_tokenizer)
        return split_find(&c->split, train_pattern(x), e);
    rc = buf_printf(&json, "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\","
                    "\"vocab\":{\"?\":0}}}", kind->normalizer, kind->pre_tokenizer);
    rc = rc < 0 ? no_memory(e) : tokenizer_open_json(&c->steps, "steps", buf_span(&json), NULL, e);
    buf_free(&json);
    return rc;
}

static int count_files(struct counting *c, char *const *paths, int n_paths, int threads, struct err *e)
{
    int rc = find_cutter(c, e);

    if (rc < 0)
        return rc;
    c->in = LINES_OF_TEXTS(LINES_AUTO, paths, n_paths);
    c->in.columns = c->x->columns;
    rc = lines_check(&c->in, NULL, e);
    gate_init(&c->read);
    pthread_mutex_init(&c->lock, NULL);
    if (rc == 0)
        rc = pool_run(threads, count_thread, c, e);
    if (rc == 0 && (rc = c->rc) < 0)
        *e = c->err;
    pthread_mutex_destroy(&c->lock);
    gate_destroy(&c->read);
    lines_close(&c->in);
    split_free(&c->split);
    tokenizer_close(c->steps);
    return rc;
}

/* ---- together ---- */

/* The tallies of all threads together in the first, if it may grow so much; or on disk. */
static int join_tallies(struct counting *c, int n, uint64_t memory, struct err *e)
{
    uint64_t size = 0;

    for (int i = 0; i < n; i++)
        size += tally_size(&c->tally[i]);
    if (tally_disk_empty(&c->disk) && (n == 1 || size * 3 <= memory)) {
        for (int i = 1; i < n; i++) {
            for (const struct tally_entry *x = NULL; (x = tally_next(&c->tally[i], x));)
                if (tally_add(&c->tally[0], tally_word(&c->tally[i], x), x->count, x->place) < 0)
                    return no_memory(e);
            tally_free(&c->tally[i]);
        }
        return 0;
    }
    for (int i = 0; i < n; i++) {
        if (c->tally[i].n)
            TRY(tally_disk_put(&c->disk, &c->tally[i], e));
        tally_free(&c->tally[i]);
    }
    return 0;
}

/* ---- words in order ---- */

struct record { /* a word's bytes follow */
    uint64_t count, place;
    uint32_t length;
} __attribute__((packed));

static int by_place(const void *a, const void *b)
{
    const struct tally_entry *x = *(const struct tally_entry *const *)a, *y = *(const struct tally_entry *const *)b;

    return (x->place > y->place) - (x->place < y->place);
}

/* The words of a tally in the order asked for; *n of them.  NULL: out of memory. */
static const struct tally_entry **list_words(const struct tally *t, bool in_order, uint64_t *n)
{
    const struct tally_entry **v = malloc((t->n + 1) * sizeof *v);

    *n = 0;
    for (const struct tally_entry *x = NULL; v && (x = tally_next(t, x));)
        v[(*n)++] = x;
    if (v && in_order)
        qsort(v, *n, sizeof *v, by_place);
    return v;
}

/* Counts the words themselves. */
static int sum_words(struct word_counts *w, const struct tally *t, struct err *e)
{
    for (const struct tally_entry *x = NULL; (x = tally_next(t, x));) {
        uint64_t n = tally_word(t, x).n, sum;
        w->n++;
        w->bytes += n;
        if (__builtin_mul_overflow(n, x->count, &sum) || __builtin_add_overflow(sum, w->total, &w->total) ||
            w->total > INT64_MAX)
            return err_set(e, ERR_LIMIT, "the counts of words are too high: 2^63 bytes and more");
    }
    return 0;
}

static int write_words(struct word_counts *w, const struct tally *t, struct err *e)
{
    uint64_t n;
    const struct tally_entry **v = list_words(t, w->in_order, &n);
    int rc = v ? 0 : no_memory(e);

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        struct span s = tally_word(t, v[i]);
        struct record r = {v[i]->count, v[i]->place, (uint32_t)s.n};
        rc = spill_put(&w->words, &r, sizeof r, e);
        if (rc == 0)
            rc = spill_put(&w->words, s.p, s.n, e);
    }
    free(v);
    return rc;
}

static int gather_parts(struct word_counts *w, const struct tally_disk *d, const struct train_options *x,
                        struct err *e)
{
    struct tally t = {0};
    int rc = 0;

    w->on_disk = true;
    TRY(spill_open(&w->words, x->tmp, WRITE_BUFFER, e));
    for (int i = 0; i < TALLY_PARTS && rc == 0; i++) {
        tally_clear(&t);
        rc = tally_disk_get(d, i, &t, e);
        if (rc == 0)
            rc = sum_words(w, &t, e);
        if (rc == 0)
            rc = write_words(w, &t, e);
        w->part[i + 1] = w->words.size;
    }
    tally_free(&t);
    return rc < 0 ? rc : spill_flush(&w->words, e);
}

int word_counts_move(struct word_counts *w, const struct train_options *x, struct err *e)
{
    if (w->on_disk)
        return 0;
    w->on_disk = true;
    TRY(spill_open(&w->words, x->tmp, WRITE_BUFFER, e));
    TRY(write_words(w, &w->tally, e));
    tally_free(&w->tally);
    for (int i = 1; i <= TALLY_PARTS; i++)
        w->part[i] = w->words.size;
    return spill_flush(&w->words, e);
}

int word_counts_make(struct word_counts *w, char *const *paths, int n_paths, const struct train_across *across,
                     const struct train_options *x, struct train_result *r, struct err *e)
{
    uint64_t needs = THREAD_NEEDS + (across ? ACROSS_THREAD_NEEDS : 0);
    int most = (int)(x->memory / (2 * needs)), threads = most < 1 ? 1 : x->threads < most ? x->threads : most;
    struct counting c = {.x = x, .across = across, .tally = calloc((size_t)threads, sizeof *c.tally)};
    int rc;

    *w = (struct word_counts){.in_order = x->ties == TRAIN_TIES_TIKTOKEN, .words = {.fd = -1}};
    if (!c.tally)
        return no_memory(e);
    c.share = x->memory / (uint64_t)threads - needs;
    rc = tally_disk_open(&c.disk, x->tmp, e);
    if (rc == 0)
        rc = count_files(&c, paths, n_paths, threads, e);
    if (rc == 0 && c.bad && !c.texts)
        rc = err_set(e, ERR_FORMAT, "none of %" PRIu64 " records is a document: nothing is written", c.bad);
    if (rc == 0)
        rc = join_tallies(&c, threads, x->memory, e);
    if (rc == 0 && !tally_disk_empty(&c.disk)) {
        rc = gather_parts(w, &c.disk, x, e);
    } else if (rc == 0) {
        w->tally = c.tally[0];
        c.tally[0] = (struct tally){0};
        rc = sum_words(w, &w->tally, e);
    }
    for (int i = 0; i < threads; i++)
        tally_free(&c.tally[i]);
    free(c.tally);
    tally_disk_close(&c.disk);
    r->texts = c.texts;
    r->bytes = c.bytes;
    r->bad = c.bad;
    r->words = w->n;
    return rc;
}

void word_counts_free(struct word_counts *w)
{
    tally_free(&w->tally);
    spill_close(&w->words);
}

/* ---- giving them out ---- */

struct source { /* a part */
    struct spill_reader r;
    struct record x;
    bool open;
};

/* The next word's record; false: the end. */
static bool next_record(struct source *s, int *rc, struct err *e)
{
    if (s->r.at == s->r.end && s->r.pos == s->r.have)
        return false;
    *rc = spill_next(&s->r, &s->x, sizeof s->x, e);
    return *rc == 0;
}

static int give(struct source *s, struct buf *word, word_counts_fn *fn, void *arg, struct err *e)
{
    buf_clear(word);
    if (buf_reserve(word, s->x.length) < 0)
        return no_memory(e);
    TRY(spill_next(&s->r, word->p, s->x.length, e));
    return fn(arg, (struct span){word->p, s->x.length}, s->x.count, e);
}

/* All parts at once, the lowest place first. */
static int merge_parts(struct source *s, struct buf *word, word_counts_fn *fn, void *arg, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < TALLY_PARTS; i++)
        s[i].open = next_record(&s[i], &rc, e);
    while (rc == 0) {
        int best = -1;
        for (int i = 0; i < TALLY_PARTS; i++)
            if (s[i].open && (best < 0 || s[i].x.place < s[best].x.place))
                best = i;
        if (best < 0)
            break;
        rc = give(&s[best], word, fn, arg, e);
        if (rc == 0)
            s[best].open = next_record(&s[best], &rc, e);
    }
    return rc;
}

static int each_on_disk(struct word_counts *w, word_counts_fn *fn, void *arg, struct err *e)
{
    struct source *s = calloc(TALLY_PARTS, sizeof *s);
    struct buf word = {0};
    int rc = s ? 0 : no_memory(e);

    for (int i = 0; i < TALLY_PARTS && rc == 0; i++)
        rc = spill_reader_open(&s[i].r, &w->words, w->part[i], w->part[i + 1], READ_BUFFER, e);
    if (rc == 0 && w->in_order)
        rc = merge_parts(s, &word, fn, arg, e);
    for (int i = 0; i < TALLY_PARTS && rc == 0; i++)
        while (rc == 0 && next_record(&s[i], &rc, e))
            rc = give(&s[i], &word, fn, arg, e);
    for (int i = 0; s && i < TALLY_PARTS; i++)
        spill_reader_close(&s[i].r);
    free(s);
    buf_free(&word);
    return rc;
}

int word_counts_each(struct word_counts *w, word_counts_fn *fn, void *arg, struct err *e)
{
    const struct tally_entry **v;
    uint64_t n;
    int rc = 0;

    if (w->on_disk)
        return each_on_disk(w, fn, arg, e);
    v = list_words(&w->tally, w->in_order, &n);
    if (!v)
        return no_memory(e);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = fn(arg, tally_word(&w->tally, v[i]), v[i]->count, e);
    free(v);
    return rc;
}
