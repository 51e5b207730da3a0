#!/usr/bin/env python3
"""Adapters of a DeepSeek-V3 with PEFT: tests/data/train/sft/latents, for tests/cli/lora_latents.sh.

    pip install torch transformers peft safetensors numpy;  python tests/record/lora_latents.py

The model is tests/data/train/hf/deepseek_v3: latents, a dense layer, layers of experts with a shared one.  All its linear layers
but the experts that a router chooses have adapters, random ones, of which gate and up share A.  losses.txt: ten steps of AdamW
on these alone, clipped at 0.5, each of the same eight sequences.
"""
import json
import os
import shutil
import sys

import torch
import torch.nn.functional as F
import transformers
from peft import LoraConfig, get_peft_model
from peft.utils import transformers_weight_conversion as conversion

MODEL = "tests/data/train/hf/deepseek_v3"
OUT = sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/sft/latents"
TARGETS = ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Else PEFT takes gate_proj, up_proj and down_proj for those of the experts.
conversion._convert_peft_config_moe = lambda *_: None
STEPS, DOCS, LENGTH, V = 10, 8, 17, 61


def sequences():
    x, ids = 7, []
    for i in range(DOCS * LENGTH):
        x = (x * 5 + i % 3) % V
        ids.append(x)
    return torch.tensor(ids).reshape(DOCS, LENGTH)


def adapted():
    torch.manual_seed(10)
    m = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager")
    m = get_peft_model(m, LoraConfig(r=3, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS))
    for layer in m.base_model.model.model.layers:
        mlp = layer.mlp.shared_experts if hasattr(layer.mlp, "shared_experts") else layer.mlp
        mlp.up_proj.lora_A = mlp.gate_proj.lora_A
    for name, p in m.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.3)
    return m.train()


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    m, ids, losses = adapted(), sequences(), []
    m.save_pretrained(OUT, safe_serialization=True)
    with open(f"{OUT}/adapter_config.json") as f:
        config = json.load(f)
    config["target_modules"].sort()
    config["base_model_name_or_path"] = None
    with open(f"{OUT}/adapter_config.json", "w") as f:
        f.write(json.dumps(config, indent=2, sort_keys=True) + "\n")
    os.remove(f"{OUT}/README.md")
    params = [p for p in m.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=3e-3, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1)
    for _ in range(STEPS):
        loss = F.cross_entropy(m(ids[:, :-1]).logits.reshape(-1, V), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        opt.step()
        losses.append(loss.item())
    with open(f"{OUT}/losses.txt", "w") as f:
        f.writelines(f"{x:.9f}\n" for x in losses)
    print(losses, "torch", torch.__version__, "transformers", transformers.__version__)


main()
