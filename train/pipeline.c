#include "train/pipeline.h"

#include <string.h>

/* ---- schedules ---- */

/* The k-th pass one way. */
static struct pipeline_op nth(const struct pipeline_shape *s, bool back, int64_t k)
{
    int64_t group = k / (s->stages * s->chunks) * s->stages, at = k % (s->stages * s->chunks);
    int64_t n = s->micros - group < s->stages ? s->micros - group : s->stages; /* micro-batches of the group */
    struct pipeline_op op = {back, 0, k};

    if (s->chunks == 1)
        return op;
    op.chunk = (int)(at / n);
    op.micro = group + at % n;
    if (back)
        op.chunk = s->chunks - 1 - op.chunk;
    return op;
}

int64_t pipeline_ops(const struct pipeline_shape *s)
{
    return s->micros * s->chunks * (s->forward ? 1 : 2);
}

struct pipeline_op pipeline_at(const struct pipeline_shape *s, int stage, int64_t i)
{
    int64_t all = s->micros * s->chunks, ahead = s->stages - 1 - stage;

    if (s->chunks > 1)
        ahead = 2 * ahead + (int64_t)(s->chunks - 1) * s->stages;
    if (s->forward || ahead > all)
        ahead = all;
    if (i < ahead)
        return nth(s, false, i);
    i -= ahead;
    if (i >= 2 * (all - ahead))
        return nth(s, true, i - (all - ahead));
    return nth(s, i % 2, i % 2 ? i / 2 : ahead + i / 2);
}

int pipeline_slots(const struct pipeline_shape *s, int stage)
{
    int64_t n = pipeline_ops(s);
    int now = 0, most = 1;

    for (int64_t i = 0; i < n && !s->forward; i++) {
        now += pipeline_at(s, stage, i).back ? -1 : 1;
        if (now > most)
            most = now;
    }
    return most;
}

/* ---- messages ---- */

/* Of the four ways the i / 2-th, in and out, forward and backward each. */
static struct pipeline_way *way(struct pipeline *p, int i)
{
    return i < 4 ? &p->in[i / 2] : &p->out[i / 2 - 2];
}

/* On a device, what waits in a group waits in order, so a stage that receives from one and sends to another has a
 * group for each: of the links between stages i and i + 1 the even ones, the odd ones and, from the last of an odd number of
 * stages to the first, one more.  Forward and backward have them each. */
static int open_links(struct pipeline *p, struct err *e)
{
    int n = p->forth->size, at = p->forth->rank;
    const int colour[] = {at / 2, (at + 1) % (n % 2 ? n + 1 : n) / 2, at == 0 || at == n - 1 ? 0 : -1};

    for (int i = 0; i < (n % 2 ? 6 : 4); i++)
        TRY(comm_split(p->forth, colour[i / 2], at, i % 2 ? "link, backward" : "link", &p->links[i], e));
    return 0;
}

/* The way over the link behind stage i, of which this stage is an end. */
static void over_link(struct pipeline *p, struct pipeline_way *w, int i, bool back)
{
    int n = p->forth->size;

    w->group = p->links[(i == n - 1 && n % 2 ? 4 : i % 2 ? 2 : 0) + back];
    w->peer = 1 - w->group->rank;
}

/* Forward and backward have a group each, so that messages of one kind meet in the order in which both
 * sides have them, also where two stages are each other's next. */
static int open_ways(struct pipeline *p, struct err *e)
{
    int n = p->forth->size, at = p->forth->rank, before = (at + n - 1) % n;

    if (p->direct)
        TRY(open_links(p, e));
    else
        TRY(comm_split(p->forth, 0, at, "pipeline, backward", &p->back, e));
    for (int back = 0; back < 2; back++) {
        struct comm *group = back ? p->back : p->forth;

        p->in[back] = (struct pipeline_way){.group = group, .peer = back ? (at + 1) % n : before};
        p->out[back] = (struct pipeline_way){.group = group, .peer = back ? before : (at + 1) % n};
        if (p->direct) {
            over_link(p, &p->in[back], back ? at : before, back);
            over_link(p, &p->out[back], back ? before : at, back);
        }
    }
    return 0;
}

int pipeline_open(struct pipeline *p, struct comm *group, int chunks, struct device *dev, size_t n, enum comm_type type,
                  struct err *e)
{
    *p = (struct pipeline){.dev = dev, .chunks = chunks, .n = n, .type = type};
    if (!group || group->size == 1)
        return 0;
    p->forth = group;
    p->direct = comm_takes_device(group) && dev->kind != DEVICE_CPU;
    TRY(open_ways(p, e));
    for (int i = 0; i < 8; i++)
        TRY((p->direct ? device_alloc : device_alloc_host)(dev, &way(p, i)->buf[i % 2], n * comm_type_size(type), e));
    return 0;
}

void pipeline_close(struct pipeline *p)
{
    for (int i = 0; i < 8 && p->dev; i++)
        (p->direct ? device_free : device_free_host)(p->dev, way(p, i)->buf[i % 2]);
    for (int i = 0; i < 6; i++)
        comm_close(p->links[i]);
    comm_close(p->back);
    memset(p, 0, sizeof *p);
}

int pipeline_take(struct pipeline *p, void *to, const void *in, struct err *e)
{
    return (p->direct ? device_copy : device_put)(p->dev, to, in, p->n * comm_type_size(p->type), e);
}

int pipeline_give(struct pipeline *p, void *out, const void *from, struct err *e)
{
    return (p->direct ? device_copy : device_get)(p->dev, out, from, p->n * comm_type_size(p->type), e);
}

static int stage_of(const struct pipeline *p)
{
    return p->forth ? p->forth->rank : 0;
}

/* Whether op takes something from another stage (or gives it something). */
static bool is_linked(const struct pipeline *p, const struct pipeline_op *op, bool gives)
{
    bool ahead = gives != op->back; /* in the order of the model */

    if (!p->forth)
        return false;
    if (ahead)
        return stage_of(p) < p->forth->size - 1 || op->chunk < p->chunks - 1;
    return stage_of(p) > 0 || op->chunk > 0;
}

/* Posts message w->n, in the buffer whose turn it is. */
static int post(struct pipeline *p, struct pipeline_way *w, bool gives, struct err *e)
{
    int turn = (int)(w->n++ % 2);
    struct comm_call call = {
        .kind = gives ? COMM_SEND : COMM_RECV, .send = w->buf[turn], .recv = w->buf[turn], .n = p->n, .type = p->type,
        .peer = w->peer, .on_device = p->direct,
    };
    bool done;

    TRY(comm_start(w->group, &call, &w->handle[turn], e));
    return p->direct ? comm_test(&w->handle[turn], &done, e) : 0; /* a device's begin when they are asked for */
}

/* Where the stage stands, for each way which operation is the next to receive. */
struct place {
    const struct pipeline_shape *shape;
    int64_t next[2];
};

/* Posts the next receive one way, if there is another. */
static int post_next(struct pipeline *p, struct place *at, bool back, struct err *e)
{
    int64_t all = pipeline_ops(at->shape);

    while (at->next[back] < all) {
        struct pipeline_op op = pipeline_at(at->shape, stage_of(p), at->next[back]++);

        if (op.back == back && is_linked(p, &op, false))
            return post(p, &p->in[back], false, e);
    }
    return 0;
}

/* The next receive is posted before the operation runs, and two messages may be under way to the next stage. */
static int one(struct pipeline *p, struct place *at, const struct pipeline_op *op, pipeline_fn *run, void *arg, struct err *e)
{
    struct pipeline_way *from = &p->in[op->back], *to = &p->out[op->back];
    const void *in = NULL;
    void *out = NULL;
    int turn = (int)(to->n % 2);

    if (is_linked(p, op, false)) {
        int last = (int)((from->n - 1) % 2);

        TRY(comm_join(&from->handle[last], e));
        in = from->buf[last];
        TRY(post_next(p, at, op->back, e));
    }
    if (is_linked(p, op, true)) {
        TRY(comm_join(&to->handle[turn], e));
        out = to->buf[turn];
    }
    TRY(run(arg, op, in, out, e));
    return out ? post(p, to, true, e) : 0;
}

int pipeline_pass(struct pipeline *p, int64_t micros, bool forward, pipeline_fn *run, void *arg, struct err *e)
{
    const struct pipeline_shape shape = {p->forth ? p->forth->size : 1, p->chunks, micros, forward};
    struct place at = {&shape, {0, 0}};

    for (int back = 0; back < 2; back++)
        TRY(post_next(p, &at, back, e));
    for (int64_t i = 0; i < pipeline_ops(&shape); i++) {
        struct pipeline_op op = pipeline_at(&shape, stage_of(p), i);

        TRY(one(p, &at, &op, run, arg, e));
    }
    for (int i = 0; i < 4; i++)
        TRY(comm_join(&p->out[i / 2].handle[i % 2], e));
    return 0;
}
