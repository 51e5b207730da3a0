/* A JSON line; what is accepted must be put together again from its fields. */
#include <stdlib.h>

#include "base/json.h"
#include "base/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One pass gives what the other functions do. */
static void check_texts(const struct json_field *f, int n, struct span line)
{
    static const char *const keys[] = {"text", "b"};
    struct span texts[2];
    struct buf same = {0};
    char *dst = malloc(line.n + 1);
    struct err e;

    if (!dst)
        abort();
    if (json_read_texts(line, keys, 2, dst, texts))
        for (int k = 0; k < 2; k++) {
            int i = 0;
            while (i < n && !span_is(f[i].key, keys[k]))
                i++;
            buf_clear(&same);
            if (i >= n || f[i].type != JSON_STRING || json_unescape(f[i].raw, &same, &e) < 0 ||
                !span_eq(buf_span(&same), texts[k]))
                abort();
        }
    buf_free(&same);
    free(dst);
}

static void use(struct json_reader *r, struct span line)
{
    const struct json_field *f;
    struct buf text = {0}, again = {0};
    struct err e;
    int n = json_read_object(r, line, &f, &e);

    check_texts(f, n, line);
    for (int i = 0; i < n; i++) {
        if (f[i].raw.p < line.p || f[i].raw.p + f[i].raw.n > line.p + line.n || f[i].raw.n == 0)
            abort();
        if (f[i].type != JSON_STRING)
            continue;
        buf_clear(&text);
        buf_clear(&again);
        if (json_unescape(f[i].raw, &text, &e) < 0)
            continue;
        json_put_string(&again, buf_span(&text));
        struct buf back = {0};
        if (json_unescape(buf_span(&again), &back, &e) < 0 || !span_eq(buf_span(&back), buf_span(&text)))
            abort();
        buf_free(&back);
    }
    buf_free(&text);
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct json_reader *r;
    char *line = malloc(size + JSON_PADDING);
    struct arena a = {0};
    struct node *root;
    struct err e;

    if (!r)
        r = json_reader_new();
    if (!r || !line)
        abort();
    for (size_t i = 0; i < size + JSON_PADDING; i++)
        line[i] = i < size ? (char)data[i] : '"';
    use(r, (struct span){line, size});
    node_parse_json(&a, (struct span){line, size}, &root, &e);
    arena_free(&a);
    free(line);
    return 0;
}
