/* What base/ reads and writes in a second, of processor time: io_bench FILE.jsonl[.gz|.zst].
 * Prints name, value, unit, note; medians of five. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/measure.h"

enum { ROUNDS = 5 };

static void print(const char *name, double *v, const char *note)
{
    printf("%s\t%.0f\tMB/s\t%s\n", name, median(v, ROUNDS) / 1e6, note);
}

static void fail(const struct err *e)
{
    fprintf(stderr, "io_bench: %s\n", e->msg);
    exit(1);
}

static void bench_file(const char *name, const char *path, struct span text, const char *note)
{
    static char out[1 << 16];
    double in[ROUNDS], to[ROUNDS];
    struct err e;
    char label[64];

    for (int i = 0; i < ROUNDS; i++) {
        struct file_in *f;
        ssize_t n;
        double t = cpu_seconds();
        if (file_write_all(path, text, &e) < 0)
            fail(&e);
        to[i] = (double)text.n / (cpu_seconds() - t);
        t = cpu_seconds();
        if (file_open(&f, path, &e) < 0)
            fail(&e);
        while ((n = file_read(f, out, sizeof out, &e)) > 0)
            ;
        if (n < 0)
            fail(&e);
        in[i] = (double)text.n / (cpu_seconds() - t);
        file_close(f);
    }
    snprintf(label, sizeof label, "read %s", name);
    print(label, in, note);
    snprintf(label, sizeof label, "write %s", name);
    print(label, to, note);
    unlink(path);
}

/* All lines, of which `texts` and `raws` keep the text fields. */
static void bench_json(struct span all)
{
    struct json_reader *r = json_reader_new();
    struct buf raws = {0}, text = {0}, out = {0};
    double read[ROUNDS], unescape[ROUNDS], put[ROUNDS];
    const struct json_field *f;
    struct err e;

    for (int i = 0; i < ROUNDS; i++) {
        double t = cpu_seconds();
        buf_clear(&raws);
        for (const char *p = all.p, *q; (q = memchr(p, '\n', (size_t)(all.p + all.n - p))); p = q + 1) {
            int n = json_read_object(r, (struct span){p, (size_t)(q - p)}, &f, &e);
            if (n < 0)
                fail(&e);
            for (int k = 0; k < n; k++)
                if (span_is(f[k].key, "text"))
                    buf_put(&raws, &f[k].raw, sizeof f[k].raw);
        }
        read[i] = (double)all.n / (cpu_seconds() - t);
        const struct span *raw = (const struct span *)(const void *)raws.p;
        size_t n = raws.n / sizeof *raw, bytes = 0;
        t = cpu_seconds();
        for (size_t k = 0; k < n; k++) {
            buf_clear(&text);
            if (json_unescape(raw[k], &text, &e) < 0)
                fail(&e);
            bytes += text.n;
        }
        unescape[i] = (double)bytes / (cpu_seconds() - t);
        double both = cpu_seconds();
        for (size_t k = 0; k < n; k++) {
            buf_clear(&text);
            buf_clear(&out);
            json_unescape(raw[k], &text, &e);
            json_put_string(&out, buf_span(&text));
        }
        put[i] = (double)bytes / (cpu_seconds() - both - (double)bytes / unescape[i]);
    }
    print("json read", read, "whole lines, validated");
    print("json unescape", unescape, "of text");
    print("json write", put, "of text");
    json_reader_free(r);
    buf_free(&raws);
    buf_free(&text);
    buf_free(&out);
}

int main(int argc, char **argv)
{
    struct buf b = {0};
    struct err e;

    if (argc != 3) {
        fprintf(stderr, "usage: io_bench FILE.jsonl SCRATCH-FOLDER\n");
        return 2;
    }
    if (file_read_all(argv[1], (size_t)1 << 30, &b, &e) < 0 || chdir(argv[2]) < 0 || buf_reserve(&b, JSON_PADDING) < 0)
        fail(&e);
    bench_json(buf_span(&b));
    bench_file("gzip", "x.gz", buf_span(&b), "members of 1 MiB");
    bench_file("zstd", "x.zst", buf_span(&b), "level 3, checksum");
    buf_free(&b);
    return 0;
}
