/* Merging against the plain definition, the table of words, files that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/json_shim.h"
#include "tokenize/bpe_pairs.h"
#include "tokenize/model.h"
#include "tokenize/tokenizer.h"
#include "tokenize/word_share.h"
#include "tokenize/word_table.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

/* ---- merging ---- */

/* How many bytes of a merge's token its first one has, by make_bpe. */
static uint8_t made_of[512];

/* 256 bytes and some merges over some of them. */
static void make_bpe(struct bpe *b, struct vocab *v, int merges, const char *letters)
{
    struct err e;
    uint32_t id = 256;

    memset(b, 0, sizeof *b);
    memset(v, 0, sizeof *v);
    for (unsigned i = 0; i < 256; i++) {
        char c = (char)i;
        assert_int_equal(vocab_add(v, i, (struct span){&c, 1}, &e), 0);
    }
    assert_int_equal(bpe_set_bytes(b, v, &e), 0);
    while (merges > 0) {
        uint32_t kinds = (uint32_t)strlen(letters);
        uint32_t l = below(2) ? (uint8_t)letters[below(kinds)] : below(id - 256 + 1) + 255;
        uint32_t r = below(2) ? (uint8_t)letters[below(kinds)] : below(id - 256 + 1) + 255;
        char text[256];
        struct span x = vocab_get(v, l), y = vocab_get(v, r);
        if (l == 255 || r == 255 || x.n + y.n > 40)
            continue;
        memcpy(text, x.p, x.n);
        memcpy(text + x.n, y.p, y.n);
        if (vocab_find(v, (struct span){text, x.n + y.n}) >= 0)
            continue;
        assert_int_equal(vocab_add(v, id, (struct span){text, x.n + y.n}, &e), 0);
        assert_int_equal(bpe_add_merge(b, l, r, id, id, &e), 0);
        made_of[id - 256] = (uint8_t)x.n;
        id++;
        merges--;
    }
    assert_int_equal(bpe_finish(b, v, &e), 0);
}

/* By the definition: the lowest rank, leftmost, again and again. */
static size_t merge_plainly(const uint32_t (*rule)[2], uint32_t rules, const uint8_t *p, size_t n, uint32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = p[i];
    for (;;) {
        uint32_t best = UINT32_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t r = 0; r < rules && r < best; r++)
                if (rule[r][0] == ids[i] && rule[r][1] == ids[i + 1]) {
                    best = r;
                    at = i;
                }
        if (best == UINT32_MAX)
            return n;
        ids[at] = 256 + best;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

/* What an instruction set has for merging; false: not this processor. */
static bool use_isa(struct bpe *b, enum isa isa)
{
    size_t (*const join[])(const struct bpe *, uint32_t *, uint32_t *, uint32_t *, size_t) = ISA_EACH(bpe_join);
    void (*const words[])(const struct bpe *, struct bpe_word *, size_t) = ISA_EACH(bpe_words);

    if (isa > isa_best())
        return false;
    b->join = join[isa];
    b->words = words[isa];
    return true;
}

/* Words at once give what they give one by one. */
static void words_at_once(const struct bpe *b)
{
    enum { WORDS = 30 };
    struct bpe_scratch scratch = {0};
    struct bpe_word words[WORDS];
    uint8_t text[WORDS][BPE_SHORT];
    uint32_t ids[WORDS][BPE_SHORT], one[BPE_SHORT];
    size_t n = below(WORDS + 1);

    for (size_t i = 0; i < n; i++) {
        words[i] = (struct bpe_word){.p = text[i], .ids = ids[i], .n = 1 + below(BPE_SHORT)};
        for (size_t j = 0; j < words[i].n; j++)
            text[i][j] = (uint8_t)('a' + below(3));
    }
    bpe_encode_words(b, words, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(words[i].count, bpe_encode(b, &scratch, text[i], words[i].n, one));
        assert_memory_equal(ids[i], one, words[i].count * sizeof *one);
    }
    bpe_scratch_free(&scratch);
}

static void merging_follows_the_definition(void **state)
{
    enum { MERGES = 60 };
    struct err e;
    struct bpe_scratch scratch = {0};
    uint32_t got[400], want[400];

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct bpe b = {0};
        struct vocab v = {0};
        uint32_t rule[MERGES][2];
        for (unsigned i = 0; i < 256; i++) {
            char c = (char)i;
            vocab_add(&v, i, (struct span){&c, 1}, &e);
        }
        assert_int_equal(bpe_set_bytes(&b, &v, &e), 0);
        for (uint32_t r = 0; r < MERGES; r++) { /* ids have no text here: only pairs count */
            rule[r][0] = below(2) || r == 0 ? 'a' + below(3) : 256 + below(r);
            rule[r][1] = below(2) || r == 0 ? 'a' + below(3) : 256 + below(r);
            bpe_add_merge(&b, rule[r][0], rule[r][1], round % 2 ? r : 2 * r, 256 + r, &e);
            for (uint32_t q = 0; q < r; q++) /* a pair given again keeps its first rank */
                if (rule[q][0] == rule[r][0] && rule[q][1] == rule[r][1])
                    rule[r][0] = UINT32_MAX;
        }
        assert_int_equal(bpe_finish(&b, &v, &e), 0);
        assert_int_equal(b.dense != NULL, round % 2); /* numbers of pairs and tokens in step */
        for (int i = 0; i < 200; i++) {
            uint8_t text[400];
            if (!use_isa(&b, (enum isa)(i % 3)))
                continue;
            words_at_once(&b);
            size_t n = 1 + below(i % 2 ? 40 : 390), k;
            for (size_t j = 0; j < n; j++)
                text[j] = (uint8_t)('a' + below(3));
            k = merge_plainly((const uint32_t(*)[2])rule, MERGES, text, n, want);
            assert_int_equal(bpe_encode(&b, &scratch, text, n, got), k);
            assert_memory_equal(got, want, k * sizeof *got);
        }
        bpe_free(&b);
        vocab_free(&v);
    }
    bpe_scratch_free(&scratch);
}

/* Ranks by the definition: the two neighbours whose bytes are the token of the lowest id, leftmost, again and again. */
static size_t rank_plainly(const struct vocab *v, const char *p, size_t n, uint32_t *ids)
{
    size_t end[400], left = n;

    for (size_t i = 0; i < n; i++)
        end[i] = i + 1;
    for (;;) {
        int64_t best = INT64_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 1 < left; i++) {
            size_t from = i ? end[i - 1] : 0;
            int64_t id = vocab_find(v, (struct span){p + from, end[i + 1] - from});
            if (id >= 0 && id < best) {
                best = id;
                at = i;
            }
        }
        if (best == INT64_MAX)
            break;
        memmove(end + at, end + at + 1, (left - at - 1) * sizeof *end);
        left--;
    }
    for (size_t i = 0; i < left; i++) {
        size_t from = i ? end[i - 1] : 0;
        ids[i] = (uint32_t)vocab_find(v, (struct span){p + from, end[i] - from});
    }
    return left;
}

static void put_new(struct vocab *v, uint32_t *id, const char *p, size_t n)
{
    struct err e;

    if (vocab_find(v, (struct span){p, n}) < 0) {
        assert_int_equal(vocab_add(v, *id, (struct span){p, n}, &e), 0);
        *id += 1 + below(3); /* ids have holes */
    }
}

/* Tokens of random letters, many of which no order of joining reaches, bytes among and behind them. */
static void ranks_follow_the_definition(void **state)
{
    struct bpe_scratch scratch = {0};
    struct err e;
    size_t joined = 0;

    (void)state;
    for (int round = 0; round < 24; round++) {
        struct vocab v = {0};
        struct tokenizer t;
        struct bpe b = {0};
        uint32_t id = round % 6 == 5 ? BPE_DENSE_IDS - 600 : 0, got[400], want[400];
        char text[400];
        for (unsigned i = 0; i < 256; i++) {
            char c = (char)i;
            for (int k = 0; k < 2 && i >= 'a'; k++) {
                size_t n = 2 + below(i % 8 ? 4 : round % 2 ? 70 : 12);
                for (size_t j = 0; j < n; j++)
                    text[j] = (char)('a' + below(n > 20 ? 1 : 3));
                put_new(&v, &id, text, n);
            }
            put_new(&v, &id, &c, 1);
        }
        assert_int_equal(bpe_set_bytes(&b, &v, &e), 0);
        assert_int_equal(bpe_add_ranks(&b, &v, &e), 0);
        assert_int_equal(bpe_finish(&b, &v, &e), 0);
        assert_int_equal(b.dense != NULL, round % 6 < 5);
        t = (struct tokenizer){.vocab = v, .bpe = b};
        assert_int_equal(ranks_later_begin(&t, 0, NULL, NULL, &e), 0);
        for (int i = 0; i < 100; i++) {
            size_t n = 1 + below(i % 8 ? 30 : 150), k;
            if (use_isa(&b, (enum isa)(i % 3)))
                words_at_once(&b);
            for (size_t j = 0; j < n; j++)
                text[j] = (char)('a' + below(i % 2 ? 3 : 1));
            k = rank_plainly(&v, text, n, want);
            assert_int_equal(bpe_encode(&b, &scratch, (const uint8_t *)text, n, got), k);
            assert_memory_equal(got, want, k * sizeof *got);
            if (n <= BPE_SHORT) { /* by bytes, without pairs */
                struct bpe_word w = {.p = (const uint8_t *)text, .ids = got, .n = (uint32_t)n};
                ranks_encode_word(&t, &w);
                assert_int_equal(w.count, k);
                assert_memory_equal(got, want, k * sizeof *got);
            }
            joined += n - k;
        }
        ranks_later_free(t.later);
        bpe_free(&b);
        vocab_free(&v);
    }
    assert_true(joined > 10000);
    bpe_scratch_free(&scratch);
}

/* Merges that each make the next token: by bytes, and when their pairs have been derived. */
static void merges_wait_for_a_text(void **state)
{
    struct bpe_scratch scratch = {0};
    size_t joined = 0;
    struct err e;

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct tokenizer t = {.whole_first = round % 2};
        uint8_t text[BPE_SHORT];
        uint32_t *made = malloc(100 * sizeof *made);
        uint32_t want[BPE_SHORT], got[BPE_SHORT];
        struct bpe all;
        make_bpe(&all, &t.vocab, 100, "abc");
        for (uint32_t i = 0; i < 100; i++)
            made[i] = (256 + i) << 8 | made_of[i];
        assert_int_equal(bpe_set_bytes(&t.bpe, &t.vocab, &e), 0);
        assert_int_equal(ranks_later_begin(&t, 100, made, NULL, &e), 0);
        for (int i = 0; i < 400; i++) {
            size_t n = 1 + below(BPE_SHORT), k;
            struct bpe_word w = {.p = text, .ids = got, .n = (uint32_t)n};
            for (size_t j = 0; j < n; j++)
                text[j] = (uint8_t)('a' + below(3));
            k = (size_t)bpe_encode(&all, &scratch, text, n, want);
            if (i == 200)
                assert_int_equal(tokenizer_prepare(&t, &e), 0);
            if (i < 200)
                ranks_encode_word(&t, &w);
            else
                bpe_encode_words(&t.bpe, &w, 1);
            assert_int_equal(w.count, k);
            assert_memory_equal(got, want, k * sizeof *got);
            joined += n - k;
        }
        assert_int_equal(t.bpe.n, 100);
        bpe_free(&all);
        ranks_later_free(t.later);
        bpe_free(&t.bpe);
        vocab_free(&t.vocab);
    }
    assert_true(joined > 10000);
    bpe_scratch_free(&scratch);
}

static void ranks_give_the_same_as_their_merges(void **state)
{
    struct bpe merges, ranks = {0};
    struct vocab v;
    struct bpe_scratch scratch = {0};
    struct err e;
    uint32_t a[300], b[300];

    (void)state;
    make_bpe(&merges, &v, 80, "abcd");
    assert_int_equal(bpe_set_bytes(&ranks, &v, &e), 0);
    assert_int_equal(bpe_add_ranks(&ranks, &v, &e), 0);
    assert_int_equal(bpe_finish(&ranks, &v, &e), 0);
    for (uint32_t id = 256; id < v.n; id++) { /* each token that ranks reach, they reach as itself */
        struct span s = vocab_get(&v, id);
        int64_t n = bpe_encode(&ranks, &scratch, (const uint8_t *)s.p, s.n, a);
        int64_t m = bpe_encode(&merges, &scratch, (const uint8_t *)s.p, s.n, b);
        if (m == 1 && n == 1)
            assert_int_equal(a[0], b[0]);
    }
    bpe_free(&merges);
    bpe_free(&ranks);
    bpe_scratch_free(&scratch);
    vocab_free(&v);
}

/* The ids of a piece's parts, one after the other, of which there are *parts. */
static size_t encode_parts(const struct bpe *b, enum isa isa, const char *p, size_t n, uint32_t *ids, size_t *parts)
{
    size_t (*const apart[])(const struct bpe_crossings *, struct span, uint32_t *, size_t, size_t *, size_t, uint32_t *,
                            size_t) = ISA_EACH(bpe_parts);
    uint32_t cuts[2] = {0, (uint32_t)n}, at[BPE_CUT_ROOM];
    struct bpe_scratch scratch = {0};
    size_t done = 0, count = 0, end = 0;

    while (!done) {
        size_t k = apart[isa](&b->crossings, (struct span){p, n}, cuts, 1, &done, 0, at, BPE_CUT_ROOM);
        for (size_t i = 0; i < k; end = at[++i]) {
            assert_int_equal(at[i], end);
            count += (size_t)bpe_encode(b, &scratch, (const uint8_t *)p + end, at[i + 1] - end, ids + count);
        }
        *parts += k;
    }
    assert_int_equal(end, n);
    bpe_scratch_free(&scratch);
    return count;
}

static void parts_are_merged_as_the_whole(void **state)
{
    static const char *const chars[] = {"\xE4\xB8\xAD", "\xE4\xBD\x93", "\xC3\xA9", "\xC3\xB8", "a", " "};
    uint32_t whole[1200], got[1200];
    size_t parts = 0, pieces = 0;

    (void)state;
    for (int round = 0; round < 400; round++) {
        struct bpe_scratch scratch = {0};
        struct bpe b;
        struct vocab v;
        make_bpe(&b, &v, round % 40, "\xE4\xB8\xAD\xBD\x93\xC3\xA9 a");
        for (int i = 0; i < 20; i++, pieces++) {
            size_t n = 0, most = i % 2 ? 1100 : 70, count;
            char text[1200];
            while (n < most) {
                const char *c = chars[below(sizeof chars / sizeof *chars)];
                memcpy(text + n, c, strlen(c));
                n += strlen(c);
            }
            count = (size_t)bpe_encode(&b, &scratch, (const uint8_t *)text, n, whole);
            for (int isa = 0; isa <= (int)isa_best(); isa++) {
                assert_int_equal(encode_parts(&b, (enum isa)isa, text, n, got, &parts), count);
                assert_memory_equal(got, whole, count * sizeof *got);
            }
        }
        bpe_scratch_free(&scratch);
        bpe_free(&b);
        vocab_free(&v);
    }
    assert_true(parts > 30 * pieces);
}

static void long_pieces_take_no_longer_than_they_should(void **state)
{
    /* Quadratic merging of 4 MB would run for hours: this test would not end. */
    enum { N = 4 << 20 };
    struct bpe b;
    struct vocab v;
    struct bpe_scratch scratch = {0};
    uint8_t *p = malloc(N);
    uint32_t *ids = malloc(N * sizeof *ids);

    (void)state;
    make_bpe(&b, &v, 60, "abcd");
    for (int kind = 0; kind < 2; kind++) {
        int64_t n;
        size_t total = 0;
        for (size_t i = 0; i < N; i++)
            p[i] = (uint8_t)(kind ? 'a' + below(4) : 'a');
        n = bpe_encode(&b, &scratch, p, N, ids);
        assert_true(n > 0);
        for (int64_t i = 0; i < n; i++)
            total += vocab_get(&v, ids[i]).n;
        assert_int_equal(total, N);
    }
    free(p);
    free(ids);
    bpe_free(&b);
    bpe_scratch_free(&scratch);
    vocab_free(&v);
}

/* ---- tables ---- */

static void words_are_found_or_forgotten_never_mistaken(void **state)
{
    struct word_table w;
    int kept = 0;

    (void)state;
    assert_int_equal(word_table_init(&w, 7), 0); /* far too small for what comes */
    for (int round = 0; round < 20; round++)
        for (uint32_t j0 = 0; j0 < 2000; j0++) {
            uint32_t i = below(2000);
            uint8_t text[64];
            uint32_t ids[12];
            size_t n = 1 + i % 40, count = 1 + i % 9, got = 0;
            const uint8_t *x;
            memset(text, 'a', sizeof text);
            memcpy(text, &i, n < 4 ? n : 4);
            memcpy(&ids[0], text, 4);
            ids[0] &= 0xFFFFFF;
            for (size_t j = 1; j < count; j++)
                ids[j] = i + (uint32_t)j;
            if (n < 4)
                continue;
            if ((x = word_table_find(&w, text, n, &got))) {
                assert_int_equal(got, count);
                for (size_t j = 0; j < count; j++)
                    assert_int_equal(word_id(x, j), ids[j]);
                kept++;
            } else {
                word_table_put(&w, text, n, ids, count);
                x = word_table_find(&w, text, n, &got);
                assert_true(!x || got == count);
            }
        }
    assert_true(kept > 0);
    word_table_free(&w);
}

/* Word number i: a short one, one whose ids are in the store, or a long one. */
static size_t numbered_word(uint32_t i, uint8_t text[32], uint32_t ids[12], size_t *count)
{
    size_t n = i % 5 == 0 ? 16 + i % 13 : 4 + i % 12;

    memset(text, 'x', 32);
    memcpy(text, &i, 4);
    *count = i % 7 == 0 ? 12 : 1 + i % 5;
    for (size_t k = 0; k < *count; k++)
        ids[k] = (i * 31 + (uint32_t)k) & 0xFFFFFF;
    return n;
}

static void tables_double_and_keep_what_they_have(void **state)
{
    enum { N = 250000 };
    struct word_table w;
    uint32_t lost = 0;

    (void)state;
    assert_int_equal(word_table_init(&w, WORDS_LOG2), 0);
    for (uint32_t i = 0; i < N; i++) {
        uint8_t text[32];
        uint32_t ids[12];
        size_t count, n = numbered_word(i, text, ids, &count);
        word_table_make_room(&w);
        word_table_put(&w, text, n, ids, count);
    }
    assert_int_equal(w.set_mask >> 6, (1 << (WORDS_LOG2 - 1)) - 1);
    for (uint32_t i = 0; i < N; i++) {
        uint8_t text[32];
        uint32_t ids[12];
        size_t count, got, n = numbered_word(i, text, ids, &count);
        const uint8_t *x = word_table_find(&w, text, n, &got);
        lost += !x;
        if (!x)
            continue;
        assert_int_equal(got, count);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(word_id(x, k), ids[k]);
    }
    assert_true(lost < N / 200); /* to full windows */
    word_table_free(&w);
}

enum { SHARED_WORDS = 60000 };
static void put_shared_words(void *share, int thread)
{
    for (uint32_t j = 0; j < SHARED_WORDS; j++) {
        uint32_t ids[12], got[WORDS_INLINE], i = thread % 2 ? j : SHARED_WORDS - j; /* they meet in the middle */
        uint8_t text[32];
        size_t count, n = numbered_word(i, text, ids, &count), found = word_share_find(share, text, n, got);
        if (found && (found != count || memcmp(got, ids, count * sizeof *ids) != 0))
            fail_msg("word %u has other ids", i);
        if (!found)
            word_share_put(share, text, n, ids, count);
    }
}

static void threads_share_words(void **state)
{
    struct word_share *s = word_share_new();
    uint32_t lost = 0, ids[12], got[WORDS_INLINE];
    uint8_t text[32];
    size_t count, n;
    struct err e;

    (void)state;
    assert_non_null(s);
    assert_int_equal(pool_run(4, put_shared_words, s, &e), 0);
    for (uint32_t i = 1; i < SHARED_WORDS; i++) {
        n = numbered_word(i, text, ids, &count);
        word_share_ask(s, text, n);
        if (n <= WORDS_SHORT && count <= WORDS_INLINE)
            lost += word_share_find(s, text, n, got) != count;
        else
            assert_int_equal(word_share_find(s, text, n, got), 0);
    }
    assert_true(lost < SHARED_WORDS / 100); /* to full windows */
    word_share_free(s);
}

/* Ids that a piece would have: some for each byte, or one. */
static size_t ids_of(const uint8_t *p, size_t n, uint32_t *ids)
{
    size_t count = p[0] % 3 ? 1 : n;

    for (size_t i = 0; i < count; i++)
        ids[i] = p[i] * 7u + (uint32_t)n;
    return count;
}

/* Batches on each instruction set, up to the last byte of the text. */
static void batches_give_what_was_put(void **state)
{
    typedef void (*seek_fn)(const struct word_table *, struct word_batch *);
    typedef char *(*put_fn)(const struct word_table *, struct word_batch *, struct word_batch *, char *);
    static const seek_fn seek[] = ISA_EACH(words_seek);
    static const put_fn put[] = ISA_EACH(words_put4), put_half[] = ISA_EACH(words_put2);
    struct word_batch b, ahead;
    struct word_table w;

    (void)state;
    assert_int_equal(word_table_init(&w, 7), 0);
    for (int round = 0; round < 3000; round++) {
        int isa = round % ((int)isa_best() + 1);
        size_t pieces = 1 + below(WORDS_BATCH), n = 0;
        uint32_t cuts[WORDS_BATCH + 1] = {0}, ids[80];
        uint8_t *text = malloc(pieces * 70), *exact;
        char out[WORDS_BATCH * 70 * 4 + WORDS_SLACK], *o = out;
        for (size_t i = 0; i < pieces; i++) {
            size_t len = 1 + below(below(6) ? 15 : 70);
            memset(text + n, 'a' + (int)below(9), len);
            cuts[i + 1] = (uint32_t)(n += len);
        }
        exact = malloc(n); /* nothing behind the text */
        memcpy(exact, text, n);
        word_batch_begin(&b, (struct span){(const char *)exact, n}, cuts, pieces);
        b.either = below(2);
        word_batch_begin(&ahead, (struct span){(const char *)exact, n}, cuts, below(2) ? pieces : 0);
        seek[isa](&w, &b);
        for (bool half = round & 64;; b.next++) {
            const uint8_t *p;
            size_t len, count, got;
            o = (half ? put_half : put)[isa](&w, &b, &ahead, o);
            if (b.next == pieces)
                break;
            p = exact + cuts[b.next], len = cuts[b.next + 1] - cuts[b.next];
            count = ids_of(p, len, ids);
            if (!word_table_find(&w, p, len, &got))
                word_table_put(&w, p, len, ids, count);
            for (size_t i = 0; i < count; i++, o += half ? 2 : 4)
                memcpy(o, &ids[i], half ? 2 : 4);
        }
        seek[isa](&w, &ahead);
        for (size_t i = 0; i < ahead.n; i++)
            assert_true(memcmp(ahead.key[i], b.key[i], 16) == 0 && ahead.at[i][0] == b.at[i][0]);
        for (size_t i = 0, at = 0; i < pieces; i++) {
            size_t count = ids_of(exact + cuts[i], cuts[i + 1] - cuts[i], ids), width = round & 64 ? 2 : 4;
            for (size_t j = 0; j < count; j++, at += width)
                assert_memory_equal(out + at, &ids[j], width);
        }
        free(text);
        free(exact);
    }
    word_table_free(&w);
}

/* ---- files ---- */

static int open_text(const char *json, struct err *e)
{
    struct tokenizer *t;
    int rc = tokenizer_open_json(&t, "mem", span_of(json), NULL, e);

    if (rc == 0)
        tokenizer_close(t);
    return rc;
}

/* A vocabulary as rows: 1; 0: it has to be a tree; or an error of its JSON. */
static int read_rows(struct vocab *v, struct span json)
{
    struct tokenizer t = {0};
    struct json_scanner *s = json_scanner_new();
    struct arena a = {0};
    struct node *root;
    struct err e;
    int rc = node_parse_json_rows(&a, s, json, NULL, &root, &e);

    if (rc == 0)
        rc = root->type == NODE_ROWS && format_read_vocab(&t, root, &e) == 0;
    *v = t.vocab;
    arena_free(&a);
    json_scanner_free(s);
    return rc;
}

/* What is usual is read as it stands there; of everything else a tree is made. */
static void usual_vocabularies_are_told_from_others(void **state)
{
    static const char *const trees[] = {
        "[]", "{}", "{\"a\":01}", "{\"a\":-1}", "{\"a\":-0}", "{\"a\":1.0}", "{\"a\":1e0}", "{\"a\":\"0\"}",
        "{\"a\":0,\"b\":1x}", "{\"\\u00\":0}", "{\"\\u00g0\":0}", "{\"\\x\":0}", "{\"\\ud800\":0}", "{\"a\":0,\"a\":1}",
        "{\"a\":0,\"\\u0061\":1}", "{\"a\":0,\"b\":0}", "{\"a\":16777215}", "{\"a\":99999999999}",
        "{\"a\":99999999999999999999}", "{\"a\":0,\"b\":null}",
        "{\"\xE4\xB8\xAD\":0,\"\xC3\xA4\xC2\xB8\xC5\x83\":1}"}; /* two tokens of the same bytes */
    static const char *const wrong[] = {"", "{\"a\":0", "{\"a\":0}x", "{\"a\":0,}", "{\"a\":}", "{\"a\" 0}", "{\"a:0}",
                                        "{\"a\\\":0}",
                                        "{\"\xC4\":0}", "{\"\x01\":0}", "{\"a\":0 1}", "{\"a\"x:0}", "{\"a\":0]"};
    static const char usual[] = " {\"a\" : 3,\n\t\"\\u0120b\\\"\\\\\":0,\"\xC4\xA0\xC3\xA9\": 7 , \"\\u010A\\/\":1,"
                                "\"a b\": 5, \"\xE4\xB8\xAD\":6}\r\n";
    static const struct {
        uint32_t id;
        const char *text;
    } want[] = {{3, "a"}, {0, " b\"\\"}, {7, " \xE9"}, {1, "\n/"}, {5, "a b"}, {6, "\xE4\xB8\xAD"}};
    struct vocab v;

    (void)state;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        assert_int_equal(read_rows(&v, span_of(trees[i])) > 0, 0);
        vocab_free(&v);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(read_rows(&v, span_of(wrong[i])) < 0);
        vocab_free(&v);
    }
    assert_int_equal(read_rows(&v, span_of(usual)), 1);
    assert_int_equal(v.n, 8);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_true(span_is(vocab_get(&v, want[i].id), want[i].text));
        assert_int_equal(vocab_find(&v, span_of(want[i].text)), want[i].id);
        assert_int_equal(vocab_is_added(&v, want[i].id), want[i].id == 5 || want[i].id == 6);
    }
    vocab_free(&v);
}

/* ---- added tokens ---- */

enum { ADDED = 600, LETTERS = 5 };

/* The one of n tokens that begins at p, by looking at all of them. */
static const struct added_token *longest_of(const struct added_token *v, size_t n, bool normalized, struct span p)
{
    const struct added_token *found = NULL;

    for (size_t i = 0; i < n; i++)
        if (v[i].normalized == normalized && v[i].text.n <= p.n && memcmp(v[i].text.p, p.p, v[i].text.n) == 0 &&
            (!found || v[i].text.n > found->text.n))
            found = &v[i];
    return found;
}

static void added_tokens_are_found_as_by_looking_at_each(void **state)
{
    static const uint32_t counts[] = {1, 3, 20, ADDED};
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct added a = {0};
        const struct added_token *list, *first;
        char text[2000];
        size_t n;
        for (uint32_t i = 0; i < counts[k]; i++) {
            char token[8];
            struct added_token x = {.text = {token, 1 + below(i % 8 ? 7 : 2)}, .id = 70000 * i, .normalized = below(2)};
            for (size_t b = 0; b < x.text.n; b++)
                token[b] = "<\xE2tab"[below(LETTERS)];
            assert_int_equal(added_add(&a, &x, &e), 0);
        }
        list = added_list(&a, &n);
        assert_int_equal(n, counts[k]);
        for (size_t b = 0; b < sizeof text; b++)
            text[b] = "<\xE2tab    "[below(counts[k] < 20 ? 10 : LETTERS + 1)];
        for (int normalized = 0; normalized < 2; normalized++) {
            struct added_match m = {0};
            for (size_t at = 0; at < sizeof text; at++) {
                struct span rest = {text + at, sizeof text - at};
                if (!(first = longest_of(list, n, normalized, rest)))
                    continue;
                assert_true(added_find(&a, normalized, (struct span){text, sizeof text}, m.next, m.next, &m));
                assert_int_equal(m.begin, at);
                assert_ptr_equal(m.token, first);
                at += first->text.n - 1;
            }
            assert_false(added_find(&a, normalized, (struct span){text, sizeof text}, m.next, m.next, &m));
        }
        for (uint32_t i = 0; i < counts[k]; i++) {
            assert_ptr_equal(added_get(&a, 70000 * i), list + i);
            assert_null(added_get(&a, 70000 * i + 1));
        }
        added_free(&a);
    }
}

/* How an added token is found is part of the hash by which an output that was killed knows its tokenizer. */
static void a_hash_tells_tokenizers_apart(void **state)
{
    static const char *const flags[] = {"\"single_word\"", "\"lstrip\"", "\"rstrip\"", "\"normalized\"", "\"special\""};
    enum { N = sizeof flags / sizeof *flags };
    struct tokenizer_hash h[N + 1];
    struct buf json = {0};
    struct tokenizer *t;
    struct err e;

    (void)state;
    for (size_t i = 0; i <= N; i++) {
        buf_clear(&json);
        if (file_read_all("tests/data/tokenizer/gpt2.json", 1 << 20, &json, &e) < 0)
            fail_msg("%s", e.msg);
        if (i < N) { /* the other value: "true " for "false", "null" for "true" */
            char *value = strstr(json.p, flags[i]) + strlen(flags[i]) + 1;
            memcpy(value, *value == 'f' ? "true " : "null", *value == 'f' ? 5 : 4);
        }
        if (tokenizer_open_json(&t, "gpt2.json", buf_span(&json), NULL, &e) < 0)
            fail_msg("%s", e.msg);
        assert_null(t->rules);
        h[i] = tokenizer_hash(t);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(&h[k], &h[i], sizeof h[i]);
        tokenizer_close(t);
    }
    buf_free(&json);
}

static void strange_files_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"", "mem"},
        {"[]", "no JSON object"},
        {"{\"truncation\":{\"max\":1}}", "truncation"},
        {"{\"surprise\":1}", "surprise"},
        {"{\"normalizer\":{\"type\":\"Upcase\"}}", "normalizer.type 'Upcase'"},
        {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"New\"}]}}",
         "normalizer.normalizers[1].type 'New'"},
        {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}", "damaged"},
        {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"}}", "replacement"},
        {"{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "UnicodeScripts"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"new\":1}}", "'new'"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[[:alpha:]]\"},\"behavior\":\"Isolated\"}}",
         "pre_tokenizer.pattern"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a[b[\"},\"behavior\":\"Isolated\"}}",
         "not closed"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Odd\"}}",
         "pre_tokenizer.behavior 'Odd'"},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Odd\"}]}}", "decoder.decoders[0].type 'Odd'"},
        {"{\"model\":{\"type\":\"Odd\"}}", "model.type 'Odd'"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1],[\"b\"]]}}", "model.vocab[1]"},
        {"{\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}", "model.dropout"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "model.merges[0]"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"unk_token\":\"u\",\"merges\":[]}}", "model.unk_token"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"vocab\":{\"a\":-1}}}",
         "'a'"},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(open_text(cases[i][0], &e) < 0);
        if (!strstr(e.msg, cases[i][1])) {
            fprintf(stderr, "case %zu: %s\n", i, e.msg);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_follows_the_definition),
        cmocka_unit_test(ranks_follow_the_definition),
        cmocka_unit_test(merges_wait_for_a_text),
        cmocka_unit_test(ranks_give_the_same_as_their_merges),
        cmocka_unit_test(parts_are_merged_as_the_whole),
        cmocka_unit_test(long_pieces_take_no_longer_than_they_should),
        cmocka_unit_test(words_are_found_or_forgotten_never_mistaken),
        cmocka_unit_test(tables_double_and_keep_what_they_have),
        cmocka_unit_test(threads_share_words),
        cmocka_unit_test(batches_give_what_was_put),
        cmocka_unit_test(usual_vocabularies_are_told_from_others),
        cmocka_unit_test(added_tokens_are_found_as_by_looking_at_each),
        cmocka_unit_test(a_hash_tells_tokenizers_apart),
        cmocka_unit_test(strange_files_are_refused_by_name),
    };

    rng_mt_seed(&rng, 20240229);
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
