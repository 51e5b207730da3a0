/* Bytes a second of each op of deduplication on the GPU, from device memory and with the transfers both ways.
 * make gpu-bench; a table with tabs:
 *     op  shape  seconds  GB/s  GB/s with transfers  share of what an H200 could (docs/gpu.md)  what is counted
 * Seconds and GB/s are of the best of seven runs after two, by events.
 *     gpu_bench [SECONDS]     what is not done after SECONDS is left out
 * What does not run leaves the others alone (tests/jobs.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/device.h"
#include "tests/jobs.h"

enum { WARM = 2, RUNS = 7, LIMIT = 60 };

static struct device *dev;
static struct err err;

static void must(int rc)
{
    if (rc < 0) {
        printf("gpu_bench: %s\n", err.msg);
        fflush(stdout);
        exit(1);
    }
}

static void *on_device(size_t bytes)
{
    void *p;

    must(device_alloc(dev, &p, bytes, &err));
    return p;
}

static void *on_host(size_t bytes)
{
    void *p;

    must(device_alloc_host(dev, &p, bytes, &err));
    return p;
}

/* What one measurement moves: its input and output, on both sides. */
struct job {
    const char *op, *shape, *what;
    double bytes; /* what the GB/s count */
    double most;  /* GB/s that an H200 could: the lower of docs/gpu.md's two floors */
    void (*run)(void *arg);
    void *arg;
    struct {
        void *host, *device;
        size_t bytes;
    } in[4], out[3];
};

static double timed(struct job *j, bool transfers)
{
    struct device_event *from, *to;
    double best = 1e30, s;

    must(device_event_new_timed(dev, &from, &err));
    must(device_event_new_timed(dev, &to, &err));
    for (int r = 0; r < WARM + RUNS; r++) {
        must(device_event_record(dev, from, &err));
        for (int i = 0; transfers && i < 4 && j->in[i].host; i++)
            must(device_put_later(dev, j->in[i].device, j->in[i].host, j->in[i].bytes, &err));
        j->run(j->arg);
        for (int i = 0; transfers && i < 3 && j->out[i].host; i++)
            must(device_get_later(dev, j->out[i].host, j->out[i].device, j->out[i].bytes, &err));
        must(device_event_record(dev, to, &err));
        must(device_event_seconds(dev, from, to, &s, &err));
        if (r >= WARM && s < best)
            best = s;
    }
    device_event_free(dev, from);
    device_event_free(dev, to);
    return best;
}

static void report(struct job *j)
{
    static bool begun;
    double s, with;

    if (!begun)
        printf("op\tshape\tseconds\tGB/s\tGB/s with transfers\tof an H200\tcounted\n");
    begun = true;
    for (int i = 0; i < 4 && j->in[i].host; i++)
        must(device_put(dev, j->in[i].device, j->in[i].host, j->in[i].bytes, &err));
    s = timed(j, false);
    with = timed(j, true);
    printf("%s\t%s\t%.6f\t%.1f\t%.1f\t%.0f %%\t%s\n", j->op, j->shape, s, 1e-9 * j->bytes / s, 1e-9 * j->bytes / with,
           1e-7 * j->bytes / s / j->most, j->what);
}

/* Fast and good enough to be unlike: a congruential generator scrambled. */
static uint64_t number(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return (*s ^ *s >> 29) * 0xff51afd7ed558ccdull;
}

/* docs sequences of `each` elements. */
static struct ragged even(int64_t docs, int64_t each)
{
    int64_t *begin = on_host((size_t)docs * 8), *end = on_host((size_t)docs * 8);
    int64_t *b = on_device((size_t)docs * 8), *e = on_device((size_t)docs * 8);

    for (int64_t i = 0; i < docs; i++) {
        begin[i] = i * each;
        end[i] = begin[i] + each;
    }
    must(device_put(dev, b, begin, (size_t)docs * 8, &err));
    must(device_put(dev, e, end, (size_t)docs * 8, &err));
    return (struct ragged){docs, docs * each, b, e};
}

/* ---- the jobs ---- */

struct sign {
    struct minhash on;
    struct ragged docs;
    uint64_t *hash, *sig;
};

static void run_sign(void *arg)
{
    struct sign *s = arg;

    must(dev->dedup->minhash_sign(dev, &s->on, &s->docs, s->hash, s->sig, &err));
}

static void bench_sign(enum minhash_family family, int n, const char *shape, double most)
{
    enum { DOCS = 100000, EACH = 500 };
    struct sign s = {.docs = even(DOCS, EACH)};
    size_t in = (size_t)DOCS * EACH * 8, out = (size_t)DOCS * (size_t)n * 8;
    uint64_t *host = on_host(in), seed = 1;
    struct job j = {"minhash_sign", shape, "text, 6 bytes a shingle", 6.0 * DOCS * EACH, most, run_sign, &s, {{0}}, {{0}}};
    struct minhash m;

    for (size_t i = 0; i < in / 8; i++)
        host[i] = number(&seed);
    must(minhash_init(&m, family, n, 1));
    must(minhash_to_device(dev, &m, &s.on, &err));
    s.hash = on_device(in);
    s.sig = on_device(out);
    j.in[0].host = host, j.in[0].device = s.hash, j.in[0].bytes = in;
    j.out[0].host = on_host(out), j.out[0].device = s.sig, j.out[0].bytes = out;
    report(&j);
    minhash_free(&m);
    minhash_take_back(dev, &s.on);
    device_free(dev, s.hash);
    device_free(dev, s.sig);
    device_free_host(dev, host);
    device_free_host(dev, j.out[0].host);
}

static void run_keys(void *arg)
{
    must(dev->dedup->band_keys(dev, arg, &err));
}

static void bench_bands(void)
{
    enum { DOCS = 2000000, BANDS = 14, ROWS = 8, N = BANDS * ROWS };
    size_t sig = (size_t)DOCS * N * 8, keys = (size_t)DOCS * BANDS * 8, sketch = (size_t)DOCS * 128;
    struct band_keys p = {DOCS, N, BANDS, ROWS, on_device(sig), on_device(keys), on_device(sketch), 128};
    uint64_t *host = on_host(sig), seed = 4;
    struct job j = {"band_keys", "2e6 documents, 14 bands of 8, sketches", "signatures", (double)sig, 2400, run_keys, &p,
                    {{0}}, {{0}}};

    for (size_t i = 0; i < sig / 8; i++) /* a third of the documents are those before */
        host[i] = i / N % 3 == 2 ? host[i - N] : number(&seed) >> 3;
    j.in[0].host = host, j.in[0].device = (void *)(uintptr_t)p.sig, j.in[0].bytes = sig;
    j.out[0].host = on_host(keys), j.out[0].device = p.key, j.out[0].bytes = keys;
    j.out[1].host = on_host(sketch), j.out[1].device = p.sketch, j.out[1].bytes = sketch;
    report(&j);
    device_free(dev, j.in[0].device);
    device_free(dev, p.key);
    device_free(dev, p.sketch);
    device_free_host(dev, host);
    device_free_host(dev, j.out[0].host);
    device_free_host(dev, j.out[1].host);
}

static void run_copy(void *arg)
{
    char *p = arg;

    must(device_copy(dev, p, p + ((size_t)1 << 30), (size_t)1 << 30, &err));
}

/* What the memory gives: the ceiling of everything else. */
static void bench_copy(void)
{
    char *p = on_device((size_t)2 << 30);
    struct job j = {"copy", "1 GiB", "read and written", 2.0 * (1 << 30), 4800, run_copy, p, {{0}}, {{0}}};

    j.in[0].host = on_host((size_t)1 << 30), j.in[0].device = p + ((size_t)1 << 30), j.in[0].bytes = (size_t)1 << 30;
    j.out[0].host = j.in[0].host, j.out[0].device = p, j.out[0].bytes = (size_t)1 << 30;
    report(&j);
    device_free(dev, p);
    device_free_host(dev, j.in[0].host);
}

/* ---- in order: what matters most comes first ---- */

static void sign_m61(void)
{
    bench_sign(MINHASH_M61, 112, "100e3 documents of 500 shingles, 112 of mersenne 61", 112);
}
static void sign_u32(void)
{
    bench_sign(MINHASH_U32, 260, "100e3 documents of 500 shingles, 260 of 32 bits", 384);
}
static void sign_low32(void)
{
    bench_sign(MINHASH_LOW32, 126, "100e3 documents of 500 shingles, 126 of low 32 bits", 90);
}
static const struct {
    const char *name;
    void (*run)(void);
} all[] = {
    {"copy", bench_copy},       {"minhash_sign, mersenne 61", sign_m61}, {"minhash_sign, 32 bits", sign_u32},
    {"band_keys", bench_bands}, {"minhash_sign, low 32 bits", sign_low32},
};

static const char *name_of(int i) { return all[i].name; }

static int run_one(int i)
{
    all[i].run();
    return 0;
}

static int open_gpu(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(device_open_dedup(&dev, "cuda", 0, NULL, &err));
    printf("# %s\n", dev->name);
    return 0;
}

int main(int argc, char **argv)
{
    const struct job_set jobs = {.n = sizeof all / sizeof *all, .name = name_of, .open = open_gpu, .run = run_one, .dev = &dev,
                                 .limit = LIMIT, .budget = argc > 1 ? atof(argv[1]) : 0};
    struct jobs_result r;
    int rc;

    dup2(STDOUT_FILENO, STDERR_FILENO);
    rc = jobs_run(&jobs, &r);
    return rc < 0 ? 2 : r.failed > 0;
}
