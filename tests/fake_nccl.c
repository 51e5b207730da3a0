/* A library that stands in for NCCL where there is no GPU: the functions of comm/nccl_api.h on the host's memory, between
 * processes of one machine.  It is strict: ranks that do not make the same calls in the same order with the same counts and
 * types, a group that is used from two streams, or after it was destroyed, a number that two groups share, buffers that overlap
 * but in the way that NCCL calls in place: each is told on standard error, and an error from then on.
 *
 * FAKE_NCCL_FAIL=N: the N-th call of this process (from 1) never ends, and its group has an error.
 * Compiled with -DNO_SPLIT it is an old library without ncclCommSplit. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/bf16.h"
#include "comm/nccl_api.h"
#include "tests/streams.h"

#define SHOWN __attribute__((visibility("default")))
enum { RING = 64 << 10, ALIVE = 0x600d, ENDED = 0xdead };
enum { REMOTE_ERROR = 6, INTERNAL_ERROR = 3 };
enum kind { ALL_REDUCE = 1, REDUCE_SCATTER, ALL_GATHER, BROADCAST, MESSAGE, SPLIT };

/* From one rank to another, in memory that they share. */
struct channel {
    _Atomic uint64_t put, taken;
    char data[RING];
};
struct shared {
    _Atomic int joined, claimed, broken;
    int size;
    struct nccl_id id;
    struct channel channels[]; /* from * size + to */
};

struct comm {
    int alive, rank, size;
    struct shared *shared;
    uint64_t calls; /* collectives */
    void *stream;
    bool used;
    _Atomic int pending, abort, state;
    struct comm *next;
};

/* What goes in front of each piece. */
struct head {
    uint64_t serial, bytes, n;
    int32_t kind, type, op, root;
};
struct piece {
    struct piece *next;
    struct head head;
    const char *from; /* NULL: it comes in */
    char *to;
    size_t at;
};
struct op {
    struct op *next;
    struct head head;
    const char *send;
    char *recv, *all; /* all: what the ranks gave, of a reduction */
    int peer;
    bool out;         /* of a message */
};
struct batch {
    struct comm *comm;
    struct op *first, **last;
    bool stuck;
};

static struct comm *comms; /* all there ever were */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int depth;
static _Thread_local struct batch *gathered;

static int complain(struct comm *c, const char *what)
{
    fprintf(stderr, "fake NCCL: %s (rank %d of %d)\n", what, c ? c->rank : -1, c ? c->size : 0);
    if (c && c->alive == ALIVE) {
        c->shared->broken = 1;
        c->state = NCCL_INVALID_USAGE;
    }
    return NCCL_INVALID_USAGE;
}

static void pause_a_little(int round)
{
    if (round < 100)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static size_t size_of(int type)
{
    switch (type) {
    case NCCL_UINT8: return 1;
    case NCCL_BFLOAT16: return 2;
    case NCCL_INT64:
    case NCCL_FLOAT64: return 8;
    default: return 4;
    }
}

/* ---- arithmetic: in the order of the ranks, rounded each time ---- */

#define COMBINE(T, U, LOAD, STORE)                                                                      \
    for (size_t i = 0; i < n; i++) {                                                                    \
        T *x = (T *)to + i;                                                                             \
        const T *y = (const T *)from + i;                                                               \
        *x = op == NCCL_SUM ? STORE((U)LOAD(*x) + (U)LOAD(*y))                                          \
             : (op == NCCL_MAX) == (LOAD(*x) > LOAD(*y)) ? *x : *y;                                     \
    }
#define AS_IS(v) (v)

static void combine(char *to, const char *from, size_t n, int type, int op)
{
    switch (type) {
    case NCCL_UINT8: COMBINE(uint8_t, unsigned, AS_IS, (uint8_t)) break;
    case NCCL_INT32: COMBINE(int32_t, uint32_t, AS_IS, (int32_t)) break;
    case NCCL_INT64: COMBINE(int64_t, uint64_t, AS_IS, (int64_t)) break;
    case NCCL_FLOAT32: COMBINE(float, float, AS_IS, AS_IS) break;
    case NCCL_FLOAT64: COMBINE(double, double, AS_IS, AS_IS) break;
    default: COMBINE(uint16_t, float, bf16_to, bf16_of) break;
    }
}

/* ---- moving ---- */

static size_t ring_put(struct channel *c, const char *from, size_t n)
{
    uint64_t put = c->put, room = RING - (put - c->taken);
    size_t m = n < room ? n : (size_t)room;

    for (size_t i = 0; i < m;) {
        size_t at = (put + i) % RING, part = m - i < RING - at ? m - i : RING - at;
        memcpy(c->data + at, from + i, part);
        i += part;
    }
    c->put = put + m;
    return m;
}

static size_t ring_take(struct channel *c, char *to, size_t n)
{
    uint64_t taken = c->taken, there = c->put - taken;
    size_t m = n < there ? n : (size_t)there;

    for (size_t i = 0; i < m;) {
        size_t at = (taken + i) % RING, part = m - i < RING - at ? m - i : RING - at;
        memcpy(to + i, c->data + at, part);
        i += part;
    }
    c->taken = taken + m;
    return m;
}

/* Moves some of a piece; true: it has moved. */
static bool move(struct comm *c, int peer, struct piece *p)
{
    size_t head = sizeof p->head, before = p->at;

    if (p->from) {
        struct channel *ch = &c->shared->channels[c->rank * c->size + peer];
        if (p->at < head)
            p->at += ring_put(ch, (const char *)&p->head + p->at, head - p->at);
        if (p->at >= head)
            p->at += ring_put(ch, p->from + (p->at - head), head + p->head.bytes - p->at);
    } else {
        struct channel *ch = &c->shared->channels[peer * c->size + c->rank];
        struct head want = p->head;
        while (p->at < head && ch->put - ch->taken >= head) {
            ring_take(ch, (char *)&p->head, head);
            p->at = head;
            if (memcmp(&want, &p->head, head) != 0) {
                fprintf(stderr, "fake NCCL: wanted call %llu, kind %d, of %llu x type %d, op %d, root %d; rank %d made call %llu,"
                        " kind %d, of %llu x type %d, op %d, root %d\n", (unsigned long long)want.serial, want.kind,
                        (unsigned long long)want.n, want.type, want.op, want.root, peer, (unsigned long long)p->head.serial,
                        p->head.kind, (unsigned long long)p->head.n, p->head.type, p->head.op, p->head.root);
                complain(c, "ranks make different calls");
                p->head.bytes = 0;
            }
        }
        if (p->at >= head)
            p->at += ring_take(ch, p->to + (p->at - head), head + p->head.bytes - p->at);
    }
    return p->at != before;
}

struct queues {
    struct comm *comm;
    struct piece **first, ***last; /* by peer: out, then in */
};

static void queues_open(struct queues *q, struct comm *c)
{
    q->comm = c;
    q->first = calloc(2 * (size_t)c->size, sizeof *q->first);
    q->last = calloc(2 * (size_t)c->size, sizeof *q->last);
    if (!q->first || !q->last)
        abort();
    for (int i = 0; i < 2 * c->size; i++)
        q->last[i] = &q->first[i];
}

static void add_piece(struct queues *q, int peer, const struct head *h, const void *from, void *to, size_t bytes)
{
    struct piece *p = calloc(1, sizeof *p);
    int at = from ? peer : q->comm->size + peer;

    if (!p)
        abort();
    p->head = *h;
    p->head.bytes = bytes;
    p->from = from;
    p->to = to;
    *q->last[at] = p;
    q->last[at] = &p->next;
}

/* Until all has moved.  0, or it was ended. */
static int run_queues(struct queues *q)
{
    struct comm *c = q->comm;
    int left = 1, rc = 0;

    for (int round = 0; left && !rc; round++) {
        bool some = false;
        left = 0;
        for (int i = 0; i < 2 * c->size; i++) {
            struct piece *p = q->first[i];
            if (!p)
                continue;
            left++;
            some |= move(c, i % c->size, p);
            if (p->at == sizeof p->head + p->head.bytes) {
                q->first[i] = p->next;
                free(p);
                some = true;
            }
        }
        if (some)
            round = 0;
        else
            pause_a_little(round);
        if (c->abort || c->shared->broken)
            rc = INTERNAL_ERROR;
    }
    for (int i = 0; i < 2 * c->size; i++)
        while (q->first[i]) {
            struct piece *p = q->first[i];
            q->first[i] = p->next;
            free(p);
        }
    free(q->first);
    free(q->last);
    return rc;
}

/* ---- calls ---- */

static const char nothing[1] = "";

/* Each with each, were it only the head: all must make the call. */
static void add_collective(struct queues *q, struct op *x)
{
    struct comm *c = q->comm;
    size_t bytes = x->head.n * size_of(x->head.type);

    if (x->head.kind <= REDUCE_SCATTER && !(x->all = malloc(bytes * (size_t)c->size + 1)))
        abort();
    for (int r = 0; r < c->size; r++) {
        const char *from = x->send + (x->head.kind == REDUCE_SCATTER ? bytes * (size_t)r : 0);
        char *to = x->head.kind == ALL_GATHER ? x->recv + bytes * (size_t)r : x->all ? x->all + bytes * (size_t)r : x->recv;
        size_t out = bytes, in = bytes;

        if (x->head.kind == BROADCAST) {
            out = c->rank == x->head.root ? bytes : 0;
            in = r == x->head.root ? bytes : 0;
        }
        if (r == c->rank && in && to != from)
            memcpy(to, from, bytes);
        if (r == c->rank)
            continue;
        add_piece(q, r, &x->head, out ? from : nothing, NULL, out);
        add_piece(q, r, &x->head, NULL, to, in);
    }
}

static void add_message(struct queues *q, const struct op *x, const struct op *list)
{
    size_t bytes = x->head.n * size_of(x->head.type);
    const struct op *other = list;

    if (x->peer != q->comm->rank) {
        add_piece(q, x->peer, &x->head, x->out ? x->send : NULL, x->out ? NULL : x->recv, bytes);
        return;
    }
    if (!x->out)
        return;
    while (other && (other->head.kind != MESSAGE || other->out || other->peer != x->peer))
        other = other->next;
    if (!other || other->head.n != x->head.n)
        complain(q->comm, "a message to oneself without its other half");
    else
        memcpy(other->recv, x->send, bytes);
}

static void finish(struct comm *c, struct op *x)
{
    size_t bytes = x->head.n * size_of(x->head.type);

    if (x->all) {
        memcpy(x->recv, x->all, bytes);
        for (int r = 1; r < c->size; r++)
            combine(x->recv, x->all + bytes * (size_t)r, x->head.n, x->head.type, x->head.op);
    }
    free(x->all);
}

static void run_batch(void *arg)
{
    struct batch *b = arg;
    struct comm *c = b->comm;
    struct queues q;
    int rc;

    while (b->stuck && !c->abort)
        pause_a_little(1000);
    queues_open(&q, c);
    for (struct op *x = b->first; x; x = x->next)
        if (x->head.kind == MESSAGE)
            add_message(&q, x, b->first);
        else
            add_collective(&q, x);
    rc = run_queues(&q);
    while (b->first) {
        struct op *x = b->first;
        b->first = x->next;
        if (rc == 0)
            finish(c, x);
        else
            free(x->all);
        free(x);
    }
    free(b);
    c->pending--;
}

static int launch(struct batch *b)
{
    struct comm *c = b->comm;
    struct test_stream *s = c->stream;

    c->pending++;
    if (s)
        s->push(s, run_batch, b);
    else
        run_batch(b);
    return c->shared->broken ? NCCL_INVALID_USAGE : NCCL_SUCCESS;
}

/* What is wrong with a call, if anything is. */
static int check(struct comm *c, void *stream, int type, int peer)
{
    if (!c || c->alive != ALIVE)
        return complain(NULL, "a group that is not there any more");
    if (c->used && c->stream != stream)
        return complain(c, "a group with two streams");
    if (size_of(type) == 4 && type != NCCL_INT32 && type != NCCL_FLOAT32)
        return complain(c, "an unknown type");
    if (peer < 0 || peer >= c->size)
        return complain(c, "a rank outside the group");
    if (gathered && gathered->comm != c)
        return complain(c, "calls of two groups gathered");
    c->used = true;
    c->stream = stream;
    return c->state;
}

/* Where memory that a call is given lies. */
static void *place(const struct comm *c, const void *p, size_t bytes)
{
    const struct test_stream *s = c->stream;

    return s && s->place ? s->place(p, bytes, "NCCL") : (void *)(uintptr_t)p;
}

static void place_both(const struct comm *c, struct op *x)
{
    size_t bytes = x->head.n * size_of(x->head.type), all = bytes * (size_t)c->size;

    if (x->head.kind != BROADCAST || c->rank == x->head.root)
        x->send = place(c, x->send, x->head.kind == REDUCE_SCATTER ? all : bytes);
    x->recv = place(c, x->recv, x->head.kind == ALL_GATHER ? all : bytes);
}

static int add(struct comm *c, const struct op *how)
{
    static _Atomic int calls;
    const char *fail = getenv("FAKE_NCCL_FAIL");
    struct batch *b = gathered;
    struct op *x = malloc(sizeof *x);
    bool stuck = ++calls == (fail ? atoi(fail) : 0);

    if (!b && (b = calloc(1, sizeof *b)) != NULL) {
        b->comm = c;
        b->last = &b->first;
    }
    if (!x || !b)
        abort();
    *x = *how;
    place_both(c, x);
    x->head.serial = x->head.kind == MESSAGE ? 0 : ++c->calls;
    *b->last = x;
    b->last = &x->next;
    if (stuck) {
        b->stuck = true;
        c->state = REMOTE_ERROR;
    }
    if (depth) {
        gathered = b;
        return NCCL_SUCCESS;
    }
    return launch(b);
}

/* Whether NCCL may read and write there: apart, or in place. */
static bool places_fit(const struct comm *c, enum kind kind, const char *send, const char *recv, size_t n, int type, int root)
{
    size_t bytes = n * size_of(type), all = bytes * (size_t)c->size, own = bytes * (size_t)c->rank;
    const char *in_place = kind == ALL_GATHER ? recv + own : recv - (kind == REDUCE_SCATTER ? own : 0);

    if (!bytes || (kind == BROADCAST && c->rank != root))
        return true;
    if ((uintptr_t)send % size_of(type) || (uintptr_t)recv % size_of(type))
        return false;
    return send == in_place || send + (kind == REDUCE_SCATTER ? all : bytes) <= recv ||
           recv + (kind == ALL_GATHER ? all : bytes) <= send;
}

static int collective(struct comm *c, enum kind kind, const void *send, void *recv, size_t n, int type, int op, int root,
                      void *stream)
{
    const struct op x = {.head = {.n = n, .kind = (int)kind, .type = type, .op = op, .root = root}, .send = send, .recv = recv};
    int rc = check(c, stream, type, root);

    if (rc == 0 && !places_fit(c, kind, send, recv, n, type, root))
        rc = complain(c, "buffers that overlap, or begin inside an element");
    return rc ? rc : add(c, &x);
}

static int message(struct comm *c, bool out, const void *send, void *recv, size_t n, int type, int peer, void *stream)
{
    const struct op x = {.head = {.n = n, .kind = MESSAGE, .type = type}, .send = send, .recv = recv, .peer = peer, .out = out};
    int rc = check(c, stream, type, peer);

    if (rc == 0 && peer == c->rank && !depth)
        return complain(c, "a message to oneself that is not gathered");
    return rc ? rc : add(c, &x);
}

/* ---- the interface ---- */

SHOWN int quern_takes_host_memory = 1;

#define DECLARED(f) SHOWN int f; int f
DECLARED(ncclGetVersion(int *version))
{
    *version = 22809;
    return NCCL_SUCCESS;
}

DECLARED(ncclGetUniqueId(struct nccl_id *id))
{
    return getrandom(id, sizeof *id, 0) == (ssize_t)sizeof *id ? NCCL_SUCCESS : INTERNAL_ERROR;
}

static struct shared *map_shared(const struct nccl_id *id, int size, char *name, size_t room)
{
    size_t bytes = sizeof(struct shared) + (size_t)size * (size_t)size * sizeof(struct channel);
    struct shared *s = MAP_FAILED;
    uint64_t part[2];
    int fd;

    memcpy(part, id, sizeof part);
    snprintf(name, room, "/quern-nccl-%016llx%016llx", (unsigned long long)part[0], (unsigned long long)part[1]);
    fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return s == MAP_FAILED ? NULL : s;
}

DECLARED(ncclCommInitRank(void **out, int size, struct nccl_id id, int rank))
{
    struct comm *c = calloc(1, sizeof *c);
    char name[64];

    if (!c || depth || rank < 0 || rank >= size)
        return complain(NULL, "a group that cannot be");
    c->shared = map_shared(&id, size, name, sizeof name);
    if (!c->shared)
        return INTERNAL_ERROR;
    c->alive = ALIVE;
    c->rank = rank;
    c->size = size;
    pthread_mutex_lock(&lock);
    c->next = comms;
    comms = c;
    pthread_mutex_unlock(&lock);
    if (rank == 0) {
        c->shared->size = size;
        c->shared->id = id;
    }
    if (c->shared->claimed >> rank & 1 || rank > 30)
        return complain(c, "a rank of a group twice");
    c->shared->claimed |= 1 << rank;
    c->shared->joined++;
    for (int round = 0; c->shared->joined < size; round++)
        pause_a_little(round);
    if (rank == 0)
        shm_unlink(name);
    if (c->shared->size != size || memcmp(&c->shared->id, &id, sizeof id) != 0)
        return complain(c, "ranks differ in what group they are");
    *out = c;
    return NCCL_SUCCESS;
}

#ifndef NO_SPLIT
struct wish {
    int colour, key;
    struct nccl_id id;
};

DECLARED(ncclCommSplit(void *comm, int colour, int key, void **part, void *config))
{
    const struct head h = {.kind = SPLIT, .serial = 1};
    struct comm *c = comm;
    struct wish *w;
    struct queues q;
    int rank = 0, size = 0, first = -1, rc;

    (void)config;
    *part = NULL;
    if (!c || c->alive != ALIVE || depth)
        return complain(c, "no group to split");
    for (int round = 0; c->pending; round++)
        pause_a_little(round);
    w = calloc((size_t)c->size, sizeof *w);
    if (!w)
        abort();
    w[c->rank] = (struct wish){.colour = colour, .key = key};
    ncclGetUniqueId(&w[c->rank].id);
    queues_open(&q, c);
    for (int r = 0; r < c->size; r++)
        if (r != c->rank) {
            add_piece(&q, r, &h, &w[c->rank], NULL, sizeof *w);
            add_piece(&q, r, &h, NULL, &w[r], sizeof *w);
        }
    rc = run_queues(&q);
    for (int r = 0; r < c->size && rc == 0 && colour != NCCL_SPLIT_NONE; r++) {
        if (w[r].colour != colour)
            continue;
        size++;
        rank += w[r].key < key || (w[r].key == key && r < c->rank);
        if (first < 0 || w[r].key < w[first].key)
            first = r;
    }
    if (colour != NCCL_SPLIT_NONE && colour < 0)
        rc = complain(c, "a colour that cannot be");
    if (rc == 0 && size)
        rc = ncclCommInitRank(part, size, w[first].id, rank);
    free(w);
    return rc;
}
#endif

DECLARED(ncclCommDestroy(void *comm))
{
    struct comm *c = comm;

    if (!c || c->alive != ALIVE || depth)
        return complain(NULL, "no group to destroy");
    if (c->pending)
        return complain(c, "a group is destroyed that is at work");
    c->alive = ENDED;
    return NCCL_SUCCESS;
}

DECLARED(ncclCommAbort(void *comm))
{
    struct comm *c = comm;

    if (!c || c->alive != ALIVE)
        return complain(NULL, "no group to end");
    c->alive = ENDED;
    c->abort = 1;
    return NCCL_SUCCESS;
}

DECLARED(ncclCommGetAsyncError(void *comm, int *state))
{
    struct comm *c = comm;

    if (!c || c->alive != ALIVE)
        return complain(NULL, "no group to ask");
    *state = c->shared->broken ? NCCL_INVALID_USAGE : c->state;
    return NCCL_SUCCESS;
}

SHOWN const char *ncclGetErrorString(int rc);
const char *ncclGetErrorString(int rc)
{
    return rc == NCCL_INVALID_USAGE ? "invalid usage" : rc == REMOTE_ERROR ? "remote process exited or there was a network error"
           : rc ? "internal error" : "no error";
}

SHOWN const char *ncclGetLastError(void *comm);
const char *ncclGetLastError(void *comm)
{
    (void)comm;
    return "told by the stand-in";
}

DECLARED(ncclAllReduce(const void *send, void *recv, size_t n, int type, int op, void *comm, void *stream))
{
    return collective(comm, ALL_REDUCE, send, recv, n, type, op, 0, stream);
}

DECLARED(ncclReduceScatter(const void *send, void *recv, size_t n, int type, int op, void *comm, void *stream))
{
    return collective(comm, REDUCE_SCATTER, send, recv, n, type, op, 0, stream);
}

DECLARED(ncclAllGather(const void *send, void *recv, size_t n, int type, void *comm, void *stream))
{
    return collective(comm, ALL_GATHER, send, recv, n, type, 0, 0, stream);
}

DECLARED(ncclBroadcast(const void *send, void *recv, size_t n, int type, int root, void *comm, void *stream))
{
    return collective(comm, BROADCAST, send, recv, n, type, 0, root, stream);
}

DECLARED(ncclSend(const void *buf, size_t n, int type, int peer, void *comm, void *stream))
{
    return message(comm, true, buf, NULL, n, type, peer, stream);
}

DECLARED(ncclRecv(void *buf, size_t n, int type, int peer, void *comm, void *stream))
{
    return message(comm, false, NULL, buf, n, type, peer, stream);
}

DECLARED(ncclGroupStart(void))
{
    depth++;
    return NCCL_SUCCESS;
}

DECLARED(ncclGroupEnd(void))
{
    struct batch *b = gathered;

    if (depth == 0)
        return complain(NULL, "a group of calls ends that has not begun");
    if (--depth)
        return NCCL_SUCCESS;
    gathered = NULL;
    return b ? launch(b) : NCCL_SUCCESS;
}
