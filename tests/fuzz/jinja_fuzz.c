#include <stdlib.h>

#include "tokenize/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes as a template, rendered with a conversation: ranges are within the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char vars[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a \\u00e9\"},{\"role\":\"assistant\",\"content\":[1,2.5,null]}],"
        "\"tools\":[{\"a\":{\"b\":true}}],\"n\":3,\"s\":\"x y\"}";
    struct arena a = {0}, b = {.max = 64 << 20};
    struct buf out = {.max = 1 << 20}, ranges = {0};
    struct jinja_var v[4];
    struct jinja *x;
    struct node *root;
    struct err e;
    int n = 0;

    if (node_parse_json(&a, span_of(vars), &root, &e) < 0)
        abort();
    for (const struct node *m = root->child; m; m = m->next)
        v[n++] = (struct jinja_var){m->key.p, m};
    if (jinja_new(&x, (struct span){(const char *)data, size}, JINJA_CHAT, &e) == 0) {
        if (jinja_render(x, v, n, "2024-07-26", &b, &out, &ranges, &e) == 0)
            for (size_t i = 0; i < ranges.n / sizeof(struct jinja_range); i++) {
                const struct jinja_range *r = (const struct jinja_range *)(const void *)ranges.p + i;

                if (r->to < r->from || r->to > out.n)
                    abort();
            }
        jinja_free(x);
    }
    buf_free(&out);
    buf_free(&ranges);
    arena_free(&a);
    arena_free(&b);
    return 0;
}
