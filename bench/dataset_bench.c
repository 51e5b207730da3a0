/* Builds the sample index of a made-up dataset of N documents: seconds and peak memory.
 *     dataset_bench make PREFIX DOCUMENTS MEAN_LENGTH     .idx, and a .bin that is one hole
 *     dataset_bench index PREFIX SEQ SAMPLES JOBS [CACHE]  SAMPLES < 0: one epoch */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "indexed_dataset/gpt_dataset.h"

enum { BLOCK = 1 << 16 };

static int fail(const struct err *e)
{
    fprintf(stderr, "dataset_bench: %s\n", e->msg);
    return 1;
}

/* The length of document d: 1 to twice the mean, always the same. */
static int32_t length_of(uint64_t d, int32_t mean)
{
    uint32_t w[4];
    rng_philox(1, d, 0, w);
    return 1 + (int32_t)(w[0] % (2 * (uint32_t)mean - 1));
}

static int make(const char *prefix, uint64_t n, int32_t mean)
{
    static int32_t len[BLOCK];
    static int64_t at[BLOCK];
    char path[4096];
    uint8_t head[34] = "MMIDIDX\0";
    uint64_t version = 1, ends = n + 1;
    int64_t offset = 0;
    struct file_out *f;
    struct err e;

    memcpy(head + 9, &version, 8);
    head[17] = 8;
    memcpy(head + 18, &n, 8);
    memcpy(head + 26, &ends, 8);
    snprintf(path, sizeof path, "%s.idx", prefix);
    if (file_create(&f, path, 0, &e) < 0 || file_write(f, head, sizeof head, &e) < 0)
        return fail(&e);
    for (int pass = 0; pass < 3; pass++)
        for (uint64_t d = 0; d < n + (pass == 2); d += BLOCK) {
            uint64_t k = n + (pass == 2) - d < BLOCK ? n + (pass == 2) - d : BLOCK;
            for (uint64_t i = 0; i < k; i++) {
                len[i] = pass < 2 ? length_of(d + i, mean) : 0;
                at[i] = pass == 2 ? (int64_t)(d + i) : offset;
                offset += pass == 1 ? 2 * (int64_t)len[i] : 0;
            }
            if (file_write(f, pass ? (void *)at : (void *)len, k * (pass ? 8 : 4), &e) < 0)
                return fail(&e);
        }
    if (file_commit(f, &e) < 0)
        return fail(&e);
    snprintf(path, sizeof path, "%s.bin", prefix);
    FILE *bin = fopen(path, "wb");
    return !bin || ftruncate(fileno(bin), offset) < 0 || fclose(bin) != 0;
}

static int build(const char *prefix, int64_t seq, int64_t samples, int jobs, const char *cache)
{
    struct gpt_conf c = {.paths = {&prefix, 1}, .split = "1", .seq_length = seq, .samples = {samples, 0, 0},
                         .seed = 1234, .cache = cache, .jobs = jobs};
    struct gpt_dataset *d[GPT_SPLITS];
    struct rusage u;
    struct err e;
    double start = log_seconds();

    if (gpt_dataset_open(d, &c, &e) < 0)
        return fail(&e);
    getrusage(RUSAGE_SELF, &u);
    printf("%" PRId64 " samples, %.2f s, %.2f s of CPU, at most %.0f MB in memory\n", gpt_dataset_samples(d[0]),
           log_seconds() - start, (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_sec +
           1e-6 * (double)u.ru_stime.tv_usec, (double)u.ru_maxrss / 1024);
    for (int i = 0; i < GPT_SPLITS; i++)
        gpt_dataset_close(d[i]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "make") == 0)
        return make(argv[2], strtoull(argv[3], NULL, 10), atoi(argv[4]));
    if (argc >= 6 && strcmp(argv[1], "index") == 0)
        return build(argv[2], atoll(argv[3]), atoll(argv[4]), atoi(argv[5]), argc > 6 ? argv[6] : NULL);
    fprintf(stderr, "dataset_bench make PREFIX DOCUMENTS MEAN | index PREFIX SEQ SAMPLES JOBS [CACHE]\n");
    return 2;
}
