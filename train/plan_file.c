/* Files of what a device was measured to take. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/node.h"
#include "train/plan_device.h"

enum { FILE_MOST = 16 << 20 };
#define SIZE_MOST (INT64_C(1) << 40)
#define SECONDS_MOST 1e6

/* What lines of each op add up to. */
struct measured {
    double logs[PLAN_OPS];
    int lines[PLAN_OPS];
};

/* A line that measures an op. */
struct measurement {
    enum plan_op op;
    struct plan_dims dims;
    double seconds;
};

static bool size_of(const struct node *n, const char *key, int64_t least, int64_t *to)
{
    *to = node_int(n, key, 0);
    return *to >= least && *to <= SIZE_MOST;
}

static int measurement_of(const struct node *n, struct measurement *m, struct err *e)
{
    const char *op = node_str(n, "op");
    struct plan_dims *d = &m->dims;

    m->op = op ? plan_op_named(op, strlen(op)) : PLAN_OPS;
    if (m->op == PLAN_OPS)
        return err_set(e, ERR_FORMAT, "'%.40s' is no op of a plan", op ? op : "");
    if (!size_of(n, "m", 1, &d->m) || !size_of(n, "n", 1, &d->n) || !size_of(n, "k", 0, &d->k) || !size_of(n, "d", 0, &d->d) ||
        !size_of(n, "kv", 0, &d->kv))
        return err_set(e, ERR_FORMAT, "a size is missing or impossible");
    m->seconds = node_num(n, "seconds", 0);
    if (!(m->seconds > 0 && m->seconds < SECONDS_MOST))
        return err_set(e, ERR_FORMAT, "no seconds that an op can take");
    return 0;
}

static int first_line(struct plan_machine *m, const struct node *n, struct err *e)
{
    const char *device = node_str(n, "device");

    if (!device || node_int(n, "version", 0) != 1)
        return err_set(e, ERR_FORMAT, "no device and version 1: not what gpu-bench writes");
    if (!plan_machine_named(m, device))
        return err_set(e, ERR_UNSUPPORTED, "plans know no device like '%.60s' (%s)", device, plan_machine_names());
    return 0;
}

/* Copies set the machine's rate when it is their turn; the other ops are held against what they would take with it. */
static void weigh(struct plan_machine *m, struct measured *all, const struct measurement *one, bool copies)
{
    double planned;

    if (copies != (one->op == PLAN_COPY))
        return;
    planned = plan_op_seconds(&m->rates, one->op, &one->dims, true, NULL);
    if (!(planned > 0)) /* no such sizes */
        return;
    all->logs[one->op] += log(one->seconds / planned);
    all->lines[one->op]++;
}

/* A pass over the lines. */
static int read_lines(struct plan_machine *m, struct span text, struct measured *all, bool copies, struct arena *a, struct err *e)
{
    const char *p = text.p, *end = text.p + text.n;

    for (int line = 1; p < end || line == 1; line++) {
        const char *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span one = {p, (size_t)((stop ? stop : end) - p)};
        struct measurement got = {0};
        struct node *n;
        int rc = node_parse_json(a, one, &n, e);

        if (rc == 0)
            rc = line > 1 ? measurement_of(n, &got, e) : copies ? first_line(m, n, e) : 0;
        if (rc < 0)
            return err_wrap(e, "line %d", line);
        if (line > 1)
            weigh(m, all, &got, copies);
        arena_reset(a);
        p += one.n + 1;
    }
    return 0;
}

static double mean_of(const struct measured *all, int op)
{
    return exp(all->logs[op] / all->lines[op]);
}

int plan_device_parse(struct plan_machine *m, const char *what, struct span text, int *measured, struct err *e)
{
    struct measured all = {0};
    struct arena a = {0};
    int rc = read_lines(m, text, &all, true, &a, e);

    if (rc == 0 && all.lines[PLAN_COPY])
        m->rates.copy /= mean_of(&all, PLAN_COPY);
    if (rc == 0)
        rc = read_lines(m, text, &all, false, &a, e);
    arena_free(&a);
    if (rc < 0)
        return err_wrap(e, "%s", what);
    *measured = all.lines[PLAN_COPY] > 0;
    for (int op = 0; op < PLAN_OPS; op++)
        if (op != PLAN_COPY && all.lines[op]) {
            m->rates.measured[op] = mean_of(&all, op);
            ++*measured;
        }
    return 0;
}

int plan_device_load(struct plan_machine *m, const char *path, int *measured, struct err *e)
{
    struct buf text = {0};
    int rc = file_read_all(path, FILE_MOST, &text, e);

    if (rc == 0)
        rc = plan_device_parse(m, path, buf_span(&text), measured, e);
    buf_free(&text);
    return rc;
}
