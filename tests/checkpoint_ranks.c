/* Checkpoints of several ranks, divided at random; run by tests/slow/checkpoint_ranks.sh under mpirun:
 *   checkpoint_ranks MODE DIR STEP SEED
 * A seed says how tensors are divided among however many ranks there are.  Exit status 3: a call
 * failed, with its message.  FAULTS=N: mode fault tries every N-th call of the system. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "tests/failing_calls.h"
#include "train/saver.h"

static struct comm *world;
static struct device *dev;
static struct err err;
static int failures;

static void must(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "checkpoint_ranks, rank %d: %s\n", world ? world->rank : 0, err.msg);
    exit(3);
}

static void expect(int good, const char *what)
{
    if (good)
        return;
    failures++;
    fprintf(stderr, "rank %d of %d: %s (%s)\n", world->rank, world->size, what, err.msg);
}

/* ---- tensors, and how a seed divides them ---- */

static const struct tensor {
    const char *name;
    int dims;
    int64_t rows, cols;
} tensors[] = {
    {"embedding.word_embeddings.weight", 2, 97, 24}, {"decoder.layers.0.mlp.linear_fc2.weight", 2, 24, 96},
    {"decoder.layers.0.mlp.linear_fc2.bias", 1, 24, 1}, {"decoder.final_layernorm.weight", 1, 331, 1},
    {"one.row", 2, 1, 300}, {"one.column", 2, 200, 1}, {"one.element", 1, 1, 1}, {"square", 2, 64, 64},
};
enum { TENSORS = sizeof tensors / sizeof *tensors, MOST = 100000 };

static uint64_t state;

static int64_t below(int64_t n) /* the same on all ranks */
{
    state = hash_mix64(state + 0x9e3779b97f4a7c15u);
    return (int64_t)(state % (uint64_t)n);
}

static float value(int64_t step, const struct piece *p, int64_t row, int64_t col)
{
    uint64_t h = hash_xxh3_64_seed(span_of(p->name), (uint64_t)step * 3 + (uint64_t)p->part);

    h = hash_mix64(h + (uint64_t)(row * piece_width(p) + col));
    return (float)(int64_t)(h & 0xffffff) - 0x7fffff;
}

static struct piece mine[MOST];
static int n_mine;

/* To rank r, with room between its rows. */
static void give(const struct piece *p, int r)
{
    int64_t gap = below(3) ? 0 : 3;

    if (r != world->rank || p->rows < 1 || p->cols < 1)
        return;
    mine[n_mine] = *p;
    mine[n_mine].ld = p->cols + gap;
    mine[n_mine].data = malloc((size_t)(p->rows * (p->cols + gap)) * sizeof(float));
    if (!mine[n_mine++].data || n_mine == MOST)
        exit(4);
}

/* One rank has it, or several, or all. */
static void to_ranks(const struct piece *p)
{
    int64_t how = below(4), some = below(INT64_C(1) << 32) | INT64_C(1) << below(world->size);

    if (how < 2)
        give(p, (int)below(world->size));
    else
        for (int r = 0; r < world->size; r++)
            if (how == 2 || some >> r & 1)
                give(p, r);
}

/* Cut by rows or columns, again and again. */
static void cut(struct piece p, int depth)
{
    struct piece q = p;

    if (depth == 0 || below(6) == 0 || p.rows * p.cols < 2) {
        to_ranks(&p);
        return;
    }
    if (p.cols < 2 || (p.rows > 1 && below(2))) {
        p.rows = 1 + below(p.rows - 1);
        q.row += p.rows;
        q.rows -= p.rows;
    } else {
        p.cols = 1 + below(p.cols - 1);
        q.col += p.cols;
        q.cols -= p.cols;
    }
    cut(p, depth - 1);
    cut(q, depth - 1);
}

/* Ranges of its elements, as ZeRO divides. */
static void flat(const struct piece *p)
{
    int64_t all = p->rows * p->cols, at = 0, n;
    struct piece out[3];

    for (int r = 0; r < world->size; r++, at += n) {
        n = r == world->size - 1 ? all - at : below(2) ? below(all - at + 1) : (all - at) / (world->size - r);
        if (n == 0)
            continue;
        for (int k = piece_range(p, at, n, out); k-- > 0;)
            give(&out[k], r);
    }
}

/* seed 0: every rank has all, as with data parallelism alone. */
static void divide(uint64_t seed)
{
    for (int i = 0; i < n_mine; i++)
        free(mine[i].data);
    n_mine = 0;
    state = seed;
    for (int k = 0; k < CHECKPOINT_PARTS; k++)
        for (int i = 0; i < TENSORS; i++) {
            const struct tensor *t = &tensors[i];
            struct piece p = {.part = (enum checkpoint_part)k, .name = t->name, .dims = t->dims,
                              .shape = {t->rows, t->cols}, .rows = t->rows, .cols = t->cols};

            if (seed == 0)
                for (int r = 0; r < world->size; r++)
                    give(&p, r);
            else if (below(2))
                flat(&p);
            else
                cut(p, (int)below(6));
        }
}

static float *number(const struct piece *p, int64_t row, int64_t col)
{
    return (float *)p->data + row * p->ld + col;
}

static void fill(int64_t step)
{
    for (int i = 0; i < n_mine; i++)
        for (int64_t r = 0; r < mine[i].rows; r++)
            for (int64_t c = 0; c < mine[i].ld; c++)
                *number(&mine[i], r, c) =
                    step < 0 ? NAN : c < mine[i].cols ? value(step, &mine[i], mine[i].row + r, mine[i].col + c) : NAN;
}

static void check(int64_t step)
{
    for (int i = 0; i < n_mine; i++)
        for (int64_t r = 0; r < mine[i].rows; r++)
            for (int64_t c = 0; c < mine[i].ld; c++) {
                float have = *number(&mine[i], r, c);

                if (c < mine[i].cols ? have != value(step, &mine[i], mine[i].row + r, mine[i].col + c) : !isnan(have)) {
                    expect(0, mine[i].name);
                    return;
                }
            }
}

/* ---- modes ---- */

static struct model_config model = {.layers = 2, .hidden = 24, .heads = 2, .seq = 8, .vocab = 50, .init_std = 0.02};

static struct checkpoint_info info_of(int64_t step)
{
    return (struct checkpoint_info){.iteration = step, .consumed = step, .model = model};
}

/* Beside something that goes on, until it is there or failed. */
static int save(struct saver *s, int64_t step, bool async)
{
    struct checkpoint_info info = info_of(step);
    int64_t done = -1;
    int rc;

    fill(step);
    must(saver_start(s, &info, &err));
    if (async)
        fill(-1); /* a copy was made */
    do {
        rc = saver_done(s, !async, &done, &err);
        must(rc);
        if (rc == SAVER_NOTHING)
            usleep(500);
    } while (rc == SAVER_NOTHING);
    expect(done == step, "the step that was saved");
    return rc;
}

static int64_t sum(int64_t v, enum comm_op op)
{
    must(comm_all_reduce(world, &v, 1, COMM_I64, op, &err));
    return v;
}

/* Everything is written once, and what all have in equal shares. */
static void check_share(uint64_t seed)
{
    int64_t all = 0, share = 0;
    struct piece *v;
    int n;

    must(pieces_share(world, mine, n_mine, &v, &n, &err));
    for (int i = 0; i < TENSORS; i++)
        all += tensors[i].rows * tensors[i].cols * CHECKPOINT_PARTS;
    for (int i = 0; i < n; i++)
        share += v[i].rows * v[i].cols;
    expect(sum(share, COMM_SUM) == all, "each element has one writer");
    if (seed == 0)
        expect(sum(share, COMM_MAX) - sum(share, COMM_MIN) <= 600, "the shares are equal up to a row at each end");
    free(v);
}

static void run_save(const char *dir, int64_t step, uint64_t seed)
{
    bool async = step % 2;
    struct saver *s;

    divide(seed);
    check_share(seed);
    must(saver_open(&s, world, dev, dir, NULL, mine, n_mine, async, &err));
    expect(save(s, step, async) == SAVER_SAVED, "saved");
    expect(save(s, step, async) == SAVER_SAVED, "saved in the place of the other");
    saver_close(s);
}

static int64_t load(const char *dir, int64_t step)
{
    struct checkpoint *ck;
    int rc = checkpoint_open_all(&ck, world, dir, step, &err);

    if (rc < 0 || !ck)
        return rc < 0 ? rc : 0;
    step = checkpoint_info(ck)->iteration;
    fill(-1);
    must(checkpoint_load(ck, dev, mine, n_mine, &err));
    check(step);
    checkpoint_close(ck);
    return step;
}

static void run_load(const char *dir, int64_t want, uint64_t seed)
{
    for (uint64_t i = 0; i < 6; i++) {
        int64_t got;

        divide(seed + i);
        got = load(dir, CHECKPOINT_LAST);
        expect(want ? got == want : got >= 0, "the last checkpoint");
        if (world->rank == 0 && i == 0)
            printf("loaded %lld\n", (long long)got);
    }
}

static int count(const char *path, const char *start, char names[][256])
{
    DIR *d = opendir(path);
    struct dirent *f;
    int n = 0;

    while (d && (f = readdir(d)))
        if (f->d_name[0] != '.' || f->d_name[1] == 'i')
            if (strncmp(f->d_name, start, strlen(start)) == 0) {
                if (names)
                    snprintf(names[n], 256, "%s", f->d_name);
                n++;
            }
    if (d)
        closedir(d);
    return n;
}

static void spew(const char *path, const char *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
        exit(4);
}

/* Each file of checkpoint step is damaged in turn; all ranks go to the one before it. */
static void run_damage(const char *dir, int64_t step, uint64_t seed)
{
    static char names[64][256];
    char folder[512], path[1024];
    int n;

    divide(seed);
    snprintf(folder, sizeof folder, "%s/iter_%07lld", dir, (long long)step);
    n = count(folder, "", names);
    expect(n >= 3, "files in the checkpoint");
    must(comm_barrier(world, &err));
    for (int i = 0; i < n * 4; i++) {
        struct buf b = {0};

        snprintf(path, sizeof path, "%s/%s", folder, names[i / 4]);
        if (world->rank == 0) {
            must(file_read_all(path, 1 << 28, &b, &err));
            if (i % 4 < 2) {
                size_t at = i % 4 ? (size_t)below((int64_t)b.n) : b.n - 1;

                b.p[at] ^= 4;
                spew(path, b.p, b.n);
                b.p[at] ^= 4;
            } else if (i % 4 == 2) {
                spew(path, b.p, b.n / 2);
            } else {
                unlink(path);
            }
        }
        must(comm_barrier(world, &err));
        expect(load(dir, CHECKPOINT_LAST) == step - 1, names[i / 4]);
        expect(load(dir, step) < 0 && strstr(err.msg, names[i / 4]), "the damaged file is named");
        must(comm_barrier(world, &err));
        if (world->rank == 0)
            spew(path, b.p, b.n);
        buf_free(&b);
        must(comm_barrier(world, &err));
    }
    expect(load(dir, CHECKPOINT_LAST) == step, "whole again");
}

/* The last rank has no room on its disk. */
static void run_full(const char *dir, int64_t step, uint64_t seed)
{
    struct rlimit was, now;
    struct saver *s;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    for (int async = 0; async < 2; async++, step++) {
        divide(seed);
        must(saver_open(&s, world, dev, dir, NULL, mine, n_mine, async, &err));
        now = was;
        now.rlim_cur = world->rank == world->size - 1 ? 1000 : was.rlim_cur;
        setrlimit(RLIMIT_FSIZE, &now);
        expect(save(s, step, async) == SAVER_FAILED, "failed");
        expect(strstr(err.msg, "cannot write") && strstr(err.msg, "File too large"), "the reason is said");
        expect(count(dir, ".iter", NULL) == 0, "nothing is left");
        setrlimit(RLIMIT_FSIZE, &was);
        must(comm_barrier(world, &err));
        expect(load(dir, CHECKPOINT_LAST) == step - 1, "the earlier one stands");
        fill(0);
        expect(save(s, step, async) == SAVER_SAVED, "the next is saved");
        saver_close(s);
    }
}

/* Descriptors and threads of this process. */
static int held(void)
{
    return count("/proc/self/fd", "", NULL) * 1000 + count("/proc/self/task", "", NULL);
}

/* Whether so much is held again: a thread that has been joined may be seen for a moment yet. */
static bool holds(int had)
{
    for (int i = 0; i < 1000 && held() != had; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return held() == had;
}

/* One save in which on rank r the n-th call fails.  False: there are fewer.  *last: the step that stands. */
static bool save_with_fault(struct saver *s, const char *dir, int64_t step, bool async, int r, long n, int error, int64_t *last)
{
    int had = held(), rc;
    const char *call;
    int64_t fired;

    if (world->rank == r)
        failing_arm(n, error);
    rc = save(s, step, async);
    call = failing_disarm();
    fired = sum(call != NULL, COMM_SUM);
    expect(sum(rc, COMM_MIN) == sum(rc, COMM_MAX), "all ranks agree");
    expect(holds(had), "no descriptor and no thread is left");
    if (rc == SAVER_FAILED) {
        if (!fired || !strstr(err.msg, dir) || !strstr(err.msg, strerror(error)))
            expect(0, "it is said which file and why");
        expect(count(dir, ".iter", NULL) == 0, "nothing is left");
    }
    must(comm_barrier(world, &err));
    fired |= error == 0;
    *last = load(dir, CHECKPOINT_LAST);
    expect(*last == step || (rc == SAVER_FAILED && *last == step - 1), fired && call ? call : "a whole one stands");
    must(comm_barrier(world, &err));
    return fired;
}

/* Each call of the system that saving makes, on the first rank and the last, fails: of a step that is new, and of one that
 * is there.  Training could go on, what stood stands, and the next save is good. */
static void run_fault(const char *dir, int64_t step, uint64_t seed)
{
    static const int errors[] = {ENOSPC, EIO, EINTR};
    const char *every = getenv("FAULTS");
    int stride = every ? atoi(every) : 1, points = 0;
    int64_t last = step;

    for (int async = 0; async < 2; async++) {
        struct saver *s;

        divide(seed + (uint64_t)async);
        must(saver_open(&s, world, dev, dir, NULL, mine, n_mine, async, &err));
        expect(save(s, last, async) == SAVER_SAVED, "before");
        for (int r = 0; r < world->size; r += world->size > 1 ? world->size - 1 : 1)
            for (int new = 0; new < 2; new++)
                for (long n = 1 + below(stride);; n += stride, points++) {
                    step = last + new;
                    if (!save_with_fault(s, dir, step, async, r, n, errors[points % 3], &last))
                        break;
                }
        for (int r = 0; r < world->size; r++)
            save_with_fault(s, dir, last + 1, async, r, 1, 0, &last);
        expect(save(s, ++last, async) == SAVER_SAVED, "the next");
        expect(load(dir, CHECKPOINT_LAST) == last && count(dir, ".iter", NULL) == 0, "nothing is left behind it");
        must(comm_barrier(world, &err));
        saver_close(s);
    }
    if (world->rank == 0)
        printf("%d faults\n", points);
}

/* No rank has the corner of one tensor. */
static void run_hole(const char *dir, int64_t step, uint64_t seed)
{
    struct saver *s;

    divide(seed);
    for (int i = n_mine; i-- > 0;)
        if (strcmp(mine[i].name, "square") == 0 && mine[i].row + mine[i].col == 0)
            mine[i] = mine[--n_mine];
    expect(saver_open(&s, world, dev, dir, NULL, mine, n_mine, step % 2, &err) == ERR_ARG, "refused");
    expect(strstr(err.msg, "square' all ranks together have ") != NULL, "the tensor is named");
}

/* Saves until it is killed. */
static void run_loop(const char *dir, int64_t step, uint64_t seed)
{
    char path[512];
    struct saver *s;
    FILE *f;

    snprintf(path, sizeof path, "%s/pid.%d", dir, world->rank);
    f = fopen(path, "w");
    if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0)
        exit(4);
    divide(seed);
    must(saver_open(&s, world, dev, dir, NULL, mine, n_mine, seed % 2, &err));
    for (;; step++) {
        expect(save(s, step, seed % 2) == SAVER_SAVED, "saved");
        if (world->rank == 0)
            printf("%lld\n", (long long)step);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *dir, int64_t step, uint64_t seed);
    } modes[] = {{"save", run_save}, {"load", run_load}, {"damage", run_damage}, {"full", run_full}, {"hole", run_hole},
                 {"loop", run_loop}, {"fault", run_fault}};
    const size_t n = sizeof modes / sizeof *modes;
    size_t m = 0;

    must(comm_open(&world, "auto", 60, &err));
    log_init("checkpoint_ranks", LOG_ERROR);
    while (m < n && (argc != 5 || strcmp(argv[1], modes[m].name) != 0))
        m++;
    if (m == n)
        return 2;
    must(device_open(&dev, "cpu", 1, &err));
    must(model_config_check(&model, 16, &err));
    modes[m].run(argv[2], strtoll(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    if (world->rank == 0 && failures == 0)
        printf("%s: %d ranks\n", argv[1], world->size);
    device_close(dev);
    comm_close(world);
    return failures != 0;
}
