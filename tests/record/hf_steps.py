#!/usr/bin/env python3
"""Ten steps of transformers' models, for tests/unit/hf_steps_test.c: tests/data/train/hf/steps.safetensors.

    pip install torch transformers safetensors numpy;  python tests/record/hf_steps.py

The models are those that hf_models.py has written, in fp32: losses and gradient norms by clipping at 0.5 and AdamW, which
decays what is no vector; of a batch of two sequences a step.
"""
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file

OUT = "tests/data/train/hf"
V, B, T, STEPS = 61, 2, 16, 10
MODELS = ["olmo2", "gemma3_text", "qwen3_moe", "glm4_moe", "deepseek_v3", "gpt_oss", "nanochat"]


def decays(name, p):
    """A bias of all experts is a matrix there."""
    return p.dim() > 1 and not name.endswith("bias")


def losses(name, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(f"{OUT}/{name}", dtype=torch.float32).train()
    params = dict(model.named_parameters())
    groups = [{"params": [p for n, p in params.items() if decays(n, p) == d], "weight_decay": 0.1 * d} for d in (True, False)]
    opt = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-5)
    out = []
    for x in torch.tensor(ids):
        loss = F.cross_entropy(model(x[:, :-1]).logits.reshape(-1, V), x[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        out.append((loss.item(), norm.item()))
    return np.float32(out).T.copy()


def main():
    ids = np.random.RandomState(12).randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    for name in MODELS:
        out[f"{name}.losses"], out[f"{name}.norms"] = losses(name, ids)
        print(name, "losses", out[f"{name}.losses"][[0, -1]], "norms", out[f"{name}.norms"][[0, -1]])
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, f"{OUT}/steps.safetensors")


main()
