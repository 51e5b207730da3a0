/* base/isa.h -- one source, compiled once for each instruction set.
 *
 * A file named NAME_simd.c is compiled three times on x86-64: for the base line,
 * for AVX2 (x86-64-v3) and for AVX-512 (x86-64-v4 with the byte-shuffle and VNNI
 * extensions that came with Ice Lake), and once elsewhere.  Each time QUERN_ISA is base,
 * avx2 or avx512, and every external symbol in it is named ISA_FN(symbol).  The
 * caller picks with isa_best().  Inside, __AVX2__ and __AVX512BW__ say what may be
 * used.
 */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#ifdef __cplusplus
extern "C" {
#endif

#define ISA_JOIN_(a, b) a##_##b
#define ISA_JOIN(a, b) ISA_JOIN_(a, b)
#define ISA_FN(name) ISA_JOIN(name, QUERN_ISA)

enum isa { ISA_BASE, ISA_AVX2, ISA_AVX512 };

/* The best set that this processor and this build have.  QUERN_ISA=base|avx2|
 * avx512 in the environment lowers it (for tests); it never raises it. */
enum isa isa_best(void);
const char *isa_name(enum isa isa);

/* Declares the three variants of a function, chooses one of them, and lists all by enum isa:
 *   ISA_DECLARE(int, sum, (const int *p, int n));
 *   int (*f)(const int *, int) = ISA_PICK(sum);
 *   int (*all[])(const int *, int) = ISA_EACH(sum);   */
#if defined(__x86_64__)
#define ISA_DECLARE(ret, name, args)                                           \
    ret name##_base args;                                                      \
    ret name##_avx2 args;                                                      \
    ret name##_avx512 args
#define ISA_PICK(name)                                                         \
    (isa_best() == ISA_AVX512 ? name##_avx512                                  \
     : isa_best() == ISA_AVX2 ? name##_avx2                                    \
                              : name##_base)
#define ISA_EACH(name) {name##_base, name##_avx2, name##_avx512}
#else
#define ISA_DECLARE(ret, name, args) ret name##_base args
#define ISA_PICK(name) name##_base
#define ISA_EACH(name) {name##_base}
#endif

#ifdef __cplusplus
}
#endif
#endif
