/* Memory of the ops, their time, rows of the table. */
#include "bench/gpu_train/gpu_train.h"

enum { WARM = 2, RUNS = 7 };

struct device *dev;
struct err err;
struct cuda_info info;
int64_t tokens = 16384;
double copy_rate, peak, peak_fp8;
int failed;
void *place[PLACES];
size_t place_bytes;

void must(int rc)
{
    if (rc < 0) {
        printf("gpu_train_bench: %s\n", err.msg);
        fflush(stdout);
        exit(1);
    }
}

void take_places(void)
{
    for (int p = 0; p < PLACES; p++) {
        if (!place[p])
            must(device_alloc(dev, &place[p], place_bytes, &err));
        must(device_put_numbers(dev, place[p], place_bytes, (uint64_t)p, &err));
    }
}

void give_places(void)
{
    for (int p = 0; p < PLACES; p++) {
        device_free(dev, place[p]);
        place[p] = NULL;
    }
}

void put_integers(const int32_t *host, int64_t n)
{
    must(host ? 0 : err_set(&err, ERR_NOMEM, "out of memory"));
    must(device_put(dev, place[7], host, (size_t)n * sizeof *host, &err));
}

double best_of(job_fn *run, const int64_t *n)
{
    struct device_event *from, *to;
    double best = 1e30, s;
    int rc = 0;

    must(device_event_new_timed(dev, &from, &err));
    must(device_event_new_timed(dev, &to, &err));
    for (int r = 0; r < WARM + RUNS && rc == 0; r++) {
        must(device_event_record(dev, from, &err));
        rc = run(n);
        if (rc == 0)
            rc = device_event_record(dev, to, &err);
        if (rc == 0)
            rc = device_event_seconds(dev, from, to, &s, &err);
        if (rc == 0 && r >= WARM && s < best)
            best = s;
    }
    device_event_free(dev, from);
    device_event_free(dev, to);
    return rc < 0 ? -1 : best;
}

void row(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops, double of)
{
    static bool begun;
    double best = best_of(run, n);

    if (!begun)
        printf("op\tshape\tseconds\tGB/s\tof a copy\tTFLOP/s\tof the peak\n");
    begun = true;
    if (best < 0) {
        printf("%s\t%s\tdoes not run: %s\n", op, shape, err.msg);
        failed++;
        return;
    }
    printf("%s\t%s\t%.6f\t%.0f\t%.0f %%\t%.0f\t%.0f %%\n", op, shape, best, 1e-9 * bytes / best,
           100 * bytes / best / copy_rate, 1e-12 * flops / best, 100 * flops / best / of);
}

void job(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops)
{
    row(op, shape, run, n, bytes, flops, peak);
}

int run_copy(const int64_t *n) { return device_copy(dev, place[1], place[0], (size_t)n[0], &err); }
