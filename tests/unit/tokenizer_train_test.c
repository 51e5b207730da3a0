/* Training: merges against their definition, counts beyond 32 bits, tallies in memory and on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tokenize/merges.h"
#include "tokenize/tally.h"
#include "tokenize/word_file.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

/* ---- the definition: count all pairs, join the best everywhere, again ---- */

enum { WORDS = 12, LETTERS = 24, TOKENS = 64, FIRST_ID = 3, ALL = TOKENS + FIRST_ID };

struct plain {
    uint32_t word[WORDS][LETTERS];
    uint32_t length[WORDS];
    uint64_t count[WORDS];
    uint32_t bytes[ALL]; /* of a token */
    uint32_t words;
    bool refuses; /* some pairs are not to be joined */
};

static bool is_refused(uint32_t left, uint32_t right)
{
    return (left + 2 * right) % 5 == 0;
}

/* The best pair; its count, 0 if there is none that may be joined. */
static uint64_t best_pair(const struct plain *p, const struct merges_rules *r, uint32_t *left, uint32_t *right)
{
    static uint64_t count[ALL][ALL], place[ALL][ALL];
    uint64_t best = 0, at = 0;

    memset(count, 0, sizeof count);
    for (uint32_t w = 0; w < p->words; w++) {
        for (uint32_t i = 0; i + 1 < p->length[w]; i++, at++) {
            uint32_t a = p->word[w][i], b = p->word[w][i + 1];
            if (r->max_length && p->bytes[a] + p->bytes[b] >= r->max_length && p->bytes[a] + p->bytes[b] > 2)
                continue;
            if (p->refuses && is_refused(a, b))
                continue;
            place[a][b] = count[a][b] ? place[a][b] : at;
            count[a][b] += p->count[w];
        }
    }
    for (uint32_t a = 0; a < ALL; a++) {
        for (uint32_t b = 0; b < ALL; b++) {
            bool first = r->first_place && best && place[a][b] < place[*left][*right];
            if (count[a][b] < (r->min_frequency > 1 ? r->min_frequency : 1) || count[a][b] < best)
                continue;
            if (count[a][b] == best && !first)
                continue;
            best = count[a][b];
            *left = a;
            *right = b;
        }
    }
    return best;
}

static void join_plainly(struct plain *p, uint32_t left, uint32_t right, uint32_t id)
{
    for (uint32_t w = 0; w < p->words; w++) {
        uint32_t to = 0;
        for (uint32_t i = 0; i < p->length[w]; i++) {
            bool here = p->word[w][i] == left && i + 1 < p->length[w] && p->word[w][i + 1] == right;
            p->word[w][to++] = here ? id : p->word[w][i];
            i += here;
        }
        p->length[w] = to;
    }
    p->bytes[id] = p->bytes[left] + p->bytes[right];
}

static void make_words(struct plain *p)
{
    uint32_t letters = 1 + below(FIRST_ID), high = below(2);

    memset(p, 0, sizeof *p);
    p->words = 1 + below(WORDS);
    for (uint32_t i = 0; i < ALL; i++)
        p->bytes[i] = 1;
    for (uint32_t w = 0; w < p->words; w++) {
        p->length[w] = 1 + below(LETTERS);
        p->count[w] = 1 + below(3) + (high ? (uint64_t)below(3) << 40 : 0);
        for (uint32_t i = 0; i < p->length[w]; i++)
            p->word[w][i] = below(letters);
    }
}

/* ---- the real thing on the same words ---- */

static void make_cells(const struct plain *p, struct merges_words *m)
{
    uint64_t at = 1;

    m->cells = malloc(WORDS * (LETTERS + 1) * sizeof *m->cells + 4);
    m->word = calloc(WORDS * (LETTERS + 1) + 1, sizeof *m->word);
    m->count = malloc(WORDS * sizeof *m->count);
    m->lists = malloc((WORDS * (LETTERS + 1) + 1) * 2 * sizeof *m->lists);
    assert_true(m->cells && m->word && m->count && m->lists);
    m->cells[0] = MERGES_END;
    for (uint32_t w = 0; w < p->words; w++) {
        m->count[w] = p->count[w];
        for (uint32_t i = 0; i <= p->length[w]; i++, at++) {
            m->word[at] = w;
            m->cells[at] = i < p->length[w] ? p->word[w][i] : MERGES_END;
        }
    }
    m->n_cells = at;
    m->max_listed = at * (1 + below(2));
    m->n_words = p->words;
    m->n_counters = below(2) ? 0 : 1 + below((uint32_t)at);
    m->counters = malloc(at * sizeof *m->counters);
    assert_non_null(m->counters);
}

/* The same words in a file, with room for few of them. */
static void make_file(const struct plain *p, struct word_file *f, struct merges_words *m)
{
    struct err e;

    assert_int_equal(word_file_open(f, NULL, &e), 0);
    for (uint32_t w = 0; w < p->words; w++)
        assert_int_equal(word_file_put(f, p->word[w], p->length[w], p->count[w], &e), 0);
    assert_int_equal(word_file_end(f, &e), 0);
    m->max_cells = 2 + below(WORDS * LETTERS);
    m->max_words = 1 + below(WORDS);
    m->runs = malloc(m->max_cells * sizeof *m->runs);
    m->first = malloc(WORDS * sizeof *m->first);
    m->now = malloc(WORDS * sizeof *m->now);
    m->slots = malloc(merges_slots(m->max_words) * sizeof *m->slots);
    assert_true(m->runs && m->first && m->now && m->slots);
    m->max_listed = m->max_cells * (1 + below(2));
    m->n_cells = m->n_words = 0;
}

static void free_cells(struct merges_words *m)
{
    free(m->runs);
    free(m->first);
    free(m->now);
    free(m->slots);
    free(m->cells);
    free(m->word);
    free(m->count);
    free(m->lists);
    free(m->counters);
}

static int next_id(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e)
{
    (void)left;
    (void)right;
    (void)e;
    *id = (*(uint32_t *)state)++;
    return 0;
}

static int next_id_or_none(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e)
{
    *id = MERGES_END;
    return is_refused(left, right) ? 0 : next_id(state, left, right, id, e);
}

static void merges_follow_their_definition(void **state)
{
    static struct plain p;
    uint32_t joined = 0;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        uint32_t tokens = FIRST_ID, left = 0, right = 0;
        struct merges_rules r = {.target = ALL, .join = next_id, .state = &tokens, .first_place = below(2),
                                 .min_frequency = below(4), .max_length = below(3) ? 0 : 2 + below(12),
                                 .pairs = below(2) ? 1 + below(4) : 1 << 20};
        struct merges_words m = {0};
        struct word_file f;
        bool file = below(2);
        struct buf found = {0};
        struct err e;
        const struct merge *v;

        make_words(&p);
        p.refuses = below(3) == 0;
        if (p.refuses)
            r.join = next_id_or_none;
        make_cells(&p, &m);
        if (file)
            make_file(&p, &f, &m);
        assert_int_equal(merges_find(&m, file ? &f : NULL, &r, &tokens, &found, &e), 0);
        v = (const struct merge *)(const void *)found.p;
        for (size_t i = 0; i < found.n / sizeof *v; i++, joined++) {
            assert_true(best_pair(&p, &r, &left, &right) > 0);
            if (v[i].left != left || v[i].right != right)
                fail_msg("round %d, merge %zu: %u %u, not %u %u", round, i, v[i].left, v[i].right, left, right);
            join_plainly(&p, left, right, v[i].id);
        }
        assert_true(tokens == ALL || best_pair(&p, &r, &left, &right) == 0);
        free_cells(&m);
        if (file)
            word_file_close(&f);
        buf_free(&found);
    }
    assert_true(joined > 6000);
}

/* A piece of 1 MB: by the square of its length this would not end. */
static void a_long_piece_is_joined(void **state)
{
    enum { N = 1 << 20 };
    struct merges_words m = {.cells = malloc((N + 2) * 4), .word = calloc(N + 2, 4), .count = malloc(8),
                             .lists = malloc((N + 2) * 8ULL), .max_listed = 2 * (N + 2), .n_cells = N + 2, .n_words = 1};
    uint32_t tokens = 26;
    struct merges_rules r = {.target = 5000, .join = next_id, .state = &tokens, .pairs = 1 << 20};
    struct buf found = {0};
    struct err e;

    (void)state;
    assert_true(m.cells && m.word && m.count && m.lists);
    for (uint32_t i = 1; i <= N; i++)
        m.cells[i] = below(26);
    m.cells[0] = m.cells[N + 1] = MERGES_END;
    m.count[0] = 1ULL << 35;
    assert_int_equal(merges_find(&m, NULL, &r, &tokens, &found, &e), 0);
    assert_int_equal(tokens, 5000);
    free_cells(&m);
    buf_free(&found);
}

/* ---- tallies ---- */

static struct span word_of(uint32_t i, char text[40])
{
    int n = snprintf(text, 40, i % 3 ? "%u" : "a long word with number %u", i);

    return (struct span){text, (size_t)n};
}

/* Each of n words was counted three times 2^40, at 7 * its number first. */
static void check_words(const struct tally *t, uint64_t *words)
{
    for (const struct tally_entry *x = NULL; (x = tally_next(t, x));) {
        struct span s = tally_word(t, x);
        char text[40];
        assert_int_equal(x->count, 3ULL << 40);
        assert_int_equal(x->place % 7, 0);
        assert_true(span_eq(s, word_of((uint32_t)(x->place / 7), text)));
        ++*words;
    }
}

static void tallies_count(void **state)
{
    enum { N = 100000 };
    struct tally t = {0};
    uint64_t words = 0;
    char text[40];

    (void)state;
    for (uint32_t i = 0; i < 3 * N; i++)
        assert_int_equal(tally_add(&t, word_of(i % N, text), 1ULL << 40, 7ULL * i), 0);
    assert_int_equal(t.n, N);
    check_words(&t, &words);
    assert_int_equal(words, N);
    tally_free(&t);
}

static void tallies_come_together_on_disk(void **state)
{
    enum { N = 30000 };
    struct tally t = {0};
    struct tally_disk d;
    uint64_t words = 0;
    char text[40];
    struct err e;

    (void)state;
    assert_int_equal(tally_disk_open(&d, NULL, &e), 0);
    for (uint32_t i = 0; i < 3 * N; i++) {
        assert_int_equal(tally_add(&t, word_of(i % N, text), 1ULL << 40, 7ULL * i), 0);
        if (i % 7777 == 0)
            assert_int_equal(tally_disk_put(&d, &t, &e), 0);
    }
    assert_int_equal(tally_disk_put(&d, &t, &e), 0);
    for (int part = 0; part < TALLY_PARTS; part++) {
        tally_clear(&t);
        assert_int_equal(tally_disk_get(&d, part, &t, &e), 0);
        check_words(&t, &words);
    }
    assert_int_equal(words, N);
    tally_free(&t);
    tally_disk_close(&d);
}

static void texts_are_tallied_word_by_word(void **state)
{
    const char *text = "a b a bb bb a";
    const uint32_t ends[] = {1, 3, 5, 8, 11, 13};
    struct tally t = {0};
    uint64_t n = 0;

    (void)state;
    assert_int_equal(tally_text(&t, (const uint8_t *)text, 0, ends, 6, 100), 0);
    for (const struct tally_entry *x = NULL; (x = tally_next(&t, x)); n++) {
        struct span s = tally_word(&t, x);
        uint64_t count = span_is(s, " a") || span_is(s, " bb") ? 2 : 1;
        assert_int_equal(x->count, count);
        assert_int_equal(x->place, span_is(s, "a") ? 100 : span_is(s, " b") ? 101 : span_is(s, " a") ? 102 : 103);
    }
    assert_int_equal(n, 4);
    tally_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_their_definition),
        cmocka_unit_test(a_long_piece_is_joined),
        cmocka_unit_test(tallies_count),
        cmocka_unit_test(tallies_come_together_on_disk),
        cmocka_unit_test(texts_are_tallied_word_by_word),
    };

    rng_mt_seed(&rng, 20240301);
    return cmocka_run_group_tests_name("tokenizer_train", tests, NULL, NULL);
}
