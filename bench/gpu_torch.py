"""Steps of the models of bench/gpu_train_bench.c in PyTorch, compiled, bf16 by autocast, and some of its ops: the same tables'
lines.  make gpu-bench
    gpu_torch.py [SECONDS]     what has not begun after SECONDS is left out; what matters most comes first
Deep models are compiled by the layer, which takes a tenth of the time."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
MICRO_BATCHES = 8  # of an update


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


def run(name, b, whole, **c):
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        m = Model(c)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    if not whole:
        for layer in m.layers:
            layer.compile()
    f = torch.compile(m) if whole else m
    x = torch.randint(c["vocab"], (b, c["seq"]), device="cuda")

    def step():
        for _ in range(MICRO_BATCHES):
            with torch.autocast("cuda", torch.bfloat16):
                loss = f(x, x)
            (loss / MICRO_BATCHES).backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    rate = 4 * MICRO_BATCHES * b * c["seq"] / (time.time() - start)
    n = sum(p.numel() for p in m.parameters())
    mib = torch.cuda.max_memory_allocated() >> 20
    how = "" if whole else ", layers compiled"
    shape = f"{MICRO_BATCHES} of {b} x {c['seq']}\t{c['layers']}\t{n / 1e6:.0f}M"
    print(f"PyTorch {torch.__version__} {name}{how}\t{shape}\t{rate:.0f}\t\t\t{mib}", flush=True)


def best_of(f, runs=7):
    times = []
    for i in range(2 + runs):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) * 1e-3)
    return min(times[2:])


def row(op, shape, f, flops):
    try:
        s = best_of(f)
        print(f"PyTorch {op}\t{shape}\t{s:.6f}\t\t\t{1e-12 * flops / s:.0f}", flush=True)
    except Exception as e:
        print(f"PyTorch {op}\t{shape}\tdoes not run: {str(e).splitlines()[0]}", flush=True)


def numbers(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16) * 0.5


def ops():
    """The products and attention of bench/gpu_train_bench.c, by the same shapes."""
    t = 16384
    for m, n, k in (8192, 8192, 8192), (t, 6400, 1600), (t, 50304, 1600), (t, 22016, 4096):
        x, w, flops = numbers(m, k), numbers(n, k), 2.0 * m * n * k
        row("matmul", f"{m} x {n} x {k}", lambda: F.linear(x, w), flops)
        one = torch.ones((), device="cuda")
        x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
        row("FP8 matmul", f"{m} x {n} x {k}", lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16,
                                                                       use_fast_accum=True), flops)
    for b, s, h, kv, d in (t // 1024, 1024, 25, 25, 64), (t // 4096, 4096, 32, 32, 128), (t // 2048, 2048, 32, 8, 64):
        q, k, v = (numbers(b, n, s, d).requires_grad_() for n in (h, kv, kv))
        flops, shape = 2.0 * b * h * s * s * d, f"{b} x {s}, {h} on {kv} heads of {d}"
        y = None

        def forward():
            nonlocal y
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=h != kv)

        row("attention", shape, forward, flops)
        g = torch.ones_like(q)
        row("attention backward", shape, lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True), 2.5 * flops)


def gpt(layers, hidden, heads):
    return dict(layers=layers, hidden=hidden, heads=heads, groups=heads, ffn=4 * hidden, seq=1024, vocab=50304, llama=False)


def llama(layers, hidden, heads, groups, ffn, seq):
    return dict(layers=layers, hidden=hidden, heads=heads, groups=groups, ffn=ffn, seq=seq, vocab=32000, llama=True)


MODELS = [
    ("GPT-2 124M", 32, True, gpt(12, 768, 12)),
    ("GPT-2 1.5B", 16, False, gpt(48, 1600, 25)),
    ("Llama 1B", 8, True, llama(16, 2048, 32, 8, 8192, 2048)),
    ("Llama 7B, 16 layers", 2, False, llama(16, 4096, 32, 32, 11008, 4096)),
    ("GPT-2 774M", 16, False, gpt(36, 1280, 20)),
    ("GPT-2 350M", 24, False, gpt(24, 1024, 16)),
]
begun, budget = time.time(), float(sys.argv[1]) if len(sys.argv) > 1 else 1e9
ops()
for name, b, whole, c in MODELS:
    if time.time() - begun > budget:
        print(f"# left out for time: PyTorch {name}", flush=True)
        continue
    try:
        run(name, b, whole, **c)
    except Exception as e:  # one that does not fit leaves the others
        print(f"PyTorch {name}\tdoes not run: {str(e).splitlines()[0]}", flush=True)
    torch._dynamo.reset()
    torch.cuda.empty_cache()
