#include "tokenize/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/pool.h"
#include "indexed_dataset/idx_write.h"

struct pipeline {
    const struct pipeline_options *x;
    struct corpus corpus;
    struct idx_writer *out;
    struct gate read, write;
    uint64_t next; /* ticket */
    int width;
    /* Under the write gate. */
    struct pipeline_result total;
    /* The first failure. */
    pthread_mutex_t lock;
    struct err err;
    int rc;
};

/* What a thread makes of a block. */
struct product {
    struct buf tokens, lengths; /* bytes in the dataset's type; int32_t a document */
    struct buf faults;          /* struct fault, in order */
    uint64_t empty, bytes;
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
    gate_stop(&p->read);
    gate_stop(&p->write);
}

/* Appends one document. */
static int encode_document(struct pipeline *p, struct encoder *enc, struct span text, struct product *out,
                           struct err *e)
{
    size_t before = out->tokens.n;
    int32_t length;

    TRY(encoder_encode(enc, text, p->x->allow_special ? ENCODER_SPECIAL : 0, p->width, &out->tokens, e));
    /* As Megatron does it: an empty document gets no end. */
    if (p->x->append_eod && out->tokens.n > before) {
        uint32_t id = (uint32_t)tokenizer_eod(p->x->tokenizer);
        uint16_t half = (uint16_t)id;
        if (buf_put(&out->tokens, p->width == 2 ? (void *)&half : (void *)&id, (size_t)p->width) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for tokens");
    }
    length = (int32_t)((out->tokens.n - before) / (size_t)p->width);
    out->empty += length == 0;
    out->bytes += text.n;
    return buf_put(&out->lengths, &length, sizeof length) < 0 ? err_set(e, ERR_NOMEM, "out of memory for lengths") : 0;
}

static int encode_block(struct pipeline *p, struct encoder *enc, const struct corpus_block *b,
                        struct corpus_reader *r, struct product *out, struct err *e)
{
    struct span text;

    out->empty = out->bytes = 0;
    buf_clear(&out->tokens);
    buf_clear(&out->lengths);
    buf_clear(&out->faults);
    for (size_t i = 0; i < b->n; i++) {
        size_t before = out->tokens.n;
        int rc = corpus_text(&p->corpus, b, i, r, &text, e);
        if (rc == 0)
            rc = encode_document(p, enc, text, out, e);
        if (rc == ERR_FORMAT) { /* of this document alone */
            struct fault f = {i, *e};
            out->tokens.n = before;
            rc = buf_put(&out->faults, &f, sizeof f) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
        }
        if (rc < 0)
            return err_wrap(e, "'%s', offset %" PRIu64, corpus_line(b, i)->file, corpus_line(b, i)->offset);
    }
    return 0;
}

static int write_block(struct pipeline *p, const struct corpus_block *b, const struct product *made, struct err *e)
{
    size_t n = made->lengths.n / sizeof(int32_t), faults = made->faults.n / sizeof(struct fault);
    const struct fault *f = (const struct fault *)(const void *)made->faults.p;

    for (size_t i = 0; i < faults; i++)
        p->x->bad(corpus_line(b, f[i].line), &f[i].err);
    p->total.bad += faults;
    p->total.documents += n;
    p->total.empty += made->empty;
    p->total.bytes += made->bytes;
    p->total.tokens += made->tokens.n / (size_t)p->width;
    log_progress("%" PRIu64 " documents, %.1f million tokens", p->total.documents, (double)p->total.tokens / 1e6);
    if (n == 0)
        return 0;
    return idx_add_block(p->out, made->tokens.p, (const int32_t *)(const void *)made->lengths.p, n, NULL, 0, e);
}

static int work(struct pipeline *p, struct encoder *enc, struct corpus_block *b, struct corpus_reader *r,
                struct product *made, struct err *e)
{
    for (;;) {
        uint64_t ticket = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);
        int rc;
        TRY(gate_enter(&p->read, ticket));
        rc = corpus_fill(&p->corpus, b, e);
        gate_leave(&p->read);
        if (rc < 0 || b->n == 0)
            return rc; /* at the end every later ticket finds the end too */
        TRY(encode_block(p, enc, b, r, made, e));
        TRY(gate_enter(&p->write, ticket));
        rc = write_block(p, b, made, e);
        gate_leave(&p->write);
        TRY(rc);
    }
}

static void run_thread(void *arg, int thread)
{
    struct pipeline *p = arg;
    struct encoder *enc = encoder_new(p->x->tokenizer);
    struct corpus_block b = {0};
    struct corpus_reader r = {0};
    struct product made = {0};
    struct err e;
    int rc = enc ? corpus_reader_init(&r, &e) : err_set(&e, ERR_NOMEM, "out of memory for thread %d", thread);

    if (rc == 0)
        rc = work(p, enc, &b, &r, &made, &e);
    if (rc < 0 && rc != ERR_STOPPED)
        fail(p, rc, &e);
    pthread_mutex_lock(&p->lock);
    p->total.specials += enc ? encoder_specials_seen(enc) : 0;
    pthread_mutex_unlock(&p->lock);
    encoder_free(enc);
    corpus_reader_free(&r);
    corpus_block_free(&b);
    buf_free(&made.tokens);
    buf_free(&made.lengths);
    buf_free(&made.faults);
}

/* How the tokens were made, for PREFIX.sum.json. */
static int describe(const struct pipeline *p, struct buf *b)
{
    const struct tokenizer *t = p->x->tokenizer;
    struct tokenizer_facts f = tokenizer_facts(t);
    struct tokenizer_hash h = tokenizer_hash(t);

    buf_puts(b, "\"tokenizer\":{\"format\":");
    json_put_string(b, span_of(f.format));
    buf_printf(b, ",\"xxh3_128\":\"%016" PRIx64 "%016" PRIx64 "\",\"vocab_size\":%" PRIu32 ",\"pattern\":", h.hi, h.lo,
               tokenizer_vocab_size(t));
    json_put_string(b, span_of(f.pattern_name));
    buf_puts(b, ",\"normalizer\":");
    json_put_string(b, span_of(f.normalizer));
    return buf_printf(b,
                      ",\"unicode\":\"%s\"},\"append_eod\":%s,\"special_tokens_as_text\":%" PRIu64
                      ",\"text_bytes\":%" PRIu64 ",\"bad_lines\":%" PRIu64 ",\"empty_documents\":%" PRIu64,
                      tokenizer_unicode(), p->x->append_eod ? "true" : "false", p->total.specials, p->total.bytes,
                      p->total.bad, p->total.empty);
}

int pipeline_run(char *const *paths, int n_paths, const struct pipeline_options *x, struct pipeline_result *r,
                 struct err *e)
{
    enum idx_dtype dtype = idx_dtype_for_vocab(tokenizer_vocab_size(x->tokenizer));
    struct pipeline p = {.x = x, .width = (int)idx_dtype_size(dtype)};
    struct buf about = {0};
    int rc = corpus_open(&p.corpus, paths, n_paths, CORPUS_JSONL, x->key, e);

    if (rc == 0)
        rc = idx_create(&p.out, x->prefix, dtype, e);
    if (rc < 0) {
        corpus_close(&p.corpus);
        return rc;
    }
    gate_init(&p.read);
    gate_init(&p.write);
    pthread_mutex_init(&p.lock, NULL);
    pool_run(x->threads, run_thread, &p, NULL); /* fewer threads than wished still do it all */
    log_progress_end();
    p.total.width = p.width;
    *r = p.total;
    if ((rc = p.rc) < 0)
        *e = p.err;
    else if (describe(&p, &about) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = idx_commit(p.out, buf_span(&about), e);
    else
        idx_abort(p.out);
    pthread_mutex_destroy(&p.lock);
    gate_destroy(&p.write);
    gate_destroy(&p.read);
    corpus_close(&p.corpus);
    buf_free(&about);
    return rc;
}
