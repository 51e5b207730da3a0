"""Records what text-dedup and RedPajama-Data v2 make of some texts.

    python tests/record/minhash_peers.py text-dedup > tests/data/dedup/text-dedup.jsonl
    python tests/record/minhash_peers.py rpv2 REDPAJAMA-DATA/app/src > tests/data/dedup/rpv2.jsonl

Needs text-dedup (0.4.0 was used) or a copy of togethercomputer/RedPajama-Data, and numpy, scipy,
xxhash.  First a line a threshold: the bands and rows.  Then a line a text of
tests/data/dedup/datatrove.jsonl: the first four hashes, and XXH64 of all as little-endian 64-bit
numbers; neither if it has no signature.
"""
import json
import sys

import numpy as np
import xxhash

THRESHOLDS = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
EXTRA = [
    "Punctuation, -- everywhere!  And  more   white \t space_in between; the end of it is not near: 1,000.5 or more words?",
    "\u0130stanbul ve \u0130zmir \u039f\u03a3 \u03a3\u0391\u03a3 na\u00efve caf\u00e9 \u1e9e x\u00b2 \u00bd \u2167 \u4e2d\u6587 \u0939\u093f\u0928\u094d\u0926\u0940 one two three four five six seven",
]


def texts():
    for line in open("tests/data/dedup/datatrove.jsonl"):
        yield json.loads(line)["text"]
    yield from EXTRA


def show(text, parts):
    out = {"text": text}
    if parts:
        sig = np.frombuffer(b"".join(parts), dtype=parts_type).byteswap().astype("<u8")
        out["first"] = [str(v) for v in sig[:4]]
        out["digest"] = xxhash.xxh64_hexdigest(sig.tobytes(), seed=0)
    print(json.dumps(out))


def text_dedup():
    from text_dedup import minhash as m
    from text_dedup.utils import optimal_param, xxh3_32hash

    p = np.uint64((1 << 61) - 1)
    rng = np.random.RandomState(42)
    perms = rng.randint(1, p, size=(250,), dtype=np.uint64), rng.randint(0, p, size=(250,), dtype=np.uint64)
    for t in THRESHOLDS:
        print(json.dumps({"threshold": t, "shape": optimal_param(t, 250)}))
    for text in texts():
        with np.errstate(over="ignore"):
            if len(m.NON_ALPHA.split(text.lower())) < 5:
                show(text, None)
                continue
            got = m.embed_func(text, 0, num_perm=250, ngram_size=5, min_length=5, hashranges=[(0, 250)],
                               permutations=perms, hash_func=xxh3_32hash, dtype=np.uint64,
                               max_hash=np.uint32((1 << 32) - 1), modulo_prime=p)
        show(text, got[m.SIGNATURE_COLUMN])


def rpv2():
    sys.path.insert(0, sys.argv[2])
    from dedupe.minhash import MinHash
    from dedupe.utils import optimal_param
    from utilities.text import normalize

    m = MinHash([1.0], 13, 128, 42)
    for t in THRESHOLDS:
        print(json.dumps({"threshold": t, "shape": optimal_param(t, 128)}))
    for text in texts():
        with np.errstate(over="ignore"):
            show(text, m.compute_banded_signatures(tuple(normalize(text).split()))["signature_sim1.0"])


parts_type = "u8" if sys.argv[1] == "text-dedup" else "u4"
text_dedup() if sys.argv[1] == "text-dedup" else rpv2()
