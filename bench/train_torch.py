"""A training step of GPT-2 124M in PyTorch: prints the medians of its seconds and of its processor seconds / THREADS.

    python bench/train_torch.py fp32|bf16|pure THREADS STEPS [BATCH T [compile]]

bf16 is autocast beside fp32 weights, pure a model whose weights, gradients and moments are bf16.
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

dt, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
L, H, HEADS, V = 12, 768, 12, 50304
B, T = (int(x) for x in sys.argv[4:6] or (4, 256))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(H), nn.LayerNorm(H)
        self.qkv, self.proj = nn.Linear(H, 3 * H), nn.Linear(H, H)
        self.fc1, self.fc2 = nn.Linear(H, 4 * H), nn.Linear(4 * H, H)

    def forward(self, x):
        q, k, v = (z.view(B, T, HEADS, H // HEADS).transpose(1, 2) for z in self.qkv(self.n1(x)).split(H, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(B, T, H))
        return x + self.fc2(F.gelu(self.fc1(self.n2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos = nn.Embedding(V, H), nn.Embedding(1024, H)
        self.blocks = nn.ModuleList(Block() for _ in range(L))
        self.norm = nn.LayerNorm(H)

    def forward(self, ids):
        x = self.word(ids) + self.pos.weight[:T]
        for b in self.blocks:
            x = b(x)
        return self.norm(x) @ self.word.weight.T


model = GPT()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.normal_(p, std=0.02)
if dt == "pure":
    model.to(torch.bfloat16)


def loss_of(inputs, targets):
    return F.cross_entropy(model(inputs).float().view(-1, V), targets.reshape(-1))


if sys.argv[6:] == ["compile"]:
    loss_of = torch.compile(loss_of)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
clocks = time.monotonic, lambda: time.process_time() / threads
seconds = []
for i in range(steps):
    ids = torch.randint(0, 50257, (B, T + 1))
    start = [clock() for clock in clocks]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dt == "bf16"):
        loss = loss_of(ids[:, :-1], ids[:, 1:])
    opt.zero_grad(set_to_none=False)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    seconds.append([clock() - s for clock, s in zip(clocks, start)])
print(*("%.3f" % sorted(by)[(steps - 1) // 2] for by in zip(*seconds[1:])))
