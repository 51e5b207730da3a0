/* Collectives made of messages.  Each is an exchange in steps: a step posts messages, and
 * the next one begins when all of these are over.  Ranks exchange with all others directly. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "comm/message.h"
#include "comm/reduce.h"

enum {
    SMALL = 64 << 10, /* bytes: below, one step instead of two */
    SLOTS = 16 << 20, /* bytes that a reduction receives at a time, of all ranks together */
    TAGS = 32767
};

/* What a world and its parts share.  Ranks may wait for calls in different orders, so a wait
 * for one gets all on.  rc: the first failure, after which nothing is started. */
struct shared {
    const struct network *net;
    struct exchange *first;
    int groups;
    int rc;
    struct err err;
};

struct group {
    struct port *port;
    struct shared *shared;
    unsigned calls;
};

struct in_flight {
    void *message; /* NULL: over */
    int peer;
    bool to_us;
};

struct exchange {
    struct exchange *next;
    struct comm *comm;
    struct group *group;
    struct comm_call call;
    int tag;
    int (*step)(struct exchange *x, struct err *e); /* posts what follows, or sets done */
    bool done;
    double came; /* when it was done, where somebody watches */
    int phase;
    size_t at, len; /* the elements that a reduction is at */
    char *slots, *work;
    const void **from;
    size_t *counts; /* all-to-all-v: to each, from each */
    int n_messages;
    struct in_flight messages[];
};

static size_t bytes_of(const struct exchange *x, size_t n)
{
    return n * comm_type_size(x->call.type);
}

static int post(struct exchange *x, bool to_us, void *buf, size_t n, int peer, struct err *e)
{
    struct in_flight *m = &x->messages[x->n_messages];

    if (n == 0)
        return 0;
    *m = (struct in_flight){.peer = peer, .to_us = to_us};
    TRY(x->group->shared->net->post(x->group->port, to_us, buf, bytes_of(x, n), peer, x->tag, &m->message, e));
    x->n_messages++;
    return 0;
}

static int post_send(struct exchange *x, const void *buf, size_t n, int peer, struct err *e)
{
    union { const void *in; void *out; } u = {buf}; /* it is only read */

    return post(x, false, u.out, n, peer, e);
}

static int post_recv(struct exchange *x, void *buf, size_t n, int peer, struct err *e)
{
    return post(x, true, buf, n, peer, e);
}

/* Where the share of rank r begins, of n elements in size shares. */
static size_t share(size_t n, int r, int size)
{
    return n / (size_t)size * (size_t)r + n % (size_t)size * (size_t)r / (size_t)size;
}

/* ---- without arithmetic ---- */

static int step_end(struct exchange *x, struct err *e)
{
    (void)e;
    x->done = true;
    return 0;
}

static int step_message(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;

    x->step = step_end;
    if (c->kind == COMM_SEND)
        return post_send(x, c->send, c->n, c->peer, e);
    return post_recv(x, c->recv, c->n, c->peer, e);
}

static int step_all_gather(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;
    int rank = x->comm->rank, size = x->comm->size;
    char *own = (char *)c->recv + bytes_of(x, c->n) * (size_t)rank;

    x->step = step_end;
    if (c->n && own != c->send)
        memcpy(own, c->send, bytes_of(x, c->n));
    for (int i = 1; i < size; i++) {
        int to = (rank + i) % size, from = (rank + size - i) % size;
        TRY(post_recv(x, (char *)c->recv + bytes_of(x, c->n) * (size_t)from, c->n, from, e));
        TRY(post_send(x, own, c->n, to, e));
    }
    return 0;
}

static int step_barrier(struct exchange *x, struct err *e)
{
    static const char nothing;
    int rank = x->comm->rank, size = x->comm->size;

    x->step = step_end;
    for (int i = 1; i < size; i++) {
        TRY(post_recv(x, x->slots + i, 1, (rank + size - i) % size, e));
        TRY(post_send(x, &nothing, 1, (rank + i) % size, e));
    }
    return 0;
}

static int step_all_to_all(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;
    int rank = x->comm->rank, size = x->comm->size;
    const size_t *sends = x->counts, *recvs = x->counts + size;
    const char *from = c->send;
    char *to = c->recv;

    x->step = step_end;
    for (int r = 0; r < size; r++) {
        if (r != rank)
            TRY(post_recv(x, to, recvs[r], r, e));
        to += bytes_of(x, recvs[r]);
    }
    to = c->recv;
    for (int r = 0; r < rank; r++)
        to += bytes_of(x, recvs[r]);
    for (int r = 0; r < size; r++) {
        if (r != rank)
            TRY(post_send(x, from, sends[r], r, e));
        else if (sends[r])
            memcpy(to, from, bytes_of(x, sends[r]));
        from += bytes_of(x, sends[r]);
    }
    return 0;
}

/* Every rank but skip (-1: none) receives the others' shares of buf[n] and gives its own. */
static int gather_shares(struct exchange *x, char *buf, size_t n, int skip, struct err *e)
{
    int rank = x->comm->rank, size = x->comm->size;
    size_t own = share(n, rank, size), own_n = share(n, rank + 1, size) - own;

    for (int i = 1; i < size; i++) {
        int to = (rank + i) % size, from = (rank + size - i) % size;
        size_t at = share(n, from, size);
        if (rank != skip)
            TRY(post_recv(x, buf + bytes_of(x, at), share(n, from + 1, size) - at, from, e));
        if (to != skip)
            TRY(post_send(x, buf + bytes_of(x, own), own_n, to, e));
    }
    return 0;
}

/* Much: the root gives each a share, and these go round.  Little: all to each. */
static int step_broadcast(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;
    int rank = x->comm->rank, size = x->comm->size, root = c->peer;
    bool much = bytes_of(x, c->n) > SMALL && size > 2;

    if (x->phase++ == 1) {
        x->step = step_end;
        return gather_shares(x, c->recv, c->n, root, e);
    }
    if (!much)
        x->step = step_end;
    if (rank == root && c->n && c->recv != c->send)
        memcpy(c->recv, c->send, bytes_of(x, c->n));
    for (int r = 0; r < size; r++) {
        size_t at = much ? share(c->n, r, size) : 0, n = much ? share(c->n, r + 1, size) - at : c->n;
        char *buf = (char *)c->recv + bytes_of(x, at);
        if (r == root)
            continue;
        if (rank == root)
            TRY(post_send(x, buf, n, r, e));
        else if (r == rank)
            TRY(post_recv(x, buf, n, root, e));
    }
    return 0;
}

/* ---- with arithmetic ---- */

/* Sends to rank r the n elements at send + stride * r, receives own_n of each into a slot, and
 * sets from[] for reduce_ranks.  counts differ only where shares do: n_of. */
static int exchange_values(struct exchange *x, const char *send, size_t stride, size_t own_n,
                           size_t (*begin)(size_t, int, int), size_t n, struct err *e)
{
    int rank = x->comm->rank, size = x->comm->size;

    for (int i = 0; i < size; i++) {
        int to = (rank + i) % size, from = (rank + size - i) % size;
        size_t at = begin ? begin(n, to, size) : stride * (size_t)to;
        size_t to_n = begin ? begin(n, to + 1, size) - at : n;
        if (i == 0) {
            x->from[rank] = send + bytes_of(x, at);
            continue;
        }
        x->from[from] = x->slots + bytes_of(x, own_n) * (size_t)from;
        TRY(post_recv(x, x->slots + bytes_of(x, own_n) * (size_t)from, own_n, from, e));
        TRY(post_send(x, send + bytes_of(x, at), to_n, to, e));
    }
    return 0;
}

static int step_reduce_scatter(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;
    size_t slot = SLOTS / comm_type_size(c->type) / (size_t)x->comm->size;

    slot = slot ? slot : 1;
    if (x->phase++) {
        reduce_ranks((char *)c->recv + bytes_of(x, x->at), x->from, x->comm->size, x->len, c->type, c->op,
                     x->work);
        x->at += x->len;
    }
    if (x->at == c->n)
        return step_end(x, e);
    x->len = c->n - x->at < slot ? c->n - x->at : slot;
    return exchange_values(x, (const char *)c->send + bytes_of(x, x->at), c->n, x->len, NULL, x->len, e);
}

/* Little: everybody's values to everybody.  Much: in pieces; of each, every rank combines a share
 * and gives it to all. */
static int step_all_reduce(struct exchange *x, struct err *e)
{
    const struct comm_call *c = &x->call;
    int rank = x->comm->rank, size = x->comm->size;
    char *recv = (char *)c->recv + bytes_of(x, x->at);
    size_t own = share(x->len, rank, size), own_n = share(x->len, rank + 1, size) - own;

    if (bytes_of(x, c->n) <= SMALL / (size_t)size) {
        if (x->phase++ == 0)
            return exchange_values(x, c->send, 0, c->n, NULL, c->n, e);
        reduce_ranks(recv, x->from, size, c->n, c->type, c->op, x->work);
        return step_end(x, e);
    }
    if (x->phase++ % 2) {
        reduce_ranks(recv + bytes_of(x, own), x->from, size, own_n, c->type, c->op, x->work);
        return gather_shares(x, recv, x->len, -1, e);
    }
    x->at += x->len;
    if (x->at == c->n)
        return step_end(x, e);
    x->len = SLOTS / comm_type_size(c->type);
    x->len = c->n - x->at < x->len ? c->n - x->at : x->len;
    return exchange_values(x, (const char *)c->send + bytes_of(x, x->at), 0,
                           share(x->len, rank + 1, size) - share(x->len, rank, size), share, x->len, e);
}

/* ---- exchanges ---- */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes that an exchange receives before they are combined. */
static size_t slots_size(const struct comm_call *c, int size)
{
    size_t el = comm_type_size(c->type), n = (size_t)size, slot = SLOTS / el / n;

    switch (c->kind) {
    case COMM_BARRIER: return n;
    case COMM_REDUCE_SCATTER: return min_size(c->n, slot ? slot : 1) * n * el;
    case COMM_ALL_REDUCE:
        if (c->n <= SMALL / el / n)
            return c->n * n * el;
        return (min_size(c->n, SLOTS / el) / n + 1) * n * el;
    default: return 0;
    }
}

static void exchange_free(struct exchange *x)
{
    free(x->slots);
    free(x->work);
    free(x->from);
    free(x->counts);
    free(x);
}

static int exchange_new(struct exchange **to, const struct comm_call *c, int size, struct err *e)
{
    struct exchange *x = calloc(1, sizeof *x + 2 * (size_t)size * sizeof *x->messages);
    bool reduces = c->kind == COMM_ALL_REDUCE || c->kind == COMM_REDUCE_SCATTER;
    bool lacks = !x;

    if (x) {
        x->slots = malloc(slots_size(c, size) + 1);
        x->counts = calloc(2 * (size_t)size, sizeof *x->counts);
        lacks = !x->slots || !x->counts;
    }
    if (x && reduces) {
        x->work = malloc(reduce_work_size(size));
        x->from = calloc((size_t)size, sizeof *x->from);
        lacks |= !x->work || !x->from;
    }
    if (lacks) {
        if (x)
            exchange_free(x);
        return err_set(e, ERR_NOMEM, "%s: out of memory", comm_kind_name(c->kind));
    }
    x->call = *c;
    for (int r = 0; r < size; r++) {
        x->counts[r] = c->kind == COMM_ALL_TO_ALL_V ? c->send_counts[r] : c->n;
        x->counts[size + r] = c->kind == COMM_ALL_TO_ALL_V ? c->recv_counts[r] : c->n;
    }
    x->call.send_counts = x->counts;
    *to = x;
    return 0;
}

static int fail(struct shared *s, int rc, const struct err *e)
{
    if (s->rc == 0) {
        s->rc = rc;
        s->err = *e;
    }
    return rc;
}

/* Gets one exchange on; *moved when it did. */
static int progress(struct exchange *x, bool *moved, struct err *e)
{
    struct shared *s = x->group->shared;
    char what[160];
    int rc = 0;

    while (rc == 0 && !x->done) {
        bool all = true;
        for (int i = 0; i < x->n_messages && rc == 0; i++) {
            bool over = false, some = false;
            if (!x->messages[i].message)
                continue;
            rc = s->net->test(x->messages[i].message, &over, &some, e);
            *moved |= some | over;
            if (over)
                x->messages[i].message = NULL;
            all &= over;
            if (rc < 0)
                err_wrap(e, "%s rank %d", x->messages[i].to_us ? "from" : "to", x->messages[i].peer);
        }
        if (rc < 0 || !all)
            break;
        x->n_messages = 0;
        rc = x->step(x, e);
        *moved = true;
    }
    if (rc < 0) {
        comm_describe(x->comm, &x->call, what, sizeof what);
        err_wrap(e, "%s", what);
        return fail(s, rc, e);
    }
    return 0;
}

/* All that is in flight; the done ones leave the list, but stay until they are asked for. */
static int progress_all(struct shared *s, bool *moved, struct err *e)
{
    struct exchange **link = &s->first;

    *moved = false;
    if (s->rc < 0) {
        if (e)
            *e = s->err;
        return s->rc;
    }
    while (*link) {
        TRY(progress(*link, moved, e));
        if ((*link)->done) {
            if ((*link)->comm->watch)
                (*link)->came = log_seconds();
            *link = (*link)->next;
        } else {
            link = &(*link)->next;
        }
    }
    return 0;
}

static int (*const first_step[])(struct exchange *, struct err *) = {
    [COMM_ALL_REDUCE] = step_all_reduce,
    [COMM_REDUCE_SCATTER] = step_reduce_scatter,
    [COMM_ALL_GATHER] = step_all_gather,
    [COMM_BROADCAST] = step_broadcast,
    [COMM_ALL_TO_ALL] = step_all_to_all,
    [COMM_SEND] = step_message,
    [COMM_RECV] = step_message,
    [COMM_ALL_TO_ALL_V] = step_all_to_all,
    [COMM_BARRIER] = step_barrier,
};

static int group_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e)
{
    struct group *g = c->state;
    struct exchange *x = NULL, **link;
    struct err mine;
    bool moved;

    if (g->shared->rc < 0) {
        if (e)
            *e = g->shared->err;
        return g->shared->rc;
    }
    TRY(exchange_new(&x, call, c->size, e));
    x->comm = c;
    x->group = g;
    if (call->kind != COMM_SEND && call->kind != COMM_RECV)
        x->tag = (int)(1 + g->calls++ % TAGS);
    x->step = first_step[call->kind];
    h->state = x;
    for (link = &g->shared->first; *link; link = &(*link)->next)
        ;
    *link = x;
    return progress_all(g->shared, &moved, e ? e : &mine);
}

static int group_progress(struct comm *c, struct err *e)
{
    struct group *g = c->state;
    struct err mine;
    bool moved;

    return progress_all(g->shared, &moved, e ? e : &mine);
}

/* Of a call that is done, for who watches. */
static void over(struct comm_handle *h, struct exchange *x)
{
    h->came = x->came;
    exchange_free(x);
}

static int group_test(struct comm_handle *h, bool *done, struct err *e)
{
    struct exchange *x = h->state;
    struct err mine;
    bool moved;

    TRY(progress_all(x->group->shared, &moved, e ? e : &mine));
    *done = x->done;
    if (*done)
        over(h, x);
    return 0;
}

/* "ranks 1, 3": those whose messages are awaited, else those that took none. */
static void missing(const struct exchange *x, char *to, size_t size)
{
    size_t n = 0;
    int some = 0;

    to[0] = '\0';
    for (int in = 1; in >= 0 && some == 0; in--)
        for (int i = 0; i < x->n_messages; i++) {
            const struct in_flight *m = &x->messages[i];
            if (!m->message || m->to_us != (in == 1) || n + 16 > size)
                continue;
            n += (size_t)snprintf(to + n, size - n, "%s%d", some++ ? ", " : "rank ", m->peer);
        }
}

/* Whoever is waited for may be yet to be started. */
static void tell_whom(const struct exchange *x, double seconds)
{
    char what[160], whom[160];

    comm_describe(x->comm, &x->call, what, sizeof what);
    missing(x, whom, sizeof whom);
    log_msg(LOG_INFO, "%s: waiting for %s, %.0f s so far", what, whom, seconds);
}

static int hung(struct exchange *x, double timeout, struct err *e)
{
    char what[160], whom[160];

    comm_describe(x->comm, &x->call, what, sizeof what);
    missing(x, whom, sizeof whom);
    err_set(e, ERR_LIMIT, "%s stood still for %g s, waiting for %s", what, timeout, whom);
    return fail(x->group->shared, ERR_LIMIT, e);
}

/* Others may need the processor: first others of this machine are let through, then it sleeps. */
void comm_idle(int rounds)
{
    if (rounds < 50)
        return;
    if (rounds < 500) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = rounds < 10000 ? 50000 : 1000000}, NULL);
}

static int group_wait(struct comm_handle *h, struct err *e)
{
    struct exchange *x = h->state;
    const struct network *net = x->group->shared->net;
    struct err mine = {0};
    double last = log_seconds(), tell = net->tell_after;
    bool moved;

    e = e ? e : &mine;
    for (int rounds = 0; !x->done; rounds++) {
        TRY(progress_all(x->group->shared, &moved, e));
        if (moved) {
            rounds = 0;
            last = log_seconds();
            tell = net->tell_after;
        } else if ((rounds % 64 == 63 || net->idle) && log_seconds() - last > x->comm->timeout) {
            return hung(x, x->comm->timeout, e);
        } else if (tell > 0 && log_seconds() - last > tell) {
            tell_whom(x, tell);
            tell *= 2;
        }
        if (!x->done)
            (net->idle ? net->idle : comm_idle)(rounds);
    }
    over(h, x);
    return 0;
}

static int group_split(struct comm *c, int colour, int key, struct comm *to, struct err *e)
{
    struct group *g = c->state, *part = calloc(1, sizeof *part);
    int rc;

    if (!part)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = comm_barrier(c, e); /* whoever is not there is named, and then nobody waits */
    if (rc == 0)
        rc = g->shared->net->split(g->port, colour, key, &part->port, &to->rank, &to->size, e);
    if (rc < 0 || colour < 0) {
        free(part);
        return rc;
    }
    part->shared = g->shared;
    g->shared->groups++;
    to->state = part;
    return 0;
}

/* After a failure messages may still arrive: the network, and what is in flight, are left alone. */
static void group_free(struct comm *c)
{
    struct group *g = c->state;
    struct shared *s = g->shared;

    if (s->rc == 0)
        s->net->close(g->port);
    if (--s->groups == 0 && s->rc == 0)
        free(s);
    free(g);
    free(c);
}

const struct comm_backend comm_mpi = {"mpi", group_start, group_test, group_wait, group_split, group_free, NULL,
                                      group_progress};
const struct comm_backend comm_tcp = {"tcp", group_start, group_test, group_wait, group_split, group_free, NULL,
                                      group_progress};
const struct comm_backend comm_files = {"files", group_start, group_test, group_wait, group_split, group_free, NULL,
                                        group_progress};

void collective_begin(struct comm *c)
{
    struct group *g = c->state;

    g->calls = 0;
}

int collective_open(struct comm **out, const struct comm_backend *backend, const struct network *net, struct err *e)
{
    struct comm *c = calloc(1, sizeof *c);
    struct group *g = calloc(1, sizeof *g);
    struct shared *s = calloc(1, sizeof *s);
    int rc = c && g && s ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = net->open(&g->port, &c->rank, &c->size, e);
    if (rc < 0) {
        free(c), free(g), free(s);
        return rc;
    }
    s->net = net;
    s->groups = 1;
    g->shared = s;
    c->backend = backend;
    c->state = g;
    *out = c;
    return 0;
}
