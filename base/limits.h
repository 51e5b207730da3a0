/* base/limits.h -- how much of the machine this process may use.
 *
 * Whatever takes "half of the memory" or "all processors" asks here: in a container, a batch job or a shell
 * with a limit that is less than the machine has, and the kernel kills what goes over it.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of memory: the least of the machine's, what the control groups (v1 and v2) of this process and all groups above
 * them may use, RLIMIT_AS and RLIMIT_DATA.  Reads files at each call; nothing is remembered. */
uint64_t limits_memory(void);

/* Processors, at least 1: those of the affinity mask, and no more than the control groups' share of processor time,
 * rounded up. */
int limits_cpus(void);

/* What the control groups alone allow: the files are looked for below the folder root, "" for the machine's own.
 * UINT64_MAX and INT_MAX where nothing is limited. */
uint64_t limits_cgroup_memory(const char *root);
int limits_cgroup_cpus(const char *root);

#ifdef __cplusplus
}
#endif
#endif
