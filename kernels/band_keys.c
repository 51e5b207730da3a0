#include "kernels/band_keys.h"

#include "kernels/cpu.h"
#include "kernels/hashes.h"

static void one(const struct band_keys *p, int64_t d)
{
    const uint64_t *sig = p->sig + d * p->n;
    uint8_t *sketch = p->sketch ? p->sketch + d * p->sketch_bytes : NULL;
    int used = p->bands * p->rows;
    bool empty = sig[0] == MINHASH_EMPTY;

    for (int k = 0; k < p->bands; k++) {
        uint64_t key = empty ? BAND_KEY_NONE : xxh3_words(sig + k * p->rows, p->rows);
        p->key[d * p->bands + k] = !empty && key == BAND_KEY_NONE ? 0 : key;
    }
    for (int i = 0; sketch && i < p->sketch_bytes; i++)
        sketch[i] = i < used && !empty ? (uint8_t)sig[i] : 0;
}

int band_keys_cpu(struct device *dev, const struct band_keys *p, struct err *e)
{
    if (p->bands < 1 || p->rows < 1 || p->bands > p->n / p->rows ||
        (p->sketch && p->sketch_bytes < p->bands * p->rows))
        return err_set(e, ERR_ARG, "%d bands of %d rows cannot be of %d hashes", p->bands, p->rows, p->n);
#pragma omp parallel for num_threads(cpu_team(dev, p->docs * p->n))
    for (int64_t d = 0; d < p->docs; d++)
        one(p, d);
    return 0;
}
