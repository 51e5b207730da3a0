#!/usr/bin/env python3
"""Fine-tuning as TRL, PEFT and transformers do it: tests/data/train/sft, for tests/cli/sft.sh and lora.sh.

    pip install torch transformers trl peft datasets safetensors numpy;  python tests/record/sft_parity.py

chat.jsonl, pairs.jsonl   conversations, and prompts with completions
tokenizer.json            a small BPE with the special tokens of all templates
NAME.ids                  of the first conversations by template NAME: ids, a line each, then a line of what TRL's
                          assistant_only_loss masks in (pairs: completion_only_loss)
model                     a random Qwen2
adapter, apart            random adapters of PEFT's: in one q, k and v share A, and so do gate and up; one of q and v
losses.json               ten steps of SFTTrainer, fp32: all weights, packed by best fit and wrapped; the adapters alone
"""
import json
import os
import random
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers
import trl
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from trl import SFTConfig, SFTTrainer, pack_dataset

OUT = sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/sft"
SEQ, SEED, STEPS, ROWS, SHOWN = 128, 1234, 10, 2, 12
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
           "<|eot_id|>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "</s>"]
TRL = os.path.join(os.path.dirname(trl.__file__), "chat_templates")
CHATML = """{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {{- '<|im_start|>assistant\\n' }}{% generation %}{{- message.content + '<|im_end|>\\n' }}{% endgeneration %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}"""
ZEPHYR = """{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {{- '<|assistant|>\\n' }}{% generation %}{{- message.content + '</s>\\n' }}{% endgeneration %}
    {%- else %}
        {{- '<|' + message.role + '|>\\n' + message.content + '</s>\\n' }}
    {%- endif %}
{%- endfor %}"""
TEMPLATES = {"chatml": CHATML, "qwen2.5": "qwen2_5_training", "llama3": "llama3_training", "gemma": "gemma_training",
             "phi3": "phi3_training", "zephyr": ZEPHYR, "deepseek": "deepseekv3_training", "harmony": "gptoss_training"}
BOS = {"llama3": "<|begin_of_text|>", "gemma": "<bos>", "deepseek": "<\uff5cbegin\u2581of\u2581sentence\uff5c>"}
WORDS = "the mill grinds grain slowly by night and water turns its wheel while two millers count sacks of flour \u00e9t\u00e9 \u4e2d".split()


def made_up():
    """Conversations of all shapes: white space at the ends, a system's word or none, one round or two."""
    r = random.Random(3)
    words = lambda a, b: " ".join(r.choice(WORDS) for _ in range(r.randint(a, b)))  # noqa: E731
    chats = []
    for i in range(60):
        m = [{"role": "system", "content": f"You count {words(1, 3)}."}] if i % 3 == 0 else []
        for _ in range(1 + i % 2):
            m.append({"role": "user", "content": words(2, 8).capitalize() + "?"})
            m.append({"role": "assistant", "content": " " * (i % 5 == 0) + words(3, 30).capitalize() + ".\n" * (i % 4 == 0)})
        chats.append(m)
    return chats, [{"prompt": words(2, 6) + " =", "completion": " " + words(1, 5)} for _ in range(SHOWN)]


def tokenizer_of(texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=352, special_tokens=SPECIAL, show_progress=False,
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(f"{OUT}/tokenizer.json")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|endoftext|>", pad_token="<|endoftext|>")


def rendered(tok, name, chats):
    text = TEMPLATES[name]
    tok.chat_template = text if "{" in text else open(f"{TRL}/{text}.jinja").read()
    tok.chat_template = tok.chat_template.replace('strftime_now("%Y-%m-%d")', '"2026-01-02"')
    tok.bos_token = BOS.get(name)
    out = []
    for m in chats:
        if name == "gemma" and m[0]["role"] == "system":
            continue
        x = tok.apply_chat_template(m, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        out.append({"input_ids": list(x["input_ids"]), "mask": list(x["assistant_masks"])})
    return out


def paired(tok, pairs):
    """As SFTTrainer tokenizes them: the end of a text belongs to the completion."""
    out = []
    for p in pairs:
        prompt = tok(p["prompt"])["input_ids"]
        whole = tok(p["prompt"] + p["completion"] + "<|endoftext|>")["input_ids"]
        assert whole[:len(prompt)] == prompt
        out.append({"input_ids": whole, "mask": [0] * len(prompt) + [1] * (len(whole) - len(prompt))})
    return out


def put(name, docs):
    with open(f"{OUT}/{name}.ids", "w") as f:
        for d in docs[:SHOWN]:
            f.write(" ".join(map(str, d["input_ids"])) + "\n" + " ".join(map(str, d["mask"])) + "\n")


def batches(docs, strategy):
    """The rows of all steps, in the order quern draws them."""
    docs = [{"input_ids": d["input_ids"], "labels": [i if m else -100 for i, m in zip(d["input_ids"], d["mask"])]} for d in docs]
    rows = pack_dataset(Dataset.from_list(docs), SEQ, strategy)[:]
    n, order = len(rows["input_ids"]), []
    for epoch in range(STEPS * ROWS // n + 1):
        drawn = np.arange(n, dtype=np.uint64)
        np.random.RandomState(SEED + epoch).shuffle(drawn)
        order += drawn.tolist()
    print(strategy, n, "rows")
    return Dataset.from_dict({k: [v[i] for i in order[:STEPS * ROWS]] for k, v in rows.items()})


class Trainer(SFTTrainer):
    def __init__(self, *args, **kwargs):
        self.seen = []
        super().__init__(*args, **kwargs)

    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(self, *args, **kwargs):
        loss = super().compute_loss(*args, **kwargs)
        self.seen.append((loss[0] if isinstance(loss, tuple) else loss).item())
        return loss


def trained(model, tok, rows, padding_free):
    with tempfile.TemporaryDirectory() as scratch:
        args = SFTConfig(
            output_dir=scratch, max_steps=STEPS, per_device_train_batch_size=ROWS, learning_rate=1e-3, lr_scheduler_type="constant",
            optim="adamw_torch", adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-8, weight_decay=0.1, max_grad_norm=1.0,
            logging_steps=1, save_strategy="no", report_to="none", use_cpu=True, bf16=False, fp16=False, max_length=None,
            gradient_checkpointing=False, padding_free=padding_free, dataset_kwargs={"skip_prepare_dataset": True}, loss_type="nll")
        t = Trainer(model=model, args=args, train_dataset=rows, processing_class=tok)
        t.train()
    return t.seen


def base():
    return transformers.AutoModelForCausalLM.from_pretrained(f"{OUT}/model", dtype=torch.float32, attn_implementation="eager")


def apart():
    torch.manual_seed(6)
    m = get_peft_model(base(), LoraConfig(r=2, lora_alpha=8, lora_dropout=0.0, task_type="CAUSAL_LM"))
    for name, p in m.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.05)
    return m


def with_adapter():
    torch.manual_seed(5)
    m = get_peft_model(base(), LoraConfig(r=4, lora_alpha=12, use_rslora=True, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=[
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
    for layer in m.base_model.model.model.layers:
        for first, others in ((layer.self_attn.q_proj, (layer.self_attn.k_proj, layer.self_attn.v_proj)),
                              (layer.mlp.gate_proj, (layer.mlp.up_proj,))):
            for other in others:
                other.lora_A = first.lora_A
    for name, p in m.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.05)
    return m


def main():
    os.makedirs(OUT, exist_ok=True)
    chats, pairs = made_up()
    for name, docs in (("chat", [{"messages": m} for m in chats]), ("pairs", pairs)):
        with open(f"{OUT}/{name}.jsonl", "w") as f:
            f.writelines(json.dumps(d, ensure_ascii=False) + "\n" for d in docs)
    tok = tokenizer_of([x["content"] for m in chats for x in m])
    for name in TEMPLATES:
        put(name, rendered(tok, name, chats))
    put("pairs", paired(tok, pairs))
    docs = rendered(tok, "chatml", chats)
    torch.manual_seed(4)
    small = transformers.Qwen2Config(
        vocab_size=352, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=SEQ, tie_word_embeddings=True, initializer_range=0.1, bos_token_id=None, eos_token_id=None)
    transformers.Qwen2ForCausalLM(small).save_pretrained(f"{OUT}/model")
    for name, make in (("adapter", with_adapter), ("apart", apart)):
        shutil.rmtree(f"{OUT}/{name}", ignore_errors=True)
        make().save_pretrained(f"{OUT}/{name}", safe_serialization=True)
        with open(f"{OUT}/{name}/adapter_config.json") as f:
            config = json.load(f)
        config["target_modules"].sort()  # a set, in any order
        with open(f"{OUT}/{name}/adapter_config.json", "w") as f:
            f.write(json.dumps(config, indent=2, sort_keys=True) + "\n")
    packed = batches(docs, "bfd")
    losses = {"bfd": trained(base(), tok, packed, True), "wrapped": trained(base(), tok, batches(docs, "wrapped"), False),
              "lora": trained(with_adapter(), tok, packed, True), "apart": trained(apart(), tok, packed, True)}
    with open(f"{OUT}/losses.json", "w") as f:
        f.write(json.dumps(losses, indent=1) + "\n")
    for f in ("model/generation_config.json", "adapter/README.md", "apart/README.md"):
        if os.path.exists(f"{OUT}/{f}"):
            os.remove(f"{OUT}/{f}")
    print({k: v[0] for k, v in losses.items()}, "torch", torch.__version__, "trl", trl.__version__)


if __name__ == "__main__":
    main()
