"""Writes the documents that a table of tests/record names: filter_pick.py TABLE DOCS.jsonl

A name is FILE:LINE, or FILE:LINE+N for N lines joined; names without a colon are others'."""
import json
import os
import subprocess
import sys

root = os.environ["SHARED"] + "/data/"
want = {}
for row in open(sys.argv[1]):
    name = row.split("\t", 1)[0]
    if ":" in name:
        path, at = name.split(":")
        first, _, size = at.partition("+")
        want.setdefault(path, []).append((int(first), int(size or 1), name))
with open(sys.argv[2], "w") as out:
    for path, picks in want.items():
        data = (subprocess.run(["zstd", "-dcq", root + path], stdout=subprocess.PIPE, check=True).stdout
                if path.endswith(".zst") else open(root + path, "rb").read())
        lines = data.split(b"\n")
        for first, size, name in picks:
            text = "\n".join(json.loads(x)["text"] for x in lines[first:first + size])
            out.write(json.dumps({"id": name, "text": text}) + "\n")
