/* vocab.json + merges.txt (encoder.json + vocab.bpe). */
#include "base/node.h"
#include "tokenize/model.h"

/* Lines "left right"; the first may be "#version: 0.2". */
static int read_merges(struct tokenizer *t, struct span text, struct buf *scratch, struct err *e)
{
    const char *p = text.p, *end = text.p + text.n;
    struct buf parts = {0};
    uint32_t rank = 0;
    int rc = 0;

    for (long line = 1; p < end && rc == 0; line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p)), *next = eol ? eol + 1 : end, *gap;
        size_t n = (size_t)((eol ? eol : end) - p), cut;
        struct span left, right;

        if (n && p[n - 1] == '\r')
            n--;
        if (n == 0 || (line == 1 && n > 8 && memcmp(p, "#version", 8) == 0)) {
            p = next;
            continue;
        }
        gap = memchr(p, ' ', n);
        if (!gap || gap == p || gap == p + n - 1 || memchr(gap + 1, ' ', n - (size_t)(gap + 1 - p))) {
            rc = err_set(e, ERR_FORMAT, "line %ld is not two tokens with a space between", line);
            break;
        }
        buf_clear(&parts);
        left = (struct span){p, (size_t)(gap - p)};
        right = (struct span){gap + 1, n - left.n - 1};
        if (format_unmap_bytes(left, &parts) < 0 || (cut = parts.n, format_unmap_bytes(right, &parts) < 0)) {
            rc = err_set(e, ERR_NOMEM, "out of memory for merges");
            break;
        }
        left = (struct span){parts.p, cut};
        right = (struct span){parts.p + cut, parts.n - cut};
        rc = format_add_merge(t, left, right, 0, rank++, scratch, e);
        p = next;
    }
    buf_free(&parts);
    return rc;
}

int format_read_gpt2(struct tokenizer *t, const char *vocab_name, struct span vocab, const char *merges_name,
                     struct span merges, const char *pattern, struct err *e)
{
    struct arena a = {0};
    struct buf scratch = {0};
    struct node *root;
    int64_t eod;
    int rc = node_parse_json(&a, vocab, &root, e);

    t->format = "vocab and merges (GPT-2)";
    if (rc == 0)
        rc = format_read_vocab(t, root, e);
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc < 0) {
        err_wrap(e, "'%s'", vocab_name);
    } else if ((rc = read_merges(t, merges, &scratch, e)) < 0) {
        err_wrap(e, "'%s'", merges_name);
    } else {
        rc = split_find(&t->split, pattern ? pattern : "gpt2", e);
        eod = vocab_find(&t->vocab, span_of("<|endoftext|>"));
        if (rc == 0 && eod >= 0)
            rc = format_add_token(t, &(struct added_token){.text = span_of("<|endoftext|>"), .id = (uint32_t)eod,
                                                           .special = true}, e);
    }
    arena_free(&a);
    buf_free(&scratch);
    return rc;
}
