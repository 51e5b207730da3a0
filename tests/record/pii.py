#!/usr/bin/env python3
"""datatrove's PIIFormatter (0.10) on made-up text with addresses, whole and broken.

pii.py record N SEED         writes tests/data/clean/pii_datatrove.jsonl, N cases
pii.py compare N SEED FILE...  compares `quern clean --pii-preset datatrove` on N cases and on
                             the documents of the files (JSON lines); fails if any differs
Each text gets a formatter of its own, as datatrove's goes on counting from text to text.
Needs datatrove; compare also quern-clean on PATH."""
import json
import random
import subprocess
import sys

from datatrove.pipeline.formatters import PIIFormatter

OFF = ["--form", "any", "--no-controls", "--no-zero-width", "--no-soft-hyphens", "--no-spaces", "--no-newlines",
       "--no-repair", "--unescape", "off", "--no-terminal-escapes"]
WORDS = ["mail", "joe.bloggs@example.com", "x@y", "a.b.c@d-e.f9.org", "é", "müller@firma.de", "!#$%&'*+/=?^_`{|}~-",
         ".", "..", "-", "@", "[127.0.0.1]", "@[8.8.8.8]", "@[8.8.8.x-y:]", "@[1.2.3.256]", "8.8.8.8", "1.1.1.1", "10.0.0.1",
         "192.168.0.1", "172.16.5.4", "172.32.5.4", "256.1.1.1", "300.300.300.300", "1.2.3.4.5.6.7.8", "01.2.3.4", "8.8.8.08",
         "100.64.1.1", "169.254.3.3", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.1.1.1", "255.255.255.255", "1234",
         "8.8.8.888", "4.4.4.2564", "9", "25", "0", "v", "_", " ", "\n", ",", "π", "ñ", "10", "٣", "com", "b.c", "名@x.jp"]


def make(rng):
    n = rng.randrange(1, 9)
    sep = rng.choice(["", "", " ", "."])
    return sep.join(rng.choice(WORDS) for _ in range(n))


def theirs(text):
    return PIIFormatter().format(text)


def compare(texts):
    given = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    p = subprocess.run(["quern-clean", "-q", *OFF, "--pii-preset", "datatrove"], input=given, capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    ours = [json.loads(line)["text"] for line in p.stdout.split("\n") if line]
    pairs = [(t, a, theirs(t)) for t, a in zip(texts, ours)]
    bad = [x for x in pairs if x[1] != x[2]]
    print(f"{len(pairs) - len(bad)} of {len(pairs)} agree; datatrove changes {sum(t != b for t, _, b in pairs)}")
    for t, a, b in bad[:5]:
        print(f"  of        {t[:300]!a}\n  ours      {a[:300]!a}\n  datatrove {b[:300]!a}")
    return bool(bad)


def main():
    n, rng = int(sys.argv[2]), random.Random(int(sys.argv[3]))
    texts = [make(rng) for _ in range(n)]
    if sys.argv[1] == "record":
        with open("tests/data/clean/pii_datatrove.jsonl", "w", encoding="utf-8") as f:
            for t in texts:
                f.write(json.dumps({"text": t, "want": theirs(t)}, ensure_ascii=False) + "\n")
        return
    bad = compare(texts)
    for path in sys.argv[4:]:
        bad |= compare([json.loads(line)["text"] for line in open(path, encoding="utf-8")])
    sys.exit(bad)


main()
