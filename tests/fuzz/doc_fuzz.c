/* Any bytes as a line of a document: what is parsed is written as it came, and what is set comes
 * back.  The same bytes as kept notes and as a stage's answers, which end in an error at worst. */
#include <stdio.h>
#include <stdlib.h>

#include "base/failure.h"
#include "base/utf8.h"
#include "pipelines/answers.h"
#include "curate/stream/doc.h"
#include "curate/stream/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

static void set_and_write(struct doc *d, struct json_reader *r, struct span value)
{
    struct buf out = {0};
    struct arena a = {0};
    struct doc again = {.arena = &a, .file = "again"};
    struct span source;
    struct err e;

    need(doc_write(d, &out) == 0 && out.n == d->line.n + 1);
    need(doc_set_string(d, "text", value) == 0 && doc_set_num(d, "n", 0.5) == 0);
    buf_clear(&out);
    need(doc_write(d, &out) == 0 && buf_reserve(&out, JSON_PADDING) == 0);
    need(doc_parse(&again, r, (struct span){out.p, out.n - 1}, &e) == 0);
    need(span_eq(again.text, value) && span_is(doc_raw(&again, "n"), "0.5"));
    need(doc_string(&again, "url").n <= out.n);
    need(doc_source(&again, "robots", &source) == 0 && source.n <= out.n);
    arena_free(&a);
    buf_free(&out);
}

static void parse(struct span bytes)
{
    static struct json_reader *r;
    struct arena a = {0};
    struct buf line = {0};
    struct doc d = {.arena = &a, .file = "fuzz"};
    struct err e;

    if (!r)
        r = json_reader_new();
    need(r && buf_put_span(&line, bytes) == 0 && buf_reserve(&line, JSON_PADDING) == 0);
    if (doc_parse(&d, r, (struct span){line.p, bytes.n}, &e) == 0)
        set_and_write(&d, r, utf8_valid(bytes) ? bytes : (struct span){"x", 1});
    else
        need(e.code < 0 && e.msg[0]);
    arena_free(&a);
    buf_free(&line);
}

static void read_kept(struct span bytes)
{
    struct arena a = {.max = 1 << 20};
    struct span note, reply = {0};
    struct verdict v;
    struct err e;
    size_t at = 0;

    while (frame_next_note(bytes, &at, &note, &e) == 1)
        need(note.p >= bytes.p && note.p + note.n <= bytes.p + bytes.n && at <= bytes.n);
    FILE *f = bytes.n ? fmemopen((void *)(uintptr_t)bytes.p, bytes.n, "r") : NULL;
    while (f && answer_read(f, &v, &reply, &a, &e) == 0)
        arena_reset(&a);
    if (f)
        fclose(f);
    arena_free(&a);
}

/* A line by which a tool says that it has failed: who is told gets the reason. */
static void find_failure(struct span bytes)
{
    struct buf b = {0};
    struct err e = {.code = 0};

    if (failure_find(bytes, &e) < 0)
        need(e.code == ERR_IO && strstr(e.msg, ", which writes this input, failed: "));
    need(buf_put_span(&b, bytes) == 0 && buf_putc(&b, '\0') == 0);
    bytes = (struct span){b.p, strlen(b.p)};
    struct buf line = {0};
    need(failure_put(&line, "quern-clean", bytes.p) == 0 && line.p[line.n - 1] == '\n');
    need(failure_find((struct span){line.p, line.n - 1}, &e) == ERR_IO);
    buf_free(&line);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};

    parse(s);
    find_failure(s);
    read_kept(s);
    return 0;
}
