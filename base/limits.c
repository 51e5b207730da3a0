#include "base/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, LINE_SIZE = 3 * PATH_SIZE };

/* One hierarchy of control groups as it is mounted here. */
struct hierarchy {
    bool v2;
    char root[PATH_SIZE];  /* the group that the mount shows at its top */
    char mount[PATH_SIZE]; /* where */
};

/* Least limits so far, of one folder after the other. */
struct least {
    uint64_t memory;
    uint64_t cpus;
};

/* Whether the comma-separated list has the name. */
static bool list_has(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strncmp(list, name, n) == 0 && (list[n] == ',' || list[n] == '\0'))
            return true;
    return false;
}

/* A line of mountinfo: "36 35 0:32 ROOT MOUNT OPTIONS [TAG]... - TYPE SOURCE OPTIONS", proc(5).  Whether it mounts
 * control groups with that controller; those of v2 may have any. */
static bool read_mount(char *line, const char *controller, struct hierarchy *h)
{
    char type[64], options[1024];
    const char *tail = strstr(line, " - ");

    if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->mount) != 2 ||
        sscanf(tail, " - %63s %*s %1023s", type, options) != 2)
        return false;
    h->v2 = strcmp(type, "cgroup2") == 0;
    return h->v2 || (strcmp(type, "cgroup") == 0 && list_has(options, controller));
}

/* The group of this process in the hierarchy, from /proc/self/cgroup: "4:memory,cpu:/PATH", for v2 "0::/PATH". */
static bool read_group(const char *root, const char *controller, bool v2, char *group)
{
    char name[PATH_SIZE], line[LINE_SIZE];
    bool found = false;
    FILE *f;

    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    f = fopen(name, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = v2 ? list[1] == '\0' : list_has(list + 1, controller);
        if (found)
            snprintf(group, PATH_SIZE, "%s", path);
    }
    if (f)
        fclose(f);
    return found;
}

/* The numbers in FOLDER/NAME, at most two; how many there are: none where it says "max", -1 or is missing. */
static int read_numbers(const char *folder, const char *name, uint64_t *a, uint64_t *b)
{
    char path[LINE_SIZE + 64], line[128];
    int n = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f) && line[0] >= '0' && line[0] <= '9')
        n = sscanf(line, "%" SCNu64 " %" SCNu64, a, b);
    if (f)
        fclose(f);
    return n;
}

static void take_memory(struct least *l, const char *folder, const char *name)
{
    uint64_t v, more;

    if (read_numbers(folder, name, &v, &more) > 0 && v < l->memory)
        l->memory = v;
}

static void take_cpus(struct least *l, uint64_t quota, uint64_t period)
{
    uint64_t n = period ? quota / period + (quota % period != 0) : UINT64_MAX;

    if (n < l->cpus)
        l->cpus = n ? n : 1;
}

/* What one group's folder says; a file that is missing limits nothing. */
static void take_folder(struct least *l, const char *folder, bool v2)
{
    uint64_t quota, period, none;

    if (v2) {
        take_memory(l, folder, "memory.max");
        take_memory(l, folder, "memory.high");
        if (read_numbers(folder, "cpu.max", &quota, &period) == 2)
            take_cpus(l, quota, period);
    } else {
        take_memory(l, folder, "memory.limit_in_bytes");
        if (read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) > 0 &&
            read_numbers(folder, "cpu.cfs_period_us", &period, &none) > 0)
            take_cpus(l, quota, period);
    }
}

/* From the process's group up to the top of the mount.  A group that the mount does not show (a container that names
 * its group as the host does, or one moved out of its namespace) leaves the top alone. */
static void take_hierarchy(struct least *l, const char *root, const struct hierarchy *h, const char *group)
{
    char folder[LINE_SIZE];
    size_t shown = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root), top;
    const char *below = strncmp(group, h->root, shown) == 0 ? group + shown : "";

    if ((*below && *below != '/') || strstr(below, "/.."))
        below = "";
    top = (size_t)snprintf(folder, sizeof folder, "%s%s", root, h->mount);
    snprintf(folder + top, sizeof folder - top, "%s", below);
    for (;;) {
        char *cut;
        take_folder(l, folder, h->v2);
        cut = strrchr(folder + top, '/');
        if (!cut)
            return;
        *cut = '\0';
    }
}

/* All hierarchies that may hold the controller: of a machine with both versions only one has it. */
static struct least cgroup_least(const char *root, const char *controller)
{
    struct least l = {UINT64_MAX, UINT64_MAX};
    char name[PATH_SIZE], line[LINE_SIZE], group[PATH_SIZE];
    struct hierarchy h;
    FILE *f;

    snprintf(name, sizeof name, "%s/proc/self/mountinfo", root);
    f = fopen(name, "re");
    while (f && fgets(line, sizeof line, f))
        if (read_mount(line, controller, &h) && read_group(root, controller, h.v2, group))
            take_hierarchy(&l, root, &h, group);
    if (f)
        fclose(f);
    return l;
}

uint64_t limits_cgroup_memory(const char *root)
{
    return cgroup_least(root, "memory").memory;
}

int limits_cgroup_cpus(const char *root)
{
    uint64_t n = cgroup_least(root, "cpu").cpus;

    return n < INT_MAX ? (int)n : INT_MAX;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t resource_limit(int which)
{
    struct rlimit r;

    return getrlimit(which, &r) == 0 && r.rlim_cur != RLIM_INFINITY ? (uint64_t)r.rlim_cur : UINT64_MAX;
}

uint64_t limits_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    uint64_t allowed = least_of(resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA));

    return least_of(least_of(machine, allowed), limits_cgroup_memory(""));
}

int limits_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0, quota = limits_cgroup_cpus("");

    if (n < 1)
        n = (int)sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set has room for */
    if (n > quota)
        n = quota;
    return n < 1 ? 1 : n;
}
