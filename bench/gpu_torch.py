"""Steps of the models of bench/gpu_train_bench.c in PyTorch, compiled, bf16 by autocast: the same table's lines.  make gpu-bench"""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")


class Norm(nn.Module):
    def __init__(self, n, rms):
        super().__init__()
        self.rms, self.w = rms, nn.Parameter(torch.ones(n))
        self.b = None if rms else nn.Parameter(torch.zeros(n))

    def forward(self, x):
        n = self.w.shape
        return F.rms_norm(x, n, self.w, 1e-5) if self.rms else F.layer_norm(x, n, self.w, self.b, 1e-5)


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, d = c["hidden"], c["hidden"] // c["heads"]
        self.heads, self.groups, self.d, self.llama = c["heads"], c["groups"], d, c["llama"]
        bias = not c["llama"]
        self.n1, self.n2 = Norm(h, c["llama"]), Norm(h, c["llama"])
        self.qkv = nn.Linear(h, (self.heads + 2 * self.groups) * d, bias=bias)
        self.proj = nn.Linear(h, h, bias=bias)
        self.fc1 = nn.Linear(h, c["ffn"] * (2 if c["llama"] else 1), bias=bias)
        self.fc2 = nn.Linear(c["ffn"], h, bias=bias)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        qkv = self.qkv(self.n1(x)).view(b, t, -1, self.d).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.groups, self.groups], 1)
        if self.llama:
            q, k = turn(q, cos, sin), turn(k, cos, sin)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.groups != self.heads)
        x = x + self.proj(o.transpose(1, 2).reshape(b, t, -1))
        y = self.fc1(self.n2(x))
        if self.llama:
            gate, up = y.chunk(2, -1)
            y = F.silu(gate) * up
        else:
            y = F.gelu(y, approximate="tanh")
        return x + self.fc2(y)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.word = nn.Embedding(c["vocab"], c["hidden"])
        self.pos = None if c["llama"] else nn.Embedding(c["seq"], c["hidden"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.norm = Norm(c["hidden"], c["llama"])
        self.out = nn.Linear(c["hidden"], c["vocab"], bias=False)
        if not c["llama"]:
            self.out.weight = self.word.weight
        d = c["hidden"] // c["heads"]
        turns = torch.arange(c["seq"])[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)[None]
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, x, y):
        s = self.word(x)
        if self.pos is not None:
            s = s + self.pos.weight
        for layer in self.layers:
            s = layer(s, self.cos, self.sin)
        return F.cross_entropy(self.out(self.norm(s)).view(-1, self.c["vocab"]), y.view(-1))


def run(name, b, **c):
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        m = Model(c)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    f = torch.compile(m)
    x = torch.randint(c["vocab"], (b, c["seq"]), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = f(x, x)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    rate = 10 * b * c["seq"] / (time.time() - start)
    n = sum(p.numel() for p in m.parameters())
    mib = torch.cuda.max_memory_allocated() >> 20
    print(f"PyTorch {torch.__version__} {name}\t{b} x {c['seq']}\t{c['layers']}\t{n / 1e6:.0f}M\t{rate:.0f}\t\t\t{mib}", flush=True)


def gpt(layers, hidden, heads):
    return dict(layers=layers, hidden=hidden, heads=heads, groups=heads, ffn=4 * hidden, seq=1024, vocab=50304, llama=False)


MODELS = [
    ("GPT-2 124M", 32, gpt(12, 768, 12)),
    ("GPT-2 350M", 24, gpt(24, 1024, 16)),
    ("GPT-2 774M", 16, gpt(36, 1280, 20)),
    ("GPT-2 1.5B", 16, gpt(48, 1600, 25)),
    ("Llama 1B", 8, dict(layers=16, hidden=2048, heads=32, groups=8, ffn=8192, seq=2048, vocab=32000, llama=True)),
]
for name, b, c in MODELS:
    try:
        run(name, b, **c)
    except Exception as e:  # one that does not fit leaves the others
        print(f"PyTorch {name}\tdoes not run: {str(e).splitlines()[0]}", flush=True)
    torch.cuda.empty_cache()
