/* Collectives of a device by NCCL.  A group has a stream; a call waits there for what the device's own stream held when it
 * was started, and an event behind it says that it is over.  NCCL's calls may stand still when a rank is missing: the
 * first ones on the host, while connections are made, later ones on the device.  The former are made in a thread of their own,
 * which is left behind; the latter are looked after by whoever waits or, when nobody does, by a watcher. */
#include "comm/nccl_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/apart.h"
#include "comm/message.h"
#include "comm/nccl_calls.h"
#include "comm/nccl_library.h"

static const struct comm_backend comm_nccl;

/* ---- failures ---- */

/* With the lock.  Kernels that wait for a rank end, and with them what waits for the device. */
static int fail(struct nccl_world *w, struct nccl_group *g, int rc, const struct err *e)
{
    if (w->rc < 0)
        return w->rc;
    w->rc = rc;
    w->err = *e;
    w->failed = g->comm->size > 1 ? g : NULL;
    for (g = w->groups; g; g = g->next) {
        if (g->nccl)
            w->api->abort(g->nccl);
        g->nccl = NULL;
    }
    return rc;
}

static int nccl_failed(const struct nccl_group *g, int rc, const char *what, struct err *e)
{
    const struct nccl_api *api = g->world->api;
    const char *more = api->last_error ? api->last_error(g->nccl) : "";

    err_set(e, ERR_DEVICE, "rank %d of %d in group '%s' (world rank %d): %s: NCCL: %s%s%s%s", g->comm->rank, g->comm->size,
            g->comm->name, g->comm->world_rank, what, api->error_text(rc), more && *more ? ": " : "", more ? more : "",
            rc == NCCL_INVALID_USAGE ? " (it wants a GPU for each rank; over mpi or tcp they may share one)" : "");
    return ERR_DEVICE;
}

static int stood_still(const struct nccl_group *g, const struct comm_call *call, struct err *e)
{
    char what[200];

    comm_describe(g->comm, call, what, sizeof what);
    return err_set(e, ERR_LIMIT, "%s stood still for %g s", what, g->comm->timeout);
}

/* NCCL does not say who is missing; over the host, ranks can be asked. */
static void find_missing(struct nccl_world *w)
{
    struct comm *c = w->failed->comm;
    double timeout = c->timeout;
    size_t n = strlen(w->err.msg);
    const char *more = "though no rank is missing: see to the devices and what connects them";
    bool waited = true;
    struct err e;

    w->failed = NULL;
    c->timeout = timeout < 10 ? timeout : 10;
    if (comm_barrier(c, &e) < 0) {
        more = strstr(e.msg, "waiting for ");
        waited = more != NULL;
    }
    snprintf(w->err.msg + n, sizeof w->err.msg - n, "%s%s", waited ? ", " : ": ", waited ? more : e.msg);
    c->timeout = timeout;
}

/* The failure of this world, if there was one. */
static int failure(struct nccl_world *w, struct err *e)
{
    bool failed;

    pthread_mutex_lock(&w->lock);
    failed = w->rc < 0;
    pthread_mutex_unlock(&w->lock);
    if (!failed) /* which only ever becomes true */
        return 0;
    if (w->failed && w->rc == ERR_LIMIT)
        find_missing(w);
    if (e)
        *e = w->err;
    return w->rc;
}

static int failed_here(struct nccl_group *g, int rc, const struct err *why, struct err *e)
{
    pthread_mutex_lock(&g->world->lock);
    fail(g->world, g, rc, why);
    pthread_mutex_unlock(&g->world->lock);
    return failure(g->world, e);
}

/* ---- calls that may stand still on the host ---- */

static int on_errand(void *arg)
{
    struct nccl_group *g = arg;
    const struct comm_device *d = &g->world->dev;
    struct err e;

    return d->bind(d->device, &e) < 0 ? NCCL_INVALID_USAGE : g->errand(g);
}

/* While a thread is out the watcher calls nothing of NCCL's; what it has begun ends first. */
static void set_apart(struct nccl_world *w, bool apart)
{
    pthread_mutex_lock(&w->lock);
    w->apart = apart;
    pthread_mutex_unlock(&w->lock);
}

/* NCCL's answer, or -1 if it has none in `seconds`; then the thread goes on, and the group stays in memory. */
static int send_out(struct nccl_group *g, int (*errand)(struct nccl_group *g), double seconds)
{
    struct nccl_world *w = g->world;
    int rc;

    g->errand = errand;
    set_apart(w, true);
    rc = run_apart(on_errand, g, seconds);
    if (rc != -1)
        set_apart(w, false);
    return rc;
}

/* ---- calls ---- */

static int enqueue(struct nccl_group *g)
{
    return nccl_enqueue(g, g->list);
}

static int copy(struct nccl_group *g, const struct flight *f, struct err *e)
{
    const struct comm_device *d = &g->world->dev;
    const struct comm_call *c = &f->handle.call;
    size_t n = f->counts ? f->counts[0] : c->n;

    if (!n || c->send == c->recv)
        return 0;
    return d->copy(d->device, c->recv, c->send, n * comm_type_size(c->type), g->stream, e);
}

static int to_nccl(struct nccl_group *g, struct flight *list, struct err *e)
{
    struct nccl_world *w = g->world;
    struct err why;
    int rc;

    if (nccl_is_first(g, list)) {
        g->list = list;
        rc = send_out(g, enqueue, g->comm->timeout);
        if (rc == -1)
            return failed_here(g, stood_still(g, &list->handle.call, &why), &why, e);
    } else {
        pthread_mutex_lock(&w->lock);
        rc = w->rc < 0 ? 0 : nccl_enqueue(g, list);
        pthread_mutex_unlock(&w->lock);
    }
    if (rc)
        return failed_here(g, nccl_failed(g, rc, comm_kind_name(list->handle.call.kind), &why), &why, e);
    return failure(w, e);
}

/* Begins with the calls of a list, together. */
static int launch(struct nccl_group *g, struct flight *list, struct err *e)
{
    struct nccl_world *w = g->world;
    const struct comm_device *d = &w->dev;

    for (struct flight *f = list; f; f = f->next)
        TRY(d->after(d->device, f->before, g->stream, e));
    if (g->nccl)
        TRY(to_nccl(g, list, e));
    else
        TRY(copy(g, list, e));
    while (list) {
        struct flight *f = list;

        list = f->next;
        TRY(d->record(d->device, f->after, g->stream, e));
        pthread_mutex_lock(&w->lock);
        f->launched = true;
        f->next = w->first;
        w->first = f;
        pthread_mutex_unlock(&w->lock);
    }
    return 0;
}

static int launch_gathered(struct nccl_group *g, struct err *e)
{
    struct flight *list = g->gathered;

    g->gathered = NULL;
    g->last = &g->gathered;
    return list ? launch(g, list, e) : 0;
}

/* ---- flights ---- */

/* With the lock. */
static void land(struct nccl_world *w, struct flight *f)
{
    struct flight **p = &w->first;

    while (*p && *p != f)
        p = &(*p)->next;
    if (*p)
        *p = f->next;
    f->next = w->spare;
    w->spare = f;
}

static int take_off(struct flight **out, struct nccl_group *g, const struct comm_handle *h, struct err *e)
{
    struct nccl_world *w = g->world;
    const struct comm_device *d = &w->dev;
    size_t size = (size_t)g->comm->size;
    struct flight *f = w->spare;

    if (f)
        w->spare = f->next;
    else if (!(f = calloc(1, sizeof *f)))
        return err_set(e, ERR_NOMEM, "out of memory");
    if (!f->before)
        TRY(d->event_new(d->device, &f->before, e));
    if (!f->after)
        TRY(d->event_new(d->device, &f->after, e));
    free(f->counts);
    f->counts = NULL;
    if (h->call.kind == COMM_ALL_TO_ALL_V) {
        if (!(f->counts = malloc(2 * size * sizeof *f->counts)))
            return err_set(e, ERR_NOMEM, "out of memory");
        memcpy(f->counts, h->call.send_counts, size * sizeof *f->counts);
        memcpy(f->counts + size, h->call.recv_counts, size * sizeof *f->counts);
    }
    f->next = NULL;
    f->group = g;
    f->handle = *h;
    f->handle.call.send_counts = f->counts;
    f->since = log_seconds();
    f->launched = f->joined = false;
    TRY(d->record(d->device, f->before, d->stream(d->device), e));
    *out = f;
    return 0;
}

/* With the lock: whether something is wrong with a call or, if it is not over, with how long it takes. */
static int examine(struct nccl_world *w, struct flight *f, bool come, struct err *e)
{
    struct nccl_group *g = f->group;
    int state = NCCL_SUCCESS;

    if (w->rc < 0 || !g->nccl)
        return w->rc;
    if (w->api->async_error(g->nccl, &state) != NCCL_SUCCESS || (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS))
        return fail(w, g, nccl_failed(g, state, comm_kind_name(f->handle.call.kind), e), e);
    if (!come && log_seconds() - f->since > g->comm->timeout)
        return fail(w, g, stood_still(g, &f->handle.call, e), e);
    return 0;
}

/* Those that nobody waits for and that are over. */
static int reap(struct nccl_world *w, struct err *e)
{
    struct flight *f, *next;

    for (f = w->first; f; f = next) {
        bool come = false;

        next = f->next;
        if (!f->joined)
            continue;
        TRY(w->dev.query(w->dev.device, f->after, &come, e));
        if (!come)
            continue;
        if (f->group->comm->watch)
            f->group->comm->watch(f->group->comm->watch_arg, &f->handle, f->handle.from, log_seconds(), 0);
        pthread_mutex_lock(&w->lock);
        if (examine(w, f, true, &(struct err){0}) == 0)
            land(w, f);
        pthread_mutex_unlock(&w->lock);
    }
    return failure(w, e);
}

static void *watch(void *arg)
{
    struct nccl_world *w = arg;
    struct err e;
    bool come;
    double pause;

    if (w->dev.bind(w->dev.device, &e) < 0)
        return NULL;
    pthread_mutex_lock(&w->lock);
    pause = w->groups->comm->timeout / 8;
    while (!w->ending) {
        struct timespec until = in_seconds(pause < 1 ? pause : 1);

        pthread_cond_timedwait(&w->wake, &w->lock, &until);
        for (struct flight *f = w->first; f && !w->apart; f = f->next)
            if (f->joined && w->dev.query(w->dev.device, f->after, &come, &e) == 0)
                examine(w, f, come, &e);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the backend ---- */

static int device_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e)
{
    struct nccl_group *g = c->device_state;
    struct flight *f = NULL;

    TRY(reap(g->world, e));
    TRY(take_off(&f, g, h, e));
    h->state = f;
    if (call->kind == COMM_SEND || call->kind == COMM_RECV) {
        *g->last = f;
        g->last = &f->next;
        return 0;
    }
    TRY(launch_gathered(g, e));
    return launch(g, f, e);
}

static int device_test(struct comm_handle *h, bool *done, struct err *e)
{
    struct flight *f = h->state;
    struct nccl_world *w = f->group->world;
    int rc;

    *done = false;
    TRY(reap(w, e));
    if (!f->launched)
        TRY(launch_gathered(f->group, e));
    TRY(w->dev.query(w->dev.device, f->after, done, e));
    pthread_mutex_lock(&w->lock);
    rc = examine(w, f, *done, &(struct err){0});
    if (*done && rc == 0)
        land(w, f);
    pthread_mutex_unlock(&w->lock);
    return rc < 0 ? failure(w, e) : 0;
}

static int device_wait(struct comm_handle *h, struct err *e)
{
    bool done = false;

    for (int rounds = 0; !done; rounds++) {
        TRY(device_test(h, &done, e));
        if (!done)
            comm_idle(rounds);
    }
    return 0;
}

static int device_join(struct comm_handle *h, struct err *e)
{
    struct flight *f = h->state;
    struct nccl_world *w = f->group->world;
    const struct comm_device *d = &w->dev;

    TRY(failure(w, e));
    if (!f->launched)
        TRY(launch_gathered(f->group, e));
    pthread_mutex_lock(&w->lock);
    f->joined = true; /* from here on, for it may have to be ended for the stream to go on */
    pthread_mutex_unlock(&w->lock);
    TRY(d->after(d->device, f->after, d->stream(d->device), e));
    return failure(w, e);
}

/* ---- groups ---- */

static int by_id(struct nccl_group *g)
{
    return g->world->api->init_rank(&g->made, g->comm->size, g->id, g->comm->rank);
}

static int by_split(struct nccl_group *g)
{
    return g->world->api->split(g->nccl, g->colour, g->key, &g->made, NULL);
}

static int destroy(struct nccl_group *g)
{
    return g->world->api->destroy(g->nccl);
}

/* Makes g->made, with all ranks of the group. */
static int make(struct nccl_group *g, int (*how)(struct nccl_group *g), struct err *e)
{
    const struct comm *c = g->comm;
    struct err why;
    int rc = send_out(g, how, c->timeout);

    if (rc == -1) {
        err_set(&why, ERR_LIMIT, "rank %d of %d in group '%s' (world rank %d): making a group of devices stood still for %g s",
                c->rank, c->size, c->name, c->world_rank, c->timeout);
        return failed_here(g, ERR_LIMIT, &why, e);
    }
    return rc ? failed_here(g, nccl_failed(g, rc, "making a group of devices", &why), &why, e) : 0;
}

/* The group's rank 0 makes an id, which goes to the others over the host. */
static int make_by_id(struct nccl_group *g, struct err *e)
{
    struct comm *c = g->comm;
    struct err why = {0};
    int bad = c->rank == 0 ? g->world->api->get_id(&g->id) : 0;
    int rc = bad ? nccl_failed(g, bad, "an id for the group", &why) : 0;

    TRY(comm_agree(c, &rc, &why, e));
    if (rc < 0) {
        *e = why;
        return rc;
    }
    TRY(comm_broadcast(c, &g->id, sizeof g->id, COMM_U8, 0, e));
    TRY(make(g, by_id, e));
    g->nccl = g->made;
    return 0;
}

static int add_group(struct nccl_world *w, struct comm *c, bool alone, struct err *e)
{
    struct nccl_group *g = calloc(1, sizeof *g);

    if (g)
        g->peer = calloc((size_t)c->size, 1);
    if (!g || !g->peer) {
        free(g);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    g->world = w;
    g->comm = c;
    g->last = &g->gathered;
    pthread_mutex_lock(&w->lock);
    g->next = w->groups;
    w->groups = g;
    pthread_mutex_unlock(&w->lock);
    c->device_state = g;
    c->device_backend = &comm_nccl;
    return alone ? 0 : w->dev.stream_new(w->dev.device, &g->stream, e);
}

/* A rank that stays alone needs no group of the library's. */
static int device_split(struct comm *c, int colour, int key, struct comm *to, struct err *e)
{
    struct nccl_group *g = c->device_state, *part = NULL;
    struct nccl_world *w = g->world;
    bool alone = colour < 0 || (to->size == 1 && c->size > 1) || !g->nccl;

    TRY(failure(w, e));
    if (colour >= 0) {
        TRY(add_group(w, to, alone, e));
        part = to->device_state;
    }
    if (!g->nccl || (!w->api->split && alone))
        return 0;
    if (!w->api->split)
        return make_by_id(part, e);
    g->colour = alone ? NCCL_SPLIT_NONE : colour;
    g->key = key;
    TRY(make(g, by_split, e));
    if (part)
        part->nccl = g->made;
    return 0;
}

/* What is under way in the group comes to its end first. */
static void end_group(struct nccl_group *g)
{
    struct nccl_world *w = g->world;
    double until = log_seconds() + g->comm->timeout;
    struct err e;
    bool some = true;

    for (int rounds = 0; some && reap(w, &e) == 0 && log_seconds() < until; rounds++) {
        some = false;
        for (const struct flight *f = w->first; f; f = f->next)
            some |= f->group == g;
        if (some)
            comm_idle(rounds);
    }
    if (some)
        return; /* also after a failure */
    if (g->nccl && send_out(g, destroy, 10) == -1)
        return;
    if (g->stream)
        w->dev.stream_free(w->dev.device, g->stream);
}

static void free_flights(struct nccl_world *w, struct flight *f)
{
    struct flight *next;

    for (; f; f = next) {
        next = f->next;
        w->dev.event_free(w->dev.device, f->before);
        w->dev.event_free(w->dev.device, f->after);
        free(f->counts);
        free(f);
    }
}

static void end_world(struct nccl_world *w)
{
    if (w->watching) {
        pthread_mutex_lock(&w->lock);
        w->ending = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->watcher, NULL);
    }
    if (w->rc < 0 || w->apart)
        return; /* the device may still be at work */
    free_flights(w, w->first);
    free_flights(w, w->spare);
    free(w);
}

static void device_free(struct comm *c)
{
    struct nccl_group *g = c->device_state, **p;
    struct nccl_world *w = g->world;

    end_group(g);
    pthread_mutex_lock(&w->lock);
    for (p = &w->groups; *p != g; p = &(*p)->next)
        ;
    *p = g->next;
    if (w->failed == g)
        w->failed = NULL;
    pthread_mutex_unlock(&w->lock);
    if (!w->apart) {
        free(g->peer);
        free(g);
    }
    if (!w->groups)
        end_world(w);
}

static const struct comm_backend comm_nccl = {
    "nccl", device_start, device_test, device_wait, device_split, device_free, device_join, NULL,
};

int nccl_use_device(struct comm *world, const struct comm_device *d, struct err *e)
{
    struct nccl_world *w = calloc(1, sizeof *w);
    int rc = w ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = nccl_library(&w->api, e);
    if (rc == 0 && d->host && !nccl_library_takes_host())
        rc = err_set(e, ERR_ARG, "NCCL needs a GPU");
    if (rc < 0) {
        free(w);
        return rc;
    }
    w->dev = *d;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    TRY(add_group(w, world, false, e));
    TRY(make_by_id(world->device_state, e));
    w->watching = pthread_create(&w->watcher, NULL, watch, w) == 0;
    return 0;
}
