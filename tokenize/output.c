#include "tokenize/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "indexed_dataset/loss_mask.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory");
}

/* Where key k's tokens go, without the endings. */
static int prefix_of(const struct output *o, int k, char path[IDX_PATH_MAX], struct err *e)
{
    bool one = o->x->format != PIPELINE_MEGATRON;
    int n = one ? snprintf(path, IDX_PATH_MAX, "%s", o->job->prefix)
                : snprintf(path, IDX_PATH_MAX, "%s_%s_document%s", o->job->prefix, o->x->keys[k],
                           o->x->chat && k == 1 ? LOSS_MASK_SUFFIX : "");

    return n < IDX_PATH_MAX - 32 ? 0 : err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", o->job->prefix);
}

/* The type of key k's numbers. */
static enum idx_dtype dtype_of(const struct output *o, int k)
{
    return o->x->chat && k == 1 ? IDX_U8 : o->width == 2 ? IDX_U16 : IDX_I32;
}

static int n_outputs(const struct output *o)
{
    return o->x->format == PIPELINE_MEGATRON ? o->x->n_keys : 1;
}

/* Whether a ledger is kept of output k: a mask's is its tokens'. */
static bool has_ledger(const struct output *o, int k)
{
    return o->x->ledger && !(o->x->chat && k == 1);
}

/* ---- what run this is ---- */

/* Hashes what decides on the output; finds out whether all inputs are files. */
static int identify(struct output *o, struct err *e)
{
    const struct pipeline_options *x = o->x;
    struct tokenizer_hash t;
    struct buf what = {0}, times = {0};
    struct hash128 h;

    TRY(tokenizer_prepare(x->tokenizer, e));
    t = o->tokenizer = tokenizer_hash(x->tokenizer);
    o->lasting = o->job->n_paths > 0;
    buf_printf(&what, "%016" PRIx64 "%016" PRIx64 " %s %s %" PRId64 " %d %d %" PRIu64 " %" PRId64 "\n", t.hi, t.lo,
               x->version, tokenizer_unicode(), x->append_eod ? tokenizer_eod(x->tokenizer) : -1, x->allow_special,
               (int)x->format,
               x->format == PIPELINE_MEGATRON ? 0 : x->shard_tokens,
               x->format == PIPELINE_MEGATRON ? -1 : x->prepend);
    for (int k = 0; k < x->n_keys; k++)
        buf_printf(&what, "%s\n", x->keys[k]);
    if (x->ledger)
        buf_puts(&what, "ledger\n");
    if (x->columns)
        buf_printf(&what, "columns %s\n", x->columns);
    if (x->chat)
        buf_printf(&what, "chat %016" PRIx64 " %d\n", chat_hash(x->chat), x->all_loss);
    for (int i = 0; i < o->job->n_paths; i++) {
        struct stat s = {0};
        const struct lines_range *r = o->job->range ? &o->job->range[i] : NULL;
        if (stat(o->job->paths[i], &s) < 0 || !S_ISREG(s.st_mode))
            o->lasting = false;
        buf_printf(&what, "%s %" PRId64 " %" PRIu64 " %" PRIu64 "\n", o->job->paths[i], (int64_t)s.st_size,
                   r ? r->from : 0, r ? r->to : UINT64_MAX);
        buf_printf(&times, "%" PRId64 ".%09ld\n", (int64_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    }
    if (buf_putc(&what, '\n') < 0 || buf_putc(&times, '\n') < 0)
        return no_memory(e);
    h = hash_xxh3_128(buf_span(&what));
    snprintf(o->run, sizeof o->run, "%016" PRIx64 "%016" PRIx64, h.hi, h.lo);
    snprintf(o->times, sizeof o->times, "%016" PRIx64, hash_xxh3_64(buf_span(&times)));
    buf_free(&what);
    buf_free(&times);
    return 0;
}

/* Whether output k stands, of this very run and not older than any input; its counts. */
static bool is_done(const struct output *o, int k, struct pipeline_result *r)
{
    char path[IDX_PATH_MAX], file[IDX_PATH_MAX + 16];
    struct stat made, in;
    struct arena a = {0};
    struct node *n;
    const char *run;
    bool done = false;

    if (prefix_of(o, k, path, NULL) < 0)
        return false;
    snprintf(file, sizeof file, "%s.sum.json", path);
    if (stat(file, &made) < 0 || node_load_json(&a, file, &n, NULL) < 0)
        goto out;
    run = node_str(n, "run");
    if (!run || strcmp(run, o->run) != 0)
        goto out;
    snprintf(file, sizeof file, "%s.idx", path);
    if (o->x->format == PIPELINE_MEGATRON && stat(file, &made) < 0)
        goto out;
    snprintf(file, sizeof file, "%s.ledger", path);
    if (has_ledger(o, k) && access(file, F_OK) != 0)
        goto out;
    for (int i = 0; i < o->job->n_paths; i++)
        if (stat(o->job->paths[i], &in) < 0 || in.st_mtim.tv_sec > made.st_mtim.tv_sec ||
            (in.st_mtim.tv_sec == made.st_mtim.tv_sec && in.st_mtim.tv_nsec > made.st_mtim.tv_nsec))
            goto out;
    r->documents = (uint64_t)node_int(n, "documents", 0);
    r->bad = (uint64_t)node_int(n, "bad_lines", 0);
    r->key[k] = (struct pipeline_key_counts){
        (uint64_t)node_int(n, "tokens", 0), (uint64_t)node_int(n, "empty_documents", 0),
        (uint64_t)node_int(n, "text_bytes", 0), (uint64_t)node_int(n, "special_tokens_as_text", 0)};
    done = true;
out:
    arena_free(&a);
    return done;
}

/* ---- opening ---- */

static int create_all(struct output *o, struct err *e)
{
    char path[IDX_PATH_MAX];

    for (int k = 0; k < n_outputs(o); k++) {
        TRY(prefix_of(o, k, path, e));
        if (o->x->format == PIPELINE_MEGATRON)
            TRY(idx_create(&o->idx[k], path, dtype_of(o, k), e));
        else
            TRY(token_shards_create(&o->shards, path, o->x->format == PIPELINE_NPY ? TOKEN_SHARDS_NPY : TOKEN_SHARDS_LLMC,
                                    o->width, o->x->shard_tokens, e));
        if (has_ledger(o, k))
            TRY(idx_keep_ledger(o->idx[k], e));
    }
    return 0;
}

static int resume_all(struct output *o, const struct node *state, struct pipeline_result *r,
                      struct lines_place *place, struct err *e)
{
    const struct node *keys = node_get(state, "keys"), *c = keys ? keys->child : NULL;
    char path[IDX_PATH_MAX];

    o->checkpointed = true; /* whatever happens, nothing is removed */
    for (int k = 0; k < n_outputs(o); k++, c = c ? c->next : NULL) {
        const struct node *out = node_get(c, "out");
        TRY(prefix_of(o, k, path, e));
        r->key[k] = (struct pipeline_key_counts){
            (uint64_t)node_int(c, "tokens", 0), (uint64_t)node_int(c, "empty", 0), (uint64_t)node_int(c, "bytes", 0),
            (uint64_t)node_int(c, "specials", 0)};
        if (o->x->format == PIPELINE_MEGATRON)
            TRY(idx_resume(&o->idx[k], path, dtype_of(o, k), out, e));
        else
            TRY(token_shards_resume(&o->shards, path, o->x->format == PIPELINE_NPY ? TOKEN_SHARDS_NPY : TOKEN_SHARDS_LLMC,
                                    o->width, o->x->shard_tokens, out, e));
    }
    *place = (struct lines_place){(int)node_int(state, "at", 0), (uint64_t)node_int(state, "offset", 0),
                                   (uint64_t)node_int(state, "damages", 0)};
    r->documents = (uint64_t)node_int(state, "documents", 0);
    r->bad = (uint64_t)node_int(state, "bad", 0);
    r->resumed = true;
    return 0;
}

/* Refuses what is not of this version, which may give other tokens, or not of the same inputs and options. */
static int check_state(const struct output *o, const struct node *state, struct err *e)
{
    const char *run = node_str(state, "run"), *times = node_str(state, "times"), *by = node_str(state, "quern");

    if (!by)
        by = "0.1.0"; /* the one that did not write it */
    if (run && strcmp(by, o->x->version) != 0)
        return err_set(e, ERR_ARG, "'%s' was left by quern %.40s; this is quern %s, which cannot go on with it: --again begins"
                       " afresh", o->state, by, o->x->version);
    if (!o->lasting || !run || !times || strcmp(run, o->run) != 0 || strcmp(times, o->times) != 0)
        return err_set(e, ERR_ARG, "'%s' was left by a run with other inputs or options: --again begins afresh", o->state);
    return 0;
}

/* Goes on from an earlier run's state. */
static int resume(struct output *o, struct pipeline_result *r, struct lines_place *place, struct err *e)
{
    struct arena a = {0};
    struct node *n;
    int rc = node_load_json(&a, o->state, &n, e);

    if (rc == 0 && (rc = check_state(o, n, e)) == 0 && (rc = resume_all(o, n, r, place, e)) < 0)
        err_wrap(e, "cannot go on from '%s' (--again begins afresh)", o->state);
    arena_free(&a);
    return rc;
}

int output_open(struct output *o, const struct pipeline_job *job, const struct pipeline_options *x,
                struct pipeline_result *r, struct lines_place *place, struct err *e)
{
    const char *slash = strrchr(job->prefix, '/');
    uint32_t vocab = tokenizer_vocab_size(x->tokenizer);
    int dir = slash ? (int)(slash + 1 - job->prefix) : 0, rc;

    *o = (struct output){.x = x, .job = job};
    o->width = (int)idx_dtype_size(x->format == PIPELINE_MEGATRON ? idx_dtype_for_vocab(vocab)
                                   : vocab <= 65536               ? IDX_U16
                                                                  : IDX_I32);
    r->width = o->width;
    if (snprintf(o->state, sizeof o->state, "%.*s.%s.resume", dir, job->prefix, job->prefix + dir) >=
        (int)sizeof o->state)
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", job->prefix);
    TRY(identify(o, e));
    if (x->again)
        unlink(o->state);
    if (access(o->state, F_OK) == 0) {
        rc = resume(o, r, place, e);
    } else {
        r->already = o->lasting && !x->again;
        for (int k = 0; k < n_outputs(o) && r->already; k++)
            r->already = is_done(o, k, r);
        if (r->already)
            return 0;
        *r = (struct pipeline_result){.width = o->width};
        rc = create_all(o, e);
    }
    if (rc < 0)
        output_abort(o);
    return rc;
}

/* ---- writing ---- */

int output_add(struct output *o, int k, struct span tokens, const int32_t *lengths, size_t n, struct err *e)
{
    if (o->shards)
        return token_shards_add(o->shards, tokens.p, tokens.n / (size_t)o->width, e);
    return o->idx[k] && n ? idx_add_block(o->idx[k], tokens.p, lengths, n, NULL, 0, e) : 0;
}

int output_add_origins(struct output *o, int k, struct span records, const struct ledger_item *item, size_t n, struct err *e)
{
    return has_ledger(o, k) && o->idx[k] && n ? idx_add_ledger(o->idx[k], records, item, n, e) : 0;
}

int output_checkpoint(struct output *o, const struct pipeline_result *r, const struct lines_place *place,
                      struct err *e)
{
    struct buf b = {0};
    int rc = 0;

    buf_printf(&b, "{\"quern\":\"%s\",\"run\":\"%s\",\"times\":\"%s\",\"at\":%d,\"offset\":%" PRIu64 ",\"damages\":%"
               PRIu64 ",\"documents\":%" PRIu64 ",\"bad\":%" PRIu64 ",\"keys\":[", o->x->version, o->run, o->times, place->at,
               place->offset, place->damages, r->documents, r->bad);
    for (int k = 0; k < n_outputs(o) && rc == 0; k++) {
        const struct pipeline_key_counts *c = &r->key[k];
        buf_printf(&b, "%s{\"tokens\":%" PRIu64 ",\"empty\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"specials\":%" PRIu64
                   ",\"out\":", k ? "," : "", c->tokens, c->empty, c->bytes, c->specials);
        if (o->shards)
            rc = token_shards_checkpoint(o->shards, &b, e);
        else if (o->idx[k])
            rc = idx_checkpoint(o->idx[k], &b, e);
        else
            buf_puts(&b, "{}");
        buf_putc(&b, '}');
    }
    if (rc == 0)
        rc = buf_puts(&b, "]}\n") < 0 ? no_memory(e) : file_write_all(o->state, buf_span(&b), e);
    o->checkpointed = o->checkpointed || rc == 0;
    buf_free(&b);
    return rc;
}

static void describe_chat(const struct pipeline_options *x, struct buf *b)
{
    buf_puts(b, ",\"chat_template\":");
    json_put_string(b, span_of(x->chat_name));
    buf_printf(b, ",\"chat_template_xxh3\":\"%016" PRIx64 "\",\"loss\":\"%s\"", chat_hash(x->chat),
               x->all_loss ? "all" : "assistant");
}

/* How the tokens of key k were made, for PREFIX.sum.json. */
static int describe(const struct output *o, int k, const struct pipeline_result *r, struct buf *b)
{
    const struct pipeline_options *x = o->x;
    const struct pipeline_key_counts *c = &r->key[k];
    struct tokenizer_facts f = tokenizer_facts(x->tokenizer);

    buf_puts(b, "\"tokenizer\":{\"format\":");
    json_put_string(b, span_of(f.format));
    buf_printf(b, ",\"xxh3_128\":\"%016" PRIx64 "%016" PRIx64 "\",\"vocab_size\":%" PRIu32 ",\"pattern\":",
               o->tokenizer.hi, o->tokenizer.lo, tokenizer_vocab_size(x->tokenizer));
    json_put_string(b, span_of(f.pattern_name));
    buf_puts(b, ",\"normalizer\":");
    json_put_string(b, span_of(f.normalizer));
    if (f.sentencepiece)
        buf_printf(b, ",\"sentencepiece\":\"%s\"", f.sentencepiece);
    buf_printf(b, ",\"unicode\":\"%s\"},\"quern\":\"%s\",\"run\":\"%s\",\"key\":", tokenizer_unicode(), x->version,
               o->run);
    json_put_string(b, span_of(x->keys[k]));
    if (x->chat)
        describe_chat(x, b);
    if (x->append_eod) {
        struct span token = tokenizer_bytes(x->tokenizer, (uint32_t)tokenizer_eod(x->tokenizer));
        buf_printf(b, ",\"eod\":{\"id\":%" PRId64 ",\"token\":", tokenizer_eod(x->tokenizer));
        if (utf8_valid(token))
            json_put_string(b, token);
        else
            buf_puts(b, "null");
        buf_puts(b, ",\"from\":");
        json_put_string(b, span_of(tokenizer_eod_from(x->tokenizer)));
        buf_puts(b, "}");
    }
    return buf_printf(b, ",\"append_eod\":%s,\"allow_special\":%s,\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64
                      ",\"special_tokens_as_text\":%" PRIu64 ",\"text_bytes\":%" PRIu64 ",\"bad_lines\":%" PRIu64
                      ",\"empty_documents\":%" PRIu64, x->append_eod ? "true" : "false",
                      x->allow_special ? "true" : "false", r->documents, c->tokens, c->specials, c->bytes, r->bad,
                      c->empty);
}

int output_commit(struct output *o, const struct pipeline_result *r, struct err *e)
{
    struct buf about = {0};
    int rc = 0;

    if (o->x->chat && o->idx[0])
        idx_has_mask(o->idx[0]);
    for (int k = n_outputs(o) - 1; k >= 0 && rc == 0; k--) { /* a mask before what it is of */
        struct token_shards *shards = o->shards;
        struct idx_writer *idx = o->idx[k];
        buf_clear(&about);
        if (describe(o, k, r, &about) < 0) {
            rc = no_memory(e);
        } else if (shards) {
            o->shards = NULL;
            rc = token_shards_commit(shards, buf_span(&about), e);
        } else if (idx) {
            o->idx[k] = NULL;
            rc = idx_commit(idx, buf_span(&about), e);
        }
    }
    buf_free(&about);
    if (rc < 0)
        output_abort(o);
    else if (o->checkpointed && unlink(o->state) < 0)
        rc = err_sys(e, ERR_IO, "cannot remove '%s'", o->state);
    return rc;
}

void output_abort(struct output *o)
{
    for (int k = 0; k < LINE_KEYS_MAX; k++) {
        if (o->checkpointed)
            idx_leave(o->idx[k]);
        else
            idx_abort(o->idx[k]);
        o->idx[k] = NULL;
    }
    if (o->checkpointed)
        token_shards_leave(o->shards);
    else
        token_shards_abort(o->shards);
    o->shards = NULL;
}
