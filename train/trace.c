#include "train/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/nvtx.h"

enum { LANES = 16, KEPT = 64 };

struct trace {
    FILE *f; /* NULL: none */
    char *path;
    struct comm *world;
    int rank;
    double start;
    bool some;          /* an event is written */
    double lane[LANES]; /* until when each row of calls is taken */
    /* The union of the replicas' calls: the last stretches, and the sum of those before them. */
    struct { double from, to; } kept[KEPT];
    int n_kept;
    double before, waited;
};

static void event(struct trace *t, int row, const char *name, const char *more, double from, double to)
{
    if (!t->f)
        return;
    fprintf(t->f, "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f%s}",
            t->some ? "," : "[", name, t->rank, row, (from - t->start) * 1e6, (to - from) * 1e6, more);
    t->some = true;
}

void trace_span(struct trace *t, enum trace_row row, const char *name, int64_t n, double from, double to)
{
    char numbered[80];

    if (!t)
        return;
    snprintf(numbered, sizeof numbered, n < 0 ? "%s" : "%s %" PRId64, name, n);
    event(t, row, numbered, "", from, to);
}

double trace_begin(const struct trace *t, const char *name, int64_t n)
{
    char numbered[80];

    if (!t)
        return 0;
    snprintf(numbered, sizeof numbered, "%s %" PRId64, name, n);
    nvtx_push(numbered);
    return log_seconds();
}

void trace_end(struct trace *t, enum trace_row row, const char *name, int64_t n, double from)
{
    if (!t)
        return;
    nvtx_pop();
    if (row != TRACE_PROFILER)
        trace_span(t, row, name, n, from, log_seconds());
}

/* Calls come in the order of their ends. */
static void add_stretch(struct trace *t, double from, double to)
{
    while (t->n_kept && t->kept[t->n_kept - 1].to >= from) {
        t->n_kept--;
        from = t->kept[t->n_kept].from < from ? t->kept[t->n_kept].from : from;
    }
    if (t->n_kept == KEPT) {
        t->before += t->kept[0].to - t->kept[0].from;
        memmove(t->kept, t->kept + 1, (KEPT - 1) * sizeof *t->kept);
        t->n_kept--;
    }
    t->kept[t->n_kept].from = from;
    t->kept[t->n_kept++].to = to;
}

static void on_call(void *arg, const struct comm_handle *h, double from, double to, double waited)
{
    struct trace *t = arg;
    char more[160];
    int lane = 0;

    while (lane < LANES - 1 && t->lane[lane] > from)
        lane++;
    t->lane[lane] = to;
    snprintf(more, sizeof more, ",\"args\":{\"group\":\"%s\",\"elements\":%zu,\"type\":\"%s\",\"waited_us\":%.3f}", h->comm->name,
             comm_elements(h->comm, &h->call), comm_type_name(h->call.type), waited * 1e6);
    nvtx_mark(comm_kind_name(h->call.kind));
    event(t, TRACE_CALLS + lane, comm_kind_name(h->call.kind), more, from, to);
    if (strcmp(h->comm->name, "replicas") != 0)
        return;
    add_stretch(t, from, to);
    t->waited += waited;
}

bool trace_wanted(void)
{
    return nvtx_open();
}

static int open_file(struct trace *t, const char *path, struct err *e)
{
    size_t n = strlen(path) + 16;

    t->path = malloc(n);
    if (!t->path)
        return err_set(e, ERR_NOMEM, "out of memory");
    snprintf(t->path, n, t->world->size > 1 ? "%s.%d" : "%s", path, t->world->rank);
    t->f = fopen(t->path, "we");
    return t->f ? 0 : err_sys(e, ERR_IO, "cannot open '%s'", t->path);
}

int trace_open(struct trace **out, const char *path, struct comm *world, struct err *e)
{
    struct trace *t = calloc(1, sizeof *t);

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    nvtx_open();
    t->rank = world->rank;
    t->world = world;
    t->start = log_seconds();
    if (path && open_file(t, path, e) < 0) {
        free(t->path);
        free(t);
        return e->code;
    }
    world->watch = on_call;
    world->watch_arg = t;
    *out = t;
    return 0;
}

void trace_replicas(const struct trace *t, double *under_way, double *waited)
{
    *under_way = t->before;
    for (int i = 0; i < t->n_kept; i++)
        *under_way += t->kept[i].to - t->kept[i].from;
    *waited = t->waited;
}

int trace_close(struct trace *t, struct err *e)
{
    int rc = 0;

    if (!t)
        return 0;
    t->world->watch = NULL;
    if (t->f) {
        bool bad;

        fprintf(t->f, t->some ? "\n]\n" : "[]\n");
        bad = ferror(t->f);
        if (fclose(t->f) != 0 || bad)
            rc = err_sys(e, ERR_IO, "cannot write '%s'", t->path);
    }
    free(t->path);
    free(t);
    return rc;
}
