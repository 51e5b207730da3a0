#include "kernels/minhash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/minhash_simd.h"

#define M61 0x1fffffffffffffffull

/* Hashes that one call of the inner loop sees: 8 KiB, so that they are in the L1 cache
 * when the next group of functions runs over them. */
enum { CHUNK = 1024 };

static int allocate(struct minhash *m, enum minhash_family family, int n)
{
    *m = (struct minhash){.family = family};
    if (n < 1 || n > MINHASH_MAX)
        return ERR_ARG;
    m->n = n;
    m->padded = (n + MINHASH_PAD - 1) / MINHASH_PAD * MINHASH_PAD;
    if (family != MINHASH_U32) {
        m->a = mem_aligned((size_t)m->padded * sizeof *m->a);
        m->b = mem_aligned((size_t)m->padded * sizeof *m->b);
        return m->a && m->b ? 0 : ERR_NOMEM;
    }
    m->a32 = mem_aligned((size_t)m->padded * sizeof *m->a32);
    m->b32 = mem_aligned((size_t)m->padded * sizeof *m->b32);
    return m->a32 && m->b32 ? 0 : ERR_NOMEM;
}

int minhash_init_with(struct minhash *m, enum minhash_family family, int n, const uint64_t *a,
                      const uint64_t *b)
{
    TRY(allocate(m, family, n));
    for (int j = 0; j < m->padded; j++) {
        if (family != MINHASH_U32) {
            m->a[j] = j < n ? a[j] : 0;
            m->b[j] = j < n ? b[j] + (family == MINHASH_M61) : 0;
        } else {
            m->a32[j] = j < n ? (uint32_t)a[j] : 0;
            m->b32[j] = j < n ? (uint32_t)b[j] : 0;
        }
    }
    return 0;
}

/* numpy's RandomState(seed).randint(1, p) for a and randint(0, p) for b. */
int minhash_init(struct minhash *m, enum minhash_family family, int n, uint32_t seed)
{
    uint64_t a[MINHASH_MAX], b[MINHASH_MAX];
    bool in_turn = family == MINHASH_U32 || family == MINHASH_LOW32_TURNS;
    uint64_t p = family == MINHASH_U32 ? 0x7fffffff : M61;
    struct rng_mt r;

    *m = (struct minhash){0};
    if (n < 1 || n > MINHASH_MAX)
        return ERR_ARG;
    rng_mt_seed(&r, seed);
    for (int j = 0; j < n; j++) {
        a[j] = 1 + rng_mt_interval(&r, p - 2);
        if (in_turn)
            b[j] = rng_mt_interval(&r, p - 1);
    }
    for (int j = 0; j < n && !in_turn; j++)
        b[j] = rng_mt_interval(&r, p - 1);
    return minhash_init_with(m, family, n, a, b);
}

void minhash_free(struct minhash *m)
{
    free(m->a);
    free(m->b);
    free(m->a32);
    free(m->b32);
    *m = (struct minhash){0};
}

/* One function the long way. */
static uint64_t m61_exact(uint64_t a, uint64_t b, const uint64_t *hash, size_t count)
{
    uint64_t min = M61;

    for (size_t i = 0; i < count; i++) {
        uint64_t v = (a * hash[i] + b) % M61;
        min = v < min ? v : min;
    }
    return min;
}

/* The modulus without a comparison an element.  Let x = a h + b = q 2^61 + r, so that
 * x mod (2^61 - 1) = v = (q + r) mod (2^61 - 1), q <= 7.  The loop finds the least of
 *     y = (t + (t >> 61)) mod 2^61,  t = x + 1.
 * If r + q < 2^61 - 1, then y = v + 1.  In the rare other cases (r + q reaches
 * 2^61 - 1, or t carries into its top three bits or out of them) y <= 7.  So a least
 * y > 8 saw none of them and is v + 1; a smaller one, which happens by chance once in
 * 2^58 hashes, sends that function the long way. */
static void m61_signature(const struct minhash *m, const uint64_t *hash, size_t count,
                          uint64_t *sig)
{
    void (*least)(const uint64_t *, const uint64_t *, int, const uint64_t *, size_t, uint64_t *) =
        ISA_PICK(minhash_m61_min);
    _Alignas(64) uint64_t min[MINHASH_MAX];

    for (int j = 0; j < m->padded; j++)
        min[j] = M61;
    for (size_t i = 0; i < count; i += CHUNK)
        least(m->a, m->b, m->padded, hash + i, count - i < CHUNK ? count - i : CHUNK, min);
    memcpy(sig, min, (size_t)m->n * sizeof *sig);
    for (int j = 0; j < m->n; j++)
        sig[j] = sig[j] > 8 ? sig[j] - 1 : m61_exact(m->a[j], m->b[j] - 1, hash, count);
}

static void u32_signature(const struct minhash *m, const uint64_t *hash, size_t count,
                          uint64_t *sig)
{
    void (*least)(const uint32_t *, const uint32_t *, int, const uint64_t *, size_t, uint32_t *) =
        ISA_PICK(minhash_u32_min);
    _Alignas(64) uint32_t min[MINHASH_MAX];

    memset(min, 0xff, (size_t)m->padded * sizeof *min);
    for (size_t i = 0; i < count; i += CHUNK)
        least(m->a32, m->b32, m->padded, hash + i, count - i < CHUNK ? count - i : CHUNK, min);
    for (int j = 0; j < m->n; j++)
        sig[j] = min[j];
}

static void low32_signature(const struct minhash *m, const uint64_t *hash, size_t count, uint64_t *sig)
{
    _Alignas(64) uint64_t min[MINHASH_MAX];

    for (int j = 0; j < m->padded; j++)
        min[j] = UINT32_MAX;
    for (size_t i = 0; i < count; i += CHUNK)
        ISA_PICK(minhash_low32_min)(m->a, m->b, m->padded, hash + i, count - i < CHUNK ? count - i : CHUNK, min);
    memcpy(sig, min, (size_t)m->n * sizeof *sig);
}

void minhash_signature(const struct minhash *m, const uint64_t *hash, size_t count, uint64_t *sig)
{
    if (m->family == MINHASH_M61)
        m61_signature(m, hash, count, sig);
    else if (m->family != MINHASH_U32)
        low32_signature(m, hash, count, sig);
    else
        u32_signature(m, hash, count, sig);
}
