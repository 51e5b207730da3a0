"""What the records of adapters have in common: the sequences, ten steps of AdamW, and what is kept of them."""
import json
import os

import torch
import torch.nn.functional as F
import transformers

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


def draw(m):
    """Adapters that do something: B is not 0."""
    for name, p in m.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.3)
    return m.train()


def record(m, out):
    """The adapters of m, as PEFT saves them, and the losses of ten steps on them alone."""
    ids, losses = sequences(), []
    m.save_pretrained(out, safe_serialization=True)
    with open(f"{out}/adapter_config.json") as f:
        config = json.load(f)
    for key in "target_modules", "target_parameters":
        config[key] = sorted(config[key]) if config[key] else config[key]
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
    print(out, losses, "torch", torch.__version__, "transformers", transformers.__version__)
