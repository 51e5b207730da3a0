#include "tokenize/unigram_train.h"

#include <stdlib.h>

#include "base/utf8.h"

#define SPACE "\xe2\x96\x81"
enum { CODE_POINTS = 0x110000 };

struct entry { /* a word */
    struct span word;        /* without the zero byte of one that ends a text */
    uint64_t within, at_end; /* how often it stands before a space, and at the end of a text */
};

struct taking {
    struct unigram_train *u;
    uint8_t *known; /* by code point */
    uint64_t taken; /* bytes of memory, by the words as they were counted */
    struct tally tally;
    struct buf word;
};

int unigram_too_large(const struct unigram_train *u, uint64_t bytes, struct err *e)
{
    if (bytes <= u->memory)
        return 0;
    return err_set(e, ERR_LIMIT, "training on so many different words takes %llu MiB of memory and more (--memory)",
                   (unsigned long long)(bytes >> 20) + 1);
}

/* ---- gathering ---- */

static int put_word(struct taking *t, uint64_t count, struct err *e)
{
    int rc = t->word.failed ? t->word.failed : tally_add(&t->tally, buf_span(&t->word), count, 0);

    buf_clear(&t->word);
    return rc < 0 ? unigram_no_memory(e) : unigram_too_large(t->u, t->taken + tally_size(&t->tally), e);
}

/* Counts a word, rare characters replaced, in parts if it is long. */
static int take_word(void *arg, struct span word, uint64_t count, struct err *e)
{
    struct taking *t = arg;
    bool at_end = word.n && !word.p[word.n - 1];
    char c[4];
    uint32_t cp;

    word.n -= at_end;
    for (size_t i = 0; i < word.n;) {
        i += (size_t)utf8_next(word.p + i, word.p + word.n, &cp);
        buf_put(&t->word, c, (size_t)utf8_put(c, t->known[cp] ? cp : UNIGRAM_RARE));
        if (t->word.n > UNIGRAM_WORD_MAX - 4 && i < word.n) {
            buf_putc(&t->word, 0);
            TRY(put_word(t, count, e));
        }
    }
    if (at_end)
        buf_putc(&t->word, 0);
    return t->word.n > at_end || t->word.failed ? put_word(t, count, e) : 0;
}

/* ---- ordering ---- */

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t n = x->word.n < y->word.n ? x->word.n : y->word.n;
    int order = memcmp(x->word.p, y->word.p, n);

    return order ? order : (x->word.n > y->word.n) - (x->word.n < y->word.n);
}

static int by_count(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    uint64_t n = x->within + x->at_end, m = y->within + y->at_end;

    return n != m ? (n < m ? 1 : -1) : by_text(a, b);
}

/* The words of the tally, each once, the most frequent first; *n of them.  NULL: out of memory. */
static struct entry *order_words(const struct tally *t, size_t *n)
{
    struct entry *v = malloc((t->n + 1) * sizeof *v);
    size_t all = 0;

    *n = 0;
    if (!v)
        return NULL;
    for (const struct tally_entry *x = NULL; (x = tally_next(t, x));) {
        struct span s = tally_word(t, x);
        bool at_end = !s.p[s.n - 1];
        v[all++] = (struct entry){{s.p, s.n - at_end}, at_end ? 0 : x->count, at_end ? x->count : 0};
    }
    qsort(v, all, sizeof *v, by_text);
    for (size_t i = 0; i < all; i++)
        if (*n && span_eq(v[*n - 1].word, v[i].word)) {
            v[*n - 1].within += v[i].within;
            v[*n - 1].at_end += v[i].at_end;
        } else {
            v[(*n)++] = v[i];
        }
    qsort(v, *n, sizeof *v, by_count);
    return v;
}

/* ---- laying out ---- */

/* Puts a word; where it begins.  A zero is behind what ends a text, and in front of the rest of a word that was cut; behind
 * all others there is the space of the next word. */
static uint32_t put_text(struct unigram_train *u, struct span word, bool at_end, uint64_t count)
{
    struct unigram_weight w = {.count = count};
    uint32_t start;

    if (u->text.n && !span_starts(word, SPACE))
        buf_putc(&u->text, 0);
    start = (uint32_t)u->text.n;
    buf_put_span(&u->text, word);
    if (at_end)
        buf_putc(&u->text, 0);
    w.end = (uint32_t)u->text.n;
    buf_put(&u->weights, &w, sizeof w);
    return start;
}

/* Words lane by lane, so that a thread that goes through a lane goes through memory in order.  taken: bytes, by v and
 * what is behind it. */
static int lay_out(struct unigram_train *u, const struct entry *v, size_t n, uint64_t taken, struct err *e)
{
    uint64_t bytes = 16;

    for (size_t i = 0; i < n; i++)
        bytes += 2 * v[i].word.n + 4;
    taken += bytes + n * (sizeof *u->counts + sizeof *u->starts + 2 * sizeof(struct unigram_weight));
    TRY(unigram_too_large(u, taken, e));
    if (bytes > INT32_MAX || n >= UNIGRAM_UNKNOWN)
        return err_set(e, ERR_LIMIT, "the different words are more than 1 GiB");
    u->counts = malloc((n + 1) * sizeof *u->counts);
    u->starts = malloc((n + 1) * sizeof *u->starts);
    if (!u->counts || !u->starts)
        return unigram_no_memory(e);
    for (size_t lane = 0; lane < UNIGRAM_LANES; lane++) {
        u->lanes[lane] = u->n_words;
        for (size_t i = lane; i < n; i += UNIGRAM_LANES) {
            u->counts[u->n_words] = v[i].within + v[i].at_end;
            u->starts[u->n_words++] = put_text(u, v[i].word, !v[i].within, v[i].within ? v[i].within : v[i].at_end);
        }
    }
    u->lanes[UNIGRAM_LANES] = u->n_words;
    u->starts[u->n_words] = (uint32_t)u->text.n;
    u->own = u->text.n;
    for (size_t i = 0; i < n; i++)
        if (v[i].within && v[i].at_end)
            put_text(u, v[i].word, true, v[i].at_end);
    put_text(u, span_of(SPACE), true, 0); /* the space behind the last word */
    return u->text.failed || u->weights.failed ? unigram_no_memory(e) : 0;
}

int unigram_words_make(struct unigram_train *u, struct word_counts *words, const struct train_char *chars, size_t n,
                       struct err *e)
{
    struct taking t = {.u = u, .known = calloc(CODE_POINTS, 1), .taken = CODE_POINTS + tally_size(&words->tally)};
    struct entry *v = NULL;
    int rc = t.known ? 0 : unigram_no_memory(e);

    for (size_t i = 0; i < n && rc == 0; i++)
        t.known[chars[i].cp] = 1;
    if (rc == 0)
        rc = word_counts_each(words, take_word, &t, e);
    t.taken += tally_size(&t.tally) + t.tally.n * sizeof *v;
    if (rc == 0)
        rc = unigram_too_large(u, t.taken, e);
    if (rc == 0 && !(v = order_words(&t.tally, &n)))
        rc = unigram_no_memory(e);
    if (rc == 0)
        rc = lay_out(u, v, n, t.taken, e);
    free(v);
    free(t.known);
    tally_free(&t.tally);
    buf_free(&t.word);
    return rc;
}
