/* Every form of a tokenizer.json: ids and texts recorded from Hugging Face's tokenizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/node.h"
#include "tokenize/model.h"

static const struct node *item(const struct node *list, int i)
{
    const struct node *x = list->child;

    while (i--)
        x = x->next;
    return x;
}

/* One text: its ids, and what those decode to (bytes that are no text are U+FFFD in the record). */
static int check(struct tokenizer *t, struct encoder *enc, const struct node *c, const char *name)
{
    struct buf ids = {0}, want = {0}, text = {0};
    struct err e;
    int bad = 0;

    for (const struct node *x = item(c, 1)->child; x; x = x->next)
        buf_put(&want, &(uint32_t){(uint32_t)x->integer}, 4);
    if (encoder_encode(enc, item(c, 0)->str, ENCODER_SPECIAL, 4, &ids, &e) < 0 ||
        !span_eq(buf_span(&ids), buf_span(&want))) {
        fprintf(stderr, "%s: other ids for '%s'\n", name, item(c, 0)->str.p);
        bad = 1;
    }
    if (tokenizer_decode(t, (const uint32_t *)(const void *)want.p, want.n / 4, &text, &e) < 0 ||
        (!span_eq(buf_span(&text), item(c, 2)->str) && !strstr(item(c, 2)->str.p, "\xef\xbf\xbd"))) {
        fprintf(stderr, "%s: the ids of '%s' decode to '%.*s', not '%s'\n", name, item(c, 0)->str.p, (int)text.n, text.p,
                item(c, 2)->str.p);
        bad = 1;
    }
    buf_free(&ids);
    buf_free(&want);
    buf_free(&text);
    return bad;
}

enum { AS_IT_IS, PREPARED, AS_A_TREE, WAYS };

/* The tokenizer of a form as it is read; with all its pairs; or from a tree, as some first id, 0, is written unusually.  NULL:
 * this form has no such id. */
static struct tokenizer *open_form(const struct node *form, int way)
{
    struct span json = node_get(form, "json")->str;
    const char *vocab = strstr(json.p, "\"vocab\":{\""), *id = vocab ? strstr(vocab, "\":0,") : NULL;
    struct buf other = {0};
    struct tokenizer *t;
    struct err e;

    if (way == AS_A_TREE && id) {
        size_t n = (size_t)(id + 2 - json.p);
        buf_put(&other, json.p, n);
        buf_putc(&other, '-');
        buf_put(&other, json.p + n, json.n - n);
        json = buf_span(&other);
    } else if (way == AS_A_TREE) {
        return NULL;
    }
    if (tokenizer_open_json(&t, node_str(form, "name"), json, NULL, &e) < 0 || (way == PREPARED && tokenizer_prepare(t, &e) < 0))
        fail_msg("%s", e.msg);
    buf_free(&other);
    return t;
}

/* Tokenizers of the same file. */
static void same_tokenizer(struct tokenizer *t, struct tokenizer *other)
{
    struct err e;

    assert_int_equal(tokenizer_prepare(t, &e) < 0 || tokenizer_prepare(other, &e) < 0, 0);
    assert_int_equal(t->vocab.n, other->vocab.n);
    for (uint32_t id = 0; id < t->vocab.n; id++) {
        assert_true(span_eq(vocab_get(&t->vocab, id), vocab_get(&other->vocab, id)));
        assert_int_equal(vocab_is_added(&t->vocab, id), vocab_is_added(&other->vocab, id));
    }
    assert_int_equal(t->bpe.n, other->bpe.n);
    assert_true(bpe_hash(&t->bpe) == bpe_hash(&other->bpe));
}

static void every_form_is_read_as_recorded(void **state)
{
    struct buf file = {0};
    struct arena a = {0};
    struct err e;
    int forms = 0, cases = 0, bad = 0, later = 0, trees = 0;

    (void)state;
    if (file_read_all("tests/data/tokenizer/forms.jsonl.zst", 1 << 26, &file, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t at = 0; at < file.n; forms++) {
        const char *nl = memchr(file.p + at, '\n', file.n - at);
        struct tokenizer *ways[WAYS];
        struct node *root;
        arena_reset(&a);
        if (node_parse_json(&a, (struct span){file.p + at, (size_t)(nl - file.p) - at}, &root, &e) < 0)
            fail_msg("%s", e.msg);
        for (int way = 0; way < WAYS; way++) {
            struct tokenizer *t = ways[way] = open_form(root, way);
            struct encoder *enc = t ? encoder_new(t) : NULL;
            for (int twice = 0; t && twice < 2; twice++) /* the second time from the table of words */
                for (const struct node *c = node_get(root, "cases")->child; c; c = c->next, cases++)
                    bad += check(t, enc, c, node_str(root, "name"));
            encoder_free(enc);
        }
        later += ways[AS_IT_IS]->later != NULL;
        if (ways[AS_A_TREE]) {
            trees++;
            assert_null(ways[AS_A_TREE]->later);
            same_tokenizer(ways[AS_IT_IS], ways[AS_A_TREE]);
        }
        for (int way = 0; way < WAYS; way++)
            tokenizer_close(ways[way]);
        at = (size_t)(nl + 1 - file.p);
    }
    assert_int_equal(bad, 0);
    assert_int_equal(forms, 39);
    assert_int_equal(trees, 34);
    assert_true(later > 10);
    assert_true(cases > 15000);
    buf_free(&file);
    arena_free(&a);
}

/* A text of one megabyte without a place to cut costs little more per byte than a short one. */
static void long_words_are_no_trouble(void **state)
{
    static const char *const forms[] = {"llama2", "gemma", "t5", "unigram-bytes", "bert", "clip", "deepseek"};
    struct buf file = {0};
    struct arena a = {0};
    struct err e;

    (void)state;
    if (file_read_all("tests/data/tokenizer/forms.jsonl.zst", 1 << 26, &file, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t at = 0; at < file.n;) {
        const char *nl = memchr(file.p + at, '\n', file.n - at);
        struct node *root;
        bool wanted = false;
        arena_reset(&a);
        assert_int_equal(node_parse_json(&a, (struct span){file.p + at, (size_t)(nl - file.p) - at}, &root, &e), 0);
        at = (size_t)(nl + 1 - file.p);
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            wanted |= strcmp(forms[i], node_str(root, "name")) == 0;
        for (int kind = 0; wanted && kind < 3; kind++) {
            struct buf text = {0}, ids = {0};
            struct tokenizer *t;
            struct encoder *enc;
            uint32_t r = 1;
            assert_int_equal(tokenizer_open_json(&t, "form", node_get(root, "json")->str, NULL, &e), 0);
            enc = encoder_new(t);
            for (int i = 0; i < 1000000; i++)
                buf_putc(&text, kind == 0 ? 'a' : kind == 1 ? ' ' : (char)('a' + ((r = r * 1664525 + 1013904223) >> 24) % 26));
            assert_int_equal(encoder_encode(enc, buf_span(&text), 0, 4, &ids, &e), 0);
            encoder_free(enc);
            tokenizer_close(t);
            buf_free(&text);
            buf_free(&ids);
        }
    }
    buf_free(&file);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read_as_recorded),
        cmocka_unit_test(long_words_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
