"""What tests/unit/kernels_fp8_test.c holds conversions by blocks against: what Transformer Engine's own reference
(tests/pytorch/references of its sources, commit d0067d0) makes of a matrix of bf16, as FNV-1a of all bytes: the matrix in
eight bits and 1 / scale, then both of it transposed.  "FORMAT SQUARES FP32-SCALES HASH" a line.

    python tests/record/fp8_blocks.py TRANSFORMER_ENGINE
"""
import sys

import torch

ROWS, COLS = 200, 330


def matrix():
    """Numbers of all sizes of bf16, a row of zeros, rows whose scale would be infinite, and some whose scale is nearly so."""
    i = torch.arange(ROWS * COLS, dtype=torch.int64)
    row = i // COLS
    word = (i * 1103515245 + 12345) % 2**31 // 2**8
    exponent = torch.where(row % 16 == 7, 0, 1 + (row * 37 + i % 3) % 240)
    exponent = torch.where(row % 16 == 11, 6 + row // 16 % 2, exponent)
    bits = word % 2 * 2**15 + exponent * 2**7 + word // 2 % 2**7
    bits = torch.where(row == 3, 0, bits)
    bits = torch.where(bits >= 2**15, bits - 2**16, bits)
    return bits.to(torch.int16).view(torch.bfloat16).reshape(ROWS, COLS)


def fnv(parts):
    h = 14695981039346656037
    for part in parts:
        for byte in bytes(part.contiguous().view(torch.uint8).flatten().tolist()):
            h = (h ^ byte) * 1099511628211 % 2**64
    return h


def main():
    sys.path.insert(0, sys.argv[1] + "/tests/pytorch")
    from references.blockwise_quantizer_reference import BlockwiseQuantizerReference

    x, reference = matrix(), BlockwiseQuantizerReference()
    for name, dtype in (("E4M3", torch.float8_e4m3fn), ("E5M2", torch.float8_e5m2)):
        for squares in (False, True):
            for fp32 in (False, True):
                q = reference.quantize(x, dtype, return_transpose=True, pow_2_scales=not fp32,
                                       quant_tile_shape=(128 if squares else 1, 128))
                print(f"{name} {squares:d} {fp32:d} 0x{fnv((q.data, q.scale, q.data_t, q.scale_t)):016x}ull")


main()
