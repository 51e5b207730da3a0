"""Causal attention of one sequence, 12 heads of 64, in PyTorch: prints the median processor milliseconds of forward and backward.

    python bench/attention_torch.py fp32|bf16 T THREADS
"""
import sys
import time

import torch
import torch.nn.functional as F

dt, t, threads = {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
q, k, v = (torch.randn(1, 12, t, 64, dtype=dt).requires_grad_() for _ in range(3))
dout = torch.randn(1, 12, t, 64, dtype=dt)
taken = []
for i in range(7 if t > 2048 else 15):
    start = time.process_time()
    F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(dout)
    taken.append(time.process_time() - start)
    q.grad = k.grad = v.grad = None
print("%.3f" % (1000 * sorted(taken[1:])[len(taken) // 2 - 1]))
