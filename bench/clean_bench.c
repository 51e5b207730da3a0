/* Repair and personal data in memory, on one core: clean_bench NAME FILE.jsonl...
 * Prints name, value, unit, note; medians of five. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/measure.h"
#include "curate/clean/clean.h"

enum { ROUNDS = 5 };

struct texts {
    struct buf bytes;
    size_t *end, n;
};

static void fail(const char *what)
{
    fprintf(stderr, "clean_bench: %s\n", what);
    exit(1);
}

/* The "text" of every line. */
static void load(const char *path, struct texts *t)
{
    struct json_reader *r = json_reader_new();
    struct buf all = {0};
    struct file_in *f;
    struct err e;
    ssize_t n;

    if (file_open(&f, path, &e) < 0)
        fail(e.msg);
    do {
        if (buf_reserve(&all, 1 << 20) < 0 || (n = file_read(f, all.p + all.n, 1 << 20, &e)) < 0)
            fail(e.msg);
        all.n += (size_t)n;
    } while (n);
    file_close(f);
    if (buf_reserve(&all, JSON_PADDING) < 0)
        fail("no memory");
    for (char *p = all.p, *end = all.p + all.n, *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
        const struct json_field *field;
        int k = json_read_object(r, (struct span){p, (size_t)(nl - p)}, &field, &e);
        for (int i = 0; i < k; i++)
            if (span_is(field[i].key, "text") && json_unescape(field[i].raw, &t->bytes, &e) < 0)
                fail(e.msg);
        t->end = realloc(t->end, (t->n + 1) * sizeof *t->end);
        t->end[t->n++] = t->bytes.n;
    }
    buf_free(&all);
    json_reader_free(r);
}

/* One pass over all texts; how many changed. */
static size_t pass(const struct texts *t, const struct repair_conf *repair, const struct pii *pii)
{
    static struct repair r;
    static struct buf a, b;
    uint64_t count[PII_KINDS] = {0};
    size_t changed = 0;

    for (size_t i = 0, at = 0; i < t->n; at = t->end[i++]) {
        struct span s = {t->bytes.p + at, t->end[i] - at}, out;
        if ((repair ? repair_text(&r, repair, s, &out) : pii_replace(pii, &a, &b, s, &out, count)) < 0)
            fail("no memory");
        changed += out.p != s.p;
    }
    return changed;
}

static void measure(const char *name, const char *what, const struct texts *t, const struct repair_conf *repair,
                    const struct pii *pii)
{
    double v[ROUNDS];
    size_t changed = 0;

    for (int i = 0; i < ROUNDS; i++) {
        double from = cpu_seconds();
        changed = pass(t, repair, pii);
        v[i] = (double)t->bytes.n / (cpu_seconds() - from);
    }
    printf("clean-%s-%s\t%.0f\tMB/s\tin memory, a core; changes %zu of %zu texts\n", what, name,
           median(v, ROUNDS) / 1e6, changed, t->n);
}

int main(int argc, char **argv)
{
    struct texts t = {0};
    struct clean_conf conf;
    struct pii pii;
    struct err e;

    if (argc < 3)
        fail("usage: clean_bench NAME FILE.jsonl...");
    for (int i = 2; i < argc; i++)
        load(argv[i], &t);
    clean_conf_init(&conf);
    measure(argv[1], "repair", &t, &conf.repair, NULL);
    conf.pii.kinds = "all";
    if (pii_init(&pii, &conf.pii, &e) < 0)
        fail(e.msg);
    measure(argv[1], "pii", &t, NULL, &pii);
    return 0;
}
