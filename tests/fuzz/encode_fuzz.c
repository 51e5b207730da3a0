/* Any bytes, by each pattern: the fast way, whose merges wait for a text, against the exact splitter and plain merging
 * of each piece, and back to the same bytes. */
#include <stdlib.h>

#include "tokenize/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const patterns[] = {"gpt2", "cl100k", "llama3", "qwen2", "o200k", "tekken"};
enum { PATTERNS = 6 };

static void plain(const struct tokenizer *t, const uint8_t *p, size_t n, struct buf *out)
{
    static struct bpe_scratch scratch;

    for (size_t at = 0; at < n;) {
        size_t len = t->split.next(p + at, p + n);
        uint32_t *ids = malloc(len * sizeof *ids);
        int64_t k = bpe_encode(&t->bpe, &scratch, p + at, len, ids);
        if (k <= 0 || len == 0)
            abort();
        buf_put(out, ids, (size_t)k * sizeof *ids);
        free(ids);
        at += len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *t[PATTERNS], *made[PATTERNS];
    static struct encoder *enc[PATTERNS];
    struct err e;

    for (int i = 0; i < PATTERNS; i++) {
        struct buf ids = {0}, want = {0}, back = {0};
        if (!t[i] && (tokenizer_open(&t[i], "tests/data/tokenizer/merges.txt", patterns[i], &e) < 0 ||
                      tokenizer_open(&made[i], "tests/data/tokenizer/merges.txt", patterns[i], &e) < 0 ||
                      tokenizer_prepare(made[i], &e) < 0 || !(enc[i] = encoder_new(t[i]))))
            abort(); /* run it in the root of the repository */
        if (encoder_encode(enc[i], (struct span){(const char *)data, size}, 0, 4, &ids, &e) < 0)
            abort();
        plain(made[i], data, size, &want);
        if (!span_eq(buf_span(&ids), buf_span(&want)))
            abort();
        if (tokenizer_decode(t[i], (const uint32_t *)(const void *)ids.p, ids.n / 4, &back, &e) < 0 ||
            !span_eq(buf_span(&back), (struct span){(const char *)data, size}))
            abort();
        buf_free(&ids);
        buf_free(&want);
        buf_free(&back);
    }
    return 0;
}
