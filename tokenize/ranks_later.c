#include "tokenize/ranks_later.h"

#include <pthread.h>
#include <stdlib.h>

#include "tokenize/bpe_pairs.h"
#include "tokenize/model.h"

struct ranks_later {
    pthread_mutex_t lock;
    struct tokenizer *t;
    uint32_t *made; /* by merges; NULL: there are none */
    uint32_t *rank; /* of these; NULL: in order */
    uint32_t n;     /* merges */
    int rc;         /* of deriving them */
    bool derived;   /* atomic */
};

int ranks_later_begin(struct tokenizer *t, uint32_t n, uint32_t *made, uint32_t *rank, struct err *e)
{
    struct ranks_later *x = calloc(1, sizeof *x);

    if (!x) {
        free(made);
        free(rank);
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    }
    pthread_mutex_init(&x->lock, NULL);
    x->t = t;
    x->made = made;
    x->rank = rank;
    x->n = n;
    t->later = x;
    return 0;
}

void ranks_later_free(struct ranks_later *x)
{
    if (x) {
        pthread_mutex_destroy(&x->lock);
        free(x->made);
        free(x->rank);
    }
    free(x);
}

/* ---- merges that may wait ---- */

/* Whether both tokens of a merge are there, by their hashes. */
static bool has_tokens(const struct merge_notes *m, const struct vocab *v, size_t merge)
{
    const uint64_t *asked = m->asked[merge % MERGE_NOTES_AHEAD];

    return vocab_may_have(v, asked[0]) && vocab_may_have(v, asked[1]);
}

/* The token that is these two together: mostly that of the merge before or the next.  VOCAB_NONE or ERR_NOMEM. */
static int64_t find_joined(struct merge_notes *m, const struct vocab *v, struct span left, struct span right)
{
    for (uint32_t id = m->last; id < m->last + 2; id++)
        if (vocab_is_joined(v, id, left, right))
            return id;
    buf_clear(&m->joined);
    if (buf_put_span(&m->joined, left) < 0 || buf_put_span(&m->joined, right) < 0)
        return ERR_NOMEM;
    return vocab_find(v, buf_span(&m->joined));
}

/* Whether the merge of a token whose first one has so many bytes is among those noted, with which it is then; other: the token is
 * another than the one before. */
static inline bool note_length(uint64_t noted[4], bool other, uint8_t left)
{
    uint64_t bit = (uint64_t)1 << left % 64, *word = &noted[left / 64];
    bool there;

    if (other)
        memset(noted, 0, 4 * sizeof *noted);
    there = *word & bit;
    *word |= bit;
    return there;
}

int merge_notes_put(struct merge_notes *m, const struct tokenizer *t, struct span left, struct span right, struct err *e)
{
    const struct vocab *v = &t->vocab;
    size_t n = m->made.n / sizeof(uint32_t);
    uint32_t made;
    int64_t id;

    if (!v->used || v->twins || n >= UINT32_MAX || left.n > UINT8_MAX || right.n > UINT8_MAX ||
        (n >= MERGE_NOTES_AHEAD && !has_tokens(m, v, n)))
        return 0;
    id = find_joined(m, v, left, right);
    if (id == VOCAB_NONE)
        return 0;
    made = (uint32_t)id << 8 | (uint32_t)left.n;
    if (id < VOCAB_NONE || buf_put(&m->made, &made, sizeof made) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    m->unordered |= id < m->last;
    m->twins |= note_length(m->lengths, id != m->last, (uint8_t)left.n);
    m->last = (uint32_t)id;
    m->asked[n % MERGE_NOTES_AHEAD][0] = vocab_ask(v, left);
    m->asked[n % MERGE_NOTES_AHEAD][1] = vocab_ask(v, right);
    return 1;
}

/* Brings n merges into the order of what they make, into *sorted; *rank: which each of them was. */
static int sort_merges(const uint32_t *made, uint32_t n, uint32_t tokens, uint32_t **sorted, uint32_t **rank, struct err *e)
{
    uint32_t *next = calloc((size_t)tokens + 1, sizeof *next);

    *sorted = malloc(n * sizeof **sorted);
    *rank = malloc(n * sizeof **rank);
    if (!next || !*sorted || !*rank) {
        free(next);
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    }
    for (uint32_t i = 0; i < n; i++)
        next[(made[i] >> 8) + 1]++;
    for (uint32_t i = 0; i < tokens; i++)
        next[i + 1] += next[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = next[made[i] >> 8]++;
        (*sorted)[to] = made[i];
        (*rank)[to] = i;
    }
    free(next);
    return 0;
}

/* Whether a pair is there twice among n merges in order. */
static bool has_twins(const uint32_t *made, uint32_t n)
{
    uint64_t lengths[4] = {0};

    for (uint32_t i = 0; i < n; i++)
        if (note_length(lengths, i && made[i] >> 8 != made[i - 1] >> 8, (uint8_t)made[i]))
            return true;
    return false;
}

int merge_notes_end(struct merge_notes *m, struct tokenizer *t, struct err *e)
{
    uint32_t *made = (uint32_t *)(void *)m->made.p, *sorted = NULL, *rank = NULL, n = (uint32_t)(m->made.n / sizeof *made);
    int rc = 0;

    for (uint32_t i = n < MERGE_NOTES_AHEAD ? 0 : n - MERGE_NOTES_AHEAD; i < n; i++)
        if (!has_tokens(m, &t->vocab, i))
            return 0;
    if (m->unordered)
        rc = sort_merges(made, n, t->vocab.n, &sorted, &rank, e);
    if (rc < 0 || !n || m->twins || (sorted && has_twins(sorted, n))) {
        free(sorted);
        free(rank);
        return rc;
    }
    if (!sorted) {
        sorted = made;
        m->made = (struct buf){0};
    }
    TRY(ranks_later_begin(t, n, sorted, rank, e));
    return 1;
}

void merge_notes_free(struct merge_notes *m)
{
    buf_free(&m->made);
    buf_free(&m->joined);
}

/* ---- making what waits ---- */

bool ranks_derived(const struct tokenizer *t)
{
    return !t->later || __atomic_load_n(&t->later->derived, __ATOMIC_ACQUIRE);
}

static uint32_t rank_of(const struct ranks_later *x, uint32_t merge)
{
    return x->rank ? x->rank[merge] : merge;
}

static int add_merges(struct tokenizer *t, const struct ranks_later *x, struct err *e)
{
    struct merge_batch batch = {.down = true};
    struct buf scratch = {0};
    int rc = 0;

    for (uint32_t i = x->n; i-- > 0 && rc == 0;) {
        struct span s = vocab_get(&t->vocab, x->made[i] >> 8), left = {s.p, x->made[i] & 255};
        struct span right = {s.p + left.n, s.n - left.n};
        t->likely = x->made[i] >> 8;
        rc = merge_batch_put(t, &batch, left, right, rank_of(x, i), &scratch, e);
    }
    if (rc == 0)
        rc = merge_batch_add(t, &batch, &scratch, e);
    buf_free(&scratch);
    return rc;
}

static int derive(struct tokenizer *t, const struct ranks_later *x, struct err *e)
{
    if (t->rules && t->rules->model == MODEL_UNIGRAM)
        return unigram_add_pieces(&t->rules->unigram, &t->vocab, e);
    if (t->rules && t->rules->sentencepiece)
        TRY(chars_make(&t->rules->chars, &t->bpe, &t->vocab, true, e));
    else
        TRY(x->made ? add_merges(t, x, e) : bpe_add_ranks(&t->bpe, &t->vocab, e));
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
    if (rc == ERR_NOMEM)
        return err_set(e, rc, "out of memory for merges");
    return rc < 0 ? err_set(e, rc, "a merge needs a token that the vocabulary lacks") : 0;
}

/* The rank of the merge of a token whose first one has so many bytes; -1: there is none. */
static int64_t find_merge(const struct ranks_later *x, uint32_t token, uint32_t left)
{
    uint32_t low = 0, high = x->n, end = (token + 1) << 8;

    while (low < high) { /* the first one of a later token */
        uint32_t middle = low + (high - low) / 2;
        if (x->made[middle] < end)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && x->made[low - 1] >> 8 == token)
        if ((x->made[--low] & 255) == left)
            return rank_of(x, low);
    return -1;
}

/* The rank of joining two tokens, and what they become; BPE_NO_RANK: nothing. */
static uint32_t join(const struct tokenizer *t, uint32_t left, uint32_t right, uint32_t *id)
{
    const struct ranks_later *x = t->later;
    struct span l = vocab_get(&t->vocab, left), r = vocab_get(&t->vocab, right), both;
    char bytes[2 * UINT8_MAX];
    int64_t found;

    if (l.n > UINT8_MAX || r.n > UINT8_MAX)
        return BPE_NO_RANK;
    memcpy(bytes, l.p, l.n);
    memcpy(bytes + l.n, r.p, r.n);
    both = (struct span){bytes, l.n + r.n};
    found = x->made ? vocab_find(&t->vocab, both) : vocab_find_own(&t->vocab, both);
    *id = (uint32_t)found;
    if (x->made && found >= 0)
        found = find_merge(x, *id, (uint32_t)l.n);
    return found < 0 ? BPE_NO_RANK : (uint32_t)found;
}

/* The same for two symbols of a word. */
static uint32_t join_symbols(const struct tokenizer *t, const struct bpe_word *w, uint32_t left, uint32_t right, uint32_t *id)
{
    if (t->rules && t->rules->sentencepiece)
        return chars_join_places(&t->rules->chars, &t->vocab, w, left, right, id);
    return join(t, left, right, id);
}

/* Joins the `count` symbols in w's ids as far as they can be. */
static void join_word(const struct tokenizer *t, struct bpe_word *w)
{
    uint32_t rank[BPE_SHORT], id[BPE_SHORT]; /* of each symbol and the next one together */
    size_t n = w->count, low;

    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = join_symbols(t, w, w->ids[i], w->ids[i + 1], &id[i]);
    for (; n > 1; n--) {
        low = 0;
        for (size_t i = 1; i + 1 < n; i++)
            low = rank[i] < rank[low] ? i : low;
        if (rank[low] == BPE_NO_RANK)
            break;
        w->ids[low] = id[low];
        memmove(w->ids + low + 1, w->ids + low + 2, (n - low - 2) * sizeof *w->ids);
        memmove(rank + low, rank + low + 1, (n - low - 2) * sizeof *rank);
        memmove(id + low, id + low + 1, (n - low - 2) * sizeof *id);
        if (low + 2 < n)
            rank[low] = join_symbols(t, w, w->ids[low], w->ids[low + 1], &id[low]);
        if (low)
            rank[low - 1] = join_symbols(t, w, w->ids[low - 1], w->ids[low], &id[low - 1]);
    }
    w->count = (uint32_t)n;
}

void ranks_encode_word(const struct tokenizer *t, struct bpe_word *w)
{
    const struct chars *chars = t->rules && t->rules->model == MODEL_CHARS ? &t->rules->chars : NULL;

    if (chars && chars->sentencepiece) {
        chars_begin_places(chars, w);
        join_word(t, w);
        chars_end_places(chars, &t->vocab, w);
        return;
    }
    if (chars)
        chars_begin_word(chars, &t->vocab, w);
    for (uint32_t i = 0; i < w->n && !chars; i++)
        w->ids[i] = t->bpe.byte_id[w->p[i]];
    w->count = chars ? w->count : w->n;
    join_word(t, w);
}
