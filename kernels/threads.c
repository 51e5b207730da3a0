#include "kernels/threads.h"

#include <inttypes.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"

/* Turns of GNU's OpenMP before a thread sleeps, a fifth of a millisecond or so: bench/neighbour.sh measures others. */
#define SPIN_COUNT "10000"

void threads_bound_spin(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    if (setenv("GOMP_SPINCOUNT", SPIN_COUNT, 1) == 0)
        execv("/proc/self/exe", argv);
}

/* The first number of OMP_NUM_THREADS, which may be a list; 0: none. */
static int from_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 4096 ? (int)n : 0;
}

int threads_count(int64_t jobs, int alike, int here)
{
    int own, quota;

    if (jobs > 0)
        return (int)jobs;
    if (from_environment())
        return from_environment();
    own = limits_cpus() / alike; /* of ranks that are bound to processors of their own, alike is 1 */
    quota = limits_cgroup_cpus("") / here;
    own = own < quota ? own : quota;
    return own < 1 ? 1 : own;
}

/* ---- where they run ---- */

enum { REST = 2, REST_MOST = 64, STALE = 30 }; /* seconds */
#define SETTLE 0.5  /* seconds until the kernel has moved the neighbour */
#define WAITS 0.2   /* of its time: a thread that waits more has a neighbour */
#define BETTER 0.97 /* of the cost before: a trial that brings less is given up */
#define WORSE 1.25  /* of the trial's cost: the processors that are left have a neighbour too */

static bool crowd_move(struct crowd_place *p, bool narrow, double now)
{
    p->narrow = p->trial = narrow;
    p->since = now;
    return narrow;
}

bool crowd_judge(struct crowd_place *p, const struct crowd_window *w)
{
    if (!p->narrow) {
        p->cost = w->cost;
        return w->waited > WAITS && w->now >= p->until ? crowd_move(p, true, w->now) : false;
    }
    if (p->trial && w->now - p->since < SETTLE)
        return true;
    if (p->trial && w->cost > BETTER * p->cost) {
        p->rest = p->rest > 0 ? 2 * p->rest : REST;
        p->rest = p->rest < REST_MOST ? p->rest : REST_MOST;
        p->until = w->now + p->rest;
        return crowd_move(p, false, w->now);
    }
    if (p->trial) {
        p->trial = false;
        p->cost = w->cost;
        p->rest = 0;
    }
    if (w->idle > 0.5 || w->cost > WORSE * p->cost || w->now - p->since > STALE)
        return crowd_move(p, false, w->now);
    return true;
}

#define WINDOW 0.25 /* seconds at least */
enum { FIRST = 2 }; /* pieces of work that make plans, and show nothing */

struct member {
    pid_t id;
    int cpu;          /* where it ran at the last look */
    uint64_t waited;  /* nanoseconds in all, and */
    uint64_t lately;  /* since the look before */
};

/* Threads that only sleep.  GNU's OpenMP lets threads spin for a hundred turns at most while it has more of them than there
 * are processors, which is what threads that share a processor want. */
struct sleepers {
    pthread_t starter;
    pthread_mutex_t lock;
    pthread_cond_t over;
    int n;
    bool running, end;
};

struct crowd {
    struct crowd_place place;
    struct sleepers sleepers;
    cpu_set_t all, now; /* processors: that the process may use, that the team does */
    int threads, *threads_now; /* of the team; of ops that give the same bits for any number */
    struct member *team;
    int64_t pieces;
    double from, seconds, units; /* of this window */
    uint64_t idle;               /* ticks of the processors that are left */
};

static cpu_set_t everywhere;
static bool known; /* everywhere is */

void crowd_leave(void)
{
    if (known)
        sched_setaffinity(0, sizeof everywhere, &everywhere);
}

/* Nanoseconds that the calling thread could have run and did not. */
static bool read_waited(uint64_t *ns)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    bool read = f && fscanf(f, "%*u %" SCNu64, ns) == 1;

    if (f)
        fclose(f);
    return read;
}

/* Each thread of the team looks after itself. */
static void look(struct crowd *c)
{
#pragma omp parallel num_threads(c->threads)
    {
        struct member *m = &c->team[omp_get_thread_num()];
        pid_t id = gettid();
        uint64_t waited = 0;

        if (!read_waited(&waited) || m->id != id)
            m->waited = waited;
        m->id = id;
        m->cpu = sched_getcpu();
        m->lately = waited - m->waited;
        m->waited = waited;
    }
}

static void *sleep_in_team(void *arg)
{
    struct sleepers *s = arg;

#pragma omp parallel num_threads(s->n)
    {
        pthread_mutex_lock(&s->lock);
        while (!s->end)
            pthread_cond_wait(&s->over, &s->lock);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void sleepers_begin(struct sleepers *s)
{
    s->end = false;
    s->running = pthread_create(&s->starter, NULL, sleep_in_team, s) == 0;
}

static void sleepers_end(struct sleepers *s)
{
    if (!s->running)
        return;
    pthread_mutex_lock(&s->lock);
    s->end = true;
    pthread_cond_broadcast(&s->over);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->starter, NULL);
    s->running = false;
}

static void place_team(struct crowd *c, const cpu_set_t *set)
{
    c->now = *set;
    *c->threads_now = CPU_COUNT(set) < c->threads ? CPU_COUNT(set) : c->threads;
#pragma omp parallel num_threads(c->threads)
    sched_setaffinity(0, sizeof c->now, &c->now);
}

/* Ticks in which processors that the process may use and the team does not were idle. */
static uint64_t idle_ticks(const struct crowd *c)
{
    FILE *f = fopen("/proc/stat", "re");
    uint64_t all = 0, idle, io;
    char line[512];
    int cpu;

    while (f && fgets(line, sizeof line, f) && strncmp(line, "cpu", 3) == 0)
        if (sscanf(line, "cpu%d %*u %*u %*u %" SCNu64 " %" SCNu64, &cpu, &idle, &io) == 3 && cpu < CPU_SETSIZE &&
            CPU_ISSET(cpu, &c->all) && !CPU_ISSET(cpu, &c->now))
            all += idle + io;
    if (f)
        fclose(f);
    return all;
}

struct crowd *crowd_open(int threads, int *team)
{
    struct crowd *c;
    uint64_t waited;

    if (threads < 2 || !read_waited(&waited))
        return NULL;
    c = calloc(1, sizeof *c);
    if (c)
        c->team = calloc((size_t)threads, sizeof *c->team);
    if (!c || !c->team || sched_getaffinity(0, sizeof c->all, &c->all) != 0 || CPU_COUNT(&c->all) < 2) {
        if (c)
            free(c->team);
        free(c);
        return NULL;
    }
    c->threads = threads;
    c->threads_now = team;
    c->sleepers.n = CPU_COUNT(&c->all) > threads ? CPU_COUNT(&c->all) - threads + 2 : 2;
    pthread_mutex_init(&c->sleepers.lock, NULL);
    pthread_cond_init(&c->sleepers.over, NULL);
    c->now = everywhere = c->all;
    known = true;
    return c;
}

/* The processors of all threads but the one that waits most. */
static void narrow_set(const struct crowd *c, int late, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (int i = 0; i < c->threads; i++)
        if (i != late && c->team[i].cpu >= 0 && CPU_ISSET(c->team[i].cpu, &c->all))
            CPU_SET(c->team[i].cpu, set);
    if (CPU_COUNT(set) == 0)
        *set = c->all;
}

/* Ends a window: looks, and moves the team. */
static void judge(struct crowd *c, double now)
{
    double ticks = (double)sysconf(_SC_CLK_TCK), passed = now - c->from;
    struct crowd_window w = {.now = now, .cost = c->seconds / c->units};
    bool was = c->place.narrow;
    cpu_set_t set;
    int late = 0;

    look(c);
    for (int i = 1; i < c->threads; i++)
        if (c->team[i].lately > c->team[late].lately)
            late = i;
    w.waited = 1e-9 * (double)c->team[late].lately / passed;
    w.idle = was ? (double)(idle_ticks(c) - c->idle) / ticks / passed : 0;
    if (crowd_judge(&c->place, &w) != was) {
        if (was)
            set = c->all;
        else
            narrow_set(c, late, &set);
        place_team(c, &set);
        if (was)
            sleepers_end(&c->sleepers);
        else
            sleepers_begin(&c->sleepers);
        log_msg(LOG_DEBUG, "threads run on %d of %d processors%s", CPU_COUNT(&set), CPU_COUNT(&c->all),
                was ? "" : ": another process is busy on the others");
    }
    if (c->place.narrow)
        c->idle = idle_ticks(c);
}

void crowd_step(struct crowd *c, double seconds, double units)
{
    double now = log_seconds();

    if (!c)
        return;
    if (c->pieces++ < FIRST)
        c->from = now;
    if (c->pieces <= FIRST) {
        look(c);
        return;
    }
    c->seconds += seconds;
    c->units += units;
    if (now - c->from < WINDOW)
        return;
    judge(c, now);
    c->from = log_seconds();
    c->seconds = c->units = 0;
}

void crowd_close(struct crowd *c)
{
    if (!c)
        return;
    if (c->place.narrow)
        place_team(c, &c->all);
    sleepers_end(&c->sleepers);
    pthread_cond_destroy(&c->sleepers.over);
    pthread_mutex_destroy(&c->sleepers.lock);
    free(c->team);
    free(c);
}
