// Kernels for the tests of tests/simt.h itself.
#include "kernels/mma.cuh"
#include "tests/simt_device.h"

// ---- shared memory and the block's barrier ----

enum { THREADS = 192, BLOCKS = 3 };

// Sums by halving in shared memory, from which the next round reads.
static __global__ void sums_kernel(const unsigned *in, unsigned *out, bool barrier)
{
    SIMT_DYNAMIC_SHARED(unsigned, part);
    __shared__ unsigned total;
    unsigned t = threadIdx.x;

    part[t] = in[blockIdx.x * blockDim.x + t];
    for (unsigned half = 96; half >= 3; half /= 2) {
        if (barrier)
            __syncthreads();
        if (t < half)
            part[t] += part[t + half];
    }
    __syncthreads();
    if (t == 0)
        total = part[0] + part[1] + part[2];
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = total;
}

static __global__ void two_barriers_kernel()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

static __global__ void stuck_kernel()
{
    if (threadIdx.x != 5)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" int simt_block_sums(enum simt_mistake mistake)
{
    static unsigned in[THREADS * BLOCKS], out[THREADS * BLOCKS];
    int wrong = 0;

    for (unsigned i = 0; i < THREADS * BLOCKS; i++)
        in[i] = i * i % 1009;
    if (mistake == SIMT_TWO_BARRIERS)
        SIMT_LAUNCH(two_barriers_kernel, 1, 64, 0);
    if (mistake == SIMT_STUCK)
        SIMT_LAUNCH(stuck_kernel, 1, 32, 0);
    SIMT_LAUNCH(sums_kernel, BLOCKS, THREADS, THREADS * sizeof(unsigned), in, out, mistake != SIMT_NO_BARRIER);
    for (unsigned b = 0; b < BLOCKS; b++) {
        unsigned sum = 0;
        for (unsigned i = 0; i < THREADS; i++)
            sum += in[b * THREADS + i];
        for (unsigned i = 0; i < THREADS; i++)
            wrong += out[b * THREADS + i] != sum;
    }
    return wrong;
}

// ---- asynchronous copies ----

// Sums of what a block's other half sent, by two stages: one is read while the next comes.
static __global__ void copies_kernel(const float *in, float *out, int n, int mistake)
{
    __shared__ float stage[2][64];
    int t = (int)threadIdx.x;
    float sum = 0;

    copy_async<4>(&stage[0][t], in + t, true);
    for (int i = 0; i < n; i++) {
        if (mistake != SIMT_NO_WAIT || i % 2 == 0)
            copy_wait();
        if (mistake != SIMT_NO_BARRIER)
            __syncthreads();
        if (i + 1 < n || mistake == SIMT_LEFT_BEHIND)
            copy_async<4>(&stage[(i + 1) % 2][t], in + (i + 1) * 64 + t, i + 1 < n - 1); // the last one is zeros
        sum += stage[i % 2][63 - t];
    }
    out[t] = sum;
}

extern "C" int simt_copies(enum simt_mistake mistake)
{
    enum { N = 5 };
    static float in[(N + 1) * 64];
    float out[64];
    int wrong = 0;

    for (int i = 0; i < (N + 1) * 64; i++)
        in[i] = (float)(i * i % 101);
    SIMT_LAUNCH(copies_kernel, 1, 64, 0, in, out, (int)N, (int)mistake);
    for (int t = 0; t < 64; t++) {
        float want = 0;
        for (int i = 0; i < N - 1; i++)
            want += in[i * 64 + 63 - t];
        wrong += !(out[t] == want);
    }
    return wrong;
}

// ---- shuffles and votes ----

static __global__ void warp_kernel(int *wrong, unsigned mask, int far)
{
    int lane = (int)(threadIdx.x & 31), bad = 0, sum = lane;
    double half = lane * 0.5;

    bad += __shfl_sync(mask, lane, 7) != 7;
    bad += __shfl_sync(mask, half, (lane + far) & 31) != ((lane + far) & 31) * 0.5;
    bad += __shfl_sync(mask, lane, 3, 8) != lane / 8 * 8 + 3;
    bad += __shfl_up_sync(mask, lane, 1) != (lane ? lane - 1 : 0);
    bad += __shfl_down_sync(mask, lane, 5, 16) != (lane % 16 + 5 < 16 ? lane + 5 : lane);
    for (int o = 16; o; o /= 2)
        sum += __shfl_xor_sync(mask, sum, o);
    bad += sum != 496;
    bad += __ballot_sync(mask, lane % 3 == 0) != 0x49249249u;
    bad += __any_sync(mask, lane == 31) != 1 || __any_sync(mask, lane == 32) != 0;
    bad += __all_sync(mask, lane < 32) != 1 || __all_sync(mask, lane < 31) != 0;
    if (lane < 16) { // half a warp by itself
        bad += __ballot_sync(0xffffu, 1) != 0xffffu;
        bad += __shfl_xor_sync(0xffffu, lane, 8) != (lane ^ 8);
    }
    __syncwarp();
    if (lane >= 20) // those that are gone are not waited for
        return;
    bad += __ballot_sync(mask, 1) != 0xfffffu;
    atomicAdd(wrong, bad);
}

static __global__ void wrong_lane_kernel(int *to)
{
    if (threadIdx.x < 16) // lane 16 is not in the call
        to[threadIdx.x] = __shfl_down_sync(0xffffu, (int)threadIdx.x, 1);
}

extern "C" int simt_warp_calls(enum simt_mistake mistake)
{
    int wrong = 0, to[16];

    if (mistake == SIMT_WRONG_LANE)
        SIMT_LAUNCH(wrong_lane_kernel, 1, 32, 0, to);
    SIMT_LAUNCH(warp_kernel, 2, 64, 0, &wrong, mistake == SIMT_WRONG_MASK ? 0x7fffffffu : 0xffffffffu, 9);
    return wrong;
}

// ---- atomics ----

static __global__ void atomics_kernel(unsigned *bin, unsigned long long *least, unsigned *most, int *locks, bool atomic)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (atomic)
        atomicAdd(&bin[i % 7], 1u);
    else
        bin[i % 7]++;
    atomicMin(least, 1000000ull - i);
    atomicMax(most, i * 3);
    atomicCAS(locks, (int)i, (int)i + 1);
}

extern "C" int simt_atomics(enum simt_mistake mistake)
{
    unsigned bin[7] = {0}, most = 0, all = 4 * 96;
    unsigned long long least = ~0ull;
    int locks = 0, wrong = 0;

    SIMT_LAUNCH(atomics_kernel, 4, 96, 0, bin, &least, &most, &locks, mistake != SIMT_NO_ATOMIC);
    for (unsigned i = 0; i < 7; i++)
        wrong += bin[i] != (all + 6 - i) / 7;
    return wrong + (least != 1000001 - all) + (most != 3 * (all - 1)) + (locks < 1);
}

// ---- grids and blocks of three dimensions, and a warp that is not full ----

static __global__ void shapes_kernel(unsigned char *seen)
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;

    __syncthreads();
    seen[block * threads + thread]++;
}

extern "C" int simt_shapes(void)
{
    unsigned char seen[2 * 3 * 2 * 7 * 5 * 2] = {0};
    int wrong = 0;

    SIMT_LAUNCH(shapes_kernel, dim3(2, 3, 2), dim3(7, 5, 2), 0, seen);
    for (unsigned char s : seen)
        wrong += s != 1;
    return wrong;
}

// ---- launches: which memory, how aligned, how large ----

enum { LAUNCHED = 64 };
struct given {
    const float *host; // of use to the host alone
    float **inner;     // an address in the device's memory
    int64_t step;
    bool follows;
};

static __global__ void __launch_bounds__(LAUNCHED) steps_kernel(struct given p, const float *in, float *out)
{
    int64_t i = threadIdx.x;

    out[i] = in[i * p.step] + (p.follows ? *p.host : 0) + (p.inner ? **p.inner : 0);
}

static __global__ void __launch_bounds__(LAUNCHED, 2) whole_kernel(const float *in, float *out, int64_t from, int how)
{
    __shared__ __align__(16) float part[4 * LAUNCHED];
    __shared__ uint16_t rows[32 * 8 + 8];
    int i = (int)threadIdx.x;
    uint32_t x[4];

    if (how == SIMT_MISALIGNED_COPY) {
        copy_async<16>(part + 4 * i, in + 4 * i + from, true);
        copy_wait();
    }
    if (how == SIMT_MISALIGNED_ROW)
        mma_load<false>(x, rows + 8 * (i % 32) + from);
    in += i * PACK + (how == SIMT_MISALIGNED ? from : 0);
    pack_put<DTYPE_F32>(out, i * PACK, PACK, pack_whole<DTYPE_F32>((const char *)in));
}

static __global__ void __launch_bounds__(LAUNCHED) wide_kernel(float *out)
{
    __shared__ float much[(48 << 10) / 4 + 1];

    much[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = much[LAUNCHED - 1 - threadIdx.x];
}

static void launch_wrong(struct device *dev, enum simt_mistake mistake, struct given p, const float *in, float *out)
{
    static const float host[LAUNCHED * PACK] = {0};
    unsigned threads = mistake == SIMT_THREADS ? 2 * LAUNCHED : LAUNCHED;
    dim3 grid(1, mistake == SIMT_BLOCKS ? 65536 : 1);
    struct err e;

    if (mistake == SIMT_SHARED)
        LAUNCH(wide_kernel, 1, LAUNCHED, dev, out);
    else if (mistake == SIMT_DYNAMIC)
        SIMT_LAUNCHER(steps_kernel, grid, threads, (48 << 10) + 4, p, in, out)(p, in, out);
    else if (mistake == SIMT_LONG_COPY)
        dev->calls->copy(dev, out, in, LAUNCHED * PACK * sizeof(float) + 1, COPY_INSIDE, &e);
    else if (mistake == SIMT_COPY_OF_HOST)
        dev->calls->copy(dev, out, host, sizeof host, COPY_INSIDE, &e);
    else if (mistake >= SIMT_MISALIGNED && mistake <= SIMT_MISALIGNED_ROW)
        LAUNCH(whole_kernel, grid, threads, dev, in, out, (int64_t)2, (int)mistake);
    else
        LAUNCH(steps_kernel, grid, threads, dev, p, mistake == SIMT_HOST_ARGUMENT ? host : in, out);
}

extern "C" int simt_launches(enum simt_mistake mistake)
{
    enum { N = LAUNCHED * PACK };
    float host[N], *in, *out, *inner, seven = 7;
    struct given p = {&seven, NULL, mistake == SIMT_BEHIND_END ? 100 : mistake == SIMT_BEFORE ? -100 : 1,
                      mistake == SIMT_HOST_FOLLOWED};
    struct device *dev;
    struct err e;
    int wrong = 0;

    for (int i = 0; i < N; i++)
        host[i] = (float)(i * i % 101);
    if (simt_open(&dev, 0, &e) < 0 || device_alloc(dev, (void **)&in, sizeof host, &e) < 0 ||
        device_alloc(dev, (void **)&out, sizeof host, &e) < 0 || device_alloc(dev, (void **)&inner, sizeof in, &e) < 0 ||
        device_put(dev, in, host, sizeof host, &e) < 0 || device_put(dev, inner, &in, sizeof in, &e) < 0)
        return -1;
    p.inner = mistake == SIMT_INNER_ADDRESS ? (float **)inner : NULL;
    if (mistake == SIMT_FREED)
        device_free(dev, in);
    launch_wrong(dev, mistake, p, in, out);
    if (mistake == SIMT_HOST_READS)
        wrong += out[0] != 0;
    if (device_get(dev, host, out, sizeof host, &e) < 0)
        return -1;
    for (int i = 0; i < LAUNCHED; i++)
        wrong += host[i] != (float)(i * i % 101);
    device_free(dev, in);
    device_free(dev, out);
    device_free(dev, inner);
    device_close(dev);
    return wrong;
}
