/* Words of text with U+2581 for spaces, many symbols joined together, and a byte replaced: against the plain way, on each
 * instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tokenize/bpe_pairs.h"
#include "tokenize/marks.h"
#include "tokenize/steps_find.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

/* ---- words ---- */

static const char *const bits[] = {
    "a", "b", "the", "Mill", "x.y", ".", ",", "(", ")", "();", "'", "1", "23", "\n", "\t", " ", "é", "中国", "\xe2\x96",
    "\xe2\x80\x99", SPACE_MARK, SPACE_MARK, SPACE_MARK SPACE_MARK, SPACE_MARK "a"};

static size_t random_text(uint8_t *p, size_t most)
{
    size_t n = 0, k;

    for (;;) {
        const char *s = bits[below(sizeof bits / sizeof *bits)];
        k = strlen(s);
        if (n + k > most)
            return n;
        memcpy(p + n, s, k);
        n += k;
    }
}

static bool has_mark(const uint8_t *p, size_t n, size_t i)
{
    return i + 3 <= n && memcmp(p + i, SPACE_MARK, 3) == 0;
}

/* Whether a word begins at i > begin of the text in which one begins at `begin`. */
static bool is_cut(const struct word_marks *m, bool at_marks, bool in_ascii, const uint8_t *p, size_t n, size_t begin, size_t i)
{
    if (at_marks && has_mark(p, n, i))
        return !m->crossed[p[i - 1]] && !(i >= begin + 3 && has_mark(p, n, i - 3));
    return in_ascii && p[i - 1] < 0x80 && p[i] < 0x80 && !(m->joined[p[i - 1]] & m->kind[p[i]]);
}

static void words_end_where_no_token_joins(void **state)
{
    typedef size_t ends_fn(const struct word_marks *m, const uint8_t *p, size_t n, size_t *at, uint32_t *ends, size_t max);
    static ends_fn *const variants[] = ISA_EACH(word_marks_ends);
    enum { MOST = 700 };

    (void)state;
    for (int round = 0; round < 4000; round++) {
        bool at_marks = below(4), in_ascii = below(4);
        struct word_marks m = {.cuts = false};
        struct vocab v = {0};
        struct err e;
        uint8_t text[MOST];
        uint32_t ends[MOST + 1], want[MOST + 1];
        size_t n, k = 0, begin;
        for (uint32_t id = 0, tokens = below(12); id < tokens; id++) {
            uint8_t token[12];
            size_t size = random_text(token, sizeof token);
            if (size && vocab_find(&v, (struct span){(const char *)token, size}) < 0)
                assert_int_equal(vocab_add(&v, id, (struct span){(const char *)token, size}, &e), 0);
        }
        word_marks_find(&m, &v, at_marks, in_ascii);
        assert_int_equal(m.cuts, at_marks || in_ascii);
        while ((n = random_text(text, 1 + below(MOST))) == 0)
            ;
        begin = below(3) ? 0 : below((uint32_t)n);
        for (size_t i = begin + 1; i < n; i++)
            if (is_cut(&m, at_marks, in_ascii, text, n, begin, i))
                want[k++] = (uint32_t)i;
        want[k++] = (uint32_t)n;
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            size_t got = 0, at = begin, max = below(2) ? MOST + 1 : 1 + below(200);
            while (at < n) {
                size_t some = variants[isa](&m, text, n, &at, ends + got, got + max > MOST + 1 ? MOST + 1 - got : max);
                assert_true(some > 0 && at == ends[got + some - 1]);
                got += some;
            }
            assert_int_equal(got, k);
            assert_memory_equal(ends, want, k * sizeof *ends);
        }
        vocab_free(&v);
    }
}

/* ---- symbols ---- */

/* Pairs of numbers below 40; dense: their ids are their ranks and 20. */
static void random_pairs(struct bpe *b, bool dense)
{
    struct vocab none = {0};
    struct err e;

    assert_int_equal(bpe_begin(b, 0, &e), 0);
    for (uint32_t rank = 0; rank < 60; rank++) {
        uint32_t most = dense ? 20 + rank : 40;
        assert_int_equal(bpe_add_merge(b, below(most), below(most), rank, dense ? 20 + rank : below(200), &e), 0);
    }
    assert_int_equal(bpe_finish(b, &none, &e), 0);
}

static void symbols_are_joined_as_one_by_one(void **state)
{
    enum { WORDS = 40 };

    (void)state;
    for (int round = 0; round < 600; round++) {
        static uint32_t ids[WORDS][BPE_SHORT], want[WORDS][BPE_SHORT];
        struct bpe_scratch scratch = {0};
        struct bpe_word w[WORDS];
        struct bpe b = {0};
        int64_t left[WORDS];

        random_pairs(&b, round % 2);
        for (size_t i = 0; i < WORDS; i++) {
            w[i] = (struct bpe_word){.ids = ids[i], .n = BPE_SHORT, .count = below(BPE_SHORT + 1)};
            for (uint32_t k = 0; k < w[i].count; k++)
                ids[i][k] = below(30) ? below(40) : 1u << 30 | below(40);
            memcpy(want[i], ids[i], sizeof ids[i]);
            left[i] = bpe_merge(&b, &scratch, want[i], w[i].count);
        }
        bpe_merge_words(&b, w, WORDS);
        for (size_t i = 0; i < WORDS; i++) {
            assert_int_equal(w[i].count, left[i]);
            assert_memory_equal(ids[i], want[i], (size_t)left[i] * sizeof *want[i]);
        }
        bpe_scratch_free(&scratch);
        bpe_free(&b);
    }
}

/* ---- bytes ---- */

static void a_byte_is_replaced_everywhere(void **state)
{
    typedef size_t count_fn(char what, struct span text);
    typedef void replace_fn(char what, struct span with, struct span text, char *o);
    static count_fn *const counts[] = ISA_EACH(bytes_count);
    static replace_fn *const replaces[] = ISA_EACH(bytes_replace);
    enum { MOST = 400 };

    (void)state;
    for (int round = 0; round < 3000; round++) {
        char text[MOST], want[MOST * REPLACE_WITH], got[MOST * REPLACE_WITH + REPLACE_SLACK];
        struct span with = {"12345678", below(REPLACE_WITH + 1)};
        size_t n = below(MOST), hits = 0, size = 0;
        uint32_t every = 1 + below(40);
        for (size_t i = 0; i < n; i++) {
            bool hit = !below(every);
            text[i] = hit ? ' ' : (char)(' ' + 1 + below(200));
            hits += hit;
            memcpy(want + size, hit ? with.p : text + i, hit ? with.n : 1);
            size += hit ? with.n : 1;
        }
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            assert_int_equal(counts[isa](' ', (struct span){text, n}), hits);
            memset(got, 0, sizeof got);
            memset(got + size + REPLACE_SLACK, 'x', sizeof got - size - REPLACE_SLACK);
            replaces[isa](' ', with, (struct span){text, n}, got);
            assert_memory_equal(got, want, size);
            for (size_t i = size + REPLACE_SLACK; i < sizeof got; i++)
                assert_int_equal(got[i], 'x');
        }
    }
}

static int seed(void **state)
{
    (void)state;
    rng_mt_seed(&rng, 20261127);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_end_where_no_token_joins),
        cmocka_unit_test(symbols_are_joined_as_one_by_one),
        cmocka_unit_test(a_byte_is_replaced_everywhere),
    };

    return cmocka_run_group_tests(tests, seed, NULL);
}
