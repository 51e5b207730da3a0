#!/usr/bin/env python3
"""Megatron-LM's own tools on the datasets of bench/dataset.sh: prints seconds.

dataset_peers.py merge OUT PART...       IndexedDatasetBuilder.add_index
dataset_peers.py index PREFIX SEQ CACHE  GPTDataset of one epoch, split 1
dataset_peers.py read PREFIX             MD5 of every document's tokens as IndexedDataset gives them
"""
import hashlib
import sys
import time
import warnings

warnings.simplefilter("ignore")

from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder  # noqa: E402


def merge(out, *parts):
    start = time.time()
    builder = IndexedDatasetBuilder(out + ".bin", dtype=IndexedDataset(parts[0]).index.dtype)
    for p in parts:
        builder.add_index(p)
    builder.finalize(out + ".idx")
    return time.time() - start


def index(prefix, seq, cache):
    import torch
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    class Tokenizer:
        unique_identifiers = None
        vocab_size, eod, eos, pad, special_tokens_dict = 50257, 50256, 50256, 50255, {}

    torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + cache + ".rendezvous")
    config = GPTDatasetConfig(random_seed=1234, sequence_length=int(seq), path_to_cache=cache, tokenizer=Tokenizer(),
                              reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                              blend=([prefix], None), split="1")
    start = time.time()
    BlendedMegatronDatasetBuilder(GPTDataset, [1, 0, 0], lambda: True, config).build()
    return time.time() - start


def read(prefix):
    d, h = IndexedDataset(prefix), hashlib.md5()
    for i in range(len(d)):
        h.update(d[i].tobytes())
    return h.hexdigest()


print(globals()[sys.argv[1]](*sys.argv[2:]))
