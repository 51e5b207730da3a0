/* Training of Unigram: first pieces and their lattice against their definition; the second best way against all ways. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tokenize/script.h"
#include "tokenize/unigram_second.h"
#include "tokenize/unigram_train.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

enum { WORDS = 6, LETTERS = 9 };

/* Random words of a, b and c behind a space, some of which end texts: as word_counts gives them. */
struct words {
    char text[WORDS][LETTERS + 8];
    size_t n[WORDS];
    uint64_t within[WORDS], at_end[WORDS];
};

static void make_words(struct words *w, struct word_counts *counts, struct train_char chars[4])
{
    static const char space[] = "\xe2\x96\x81";

    memset(w, 0, sizeof *w);
    memset(counts, 0, sizeof *counts);
    chars[0] = (struct train_char){1, 0x2581};
    for (uint32_t i = 1; i < 4; i++)
        chars[i] = (struct train_char){1, 'a' + i - 1};
    for (int i = 0; i < WORDS; i++) {
        memcpy(w->text[i], space, 3);
        w->text[i][3] = (char)('a' + i / 3);
        w->text[i][4] = (char)('a' + i % 3); /* no word twice */
        w->n[i] = 5;
        for (uint32_t k = below(LETTERS - 2); k > 0; k--)
            w->text[i][w->n[i]++] = (char)('a' + below(3));
        w->within[i] = below(3);
        w->at_end[i] = w->within[i] ? below(3) : 1;
        if (w->within[i])
            assert_int_equal(tally_add(&counts->tally, (struct span){w->text[i], w->n[i]}, w->within[i], 0), 0);
        if (w->at_end[i])
            assert_int_equal(tally_add(&counts->tally, (struct span){w->text[i], w->n[i] + 1}, w->at_end[i], 0), 0);
    }
}

/* How often a string is in the words, and whether different characters follow it. */
static uint64_t count_string(const struct words *w, struct span s, bool *branches)
{
    uint64_t n = 0;
    bool next[256] = {false};
    int different = 0;

    for (int i = 0; i < WORDS; i++)
        for (size_t at = 0; at + s.n <= w->n[i]; at++)
            if (memcmp(w->text[i] + at, s.p, s.n) == 0) {
                bool last = at + s.n == w->n[i];
                n += w->within[i] + w->at_end[i];
                next[(unsigned char)w->text[i][at + s.n]] |= !last || w->at_end[i];
                next['_'] |= last && w->within[i];
            }
    for (int i = 0; i < 256; i++)
        different += next[i];
    *branches = different > 1;
    return n;
}

static size_t chars_of(struct span s)
{
    return s.n - (s.p[0] == '\xe2' ? 2 : 0);
}

/* Every string of two characters and more that different characters follow is a piece, with the score of its count, and no
 * other is; a character of a word has the pieces that begin there. */
static void check_seeds(const struct words *w, const struct unigram_train *u)
{
    float total = 0;

    for (uint32_t i = 0; i < u->n; i++) {
        struct span s = unigram_text_of(u, &u->pieces[i]);
        bool branches;
        uint64_t n = count_string(w, s, &branches);
        assert_int_equal(u->pieces[i].chars, chars_of(s));
        assert_true(n > 0 && (i < 4 || branches));
        total += i < 4 ? 1 : (float)(n * chars_of(s));
    }
    for (uint32_t i = 4; i < u->n; i++) {
        struct span s = unigram_text_of(u, &u->pieces[i]);
        bool branches;
        float count = (float)(count_string(w, s, &branches) * chars_of(s));
        assert_true(fabsf(u->pieces[i].score - logf(count / total)) < 1e-4f);
    }
}

static void check_lattice(const struct unigram_train *u)
{
    for (uint32_t w = 0; w < u->n_words; w++)
        for (uint32_t k = u->starts[w], at = 1; k < u->starts[w + 1]; k++) {
            uint32_t id = u->nodes[k] & ~UNIGRAM_LAST;
            assert_true(id < u->n);
            assert_int_equal(u->pieces[id].chars == 1, at); /* the character is first */
            assert_true(at || unigram_chars(u, id) > unigram_chars(u, u->nodes[k - 1] & ~UNIGRAM_LAST));
            at = u->nodes[k] >> 31;
        }
}

/* All strings of the words that are to be pieces are. */
static void check_all_found(const struct words *w, const struct unigram_train *u)
{
    for (int i = 0; i < WORDS; i++)
        for (size_t from = 0; from < w->n[i]; from += from ? 1 : 3)
            for (size_t to = from ? from + 2 : 4; to <= w->n[i]; to++) {
                struct span s = {w->text[i] + from, to - from};
                bool branches, found = false;
                uint64_t n = count_string(w, s, &branches);
                for (uint32_t k = 4; k < u->n; k++)
                    found |= span_eq(unigram_text_of(u, &u->pieces[k]), s);
                assert_true(n > 0);
                assert_int_equal(found, branches);
            }
}

/* ---- the second best way ---- */

/* The best and the second best score of all ways from a place of a piece's text to its end. */
static void all_ways(const struct unigram_train *u, uint32_t id, uint32_t node, unsigned left, float score, float best[2])
{
    if (!left) {
        if (score > best[0]) {
            best[1] = best[0];
            best[0] = score;
        } else if (score > best[1]) {
            best[1] = score;
        }
        return;
    }
    for (;; node++) {
        uint32_t x = u->nodes[node] & ~UNIGRAM_LAST, to = node, chars = unigram_chars(u, x);
        for (unsigned passed = 0; chars <= left && passed < chars; to++) /* to the place behind it */
            passed += u->nodes[to] >> 31;
        if (chars <= left)
            all_ways(u, id, to, left - chars, score + unigram_score(u, x), best);
        if (u->nodes[node] & UNIGRAM_LAST)
            return;
    }
}

static void check_second(const struct unigram_train *u, struct unigram_second *s)
{
    for (uint32_t id = 0; id < u->n; id++) {
        float best[2] = {-INFINITY, -INFINITY}, sum = 0;
        int n = unigram_second_best(u, id, s);
        all_ways(u, id, u->pieces[id].at, u->pieces[id].chars, 0, best);
        for (int i = 0; i < n; i++) /* the first piece may stand for an unknown character */
            sum += s->best[i] ? u->pieces[s->best[i]].score : -INFINITY;
        if (n < 0)
            assert_true(best[0] + 1e-4f > u->pieces[id].score);
        else
            assert_true(fabsf(best[0] - u->pieces[id].score) < 1e-4f);
        if (n == 0)
            assert_true(best[1] == -INFINITY);
        if (n > 0 && sum > -INFINITY)
            assert_true(fabsf(best[1] - sum) < 1e-4f);
    }
}

static void test_against_definition(void **state)
{
    struct unigram_second *s = malloc(sizeof *s);

    (void)state;
    assert_non_null(s);
    if (!unigram_seed_can())
        skip();
    for (uint32_t seed = 0; seed < 300; seed++) {
        struct unigram_train u = {.memory = 1 << 30, .threads = 1 + (int)below(3)};
        struct word_counts counts;
        struct train_char chars[4];
        struct words w;
        struct err e;
        rng_mt_seed(&rng, seed);
        make_words(&w, &counts, chars);
        assert_int_equal(unigram_words_make(&u, &counts, chars, 4, &e), 0);
        assert_int_equal(u.n_words, WORDS);
        assert_int_equal(unigram_seed(&u, chars, 4, &e), 0);
        check_seeds(&w, &u);
        check_lattice(&u);
        check_all_found(&w, &u);
        check_second(&u, s);
        assert_int_equal(unigram_em(&u, &e), 0);
        assert_int_equal(unigram_prune(&u, 6, &e), 0);
        for (uint32_t i = 0; i < u.n; i++) /* each still knows a place of its own */
            assert_true(u.pieces[i].at < u.n_nodes);
        check_second(&u, s);
        unigram_train_free(&u);
        tally_free(&counts.tally);
    }
    free(s);
}

static void test_scripts(void **state)
{
    (void)state;
    assert_int_equal(script_of(' '), SCRIPT_COMMON);
    assert_int_equal(script_of('7'), SCRIPT_COMMON);
    assert_int_equal(script_of(0x301), SCRIPT_INHERITED);
    assert_int_equal(script_of('a'), script_of(0xE9));
    assert_int_not_equal(script_of('a'), script_of(0x430));
    assert_int_equal(script_of(0x3042), script_of(0x6F22));
    assert_int_equal(script_of(0x30FC), script_of(0x30AB));
    assert_int_equal(script_of(0x10FFFF), SCRIPT_COMMON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_scripts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
