"""The shared documents that the filters are held against, for filter.py and filter_dialects.py."""
import json
import random
import subprocess


def lines(path):
    if path.endswith(".zst"):
        return subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE).stdout
    return open(path, "rb")


def shared(root, keep=1.0):
    """Documents, and groups of sentences, with names that say where they are; of these a share."""
    rng = random.Random(7)
    sieve = random.Random(8)
    for f, share, most in [("books", 0.12, 20000), ("docs", 0.17, 9000), ("man", 0.18, 6000)]:
        path = "text/prose/%s-dev.jsonl.zst" % f
        for i, line in enumerate(lines(root + "/data/" + path)):
            pick = rng.random() < share
            if pick and len(text := json.loads(line)["text"]) < most:
                if sieve.random() < keep:
                    yield "%s:%d" % (path, i), text
    for path, size in [("langid/udhr/dev.jsonl", 40), ("langid/debian/dev.jsonl", 20)]:
        group = []
        for i, line in enumerate(lines(root + "/data/" + path)):
            group.append(json.loads(line)["text"])
            if len(group) == size:
                if rng.random() < 0.4 and sieve.random() < keep:
                    yield "%s:%d+%d" % (path, i - size + 1, size), "\n".join(group)
                group = []
