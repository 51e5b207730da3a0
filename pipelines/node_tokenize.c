#include "pipelines/node_tokenize.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/version.h"
#include "tokenize/output.h"

enum { PREFIX_MAX = 4096 };

struct tokens {
    struct tokens_conf conf;
    struct tokenizer *tokenizer;
    struct word_share *share;
    char *list;                         /* of keys, cut */
    const char *keys[LINE_KEYS_MAX];
    struct pipeline_options x;
    int width;                          /* of a token */
    /* The dataset that is being written. */
    char prefix[PREFIX_MAX];
    struct pipeline_job job;
    struct output out;
    bool open;
    struct pipeline_result result;
    struct pipeline_result all;         /* of those before it */
};

/* A note: for each key this, then the tokens of all keys, then with a ledger the document's record. */
struct note_head {
    uint64_t bytes;
    uint32_t specials;
    int32_t length;
};

struct thread {
    struct encoder *enc;
    struct buf tokens, id, source;
};

void tokens_conf_init(struct tokens_conf *c)
{
    *c = (struct tokens_conf){.keys = "text"};
}

/* ---- names ---- */

static bool is_folder(const struct tokens_conf *c)
{
    return c->prefix && span_ends(span_of(c->prefix), "/");
}

int tokens_groups(const void *conf, int inputs)
{
    const struct tokens_conf *c = conf;

    return is_folder(c) ? inputs : c->shards ? (int)c->shards : 1;
}

static void name_group(const struct tokens_conf *c, int group, int groups, char prefix[PREFIX_MAX])
{
    if (is_folder(c))
        snprintf(prefix, PREFIX_MAX, "%s%06d", c->prefix, group);
    else if (c->shards)
        snprintf(prefix, PREFIX_MAX, "%s-%05d-of-%05d", c->prefix, group, groups);
    else
        snprintf(prefix, PREFIX_MAX, "%s", c->prefix);
}

const char *tokens_name(const void *conf, struct err *e)
{
    const struct tokens_conf *c = conf;

    if (!c->prefix || !*c->prefix)
        err_set(e, ERR_FORMAT, "tokenize needs an output-prefix");
    return c->prefix && *c->prefix ? c->prefix : NULL;
}

/* The keys, cut, which lie in *list. */
static int cut_keys(const struct tokens_conf *c, char **list, const char *keys[LINE_KEYS_MAX], struct err *e)
{
    int n;

    *list = strdup(c->keys);
    if (!*list)
        return err_set(e, ERR_NOMEM, "out of memory");
    n = line_cut_keys(*list, keys);
    return n ? n : err_set(e, ERR_ARG, "json-keys: at most %d different names, separated by commas", LINE_KEYS_MAX);
}

int tokens_files(const void *conf, int inputs, const char *before, struct run_files *files, struct err *e)
{
    const struct tokens_conf *c = conf;
    int groups = tokens_groups(conf, inputs), rc, n;
    const char *keys[LINE_KEYS_MAX];
    char prefix[PREFIX_MAX], name[PREFIX_MAX + 300], what[128], *list;

    if (is_folder(c) && c->shards)
        return err_set(e, ERR_ARG, "a folder has a dataset for each input: there is nothing to divide into shards");
    if (groups > inputs)
        return err_set(e, ERR_ARG, "a shard has whole inputs: there are %d for %d shards", inputs, groups);
    snprintf(what, sizeof what, "%soutput-prefix", before);
    rc = n = cut_keys(c, &list, keys, e);
    for (int g = 0; g < groups; g++)
        for (int k = 0; k < n && rc >= 0; k++) {
            name_group(c, g, groups, prefix);
            snprintf(name, sizeof name, "%s_%.256s_document", prefix, keys[k]);
            rc = run_names(files, OPT_NAMES_OUT_PREFIX, what, name, e);
        }
    free(list);
    return rc < 0 ? rc : 0;
}

/* ---- documents to notes ---- */

static int tokens_thread_open(void *stage, void **thread, struct err *e)
{
    struct tokens *s = stage;
    struct thread *t = *thread = calloc(1, sizeof *t);

    if (!s->share)
        s->share = word_share_new(); /* faster with it, but as good without */
    if (t)
        t->enc = encoder_new(s->tokenizer);
    if (!t || !t->enc)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    encoder_share(t->enc, s->share);
    return 0;
}

static void tokens_thread_close(void *stage, void *thread)
{
    struct thread *t = thread;

    (void)stage;
    encoder_free(t->enc);
    buf_free(&t->tokens);
    buf_free(&t->id);
    buf_free(&t->source);
    free(t);
}

static int encode_key(const struct tokens *s, struct thread *t, const char *key, struct doc *d, struct note_head *h,
                      struct err *e)
{
    struct span text = strcmp(key, "text") == 0 ? d->text : doc_string(d, key);
    struct pipeline_key_counts c = {0};

    if (!text.p && text.n == 0 && strcmp(key, "text") != 0)
        return err_set(e, ERR_FORMAT, "the document has no text under '%s'", key);
    TRY(pipeline_encode(&s->x, t->enc, s->width, text, &t->tokens, &c, &h->length, e));
    h->bytes = c.bytes;
    h->specials = (uint32_t)c.specials;
    return 0;
}

/* Appends what a ledger says of the document to its tokens: what `quern tokenize` says of its line (tokenize/origin.h). */
static int put_record(struct thread *t, struct doc *d, struct err *e)
{
    struct span source = doc_raw(d, "source"), url = doc_string(d, "url"), number = doc_raw(d, "url");
    int rc = 0;

    if (!url.p && number.n && (*number.p == '-' || (*number.p >= '0' && *number.p <= '9')))
        url = number;
    buf_clear(&t->id);
    buf_clear(&t->source);
    if (!d->id.n)
        rc = buf_printf(&t->id, "%s:%" PRIu64, d->file, d->offset);
    if (rc == 0 && (!source.n || *source.p != '{')) {
        rc = buf_puts(&t->source, "{\"file\":");
        rc = rc == 0 ? json_put_name(&t->source, d->file) : rc;
        rc = rc == 0 ? json_put_count(&t->source, "within", d->offset) : rc;
        rc = rc == 0 ? buf_putc(&t->source, '}') : rc;
        source = buf_span(&t->source);
    }
    if (rc == 0)
        rc = ledger_put_record(&t->tokens, d->id.n ? d->id : buf_span(&t->id), url, source);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a document's origin") : 0;
}

static int tokens_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct note_head head[LINE_KEYS_MAX] = {{0}};
    const struct tokens *s = stage;
    struct thread *t = thread;
    size_t heads = (size_t)s->x.n_keys * sizeof *head;
    char *p;

    (void)v;
    buf_clear(&t->tokens);
    for (int k = 0; k < s->x.n_keys; k++)
        TRY(encode_key(s, t, s->keys[k], d, &head[k], e));
    if (s->x.ledger)
        TRY(put_record(t, d, e));
    p = arena_alloc(d->arena, heads + t->tokens.n);
    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for the tokens of a document");
    memcpy(p, head, heads);
    if (t->tokens.n)
        memcpy(p + heads, t->tokens.p, t->tokens.n);
    *note = (struct span){p, heads + t->tokens.n};
    return 0;
}

/* ---- notes to datasets ---- */

int tokens_begin(void *stage, int group, int groups, struct err *e)
{
    struct tokens *s = stage;
    struct lines_place place;

    if (is_folder(&s->conf))
        TRY(file_make_folder(s->conf.prefix, e));
    name_group(&s->conf, group, groups, s->prefix);
    s->job = (struct pipeline_job){.prefix = s->prefix};
    TRY(output_open(&s->out, &s->job, &s->x, &s->result, &place, e));
    s->open = true;
    return 0;
}

/* The entry of a document in each key's ledger.  The note's tokens begin at byte `at`, its record at `end`. */
static int add_origins(struct tokens *s, struct span note, const struct note_head *head, size_t at, size_t end, struct err *e)
{
    struct span record = {note.p + end, note.n - end};

    for (int k = 0; k < s->x.n_keys; k++) {
        struct ledger_item item = {.record = (uint32_t)record.n, .tokens = (uint64_t)head[k].length};
        struct span tokens = {note.p + at, (size_t)head[k].length * (size_t)s->width};

        ledger_leaf(s->width == 2 ? IDX_U16 : IDX_I32, record, tokens, item.leaf);
        TRY(output_add_origins(&s->out, k, record, &item, 1, e));
        at += tokens.n;
    }
    return 0;
}

static int tokens_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct tokens *s = stage;
    struct note_head head[LINE_KEYS_MAX];
    size_t first = (size_t)s->x.n_keys * sizeof *head, at = first;

    (void)v;
    (void)reply;
    (void)a;
    if (note.n < at)
        return err_set(e, ERR_FORMAT, "a note of tokens is too short");
    memcpy(head, note.p, at);
    s->result.documents++;
    for (int k = 0; k < s->x.n_keys; k++) {
        struct pipeline_key_counts *c = &s->result.key[k];
        struct span tokens = {note.p + at, (size_t)head[k].length * (size_t)s->width};

        if (head[k].length < 0 || tokens.n > note.n - at)
            return err_set(e, ERR_FORMAT, "a note of tokens is too short");
        TRY(output_add(&s->out, k, tokens, &head[k].length, 1, e));
        at += tokens.n;
        *c = (struct pipeline_key_counts){c->tokens + (uint64_t)head[k].length, c->empty + (head[k].length == 0),
                                          c->bytes + head[k].bytes, c->specials + head[k].specials};
    }
    return s->x.ledger ? add_origins(s, note, head, first, at, e) : 0;
}

/* The dataset gets its names by itself: those of the .bin, its checksums and the .idx have an order. */
static int tokens_finish(void *stage, struct file_group *files, struct err *e)
{
    struct tokens *s = stage;

    (void)files;
    s->open = false;
    TRY(output_commit(&s->out, &s->result, e));
    for (int k = 0; k < s->x.n_keys; k++) {
        s->all.key[k].tokens += s->result.key[k].tokens;
        s->all.key[k].specials += s->result.key[k].specials;
    }
    return 0;
}

static int tokens_stats(void *stage, struct buf *json)
{
    const struct tokens *s = stage;
    uint64_t specials = 0;

    TRY(json_put_key(json, "tokens"));
    TRY(buf_putc(json, '{'));
    for (int k = 0; k < s->x.n_keys; k++) {
        TRY(json_put_count(json, s->keys[k], s->all.key[k].tokens));
        specials += s->all.key[k].specials;
    }
    TRY(buf_putc(json, '}'));
    return json_put_count(json, "special_tokens_as_text", specials);
}

static void tokens_close(void *stage)
{
    struct tokens *s = stage;

    if (s->open)
        output_abort(&s->out);
    word_share_free(s->share);
    tokenizer_close(s->tokenizer);
    free(s->list);
    free(s);
}

static const struct stage_ops ops = {
    .name = "tokenize",
    .thread_open = tokens_thread_open, .thread_close = tokens_thread_close,
    .work = tokens_work, .commit = tokens_commit, .finish = tokens_finish,
    .stats = tokens_stats, .close = tokens_close,
};

/* The settings become the pipeline's options. */
static int set_options(struct tokens *s, struct err *e)
{
    const struct tokens_conf *c = &s->conf;
    int n;

    if (!c->tokenizer)
        return err_set(e, ERR_ARG, "tokenize needs a tokenizer");
    TRY(n = cut_keys(c, &s->list, s->keys, e));
    TRY(tokenizer_open_as(&s->tokenizer, c->tokenizer, &c->settings, e));
    if (c->append_eod && tokenizer_eod(s->tokenizer) < 0)
        return err_set(e, ERR_ARG, "append-eod: the tokenizer has no special token that is known to end a document: eod-token");
    if (c->append_eod)
        pipeline_tell_eod(s->tokenizer);
    if (c->ledger && !sha256_is_built())
        return err_set(e, ERR_UNSUPPORTED, "ledger: this build has no SHA-256 (nettle-dev)");
    s->width = (int)idx_dtype_size(idx_dtype_for_vocab(tokenizer_vocab_size(s->tokenizer)));
    s->x = (struct pipeline_options){.tokenizer = s->tokenizer, .keys = s->keys, .n_keys = n, .prepend = -1,
                                     .version = QUERN_VERSION, .threads = 1, .append_eod = c->append_eod,
                                     .allow_special = c->allow_special, .ledger = c->ledger, .again = true};
    return 0;
}

int tokens_stage_open(struct stage *s, const struct tokens_conf *c, struct err *e)
{
    struct tokens *t = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for tokens");
    t->conf = *c;
    rc = set_options(t, e);
    if (rc < 0) {
        tokens_close(t);
        return rc;
    }
    *s = (struct stage){&ops, t};
    return 0;
}
