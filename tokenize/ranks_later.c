#include "tokenize/ranks_later.h"

#include <pthread.h>
#include <stdlib.h>

#include "tokenize/model.h"

struct ranks_later {
    pthread_mutex_t lock;
    struct tokenizer *t;
    uint8_t *left;     /* of merges; NULL: they are ranks */
    uint32_t n, first; /* merges, and the token of the first one */
    int rc;            /* of deriving them */
    bool derived;      /* atomic */
};

int merges_later_begin(struct tokenizer *t, uint32_t n, uint32_t first, uint8_t *left, struct err *e)
{
    struct ranks_later *x = calloc(1, sizeof *x);

    if (!x) {
        free(left);
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    }
    pthread_mutex_init(&x->lock, NULL);
    x->t = t;
    x->left = left;
    x->n = n;
    x->first = first;
    t->later = x;
    return 0;
}

int ranks_later_begin(struct tokenizer *t, struct err *e)
{
    return merges_later_begin(t, 0, 0, NULL, e);
}

void ranks_later_free(struct ranks_later *x)
{
    if (x) {
        pthread_mutex_destroy(&x->lock);
        free(x->left);
    }
    free(x);
}

bool ranks_derived(const struct tokenizer *t)
{
    return !t->later || __atomic_load_n(&t->later->derived, __ATOMIC_ACQUIRE);
}

static int add_merges(struct tokenizer *t, const struct ranks_later *x, struct err *e)
{
    struct merge_batch batch = {.n = 0};
    struct buf scratch = {0};
    int rc = 0;

    t->likely = x->first;
    for (uint32_t i = 0; i < x->n && rc == 0; i++) {
        struct span s = vocab_get(&t->vocab, x->first + i);
        struct span left = {s.p, x->left[i]}, right = {s.p + x->left[i], s.n - x->left[i]};
        if (s.n <= MERGE_ROOM)
            rc = merge_batch_put(t, &batch, left, right, i, &scratch, e);
        else if ((rc = merge_batch_add(t, &batch, &scratch, e)) == 0)
            rc = format_add_merge(t, left, right, 0, i, &scratch, e);
    }
    if (rc == 0)
        rc = merge_batch_add(t, &batch, &scratch, e);
    buf_free(&scratch);
    return rc;
}

static int derive(struct tokenizer *t, const struct ranks_later *x, struct err *e)
{
    TRY(x->left ? add_merges(t, x, e) : bpe_add_ranks(&t->bpe, &t->vocab, e));
    TRY(bpe_finish(&t->bpe, &t->vocab, e));
    return t->whole_first ? bpe_check_cuts(&t->bpe, &t->vocab, e) : 0;
}

int tokenizer_prepare(const struct tokenizer *t, struct err *e)
{
    struct ranks_later *x = t->later;
    int rc;

    if (ranks_derived(t))
        return 0;
    pthread_mutex_lock(&x->lock);
    if (!x->derived && x->rc == 0) {
        x->rc = derive(x->t, x, e);
        __atomic_store_n(&x->derived, x->rc == 0, __ATOMIC_RELEASE);
    }
    rc = x->rc;
    pthread_mutex_unlock(&x->lock);
    return rc < 0 ? err_set(e, rc, "out of memory for merges") : 0;
}

/* The token that w's tokens at at[0] and at[1] become, which is their rank, too; BPE_NO_BYTE: none. */
static uint32_t rank_of(const struct tokenizer *t, const struct bpe_word *w, const uint8_t *at)
{
    const struct ranks_later *x = t->later;
    struct span s = {(const char *)w->p + at[0], (size_t)(at[2] - at[0])};
    int64_t id = x->left ? vocab_find(&t->vocab, s) : vocab_find_own(&t->vocab, s);

    if (x->left && (id < x->first || id - x->first >= x->n || x->left[id - x->first] != at[1] - at[0]))
        return BPE_NO_BYTE;
    return id < 0 ? BPE_NO_BYTE : (uint32_t)id;
}

void ranks_encode_word(const struct tokenizer *t, struct bpe_word *w)
{
    uint8_t at[BPE_SHORT + 1]; /* where the tokens so far begin, and the end */
    uint32_t rank[BPE_SHORT];  /* of each and the next one together */
    size_t n = w->n, low;

    for (size_t i = 0; i <= n; i++)
        at[i] = (uint8_t)i;
    for (size_t i = 0; i < n; i++)
        w->ids[i] = t->bpe.byte_id[w->p[i]];
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = rank_of(t, w, at + i);
    for (; n > 1; n--) {
        low = 0;
        for (size_t i = 1; i + 1 < n; i++)
            low = rank[i] < rank[low] ? i : low;
        if (rank[low] == BPE_NO_BYTE)
            break;
        w->ids[low] = rank[low];
        memmove(w->ids + low + 1, w->ids + low + 2, (n - low - 2) * sizeof *w->ids);
        memmove(at + low + 1, at + low + 2, n - low - 1);
        memmove(rank + low, rank + low + 1, (n - low - 2) * sizeof *rank);
        if (low + 2 < n)
            rank[low] = rank_of(t, w, at + low);
        if (low)
            rank[low - 1] = rank_of(t, w, at + low - 1);
    }
    w->count = (uint32_t)n;
}
