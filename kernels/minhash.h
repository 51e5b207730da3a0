/* kernels/minhash.h -- MinHash signatures (Broder 1997) of a document's shingle hashes.
 *
 * For each of n random functions p_j the smallest p_j(h) over all shingle hashes h.  Two
 * documents agree in one place of their signatures with the probability of their
 * Jaccard similarity.  Two families, each with another system's exact numbers:
 * - MINHASH_M61: p(h) = ((a h + b) mod 2^64) mod (2^61 - 1), all a drawn before all b
 *   from MT19937 (datatrove; the wrap at 2^64 is part of it).
 * - MINHASH_U32: p(h) = (a h + b) mod 2^32, a and b drawn in turn (cuDF as NeMo Curator
 *   calls it: its modulus 2^61 - 1 never acts on 32-bit values).
 * - MINHASH_LOW32, MINHASH_LOW32_TURNS: the low 32 bits of M61's value, a and b drawn as M61's or in turn
 *   (text-dedup and RedPajama-Data v2, after datasketch).
 * Every instruction set gives the same bits.
 */
#ifndef KERNELS_MINHASH_H
#define KERNELS_MINHASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum minhash_family { MINHASH_M61, MINHASH_U32, MINHASH_LOW32, MINHASH_LOW32_TURNS };

/* Most hashes in a signature, and what their number is rounded up to for the vector
 * code (the rest is computed and thrown away). */
enum { MINHASH_MAX = 1024, MINHASH_PAD = 16 };

struct minhash {
    enum minhash_family family;
    int n, padded;
    uint64_t *a, *b;     /* 64-byte aligned, `padded` long; M61 keeps b plus one */
    uint32_t *a32, *b32; /* U32, the same */
};

/* n functions (1..MINHASH_MAX) from the seed.  ERR_ARG or ERR_NOMEM; minhash_free is
 * fine after either. */
int minhash_init(struct minhash *m, enum minhash_family family, int n, uint32_t seed);
/* The same from given coefficients (U32: their low 32 bits). */
int minhash_init_with(struct minhash *m, enum minhash_family family, int n, const uint64_t *a,
                      const uint64_t *b);
void minhash_free(struct minhash *m);

/* sig[0..n-1] of count >= 1 hashes; a hash that occurs twice changes nothing.  U32 uses
 * the low 32 bits of each hash; it and LOW32 give 32-bit values. */
void minhash_signature(const struct minhash *m, const uint64_t *hash, size_t count,
                       uint64_t *sig);

#ifdef __cplusplus
}
#endif
#endif
