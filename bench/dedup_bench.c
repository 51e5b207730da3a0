/* What one core does with text in memory: bench/dedup.sh builds and runs it.
 *
 *     dedup_bench FILE.jsonl   prints "name<TAB>value<TAB>unit<TAB>note", medians of 5
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "bench/measure.h"
#include "curate/stream/doc.h"
#include "curate/dedup/minhash_text.h"
#include "kernels/text_hash.h"

enum { RUNS = 5, MAX_DOCS = 1 << 22 };

struct corpus {
    struct span *text;
    size_t docs, bytes;
};

static int read_corpus(struct corpus *c, const char *path, struct arena *a, struct err *e)
{
    static struct buf b; /* the documents point into it */
    struct json_reader *r = json_reader_new();

    c->text = malloc(MAX_DOCS * sizeof *c->text);
    TRY(file_read_all(path, 1u << 31, &b, e));
    if (!c->text || !r || buf_reserve(&b, JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (size_t at = 0; at < b.n && c->docs < MAX_DOCS;) {
        const char *end = memchr(b.p + at, '\n', b.n - at);
        struct span line = {b.p + at, end ? (size_t)(end - b.p) - at : b.n - at};
        struct doc d;
        doc_init(&d, a);
        d.file = path;
        d.offset = at;
        TRY(doc_parse(&d, r, line, e));
        c->text[c->docs++] = d.text;
        c->bytes += d.text.n;
        at += line.n + 1;
    }
    json_reader_free(r);
    return 0;
}

static void bench_exact(const struct corpus *c)
{
    double t[RUNS];
    volatile uint64_t sink = 0;
    uint64_t hash[2];

    for (int k = 0; k < RUNS; k++) {
        double start = cpu_seconds();
        for (size_t i = 0; i < c->docs; i++) {
            ISA_PICK(text_hash_one)(c->text[i].p, c->text[i].n, hash);
            sink += hash[0];
        }
        t[k] = cpu_seconds() - start;
    }
    (void)sink;
    printf("dedup-exact-hash\t%.1f\tGB/s\tXXH3-128 of text in memory, one core\n",
           (double)c->bytes / 1e9 / median(t, RUNS));
}

static int bench_preset(const struct corpus *c, const char *name, struct err *e)
{
    const struct minhash_preset *p = minhash_preset_find(name);
    int bands = p->bands, rows = p->rows;
    double text[RUNS], all[RUNS], last[RUNS];
    uint64_t sig[MINHASH_MAX], *copy;
    const uint64_t *hash;
    size_t n, shingles = 0;
    struct shingler *s;
    struct minhash m;

    if (!bands)
        minhash_choose(0.8, MINHASH_OWN_HASHES, &bands, &rows);
    TRY(minhash_init(&m, p->family, bands * rows, p->seed));
    TRY(shingler_new(&s, p, p->family == MINHASH_U32 ? m.a32[0] : 0, e));
    copy = calloc(4096, sizeof *copy);
    for (int k = 0; k < RUNS; k++) {
        double start = cpu_seconds();
        shingles = 0;
        for (size_t i = 0; i < c->docs; i++) {
            TRY(shingler_run(s, c->text[i], &hash, &n, e));
            shingles += n;
        }
        text[k] = cpu_seconds() - start;
        start = cpu_seconds();
        for (size_t i = 0; i < c->docs; i++) {
            TRY(shingler_run(s, c->text[i], &hash, &n, e));
            if (n)
                minhash_signature(&m, hash, n, sig);
            if (n >= 4096)
                memcpy(copy, hash, 4096 * sizeof *copy);
        }
        all[k] = cpu_seconds() - start;
        start = cpu_seconds();
        for (int i = 0; i < 500; i++)
            minhash_signature(&m, copy, 4096, sig);
        last[k] = cpu_seconds() - start;
    }
    printf("dedup-%s-shingles\t%.1f\tMB/s\ttext to shingle set, one core\n", name,
           (double)c->bytes / 1e6 / median(text, RUNS));
    printf("dedup-%s-signature\t%.1f\tMB/s\ttext to signature, one core; %.2f bytes a shingle\n",
           name, (double)c->bytes / 1e6 / median(all, RUNS), (double)c->bytes / (double)shingles);
    printf("dedup-%s-minima\t%.1f\tM/s\tshingles through %d functions, one core\n", name,
           500 * 4096 / 1e6 / median(last, RUNS), bands * rows);
    free(copy);
    shingler_free(s);
    minhash_free(&m);
    return 0;
}

int main(int argc, char **argv)
{
    struct corpus c = {0};
    struct arena a = {0};
    struct err e = {0};

    if (argc != 2 || read_corpus(&c, argv[1], &a, &e) < 0) {
        fprintf(stderr, "dedup_bench: %s\n", argc == 2 ? e.msg : "say which file");
        return 1;
    }
    bench_exact(&c);
    for (int i = 0; minhash_preset_at(i); i++)
        if (bench_preset(&c, minhash_preset_at(i)->name, &e) < 0) {
            fprintf(stderr, "dedup_bench: %s\n", e.msg);
            return 1;
        }
    arena_free(&a);
    free(c.text);
    return 0;
}
