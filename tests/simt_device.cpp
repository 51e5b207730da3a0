// What kernels/cuda_op.cuh asks of the CUDA backend, for kernels that run on the CPU (tests/simt.h,
// which comes first in this file), and the table of their ops.
#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "kernels/cuda_op.cuh"
#include "kernels/cuda_ops.h"
#include "tests/simt_device.h"

int simt_sorted_bits;

extern "C" {
int cuda_launched(struct device *, const char *, struct err *) { return 0; }

int cuda_scratch(struct device *dev, void **p, size_t bytes, struct err *e)
{
    static std::list<std::vector<char>> blocks; // the last one is in use
    size_t space;

    if (blocks.empty() || blocks.back().size() < bytes + 256) {
        if (simt::recording)
            return err_set(e, ERR_DEVICE, "scratch of %zu bytes while work is recorded", bytes);
        if (simt::queue)
            TRY(dev->calls->sync(dev, e));
        if (!simt::recordings)
            blocks.clear();
        blocks.emplace_back(bytes + 256);
    }
    *p = blocks.back().data();
    space = blocks.back().size();
    std::align(256, bytes, *p, space);
    simt::queued--; // a GPU does not fill it
    return cuda_fill(dev, *p, 0xa5, std::min(bytes, (size_t)1 << 20), e); // nothing may rest on what it held
}

int cuda_fill(struct device *, void *p, int byte, size_t bytes, struct err *)
{
    simt::in_stream([=] { memset(p, byte, bytes); });
    return 0;
}

int cuda_processors(const struct device *) { return 1; }

struct cuda_state *cuda_kept(struct device *, enum cuda_state_of which)
{
    static struct cuda_state states[CUDA_STATES]; // of all devices
    return &states[which];
}

int cub_temp(struct device *, int64_t, size_t *temp_bytes, struct err *)
{
    *temp_bytes = 1;
    return 0;
}

int cub_sort(struct device *, void *, size_t, const uint64_t *key_in, uint64_t *key_out, const uint32_t *value_in,
             uint32_t *value_out, int64_t n, int bits, struct err *)
{
    uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;

    simt_sorted_bits += bits;
    simt::in_stream([=] {
        std::vector<int64_t> order((size_t)n);

        for (int64_t i = 0; i < n; i++)
            order[(size_t)i] = i;
        std::stable_sort(order.begin(), order.end(),
                         [=](int64_t x, int64_t y) { return (key_in[x] & mask) < (key_in[y] & mask); });
        for (int64_t i = 0; i < n; i++) {
            key_out[i] = key_in[order[(size_t)i]];
            value_out[i] = value_in[order[(size_t)i]];
        }
    });
    return 0;
}

int cub_sum(struct device *, void *, size_t, uint64_t *v, int64_t n, struct err *)
{
    simt::in_stream([=] {
        uint64_t sum = 0;

        for (int64_t i = 0; i < n; i++) {
            uint64_t here = v[i];
            v[i] = sum;
            sum += here;
        }
    });
    return 0;
}

const struct dedup_ops simt_dedup_ops = {
    minhash_sign_cuda, minhash_chars_cuda, minhash_words_cuda, band_keys_cuda, buckets_cuda, set_common_cuda,
    text_hash_cuda,
};

static const struct cuda_state cuda_state_none = {false, NULL, NULL};

const struct device_ops simt_ops = cuda_ops;

void simt_forget(void)
{
    for (int i = 0; i < CUDA_STATES; i++) {
        struct cuda_state *s = cuda_kept(NULL, (enum cuda_state_of)i);
        if (s->free)
            s->free(s->p);
        *s = cuda_state_none;
    }
}

void simt_set_order(int order, uint64_t seed) { simt_order(order, seed); }
}
