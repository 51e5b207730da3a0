/* kernels/act.cuh -- inside act.cu and fp8.cu: the activations. */
#ifndef KERNELS_ACT_CUH
#define KERNELS_ACT_CUH

#include "kernels/lanes.cuh"

/* The logistic function and its complement, neither with cancellation. */
static __device__ __forceinline__ float logistic(float x, float *complement)
{
    float e = expf(x < 0 ? x : -x), r = 1.0f / (1.0f + e), q = e * r;

    *complement = x < 0 ? r : q;
    return x < 0 ? q : r;
}

/* act(x), and act'(x) to *slope: the same formulas as the CPU's. */
template <enum act ACT> static __device__ __forceinline__ float act_of(float x, float *slope)
{
    float s, c;

    if (ACT == ACT_GELU_TANH) {
        float x2 = x * x, k = 1.59576912f; /* 2 sqrt(2 / pi) */
        float u = k * x * fmaf(0.044715f, x2, 1.0f), du = k * fmaf(3 * 0.044715f, x2, 1.0f);
        s = logistic(u, &c);
        *slope = 1e6f < x2 ? (x < 0 ? 0.0f : 1.0f) : fmaf(x * s * c, du, s);
        return x * s;
    }
    if (ACT == ACT_GELU_ERF) {
        s = 0.5f * erfcf(-0.707106781f * x);
        *slope = fmaf(x, 0.398942280f * expf(-0.5f * x * x), s);
        return x * s;
    }
    if (ACT == ACT_RELU || ACT == ACT_RELU2) {
        float r = x < 0 ? 0.0f : x; /* NaN stays */
        *slope = r + r;
        if (ACT == ACT_RELU2)
            return r * r;
        *slope = 0 < x ? 1.0f : 0.0f;
        return r;
    }
    if (ACT == ACT_CLAMPED) {
        float g = ACT_LIMIT < x ? ACT_LIMIT : x;
        s = logistic(ACT_QUICK * g, &c);
        *slope = ACT_LIMIT < x ? 0.0f : fmaf(ACT_QUICK * (g * s), c, s);
        return g * s;
    }
    s = logistic(x, &c);
    *slope = fmaf(x * s, c, s);
    return x * s;
}

/* What a gate's activation is multiplied with, and the slope of that. */
template <enum act ACT> static __device__ __forceinline__ float up_of(float u, float *slope)
{
    *slope = 1;
    if (ACT != ACT_CLAMPED)
        return u;
    *slope = u < -ACT_LIMIT || ACT_LIMIT < u ? 0.0f : 1.0f;
    return (u < -ACT_LIMIT ? -ACT_LIMIT : ACT_LIMIT < u ? ACT_LIMIT : u) + 1.0f;
}

#endif
