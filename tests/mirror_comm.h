/* tests/mirror_comm.h -- a group of one process, whose other ranks have what this one has. */
#ifndef TESTS_MIRROR_COMM_H
#define TESTS_MIRROR_COMM_H

#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

enum { RANKS = 4, RANK = 1 };

static bool mirror_experts; /* are shared by all ranks */
static double mirror_passed; /* bytes that a ring would have passed on so far, of sums, gathered and scattered */

static int mirror_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *err)
{
    size_t n = call->n, w = comm_type_size(call->type);
    const char *send = call->send;

    (void)h, (void)err;
    if (call->kind == COMM_ALL_GATHER || call->kind == COMM_REDUCE_SCATTER || call->kind == COMM_ALL_REDUCE)
        mirror_passed += (double)(n * w) * (c->size - 1) * (call->kind == COMM_ALL_REDUCE ? 2.0 / c->size : 1);
    if (call->kind == COMM_SEND)
        return 0;
    if (call->kind == COMM_RECV) {
        memset(call->recv, 0, n * w);
        return 0;
    }
    if (call->kind == COMM_ALL_TO_ALL_V) {
        for (int r = n = 0; r < c->size; r++)
            n += call->recv_counts[r];
        memset(call->recv, 0, n * w);
        return 0;
    }
    if (call->kind == COMM_ALL_TO_ALL) {
        for (int r = 0; r < c->size; r++)
            memcpy((char *)call->recv + (size_t)r * n * w, send + (size_t)c->rank * n * w, n * w);
        return 0;
    }
    if (call->kind == COMM_REDUCE_SCATTER)
        send += (size_t)c->rank * n * w;
    if (call->kind == COMM_ALL_GATHER) {
        for (int r = 0; r < c->size; r++)
            if ((char *)call->recv + (size_t)r * n * w != send)
                memcpy((char *)call->recv + (size_t)r * n * w, send, n * w);
        return 0;
    }
    if (n && send != call->recv)
        memmove(call->recv, send, n * w);
    for (size_t i = 0; i < n && call->op == COMM_SUM && call->type == COMM_F32; i++)
        ((float *)call->recv)[i] *= (float)c->size;
    return 0;
}

static int mirror_test(struct comm_handle *h, bool *done, struct err *err)
{
    (void)h, (void)err;
    *done = true;
    return 0;
}

static int mirror_wait(struct comm_handle *h, struct err *err)
{
    (void)h, (void)err;
    return 0;
}

static int mirror_split(struct comm *c, int colour, int key, struct comm *to, struct err *err)
{
    bool replicas = strcmp(to->name, "data") == 0 || strcmp(to->name, "replicas") == 0;
    bool all = replicas || (mirror_experts && strcmp(to->name, "expert") == 0);

    (void)c, (void)colour, (void)key, (void)err;
    to->size = all ? RANKS : 1;
    to->rank = all ? RANK : 0;
    return 0;
}

static void mirror_free(struct comm *c)
{
    free(c);
}

static const struct comm_backend mirror = {"mirror", mirror_start, mirror_test, mirror_wait, mirror_split, mirror_free,
                                           NULL, NULL};

/* RANKS data-parallel ranks.  For comm_close; NULL: out of memory. */
static struct comm *mirror_open(void)
{
    struct comm *world = calloc(1, sizeof *world);

    if (world)
        *world = (struct comm){.backend = &mirror, .size = RANKS, .rank = RANK, .timeout = 60, .name = "world"};
    return world;
}

#endif
