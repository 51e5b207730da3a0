#!/usr/bin/env python3
"""Records which documents Megatron Core trains on in which step, for tests/cli/trace.sh.

    pip install megatron-core==0.16.1 torch numpy
    python tests/record/sample_trace.py >tests/data/train/sample_trace.txt

Each token of the datasets made here is its own place in the dataset, so that what a sample has says where it is from, whatever
index led there.  Steps take samples one after another, as many as Megatron's calculator of batch sizes says.

Lines (fields separated by blanks):
    case NAME FLAG...                      of quern train
    NAME STEP ROW PIECE...                 a random sample: ROW of its step, of pieces DATASET:DOCUMENT:FROM-TO, tokens of the document
"""
import os
import random
import sys
import tempfile

import numpy
import torch
from megatron.core import num_microbatches_calculator as calculator
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.utils import get_blend_from_list

DRAWN = 250
SEQ = 16


class Tokenizer:
    unique_identifiers = {"class": "Tokenizer"}
    vocab_size, eod, eos, pad = 65000, 64999, 64999, 64998
    special_tokens_dict = {}


def lengths(name, n):
    """What datasets() of the test makes."""
    x = ord(name)
    for d in range(n):
        x = (x * 69069 + 1) % 2**31
        yield 0 if d % 11 == 7 else x // 65536 % 60 + 1


def make(name, n):
    """A document a length, of two sequences where its number is 4 modulo 5; where each token of the dataset is from."""
    builder = IndexedDatasetBuilder(name + ".bin", dtype=numpy.int32)
    places = []
    for d, length in enumerate(lengths(name, n)):
        ids = torch.arange(len(places), len(places) + length)
        builder.add_document(ids.numpy(), [length // 2, length - length // 2] if d % 5 == 4 and length > 1 else [length] if length else [])
        places += [(d, i) for i in range(length)]
    builder.finalize(name + ".idx")
    return places


def pieces(name_of, tokens, places):
    """Runs of tokens that lie one after another in a document."""
    runs = []
    for t in tokens:
        d, i = places[name_of][t]
        if runs and runs[-1][0] == d and runs[-1][2] == i:
            runs[-1][2] = i + 1
        else:
            runs.append([d, i, i + 1])
    return " ".join(f"{name_of}:{d}:{a}-{b}" for d, a, b in runs)


def case(name, places, paths, split, seed, batch, ramp, samples):
    part = split is None
    blend = get_blend_from_list(paths)
    config = GPTDatasetConfig(
        random_seed=seed, sequence_length=SEQ, tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
        eod_mask_loss=False, create_attention_mask=False, mid_level_dataset_surplus=0.005,
        **({"blend_per_split": [blend, None, None]} if part else {"blend": blend, "split": split}))
    data = BlendedMegatronDatasetBuilder(GPTDataset, [samples, 0, 0], lambda: True, config).build()[0]
    calculator.init_num_microbatches_calculator(0, ramp, batch, 1, 1, False)
    steps, consumed = [], 0
    while True:
        calculator.update_num_microbatches(consumed, consistency_check=False)
        n = calculator.get_current_global_batch_size()
        if consumed + n > samples:
            break
        steps.append((consumed, n))
        consumed += n
    calculator.unset_num_microbatches_calculator()
    print("case", name, *(f"--train-data-path {p}" for p in paths if part), *([] if part else ["--data-path", *paths, "--split", split]), "--seed", seed,
          "--global-batch-size", batch, *(["--rampup-batch-size", ",".join(ramp)] if ramp else []), "--train-samples", samples)
    draw = random.Random(seed)
    for _ in range(DRAWN):
        step = draw.randrange(len(steps))
        first, n = steps[step]
        row = draw.randrange(n)
        at = (first + row) % len(data)
        if hasattr(data, "dataset_index"):
            of = data.datasets[data.dataset_index[at]]
            tokens = of._query_document_sample_shuffle_indices(data.dataset_sample_index[at])[0]
        else:
            of = data
            tokens = of._query_document_sample_shuffle_indices(at)[0]
        which = os.path.basename(of.dataset.path_prefix)
        print(name, step + 1, row, pieces(which, tokens.tolist(), places))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        torch.distributed.init_process_group("gloo", init_method="file://" + folder + "/store", rank=0, world_size=1)
        places = {name: make(name, n) for name, n in (("a", 90), ("b", 60), ("c", 35))}
        case("epochs", places, ["a"], "90,10,0", 1234, 4, None, 400)
        case("ramp", places, ["0.5", "a", "0.3", "b", "0.2", "c"], "100,0,0", 77, 12, ["2", "2", "120"], 500)
        case("even", places, ["a", "b", "c"], "80,20,0", 5, 8, None, 200)
        case("parts", places, ["3", "b", "1", "c"], None, 4321, 6, ["3", "3", "60"], 300)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
