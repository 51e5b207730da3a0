/* A trained tokenizer as tokenizer.json, with the keys and in the order that Hugging Face's
 * library writes; as its vocab.json and merges.txt; as tiktoken's ranks; as a SentencePiece model (train_spm.c). */
#include "tokenize/train_write.h"

#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "tokenize/model.h"
#include "tokenize/train_spm.h"

/* What cuts the text: the kind's; else a pattern, or ByteLevel by itself, which does it by GPT-2's pattern. */
static void put_pre_tokenizer(struct buf *b, const struct train_kind *kind, const char *pattern)
{
    buf_puts(b, "  \"pre_tokenizer\": ");
    if (!pattern) {
        buf_printf(b, "%s,\n", kind->pre_tokenizer ? kind->pre_tokenizer : kind->decoder);
        return;
    }
    buf_puts(b, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      {\n"
                "        \"type\": \"Split\",\n        \"pattern\": {\n          \"Regex\": ");
    json_put_string(b, span_of(pattern));
    buf_puts(b, "\n        },\n        \"behavior\": \"Isolated\",\n        \"invert\": false\n      },\n"
                "      {\n        \"type\": \"ByteLevel\",\n        \"add_prefix_space\": false,\n"
                "        \"trim_offsets\": true,\n        \"use_regex\": false\n      }\n    ]\n  },\n");
}

const char *train_pattern(const struct train_options *x)
{
    return x->pattern ? x->pattern : train_kinds[x->model].pattern;
}

bool train_is_repeated(const struct train_options *x, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(x->specials[i], x->specials[j]) == 0)
            return true;
    return false;
}

static void put_head(struct buf *b, const struct train_options *x, const struct vocab *v, const char *pattern)
{
    const struct train_kind *kind = &train_kinds[x->model];

    buf_puts(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (int i = 0; i < x->n_specials; i++) {
        if (train_is_repeated(x, i))
            continue;
        buf_printf(b, "%s\n    {\n      \"id\": %d,\n      \"content\": ", i ? "," : "",
                   (int)vocab_find(v, span_of(x->specials[i])));
        json_put_string(b, span_of(x->specials[i]));
        buf_puts(b, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n      \"rstrip\": false,\n"
                    "      \"normalized\": false,\n      \"special\": true\n    }");
    }
    buf_printf(b, "\n  ],\n  \"normalizer\": %s,\n", kind->normalizer ? kind->normalizer : "null");
    put_pre_tokenizer(b, kind, pattern);
    buf_printf(b, "  \"post_processor\": %s,\n  \"decoder\": %s,\n  \"model\": {\n%s", kind->characters ? "null" : kind->decoder,
               kind->decoder, kind->model);
    if (kind->scored) {
        buf_printf(b, "    \"unk_id\": 0,\n    \"byte_fallback\": %s,\n    \"vocab\": [", x->byte_fallback ? "true" : "false");
        return;
    }
    if (kind->characters) {
        buf_puts(b, "    \"unk_token\": ");
        json_put_string(b, span_of(x->specials[0]));
        buf_puts(b, ",\n");
    }
    buf_puts(b, "    \"vocab\": {");
}

/* A merge's two tokens with a space between. */
static int put_merge(struct buf *b, const struct vocab *v, const struct merge *m)
{
    buf_put_span(b, vocab_get(v, m->left));
    buf_putc(b, ' ');
    return buf_put_span(b, vocab_get(v, m->right));
}

/* One in the list of tokenizer.json. */
static int put_listed(struct buf *b, bool first, struct span left, struct span right)
{
    struct buf pair = {0};
    int rc;

    buf_put_span(&pair, left);
    buf_putc(&pair, ' ');
    rc = buf_put_span(&pair, right);
    buf_puts(b, first ? "\n      " : ",\n      ");
    rc = rc < 0 ? rc : json_put_string(b, buf_span(&pair));
    buf_free(&pair);
    return rc;
}

/* Each two tokens that together are the token that a merge made, as a SentencePiece model joins them.  begun: some are listed. */
static int put_splits(struct buf *b, const struct train_symbols *s, uint32_t id, bool *begun)
{
    struct span token = vocab_get(&s->vocab, id);
    int rc = 0;

    for (size_t i = 1; i < token.n && rc == 0; i++) {
        struct span left = {token.p, i}, right = {token.p + i, token.n - i};
        if (((unsigned char)token.p[i] & 0xC0) == 0x80 || !train_symbols_joins(s, left) || !train_symbols_joins(s, right))
            continue;
        rc = put_listed(b, !*begun, left, right);
        *begun = true;
    }
    return rc;
}

static int put_all_merges(struct buf *b, const struct train_symbols *s, const struct merge *m, size_t n)
{
    const struct vocab *v = &s->vocab;
    uint32_t next = 0; /* a token made again has its pairs in the list */
    bool begun = false;

    buf_puts(b, ",\n    \"merges\": [");
    for (size_t i = 0; i < n; i++) {
        if (!s->kind->characters)
            TRY(put_listed(b, i == 0, vocab_get(v, m[i].left), vocab_get(v, m[i].right)));
        else if (m[i].id >= next)
            TRY(put_splits(b, s, m[i].id, &begun));
        next = m[i].id >= next ? m[i].id + 1 : next;
    }
    return buf_puts(b, "\n    ]");
}

int train_write_json(struct buf *b, const char *pattern, const struct train_options *x, const struct train_symbols *s,
                     const struct merge *m, size_t n, struct err *e)
{
    const struct vocab *v = &s->vocab;
    struct split split = {0};
    int rc = 0;

    if (pattern)
        TRY(split_find(&split, pattern, e));
    put_head(b, x, v, pattern && split.kind != SPLIT_GPT2 ? split_pattern(&split) : NULL);
    if (pattern)
        split_free(&split);
    /* What is put is looked at once, at the end: a buffer that got no memory takes nothing more. */
    for (uint32_t id = 0; id < v->n; id++) {
        buf_puts(b, id ? ",\n      " : "\n      ");
        if (s->kind->scored)
            buf_putc(b, '[');
        json_put_string(b, vocab_get(v, id));
        if (s->kind->scored)
            buf_printf(b, ", %.9g]", (double)train_symbols_score(s, id));
        else
            buf_printf(b, ": %u", id);
    }
    buf_puts(b, s->kind->scored ? "\n    ]" : "\n    }");
    if (s->kind->merges)
        rc = put_all_merges(b, s, m, n);
    rc = rc < 0 ? rc : buf_puts(b, "\n  }\n}\n");
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a tokenizer") : 0;
}

static int put_vocab(struct buf *b, const struct vocab *v, struct err *e)
{
    for (uint32_t id = 0; id < v->n; id++) {
        buf_putc(b, id ? ',' : '{');
        json_put_string(b, vocab_get(v, id));
        buf_printf(b, ":%u", id);
    }
    return buf_putc(b, '}') < 0 ? err_set(e, ERR_NOMEM, "out of memory for a vocabulary") : 0;
}

static int put_merges(struct buf *b, const struct vocab *v, const struct merge *m, size_t n, struct err *e)
{
    int rc = buf_puts(b, "#version: 0.2\n");

    for (size_t i = 0; i < n; i++) {
        put_merge(b, v, &m[i]);
        rc = buf_putc(b, '\n');
    }
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for merges") : 0;
}

static void put_base64(struct buf *b, struct span s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < s.n ? (unsigned char)s.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_putc(b, i + k <= s.n ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

/* The bytes and the merges, in the order of their ids. */
static int put_ranks(struct buf *b, const struct vocab *v, const uint32_t byte_id[256], const struct merge *m,
                     size_t n, struct err *e)
{
    struct buf bytes = {0};
    uint32_t first = byte_id[0];
    int rc = 0;

    for (int i = 0; i < 256; i++)
        first = byte_id[i] < first ? byte_id[i] : first;
    for (size_t i = 0; i < 256 + n; i++) {
        buf_clear(&bytes);
        if (format_unmap_bytes(vocab_get(v, i < 256 ? first + (uint32_t)i : m[i - 256].id), &bytes) < 0) {
            rc = bytes.failed;
            break;
        }
        put_base64(b, buf_span(&bytes));
        rc = buf_printf(b, " %zu\n", i);
    }
    buf_free(&bytes);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for ranks") : 0;
}

/* Writes b out to a file of the folder (or of that name), which file_commit then shows. */
static int write_out(struct file_out **f, const char *folder, const char *name, struct buf *b, struct err *e)
{
    struct buf path = {0};
    int rc = folder ? buf_printf(&path, "%s/%s", folder, name) : buf_puts(&path, name);

    if (rc < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a name");
    rc = file_create(f, path.p, 0, e);
    if (rc == 0)
        rc = file_write(*f, b->p, b->n, e);
    if (rc == 0)
        rc = file_flush(*f, e);
    buf_free(&path);
    buf_clear(b);
    return rc;
}

enum { FILES = 5 };

static int write_files(struct file_out *f[FILES], const struct train_options *x, const struct train_symbols *s,
                       const struct merge *m, size_t n, struct buf *b, struct err *e)
{
    if (x->output) {
        TRY(train_write_json(b, s->kind->across ? s->kind->across : train_pattern(x), x, s, m, n, e));
        TRY(write_out(&f[0], NULL, x->output, b, e));
    }
    if (x->folder) {
        TRY(file_make_folder(x->folder, e));
        TRY(put_vocab(b, &s->vocab, e));
        TRY(write_out(&f[1], x->folder, "vocab.json", b, e));
        TRY(put_merges(b, &s->vocab, m, n, e));
        TRY(write_out(&f[2], x->folder, "merges.txt", b, e));
    }
    if (x->ranks) {
        TRY(put_ranks(b, &s->vocab, s->byte_id, m, n, e));
        TRY(write_out(&f[3], NULL, x->ranks, b, e));
    }
    if (x->spm) {
        TRY(train_spm_put(b, x, s, e));
        TRY(write_out(&f[4], NULL, x->spm, b, e));
    }
    return 0;
}

int train_write(const struct train_options *x, const struct train_symbols *s, const struct merge *m, size_t n, struct err *e)
{
    struct file_out *f[FILES] = {0};
    struct buf b = {0};
    int rc = write_files(f, x, s, m, n, &b, e);

    buf_free(&b);
    for (int i = 0; i < FILES; i++) {
        if (!f[i])
            continue;
        if (rc < 0)
            file_abort(f[i]);
        else
            rc = file_commit(f[i], e);
    }
    return rc;
}
