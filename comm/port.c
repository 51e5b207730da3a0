#include "comm/port.h"

#include <stdlib.h>

#include "base/log.h"

static struct port *new_port(void *net, uint64_t id, int size)
{
    struct port *p = calloc(1, sizeof *p + (size_t)size * sizeof *p->world);

    if (p) {
        p->net = net;
        p->id = id;
        p->size = size;
    }
    return p;
}

struct port *port_world(void *net, int rank, int size)
{
    struct port *p = new_port(net, PORT_WORLD, size);

    for (int r = 0; p && r < size; r++)
        p->world[r] = r;
    if (p)
        p->rank = rank;
    return p;
}

/* What each rank wants, to each. */
struct wish {
    int64_t colour, key;
};

static int wait_for(const struct network *by, void *message, double deadline, int rank, struct err *e)
{
    int rounds = 0;

    for (bool done = false, moved = false; !done; rounds++) {
        TRY(by->test(message, &done, &moved, e));
        if (!done && log_seconds() > deadline)
            return err_set(e, ERR_LIMIT, "rank %d does not join in splitting a group", rank);
        if (!done)
            (by->idle ? by->idle : comm_idle)(rounds);
    }
    return 0;
}

static int tell_wishes(const struct network *by, double timeout, struct port *p, struct wish *w, void **m, struct err *e)
{
    double deadline = log_seconds() + timeout;

    for (int r = 0; r < p->size; r++) {
        if (r == p->rank)
            continue;
        TRY(by->post(p, false, &w[p->rank], sizeof *w, r, PORT_SPLIT_TAG, &m[2 * r], e));
        TRY(by->post(p, true, &w[r], sizeof *w, r, PORT_SPLIT_TAG, &m[2 * r + 1], e));
    }
    for (int i = 0; i < 2 * p->size; i++)
        if (m[i])
            TRY(wait_for(by, m[i], deadline, i / 2, e));
    return 0;
}

static int make_part(const struct port *p, const struct wish *w, struct port **to, struct err *e)
{
    int64_t colour = w[p->rank].colour;
    uint64_t id = (p->id * 0x9e3779b97f4a7c15u ^ p->splits) * 0xd1b54a32d192ed03u + (uint64_t)colour;
    struct port *part = new_port(p->net, id, p->size);

    if (!part)
        return err_set(e, ERR_NOMEM, "out of memory");
    part->size = 0;
    for (int r = 0; r < p->size; r++) {
        int at = part->size;

        if (w[r].colour != colour)
            continue;
        for (; at > 0 && w[part->world[at - 1]].key > w[r].key; at--)
            part->world[at] = part->world[at - 1];
        part->world[at] = r;
        part->size++;
    }
    for (int i = 0; i < part->size; i++) {
        if (part->world[i] == p->rank)
            part->rank = i;
        part->world[i] = p->world[part->world[i]];
    }
    *to = part;
    return 0;
}

int port_split(const struct network *by, double timeout, struct port *p, int colour, int key, struct port **to, int *rank,
               int *size, struct err *e)
{
    static struct wish *left; /* of a split that failed: what is still to come in has its place here */
    struct wish *w = calloc((size_t)p->size, sizeof *w);
    void **m = calloc(2 * (size_t)p->size, sizeof *m);
    int rc;

    p->splits++;
    if (!w || !m) {
        free(w);
        free(m);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    w[p->rank] = (struct wish){colour, key};
    rc = tell_wishes(by, timeout, p, w, m, e);
    free(m);
    if (rc < 0) {
        left = w;
        (void)left;
        return rc;
    }
    if (colour >= 0)
        rc = make_part(p, w, to, e);
    free(w);
    if (rc == 0 && colour >= 0) {
        *rank = (*to)->rank;
        *size = (*to)->size;
    }
    return rc;
}
