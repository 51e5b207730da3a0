/* What waits until a text needs it (ranks_later.h): texts have the same ids before it is made, after, and where it was made at
 * once; what is wrong is refused all the same when the file is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/node.h"
#include "tokenize/model.h"

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static struct tokenizer *open_file(const char *path, const char *pattern)
{
    struct tokenizer *t;
    struct err e;

    if (tokenizer_open(&t, path, pattern, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

/* With an encoder that has merged nothing before. */
static void encode(const struct tokenizer *t, struct span text, struct buf *ids)
{
    struct encoder *enc = encoder_new(t);
    struct err e;

    buf_clear(ids);
    assert_non_null(enc);
    if (encoder_encode(enc, text, 0, 4, ids, &e) < 0)
        fail_msg("%s", e.msg);
    encoder_free(enc);
}

static void same_ids(const struct tokenizer *t, const struct tokenizer *other, struct span text)
{
    struct buf ids = {0}, want = {0};

    encode(t, text, &ids);
    encode(other, text, &want);
    if (!span_eq(buf_span(&ids), buf_span(&want)))
        fail_msg("other ids for '%.*s'", (int)text.n, text.p);
    buf_free(&ids);
    buf_free(&want);
}

/* Parts of a text, and its characters in any order. */
static void same_parts(const struct tokenizer *t, const struct tokenizer *other, struct span text)
{
    for (size_t at = 0, n; at < text.n; at += n) {
        n = 1 + below(400);
        while (at + n < text.n && (text.p[at + n] & 0xC0) == 0x80)
            n++;
        n = at + n < text.n ? n : text.n - at;
        same_ids(t, other, (struct span){text.p + at, n});
    }
    for (int i = 0; i < 300; i++) {
        struct buf mixed = {0};
        for (uint32_t k = 1 + below(60); k--;) {
            size_t at = below((uint32_t)text.n), end;
            while (at > 0 && (text.p[at] & 0xC0) == 0x80)
                at--;
            for (end = at + 1; end < text.n && (text.p[end] & 0xC0) == 0x80;)
                end++;
            buf_put(&mixed, text.p + at, end - at);
        }
        same_ids(t, other, buf_span(&mixed));
        buf_free(&mixed);
    }
}

static void files_give_the_same_before_and_after(void **state)
{
#define AT "tests/data/tokenizer/"
    static const struct {
        const char *path, *pattern;
        bool waits;
    } files[] = {{AT "spm_bpe_suffix.model", NULL, true}, {AT "spm_bpe_user.model", NULL, true},
                 {AT "spm_llama.model", NULL, true}, {AT "spm_chars.model", NULL, false}, {AT "spm_unigram.model", NULL, true},
                 {AT "spm_unigram_free.model", NULL, true}, {AT "spm_unigram_user.model", NULL, true},
                 {AT "tekken.json", NULL, true}, {AT "vocab.json", NULL, true},
                 {AT "ranks.tiktoken", "gpt2", true}, {AT "neox.json", NULL, true}, {AT "llama3.json", NULL, true}};
    struct buf text = {0};
    struct err e;

    (void)state;
    if (file_read_all(AT "corpus.txt", 1 << 20, &text, &e) < 0)
        fail_msg("%s", e.msg);
    buf_puts(&text, " \xe2\x96\x81\xf0\x9f\x98\x80\xe4\xb8\xad\xcc\x81\t<s>\xef\xbf\xbd");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct tokenizer *t = open_file(files[i].path, files[i].pattern), *other = open_file(files[i].path, files[i].pattern);
        assert_int_equal(t->later != NULL, files[i].waits);
        assert_int_equal(tokenizer_prepare(other, &e), 0);
        same_parts(t, other, buf_span(&text));
        assert_int_equal(tokenizer_prepare(t, &e), 0);
        same_parts(t, other, buf_span(&text));
        tokenizer_close(t);
        tokenizer_close(other);
    }
    buf_free(&text);
}

/* The ids of a line of spm_edited.jsonl; in their place with all pairs there. */
static void check_edited(const struct node *line)
{
    bool older = strcmp(node_str(line, "sentencepiece"), "0.2.1") == 0;
    struct tokenizer_settings s = {.sentencepiece = older};
    struct buf model = {0}, ids = {0}, want = {0};
    struct tokenizer *t;
    struct err e;

    assert_true(base64_decode(node_get(line, "model")->str, &model));
    if (tokenizer_open_sentencepiece(&t, node_str(line, "name"), buf_span(&model), &s, &e) < 0)
        fail_msg("%s", e.msg);
    for (int prepared = 0; prepared < 2; prepared++) {
        for (const struct node *c = node_get(line, "cases")->child; c; c = c->next) {
            buf_clear(&want);
            for (const struct node *x = c->child->next->child; x; x = x->next)
                buf_put(&want, &(uint32_t){(uint32_t)x->integer}, 4);
            encode(t, c->child->str, &ids);
            if (!span_eq(buf_span(&ids), buf_span(&want)))
                fail_msg("%s, %s, %d: other ids for '%s'", node_str(line, "name"), older ? "0.2.1" : "0.2.3", prepared,
                         c->child->str.p);
        }
        assert_int_equal(tokenizer_prepare(t, &e), 0);
    }
    assert_int_equal(tokenizer_facts(t).sentencepiece != NULL, strcmp(node_str(line, "name"), "zeros") == 0 ||
                                                               strcmp(node_str(line, "name"), "unused, char") == 0);
    tokenizer_close(t);
    buf_free(&model);
    buf_free(&ids);
    buf_free(&want);
}

static void edited_models_give_the_ids_of_each_version(void **state)
{
    struct buf file = {0};
    struct arena a = {0};
    struct err e;
    int n = 0;

    (void)state;
    if (file_read_all("tests/data/tokenizer/spm_edited.jsonl", 1 << 20, &file, &e) < 0)
        fail_msg("%s", e.msg);
    for (char *at = file.p, *nl; (nl = strchr(at, '\n')); at = nl + 1, n++) {
        struct node *line;
        assert_int_equal(node_parse_json(&a, (struct span){at, (size_t)(nl - at)}, &line, &e), 0);
        check_edited(line);
    }
    assert_int_equal(n, 10);
    buf_free(&file);
    arena_free(&a);
}

enum { TOKENS = 400, MERGES = 900 };

/* Tokens of a, b, c by what they are made of, and merges that make them, in any order. */
struct made {
    char token[TOKENS][40];
    char merge[MERGES][80];
    int n, merges;
};

static bool has_token(const struct made *m, const char *s)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->token[i], s) == 0)
            return true;
    return false;
}

static void make_tokens(struct made *m)
{
    m->n = 3;
    for (int i = 0; i < 3; i++) {
        m->token[i][0] = (char)('a' + i);
        m->token[i][1] = '\0';
    }
    while (m->n < TOKENS) {
        char both[80];
        snprintf(both, sizeof both, "%s%s", m->token[below((uint32_t)m->n)], m->token[below((uint32_t)m->n)]);
        if (strlen(both) < 12 && !has_token(m, both))
            memcpy(m->token[m->n++], both, strlen(both) + 1);
    }
    m->merges = 0;
    for (int i = 0; i < m->n; i++) /* all of a token, as converters write them */
        for (size_t k = 1; k < strlen(m->token[i]) && m->merges < MERGES; k++) {
            char left[40];
            snprintf(left, sizeof left, "%.*s", (int)k, m->token[i]);
            if (has_token(m, left) && has_token(m, m->token[i] + k))
                snprintf(m->merge[m->merges++], sizeof *m->merge, "%s %s", left, m->token[i] + k);
        }
}

/* zero: how the first id is written; "-0" makes a tree of the file, whose merges do not wait. */
static int open_made(const struct made *m, const char *zero, struct tokenizer **t, struct err *e)
{
    struct buf json = {0};
    int rc;

    buf_puts(&json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < m->n; i++)
        if (i == 0)
            buf_printf(&json, "\"%s\":%s", m->token[i], zero);
        else
            buf_printf(&json, ",\"%s\":%d", m->token[i], i);
    buf_puts(&json, "},\"merges\":[");
    for (int i = 0; i < m->merges; i++)
        buf_printf(&json, "%s\"%s\"", i ? "," : "", m->merge[i]);
    buf_puts(&json, "]}}");
    rc = tokenizer_open_json(t, "made", buf_span(&json), NULL, e);
    buf_free(&json);
    return rc;
}

static void swap(struct made *m, int i, int k)
{
    char x[sizeof *m->merge];

    memcpy(x, m->merge[i], sizeof x);
    memcpy(m->merge[i], m->merge[k], sizeof x);
    memcpy(m->merge[k], x, sizeof x);
}

static void merges_wait_in_any_order(void **state)
{
    struct made *m = malloc(sizeof *m);
    struct err e;

    (void)state;
    assert_non_null(m);
    for (int round = 0; round < 24; round++) {
        struct tokenizer *t, *tree;
        int kind = round % 4; /* in order; some neighbours; all; one twice */
        make_tokens(m);
        for (int i = 0; i < (kind == 0 ? 0 : kind == 2 ? 2000 : 20); i++) {
            int at = (int)below((uint32_t)m->merges - 1);
            swap(m, at, kind == 2 ? (int)below((uint32_t)m->merges) : at + 1);
        }
        if (kind == 3)
            memcpy(m->merge[m->merges - 1], m->merge[below((uint32_t)m->merges - 1)], sizeof *m->merge);
        if (open_made(m, "0", &t, &e) < 0 || open_made(m, "-0", &tree, &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(t->later != NULL, kind != 3);
        assert_null(tree->later);
        for (int i = 0; i < 400; i++) {
            char text[BPE_SHORT];
            size_t n = 1 + below(BPE_SHORT);
            for (size_t k = 0; k < n; k++)
                text[k] = (char)('a' + below(3));
            if (i == 300)
                assert_int_equal(tokenizer_prepare(t, &e), 0);
            same_ids(t, tree, (struct span){text, n});
        }
        assert_true(bpe_hash(&t->bpe) == bpe_hash(&tree->bpe));
        tokenizer_close(t);
        tokenizer_close(tree);
    }
    free(m);
}

/* A merge of a token that there is not, or that makes none, wherever it stands. */
static void what_a_merge_lacks_is_told_at_once(void **state)
{
    static const char *const lacking[] = {"a x", "x a", "abcabcabcabcabcabcabc a"};
    struct made *m = malloc(sizeof *m);
    struct err e;

    (void)state;
    assert_non_null(m);
    for (int i = 0; i < 60; i++) {
        struct tokenizer *t = NULL;
        int at;
        make_tokens(m);
        at = i < 3 ? m->merges - 1 : i < 6 ? 0 : (int)below((uint32_t)m->merges);
        memcpy(m->merge[at], lacking[i % 3], strlen(lacking[i % 3]) + 1);
        assert_int_equal(open_made(m, "0", &t, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "which the vocabulary lacks"));
    }
    free(m);
}

/* Characters with tokens for bytes behind them; of a tab as Gemma's files have it, in the place of <0x09>, or beside it. */
static struct tokenizer *open_chars(bool beside, struct err *e)
{
    static const char *const tokens[] = {"\\t", "\xe2\x96\x81", "a", "b", "c", "ab", "\xe2\x96\x81""a",
                                         "\xe2\x96\x81""ab", "bc", "cc"};
    static const char merges[] = "[\"a b\",\"\xe2\x96\x81 a\",\"\xe2\x96\x81""a b\",\"b c\",\"c c\"]";
    struct tokenizer *t = NULL;
    struct buf json = {0};
    int id = 1;

    buf_puts(&json, "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\",\"fuse_unk\":true,"
                    "\"vocab\":{\"<unk>\":0");
    for (int b = 0; b < 256; b++)
        if (b != '\t')
            buf_printf(&json, ",\"<0x%02X>\":%d", (unsigned)b, id++);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        buf_printf(&json, ",\"%s\":%d", tokens[i], id++);
    if (beside)
        buf_printf(&json, ",\"<0x09>\":%d", id);
    buf_printf(&json, "},\"merges\":%s},\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
               "\"content\":\"\xe2\x96\x81\"}}", merges);
    if (tokenizer_open_json(&t, "chars", buf_span(&json), NULL, e) < 0)
        fail_msg("%s", e->msg);
    buf_free(&json);
    return t;
}

/* A byte without a token is no reason to take all of a text for one word where its character has one. */
static void a_tab_may_stand_for_its_byte(void **state)
{
    static const char *const pieces[] = {"\t", " ", "a", "b", "c", "\xc3\xa9", "\xf0\x9f\x98\x80", "z", "\n"};
    struct err e;
    struct tokenizer *t = open_chars(false, &e), *beside = open_chars(true, &e);

    (void)state;
    assert_true(t->rules->joins && beside->rules->joins);
    for (int i = 0; i < 1000; i++) {
        struct buf text = {0};
        for (uint32_t n = 1 + below(i % 10 ? 40 : 900); n--;)
            buf_puts(&text, pieces[below(sizeof pieces / sizeof *pieces)]);
        same_ids(t, beside, buf_span(&text));
        buf_free(&text);
    }
    tokenizer_close(t);
    tokenizer_close(beside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tab_may_stand_for_its_byte),
        cmocka_unit_test(files_give_the_same_before_and_after),
        cmocka_unit_test(edited_models_give_the_ids_of_each_version),
        cmocka_unit_test(merges_wait_in_any_order),
        cmocka_unit_test(what_a_merge_lacks_is_told_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
