#include "kernels/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>

bool amx_here(void)
{
    enum { BF16 = 1 << 22, TILES = 1 << 24, ASK = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d = 0;

    if (isa_best() != ISA_AVX512 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & BF16) || !(d & TILES))
        return false;
    return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}
#else
bool amx_here(void) { return false; }
#endif
