/* Parquet: whatever it holds, what is given out are whole lines of JSON, and the same by a stream as from memory. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 }; /* bombs: what is read of one */

static ssize_t read_span(void *arg, void *p, size_t n, struct err *e)
{
    struct span *s = arg;
    size_t k = n < s->n ? n : s->n;

    (void)e;
    if (k)
        memcpy(p, s->p, k);
    s->p += k;
    s->n -= k;
    return (ssize_t)k;
}

static void drain(struct file_in *f, struct buf *out)
{
    struct err e;

    while (out->n < OUT_MAX) {
        ssize_t k = buf_reserve(out, 1 << 16) < 0 ? 0 : file_read(f, out->p + out->n, 1 << 16, &e);

        if (k == 0)
            break;
        if (k < 0 && (e.code != k || !e.msg[0]))
            abort();
        if (k < 0 && file_skip_member(f, &e) != 1)
            break;
        out->n += k > 0 ? (size_t)k : 0;
    }
    file_close(f);
}

static void check_lines(struct buf *b)
{
    struct json_reader *r = json_reader_new();
    const struct json_field *field;
    struct err e;

    if (!r || buf_reserve(b, JSON_PADDING) < 0)
        return;
    for (const char *p = b->p, *end = p + b->n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (!nl)
            nl = b->n >= OUT_MAX ? end : NULL;
        if (!nl)
            abort();
        if (nl < end && json_read_object(r, (struct span){p, (size_t)(nl - p)}, &field, &e) < 0 && !strstr(e.msg, "twice"))
            abort();
        p = nl + (nl < end);
    }
    json_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span all = {(const char *)data, size}, stream = all;
    struct buf a = {0}, b = {0};
    struct file_in *f;
    struct err e;

    if (file_open_mem(&f, "mem", all, &e) < 0)
        abort();
    if (file_codec(f) != FILE_PARQUET) {
        file_close(f);
        return 0;
    }
    drain(f, &a);
    check_lines(&a);
    if (size % 16 == 0) { /* costs a file */
        if (file_open_stream(&f, "mem", size, read_span, &stream, &e) < 0)
            abort();
        drain(f, &b);
        if (!span_eq(buf_span(&a), buf_span(&b)))
            abort();
    }
    buf_free(&a);
    buf_free(&b);
    return 0;
}
