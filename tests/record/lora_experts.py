#!/usr/bin/env python3
"""Adapters of experts with PEFT: tests/data/train/sft/experts, for tests/cli/lora_peft_experts.sh.

    pip install torch transformers peft safetensors numpy
    python tests/record/lora_experts.py [FOLDER]
    python tests/record/lora_experts.py --check MODEL ADAPTER   the loss of MODEL with ADAPTER, by PEFT

Adapters of attention and of both layers of the experts of tests/data/train/hf/mixtral, or of qwen3_moe's experts' way back alone
(a folder each); q, k and v share A.  losses.txt: ten steps of AdamW on these alone, clipped at 0.5, each of the same eight
sequences.
"""
import shutil
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model

from lora_steps import base, draw, loss_of, record, sequences

MODELS = "tests/data/train/hf/"
CASES = {
    "mixtral": (["q_proj", "k_proj", "v_proj", "o_proj"], ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
    "qwen3_moe": ([], ["mlp.experts.down_proj"]),
}


def adapted(name):
    modules, parameters = CASES[name]
    torch.manual_seed(10)
    m = get_peft_model(base(MODELS + name), LoraConfig(
        r=2, lora_alpha=4, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=modules, target_parameters=parameters))
    for layer in m.base_model.model.model.layers if modules else []:
        layer.self_attn.k_proj.lora_A = layer.self_attn.v_proj.lora_A = layer.self_attn.q_proj.lora_A
    return draw(m)


if sys.argv[1:2] == ["--check"]:
    with torch.no_grad():
        print("%.9f" % loss_of(PeftModel.from_pretrained(base(sys.argv[2]), sys.argv[3]), sequences()).item())
else:
    to = sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/sft/experts"
    shutil.rmtree(to, ignore_errors=True)
    for case in CASES:
        record(adapted(case), f"{to}/{case}")
