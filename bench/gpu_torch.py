"""Steps of the models of bench/gpu_train_bench.c in PyTorch, and some of its ops: the same tables' lines.  make gpu-bench
    gpu_torch.py [SECONDS]     what has not begun after SECONDS is left out; what matters most comes first
    gpu_torch.py tiny          all of it at toy sizes on the CPU: that it runs
PyTorch is taken at its best: attention by each backend that it has, pinned, the fastest for the model; head and loss compiled;
weights in bf16 with fp32 copies that a fused AdamW updates; with CUDA graphs and without.  FP8 where torchao is installed.  Deep
models are compiled by the layer, which takes a tenth of the time."""
import contextlib
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TINY = sys.argv[1:] == ["tiny"]
DEVICE = "cpu" if TINY else "cuda"
BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
if TINY:
    BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION}
torch.set_float32_matmul_precision("high")


def sync():
    if not TINY:
        torch.cuda.synchronize()


def short(e):
    return (str(e).splitlines() or [type(e).__name__])[0]


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

    def head(self, s, y):
        return F.cross_entropy(self.out(self.norm(s)).view(-1, self.c["vocab"]).float(), y.view(-1))

    def forward(self, x, y):
        s = self.word(x)
        if self.pos is not None:
            s = s + self.pos.weight
        for layer in self.layers:
            s = layer(s, self.cos, self.sin)
        return self.head(s, y)


class Run:
    """A model that trains: bf16 weights and gradients (also their sums over micro-batches, which quern has in fp32), and fp32
    copies and moments."""

    def __init__(self, b, micro, c, fp8):
        with torch.device(DEVICE):
            self.model = Model(c)
        self.count = sum(p.numel() for p in self.model.parameters())
        self.main = [p.detach().clone() for p in self.model.parameters()]
        for p in self.model.parameters():
            p.data = p.data.to(torch.bfloat16)
        if fp8:
            from torchao.float8 import convert_to_float8_training

            convert_to_float8_training(self.model.layers)
        self.low = list(self.model.parameters())
        self.opt = torch.optim.AdamW(self.main, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.micro, self.x = micro, torch.randint(c["vocab"], (b, c["seq"]), device=DEVICE)
        self.tokens = micro * b * c["seq"]

    def compile(self, whole, graphs):
        how = {"mode": "reduce-overhead"} if graphs else {}
        if whole:
            return torch.compile(self.model, **how)
        for layer in self.model.layers:
            layer.compile(**how)
        self.model.head = torch.compile(self.model.head, **how)
        return self.model

    def step(self, f, graphs):
        for p in self.main:
            p.grad = None
        for p in self.low:  # what a graph has given lies in its own memory, until it runs again
            p.grad = torch.zeros_like(p) if graphs and p.grad is None else p.grad.zero_() if graphs else None
        for _ in range(self.micro):
            torch.compiler.cudagraph_mark_step_begin()
            (f(self.x, self.x) / self.micro).backward()
        for p, low in zip(self.main, self.low):
            p.grad = low.grad.float()
        torch.nn.utils.clip_grad_norm_(self.main, 1.0)
        self.opt.step()
        torch._foreach_copy_([low.data for low in self.low], self.main)


def best_of(f, runs=7):
    times = []
    for _ in range(2 + runs):
        sync()
        if TINY:
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
            continue
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        sync()
        times.append(a.elapsed_time(b) * 1e-3)
    return min(times[2:])


def numbers(*shape):
    return torch.randn(shape, device=DEVICE, dtype=torch.bfloat16) * 0.5


def time_attention(name, b, s, h, kv, d, say):
    """Seconds of forward and backward by that backend; None where it does not take the shape."""
    q, k, v = (numbers(b, n, s, d).requires_grad_() for n in (h, kv, kv))
    flops, shape = 2.0 * b * h * s * s * d, f"{b} x {s}, {h} on {kv} heads of {d}"
    y = None

    def forward():
        nonlocal y
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=h != kv)

    try:
        with sdpa_kernel(BACKENDS[name]):
            there = best_of(forward)
            g = torch.ones_like(q)
            back = best_of(lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True))
    except Exception as e:
        if say:
            print(f"PyTorch attention, {name}\t{shape}\tdoes not run: {short(e)}", flush=True)
        return None
    if say:
        print(f"PyTorch attention, {name}\t{shape}\t{there:.6f}\t\t\t{1e-12 * flops / there:.0f}", flush=True)
        print(f"PyTorch attention backward, {name}\t{shape}\t{back:.6f}\t\t\t{2.5e-12 * flops / back:.0f}", flush=True)
    return there + back


def best_backend(b, c):
    """The name of the one that is fastest at a model's shape."""
    seconds = {n: time_attention(n, b, c["seq"], c["heads"], c["groups"], c["hidden"] // c["heads"], False) for n in BACKENDS}
    return min((n for n in seconds if seconds[n]), key=seconds.get)


def run(name, b, micro, whole, fp8, graphs, c):
    if not TINY:
        torch.cuda.reset_peak_memory_stats()
    how = [best_backend(b, c)] + ["FP8"] * fp8 + ["graphs"] * graphs + ["layers compiled"] * (not whole)
    r = Run(b, micro, c, fp8)
    f = r.compile(whole, graphs and not TINY)
    with sdpa_kernel(BACKENDS[how[0]]):
        for _ in range(3):
            r.step(f, graphs)
        sync()
        start = time.time()
        for _ in range(4):
            r.step(f, graphs)
        sync()
    rate = 4 * r.tokens / (time.time() - start)
    mib = 0 if TINY else torch.cuda.max_memory_allocated() >> 20
    shape = f"{micro} of {b} x {c['seq']}\t{c['layers']}\t{r.count / 1e6:.0f}M"
    print(f"PyTorch {torch.__version__} {name}, {', '.join(how)}\t{shape}\t{rate:.0f}\t\t\t{mib}", flush=True)


def row(op, shape, f, flops):
    try:
        s = best_of(f)
        print(f"PyTorch {op}\t{shape}\t{s:.6f}\t\t\t{1e-12 * flops / s:.0f}", flush=True)
    except Exception as e:
        print(f"PyTorch {op}\t{shape}\tdoes not run: {short(e)}", flush=True)


def ops():
    """The products and attention of bench/gpu_train_bench.c, by the same shapes."""
    t, small = 16384, 64 if TINY else 1
    for m, n, k in (8192, 8192, 8192), (t, 6400, 1600), (t, 50304, 1600), (t, 22016, 4096):
        m, n, k = m // small, n // small, k // small // 16 * 16 or 16
        x, w, flops = numbers(m, k), numbers(n, k), 2.0 * m * n * k
        row("matmul", f"{m} x {n} x {k}", lambda: F.linear(x, w), flops)
        one = torch.ones((), device=DEVICE)
        x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
        row("FP8 matmul", f"{m} x {n} x {k}", lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16,
                                                                       use_fast_accum=True), flops)
    for s, h, kv, d in (1024, 25, 25, 64), (4096, 32, 32, 128), (2048, 32, 8, 64):
        for name in BACKENDS:
            time_attention(name, 1 if TINY else t // s, s // small, h, kv, d, True)


def gpt(layers, hidden, heads):
    return dict(layers=layers, hidden=hidden, heads=heads, groups=heads, ffn=4 * hidden, seq=1024, vocab=50304, llama=False)


def llama(layers, hidden, heads, groups, ffn, seq):
    return dict(layers=layers, hidden=hidden, heads=heads, groups=groups, ffn=ffn, seq=seq, vocab=32000, llama=True)


def has_torchao():
    try:
        import torchao.float8  # noqa: F401
    except ImportError:
        return False
    return True


SMALL, LARGE, SEVEN = gpt(12, 768, 12), gpt(48, 1600, 25), llama(16, 4096, 32, 32, 11008, 4096)
MODELS = [  # name, sequences, micro-batches, compiled whole, FP8, graphs, shape
    ("GPT-2 1.5B", 16, 8, False, False, False, LARGE),
    ("Llama 7B, 16 layers", 4, 8, True, False, False, SEVEN),
    ("GPT-2 124M", 32, 8, True, False, True, SMALL),
    ("GPT-2 1.5B", 16, 8, False, True, False, LARGE),
    ("Llama 7B, 16 layers", 4, 8, True, True, False, SEVEN),
    ("GPT-2 124M", 32, 8, True, False, False, SMALL),
    ("GPT-2 1.5B", 16, 8, False, False, True, LARGE),
    ("Llama 1B", 8, 8, True, False, False, llama(16, 2048, 32, 8, 8192, 2048)),
    ("GPT-2 124M, nanoGPT's step", 12, 5, True, False, False, SMALL),
    ("GPT-2 124M, llm.c's step", 64, 8, True, False, False, SMALL),
    ("GPT-2 774M", 16, 8, False, False, False, gpt(36, 1280, 20)),
    ("GPT-2 350M", 24, 8, False, False, False, gpt(24, 1024, 16)),
]


def main():
    begun, budget = time.time(), float(sys.argv[1]) if len(sys.argv) > 1 and not TINY else 1e9
    if not TINY and not torch.cuda.is_available():
        sys.exit("gpu_torch.py: PyTorch sees no GPU")
    ops()
    if not has_torchao():
        print("# PyTorch in FP8: torchao is not installed", flush=True)
    for name, b, micro, whole, fp8, graphs, c in MODELS:
        if fp8 and not has_torchao():
            continue
        if time.time() - begun > budget:
            print(f"# left out for time: PyTorch {name}", flush=True)
            continue
        if TINY:
            b, micro = 2, 2
            c = dict(c, layers=2, hidden=64, heads=4, groups=2 if c["groups"] < c["heads"] else 4, ffn=128, seq=32, vocab=256)
        try:
            run(name, b, micro, whole, fp8, graphs, c)
        except Exception as e:  # one that does not fit leaves the others
            print(f"PyTorch {name}\tdoes not run: {short(e)}", flush=True)
        torch._dynamo.reset()
        with contextlib.suppress(Exception):
            torch.cuda.empty_cache()


main()
