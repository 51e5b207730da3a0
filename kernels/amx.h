/* kernels/amx.h -- whether this process may use the tiles of AMX for bf16. */
#ifndef KERNELS_AMX_H
#define KERNELS_AMX_H

#include <stdbool.h>

/* The processor has them, isa_best is ISA_AVX512, and the kernel lets this process and the threads that it makes from here on
 * save so much state: it is asked (arch_prctl, ARCH_REQ_XCOMP_PERM).  Each call gives the same. */
bool amx_here(void);

#endif
