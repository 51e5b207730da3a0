/* The ops of training, one implementation against the other within the tolerances of docs/numerics.md. */
#include "tests/train_twins/train_twins.h"

const struct twins_case train_twins_cases[] = {
    {"elements", twins_elements},
    {"activations", twins_activations},
    {"dropout", twins_dropout},
    {"sums", twins_sums},
    {"updates", twins_updates},
    {"updates, bf16 weights", twins_updates_rounded},
    {"updates, moments in eight bits", twins_updates_eight_bits},
    {"factored second moments", twins_factored},
    {"embedding", twins_embedding},
    {"rope", twins_rope},
    {"norms", twins_norms},
    {"cross-entropy", twins_xent},
    {"matmul", twins_matmul},
    {"matmul of groups", twins_matmul_grouped},
    {"fp8", twins_fp8_conversions},
    {"fp8 activations", twins_fp8_activations},
    {"fp8 norms", twins_fp8_norms},
    {"fp8 products", twins_fp8_products},
    {"fp8 blocks", twins_fp8_blocks},
    {"fp8 products by blocks", twins_fp8_blocks_products},
    {"attention", twins_attention},
    {"route", twins_route},
    {NULL, NULL},
};
