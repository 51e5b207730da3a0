/* Every collective among ranks, against values computed here; run by comm.sh and comm_nccl*.sh.
 * comm_ranks MODE [NUMBER [BACKEND]]; exit status 3: a call failed, with its message.  With the backend nccl the calls are those
 * on a device, which has the host's memory and streams of tests/streams.h; files is ranks of the folder $RANKS_FOLDER, and their
 * calls may stand still for $RANKS_TIMEOUT seconds. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bf16.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/files.h"
#include "comm/rendezvous.h"
#include "tests/streams.h"

static struct comm *world;
static struct err err;
static int failures;
static bool device;

static const enum comm_type types[] = {COMM_U8, COMM_I32, COMM_I64, COMM_F32, COMM_F64, COMM_BF16};

static void must(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "comm_ranks: %s\n", err.msg);
    exit(3);
}

/* ---- a device ---- */

static int bind_device(void *d, struct err *e)
{
    (void)d, (void)e;
    return 0;
}

static void *own_stream(void *d)
{
    (void)d;
    return NULL;
}

static int stream_new(void *d, void **s, struct err *e)
{
    (void)d, (void)e;
    *s = test_stream_new();
    return 0;
}

static void stream_free(void *d, void *s)
{
    (void)d;
    test_stream_free(s);
}

static int event_new(void *d, void **ev, struct err *e)
{
    (void)d, (void)e;
    *ev = test_event_new();
    return 0;
}

static void event_free(void *d, void *ev)
{
    (void)d;
    test_event_free(ev);
}

static int event_record(void *d, void *ev, void *s, struct err *e)
{
    (void)d, (void)e;
    test_event_record(ev, s);
    return 0;
}

static int event_after(void *d, void *ev, void *s, struct err *e)
{
    (void)d, (void)e;
    test_event_after(ev, s);
    return 0;
}

static int event_query(void *d, void *ev, bool *come, struct err *e)
{
    (void)d, (void)e;
    *come = test_event_query(ev);
    return 0;
}

static int device_copy(void *d, void *to, const void *from, size_t bytes, void *s, struct err *e)
{
    (void)d, (void)s, (void)e;
    memcpy(to, from, bytes);
    return 0;
}

static const struct comm_device the_device = {
    .host = true, .bind = bind_device, .stream = own_stream, .stream_new = stream_new, .stream_free = stream_free,
    .event_new = event_new, .event_free = event_free, .record = event_record, .after = event_after, .query = event_query,
    .copy = device_copy,
};

static void expect(int good, struct comm *c, const char *what, enum comm_type t, size_t n)
{
    if (good)
        return;
    failures++;
    fprintf(stderr, "rank %d of %d in '%s': wrong %s of %zu %s\n", c->rank, c->size, c->name, what, n,
            comm_type_name(t));
}

/* Element i of what rank r gives: large and small, of both signs, so that order shows. */
static void put(void *buf, size_t at, enum comm_type t, int r, size_t i)
{
    uint64_t h = (i * 0x9e3779b97f4a7c15u + (uint64_t)r * 0xd1b54a32d192ed03u) ^ (uint64_t)r << 40;
    double v;

    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    v = ldexp((double)(int64_t)h / 9.3e18, (int)(h >> 7 & 15));
    switch (t) {
    case COMM_U8: ((uint8_t *)buf)[at] = (uint8_t)h; break;
    case COMM_I32: ((uint32_t *)buf)[at] = (uint32_t)h; break;
    case COMM_I64: ((uint64_t *)buf)[at] = h; break;
    case COMM_F32: ((float *)buf)[at] = (float)v; break;
    case COMM_F64: ((double *)buf)[at] = v; break;
    case COMM_BF16: ((uint16_t *)buf)[at] = bf16_of((float)v); break;
    }
}

/* The tree of comm.h by its definition: halves at the largest power of two below. */
#define TREE(name, T, WIDE)                                                                         \
    static T tree_##name(const T *v, int n, enum comm_op op)                                        \
    {                                                                                               \
        int half = 1;                                                                               \
        T a, b;                                                                                     \
        if (n == 1)                                                                                 \
            return v[0];                                                                            \
        while (half * 2 < n)                                                                        \
            half *= 2;                                                                              \
        a = tree_##name(v, half, op), b = tree_##name(v + half, n - half, op);                      \
        return op == COMM_SUM ? (T)((WIDE)a + (WIDE)b) : op == COMM_MAX ? (a > b ? a : b) : a < b ? a : b; \
    }
TREE(u8, uint8_t, uint8_t)
TREE(i32, int32_t, uint32_t)
TREE(i64, int64_t, uint64_t)
TREE(f32, float, float)
TREE(f64, double, double)

enum { MOST = 64 };

/* What element i of the reduction over the group's ranks must be. */
static void put_reduced(void *buf, size_t at, enum comm_type t, int size, size_t i, enum comm_op op)
{
    union { uint8_t u8[MOST]; int32_t i32[MOST]; int64_t i64[MOST]; float f32[MOST]; double f64[MOST]; } v;
    uint16_t half;

    for (int r = 0; r < size; r++) {
        if (t != COMM_BF16) {
            put(&v, (size_t)r, t, r, i);
            continue;
        }
        put(&half, 0, t, r, i);
        v.f32[r] = bf16_to(half);
    }
    switch (t) {
    case COMM_U8: ((uint8_t *)buf)[at] = tree_u8(v.u8, size, op); break;
    case COMM_I32: ((int32_t *)buf)[at] = tree_i32(v.i32, size, op); break;
    case COMM_I64: ((int64_t *)buf)[at] = tree_i64(v.i64, size, op); break;
    case COMM_F32: ((float *)buf)[at] = tree_f32(v.f32, size, op); break;
    case COMM_F64: ((double *)buf)[at] = tree_f64(v.f64, size, op); break;
    case COMM_BF16: ((uint16_t *)buf)[at] = bf16_of(tree_f32(v.f32, size, op)); break;
    }
}

static void *need(size_t n)
{
    void *p = malloc(n + 64);

    if (!p) {
        fprintf(stderr, "comm_ranks: out of memory\n");
        exit(3);
    }
    memset(p, 0xa5, n + 64);
    return p;
}

static void start(struct comm *c, struct comm_call call, struct comm_handle *h)
{
    call.on_device = device;
    must(comm_start(c, &call, h, &err));
}

/* Waits on the host, or has the device wait, in turn. */
static void run(struct comm *c, struct comm_call call)
{
    static int turn;
    struct comm_handle h;

    start(c, call, &h);
    must(turn++ % 2 ? comm_join(&h, &err) : comm_wait(&h, &err));
}

static void all_reduce(struct comm *c, void *buf, size_t n, enum comm_type t, enum comm_op op)
{
    run(c, (struct comm_call){.kind = COMM_ALL_REDUCE, .send = buf, .recv = buf, .n = n, .type = t, .op = op});
}

static void all_gather(struct comm *c, const void *send, void *recv, size_t n, enum comm_type t)
{
    run(c, (struct comm_call){.kind = COMM_ALL_GATHER, .send = send, .recv = recv, .n = n, .type = t});
}

static double value(enum comm_type t, const void *buf, size_t i)
{
    if (t == COMM_F64)
        return ((const double *)buf)[i];
    return t == COMM_F32 ? (double)((const float *)buf)[i] : (double)bf16_to(((const uint16_t *)buf)[i]);
}

/* Element i of two buffers; what ranks gave, by their absolute values, is the measure of the error of a sum. */
static bool close_by(enum comm_type t, const void *a, const void *b, size_t i, int size, size_t element)
{
    double sum = 0, eps = t == COMM_BF16 ? 1.0 / 128 : t == COMM_F32 ? 1.0 / (1 << 23) : 1e-15;

    for (int r = 0; r < size; r++) {
        double v = 0;
        put(&v, 0, t, r, element);
        sum += fabs(value(t, &v, 0));
    }
    return fabs(value(t, a, i) - value(t, b, i)) <= eps * size * sum;
}

/* The result of a reduction whose n elements are the group's `first` and on: the same bits or, on a device, a sum of numbers
 * with a fraction nearly. */
static bool reduced(const void *got, const void *want, enum comm_type t, enum comm_op op, int size, size_t first, size_t n)
{
    if (!device || op != COMM_SUM || t == COMM_U8 || t == COMM_I32 || t == COMM_I64)
        return memcmp(got, want, n * comm_type_size(t)) == 0;
    for (size_t i = 0; i < n; i++)
        if (!close_by(t, got, want, i, size, first + i))
            return false;
    return true;
}

/* What need() has put behind a buffer of n bytes. */
static bool untouched(const char *buf, size_t n)
{
    for (int i = 0; i < 64; i++)
        if ((unsigned char)buf[n + (size_t)i] != 0xa5)
            return false;
    return true;
}

static void check_reductions(struct comm *c, enum comm_type t, enum comm_op op, size_t n)
{
    size_t el = comm_type_size(t), all = n * (size_t)c->size;
    char *send = need(all * el), *recv = need(n * el), *want = need(n * el);

    for (size_t i = 0; i < n; i++) {
        put(send, i, t, c->rank, i);
        put_reduced(want, i, t, c->size, i, op);
    }
    run(c, (struct comm_call){.kind = COMM_ALL_REDUCE, .send = send, .recv = recv, .n = n, .type = t, .op = op});
    expect(reduced(recv, want, t, op, c->size, 0, n) && untouched(recv, n * el), c, "all-reduce", t, n);
    all_reduce(c, send, n, t, op);
    expect(reduced(send, want, t, op, c->size, 0, n), c, "all-reduce in place", t, n);
    for (size_t i = 0; i < all; i++)
        put(send, i, t, c->rank, i);
    for (size_t i = 0; i < n; i++)
        put_reduced(want, i, t, c->size, i + n * (size_t)c->rank, op);
    memset(recv, 0xa5, n * el);
    run(c, (struct comm_call){.kind = COMM_REDUCE_SCATTER, .send = send, .recv = recv, .n = n, .type = t, .op = op});
    expect(reduced(recv, want, t, op, c->size, n * (size_t)c->rank, n) && untouched(recv, n * el), c, "reduce-scatter", t, n);
    run(c, (struct comm_call){.kind = COMM_REDUCE_SCATTER, .send = send, .recv = send + n * el * (size_t)c->rank,
                              .n = n, .type = t, .op = op});
    expect(reduced(send + n * el * (size_t)c->rank, want, t, op, c->size, n * (size_t)c->rank, n), c, "reduce-scatter in place",
           t, n);
    free(send), free(recv), free(want);
}

static void check_moves(struct comm *c, enum comm_type t, size_t n)
{
    size_t el = comm_type_size(t), all = n * (size_t)c->size;
    char *send = need(all * el), *recv = need(all * el), *want = need(all * el);

    for (size_t i = 0; i < all; i++) {
        put(send, i, t, c->rank, i);
        put(want, i, t, (int)(i / (n ? n : 1)), i % (n ? n : 1));
    }
    all_gather(c, send, recv, n, t);
    expect(memcmp(recv, want, all * el + 64) == 0, c, "all-gather", t, n);
    memset(recv, 0xa5, all * el);
    memcpy(recv + n * el * (size_t)c->rank, send, n * el);
    all_gather(c, recv + n * el * (size_t)c->rank, recv, n, t);
    expect(memcmp(recv, want, all * el + 64) == 0, c, "all-gather in place", t, n);
    for (int root = 0; root < c->size; root++) {
        memset(recv, 0xa5, all * el);
        run(c, (struct comm_call){
                   .kind = COMM_BROADCAST, .send = send, .recv = recv, .n = n, .type = t, .peer = root});
        expect(memcmp(recv, want + n * el * (size_t)root, n * el) == 0, c, "broadcast", t, n);
    }
    for (size_t i = 0; i < all; i++)
        put(want, i, t, (int)(i / (n ? n : 1)), n * (size_t)c->rank + i % (n ? n : 1));
    memset(recv, 0xa5, all * el);
    run(c, (struct comm_call){.kind = COMM_ALL_TO_ALL, .send = send, .recv = recv, .n = n, .type = t});
    expect(memcmp(recv, want, all * el + 64) == 0, c, "all-to-all", t, n);
    if (c->size > 1) { /* round the ring */
        int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
        struct comm_call calls[] = {
            {.kind = COMM_SEND, .send = send, .n = n, .type = t, .peer = next},
            {.kind = COMM_RECV, .recv = recv, .n = n, .type = t, .peer = before}};
        struct comm_handle h[2];
        for (int i = 0; i < 2; i++)
            start(c, calls[i], &h[i]);
        for (int i = 0; i < 2; i++)
            must(i ? comm_wait(&h[i], &err) : comm_join(&h[i], &err));
        for (size_t i = 0; i < n; i++)
            put(want, i, t, before, i);
        expect(memcmp(recv, want, n * el) == 0, c, "send and receive", t, n);
    }
    free(send), free(recv), free(want);
}

/* Rank s gives rank r n * ((s + 2 r) % 3) elements: nothing, some, more. */
static void check_counts(struct comm *c, enum comm_type t, size_t n)
{
    size_t el = comm_type_size(t), out[MOST], in[MOST], sent = 0, got = 0, at = 0;
    char *send, *recv, *want;

    for (int r = 0; r < c->size; r++) {
        out[r] = n * (size_t)((c->rank + 2 * r) % 3);
        in[r] = n * (size_t)((r + 2 * c->rank) % 3);
        sent += out[r], got += in[r];
    }
    send = need(sent * el), recv = need(got * el), want = need(got * el);
    for (int r = 0; r < c->size; r++)
        for (size_t i = 0; i < out[r]; i++)
            put(send, at++, t, c->rank, (size_t)r * 1000003 + i);
    at = 0;
    for (int r = 0; r < c->size; r++)
        for (size_t i = 0; i < in[r]; i++)
            put(want, at++, t, r, (size_t)c->rank * 1000003 + i);
    run(c, (struct comm_call){.kind = COMM_ALL_TO_ALL_V, .send = send, .recv = recv, .type = t,
                              .send_counts = out, .recv_counts = in});
    expect(memcmp(recv, want, got * el + 64) == 0, c, "all-to-all-v", t, n);
    free(send), free(recv), free(want);
}

static void check_all(struct comm *c)
{
    static const size_t sizes[] = {0, 1, 2, 5, 1000, 70001};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            for (int op = COMM_SUM; op <= COMM_MIN; op++)
                check_reductions(c, types[i], (enum comm_op)op, sizes[k]);
            check_moves(c, types[i], sizes[k]);
            check_counts(c, types[i], sizes[k]);
        }
    must(comm_barrier(c, &err));
}

/* More than a reduction takes at a time, and more than one message of MPI. */
static void check_large(size_t n)
{
    size_t el = 4;
    char *buf = need(n * el), *want = need(1000 * el);

    for (size_t i = 0; i < n; i++)
        put(buf, i, COMM_F32, world->rank, i);
    all_reduce(world, buf, n, COMM_F32, COMM_SUM);
    for (size_t i = 0; i < n; i += 1000) {
        size_t len = n - i < 1000 ? n - i : 1000;
        for (size_t k = 0; k < len; k++)
            put_reduced(want, k, COMM_F32, world->size, i + k, COMM_SUM);
        expect(reduced(buf + i * el, want, COMM_F32, COMM_SUM, world->size, i, len), world, "large all-reduce", COMM_F32, n);
    }
    free(buf), free(want);
}

/* n bytes from each rank to the next, and all of them to all. */
static void check_huge(size_t n)
{
    uint8_t *buf = need(n);

    for (size_t i = 0; i < n; i++)
        buf[i] = (uint8_t)(world->rank == 0 ? i * 7 + (i >> 21) : 0);
    run(world, (struct comm_call){.kind = COMM_BROADCAST, .send = buf, .recv = buf, .n = n, .type = COMM_U8});
    for (size_t i = 0; i < n; i++)
        if (buf[i] != (uint8_t)(i * 7 + (i >> 21))) {
            expect(0, world, "huge broadcast", COMM_U8, i);
            break;
        }
    all_reduce(world, buf, n, COMM_U8, COMM_SUM);
    for (size_t i = 0; i < n; i++)
        if (buf[i] != (uint8_t)((i * 7 + (i >> 21)) * (size_t)world->size)) {
            expect(0, world, "huge all-reduce", COMM_U8, i);
            break;
        }
    free(buf);
}

/* Rows and columns, in reversed order, and a group that leaves one out; calls of all of them in
 * flight at a time, waited for in different orders. */
static void check_groups(void)
{
    struct comm *group[3];
    struct comm_handle h[9];
    float *buf[9], want;
    int rank = world->rank, width = world->size > 2 ? 2 : 1;
    enum { N = 100000 };

    must(comm_split(world, rank / width, -rank, "rows", &group[0], &err));
    must(comm_split(world, rank % width, rank, "columns", &group[1], &err));
    must(comm_split(world, rank == 0 && world->size > 1 ? -1 : 7, rank, "rest", &group[2], &err));
    expect((group[2] == NULL) == (rank == 0 && world->size > 1), world, "group without me", COMM_U8, 0);
    for (int i = 0; i < 3; i++)
        if (group[i])
            check_all(group[i]);
    for (int i = 0; i < 9; i++) {
        buf[i] = need(N * sizeof **buf);
        for (size_t k = 0; k < N; k++)
            buf[i][k] = (float)(i + 1);
        memset(&h[i], 0, sizeof h[i]);
        if (group[i % 3])
            start(group[i % 3], (struct comm_call){.kind = COMM_ALL_REDUCE, .send = buf[i], .recv = buf[i], .n = N,
                                                   .type = COMM_F32, .op = COMM_SUM}, &h[i]);
    }
    for (int i = 0; i < 9; i++) {
        int at = rank % 2 ? 8 - i : i;
        bool done = false;
        if (!group[at % 3])
            continue;
        if (i % 2)
            must(i % 4 == 1 ? comm_join(&h[at], &err) : comm_wait(&h[at], &err));
        else
            while (!done)
                must(comm_test(&h[at], &done, &err));
        want = (float)((at + 1) * group[at % 3]->size);
        for (size_t k = 0; k < N; k++)
            if (buf[at][k] != want) {
                expect(0, group[at % 3], "all-reduce in flight", COMM_F32, k);
                break;
            }
    }
    for (int i = 0; i < 9; i++)
        free(buf[i]);
    for (int i = 2; i >= 0; i--)
        comm_close(group[i]);
}

/* The lowest rank that has failed speaks for all. */
static void check_agree(struct comm *c)
{
    for (int first = 0; first <= c->size; first++) {
        int rc = c->rank >= first ? ERR_IO - c->rank : 7;
        struct err why;
        char want[64];

        err_set(&why, rc, "no room at %d", c->rank);
        must(comm_agree(c, &rc, &why, &err));
        snprintf(want, sizeof want, c->rank == first ? "no room at %d" : "rank %d: no room at %d", first, first);
        if (first == c->size)
            expect(rc == 7, c, "rc when none fails", COMM_I32, 1);
        else
            expect(rc == ERR_IO - first && why.code == rc && strcmp(why.msg, want) == 0, c, "agreement", COMM_I32, 1);
    }
}

static void bench(size_t n)
{
    float *buf = need(n * sizeof *buf);
    double t;

    memset(buf, 0, n * sizeof *buf);
    all_reduce(world, buf, n, COMM_F32, COMM_SUM);
    must(comm_barrier(world, &err));
    t = log_seconds();
    for (int i = 0; i < 5; i++)
        all_reduce(world, buf, n, COMM_F32, COMM_SUM);
    t = (log_seconds() - t) / 5;
    if (world->rank == 0)
        printf("all-reduce of %zu fp32 over %d ranks: %.3g s, %.3g GB/s\n", n, world->size, t,
               (double)n * 4e-9 / t);
    free(buf);
}

/* The last rank does something else. */
static void misbehave(const char *how)
{
    bool me = world->rank == world->size - 1;
    struct comm *part;
    float v[64] = {0};

    must(comm_split(world, 0, world->rank, "data", &part, &err));
    if (strcmp(how, "hang") == 0 && me)
        sleep(8);
    if (strcmp(how, "die") == 0 && me)
        raise(SIGKILL);
    if (strcmp(how, "fail") == 0 && me)
        exit(3);
    if (strcmp(how, "join") == 0 && device) { /* nobody asks until the device has come to rest */
        struct comm_handle h;
        if (me)
            sleep(8);
        start(part, (struct comm_call){.kind = COMM_ALL_REDUCE, .send = v, .recv = v, .n = 64, .type = COMM_BF16}, &h);
        must(comm_join(&h, &err));
    }
    all_reduce(part, v, strcmp(how, "mismatch") == 0 && me ? 33 : 64, COMM_BF16, COMM_SUM);
}

/* Ranks by RANK and WORLD_SIZE in the folder $RANKS_FOLDER, which is there. */
static int open_files(double timeout)
{
    struct comm_files f = {.key = 1};
    char prefix[4096];

    snprintf(prefix, sizeof prefix, "%s/", getenv("RANKS_FOLDER"));
    f.prefix = prefix;
    if (getenv("RANKS_TIMEOUT"))
        timeout = strtod(getenv("RANKS_TIMEOUT"), NULL);
    if (!rendezvous_rank(&f.rank, &f.size))
        return err_set(&err, ERR_ARG, "RANK and WORLD_SIZE say nothing");
    return comm_open_files(&world, &f, timeout, &err);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    size_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

    const char *backend = argc > 3 ? argv[3] : "auto";
    bool late = strcmp(mode, "hang") == 0 || strcmp(mode, "join") == 0 || strcmp(mode, "stuck") == 0;

    must(strcmp(backend, "files") == 0 ? open_files(late ? 1.5 : 60) : comm_open(&world, backend, late ? 1.5 : 60, &err));
    device = strcmp(backend, "nccl") == 0;
    if (device)
        must(comm_use_device(world, &the_device, &err));
    if (n == 0)
        n = 5000001;
    if (strcmp(mode, "all") == 0)
        check_all(world), check_agree(world);
    else if (strcmp(mode, "large") == 0)
        check_large(n);
    else if (strcmp(mode, "huge") == 0)
        check_huge(n);
    else if (strcmp(mode, "groups") == 0)
        check_groups();
    else if (strcmp(mode, "bench") == 0)
        bench(n);
    else
        misbehave(mode);
    if (world->rank == 0 && failures == 0)
        printf("%s: %d ranks, %s%s\n", mode, world->size, device ? "nccl and " : "", world->backend->name);
    comm_close(world);
    return failures != 0;
}
