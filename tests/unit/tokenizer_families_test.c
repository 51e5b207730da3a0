/* The families of published tokenizers: ids as Hugging Face's tokenizers and tiktoken give them, by a hash of all of them
 * (tests/record/tokenizer_families.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/node.h"
#include "tokenize/tokenizer.h"

static struct {
    struct arena a;
    struct node *root;
    const struct node *pool[400];
    size_t n_pool;
    uint64_t x;
} given;

/* As the script draws. */
static uint64_t draw(uint64_t n)
{
    given.x = given.x * 6364136223846793005u + 1442695040888963407u;
    return (given.x >> 33) % n;
}

static uint64_t fnv(uint64_t h, uint32_t id)
{
    for (int k = 0; k < 4; k++)
        h = (h ^ (id >> 8 * k & 255)) * 0x100000001b3u;
    return h;
}

static uint64_t hash_of_ids(const struct tokenizer *t)
{
    struct encoder *enc = encoder_new(t);
    struct buf text = {0}, ids = {0};
    uint64_t h = 0xcbf29ce484222325u;
    int64_t most = node_int(given.root, "most", 0);
    struct err e;

    assert_non_null(enc);
    given.x = 20261123;
    for (int64_t i = 0; i < node_int(given.root, "strings", 0); i++) {
        buf_clear(&text);
        buf_clear(&ids);
        for (uint64_t k = 1 + draw((uint64_t)most); k > 0; k--)
            buf_put_span(&text, given.pool[draw(given.n_pool)]->str);
        assert_int_equal(encoder_encode(enc, buf_span(&text), 0, 4, &ids, &e), 0);
        for (size_t k = 0; k < ids.n / 4; k++)
            h = fnv(h, ((const uint32_t *)(const void *)ids.p)[k]);
        h = fnv(h, UINT32_MAX);
    }
    buf_free(&text);
    buf_free(&ids);
    encoder_free(enc);
    return h;
}

/* Appends n as JSON. */
static void put_node(const struct node *n, struct buf *b)
{
    if (!n || n->type == NODE_NULL) {
        buf_puts(b, "null");
    } else if (n->type == NODE_STR) {
        json_put_string(b, n->str);
    } else if (n->type == NODE_MAP || n->type == NODE_LIST) {
        buf_putc(b, n->type == NODE_MAP ? '{' : '[');
        for (const struct node *x = n->child; x; x = x->next) {
            buf_puts(b, x == n->child ? "" : ",");
            if (n->type == NODE_MAP) {
                json_put_string(b, x->key);
                buf_putc(b, ':');
            }
            put_node(x, b);
        }
        buf_putc(b, n->type == NODE_MAP ? '}' : ']');
    } else {
        buf_put_span(b, n->str);
    }
}

/* gpt2.json with the family's normalizer and pre-tokenizer, or ranks with its pattern. */
static struct tokenizer *open_family(const struct node *f, const struct node *model)
{
    const char *pattern = node_str(f, "pattern");
    struct tokenizer *t = NULL;
    struct buf json = {0};
    struct err e;
    int rc;

    if (pattern) {
        rc = tokenizer_open(&t, "tests/data/tokenizer/ranks.tiktoken", pattern, &e);
    } else {
        for (const struct node *x = model->child; x; x = x->next) {
            bool own = strcmp(x->key.p, "normalizer") == 0 || strcmp(x->key.p, "pre_tokenizer") == 0;
            buf_puts(&json, x == model->child ? "{" : ",");
            json_put_string(&json, x->key);
            buf_putc(&json, ':');
            put_node(own ? node_get(f, x->key.p) : x, &json);
        }
        buf_putc(&json, '}');
        rc = tokenizer_open_json(&t, node_str(f, "name"), buf_span(&json), NULL, &e);
        buf_free(&json);
    }
    if (rc == ERR_UNSUPPORTED)
        return NULL; /* no ICU, no PCRE2 */
    if (rc < 0)
        fail_msg("%s: %s", node_str(f, "name"), e.msg);
    return t;
}

static void ids_are_those_of_the_originals(void **state)
{
    struct arena a = {0};
    struct node *model;
    struct err e;

    (void)state;
    assert_int_equal(node_load_json(&a, "tests/data/tokenizer/gpt2.json", &model, &e), 0);
    for (const struct node *f = node_get(given.root, "families")->child; f; f = f->next) {
        struct tokenizer *t = open_family(f, model);
        char hash[17];
        if (!t)
            continue;
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_of_ids(t));
        if (strcmp(hash, node_str(f, "hash")) != 0)
            fail_msg("%s: %s, not %s", node_str(f, "name"), hash, node_str(f, "hash"));
        tokenizer_close(t);
    }
    arena_free(&a);
}

static int setup(void **state)
{
    struct err e;

    (void)state;
    if (node_load_json(&given.a, "tests/data/tokenizer/families.json", &given.root, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return -1;
    }
    for (const struct node *x = node_get(given.root, "pool")->child; x && given.n_pool < 400; x = x->next)
        given.pool[given.n_pool++] = x;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(&given.a);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_are_those_of_the_originals)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
