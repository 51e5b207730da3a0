#!/usr/bin/env python3
"""Records what megatron-core writes and draws, for tests/unit/indexed_dataset_test.c.

    pip install megatron-core==0.16.1 torch numpy
    python tests/record/megatron_dataset.py >tests/data/indexed_dataset/megatron.txt

Lines (fields separated by tabs):
    dataset NAME SEED DOCS LONGEST DTYPE MD5(.bin) MD5(.idx)
    case N SEQ SEED SAMPLES,SAMPLES,SAMPLES SPLIT TOKENIZER PATHS      one blend, split
    case N SEQ SEED SAMPLES,SAMPLES,SAMPLES - TOKENIZER PATHS|PATHS|PATHS    one a split
    file N NAME MD5                  everything in the cache of case N
    drawn N SPLIT COUNT MD5          of the first samples' tokens as int32
"""
import hashlib
import json
import os
import sys
import tempfile
from collections import OrderedDict

import numpy
import torch
from megatron.core.datasets.blended_dataset import BlendedDataset
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.utils import get_blend_from_list

DRAWN = 200


class Lcg:
    """Knuth's MMIX generator: the test makes the same documents."""

    def __init__(self, seed):
        self.x = seed

    def below(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.x >> 33) % n


def md5(data):
    return hashlib.md5(data).hexdigest()


def make(name, seed, docs, longest, dtype):
    r = Lcg(seed)
    b = IndexedDatasetBuilder(name + ".bin", dtype=dtype)
    top = 60000 if dtype == numpy.uint16 else 200000
    for d in range(docs):
        n = r.below(longest + 1)  # 0 now and then: a document without a sequence
        ids = [r.below(top) for _ in range(n)]
        lengths = [n // 3, n - n // 3] if d % 5 == 4 and n >= 3 else [n] if n else []
        b.add_document(torch.tensor(ids, dtype=torch.int64).numpy(), lengths)
    b.finalize(name + ".idx")
    code = 8 if dtype == numpy.uint16 else 4
    print("dataset", name, seed, docs, longest, code, md5(open(name + ".bin", "rb").read()),
          md5(open(name + ".idx", "rb").read()), sep="\t")


class Tokenizer:
    def __init__(self, identifiers):
        self.unique_identifiers = OrderedDict(identifiers)
        self.vocab_size, self.eod, self.eos, self.pad = 50257, 50256, 50256, 50255
        self.special_tokens_dict = {}


PLAIN = [("class", "Tokenizer"), ("tokenizer_path", ["vocab.json", "merges.txt"])]
ODD = [("class", "T\u00e9st \"q\" \U0001F600\n\x7f"), ("n", [1, -5, 0.5, None, True, [], {}]),
       ("nested", {"a": {"b": "c/d"}})]


def tokens(d, i):
    if isinstance(d, BlendedDataset):
        return tokens(d.datasets[d.dataset_index[i]], d.dataset_sample_index[i])
    return d._query_document_sample_shuffle_indices(i)[0].astype(numpy.int32)


def case(number, seq, seed, samples, split, paths, identifiers):
    cache = "cache%d" % number
    t = Tokenizer(identifiers)
    words = "|".join(" ".join(p) for p in paths) if split is None else " ".join(paths)
    print("case", number, seq, seed, ",".join(map(str, samples)), split or "-",
          json.dumps(t.unique_identifiers), words, sep="\t")
    which = (dict(blend_per_split=[get_blend_from_list(p or None) for p in paths]) if split is None
             else dict(blend=get_blend_from_list(paths), split=split))
    config = GPTDatasetConfig(random_seed=seed, sequence_length=seq, path_to_cache=cache, tokenizer=t,
                              reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                              **which)
    built = BlendedMegatronDatasetBuilder(GPTDataset, samples, lambda: True, config).build()
    for name in sorted(os.listdir(cache)):
        print("file", number, name, md5(open(os.path.join(cache, name), "rb").read()), sep="\t")
    for split_name, d in zip(("train", "valid", "test"), built):
        if d is not None:
            k = min(len(d), DRAWN)
            h = hashlib.md5()
            for i in range(k):
                h.update(tokens(d, i).tobytes())
            print("drawn", number, split_name, len(d), h.hexdigest(), sep="\t")


def main():
    root = tempfile.mkdtemp()
    os.chdir(root)
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + root + "/rendezvous")
    make("d0", 1, 57, 90, numpy.uint16)
    make("d1", 2, 400, 12, numpy.int32)
    make("d2", 3, 7, 3000, numpy.uint16)
    make("d3", 4, 1200, 40, numpy.int32)
    # seq, seed, samples, split, paths, tokenizer
    cases = [
        (16, 1234, [100, 20, 5], "969,30,1", ["d3"], PLAIN),
        (16, 1234, [1, 1, 1], "80,10,10", ["d0"], PLAIN),
        (32, 1, [500, 10, 10], "80,10,10", ["d0"], PLAIN),        # many epochs
        (8, 42, [400, 3, 3], "80,10,10", ["d0"], PLAIN),          # some epochs
        (64, 7, [35, 2, 1], "1,1,1", ["d0"], PLAIN),
        (128, 99, [300, 30, 3], "98,1,1", ["d3"], PLAIN),         # the last epoch apart
        (128, 99, [190, 30, 3], "98,1,1", ["d3"], PLAIN),         # nearly all of the last
        (1000, 5, [40, 1, 1], "70,15,15", ["d2"], PLAIN),         # documents longer than samples
        (2048, 5, [11, 2, 1], "60,20,20", ["d2"], PLAIN),         # samples longer than documents
        (5, 0, [1000, 100, 100], "0.9,.05,0.05", ["d1"], PLAIN),
        (5, 4294967295, [10, 10, 10], "949,50,1", ["d3"], PLAIN),
        (16, 1234, [100, 20, 0], "99,1,0", ["d3"], ODD),          # no test split
        (16, 1234, [100, 1, 1], "100,0,0", ["d3"], PLAIN),
        (16, 3, [400, 40, 40], "80,10,10", ["0.3", "d0", "0.7", "d3"], PLAIN),
        (16, 3, [400, 40, 40], "80,10,10", ["30", "d0", "7", "d1", "0.001", "d3"], PLAIN),
        (32, 11, [1000, 10, 10], "90,5,5", ["1", "d3", "1", "d1", "1", "d0"], PLAIN),
        (32, 11, [120, 10, 10], "90,5,5", ["d3", "d1", "d0"], PLAIN),  # by size, one epoch
        (16, 1234, [100, 10, 10], "90,5,5", ["1.0", "d3"], PLAIN),     # a blend of one
        (16, 1234, [100, 10, 10], None, [["d3"], ["d0"], ["d1"]], PLAIN),
        (16, 1234, [300, 10, 10], None, [["3", "d3", "1", "d0"], ["d1"], []], PLAIN),
        (16, 1234, [300, 10, 10], None, [["d3", "d1"], ["2", "d0"], ["d1"]], ODD),
        (8, 77, [5000, 7, 9], "5,3,2", sum([[str(0.1 * i + 0.05), "d%d" % (i % 4)] for i in range(20)], []), PLAIN),
        (1, 8, [50, 5, 5], "3,2,1", ["d1"], PLAIN),
        (16, 1234, [3000, 300, 30], "900,60,40", ["d1"], PLAIN),
    ]
    for i, c in enumerate(cases):
        case(i, c[0], c[1], c[2], c[3], c[4], c[5])


if __name__ == "__main__":
    sys.exit(main())
