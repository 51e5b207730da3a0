#include "tokenize/model.h"

int merge_batch_add(struct tokenizer *t, struct merge_batch *b, struct buf *scratch, struct err *e)
{
    for (size_t i = 0; i < b->n; i++)
        for (int k = 0; k < 2; k++)
            vocab_ask_more(&t->vocab, b->line[i].asked[k]);
    for (size_t i = 0; i < b->n; i++) {
        struct span left = {b->line[i].bytes, b->line[i].left}, right = {left.p + left.n, b->line[i].n - left.n};
        int64_t l = vocab_find_asked(&t->vocab, left, b->line[i].asked[0]);
        int64_t r = vocab_find_asked(&t->vocab, right, b->line[i].asked[1]);
        b->line[i].left_id = (uint32_t)l;
        b->line[i].right_id = (uint32_t)r;
        if (l >= 0 && r >= 0)
            bpe_ask(&t->bpe, (uint32_t)l, (uint32_t)r);
    }
    for (size_t i = 0; i < b->n; i++) {
        struct span left = {b->line[i].bytes, b->line[i].left}, right = {left.p + left.n, b->line[i].n - left.n};
        uint32_t l = b->line[i].left_id, r = b->line[i].right_id;
        int64_t id = vocab_find_likely(&t->vocab, (struct span){left.p, b->line[i].n}, t->likely);
        if (id < 0 || l > VOCAB_MAX_ID || r > VOCAB_MAX_ID)
            return format_add_merge(t, left, right, 0, b->line[i].rank, scratch, e); /* says what is missing */
        t->likely = b->down ? (uint32_t)id - 1 : (uint32_t)id + 1;
        TRY(bpe_add_merge(&t->bpe, l, r, b->line[i].rank, (uint32_t)id, e));
    }
    b->n = 0;
    return 0;
}

int merge_batch_put(struct tokenizer *t, struct merge_batch *b, struct span left, struct span right, uint32_t rank,
                    struct buf *scratch, struct err *e)
{
    if (left.n + right.n > MERGE_ROOM) {
        TRY(merge_batch_add(t, b, scratch, e));
        return format_add_merge(t, left, right, 0, rank, scratch, e);
    }
    b->line[b->n].left = (uint8_t)left.n;
    b->line[b->n].n = (uint8_t)(left.n + right.n);
    memcpy(b->line[b->n].bytes, left.p, left.n);
    memcpy(b->line[b->n].bytes + left.n, right.p, right.n);
    return merge_batch_next(t, b, rank, scratch, e);
}

int merge_batch_next(struct tokenizer *t, struct merge_batch *b, uint32_t rank, struct buf *scratch, struct err *e)
{
    const char *bytes = b->line[b->n].bytes;
    size_t left = b->line[b->n].left;

    b->line[b->n].rank = rank;
    b->line[b->n].asked[0] = vocab_ask(&t->vocab, (struct span){bytes, left});
    b->line[b->n].asked[1] = vocab_ask(&t->vocab, (struct span){bytes + left, b->line[b->n].n - left});
    return ++b->n == MERGE_BATCH ? merge_batch_add(t, b, scratch, e) : 0;
}
