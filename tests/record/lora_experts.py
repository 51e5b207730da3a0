#!/usr/bin/env python3
"""Adapters of experts with PEFT: tests/data/train/sft/experts, for tests/cli/lora_peft_experts.sh.

    pip install torch transformers peft safetensors numpy
    python tests/record/lora_experts.py [FOLDER]
    python tests/record/lora_experts.py --check MODEL ADAPTER   the loss of MODEL with ADAPTER, by PEFT

Adapters of attention and of both layers of the experts of tests/data/train/hf/mixtral, or of qwen3_moe's experts' way back alone
(a folder each); q, k and v share A.  losses.txt: ten steps of AdamW on these alone, clipped at 0.5, each of the same eight
sequences.
"""
import json
import os
import shutil
import sys

import torch
import torch.nn.functional as F
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

MODELS = "tests/data/train/hf/"
CASES = {
    "mixtral": (["q_proj", "k_proj", "v_proj", "o_proj"], ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
    "qwen3_moe": ([], ["mlp.experts.down_proj"]),
}
STEPS, DOCS, LENGTH, V = 10, 8, 17, 61


def sequences():
    x, ids = 7, []
    for i in range(DOCS * LENGTH):
        x = (x * 5 + i % 3) % V
        ids.append(x)
    return torch.tensor(ids).reshape(DOCS, LENGTH)


def base(path):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")


def loss_of(m, ids):
    return F.cross_entropy(m(ids[:, :-1]).logits.reshape(-1, V), ids[:, 1:].reshape(-1))


def adapted(name):
    modules, parameters = CASES[name]
    torch.manual_seed(10)
    m = get_peft_model(base(MODELS + name), LoraConfig(
        r=2, lora_alpha=4, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=modules, target_parameters=parameters))
    for layer in m.base_model.model.model.layers if modules else []:
        layer.self_attn.k_proj.lora_A = layer.self_attn.v_proj.lora_A = layer.self_attn.q_proj.lora_A
    for key, p in m.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(p, std=0.3)
    return m.train()


def record(name, out):
    m, ids, losses = adapted(name), sequences(), []
    m.save_pretrained(out, safe_serialization=True)
    with open(f"{out}/adapter_config.json") as f:
        config = json.load(f)
    config["target_modules"] = sorted(config["target_modules"] or [])
    config["base_model_name_or_path"] = None
    with open(f"{out}/adapter_config.json", "w") as f:
        f.write(json.dumps(config, indent=2, sort_keys=True) + "\n")
    os.remove(f"{out}/README.md")
    params = [p for p in m.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=3e-3, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1)
    for _ in range(STEPS):
        loss = loss_of(m, ids)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        opt.step()
        losses.append(loss.item())
    with open(f"{out}/losses.txt", "w") as f:
        f.writelines(f"{x:.9f}\n" for x in losses)
    print(name, losses, "torch", torch.__version__, "transformers", transformers.__version__)


if sys.argv[1:2] == ["--check"]:
    with torch.no_grad():
        print("%.9f" % loss_of(PeftModel.from_pretrained(base(sys.argv[2]), sys.argv[3]), sequences()).item())
else:
    to = sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/sft/experts"
    shutil.rmtree(to, ignore_errors=True)
    for case in CASES:
        record(case, f"{to}/{case}")
