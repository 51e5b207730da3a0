/* vocab.json and merges.txt, divided by a NUL, or without one a rank file and special tokens for it; a vocabulary that is read
 * the fast way is the one that is read the slow way. */
#include <stdlib.h>

#include "base/json_shim.h"
#include "tokenize/specials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_IDS = 1 << 20 }; /* more are mostly holes, which take time and show nothing */

static void same_vocab(struct span json)
{
    struct tokenizer *fast = calloc(1, sizeof *fast), *slow = calloc(1, sizeof *slow);
    struct json_scanner *scanner = json_scanner_new();
    struct arena a = {0};
    struct node *root;
    struct err e;

    if (fast && slow && node_parse_json_rows(&a, scanner, json, NULL, &root, &e) == 0 && root->type == NODE_ROWS &&
        format_read_vocab(fast, root, &e) == 0 && fast->vocab.n < MOST_IDS) {
        if (node_parse_json(&a, json, &root, &e) < 0 || format_read_vocab(slow, root, &e) < 0 || fast->vocab.n != slow->vocab.n)
            abort();
        for (uint32_t id = 0; id < fast->vocab.n; id++) {
            struct span s = vocab_get(&fast->vocab, id), other = vocab_get(&slow->vocab, id);
            if (!span_eq(s, other) || !s.p != !other.p || vocab_find(&fast->vocab, s) != vocab_find(&slow->vocab, s) ||
                vocab_is_added(&fast->vocab, id) != vocab_is_added(&slow->vocab, id))
                abort();
        }
    }
    arena_free(&a);
    json_scanner_free(scanner);
    tokenizer_close(fast);
    tokenizer_close(slow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 2); /* each part has a NUL behind it, as files have */
    const char *merges;
    struct tokenizer *t = calloc(1, sizeof *t);
    struct err e;

    if (!copy || !t)
        abort();
    memcpy(copy, data, size);
    copy[size] = copy[size + 1] = '\0';
    merges = memchr(copy, '\0', size);
    if (merges) {
        struct span vocab = {copy, (size_t)(merges - copy)}, rest = {merges + 1, size - vocab.n - 1};
        same_vocab(vocab);
        if (format_read_gpt2(t, "v", vocab, "m", rest, NULL, &e) == 0 &&
            (t->later ? tokenizer_prepare(t, &e) : bpe_finish(&t->bpe, &t->vocab, &e)) < 0)
            abort();
    } else if (format_read_tiktoken(t, "r", (struct span){copy, size}, "gpt2", &e) == 0 &&
               (bpe_finish(&t->bpe, &t->vocab, &e) < 0 || bpe_check_cuts(&t->bpe, &t->vocab, &e) < 0)) {
        abort();
    } else {
        specials_parse(t, "s", (struct span){copy, size}, &e);
    }
    tokenizer_close(t);
    free(copy);
    return 0;
}
