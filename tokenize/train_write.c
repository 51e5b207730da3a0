/* A trained tokenizer as tokenizer.json, with the keys and in the order that Hugging Face's
 * library writes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "tokenize/train_write.h"

static const char byte_level[] =
    "{\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": false,\n    \"trim_offsets\": true,\n"
    "    \"use_regex\": true\n  }";

/* What cuts the text: ByteLevel by itself does it by GPT-2's pattern. */
static void put_pre_tokenizer(struct buf *b, const char *pattern)
{
    if (!pattern) {
        buf_printf(b, "  \"pre_tokenizer\": %s,\n", byte_level);
        return;
    }
    buf_puts(b, "  \"pre_tokenizer\": {\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      {\n"
                "        \"type\": \"Split\",\n        \"pattern\": {\n          \"Regex\": ");
    json_put_string(b, span_of(pattern));
    buf_puts(b, "\n        },\n        \"behavior\": \"Isolated\",\n        \"invert\": false\n      },\n"
                "      {\n        \"type\": \"ByteLevel\",\n        \"add_prefix_space\": false,\n"
                "        \"trim_offsets\": true,\n        \"use_regex\": false\n      }\n    ]\n  },\n");
}

static void put_head(struct buf *b, const struct train_options *x, const struct vocab *v, const char *pattern)
{
    buf_puts(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (int i = 0; i < x->n_specials; i++) {
        bool again = false;
        for (int j = 0; j < i; j++)
            again |= strcmp(x->specials[i], x->specials[j]) == 0;
        if (again)
            continue;
        buf_printf(b, "%s\n    {\n      \"id\": %d,\n      \"content\": ", i ? "," : "",
                   (int)vocab_find(v, span_of(x->specials[i])));
        json_put_string(b, span_of(x->specials[i]));
        buf_puts(b, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n      \"rstrip\": false,\n"
                    "      \"normalized\": false,\n      \"special\": true\n    }");
    }
    buf_puts(b, "\n  ],\n  \"normalizer\": null,\n");
    put_pre_tokenizer(b, pattern);
    buf_printf(b, "  \"post_processor\": %s,\n  \"decoder\": %s,\n", byte_level, byte_level);
    buf_puts(b, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
                "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
                "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n"
                "    \"vocab\": {");
}

/* Marks merges whose pair comes again: the last one counts.  NULL: out of memory. */
static bool *find_repeated(const struct merge *m, size_t n)
{
    size_t size = 1024, i;
    bool *repeated;
    uint32_t *slots;

    while (size < 2 * n)
        size *= 2;
    repeated = calloc(n + 1, sizeof *repeated);
    slots = calloc(size, sizeof *slots);
    if (!repeated || !slots) {
        free(repeated);
        free(slots);
        return NULL;
    }
    for (i = 0; i < n; i++) {
        size_t s = hash_mix64((uint64_t)m[i].left << 32 | m[i].right) & (size - 1);
        while (slots[s] && (m[slots[s] - 1].left != m[i].left || m[slots[s] - 1].right != m[i].right))
            s = (s + 1) & (size - 1);
        if (slots[s])
            repeated[slots[s] - 1] = true;
        slots[s] = (uint32_t)i + 1;
    }
    free(slots);
    return repeated;
}

int train_write(const char *path, const struct train_options *x, const struct vocab *v, const struct merge *m,
                size_t n, uint32_t *n_merges, struct err *e)
{
    struct split split;
    const char *pattern = NULL;
    bool *repeated = find_repeated(m, n);
    struct buf b = {0};
    int rc;

    if (!repeated)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    rc = x->pattern ? split_find(&split, x->pattern, e) : 0;
    if (rc == 0 && x->pattern && split.kind != SPLIT_GPT2)
        pattern = split_pattern(&split);
    if (rc == 0) {
        put_head(&b, x, v, pattern);
        for (uint32_t id = 0; id < v->n; id++) {
            buf_puts(&b, id ? ",\n      " : "\n      ");
            json_put_string(&b, vocab_get(v, id));
            buf_printf(&b, ": %u", id);
        }
        buf_puts(&b, "\n    },\n    \"merges\": [");
        *n_merges = 0;
        for (size_t i = 0; i < n; i++) {
            struct buf pair = {0};
            if (repeated[i])
                continue;
            buf_put_span(&pair, vocab_get(v, m[i].left));
            buf_putc(&pair, ' ');
            buf_put_span(&pair, vocab_get(v, m[i].right));
            buf_puts(&b, (*n_merges)++ ? ",\n      " : "\n      ");
            json_put_string(&b, buf_span(&pair));
            buf_free(&pair);
        }
        rc = buf_puts(&b, "\n    ]\n  }\n}\n");
        rc = rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a tokenizer")
                    : file_write_all(path, buf_span(&b), e);
    }
    if (x->pattern && rc >= 0)
        split_free(&split);
    free(repeated);
    buf_free(&b);
    return rc;
}
