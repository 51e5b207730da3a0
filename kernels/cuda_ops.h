/* kernels/cuda_ops.h -- the table of the CUDA ops of training, for a file that holds it: the backend, or the one that runs
 * them on the CPU.  In the order of struct device_ops. */
#ifndef KERNELS_CUDA_OPS_H
#define KERNELS_CUDA_OPS_H

#include "kernels/device.h"

static const struct device_ops cuda_ops = {
    matmul_cuda,       embedding_fwd_cuda, embedding_bwd_cuda, layernorm_fwd_cuda, layernorm_bwd_cuda, rmsnorm_fwd_cuda,
    rmsnorm_bwd_cuda,  act_fwd_cuda,       act_bwd_cuda,       glu_fwd_cuda,       glu_bwd_cuda,       rope_cuda,
    attention_fwd_cuda, attention_bwd_cuda, xent_cuda,         xent_max_cuda,      xent_sum_cuda,      xent_finish_cuda,
    vec_cast_cuda,     vec_scale_cuda,     vec_axpy_cuda,      vec_add_cuda,       vec_dropout_cuda,   vec_colsum_cuda,
    vec_sumsq_cuda,    clip_scale_cuda,    update_cuda,         route_fwd_cuda,     route_bwd_cuda,     route_place_cuda,
    route_likely_cuda,
    route_tally_cuda,
    route_balance_cuda, route_take_cuda,   route_join_cuda,    route_join_bwd_cuda, gate_add_cuda,    gate_back_cuda,
    gate_mul_cuda,      gate_slope_cuda,
    heads_move_cuda,
    heads_sum_cuda,
    fp8_amax_cuda,     fp8_quantize_cuda,  fp8_update_cuda,    fp8_blocks_cuda,    vec_total_cuda,
    matmul_grouped_cuda, factored_cuda,
};

#endif
