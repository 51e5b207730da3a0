#include "tokenize/model_unigram.h"

#include <math.h>
#include <stdlib.h>

/* The best way to a place in the text. */
struct node {
    double score, second; /* its own, and of the best one that was not taken; -INFINITY: there is none */
    int32_t id;
    uint32_t from;  /* UINT32_MAX: no way yet */
};

enum { NO_WAY = UINT32_MAX, SUM_MOST = 100000 /* of UNIGRAM_ROUNDED */ };

int unigram_add(struct unigram *u, uint32_t id, struct span piece, double score, uint32_t n_ids, struct err *e)
{
    if (!u->scores) {
        u->scores = malloc((n_ids + 1) * sizeof *u->scores);
        u->user = calloc(n_ids + 1, 1);
        if (!u->scores || !u->user)
            return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
        for (u->n_scores = 0; u->n_scores < n_ids; u->n_scores++)
            u->scores[u->n_scores] = NAN;
    }
    u->scores[id] = score;
    u->longest = piece.n > u->longest ? piece.n : u->longest;
    return 0;
}

int unigram_add_pieces(struct unigram *u, const struct vocab *v, struct err *e)
{
    for (uint32_t id = 0; id < u->n_scores; id++) {
        struct span s = vocab_get(v, id);
        if (s.n && !isnan(u->scores[id]))
            TRY(trie_add(&u->trie, s, (int32_t)id, e));
    }
    return 0;
}

void unigram_finish(struct unigram *u, const struct vocab *v, int64_t mark)
{
    /* Where the mark has no piece it would join a run of unknown characters. */
    word_marks_find(&u->marks, v, mark >= 0 && mark != u->unknown, false);
}

void unigram_free(struct unigram *u)
{
    trie_free(&u->trie);
    free(u->scores);
    free(u->user);
    memset(u, 0, sizeof *u);
}

void unigram_scratch_free(struct unigram_scratch *s)
{
    buf_free(&s->nodes);
    buf_free(&s->found);
    buf_free(&s->path);
    buf_free(&s->ids);
}

static size_t char_length(const uint8_t *p, size_t left)
{
    size_t n = (size_t)"\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[*p >> 4];
    return n < left ? n : left;
}

/* A way of this score to *x: the first of equal ones stays. */
static inline void offer(const struct unigram *u, struct node *x, double score, int32_t id, uint32_t from)
{
    if (u->sums == UNIGRAM_ROUNDED)
        score = (float)score; /* of two floats added as doubles: their sum rounded once */
    if (x->from != NO_WAY && !(score > x->score)) {
        x->second = score > x->second ? score : x->second;
        return;
    }
    x->second = x->from == NO_WAY ? -INFINITY : x->score;
    x->score = u->sums == UNIGRAM_DOUBLE ? score : (float)score;
    x->id = id;
    x->from = from;
}

/* The score of a piece of n bytes. */
static inline double score_of(const struct unigram *u, int32_t id, size_t n)
{
    if (!u->user[id])
        return u->scores[id];
    return u->sums == UNIGRAM_ROUNDED ? (float)(0.1 * (double)(n - 1)) : (double)((float)n * u->bonus) - 0.1;
}

/* Lets sums begin at 0 again at nodes[at]; the nodes up to `last` may have ways already. */
static void reset_sums(struct node *nodes, size_t at, size_t last)
{
    float offset = (float)nodes[at].score;

    nodes[at].score = 0;
    for (size_t i = at + 1; i <= last; i++)
        if (nodes[i].from != NO_WAY)
            nodes[i].score = (float)nodes[i].score - offset;
}

/* A piece that the text has at a place. */
struct found {
    uint32_t size;
    int32_t id;
    double score;
};

/* The piece of just these bytes, from the vocabulary; VOCAB_NONE: there is none. */
static int64_t look_up_piece(const struct unigram *u, const struct vocab *v, const uint8_t *p, size_t n)
{
    int64_t id = vocab_find_own(v, (struct span){(const char *)p, n});

    return id >= 0 && isnan(u->scores[id]) ? VOCAB_NONE : id;
}

/* As find_pieces, from the vocabulary. */
static size_t look_up_pieces(const struct unigram *u, const struct vocab *v, const uint8_t *p, size_t left, struct found *found,
                             size_t *seen)
{
    size_t k = 0, most = u->longest < left ? u->longest : left;

    for (size_t i = 1; i <= most; i++) {
        int64_t id = i < left && (p[i] & 0xC0) == 0x80 ? VOCAB_NONE : look_up_piece(u, v, p, i);
        if (id >= 0)
            found[k++] = (struct found){(uint32_t)i, (int32_t)id, score_of(u, (int32_t)id, i)};
    }
    *seen = most < left ? most : left + 1;
    return k;
}

/* The pieces that p[0..left-1] begins with, the shortest first; their number.  *seen: how many bytes say so.  by_vocab:
 * unigram_scratch's. */
static inline size_t find_pieces(const struct unigram *u, const struct vocab *by_vocab, const uint8_t *p, size_t left,
                                 struct found *found, size_t *seen)
{
    uint32_t node = TRIE_ROOT;
    size_t i = 0, k = 0;

    if (by_vocab)
        return look_up_pieces(u, by_vocab, p, left, found, seen);
    while (i < left && (node = trie_step(&u->trie, node, p[i++]))) {
        int32_t id = trie_value(&u->trie, node);
        if (id != TRIE_NONE)
            found[k++] = (struct found){(uint32_t)i, id, score_of(u, id, i)};
    }
    *seen = node ? left + 1 : i; /* with more text there might be more */
    return k;
}

/* Fills the nodes behind those of p[0..n-1] from nodes[0].score on.  False: some character is no token by itself. */
static bool find_ways(const struct unigram *u, const struct vocab *by_vocab, struct node *nodes, struct found *found,
                      const uint8_t *p, size_t n)
{
    bool known = true;
    size_t step = 0, last = 0; /* the last node with a way */
    size_t pieces = 0, seen = SIZE_MAX;

    for (size_t i = 1; i <= n; i++)
        nodes[i].from = NO_WAY;
    for (size_t at = 0; at < n; at += step) {
        double here, unknown;
        bool single = false;

        /* In a run of one character (a line of a table) the pieces are those of the place before. */
        if (seen > n - at || memcmp(p + at, p + at - step, seen) != 0)
            pieces = find_pieces(u, by_vocab, p + at, n - at, found, &seen);

        if (u->sums == UNIGRAM_ROUNDED && fabs(nodes[at].score) > SUM_MOST)
            reset_sums(nodes, at, last);
        here = nodes[at].score;
        step = char_length(p + at, n - at);
        for (size_t k = 0; k < pieces; k++) {
            size_t size = found[k].size;
            offer(u, &nodes[at + size], here + found[k].score, found[k].id, (uint32_t)at);
            single |= size == step;
            last = at + size > last ? at + size : last;
        }
        if (single)
            continue;
        known = false;
        unknown = here + u->unknown_score;
        offer(u, &nodes[at + step], u->sums == UNIGRAM_DOUBLE ? unknown : (float)unknown, -1, (uint32_t)at);
        last = at + step > last ? at + step : last;
    }
    return known;
}

/* The piece of just these bytes; -1: there is none. */
static int64_t exact_piece(const struct unigram *u, const struct vocab *by_vocab, const uint8_t *p, size_t n)
{
    return by_vocab ? look_up_piece(u, by_vocab, p, n) : trie_find(&u->trie, (const char *)p, n);
}

/* What unknown text leaves behind. */
static size_t put_unknown(const struct unigram *u, const uint8_t *p, size_t n, uint32_t *ids)
{
    size_t i = 0;

    if (u->byte_fallback) {
        for (; i < n && u->byte_id[p[i]] >= 0; i++)
            ids[i] = (uint32_t)u->byte_id[p[i]];
        if (i == n)
            return n;
    }
    ids[0] = (uint32_t)u->unknown;
    return 1;
}

/* Hugging Face takes the unknown token written out for unknown text. */
static bool is_unknown(const struct unigram *u, int32_t id)
{
    return id < 0 || (u->sums == UNIGRAM_DOUBLE && id == u->unknown);
}

static int tell_unknown(struct buf *texts, const uint8_t *p, size_t n)
{
    TRY(buf_put(texts, p, n));
    return buf_putc(texts, 0);
}

/* The ids along the best way to nodes[n]. */
static int64_t put_way(const struct unigram *u, struct unigram_scratch *s, const struct node *nodes, const uint8_t *p,
                       size_t n, uint32_t *ids)
{
    uint32_t *path;
    size_t steps = 0, count = 0;
    int64_t id;

    s->path.n = 0;
    if (buf_reserve(&s->path, (n + 1) * sizeof *path) < 0)
        return ERR_NOMEM;
    path = (uint32_t *)(void *)s->path.p;
    for (size_t at = n; at > 0; at = nodes[at].from)
        path[steps++] = (uint32_t)at;
    for (size_t k = steps; k-- > 0;) {
        size_t end = path[k], from = nodes[end].from;
        if (!is_unknown(u, nodes[end].id)) {
            ids[count++] = (uint32_t)nodes[end].id;
            continue;
        }
        while (u->fuse_unknown && k > 0 && is_unknown(u, nodes[path[k - 1]].id))
            end = path[--k];
        id = u->sums == UNIGRAM_DOUBLE ? exact_piece(u, s->by_vocab, p + from, end - from) : -1;
        if (id >= 0)
            ids[count++] = (uint32_t)id;
        else
            count += put_unknown(u, p + from, end - from, ids + count);
        if (s->unknown && ids[count - 1] == (uint32_t)u->unknown)
            TRY(tell_unknown(s->unknown, p + from, end - from));
    }
    return (int64_t)count;
}

/* The best way through a word from a sum of scores on: its ids, at most n, and their number or an error.  *ways: the nodes. */
static int64_t encode_from(const struct unigram *u, struct unigram_scratch *s, double sum, const uint8_t *p, size_t n,
                           uint32_t *ids, const struct node **ways)
{
    struct node *nodes;
    size_t most = u->longest < n ? u->longest : n; /* pieces at a place */

    s->nodes.n = s->found.n = 0;
    if (buf_reserve(&s->nodes, (n + 1) * sizeof *nodes) < 0 || buf_reserve(&s->found, (most + 1) * sizeof(struct found)) < 0)
        return ERR_NOMEM;
    *ways = nodes = (struct node *)(void *)s->nodes.p;
    nodes[0].score = sum;
    if (!find_ways(u, s->by_vocab, nodes, (struct found *)(void *)s->found.p, p, n) && u->unknown < 0)
        return ERR_FORMAT;
    return put_way(u, s, nodes, p, n, ids);
}

int64_t unigram_encode(const struct unigram *u, struct unigram_scratch *s, const uint8_t *p, size_t n, uint32_t *ids)
{
    const struct node *nodes;

    return encode_from(u, s, 0, p, n, ids, &nodes);
}

/* ---- a whole text ---- */

/* The sum of scores runs on through a text and is rounded at every step, so a word's ids may depend on what came before it, but
 * only if two ways are nearly equal.  What is remembered of a word says for which sums its ids hold, its mark:
 * - A level, six bits: sums below 2^level.  From a sum below 2^L on, a step in the word is wrong by at most 2^(L-24), half a unit
 *   in the last place of numbers below 2^(L+1), and its ways differ by more.
 * - Binades, a bit each (UNIGRAM_ROUNDED): sums of -2^(k+1) to -2^k, k = BINADE_MIN and up.  These are all multiples of one
 *   unit of the last place.  So as long as sums stay among them, adding a score is adding it rounded to that unit, whatever the
 *   sum is, unless it lies half-way between two.  Then all ways through the word are as far from one another as they ever were
 *   there, equal ones too.
 * - For these, in four bits, the logarithm of a number: sums in the word are less than that below the one in front of it. */
enum {
    WORD_LONGEST = 64, /* unless it has few ids, one in LINE_PIECE bytes: a line that is drawn comes again */
    LINE_PIECE = 16,
    LEVEL_MIN = 11, /* of no less than a word's own sum */
    LEVEL_MAX = 40,
    LEVEL_MASK = 63,
    MARGIN_MOST = 1 << (LEVEL_MAX - 23),
    REACH_SHIFT = 6,
    REACH_MASK = 15,
    BINADE_MIN = 3,
    BINADE_MAX = 16, /* that of SUM_MOST */
    BINADE_SHIFT = 10
};

/* The level to which a word holds whose ways differ by at least margin a step, as measured from a sum
 * on; 0: none. */
static uint32_t level_of_margin(double margin, double sum)
{
    int now, level;
    double room;

    frexp(sum, &now);
    now = now < LEVEL_MIN ? LEVEL_MIN : now;
    room = margin - ldexp(1, now - 24);
    if (!(room > 0))
        return 0;
    frexp(room, &level);
    level += 23;
    return level < now ? 0 : level > LEVEL_MAX ? LEVEL_MAX : (uint32_t)level;
}

/* The level of a word of n bytes, from its ways.  It only matters which way is taken at places along the best one; another
 * one there falls short by a margin for each step of both, of which it has no more than there are places before. */
static uint32_t word_level(const struct unigram *u, const struct node *nodes, size_t n)
{
    double sum = nodes[0].score, margin = MARGIN_MOST, d;
    size_t steps = 0, places = 0, on_way = n;

    for (size_t i = 1; i <= n; i++) {
        if (nodes[i].from != NO_WAY && fabs(nodes[i].score - sum) >= 1 << LEVEL_MIN)
            return 0; /* sums may leave the level */
        places += nodes[i].from != NO_WAY;
    }
    for (size_t at = n; at > 0; at = nodes[at].from)
        steps++;
    for (size_t i = n; i > 0; places -= nodes[i--].from != NO_WAY) {
        if (i != on_way)
            continue;
        if (nodes[i].id < 0 || u->user[nodes[i].id])
            return 0; /* its sum is not that of the ids' scores */
        d = (nodes[i].score - nodes[i].second) / (double)(steps-- + places);
        margin = d < margin ? d : margin;
        on_way = nodes[i].from;
    }
    return level_of_margin(margin, sum);
}

/* The binade that sums stay in that are not above `sum` and less than 2^reach below; -1: in none. */
static int binade_of(double sum, unsigned reach)
{
    int k;

    if (!(sum < 0))
        return -1;
    k = ilogb(sum);
    return k >= BINADE_MIN && k <= BINADE_MAX && -sum > ldexp(1, k) && -sum + ldexp(1, (int)reach) < ldexp(1, k + 1) ? k : -1;
}

/* True if a score lies half-way between two multiples of the unit of a binade's last place. */
static bool is_halfway(double score, int binade)
{
    double x = ldexp(fabs(score), 23 - binade);

    return x - floor(x) == 0.5;
}

/* The mark of a word whose ids hold in the binade of the sum that its ways began with; 0: they may not.  found: room for a
 * place's pieces. */
static uint32_t mark_of_binade(const struct unigram *u, const struct vocab *by_vocab, const struct node *nodes,
                               struct found *found, const uint8_t *p, size_t n)
{
    unsigned reach = 0;
    int binade;

    if (u->sums != UNIGRAM_ROUNDED)
        return 0;
    for (size_t i = 1; i <= n; i++)
        if (nodes[i].from != NO_WAY) {
            double down = nodes[0].score - nodes[i].score;
            if (!(down >= 0 && down < 1 << LEVEL_MIN))
                return 0;
            while (down >= 1 << reach)
                reach++;
        }
    if ((binade = binade_of(nodes[0].score, reach)) < 0)
        return 0;
    for (size_t at = n; at > 0; at = nodes[at].from)
        if (nodes[at].id < 0 || u->user[nodes[at].id])
            return 0; /* its sum is not that of the ids' scores */
    for (size_t at = 0, seen, pieces; at < n; at += char_length(p + at, n - at)) {
        pieces = find_pieces(u, by_vocab, p + at, n - at, found, &seen);
        for (size_t k = 0; k < pieces; k++)
            if (is_halfway(found[k].score, binade))
                return 0;
        if (is_halfway((float)u->unknown_score, binade))
            return 0;
    }
    return (uint32_t)1 << (BINADE_SHIFT + binade - BINADE_MIN) | reach << REACH_SHIFT;
}

/* True if the ids of a word with this mark hold from a sum on. */
static inline bool mark_holds(uint32_t mark, double sum)
{
    int k;

    if (fabs(sum) < (double)((uint64_t)1 << (mark & LEVEL_MASK)))
        return mark & LEVEL_MASK;
    k = mark >> BINADE_SHIFT ? binade_of(sum, mark >> REACH_SHIFT & REACH_MASK) : -1;
    return k >= 0 && (mark >> (BINADE_SHIFT + k - BINADE_MIN) & 1);
}

/* Lets a word's mark, by which its ids were not known to hold, say that they hold as `more` says. */
static void widen_mark(uint8_t *known, uint32_t more)
{
    uint32_t mark = word_id(known, 0), reach = (uint32_t)REACH_MASK << REACH_SHIFT;

    more = (mark & reach) > (more & reach) ? (more & ~reach) | (mark & reach) : more;
    mark = (mark & ~reach) | more;
    word_pack(known, &mark, 1);
}

/* A word by Viterbi's algorithm from the sum on; its ids in *ids, which has room for one in front.  known: what the table has
 * of it, known_n of them, or NULL. */
static int64_t new_word(const struct unigram *u, struct unigram_scratch *s, struct word_table *words, uint8_t *known,
                        size_t known_n, const uint8_t *p, size_t n, double *sum, uint32_t *ids)
{
    const struct node *nodes;
    int64_t count = encode_from(u, s, *sum, p, n, ids, &nodes);
    uint32_t mark = 0;

    if (count <= 0)
        return count;
    *sum = nodes[n].score;
    if (n > WORD_LONGEST && (size_t)count > n / LINE_PIECE)
        return count;
    if (!known)
        mark = word_level(u, nodes, n);
    if (!mark)
        mark = mark_of_binade(u, s->by_vocab, nodes, (struct found *)(void *)s->found.p, p, n);
    if (mark && known) {
        bool same = known_n == (size_t)count + 1;
        for (size_t i = 1; same && i < known_n; i++)
            same = word_id(known, i) == ids[i - 1];
        if (same)
            widen_mark(known, mark);
    } else if (mark) {
        ids[-1] = mark;
        word_table_put(words, p, n, ids - 1, (size_t)count + 1);
    }
    return count;
}

static inline char *put_id(char *o, uint32_t id, int width)
{
    uint16_t half = (uint16_t)id;

    memcpy(o, width == 2 ? (const void *)&half : (const void *)&id, (size_t)width);
    return o + width;
}

/* Writes the ids of a word that the table has, behind its level.  width: known when this is compiled. */
static inline char *put_known(const struct unigram *u, const uint8_t *x, size_t count, double *sum, char *o, int width)
{
    const bool single = u->sums != UNIGRAM_DOUBLE;
    float rounded = (float)*sum;

    for (size_t i = 1; i < count; i++) {
        uint32_t id = word_id(x, i);
        if (single)
            rounded += (float)u->scores[id]; /* as rounded from double: that has twice the digits and more */
        else
            *sum += u->scores[id];
        o = put_id(o, id, width);
    }
    if (single)
        *sum = rounded;
    return o;
}

/* The next words of a text, whose places in the table are asked for early. */
struct ahead {
    uint32_t cuts[WORDS_BATCH + 1];
    size_t n, next;
    struct word_batch batch;
};

static void look_ahead(const struct unigram *u, const struct word_table *words, struct span text, size_t at,
                       struct ahead *a)
{
    const uint8_t *p = (const uint8_t *)text.p;

    a->next = 0;
    a->cuts[0] = (uint32_t)at;
    a->n = at < text.n ? ISA_PICK(word_marks_ends)(&u->marks, p, text.n, &at, a->cuts + 1, WORDS_BATCH) : 0;
    word_batch_begin(&a->batch, text, a->cuts, a->n);
    ISA_PICK(words_seek)(words, &a->batch);
}

int unigram_text(const struct unigram *u, struct unigram_scratch *s, struct word_table *words, struct span text,
                 int width, struct buf *out, struct err *e)
{
    const uint8_t *p = (const uint8_t *)text.p;
    struct ahead a = {.n = 0};
    /* A known word's own sums stay below 2^LEVEL_MIN, and so none of them begins at 0 again. */
    double sum = 0, most = u->sums == UNIGRAM_ROUNDED ? SUM_MOST - (1 << LEVEL_MIN) : INFINITY;
    uint32_t *ids;
    size_t n;
    int64_t rc = 0;

    for (size_t at = 0; at < text.n && rc >= 0; at += n) {
        size_t count = 0;
        const uint8_t *x;
        char *o;

        if (a.next == a.n) {
            word_table_make_room(words);
            look_ahead(u, words, text, at, &a);
            if ((rc = buf_reserve(out, (size_t)(a.cuts[a.n] - a.cuts[0]) * (size_t)width)) < 0)
                break;
        }
        x = word_batch_find(words, &a.batch, a.next, &count);
        n = a.cuts[++a.next] - at;
        if (!x)
            x = word_table_find(words, p + at, n, &count);
        if (x && fabs(sum) < most && mark_holds(word_id(x, 0), sum)) {
            o = out->p + out->n;
            o = width == 2 ? put_known(u, x, count, &sum, o, 2) : put_known(u, x, count, &sum, o, 4);
            out->n = (size_t)(o - out->p);
            continue;
        }
        s->ids.n = 0;
        rc = buf_reserve(&s->ids, (n + 1) * sizeof *ids);
        ids = (uint32_t *)(void *)s->ids.p + 1;
        if (rc == 0)
            rc = new_word(u, s, words, (uint8_t *)(uintptr_t)x, count, p + at, n, &sum, ids); /* the table is ours */
        count = rc > 0 ? (size_t)rc : 0;
        for (size_t i = 0; i < count; i++)
            out->n = (size_t)(put_id(out->p + out->n, ids[i], width) - out->p);
    }
    if (rc >= 0)
        return 0;
    return err_set(e, (int)rc, rc == ERR_FORMAT  ? "the text has a character that the tokenizer has no token for"
                               : rc == ERR_LIMIT ? "too many tokens"
                                                 : "out of memory for tokens");
}
