/* kernels/act.cuh -- inside act.cu and fp8.cu: the activations. */
#ifndef KERNELS_ACT_CUH
#define KERNELS_ACT_CUH

#include "kernels/lanes.cuh"

/* The logistic function and its complement.  FAST, for what is rounded to bf16: by the GPU's own approximations, to some 2^-16,
 * and the complement to 2^-23 of 1; else neither with cancellation. */
template <bool FAST> static __device__ __forceinline__ float logistic(float x, float *complement)
{
    if (FAST) {
        float s = sigmoid_fast(x);
        *complement = 1.0f - s;
        return s;
    }
    float e = expf(x < 0 ? x : -x), r = 1.0f / (1.0f + e), q = e * r;

    *complement = x < 0 ? r : q;
    return x < 0 ? q : r;
}

/* GELU's logistic function, of x (1 + .044715 x^2) 2 sqrt(2 / pi), as logistic; the derivative of that to *du. */
template <bool FAST> static __device__ __forceinline__ float gelu_logistic(float x, float *complement, float *du)
{
    const float k = 1.59576912f;
    float x2 = x * x;

    if (FAST) {
        float s = reciprocal_fast(1.0f + exp2_fast(x * fmaf(-0.044715f * k * LOG2E, x2, -k * LOG2E)));
        *complement = 1.0f - s;
        *du = fmaf(3 * 0.044715f * k, fminf(x2, 1e6f), k); /* finite; behind it are zeros */
        return s;
    }
    *du = k * fmaf(3 * 0.044715f, x2, 1.0f);
    return logistic<false>(k * x * fmaf(0.044715f, x2, 1.0f), complement);
}

/* The normal distribution function and its density times sqrt(2 pi); FAST: the CPU's polynomial (kernels/simd.h) by one
 * exponential and one reciprocal. */
template <bool FAST> static __device__ __forceinline__ float normal_cdf(float x, float *density)
{
    if (!FAST) {
        *density = expf(-0.5f * x * x);
        return 0.5f * erfcf(-0.707106781f * x);
    }
    float z = fminf(fabsf(x) * 0.707106781f, 10.9f), wide = fmaf(2.0f, z, 1.0f), r = reciprocal_fast((z + 4.0f) * wide);
    float q = (z - 4.0f) * r * wide, g = fmaf(0.00452262575f, q, -0.0178963194f), tail;

    g = fmaf(g, q, 0.0366971899f);
    g = fmaf(g, q, -0.0657182162f);
    g = fmaf(g, q, 0.0939826783f);
    g = fmaf(g, q, -0.101116345f);
    g = fmaf(g, q, 0.0680651545f);
    g = fmaf(g, q, 0.0153832411f);
    g = fmaf(g, q, -0.139620142f);
    g = fmaf(g, q, 1.23299509f);
    *density = exp2_fast(-0.5f * LOG2E * x * x);
    tail = 0.5f * *density * g * (r * (z + 4.0f));
    return x < 0 ? tail : 1.0f - tail;
}

/* act(x), and act'(x) to *slope: the same formulas as the CPU's. */
template <enum act ACT, bool FAST> static __device__ __forceinline__ float act_of(float x, float *slope)
{
    float s, c, du;

    if (ACT == ACT_GELU_TANH) {
        s = gelu_logistic<FAST>(x, &c, &du);
        *slope = !FAST && 1e6f < x * x ? (x < 0 ? 0.0f : 1.0f) : fmaf(x * s * c, du, s);
        return x * s;
    }
    if (ACT == ACT_GELU_ERF) {
        s = normal_cdf<FAST>(x, &du);
        *slope = fmaf(x, 0.398942280f * du, s);
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
        s = logistic<FAST>(ACT_QUICK * g, &c);
        *slope = ACT_LIMIT < x ? 0.0f : fmaf(ACT_QUICK * (g * s), c, s);
        return g * s;
    }
    s = logistic<FAST>(x, &c);
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
