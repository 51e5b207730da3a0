#include "tokenize/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/progress.h"
#include "tokenize/jinja.h"
#include "tokenize/origin.h"
#include "tokenize/output.h"

enum { TOKENS_KEPT = 1 << 21 }; /* bytes of memory that a block keeps for the next one */

struct pipeline {
    const struct pipeline_options *x;
    struct lines_in in;
    struct output out;
    struct word_share *share; /* NULL: one thread */
    int width;
    /* Who reads the input. */
    pthread_mutex_t reading;
    uint64_t blocks; /* read so far */
    bool ended;
    /* Who writes, which is whoever brings the block that is due. */
    struct belt belt;
    struct pipeline_result total;
    double saved; /* when the last checkpoint was */
    /* The first failure. */
    pthread_mutex_t lock;
    struct err err;
    int rc;
};

/* A block and what a thread makes of it. */
struct product {
    struct line_block block;
    double consumed; /* bytes as stored of the inputs up to its end, for progress */
    struct { /* for each key tokens in the output's type, and int32_t a document */
        struct buf tokens, lengths;
        struct buf ledger; /* struct ledger_item a document */
        struct pipeline_key_counts count;
    } key[LINE_KEYS_MAX];
    struct buf records; /* of the documents, for a ledger */
    struct buf faults; /* struct fault, in order */
};

struct fault {
    size_t line;
    struct err err;
};

static void fail(struct pipeline *p, int rc, const struct err *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->rc == 0) {
        p->rc = rc;
        p->err = *e;
    }
    pthread_mutex_unlock(&p->lock);
    belt_stop(&p->belt);
}

static int put_token(int width, uint32_t id, struct buf *tokens, struct err *e)
{
    uint16_t half = (uint16_t)id;

    if (buf_put(tokens, width == 2 ? (void *)&half : (void *)&id, (size_t)width) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for tokens");
    return 0;
}

int pipeline_encode(const struct pipeline_options *x, struct encoder *enc, int width, struct span text, struct buf *tokens,
                    struct pipeline_key_counts *c, int32_t *length, struct err *e)
{
    uint64_t specials = encoder_specials_seen(enc);
    size_t before = tokens->n;

    if (x->format != PIPELINE_MEGATRON && x->prepend >= 0)
        TRY(put_token(width, (uint32_t)x->prepend, tokens, e));
    TRY(encoder_encode(enc, text, x->allow_special ? ENCODER_SPECIAL : 0, width, tokens, e));
    /* As Megatron does it: an empty document gets no end. */
    if (x->append_eod && tokens->n > before)
        TRY(put_token(width, (uint32_t)tokenizer_eod(x->tokenizer), tokens, e));
    *length = (int32_t)((tokens->n - before) / (size_t)width);
    c->tokens += (uint64_t)*length;
    c->empty += *length == 0;
    c->bytes += text.n;
    c->specials += encoder_specials_seen(enc) - specials;
    return 0;
}

void pipeline_tell_eod(const struct tokenizer *t)
{
    int64_t id = tokenizer_eod(t);
    struct span token = tokenizer_bytes(t, (uint32_t)id);

    log_msg(LOG_INFO, "documents end with %" PRId64 ", '%.*s': %s", id, (int)token.n, token.p, tokenizer_eod_from(t));
}

/* Appends one text. */
static int encode_text(struct pipeline *p, struct encoder *enc, struct span text, struct product *out, int k,
                       struct err *e)
{
    int32_t length;

    TRY(pipeline_encode(p->x, enc, p->width, text, &out->key[k].tokens, &out->key[k].count, &length, e));
    return buf_put(&out->key[k].lengths, &length, sizeof length) < 0
               ? err_set(e, ERR_NOMEM, "out of memory for lengths") : 0;
}

/* To key 1's: 1 for each token of key 0's, from byte `before` of them on, that is of an answer of c, else 0. */
static int encode_mask(const struct pipeline *p, const struct chat_text *c, size_t before, struct product *out, struct err *e)
{
    const struct jinja_range *r = (const struct jinja_range *)(const void *)c->answers.p;
    size_t n = c->answers.n / sizeof *r, at = 0, width = (size_t)p->width, end = out->key[0].tokens.n;
    bool eod = p->x->append_eod && end > before;

    if (buf_reserve(&out->key[1].tokens, (end - before) / width) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a mask");
    for (size_t i = before; i + eod * width < end; i += width) {
        uint32_t id = 0;

        memcpy(&id, out->key[0].tokens.p + i, width);
        for (; n && at >= r->to; n--)
            r++;
        at += tokenizer_bytes(p->x->tokenizer, id).n;
        buf_putc(&out->key[1].tokens, p->x->all_loss || (n && at > r->from));
    }
    if (at != c->text.n)
        return err_set(e, ERR_FORMAT, "its tokens are %zu bytes, its text %zu: where a tokenizer changes texts, it is not known"
                       " which tokens are an answer", at, c->text.n);
    if (eod)
        buf_putc(&out->key[1].tokens, p->x->all_loss || c->ends);
    out->key[1].count.tokens += (end - before) / width;
    return 0;
}

/* Appends one conversation and its mask, or, if it cannot be, neither. */
static int encode_chat(struct pipeline *p, struct encoder *enc, struct line_reader *r, size_t i, struct product *out,
                       struct err *e)
{
    struct pipeline_key_counts count[2] = {out->key[0].count, out->key[1].count};
    size_t tokens[2] = {out->key[0].tokens.n, out->key[1].tokens.n}, lengths = out->key[0].lengths.n;
    struct span line;
    int rc;

    TRY(line_json(&out->block.line[i], &line, e));
    TRY(chat_render(p->x->chat, line, !p->x->all_loss, &r->chat_room, &r->chat, e));
    rc = encode_text(p, enc, buf_span(&r->chat.text), out, 0, e);
    if (rc == 0)
        rc = encode_mask(p, &r->chat, tokens[0], out, e);
    if (rc == 0 && buf_put(&out->key[1].lengths, out->key[0].lengths.p + lengths, sizeof(int32_t)) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for lengths");
    for (int k = 0; k < 2 && rc < 0; k++) {
        out->key[k].tokens.n = tokens[k];
        out->key[k].lengths.n = lengths;
        out->key[k].count = count[k];
    }
    return rc;
}

/* Appends one document: a text for each key, or, if one of them cannot be, none. */
static int encode_document(struct pipeline *p, struct encoder *enc, const struct span *texts, struct product *out,
                           struct err *e)
{
    size_t tokens[LINE_KEYS_MAX], lengths[LINE_KEYS_MAX];
    struct pipeline_key_counts count[LINE_KEYS_MAX];
    int rc = 0, k;

    for (k = 0; k < p->x->n_keys && rc == 0; k++) {
        tokens[k] = out->key[k].tokens.n;
        lengths[k] = out->key[k].lengths.n;
        count[k] = out->key[k].count;
        rc = encode_text(p, enc, texts[k], out, k, e);
    }
    while (rc < 0 && k-- > 0) {
        out->key[k].tokens.n = tokens[k];
        out->key[k].lengths.n = lengths[k];
        out->key[k].count = count[k];
    }
    return rc;
}

/* The entry of the last document in each key's ledger; its record stands from byte `from` on. */
static int put_ledger(struct pipeline *p, size_t from, struct product *out, struct err *e)
{
    struct span record = {out->records.p + from, out->records.n - from};

    for (int k = 0; k < (p->x->chat ? 1 : p->x->n_keys); k++) {
        struct ledger_item item = {.record = (uint32_t)record.n};
        struct buf *tokens = &out->key[k].tokens;
        int32_t length;
        memcpy(&length, out->key[k].lengths.p + out->key[k].lengths.n - sizeof length, sizeof length);
        size_t bytes = (size_t)length * (size_t)p->width;
        item.tokens = (uint64_t)length;
        ledger_leaf(p->width == 2 ? IDX_U16 : IDX_I32, record, (struct span){bytes ? tokens->p + tokens->n - bytes : "", bytes},
                    item.leaf);
        if (buf_put(&out->key[k].ledger, &item, sizeof item) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a ledger");
    }
    return 0;
}

/* Appends line i and, if it can be encoded, what a ledger says of it. */
static int encode_line(struct pipeline *p, struct encoder *enc, struct line_reader *r, size_t i, struct product *out,
                       struct err *e)
{
    struct span texts[LINE_KEYS_MAX];
    size_t from = out->records.n;
    int rc = p->x->ledger ? origin_put(&out->block.line[i], r, &out->records, e) : 0;

    if (rc == 0)
        rc = p->x->chat ? encode_chat(p, enc, r, i, out, e)
                        : line_texts(&out->block.line[i], p->x->keys, p->x->n_keys, r, texts, e);
    if (rc == 0 && !p->x->chat)
        rc = encode_document(p, enc, texts, out, e);
    if (rc == 0 && p->x->ledger)
        return put_ledger(p, from, out, e);
    out->records.n = from;
    return rc;
}

static int encode_block(struct pipeline *p, struct encoder *enc, struct line_reader *r, struct product *out,
                        struct err *e)
{
    const struct line_block *b = &out->block;

    for (int k = 0; k < p->x->n_keys; k++) {
        struct buf *tokens = &out->key[k].tokens;
        buf_clear(tokens);
        if (tokens->cap > TOKENS_KEPT) /* of one long text */
            buf_free(tokens);
        buf_clear(&out->key[k].lengths);
        buf_clear(&out->key[k].ledger);
        out->key[k].count = (struct pipeline_key_counts){0};
    }
    buf_clear(&out->records);
    buf_clear(&out->faults);
    for (size_t i = 0; i < b->n; i++) {
        int rc = encode_line(p, enc, r, i, out, e);
        if (rc == ERR_FORMAT || rc == ERR_LIMIT) { /* of this document alone */
            struct fault f = {i, *e};
            rc = buf_put(&out->faults, &f, sizeof f) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
        }
        if (rc < 0)
            return err_wrap(e, "'%s', offset %" PRIu64, b->line[i].file, b->line[i].offset);
    }
    return 0;
}

/* Shows where all jobs stand. */
static void show(const struct pipeline *p, const char *input, double consumed)
{
    uint64_t tokens = 0;

    for (int k = 0; k < (p->x->chat ? 1 : p->x->n_keys); k++)
        tokens += p->total.key[k].tokens;
    progress_show(&(struct progress){.input = input, .done = p->x->done + consumed, .total = p->x->total,
                                     .count = {{"documents", (double)p->total.documents},
                                               {"tokens", (double)tokens},
                                               {"bad", (double)p->total.bad}}});
}

/* For the belt. */
static int write_block(void *pipeline, void *product, struct err *e)
{
    struct pipeline *p = pipeline;
    const struct product *made = product;
    const struct line_block *b = &made->block;
    size_t n = made->key[0].lengths.n / sizeof(int32_t), faults = made->faults.n / sizeof(struct fault);
    const struct fault *f = (const struct fault *)(const void *)made->faults.p;

    for (size_t i = 0; i < faults; i++)
        p->x->bad(&b->line[f[i].line], &f[i].err);
    p->total.bad += faults;
    p->total.documents += n;
    for (int k = 0; k < p->x->n_keys; k++) {
        struct pipeline_key_counts *t = &p->total.key[k];
        const struct pipeline_key_counts *c = &made->key[k].count;
        *t = (struct pipeline_key_counts){t->tokens + c->tokens, t->empty + c->empty, t->bytes + c->bytes,
                                          t->specials + c->specials};
        TRY(output_add(&p->out, k, buf_span(&made->key[k].tokens),
                       (const int32_t *)(const void *)made->key[k].lengths.p, n, e));
        TRY(output_add_origins(&p->out, k, buf_span(&made->records),
                               (const struct ledger_item *)(const void *)made->key[k].ledger.p, n, e));
    }
    show(p, p->in.paths[b->next.at], made->consumed);
    if (!p->out.lasting || log_seconds() - p->saved < p->x->checkpoint)
        return 0;
    TRY(output_checkpoint(&p->out, &p->total, &b->next, e));
    p->saved = log_seconds();
    return 0;
}

/* The next block and its number; no line: the end. */
static int read_block(struct pipeline *p, struct product *made, uint64_t *number, struct err *e)
{
    struct line_block *b = &made->block;
    int rc = 0;

    b->n = 0;
    pthread_mutex_lock(&p->reading);
    if (!p->ended)
        rc = lines_fill(&p->in, b, e);
    made->consumed = (double)lines_consumed(&p->in);
    p->ended = rc < 0 || b->n == 0;
    *number = p->blocks++;
    pthread_mutex_unlock(&p->reading);
    return rc;
}

static int work(struct pipeline *p, struct encoder *enc, struct line_reader *r, struct err *e)
{
    for (;;) {
        void *product;
        struct product *made;
        uint64_t number;
        TRY(belt_take(&p->belt, &product));
        made = product;
        TRY(read_block(p, made, &number, e));
        if (made->block.n == 0)
            return 0;
        TRY(encode_block(p, enc, r, made, e));
        TRY(belt_put(&p->belt, number, made, write_block, p, e));
    }
}

static void run_thread(void *arg, int thread)
{
    struct pipeline *p = arg;
    struct encoder *enc = encoder_new(p->x->tokenizer);
    struct line_reader r = {0};
    struct err e;
    int rc = enc ? line_reader_init(&r, &e) : err_set(&e, ERR_NOMEM, "out of memory for thread %d", thread);

    if (rc == 0) {
        encoder_share(enc, p->share);
        rc = work(p, enc, &r, &e);
    }
    if (rc < 0 && rc != ERR_STOPPED)
        fail(p, rc, &e);
    encoder_free(enc);
    line_reader_free(&r);
}

static void product_free(struct product *made, int n_keys)
{
    line_block_free(&made->block);
    for (int k = 0; k < n_keys; k++) {
        buf_free(&made->key[k].tokens);
        buf_free(&made->key[k].lengths);
        buf_free(&made->key[k].ledger);
    }
    buf_free(&made->records);
    buf_free(&made->faults);
}

/* Two blocks a thread: one may take longer than those behind it. */
static int run_threads(struct pipeline *p, struct err *e)
{
    size_t n = p->x->threads > 1 ? 2 * (size_t)p->x->threads + 2 : 1;
    struct product *products = calloc(n, sizeof *products);

    p->share = p->x->threads > 1 ? word_share_new() : NULL; /* faster with it, but as good without */
    if (!products || belt_init(&p->belt, n, e) < 0) {
        word_share_free(p->share);
        free(products);
        return err_set(e, ERR_NOMEM, "out of memory for %zu blocks", n);
    }
    for (size_t i = 0; i < n; i++)
        belt_add(&p->belt, &products[i]);
    pthread_mutex_init(&p->reading, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pool_run(p->x->threads, run_thread, p, NULL); /* fewer threads than wished still do it all */
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->reading);
    belt_destroy(&p->belt);
    for (size_t i = 0; i < n; i++)
        product_free(&products[i], p->x->n_keys);
    free(products);
    word_share_free(p->share);
    if (p->rc < 0)
        *e = p->err;
    return p->rc;
}

int pipeline_run(const struct pipeline_job *job, const struct pipeline_options *x, struct pipeline_result *r,
                 struct err *e)
{
    struct pipeline p = {.x = x, .saved = log_seconds()};
    struct lines_place place = {0};
    int rc;

    p.in = LINES_OF_TEXTS(LINES_JSON, job->paths, job->n_paths);
    p.in.range = job->range;
    p.in.columns = x->columns;
    p.in.threads = x->threads;
    rc = output_open(&p.out, job, x, &p.total, &place, e);
    if (rc == 0 && !p.total.already) {
        p.width = p.out.width;
        if (p.total.resumed)
            rc = lines_goto(&p.in, &place, e);
        if (rc == 0)
            rc = run_threads(&p, e);
        if (rc == 0 && !job->range && p.total.bad && !p.total.documents)
            rc = err_set(e, ERR_FORMAT, "'%s': none of %" PRIu64 " records is a document: nothing is written", job->prefix,
                         p.total.bad);
        if (rc == 0)
            rc = output_commit(&p.out, &p.total, e);
        else
            output_abort(&p.out);
    }
    p.total.consumed = job->size ? (double)job->size : (double)p.in.passed; /* what is damaged is not read to its end */
    if (rc == 0)
        show(&p, NULL, p.total.consumed);
    *r = p.total;
    lines_close(&p.in);
    return rc;
}
