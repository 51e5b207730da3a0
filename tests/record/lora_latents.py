#!/usr/bin/env python3
"""Adapters of a DeepSeek-V3 with PEFT: tests/data/train/sft/latents, for tests/cli/lora_latents.sh.

    pip install torch transformers peft safetensors numpy;  python tests/record/lora_latents.py

The model is tests/data/train/hf/deepseek_v3: latents, a dense layer, layers of experts with a shared one.  All its linear layers
but the experts that a router chooses have adapters, random ones, of which gate and up share A.  losses.txt: ten steps of AdamW
on these alone, clipped at 0.5, each of the same eight sequences.
"""
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from peft.utils import transformers_weight_conversion as conversion

from lora_steps import base, draw, record

MODEL = "tests/data/train/hf/deepseek_v3"
OUT = sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/sft/latents"
TARGETS = ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Else PEFT takes gate_proj, up_proj and down_proj for those of the experts.
conversion._convert_peft_config_moe = lambda *_: None


def adapted():
    torch.manual_seed(10)
    m = get_peft_model(base(MODEL), LoraConfig(
        r=3, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS))
    for layer in m.base_model.model.model.layers:
        mlp = layer.mlp.shared_experts if hasattr(layer.mlp, "shared_experts") else layer.mlp
        mlp.up_proj.lora_A = mlp.gate_proj.lora_A
    return draw(m)


shutil.rmtree(OUT, ignore_errors=True)
record(adapted(), OUT)
