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

/* ---- plans ---- */

struct plan_machine machine;
static enum plan_op stood = PLAN_OPS;
static struct plan_dims stood_dims;

void stands_for(enum plan_op op, struct plan_dims d)
{
    stood = op;
    stood_dims = d;
}

/* Appends a line to the device's file, if there is to be one. */
static void keep(double seconds)
{
    const char *path = getenv("QUERN_DEVICE_FILE");
    const struct plan_dims *d = &stood_dims;
    FILE *f = path ? fopen(path, "a") : NULL;

    if (!f)
        return;
    fseek(f, 0, SEEK_END);
    if (ftell(f) == 0)
        fprintf(f, "{\"device\":\"%s\",\"version\":1}\n", dev->name);
    fprintf(f, "{\"op\":\"%s\",\"m\":%lld,\"n\":%lld,\"k\":%lld,\"d\":%lld,\"kv\":%lld,\"seconds\":%.9g}\n",
            plan_op_name(stood), (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->d, (long long)d->kv, seconds);
    fclose(f);
}

/* Ends a row with what was planned of its op, which stands for no other. */
static void end_row(double seconds)
{
    if (stood < PLAN_OPS && machine.rates.bytes > 0)
        printf("\t%.6f", plan_op_seconds(&machine.rates, stood, &stood_dims, true, NULL));
    putchar('\n');
    if (stood < PLAN_OPS)
        keep(seconds);
    stood = PLAN_OPS;
}

void row(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops, double of)
{
    static bool begun;
    double best = best_of(run, n);

    if (!begun)
        printf("op\tshape\tseconds\tGB/s\tof a copy\tTFLOP/s\tof the peak\tplanned\n");
    begun = true;
    if (best < 0) {
        printf("%s\t%s\tdoes not run: %s\n", op, shape, err.msg);
        failed++;
        stood = PLAN_OPS;
        return;
    }
    printf("%s\t%s\t%.6f\t%.0f\t%.0f %%\t%.0f\t%.0f %%", op, shape, best, 1e-9 * bytes / best,
           100 * bytes / best / copy_rate, 1e-12 * flops / best, 100 * flops / best / of);
    end_row(best);
}

void job(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops)
{
    row(op, shape, run, n, bytes, flops, peak);
}

int run_copy(const int64_t *n) { return device_copy(dev, place[1], place[0], (size_t)n[0], &err); }
