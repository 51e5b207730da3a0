#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plugin.h"
#include "comm/message.h"
#include "comm/nccl_backend.h"
#include "comm/nccl_library.h"
#include "comm/rendezvous.h"
#include "comm/tcp.h"

size_t comm_type_size(enum comm_type t)
{
    static const size_t size[] = {1, 4, 8, 4, 8, 2};

    return size[t];
}

const char *comm_type_name(enum comm_type t)
{
    static const char *const name[] = {"u8", "i32", "i64", "fp32", "fp64", "bf16"};

    return name[t];
}

const char *comm_kind_name(enum comm_kind k)
{
    static const char *const name[] = {"all-reduce", "reduce-scatter", "all-gather",
                                       "broadcast",  "all-to-all",     "send",
                                       "receive",    "all-to-all-v",   "barrier"};

    return name[k];
}

size_t comm_elements(const struct comm *c, const struct comm_call *call)
{
    size_t n = 0;

    if (call->kind != COMM_ALL_TO_ALL_V)
        return call->n;
    for (int r = 0; r < c->size; r++)
        n += call->send_counts[r];
    return n;
}

void comm_describe(const struct comm *c, const struct comm_call *call, char *to, size_t size)
{
    snprintf(to, size, "rank %d of %d in group '%s' (world rank %d): %s of %llu %s elements", c->rank, c->size, c->name,
             c->world_rank, comm_kind_name(call->kind), (unsigned long long)comm_elements(c, call),
             comm_type_name(call->type));
}

static int from_env(const char *name)
{
    const char *v = getenv(name);

    return v ? (int)strtol(v, NULL, 10) : 0;
}

/* How many MPI's own launchers started, or 0. */
static int started_for_mpi(void)
{
    int n = from_env("OMPI_COMM_WORLD_SIZE");

    return n ? n : from_env("PMI_SIZE");
}

int comm_ranks_started(void)
{
    int n = started_for_mpi();

    if (n == 0 && !rendezvous_started(&n))
        n = 1;
    return n > 1 ? n : 1;
}

int mpi_backend_open(const struct mpi_backend **b, struct err *e)
{
    const void *table;
    char path[4096];
    int rc = plugin_find("quern-mpi.so", "QUERN_MPI", path, sizeof path, e);

    *b = NULL;
    if (rc < 0) {
        err_wrap(e, "this build has no MPI backend (make it where mpicc is)");
        return rc;
    }
    TRY(plugin_open(path, true, "MPI", MPI_BACKEND_SYMBOL, MPI_BACKEND_ABI, &table, e));
    *b = table;
    return 0;
}

static int open_mpi(struct comm **c, int started, struct err *e)
{
    const struct mpi_backend *b;
    int rc = mpi_backend_open(&b, e);

    if (rc == 0)
        rc = collective_open(c, &comm_mpi, &b->net, e);
    if (rc < 0) {
        err_wrap(e, "%d ranks were started, but cannot be used", started);
        return rc;
    }
    if (started > 1 && (*c)->size != started) {
        comm_close(*c);
        *c = NULL;
        return err_set(e, ERR_UNSUPPORTED,
                       "%d ranks were started, but each is alone for MPI: start them with mpirun "
                       "or srun --mpi=pmix",
                       started);
    }
    return 0;
}

static int open_host(struct comm **c, const char *backend, int started, double timeout, struct err *e)
{
    bool nccl = strcmp(backend, "nccl") == 0, any = nccl || strcmp(backend, "auto") == 0;
    bool launched = started_for_mpi() || getenv("PMIX_RANK"), slurm = !getenv("WORLD_SIZE") && getenv("SLURM_PROCID");
    /* torchrun's ranks are not MPI's; tasks of srun may be, if it was told so, but NCCL's need no MPI. */
    bool mpi = launched || (slurm && !nccl);

    if (strcmp(backend, "self") == 0 || (any && started == 1))
        return comm_open_self(c, e);
    if (strcmp(backend, "tcp") == 0 || (any && !mpi))
        return collective_open(c, &comm_tcp, tcp_network(timeout), e);
    if (strcmp(backend, "mpi") == 0 || any)
        return open_mpi(c, started, e);
    return err_set(e, ERR_ARG, "no backend '%s' for ranks: self, mpi, tcp, nccl or auto", backend);
}

int comm_open(struct comm **c, const char *backend, double timeout, struct err *e)
{
    bool nccl = strcmp(backend, "nccl") == 0;

    *c = NULL;
    if (nccl)
        TRY(nccl_library(&(const struct nccl_api *){NULL}, e));
    TRY(open_host(c, backend, comm_ranks_started(), timeout, e));
    (*c)->world_rank = (*c)->rank;
    (*c)->timeout = timeout;
    (*c)->can_use_device = nccl;
    snprintf((*c)->name, sizeof (*c)->name, "world");
    return 0;
}

int comm_split(struct comm *c, int colour, int key, const char *name, struct comm **out, struct err *e)
{
    struct comm *to = calloc(1, sizeof *to);
    int rc;

    *out = NULL;
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory");
    to->backend = c->backend;
    to->world_rank = c->world_rank;
    to->timeout = c->timeout;
    to->starts_again = c->starts_again;
    to->watch = c->watch;
    to->watch_arg = c->watch_arg;
    snprintf(to->name, sizeof to->name, "%s", name);
    rc = c->backend->split(c, colour, key, to, e);
    if (rc < 0) {
        free(to);
        return rc;
    }
    if (c->device_backend)
        rc = c->device_backend->split(c, colour, key, to, e);
    if (rc < 0 || colour < 0) {
        if (colour >= 0)
            to->backend->free(to);
        else
            free(to);
        return rc;
    }
    *out = to;
    return 0;
}

static bool has_peer(enum comm_kind k)
{
    return k == COMM_BROADCAST || k == COMM_SEND || k == COMM_RECV;
}

static const struct comm_backend *backend_of(const struct comm_handle *h)
{
    return h->call.on_device ? h->comm->device_backend : h->comm->backend;
}

int comm_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e)
{
    memset(h, 0, sizeof *h);
    if (has_peer(call->kind)) {
        if (call->peer < 0 || call->peer >= c->size)
            return err_set(e, ERR_ARG, "%s: rank %d is outside the group of %d",
                           comm_kind_name(call->kind), call->peer, c->size);
        if (call->kind != COMM_BROADCAST && call->peer == c->rank)
            return err_set(e, ERR_ARG, "%s: rank %d cannot be its own peer",
                           comm_kind_name(call->kind), c->rank);
    }
    if (call->on_device && !c->device_backend)
        return err_set(e, ERR_ARG, "%s: the group '%s' takes no memory of a device", comm_kind_name(call->kind), c->name);
    h->comm = c;
    h->call = *call;
    h->call.on_device = call->on_device && call->kind != COMM_BARRIER;
    if (c->watch)
        h->from = log_seconds();
    return backend_of(h)->start(c, call, h, e);
}

/* since: when the caller began to wait. */
static void tell(const struct comm_handle *h, double now, double since)
{
    double came = h->came > 0 && h->came < now ? h->came : now;

    if (h->comm && h->comm->watch && h->comm->size > 1)
        h->comm->watch(h->comm->watch_arg, h, h->from, came, came > since ? came - since : 0);
}

int comm_test(struct comm_handle *h, bool *done, struct err *e)
{
    int rc = 0;

    *done = true;
    if (h->comm)
        rc = backend_of(h)->test(h, done, e);
    if (*done && h->comm && h->comm->watch) {
        double now = log_seconds();

        tell(h, now, now);
    }
    if (*done || rc < 0)
        h->comm = NULL;
    return rc;
}

int comm_progress(struct comm *c, struct err *e)
{
    return c->backend->progress ? c->backend->progress(c, e) : 0;
}

int comm_wait(struct comm_handle *h, struct err *e)
{
    double since = h->comm && h->comm->watch ? log_seconds() : 0;
    int rc = h->comm ? backend_of(h)->wait(h, e) : 0;

    if (h->comm && h->comm->watch)
        tell(h, log_seconds(), since);
    h->comm = NULL;
    return rc;
}

int comm_join(struct comm_handle *h, struct err *e)
{
    int rc;

    if (!h->comm || !h->call.on_device)
        return comm_wait(h, e);
    rc = h->comm->device_backend->join(h, e); /* which tells whoever watches, when it is done */
    h->comm = NULL;
    return rc;
}

int comm_use_device(struct comm *world, const struct comm_device *d, struct err *e)
{
    return nccl_use_device(world, d, e);
}

void comm_leave_device(struct comm *c)
{
    if (c->device_backend)
        c->device_backend->free(c);
    c->device_backend = NULL;
}

void comm_close(struct comm *c)
{
    if (!c)
        return;
    comm_leave_device(c);
    c->backend->free(c);
}

int comm_run(struct comm *c, const struct comm_call *call, struct err *e)
{
    struct comm_handle h;

    TRY(comm_start(c, call, &h, e));
    return comm_wait(&h, e);
}

int comm_all_reduce(struct comm *c, void *buf, size_t n, enum comm_type type, enum comm_op op,
                    struct err *e)
{
    struct comm_call call = {.kind = COMM_ALL_REDUCE, .send = buf, .recv = buf, .n = n, .type = type, .op = op};

    return comm_run(c, &call, e);
}

int comm_all_gather(struct comm *c, const void *send, void *recv, size_t n, enum comm_type type,
                    struct err *e)
{
    struct comm_call call = {.kind = COMM_ALL_GATHER, .send = send, .recv = recv, .n = n, .type = type};

    return comm_run(c, &call, e);
}

int comm_broadcast(struct comm *c, void *buf, size_t n, enum comm_type type, int root, struct err *e)
{
    struct comm_call call = {
        .kind = COMM_BROADCAST, .send = buf, .recv = buf, .n = n, .type = type, .peer = root};

    return comm_run(c, &call, e);
}

int comm_barrier(struct comm *c, struct err *e)
{
    struct comm_call call = {.kind = COMM_BARRIER};

    return comm_run(c, &call, e);
}

int comm_agree(struct comm *c, int *rc, struct err *why, struct err *e)
{
    int32_t first = *rc < 0 ? c->rank : INT32_MAX;
    struct err said = {0};

    if (*rc < 0) /* nothing else than the text, so that the same is said in each run */
        err_set(&said, *rc, "%s", why->msg);
    if (comm_all_reduce(c, &first, 1, COMM_I32, COMM_MIN, e) < 0)
        return e->code;
    if (first == INT32_MAX)
        return 0;
    if (comm_broadcast(c, &said, sizeof said, COMM_U8, first, e) < 0)
        return e->code;
    *why = said;
    *rc = said.code;
    if (first != c->rank)
        err_wrap(why, "rank %d", first);
    return 0;
}
