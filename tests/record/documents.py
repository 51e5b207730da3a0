#!/usr/bin/env python3
"""Records what documents packed in a sequence give: tests/data/train/documents.safetensors.

    pip install megatron-core torch transformers safetensors numpy;  python tests/record/documents.py

masks.*: of some sequences the positions, loss masks and attention masks that Megatron Core makes with reset_position_ids,
reset_attention_mask and eod_mask_loss.  An attention mask is kept as the first key that each query sees; that it sees all
from there to its own place is asserted here.
gpt2.*, llama.*: as gpt2_parity.py and llama_parity.py, of sequences with such masks: logits and some gradients of the
first batch, and ten steps.  The loss is the mean over the tokens of a batch that have one.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from megatron.core.datasets.gpt_dataset import _get_ltor_masks_and_position_ids
from safetensors.numpy import save_file

sys.path.insert(0, os.path.dirname(__file__))
import gpt2_parity as gpt2  # noqa: E402
import llama_parity as llama  # noqa: E402

T, V, B, STEPS, EOD = gpt2.T, gpt2.V, gpt2.B, gpt2.STEPS, 7
KEPT = ("embedding.position_embeddings.weight", "decoder.layers.0.self_attention.linear_qkv.weight",
        "decoder.layers.1.self_attention.linear_proj.weight", "decoder.final_layernorm.weight")


def masks(tokens):
    """Positions, attention (True: seen) and loss mask of each of tokens (n, t)."""
    attention, loss, position = zip(*(_get_ltor_masks_and_position_ids(t, EOD, True, True, True, True) for t in tokens))
    return torch.stack(position), ~torch.stack(attention), torch.stack(loss).double()


def record(name, logits_of, params, grads_of, ids, out):
    def step(s):
        t = torch.tensor(ids[s])
        position, seen, counts = masks(t[:, :-1])
        logits = logits_of(t[:, :-1], position, seen)
        each = F.cross_entropy(logits.reshape(-1, V), t[:, 1:].reshape(-1), reduction="none")
        loss = (each * counts.reshape(-1)).sum() / counts.sum()
        loss.backward()
        if s == 0:
            out[name + ".logits"] = gpt2.f32(logits)
            out.update({f"{name}.grad.{n}": gpt2.f32(x) for n, x in grads_of() if n in KEPT})
        return loss.item()

    out.update({f"{name}.{n}": x for n, x in gpt2.train(params, step).items()})
    print(name, "losses", *out[name + ".losses"][[0, -1]])


def main(path):
    rng = np.random.RandomState(8)
    ids = rng.randint(0, V, (STEPS, B, T + 1))
    ids[rng.rand(*ids.shape) < 1 / 8] = EOD
    rows = np.concatenate([ids[:6, :, :T].reshape(-1, T), np.full((1, T), EOD), np.full((1, T), 1)])
    position, seen, loss = masks(torch.tensor(rows))
    start = seen[:, 0].int().argmax(2)
    at = torch.arange(T)
    assert (seen[:, 0] == ((at >= start[:, :, None]) & (at <= at[:, None]))).all()
    out = {"ids": ids.astype(np.int32), "masks.tokens": rows.astype(np.int32), "masks.positions": position.numpy().astype(np.int32),
           "masks.starts": start.numpy().astype(np.int32), "masks.loss": loss.numpy().astype(np.int32)}

    w = gpt2.weights(gpt2.shapes())
    record("gpt2", lambda t, p, seen: gpt2.forward(w, t, p, seen), w.values(),
           lambda: [(n, x.grad) for n, x in w.items()], ids, out)

    model, params = llama.build("llama")
    hidden = lambda seen: torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -1e300)  # noqa: E731
    record("llama", lambda t, p, seen: model(input_ids=t, position_ids=p, attention_mask=hidden(seen)).logits,
           params.values(), lambda: [(n, torch.cat([params[x].grad for x in of])) for n, of in llama.names("llama")],
           ids, out)
    save_file(out, path)
    print(path, "torch", torch.__version__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/documents.safetensors")
