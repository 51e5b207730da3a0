#include "pipelines/plan_progress.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/progress.h"

/* Of one process, for all to see. */
struct share {
    double done, total, read, dropped, bad;
};

struct plan_progress {
    struct share *share; /* one a process, in shared memory */
    int n, own;
    int pass, passes;
    double passed;                /* bytes that were read in the passes before */
    double total, before;         /* of this pass: all its bytes, and those of former runs */
    double through, kept;         /* of the inputs that are through: bytes read, and written for the next pass */
    const char *input;
    double size;                  /* of the input in hand */
    struct share counted;         /* of the inputs that are through: read, dropped, bad */
};

int plan_progress_open(struct plan_progress **out, int n, struct err *e)
{
    struct plan_progress *p = calloc(1, sizeof *p);
    size_t bytes = (size_t)n * sizeof *p->share;

    *out = p;
    if (p) {
        p->n = n;
        p->share = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    if (!p || p->share == MAP_FAILED) {
        free(p);
        *out = NULL;
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    return 0;
}

void plan_progress_close(struct plan_progress *p)
{
    if (!p)
        return;
    munmap(p->share, (size_t)p->n * sizeof *p->share);
    free(p);
}

void plan_progress_join(struct plan_progress *p, int process)
{
    p->own = process;
    progress_init(NULL, PROGRESS_NONE);
}

static void set(double *to, double value) { __atomic_store(to, &value, __ATOMIC_RELAXED); }

static double get(double *from)
{
    double value;

    __atomic_load(from, &value, __ATOMIC_RELAXED);
    return value;
}

/* Says for this process: so many bytes of its input read, and with it so many counted and kept. */
static void say(struct plan_progress *p, double consumed, const struct share *counted, double kept)
{
    struct share *s = &p->share[p->own];
    double done = p->through + (p->size > 0 ? fmin(consumed, p->size) : consumed), read_now = done - p->before;
    double later = p->passes - 1 - p->pass;

    set(&s->done, p->passed + done);
    set(&s->total, p->total <= 0 ? 0 : p->passed + p->total +
                   (read_now > 0 ? later * (p->kept + kept) * (p->total / read_now) : 0));
    set(&s->read, counted->read);
    set(&s->dropped, counted->dropped);
    set(&s->bad, counted->bad);
}

/* A part that could not begin has no flows. */
static struct share add_counts(const struct share *to, const struct flows *flows)
{
    if (!flows->flow)
        return *to;
    return (struct share){.read = to->read + (double)flows->flow[0].docs_in, .dropped = to->dropped + (double)flows->dropped,
                          .bad = to->bad + (double)flows->bad};
}

/* The sum of all processes. */
static void show(struct plan_progress *p, const char *what)
{
    struct share sum = {0};
    char phase[100];

    if (p->own || !progress_due())
        return;
    for (int i = 0; i < p->n; i++) {
        sum.done += get(&p->share[i].done);
        sum.total += get(&p->share[i].total);
        sum.read += get(&p->share[i].read);
        sum.dropped += get(&p->share[i].dropped);
        sum.bad += get(&p->share[i].bad);
    }
    snprintf(phase, sizeof phase, "pass %d of %d%s%s", p->pass + 1, p->passes, what ? ", " : "", what ? what : "");
    progress_show(&(struct progress){.phase = phase, .input = what ? NULL : p->input, .done = sum.done, .total = sum.total,
                                     .count = {{"read", sum.read}, {"dropped", sum.dropped}, {"bad", sum.bad}}});
}

void plan_progress_pass(struct plan_progress *p, int pass, int passes, double done, double total)
{
    p->passed += p->total;
    p->pass = pass;
    p->passes = passes;
    p->total = total;
    p->before = p->through = done;
    p->kept = p->size = 0;
    say(p, 0, &p->counted, 0);
    show(p, NULL);
}

void plan_progress_input(struct plan_progress *p, const char *name, double size)
{
    p->input = name;
    p->size = size;
}

void plan_progress_tell(struct plan_progress *p, const struct pass_now *now, double kept)
{
    const struct share counted = add_counts(&p->counted, now->flows);

    say(p, (double)now->where.consumed, &counted, kept);
    show(p, NULL);
}

void plan_progress_input_end(struct plan_progress *p, const struct flows *flows, double kept)
{
    p->counted = add_counts(&p->counted, flows);
    p->through += p->size;
    p->kept += kept;
    p->size = 0;
    say(p, 0, &p->counted, 0);
    show(p, NULL);
}

void plan_progress_wait(struct plan_progress *p, const char *what) { show(p, what); }
