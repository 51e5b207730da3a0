/* What a process may use of the machine, on recorded files of control groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "tests/temp_folder.h"

/* A file below the folder, which stands for the root, and the folders it lies in. */
static void put(const char *name, const char *text)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0755);
    }
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OTHERS                                                \
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" \
    "22 21 0:20 / /proc rw shared:5 - proc proc rw\n"

static void no_groups_limit_nothing(void **s)
{
    (void)s;
    assert_true(limits_cgroup_memory(dir) == UINT64_MAX);
    assert_int_equal(limits_cgroup_cpus(dir), INT_MAX);
    put("proc/self/mountinfo", OTHERS V2);
    put("proc/self/cgroup", "0::/user.slice\n");
    assert_true(limits_cgroup_memory(dir) == UINT64_MAX);
    assert_int_equal(limits_cgroup_cpus(dir), INT_MAX);
}

static void the_least_of_v2_groups_up_to_the_top_counts(void **s)
{
    (void)s;
    put("proc/self/mountinfo", OTHERS V2);
    put("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    put("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
    assert_true(limits_cgroup_memory(dir) == UINT64_MAX);
    assert_int_equal(limits_cgroup_cpus(dir), INT_MAX);
    put("sys/fs/cgroup/slurm/job_7/memory.max", "4294967296\n");
    put("sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");
    put("sys/fs/cgroup/slurm/memory.max", "8589934592\n");
    put("sys/fs/cgroup/slurm/cpu.max", "800000 100000\n");
    assert_true(limits_cgroup_memory(dir) == 4294967296);
    assert_int_equal(limits_cgroup_cpus(dir), 3);
    put("sys/fs/cgroup/slurm/memory.high", "1073741824\n");
    put("sys/fs/cgroup/slurm/cpu.max", "10000 100000\n");
    assert_true(limits_cgroup_memory(dir) == 1073741824);
    assert_int_equal(limits_cgroup_cpus(dir), 1);
}

/* A container's own namespace: its group is the top. */
static void a_container_is_limited_by_the_top_of_its_mount(void **s)
{
    (void)s;
    put("proc/self/mountinfo", OTHERS V2);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "536870912\n");
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    assert_true(limits_cgroup_memory(dir) == 536870912);
    assert_int_equal(limits_cgroup_cpus(dir), 2);
    put("proc/self/cgroup", "0::/../outside\n");
    assert_true(limits_cgroup_memory(dir) == 536870912);
}

static void v1_hierarchies_are_found_by_their_controller(void **s)
{
    (void)s;
    put("proc/self/mountinfo",
        OTHERS "40 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
               "41 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
               "42 30 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "5:cpuset:/other\n4:memory:/box/me\n3:cpu,cpuacct:/box\n0::/box\n");
    put("sys/fs/cgroup/memory/box/me/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000000000\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpuset/other/memory.limit_in_bytes", "5\n");
    assert_true(limits_cgroup_memory(dir) == 1000000000);
    assert_int_equal(limits_cgroup_cpus(dir), INT_MAX);
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "400001\n");
    assert_int_equal(limits_cgroup_cpus(dir), 5);
}

/* Docker with v1: the group is named as the host does, and the mount shows that group as its top. */
static void a_mount_of_a_group_within_is_its_top(void **s)
{
    (void)s;
    put("proc/self/mountinfo", "41 30 0:31 /docker/ab12 /sys/fs/cgroup/memory ro master:16 - cgroup cgroup rw,memory\n");
    put("proc/self/cgroup", "4:memory:/docker/ab12\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
    put("sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "1000000000\n");
    assert_true(limits_cgroup_memory(dir) == 2000000000);
    put("proc/self/cgroup", "4:memory:/docker/ab12/sub\n");
    assert_true(limits_cgroup_memory(dir) == 1000000000);
    put("proc/self/cgroup", "4:memory:/docker/ab123/sub\n");
    assert_true(limits_cgroup_memory(dir) == 2000000000);
}

static void a_limit_of_the_shell_is_memory_too(void **s)
{
    static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
    const uint64_t some = 123 << 20;

    (void)s;
    assert_in_range(limits_memory(), 1 << 20, UINT64_MAX - 1);
    for (int i = 0; i < 2; i++) { /* in a child: the limit cannot be raised again by everybody */
        struct rlimit r = {some, some};
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(setrlimit(limits[i], &r) == 0 && limits_memory() <= some ? 0 : 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void affinity_limits_processors(void **s)
{
    cpu_set_t all, one;

    (void)s;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_in_range(limits_cpus(), 1, CPU_COUNT(&all));
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(limits_cpus(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
#define ON_FILES(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        ON_FILES(no_groups_limit_nothing),
        ON_FILES(the_least_of_v2_groups_up_to_the_top_counts),
        ON_FILES(a_container_is_limited_by_the_top_of_its_mount),
        ON_FILES(v1_hierarchies_are_found_by_their_controller),
        ON_FILES(a_mount_of_a_group_within_is_its_top),
        cmocka_unit_test(a_limit_of_the_shell_is_memory_too),
        cmocka_unit_test(affinity_limits_processors),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
