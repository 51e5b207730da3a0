/* Unigram to the last tie: hashes of the ids of 20,000 strings, as tests/record/tokenizer_unigram.py recorded them from
 * SentencePiece 0.2.3 and 0.2.1 and from Hugging Face's tokenizers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/node.h"
#include "tokenize/model.h"

enum { STRINGS = 20000, GROUP = 100 };

static uint64_t state;

static uint32_t number(uint32_t n)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)((state >> 33) % n);
}

/* The next string, as the record's strings() makes it. */
static void make_string(struct buf *to, const struct node *const *symbols, uint32_t n)
{
    static const uint32_t runs[] = {1, 2, 3, 7, 20};
    uint32_t kind = number(3), parts;

    buf_clear(to);
    parts = kind ? 0 : 1;
    if (kind)
        parts = 1 + number(kind == 1 ? 80 : 12);
    while (parts--) {
        struct span s = symbols[number(n)]->str;
        for (uint32_t times = kind == 0 ? 1 + number(120) : kind == 1 ? 1 : runs[number(5)]; times--;)
            buf_put_span(to, s);
    }
}

static uint64_t hash_ids(uint64_t h, const struct buf *ids)
{
    for (size_t i = 0; i <= ids->n / 4; i++) {
        uint32_t x = i < ids->n / 4 ? ((const uint32_t *)(const void *)ids->p)[i] : UINT32_MAX;
        h = (h ^ x) * 0x100000001B3;
    }
    return h;
}

/* The groups of strings whose ids are not those recorded. */
static int count_bad(const struct tokenizer *t, const struct node *first, const struct node *hashes)
{
    const struct node *symbols[512];
    const struct node *want = hashes->child;
    struct encoder *enc = encoder_new(t);
    struct buf text = {0}, ids = {0};
    uint64_t h = 0;
    uint32_t n = 0;
    int bad = 0;
    struct err e;

    for (const struct node *x = first->child; x && n < 512; x = x->next)
        symbols[n++] = x;
    state = 1;
    for (int i = 0; i < STRINGS; i++) {
        char hex[17];
        make_string(&text, symbols, n);
        buf_clear(&ids);
        if (encoder_encode(enc, buf_span(&text), 0, 4, &ids, &e) < 0)
            fail_msg("%s", e.msg);
        h = hash_ids(i % GROUP ? h : 0xCBF29CE484222325, &ids);
        if (i % GROUP != GROUP - 1)
            continue;
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)h);
        assert_non_null(want);
        bad += strcmp(hex, want->str.p) != 0;
        want = want->next;
    }
    assert_null(want);
    encoder_free(enc);
    buf_free(&text);
    buf_free(&ids);
    return bad;
}

/* The tokenizer of a line; of a line without one, that of the same name before it. */
static struct tokenizer *open_line(const struct node *line, struct node *const *lines, int n)
{
    const char *version = node_str(line, "sentencepiece"), *name = node_str(line, "name");
    struct tokenizer_settings s = {.sentencepiece = version && strcmp(version, "0.2.1") == 0};
    const struct node *model = node_get(line, "model"), *json = node_get(line, "json");
    struct tokenizer *t;
    struct buf bytes = {0};
    struct err e;
    int rc;

    if (json) {
        rc = tokenizer_open_json(&t, name, json->str, NULL, &e);
    } else {
        for (int i = 1; i < n && !model; i++)
            if (strcmp(node_str(lines[i], "name"), name) == 0)
                model = node_get(lines[i], "model");
        assert_non_null(model);
        assert_true(base64_decode(model->str, &bytes));
        rc = tokenizer_open_sentencepiece(&t, name, buf_span(&bytes), &s, &e);
    }
    if (rc < 0)
        fail_msg("%s", e.msg);
    buf_free(&bytes);
    return t;
}

static void every_tie_is_broken_as_recorded(void **unused)
{
    struct node *lines[16];
    struct buf file = {0};
    struct arena a = {0};
    struct err e;
    int n = 0, older = 0;

    (void)unused;
    if (file_read_all("tests/data/tokenizer/unigram.jsonl.zst", 1 << 26, &file, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t at = 0; at < file.n && n < 16;) {
        const char *nl = memchr(file.p + at, '\n', file.n - at);
        if (node_parse_json(&a, (struct span){file.p + at, (size_t)(nl - file.p) - at}, &lines[n++], &e) < 0)
            fail_msg("%s", e.msg);
        at = (size_t)(nl + 1 - file.p);
    }
    for (int i = 1; i < n; i++) {
        struct tokenizer *t = open_line(lines[i], lines, n);
        const char *version = node_str(lines[i], "sentencepiece");
        int bad = count_bad(t, node_get(lines[0], "symbols"), node_get(lines[i], "hashes"));
        if (version)
            assert_string_equal(tokenizer_facts(t).sentencepiece, version);
        else
            assert_null(tokenizer_facts(t).sentencepiece);
        older += version && strcmp(version, "0.2.1") == 0;
        tokenizer_close(t);
        if (bad)
            fail_msg("%s %s: %d of %d groups of strings differ", node_str(lines[i], "name"),
                     version ? version : "", bad, STRINGS / GROUP);
    }
    assert_int_equal(n, 11);
    assert_int_equal(older, 3);
    buf_free(&file);
    arena_free(&a);
}

/* Scores are read as serde_json reads them, and beyond what a double holds they are refused. */
static void scores_without_bounds_are_refused(void **unused)
{
    static const struct {
        const char *score, *message;
    } cases[] = {{"-1e308", NULL}, {"-1e309", "finite"}, {"-12345678901234567890123456789012345678901234567890.5e-400", NULL},
                 {"1e99999999999999999999", "finite"}, {"0e99999999999999999999", NULL}, {"0.0e-99999999999999999999", NULL}};

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf json = {0};
        struct tokenizer *t = NULL;
        struct err e;
        int rc;
        buf_printf(&json, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",%s]]}}", cases[i].score);
        rc = tokenizer_open_json(&t, "json", buf_span(&json), NULL, &e);
        if (cases[i].message) {
            assert_int_equal(rc, ERR_FORMAT);
            assert_non_null(strstr(e.msg, cases[i].message));
        } else {
            if (rc < 0)
                fail_msg("%s: %s", cases[i].score, e.msg);
            tokenizer_close(t);
        }
        buf_free(&json);
    }
}

enum { WORDS = 120, TEXT_WORDS = 40000, PIECES = 1 + 3 + 9 + 27 };

static void add_piece(struct unigram *u, struct vocab *v, uint32_t id, struct span s, float score)
{
    struct err e;

    if (vocab_add(v, id, s, &e) < 0 || unigram_add(u, id, s, score, PIECES, &e) < 0)
        fail_msg("%s", e.msg);
}

/* U+2581 and all strings of one to three of a, b, c, whose scores are those of their letters but for little, or nothing, so that
 * all ways are nearly or exactly equal, and many scores lie half-way between two numbers that a sum can be. */
static void make_near_ties(struct unigram *u, struct vocab *v)
{
    static const float letters[] = {-3.125F, -3.25F, -3.6875F};
    uint32_t id = 0;
    struct err e;

    add_piece(u, v, id++, span_of(SPACE_MARK), -2);
    for (uint32_t size = 1, all = 3; size <= 3; size++, all *= 3)
        for (uint32_t k = 0; k < all; k++) {
            char text[3];
            float score = 0;
            for (uint32_t i = 0, left = k; i < size; i++, left /= 3) {
                text[i] = (char)('a' + left % 3);
                score += letters[left % 3];
            }
            if (number(2))
                score += ldexpf((float)number(5) - 2, -8 - (int)number(8));
            add_piece(u, v, id++, (struct span){text, size}, score);
        }
    if (unigram_add_pieces(u, v, &e) < 0)
        fail_msg("%s", e.msg);
    unigram_finish(u, v, 0);
}

/* A text's words come from the table, wherever its sum stands; that is the same as one way through all of it. */
static void known_words_have_the_ids_of_the_whole(void **unused)
{
    (void)unused;
    state = 7;
    for (int round = 0; round < 12; round++) {
        struct unigram u = {.sums = (enum unigram_sums)(round % 3), .unknown = -1, .unknown_score = -20};
        struct unigram_scratch scratch = {0};
        struct word_table table;
        struct vocab v = {0};
        struct buf words[WORDS] = {{0}}, text = {0}, ids = {0}, want = {0};
        struct err e;
        int64_t n;
        make_near_ties(&u, &v);
        for (int i = 0; i < WORDS; i++) {
            buf_puts(&words[i], SPACE_MARK);
            for (uint32_t k = i % 20 ? 1 + number(14) : 70 + number(200); k--;)
                buf_putc(&words[i], (char)('a' + (i % 40 ? number(3) : 0)));
        }
        for (int i = 0; i < TEXT_WORDS; i++)
            buf_put_span(&text, buf_span(&words[number(WORDS)]));
        assert_int_equal(word_table_init(&table, 12), 0);
        assert_int_equal(buf_reserve(&want, (text.n + 1) * 4), 0);
        n = unigram_encode(&u, &scratch, (const uint8_t *)text.p, text.n, (uint32_t *)(void *)want.p);
        assert_true(n > TEXT_WORDS);
        for (int again = 0; again < 2; again++) {
            buf_clear(&ids);
            assert_int_equal(unigram_text(&u, &scratch, &table, buf_span(&text), 4, &ids, &e), 0);
            assert_int_equal(ids.n / 4, n);
            assert_memory_equal(ids.p, want.p, ids.n);
        }
        for (int i = 0; i < WORDS; i++)
            buf_free(&words[i]);
        word_table_free(&table);
        unigram_scratch_free(&scratch);
        unigram_free(&u);
        vocab_free(&v);
        buf_free(&text);
        buf_free(&ids);
        buf_free(&want);
    }
}

/* The ids of 0.23.3: the later of two pieces with one text, by whatever way it is found. */
static void of_twins_the_later_piece_counts(void **unused)
{
    static const char json[] =
        "{\"added_tokens\":[{\"id\":50,\"content\":\"<0x41>\",\"special\":true},{\"id\":51,\"content\":\"q\",\"special\":true}],"
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,"
        "\"vocab\":[[\"u\",-9.0],[\"<0x41>\",-1.0],[\"q\",-1.0],[\"<0x41>\",-2.0],[\"q\",-5.0]]}}";
    static const uint32_t want[] = {3, 3, 4}; /* a byte, and two added tokens */
    struct tokenizer *t;
    struct encoder *enc;
    struct buf ids = {0};
    struct err e;

    (void)unused;
    if (tokenizer_open_json(&t, "twins", span_of(json), NULL, &e) < 0)
        fail_msg("%s", e.msg);
    enc = encoder_new(t);
    assert_non_null(enc);
    assert_int_equal(encoder_encode(enc, span_of("A<0x41>q"), ENCODER_SPECIAL, 4, &ids, &e), 0);
    assert_int_equal(ids.n, sizeof want);
    assert_memory_equal(ids.p, want, sizeof want);
    encoder_free(enc);
    buf_free(&ids);
    tokenizer_close(t);
}

/* Each byte that is no text is a token of its own to the decoder behind, as in 0.23.3. */
static void bytes_that_are_no_text_are_a_token_each(void **unused)
{
    static const char json[] =
        "{\"added_tokens\":[],\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
        "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}]},\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
        "\"vocab\":{\"<0xF8>\":0,\"<0xE6>\":1,\"a\":2},\"merges\":[]}}";
    static const uint32_t ids[] = {2, 0, 1, 2};
    struct tokenizer *t;
    struct buf out = {0};
    struct err e;

    (void)unused;
    if (tokenizer_open_json(&t, "bytes", span_of(json), NULL, &e) < 0 || tokenizer_decode(t, ids, 4, &out, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(span_is(buf_span(&out), "a \xef\xbf\xbd \xef\xbf\xbd a"));
    buf_free(&out);
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tie_is_broken_as_recorded),
        cmocka_unit_test(scores_without_bounds_are_refused),
        cmocka_unit_test(known_words_have_the_ids_of_the_whole),
        cmocka_unit_test(of_twins_the_later_piece_counts),
        cmocka_unit_test(bytes_that_are_no_text_are_a_token_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
