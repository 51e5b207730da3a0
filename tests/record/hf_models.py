#!/usr/bin/env python3
"""Small models of transformers, for tests/unit/hf_test.c: tests/data/train/hf.

    pip install torch transformers safetensors numpy
    python tests/record/hf_models.py                 # records
    python tests/record/hf_models.py check build     # ours, exported, load there: same weights, same text

gpt2: fp16, one file.  llama: bf16, several files, Llama 3.1's rotary angles, grouped queries.
qwen3: fp32, normalised queries and keys, tied.  qwen2: fp32, biases.  mixtral: bf16, several files, 4 experts.  logits.safetensors has the ids of a text
and each model's logits (fp32, of the weights as stored).
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file

OUT = "tests/data/train/hf"
V, T = 61, 12
LLAMA = dict(vocab_size=V, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=32, bos_token_id=None, eos_token_id=None)
MODELS = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None),
        torch.float16, "5GB"),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(
        **LLAMA, head_dim=8, rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
        torch.bfloat16, "6KB"),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**LLAMA, tie_word_embeddings=False), torch.float32,
              "5GB"),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**LLAMA, head_dim=8, tie_word_embeddings=True),
              torch.float32, "5GB"),
    "mixtral": (transformers.MixtralForCausalLM, transformers.MixtralConfig(
        **LLAMA, head_dim=8, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False,
        experts_implementation="eager"), torch.bfloat16, "12KB"),
}


def record():
    torch.manual_seed(3)
    ids = np.random.RandomState(4).randint(0, V, T)
    out = {"ids": ids.astype(np.int32)}
    for name, (cls, config, dtype, shard) in MODELS.items():
        model = cls(config)
        for p in model.parameters():
            p.data.normal_(0, 0.3).add_(float(p.dim() == 1))
        model = model.to(dtype)
        model.save_pretrained(f"{OUT}/{name}", max_shard_size=shard)
        os.remove(f"{OUT}/{name}/generation_config.json")
        model = cls.from_pretrained(f"{OUT}/{name}", dtype=torch.float32)  # .float() would keep rounded rotary angles
        with torch.no_grad():
            out[name] = model(torch.tensor(ids)[None]).logits[0].numpy()
    save_file(out, f"{OUT}/logits.safetensors")
    print("torch", torch.__version__, "transformers", transformers.__version__)


def weights(path):
    out = {}
    for f in os.listdir(path):
        if f.endswith(".safetensors"):
            out.update(load_file(f"{path}/{f}"))
    return out


def check(build):
    run = lambda *a: subprocess.run([f"{build}/bin/quern", *a], check=True, capture_output=True, text=True).stdout  # noqa: E731
    prompt = [5, 9, 2, 44]
    with tempfile.TemporaryDirectory() as tmp:
        for name in MODELS:
            run("checkpoint", "import", f"{OUT}/{name}", "--save", f"{tmp}/{name}")
            run("checkpoint", "export", f"{tmp}/{name}", "--output", f"{tmp}/{name}-hf", "--max-shard-size", "5K")
            ours, theirs = weights(f"{tmp}/{name}-hf"), weights(f"{OUT}/{name}")
            assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
            assert all(torch.equal(ours[k], theirs[k].float()) for k in ours), name
            model = transformers.AutoModelForCausalLM.from_pretrained(f"{tmp}/{name}-hf", dtype=torch.float32)
            first = transformers.AutoModelForCausalLM.from_pretrained(f"{OUT}/{name}", dtype=torch.float32)
            x = torch.tensor([prompt])
            same = (model(x).logits - first(x).logits).abs().max().item()
            want = model.generate(x, max_new_tokens=20, do_sample=False, pad_token_id=0)[0, len(prompt):].tolist()
            got = run("generate", "--load", f"{tmp}/{name}", "--prompt-ids", ",".join(map(str, prompt)), "--temperature", "0",
                      "--max-tokens", "20", "--print-ids").split()
            assert want == list(map(int, got)), (name, want, got)
            assert same == 0, same
            print(f"{name}: weights equal, logits equal, 20 greedy tokens equal")
        # A model that began here.
        for name, flags in (("gpt2", []), ("llama", ["--preset", "llama3-8b", "--num-query-groups", "2", "--ffn-hidden-size",
                                                     "96"])):
            run("train", *flags, "--mock-data", "--vocab-size", "300", "--num-layers", "2", "--hidden-size", "64",
                "--num-attention-heads", "4", "--seq-length", "64", "--max-position-embeddings", "64", "--micro-batch-size", "4",
                "--train-iters", "3", "--lr", "1e-2", "--eval-iters", "0", "--save", f"{tmp}/own-{name}", "-q")
            run("checkpoint", "export", f"{tmp}/own-{name}", "--output", f"{tmp}/own-{name}-hf", "--dtype", "fp32")
            model = transformers.AutoModelForCausalLM.from_pretrained(f"{tmp}/own-{name}-hf")
            want = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, pad_token_id=0)[0, len(prompt):]
            got = run("generate", "--load", f"{tmp}/own-{name}", "--prompt-ids", ",".join(map(str, prompt)), "--temperature",
                      "0", "--max-tokens", "20", "--print-ids").split()
            assert want.tolist() == list(map(int, got)), (name, want, got)
            print(f"own {name}: {type(model).__name__}, 20 greedy tokens equal")


check(sys.argv[2]) if sys.argv[1:2] == ["check"] else record()
