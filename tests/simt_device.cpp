// What kernels/cuda_op.cuh asks of the CUDA backend, for kernels that run on the CPU (tests/simt.h,
// which comes first in this file), and the table of their ops.
#include <algorithm>
#include <vector>

#include "kernels/cuda_op.cuh"
#include "kernels/cuda_ops.h"
#include "tests/simt_device.h"

int simt_sorted_bits;

extern "C" {
int cuda_launched(struct device *, const char *, struct err *) { return 0; }

int cuda_scratch(struct device *dev, void **p, size_t bytes, struct err *e)
{
    struct block {
        void *p;
        size_t bytes;
    };
    static std::vector<block> blocks; // the last one is in use

    if (blocks.empty() || blocks.back().bytes < bytes) {
        if (simt::recording)
            return err_set(e, ERR_DEVICE, "scratch of %zu bytes while work is recorded", bytes);
        if (simt::queue)
            TRY(dev->calls->sync(dev, e));
        for (; !simt::recordings && !blocks.empty(); blocks.pop_back())
            simt_memory_free(blocks.back().p);
        blocks.push_back({simt_memory_new(bytes), bytes});
    }
    *p = blocks.back().p;
    if (!*p) {
        blocks.pop_back();
        return err_set(e, ERR_NOMEM, "no %zu bytes of scratch", bytes);
    }
    simt::queued--; // a GPU does not fill it
    return cuda_fill(dev, *p, 0xff, std::min(bytes, (size_t)1 << 20), e); // nothing may rest on what it held
}

int cuda_fill(struct device *, void *p, int byte, size_t bytes, struct err *)
{
    void *at = simt_place(p, bytes, "memory is filled");

    simt::in_stream([=] { memset(at, byte, bytes); });
    return 0;
}

int cuda_processors(const struct device *) { return 1; }
int cuda_threads(const struct device *) { return 2048; }

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

int cub_sort(struct device *, void *temp, size_t temp_bytes, const uint64_t *key_in, uint64_t *key_out,
             const uint32_t *value_in, uint32_t *value_out, int64_t n, int bits, struct err *)
{
    uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
    size_t count = (size_t)n;
    const uint64_t *key = (const uint64_t *)simt_place(key_in, count * 8, "CUB: keys");
    const uint32_t *value = (const uint32_t *)simt_place(value_in, count * 4, "CUB: values");
    uint64_t *sorted = (uint64_t *)simt_place(key_out, count * 8, "CUB: sorted keys");
    uint32_t *its_value = (uint32_t *)simt_place(value_out, count * 4, "CUB: their values");

    simt_sorted_bits += bits;
    simt_place(temp, temp_bytes, "CUB: its memory");
    simt::in_stream([=] {
        std::vector<size_t> order(count);

        for (size_t i = 0; i < count; i++)
            order[i] = i;
        std::stable_sort(order.begin(), order.end(), [=](size_t x, size_t y) { return (key[x] & mask) < (key[y] & mask); });
        for (size_t i = 0; i < count; i++) {
            sorted[i] = key[order[i]];
            its_value[i] = value[order[i]];
        }
    });
    return 0;
}

const struct dedup_ops simt_dedup_ops = {
    minhash_sign_cuda, band_keys_cuda,
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
