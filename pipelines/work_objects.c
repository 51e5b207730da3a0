#include "pipelines/work_objects.h"

#include <string.h>
#include <unistd.h>

#include "base/http.h"
#include "base/node.h"
#include "base/pool.h"
#include "pipelines/work.h"

enum { CONNECTIONS = 16 };

/* Shared by the threads. */
struct objects_asked {
    const struct plan *p;
    int task, tasks;
    int next; /* of the task's inputs */
};

/* What the input was when it was read, of the arena; NULL: it is not through, or the server did not say. */
static int state_of(const struct plan *p, int input, struct arena *a, const char **was, struct err *e)
{
    struct node *done = NULL;
    char path[4096];

    *was = NULL;
    work_part(p, 0, input, WORK_DONE, path);
    if (access(path, F_OK) != 0)
        return 0;
    TRY(node_load_json(a, path, &done, e));
    *was = node_str(done, "object");
    return 0;
}

/* Holds an input against what it is now. */
static int ask(struct http *h, const struct plan *p, int input, const char *was, struct err *e)
{
    char byte[16];
    ssize_t n = 1;

    TRY(http_turn(h, p->input[input], 0, 1, e));
    while (n > 0) /* to its end: the next one is asked for over the same connection then */
        n = http_read(h, byte, sizeof byte, e);
    if (n < 0)
        return (int)n;
    if (strcmp(was, http_state(h)) == 0)
        return 0;
    return err_set(e, ERR_ARG, "'%s' has changed since it was read (%s, now %s); --again starts afresh", p->name[input], was,
                   *http_state(h) ? http_state(h) : "without ETag and Last-Modified");
}

static int ask_some(void *arg, int thread, struct err *e)
{
    struct objects_asked *x = arg;
    struct arena a = {0};
    struct http *h = NULL;
    const char *was;
    int rc = 0;

    (void)thread;
    while (rc == 0) {
        int i = x->task + x->tasks * __atomic_fetch_add(&x->next, 1, __ATOMIC_RELAXED);

        if (i >= x->p->n_inputs)
            break;
        if (!http_is_address(x->p->input[i]))
            continue;
        arena_reset(&a);
        rc = state_of(x->p, i, &a, &was, e);
        if (rc == 0 && was && !h)
            rc = http_new(&h, e);
        if (rc == 0 && was)
            rc = ask(h, x->p, i, was, e);
    }
    http_close(h);
    arena_free(&a);
    return rc;
}

bool work_objects_any(const struct plan *p)
{
    for (int i = 0; i < p->n_inputs; i++)
        if (http_is_address(p->input[i]))
            return true;
    return false;
}

int work_objects_check(const struct plan *p, int task, int tasks, struct err *e)
{
    struct objects_asked x = {.p = p, .task = task, .tasks = tasks};
    int own = (p->n_inputs - task + tasks - 1) / tasks;

    if (!work_objects_any(p))
        return 0;
    return pool_share(own < 1 ? 1 : own < CONNECTIONS ? own : CONNECTIONS, ask_some, &x, e);
}
