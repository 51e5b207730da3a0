#!/usr/bin/env python3
"""Compares `quern clean` with ftfy on damaged text: mojibake_diff.py N SEED FILE...

Takes lines from the files (text, or JSON lines with "text" and "original"), damages them:
UTF-8 read in one to three layers as one of ftfy's character sets (sloppy or strict with
U+FFFD), all or a part, with characters changed, lost or inserted.  N strings are repaired
by both, with several settings; prints how many agree and the first that do not; fails if
any does not.  Needs a Python that has ftfy, and quern-clean on PATH."""
import json
import random
import subprocess
import sys

from mojibake_peer import SETTINGS, damage

BARE = ["--form", "any", "--no-controls", "--no-zero-width", "--no-soft-hyphens", "--no-spaces", "--no-newlines"]


def lines(path):
    for line in open(path, encoding="utf-8"):
        if path.endswith(".jsonl"):
            d = json.loads(line)
            for key in ("text", "original", "fixed"):
                yield from d.get(key, "").split("\n")
        else:
            yield line.rstrip("\n")


def main():
    n, seed = int(sys.argv[1]), int(sys.argv[2])
    pool = [t for path in sys.argv[3:] for t in lines(path) if t.strip()]
    rng = random.Random(seed)
    texts = []
    while len(texts) < n:
        t = rng.choice(pool)
        if len(t) > 300:
            a = rng.randrange(len(t) - 200)
            t = t[a:a + rng.randrange(3, 200)]
        if rng.random() < 0.1:
            t += "\n" + rng.choice(pool)[:100]
        texts.append(damage(t, rng))
    given = "".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts))
    failed = 0
    for name, options, peer in SETTINGS:
        p = subprocess.run(["quern-clean", "-q", *BARE, *options], input=given, capture_output=True, text=True)
        if p.returncode:
            sys.exit(p.stderr)
        ours = [json.loads(line)["text"] for line in p.stdout.split("\n") if line]
        theirs = [peer(t) for t in texts]
        # ftfy takes the newline into a CESU-8 character that is cut off before it
        lost = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b and a.count("\n") > b.count("\n")]
        for i in lost:
            theirs[i] = ours[i]
        same = sum(a == b for a, b in zip(ours, theirs)) - len(lost)
        changed = sum(a != b for a, b in zip(texts, theirs))
        print(f"{name}: {same} of {len(texts)} agree; ftfy changes {changed}"
              + (f"; in {len(lost)} it loses a newline" if lost else ""))
        failed += len(texts) - same - len(lost)
        for t, a, b in [x for x in zip(texts, ours, theirs) if x[1] != x[2]][:3]:
            print(f"  of   {t[:400]!a}\n  ours {a[:400]!a}\n  ftfy {b[:400]!a}")
    sys.exit(failed != 0)


main()
