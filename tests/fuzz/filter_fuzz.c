/* Any bytes, made valid, through every rule of every preset, with and without verdict,
 * and through language identification.  The words must lie in the text, in order. */
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/filter/filter.h"
#include "curate/language/langid.h"
#include "curate/text/scan.h"
#include "curate/text/uax29.h"
#include "curate/text/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(struct stage *st, void *thread, struct span text)
{
    struct arena a = {0};
    struct verdict v = {0};
    struct doc d;
    struct err e;
    struct span note = {0};

    doc_init(&d, &a);
    if (doc_set_string(&d, "lang", span_of(text.n % 2 ? "fr" : "th")) < 0 ||
        doc_set_string(&d, "robots", text) < 0 || doc_set_string(&d, "license", text) < 0 ||
        doc_set_string(&d, "text", text) < 0 || st->ops->work(st->state, thread, &d, &v, &note, &e) < 0)
        abort();
    if (!v.drop && !utf8_valid(d.text))
        abort();
    arena_free(&a);
}

static void check_words(struct span text)
{
    static struct words ws;
    struct err e;
    size_t end = 0;

    if (words_split(&ws, text, &e) < 0)
        abort();
    for (size_t i = 0; i < ws.n; i++) {
        if (ws.w[i].off < end || ws.w[i].len == 0 || ws.w[i].off + ws.w[i].len > text.n)
            abort();
        end = ws.w[i].off + ws.w[i].len;
    }
    if (words_count_sentences(&ws, text) > ws.n + 1)
        abort();
}

/* Words as split() cuts are what lies between white space, looked at one by one; those of
 * UAX #29 begin with a letter or number and stand in order. */
static void check_splits(struct span text)
{
    static struct scan scan;
    static struct words ws;
    const char *p = text.p, *end = text.n ? p + text.n : p;
    size_t i = 0, chars = 0, last = 0;
    struct err e;
    bool in = false;
    int n;

    if (scan_text(&scan, text) < 0 || scan_split(&scan, text, &ws, &e) < 0)
        abort();
    for (; p < end; p += n, chars++) {
        bool space = chars_space_at(p, end, &n);

        if (!space)
            chars_decode(p, &n);
        if (!space && !in && (i == ws.n || ws.w[i].off != (size_t)(p - text.p)))
            abort();
        if (space && in && ws.w[i].off + ws.w[i].len != (size_t)(p - text.p))
            abort();
        i += space && in;
        in = !space;
    }
    if (i + in != ws.n || chars != scan.chars || (in && ws.w[i].off + ws.w[i].len != text.n))
        abort();
    if (uax29_split(&ws, text, &e) < 0)
        abort();
    for (i = 0; i < ws.n; last = ws.w[i].off + ws.w[i].len, i++)
        if (ws.w[i].off < last || !ws.w[i].len || !uax29_alnum(chars_decode(text.p + ws.w[i].off, &n)))
            abort();
    if (last > text.n)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stage decide, annotate;
    static void *threads[2];
    struct filter_conf conf = {.lang = "auto",
                               .presets = "gopher-quality,gopher-repetition,c4,fineweb,nemo,dolma,dclm,rpv2,fineweb2-icu,"
                                          "rights"};
    struct buf b = {0};
    struct langid l;
    struct err e;

    if (!decide.ops) {
        if (filter_stage_open(&decide, &conf, &e) < 0)
            abort();
        conf.annotate = true;
        if (filter_stage_open(&annotate, &conf, &e) < 0 ||
            decide.ops->thread_open(decide.state, &threads[0], &e) < 0 ||
            annotate.ops->thread_open(annotate.state, &threads[1], &e) < 0)
            abort();
    }
    if (utf8_repair((struct span){(const char *)data, size}, &b) < 0)
        return 0;
    check_words(buf_span(&b));
    check_splits(buf_span(&b));
    run(&decide, threads[0], buf_span(&b));
    run(&annotate, threads[1], buf_span(&b));
    if (langid_detect(buf_span(&b), &l, &e) < 0 || !(l.score >= 0 && l.score <= 1))
        abort();
    buf_free(&b);
    return 0;
}
