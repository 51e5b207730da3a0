#include "kernels/lanes.cuh"

/* ---- the choice: a warp a token ---- */

static __device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

/* A logit and its expert; NaN counts as the least. */
struct ranked {
    float x;
    int i;
};

static __device__ __forceinline__ bool behind(const ranked &a, const ranked &b) { return a.x < b.x || (a.x == b.x && a.i > b.i); }

static __device__ __forceinline__ ranked warp_first(ranked a)
{
#pragma unroll
    for (int o = 16; o; o /= 2) {
        ranked b = {__shfl_xor_sync(~0u, a.x, o), __shfl_xor_sync(~0u, a.i, o)};
        if (behind(a, b))
            a = b;
    }
    return a;
}

/* r, unless it's no later than `last` or later than the best so far. */
static __device__ __forceinline__ void better(ranked &best, float x, int64_t i, const ranked &last, bool any)
{
    ranked r = {x == x ? x : minus_infinity(), (int)i};

    if ((any || behind(r, last)) && behind(best, r))
        best = r;
}

static __device__ __forceinline__ float biased(const struct route &p, const float *x, int i)
{
    return sigmoid(x[i]) + (p.bias ? p.bias[i] : 0.0f);
}

/* The first of a row behind `last`, of the groups whose bits are set. */
static __device__ __forceinline__ ranked next_of(const struct route &p, const float *x, uint64_t groups, const ranked &last,
                                                  bool any)
{
    ranked best = {minus_infinity(), INT32_MAX};
    int each = p.groups ? (int)p.experts / (int)p.groups : (int)p.experts;

    for (int i = (int)(threadIdx.x % 32); i < (int)p.experts; i += 32)
        if (groups >> i / each & 1)
            better(best, p.bias ? biased(p, x, i) : x[i], i, last, any);
    return warp_first(best);
}

/* What an expert counts to its group. */
static __device__ __forceinline__ float in_group(const struct route &p, const float *x, float max, int i)
{
    return p.score == ROUTE_SIGMOID ? biased(p, x, i) : p.pre ? expf(x[i] - max) : x[i];
}

/* The groups of which a row may choose, a bit each; a lane has the sums of two. */
static __device__ __forceinline__ uint64_t groups_of(const struct route &p, const float *x, float max)
{
    float low = minus_infinity(), high = minus_infinity();
    int lane = threadIdx.x % 32, each = (int)p.experts / (int)p.groups, most = p.limited ? 1 : (int)p.k / (int)p.of;
    uint64_t bits = 0;
    ranked r = {0, 0};

    for (int g = 0; g < (int)p.groups; g++) {
        float sum = 0;
        for (int j = 0; j < most; j++) {
            ranked best = {minus_infinity(), INT32_MAX};
            for (int i = g * each + lane; i < (g + 1) * each; i += 32)
                better(best, in_group(p, x, max, i), i, r, j == 0);
            r = warp_first(best);
            sum += r.x;
        }
        if (lane == g)
            low = sum;
        if (lane + 32 == g)
            high = sum;
    }
    for (int j = 0; j < (int)p.of; j++) {
        ranked best = {minus_infinity(), INT32_MAX};
        if (lane < (int)p.groups)
            better(best, low, lane, r, j == 0);
        if (lane + 32 < (int)p.groups)
            better(best, high, lane + 32, r, j == 0);
        r = warp_first(best);
        bits |= (uint64_t)1 << r.i;
    }
    return bits;
}

/* The experts of token t and what its weights are before they're divided, exp(logit - max) or sigmoids; the sum of these. */
static __device__ __forceinline__ float choose(const struct route &p, const float *x, int64_t t, float max, int32_t *choice,
                                               float *weight)
{
    uint64_t groups = p.groups ? groups_of(p, x, max) : 1;
    ranked r = {0, 0};
    float sum = 0;

    for (int64_t j = 0; j < p.k; j++) {
        r = next_of(p, x, groups, r, j == 0);
        float v = p.score == ROUTE_SIGMOID ? sigmoid(x[r.i]) : expf(x[r.i] - max);
        sum += v;
        if (threadIdx.x % 32 == 0) {
            choice[t * p.k + j] = r.i;
            weight[t * p.k + j] = v;
        }
    }
    return sum;
}

static __global__ void __launch_bounds__(CUDA_BLOCK, 4) /* registers enough for the sums of groups */
    fwd_kernel(struct route p, float *logits, float *lse, int32_t *choice, float *weight)
{
    int lane = threadIdx.x % 32;

    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += (int64_t)gridDim.x * CUDA_WARPS) {
        float *x = logits + t * p.experts, max = minus_infinity(), sum = 0, of_chosen;
        for (int64_t i = lane; i < p.experts; i += 32)
            max = fmaxf(max, x[i]);
        max = warp_max(max);
        for (int64_t i = lane; i < p.experts; i += 32)
            sum += expf(x[i] - max);
        sum = warp_sum(sum);
        of_chosen = choose(p, x, t, max, choice, weight);
        __syncwarp(); /* all have read */
        for (int64_t i = lane; i < p.experts && p.score == ROUTE_SOFTMAX; i += 32)
            x[i] = expf(x[i] - max) / sum;
        if (lane == 0) {
            lse[t] = max + logf(sum);
            float over = p.score == ROUTE_SIGMOID ? (p.k > 1 ? of_chosen + ROUTE_TINY : 1.0f) : p.pre ? sum : of_chosen;
            for (int64_t j = 0; j < p.k; j++)
                weight[t * p.k + j] = weight[t * p.k + j] / over * route_scale(&p);
        }
    }
}

/* The gradient of token t by its probabilities; NULL: there is none. */
static __device__ __forceinline__ const float *balance_of(const struct route &p, const struct route_grad &g, int64_t t)
{
    return g.balance && g.each ? g.balance + (int)t / (int)g.each * p.experts : g.balance;
}

/* The gradient by the probability of an expert, and how many of the choices it is: its own part of softmax over them. */
static __device__ __forceinline__ float by_prob(const struct route &p, const struct route_grad &g, int64_t t, int64_t i,
                                                float of_chosen, float *chosen)
{
    const float *balance = balance_of(p, g, t);
    float d = balance ? balance[i] : 0.0f;

    *chosen = 0;
    for (int64_t j = t * p.k; j < (t + 1) * p.k; j++)
        if (g.choice[j] == i) {
            d += p.pre ? g.dweight[j] * route_scale(&p) : 0.0f;
            *chosen = p.pre ? 0.0f : g.weight[j] * (g.dweight[j] - of_chosen / route_scale(&p));
        }
    return d;
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    bwd_kernel(struct route p, void *dlogits, struct route_grad g)
{
    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += (int64_t)gridDim.x * CUDA_WARPS) {
        float of_chosen = 0, sum = 0, chosen, z = g.z * g.lse[t];
        const float *prob = g.logits + t * p.experts;
        for (int64_t j = t * p.k; j < (t + 1) * p.k; j++)
            of_chosen += g.weight[j] * g.dweight[j];
        for (int64_t i = threadIdx.x % 32; i < p.experts; i += 32)
            sum += prob[i] * by_prob(p, g, t, i, of_chosen, &chosen);
        sum = warp_sum(sum);
        for (int64_t i = threadIdx.x % 32; i < p.experts; i += 32) {
            float d = by_prob(p, g, t, i, of_chosen, &chosen);
            one_put<DT>(dlogits, t * p.experts + i, prob[i] * (d - sum + z) + chosen);
        }
    }
}

/* The gradient by the sigmoid of a logit, from the weights of the chosen. */
static __device__ __forceinline__ float by_sigmoid(const struct route &p, const struct route_grad &g, int64_t t, int64_t i,
                                                   float chosen, float of_chosen)
{
    for (int64_t j = t * p.k; j < (t + 1) * p.k; j++)
        if (g.choice[j] == i) {
            float d = route_scale(&p) * g.dweight[j];
            return p.k > 1 ? (d - of_chosen) / (chosen + ROUTE_TINY) : d;
        }
    return 0;
}

template <enum dtype DT> static __global__ void CUDA_ROOMY
    bwd_sigmoid_kernel(struct route p, void *dlogits, struct route_grad g)
{
    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += (int64_t)gridDim.x * CUDA_WARPS) {
        const float *x = g.logits + t * p.experts, *balance = balance_of(p, g, t);
        float sum = 0, dot = 0, chosen = 0, of_chosen = 0, z = g.z * g.lse[t];
        for (int64_t j = t * p.k; j < (t + 1) * p.k; j++) {
            chosen += sigmoid(x[g.choice[j]]);
            of_chosen += g.weight[j] * g.dweight[j];
        }
        for (int64_t i = threadIdx.x % 32; i < p.experts && balance; i += 32) {
            sum += sigmoid(x[i]);
            dot += sigmoid(x[i]) * balance[i];
        }
        sum = warp_sum(sum) + ROUTE_TINY;
        dot = warp_sum(dot);
        for (int64_t i = threadIdx.x % 32; i < p.experts; i += 32) {
            float d = balance ? (balance[i] - dot / sum) / sum : 0.0f, s = sigmoid(x[i]);
            d += by_sigmoid(p, g, t, i, chosen, of_chosen);
            one_put<DT>(dlogits, t * p.experts + i, d * s * (1.0f - s) + z * expf(x[i] - g.lse[t]));
        }
    }
}

static __global__ void CUDA_ROOMY
    likely_kernel(struct route p, int64_t each, const float *logits, float *prob, int32_t *count)
{
    int lane = threadIdx.x % 32;

    for (int64_t t = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; t < p.t; t += (int64_t)gridDim.x * CUDA_WARPS) {
        const float *x = logits + t * p.experts;
        ranked r = {0, 0};
        float sum = 0;
        for (int64_t i = lane; i < p.experts && p.score == ROUTE_SIGMOID; i += 32)
            sum += sigmoid(x[i]);
        sum = warp_sum(sum) + ROUTE_TINY;
        for (int64_t i = lane; i < p.experts && prob; i += 32)
            prob[t * p.experts + i] = p.score == ROUTE_SIGMOID ? sigmoid(x[i]) / sum : x[i];
        for (int64_t j = 0; j < p.k; j++) {
            ranked best = {minus_infinity(), INT32_MAX};
            for (int i = lane; i < (int)p.experts; i += 32)
                better(best, x[i], i, r, j == 0);
            r = warp_first(best);
            if (lane == 0)
                atomicAdd(&count[(int)t / (int)each * p.experts + r.i], 1);
        }
    }
}

/* ---- the way: a block an expert goes over all choices in their order ---- */

static __device__ __forceinline__ bool chosen_by(const struct route &p, const int32_t *choice, int64_t t, int expert, int64_t *at)
{
    for (int64_t j = t * p.k; j < (t + 1) * p.k && t < p.t; j++)
        if (choice[j] == expert) {
            *at = j;
            return true;
        }
    return false;
}

/* What a choice is kept by: the larger the sooner.  Weights are not negative, so their bits order them. */
static __device__ __forceinline__ unsigned key_of(const struct route &p, const float *weight, int64_t at)
{
    return p.capacity && !p.by_position ? __float_as_uint(weight[at]) & 0x7fffffffu : 0;
}

/* How many choices of the block's expert have a key from `least` on. */
static __device__ int count_from(const struct route &p, const int32_t *choice, const float *weight, unsigned least, int *part)
{
    int here = 0;
    int64_t at;

    for (int64_t t = threadIdx.x; t < p.t; t += CUDA_BLOCK)
        here += chosen_by(p, choice, t, (int)blockIdx.x, &at) && (!least || key_of(p, weight, at) >= least);
    __syncthreads(); /* part may have been read a moment ago */
    return block_sum(here, part);
}

/* How many threads of the block before this one are `here`; *sum: how many are in all. */
static __device__ __forceinline__ int before_me(bool here, int *part, int *sum)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned all = __ballot_sync(~0u, here);
    int before = __popc(all & ((1u << lane) - 1));

    __syncthreads(); /* part may have been read a moment ago */
    if (lane == 0)
        part[warp] = __popc(all);
    __syncthreads();
    *sum = 0;
    for (int i = 0; i < CUDA_WARPS; i++) {
        before += i < warp ? part[i] : 0;
        *sum += part[i];
    }
    return before;
}

static __global__ void __launch_bounds__(CUDA_BLOCK) count_kernel(struct route p, const int32_t *choice, int32_t *count)
{
    __shared__ int part[CUDA_WARPS];
    int n = count_from(p, choice, NULL, 0, part);

    if (threadIdx.x == 0)
        count[blockIdx.x] = n;
}

/* The capacity-th largest key, bit by bit, and how many with just that key are kept. */
static __device__ unsigned least_kept(const struct route &p, const int32_t *choice, const float *weight, int *ties, int *part)
{
    unsigned least = 0;

    for (unsigned bit = 1u << 30; bit; bit >>= 1)
        if (count_from(p, choice, weight, least | bit, part) >= p.capacity)
            least |= bit;
    *ties = (int)p.capacity - count_from(p, choice, weight, least + 1, part);
    return least;
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    place_kernel(struct route p, const int32_t *choice, const float *weight, int32_t *place, int32_t *from, const int32_t *count)
{
    __shared__ int part[CUDA_WARPS];
    int64_t most = route_capacity(&p);
    bool drops = count[blockIdx.x] > most;
    int row = 0, end, sum, ties = (int)most;
    unsigned least = 0;

    for (int i = 0; i < (int)blockIdx.x; i++)
        row += (int)route_kept(&p, count[i]);
    end = row + (int)route_kept(&p, count[blockIdx.x]);
    if (drops && !p.by_position)
        least = least_kept(p, choice, weight, &ties, part);
    for (int64_t first = 0; first < p.t; first += CUDA_BLOCK) {
        int64_t at = 0;
        bool here = chosen_by(p, choice, first + threadIdx.x, (int)blockIdx.x, &at), kept = here;
        if (drops) {
            unsigned key = here ? key_of(p, weight, at) : 0;
            bool tie = here && key == least;
            int before = before_me(tie, part, &sum);
            kept = here && (key > least || (tie && before < ties));
            ties -= sum;
        }
        int before = before_me(kept, part, &sum);
        if (here)
            place[at] = kept ? row + before : -1;
        if (kept)
            from[row + before] = (int32_t)(first + threadIdx.x);
        row += sum;
    }
    for (int i = row + (int)threadIdx.x; i < end; i += CUDA_BLOCK)
        from[i] = -1;
}

/* One block: there are few experts. */
static __global__ void __launch_bounds__(CUDA_BLOCK) tally_kernel(int64_t experts, int32_t *load, const int32_t *count)
{
    for (int64_t i = threadIdx.x; i < experts; i += CUDA_BLOCK)
        load[i] += count[i];
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    balance_kernel(int64_t experts, float *sums, const int32_t *count, float by, double each, double *loss)
{
    __shared__ double part[CUDA_WARPS];
    double sum = 0;

    for (int64_t i = threadIdx.x; i < experts; i += CUDA_BLOCK) {
        sum += (double)sums[i] * count[i];
        sums[i] = by * (float)count[i];
    }
    sum = block_sum(sum, part);
    if (threadIdx.x == 0 && loss)
        *loss += each * sum;
}

/* ---- rows: a block a row ---- */

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    take_kernel(void *y, const void *x, const int32_t *from, int64_t n, int64_t c)
{
    for (int64_t r = blockIdx.x; r < n; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK)
            if (from[r] < 0)
                pack_put<DT>(y, r * c + i, c - i, pack{});
            else
                pack_put<DT>(y, r * c + i, c - i, pack_get<DT>(x, from[r] * c + i, c - i));
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    join_kernel(struct route p, void *y, const void *x, const int32_t *place, const float *weight, int64_t c)
{
    for (int64_t t = blockIdx.x; t < p.t; t += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK) {
            pack sum = {};
            for (int64_t j = t * p.k; j < (t + 1) * p.k; j++) {
                if (place[j] < 0)
                    continue;
                pack v = pack_get<DT>(x, place[j] * c + i, c - i);
                float w = weight ? weight[j] : 1.0f;
#pragma unroll
                for (int l = 0; l < PACK; l++)
                    sum.v[l] = fmaf(w, v.v[l], sum.v[l]);
            }
            pack_put<DT>(y, t * c + i, c - i, sum);
        }
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    join_bwd_kernel(struct route p, void *dx, float *dweight, const void *dy, const void *x, const int32_t *place,
                    const float *weight, int64_t c)
{
    __shared__ float part[32];

    for (int64_t j = blockIdx.x; j < p.t * p.k; j += gridDim.x) {
        float sum = 0, w = weight[j];
        for (int64_t i = threadIdx.x * PACK; i < c && place[j] >= 0; i += blockDim.x * PACK) {
            int64_t at = place[j] * c + i;
            pack d = pack_get<DT>(dy, j / p.k * c + i, c - i), v = pack_get<DT>(x, at, c - i);
#pragma unroll
            for (int l = 0; l < PACK; l++) {
                sum = fmaf(d.v[l], v.v[l], sum);
                d.v[l] *= w;
            }
            pack_put<DT>(dx, at, c - i, d);
        }
        sum = block_sum(sum, part);
        if (threadIdx.x == 0)
            dweight[j] = sum;
        __syncthreads(); /* part is used again */
    }
}

/* ---- the ops ---- */

extern "C" int route_fwd_cuda(struct device *dev, const struct route *p, float *logits, float *lse, int32_t *choice,
                              float *weight, struct err *e)
{
    TRY(check_route(p, "route_fwd", e));
    if (p->t == 0)
        return 0;
    LAUNCH(fwd_kernel, dim3(cuda_blocks(dev, p->t, CUDA_WARPS)), CUDA_BLOCK, dev, *p, logits, lse, choice, weight);
    return cuda_launched(dev, "route_fwd", e);
}

extern "C" int route_bwd_cuda(struct device *dev, enum dtype dt, const struct route *p, void *dlogits,
                              const struct route_grad *g, struct err *e)
{
    TRY(check_dtype(dt, "route_bwd", e));
    TRY(check_route(p, "route_bwd", e));
    if (p->t == 0)
        return 0;
    if (p->score == ROUTE_SIGMOID)
        BY_TYPE(dt, LAUNCH(bwd_sigmoid_kernel<DT>, dim3(cuda_blocks(dev, p->t, CUDA_WARPS)), CUDA_BLOCK, dev, *p, dlogits, *g));
    else
        BY_TYPE(dt, LAUNCH(bwd_kernel<DT>, dim3(cuda_blocks(dev, p->t, CUDA_WARPS)), CUDA_BLOCK, dev, *p, dlogits, *g));
    return cuda_launched(dev, "route_bwd", e);
}

extern "C" int route_place_cuda(struct device *dev, const struct route *p, const int32_t *choice, const float *weight,
                                int32_t *place, int32_t *from, int32_t *count, struct err *e)
{
    TRY(check_route(p, "route_place", e));
    LAUNCH(count_kernel, dim3((unsigned)p->experts), CUDA_BLOCK, dev, *p, choice, count);
    LAUNCH(place_kernel, dim3((unsigned)p->experts), CUDA_BLOCK, dev, *p, choice, weight, place, from,
           (const int32_t *)count);
    return cuda_launched(dev, "route_place", e);
}

extern "C" int route_likely_cuda(struct device *dev, const struct route *p, int64_t parts, const float *logits, float *prob,
                                 int32_t *count, struct err *e)
{
    TRY(check_route(p, "route_likely", e));
    TRY(check_parts(p, parts, e));
    if (p->t == 0)
        return 0;
    LAUNCH(likely_kernel, dim3(cuda_blocks(dev, p->t, CUDA_WARPS)), CUDA_BLOCK, dev, *p, p->t / parts, logits, prob, count);
    return cuda_launched(dev, "route_likely", e);
}

extern "C" int route_tally_cuda(struct device *dev, int64_t experts, int32_t *load, const int32_t *count, struct err *e)
{
    LAUNCH(tally_kernel, dim3(1), CUDA_BLOCK, dev, experts, load, count);
    return cuda_launched(dev, "route_tally", e);
}

extern "C" int route_balance_cuda(struct device *dev, int64_t experts, float *sums, const int32_t *count, float by, double each,
                                  double *loss, struct err *e)
{
    LAUNCH(balance_kernel, dim3(1), CUDA_BLOCK, dev, experts, sums, count, by, each, loss);
    return cuda_launched(dev, "route_balance", e);
}

extern "C" int route_take_cuda(struct device *dev, enum dtype dt, void *y, const void *x, const int32_t *from, int64_t n,
                               int64_t c, struct err *e)
{
    TRY(check_rows(dt, n, c, "route_take", e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(take_kernel<DT>, dim3(cuda_blocks(dev, n, 1)), row_threads(c), dev, y, x, from, n, c));
    return cuda_launched(dev, "route_take", e);
}

extern "C" int route_join_cuda(struct device *dev, enum dtype dt, const struct route *p, void *y, const void *x,
                               const int32_t *place, const float *weight, int64_t c, struct err *e)
{
    TRY(check_route(p, "route_join", e));
    TRY(check_rows(dt, p->t, c, "route_join", e));
    if (p->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(join_kernel<DT>, dim3(cuda_blocks(dev, p->t, 1)), row_threads(c), dev, *p, y, x, place, weight, c));
    return cuda_launched(dev, "route_join", e);
}

extern "C" int route_join_bwd_cuda(struct device *dev, enum dtype dt, const struct route *p, void *dx, float *dweight,
                                   const void *dy, const void *x, const int32_t *place, const float *weight, int64_t c,
                                   struct err *e)
{
    TRY(check_route(p, "route_join_bwd", e));
    TRY(check_rows(dt, p->t, c, "route_join_bwd", e));
    if (p->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(join_bwd_kernel<DT>, dim3(cuda_blocks(dev, p->t * p->k, 1)), row_threads(c), dev, *p, dx, dweight, dy,
                       x, place, weight, c));
    return cuda_launched(dev, "route_join_bwd", e);
}
