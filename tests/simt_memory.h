/* tests/simt_memory.h -- memory of the device that tests/simt.h makes of the CPU, apart from the host's.
 *
 * A device address is one that nobody may touch: the host that reads or writes there is stopped, in whatever thread and at
 * whatever time.  What it stands for lies elsewhere, at a fixed distance; a launch, a copy and the stand-ins of libraries
 * translate the addresses that they are given.  Each block ends at a page that nobody may touch either, and so does memory that
 * was freed, so that a kernel that runs over a block's end, or comes too late, is stopped.
 *
 * A launch refuses an argument that is a pointer to the host's memory, by name.  Pointers within structures are often of no use
 * to the kernel, so there they are only made useless: who follows one is stopped.  Pinned memory is the host's and the kernels'.
 *
 * All say on standard error what was done, and abort.
 */
#ifndef TESTS_SIMT_MEMORY_H
#define TESTS_SIMT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of the device's memory, 256-byte aligned (4096 from 1 MiB on), filled with 0xff; NULL: there is none. */
void *simt_memory_new(size_t bytes);
void simt_memory_free(void *p); /* NULL is fine */
/* The host's memory that kernels reach too. */
void *simt_pinned_new(size_t bytes);
void simt_pinned_free(void *p);

/* Where bytes of the device's or of pinned memory lie; they must be within one block.  NULL is NULL.  what: who asks, for the
 * message. */
void *simt_place(const void *p, size_t bytes, const char *what);
/* The same of memory of the host, which the device's is not; p itself. */
void *simt_place_host(const void *p, const char *what);

/* From here on who touches what is not his is named.  Memory that is asked for does that too; to be called again where another
 * has taken the signal since, as cmocka does. */
void simt_watch(void);

#ifdef __cplusplus
}

namespace simt {

/* A launch as it is written. */
struct site {
    const char *file;
    int line;
    const char *arguments;
    const void *kernel;
};

enum { WORDS = 300 };
/* Its kernel and where it stands, in words; without asking for memory once check_launch has seen the kernel. */
const char *name_of(const site &of, char words[WORDS]);
/* The value of argument number i, from 0, as the kernel is to have it. */
void pass_bytes(const site &of, int i, void *value, size_t bytes, bool pointer);

} // namespace simt
#endif
#endif
