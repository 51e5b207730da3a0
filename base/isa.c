#include "base/isa.h"

#include <stdlib.h>
#include <string.h>

static enum isa detect(void)
{
    enum isa best = ISA_BASE;
    const char *want = getenv("QUERN_ISA");

#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("fma"))
        best = ISA_AVX2;
    if (best == ISA_AVX2 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni") &&
        __builtin_cpu_supports("avx512bitalg") &&
        __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512ifma"))
        best = ISA_AVX512;
#endif
    if (want && strcmp(want, "base") == 0)
        return ISA_BASE;
    if (want && strcmp(want, "avx2") == 0 && best > ISA_AVX2)
        return ISA_AVX2;
    return best;
}

enum isa isa_best(void)
{
    static int cached = -1; /* the same value whoever writes it first */
    int v = __atomic_load_n(&cached, __ATOMIC_RELAXED);

    if (v < 0) {
        v = (int)detect();
        __atomic_store_n(&cached, v, __ATOMIC_RELAXED);
    }
    return (enum isa)v;
}

const char *isa_name(enum isa isa)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    return names[isa];
}
