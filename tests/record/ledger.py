"""An independent reader of PREFIX.ledger: hashlib over the records and the tokens as read from .bin and .idx.
Usage: ledger.py PREFIX...   Prints the root of each and fails where it is not the file's or a document does not fit.

tests/cli/ledger.sh has the root that this printed of the dataset that it makes (Python 3.11)."""
import hashlib
import json
import struct
import sys

DTYPES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 8, 7: 4, 8: 2}


def tree(leaves):
    """RFC 6962, 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + tree(leaves[:k]) + tree(leaves[k:])).digest()


def documents(prefix):
    """The bytes of each document's tokens, and the type."""
    idx = open(prefix + ".idx", "rb").read()
    assert idx[:9] == b"MMIDIDX\0\0"
    dtype = idx[17]
    n, m = struct.unpack_from("<QQ", idx, 18)
    lengths = struct.unpack_from(f"<{n}i", idx, 34)
    offsets = struct.unpack_from(f"<{n}q", idx, 34 + 4 * n)
    ends = struct.unpack_from(f"<{m}q", idx, 34 + 12 * n)
    data = open(prefix + ".bin", "rb").read()
    for a, b in zip(ends, ends[1:]):
        yield b"".join(data[offsets[i]:offsets[i] + lengths[i] * DTYPES[dtype]] for i in range(a, b)), dtype


def check(prefix):
    file = open(prefix + ".ledger", "rb").read()
    assert file[:16] == b"QLEDGER\0" + struct.pack("<II", 1, 0)
    count, size = struct.unpack_from("<QQ", file, len(file) - 64)
    assert len(file) == 16 + size + 48 * count + 64
    leaves, at, token = [], 16, 0
    for d, (tokens, dtype) in enumerate(documents(prefix)):
        end, last, leaf = struct.unpack_from("<QQ32s", file, 16 + size + 48 * d)
        record = file[at:16 + end]
        n_id, n_url = struct.unpack_from("<II", record)
        assert json.loads(record[8 + n_id + n_url:])
        token += len(tokens) // DTYPES[dtype]
        at = 16 + end
        assert last == token
        leaves.append(hashlib.sha256(b"\0" + bytes([dtype]) + struct.pack("<I", len(record)) + record + tokens).digest())
        assert leaves[-1] == leaf
    assert len(leaves) == count and at == 16 + size
    root = tree(leaves)
    assert root == file[-48:-16], "the root"
    assert json.load(open(prefix + ".sum.json"))["ledger"] == {"documents": count, "sha256": root.hex()}
    return root.hex()


for prefix in sys.argv[1:]:
    print(prefix, check(prefix))
