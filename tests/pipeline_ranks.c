/* A pipeline of ranks whose stages sleep instead of computing; run by tests/slow/train_parallel.sh and bench/pipeline.sh
 * under mpirun:
 *   pipeline_ranks CHUNKS MICRO-BATCHES MILLISECONDS
 * Every message must be the one that is due.  Forward of a stage sleeps so long, backward twice as long, a chunk its share
 * of that; the first rank prints how long a stage was idle as a share of the time it was busy, and what the formula says.
 * Exit status 3: a call failed, with its message; 1: a message was another one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "train/pipeline.h"

enum {
    ELEMENTS = 50000, /* too many for MPI to send them unasked */
    PIECES = 100      /* of an operation, as a model has its matrix products */
};

struct stage {
    struct comm *world;
    int rank, ranks, chunks;
    double seconds, busy;
    int wrong;
};

/* What goes on from the v-th part of the model, forward or back. */
static float content(bool back, int part, int64_t micro, int i)
{
    return (float)((back ? 0.5 : 0.25) + part + 100 * (double)micro) + (float)(i % 7);
}

static void sleep_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    if (seconds > 0)
        nanosleep(&t, NULL);
}

static int pass(void *arg, const struct pipeline_op *op, const void *in, void *out, struct err *e)
{
    struct stage *s = arg;
    int part = op->chunk * s->ranks + s->rank, from = op->back ? part + 1 : part - 1, last = s->ranks * s->chunks - 1;
    const float *got = in;
    float *give = out;
    double start = log_seconds(), left;

    s->wrong += (got != NULL) != (from >= 0 && from <= last);
    s->wrong += (give != NULL) != (op->back ? part > 0 : part < last);
    for (int i = 0; got && i < ELEMENTS; i++)
        s->wrong += got[i] != content(op->back, from, op->micro, i);
    for (int i = 0; give && i < ELEMENTS; i++)
        give[i] = content(op->back, part, op->micro, i);
    left = s->seconds * (op->back ? 2 : 1) / s->chunks - (log_seconds() - start);
    for (int i = 0; i < PIECES; i++) {
        sleep_for(left / PIECES);
        TRY(comm_progress(s->world, e));
    }
    s->busy += log_seconds() - start;
    return 0;
}

static int go(struct comm *world, struct device *dev, struct stage *s, int64_t micros, struct err *e)
{
    struct pipeline p = {0};
    double sum[3] = {0};
    int rc;

    s->world = world;
    s->rank = world->rank;
    s->ranks = world->size;
    rc = pipeline_open(&p, world, s->chunks, dev, ELEMENTS, COMM_F32, e);
    for (int forward = 1; forward >= 0 && rc == 0; forward--) {
        double start;

        rc = comm_barrier(world, e);
        s->busy = 0;
        start = log_seconds();
        if (rc == 0)
            rc = pipeline_pass(&p, micros, forward, pass, s, e);
        if (rc == 0)
            rc = comm_barrier(world, e);
        sum[0] = log_seconds() - start;
    }
    sum[1] = s->busy;
    sum[2] = s->wrong;
    if (rc == 0)
        rc = comm_all_reduce(world, sum, 3, COMM_F64, COMM_SUM, e);
    s->wrong = (int)sum[2];
    if (rc == 0 && world->rank == 0)
        printf("%.4f %.4f\n", sum[0] / sum[1] - 1, (double)(s->ranks - 1) / (double)(micros * s->chunks));
    pipeline_close(&p);
    return rc;
}

int main(int argc, char **argv)
{
    struct stage s = {0};
    struct comm *world = NULL;
    struct device *dev = NULL;
    struct err e;
    int rc;

    if (argc != 4)
        return 2;
    s.chunks = (int)strtol(argv[1], NULL, 10);
    s.seconds = strtod(argv[3], NULL) / 1000;
    rc = comm_open(&world, "auto", 60, &e);
    if (rc == 0)
        rc = device_open(&dev, "cpu", 1, &e);
    if (rc == 0)
        rc = go(world, dev, &s, strtol(argv[2], NULL, 10), &e);
    if (rc < 0)
        fprintf(stderr, "pipeline_ranks: %s\n", e.msg);
    device_close(dev);
    comm_close(world);
    return rc < 0 ? 3 : s.wrong ? 1 : 0;
}
