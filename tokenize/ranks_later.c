#include "tokenize/ranks_later.h"

#include <pthread.h>
#include <stdlib.h>

#include "tokenize/model.h"

struct ranks_later {
    pthread_mutex_t lock;
    struct tokenizer *t;
    int rc;       /* of deriving them */
    bool derived; /* atomic */
};

int ranks_later_begin(struct tokenizer *t, struct err *e)
{
    struct ranks_later *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    pthread_mutex_init(&x->lock, NULL);
    x->t = t;
    t->later = x;
    return 0;
}

void ranks_later_free(struct ranks_later *x)
{
    if (x)
        pthread_mutex_destroy(&x->lock);
    free(x);
}

bool ranks_derived(const struct tokenizer *t)
{
    return !t->later || __atomic_load_n(&t->later->derived, __ATOMIC_ACQUIRE);
}

static int derive(struct tokenizer *t, struct err *e)
{
    TRY(bpe_add_ranks(&t->bpe, &t->vocab, e));
    TRY(bpe_finish(&t->bpe, &t->vocab, e));
    return bpe_check_cuts(&t->bpe, &t->vocab, e);
}

int tokenizer_prepare(const struct tokenizer *t, struct err *e)
{
    struct ranks_later *x = t->later;
    int rc;

    if (ranks_derived(t))
        return 0;
    pthread_mutex_lock(&x->lock);
    if (!x->derived && x->rc == 0) {
        x->rc = derive(x->t, e);
        __atomic_store_n(&x->derived, x->rc == 0, __ATOMIC_RELEASE);
    }
    rc = x->rc;
    pthread_mutex_unlock(&x->lock);
    return rc < 0 ? err_set(e, rc, "out of memory for merges") : 0;
}

/* The rank of the token that w has from its byte `from` to `to`; BPE_NO_BYTE: it is none. */
static uint32_t rank_of(const struct vocab *v, const struct bpe_word *w, uint8_t from, uint8_t to)
{
    int64_t id = vocab_find_own(v, (struct span){(const char *)w->p + from, (size_t)(to - from)});

    return id < 0 ? BPE_NO_BYTE : (uint32_t)id;
}

void ranks_encode_word(const struct bpe *b, const struct vocab *v, struct bpe_word *w)
{
    uint8_t at[BPE_SHORT + 1]; /* where the tokens so far begin, and the end */
    uint32_t rank[BPE_SHORT];  /* of each and the next one together */
    size_t n = w->n, low;

    for (size_t i = 0; i <= n; i++)
        at[i] = (uint8_t)i;
    for (size_t i = 0; i < n; i++)
        w->ids[i] = b->byte_id[w->p[i]];
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = rank_of(v, w, at[i], at[i + 2]);
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
            rank[low] = rank_of(v, w, at[low], at[low + 2]);
        if (low)
            rank[low - 1] = rank_of(v, w, at[low - 1], at[low + 1]);
    }
    w->count = (uint32_t)n;
}
