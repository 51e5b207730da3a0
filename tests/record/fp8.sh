#!/bin/sh
# What tests/unit/kernels_fp8_test.c holds conversions against: the bytes that CUDA's own header (its part for the host) makes
# of all bf16 numbers in order, as FNV-1a.  CUDA=/usr/local/cuda
set -e
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cat >"$t/fp8.cpp" <<'END'
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_fp8.h>
int main()
{
    for (int f = 0; f < 2; f++) {
        uint64_t h = 14695981039346656037ull;
        for (uint32_t i = 0; i < 65536; i++) {
            uint32_t u = i << 16;
            float x;
            memcpy(&x, &u, 4);
            h = (h ^ (uint8_t)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, f ? __NV_E5M2 : __NV_E4M3)) * 1099511628211ull;
        }
        printf("%s 0x%016llxull\n", f ? "E5M2" : "E4M3", (unsigned long long)h);
    }
}
END
g++ -O2 -I"${CUDA:-/usr/local/cuda}/include" "$t/fp8.cpp" -o "$t/fp8"
"$t/fp8"
