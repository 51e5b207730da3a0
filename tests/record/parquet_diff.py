"""What quern writes as Parquet, read by pyarrow and DuckDB: every value is that of the JSON line.

    python parquet_diff.py [JSONL...]

Takes quern-clean from PATH; without files the rows of tests/data/parquet.  Prints what differs; exits with 1 if anything did.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import duckdb
import pyarrow.parquet as pq

here = os.path.dirname(__file__)
files = sys.argv[1:] or sorted(glob.glob(os.path.join(here, "../data/parquet/*.jsonl")))
differ = rows = 0


def same(a, b):
    """Whether a value of a column is that of the line; columns of mixed or nested values are text, or JSON."""
    return a == b or (isinstance(a, str) and b is not None and json.loads(a) == b)


for file in files:
    lines = []
    for i, line in enumerate(open(file)):
        line = json.loads(line)
        line.setdefault("text", "text")
        if not isinstance(line["text"], str) or ("id" in line and not isinstance(line["id"], str)):
            line = {"text": "t", "was": line}
        lines.append(line)
    with tempfile.TemporaryDirectory() as t:
        at, to = os.path.join(t, "a.jsonl"), os.path.join(t, "a.parquet")
        with open(at, "w") as f:
            f.writelines(json.dumps(x, ensure_ascii=False) + "\n" for x in lines)
        subprocess.run(["quern-clean", "-q", at, "-o", to], check=True)
        kept = subprocess.run(["quern-clean", "-q", at], check=True, capture_output=True).stdout
        kept = [json.loads(x) for x in kept.splitlines()]
        arrow = pq.read_table(to).to_pylist()
        duck = duckdb.sql("select * from '%s'" % to)
        duck = [dict(zip(duck.columns, r)) for r in duck.fetchall()]
    for name, got in ("pyarrow", arrow), ("DuckDB", duck):
        if len(got) != len(kept):
            print("%s: %s has %d rows of %d" % (file, name, len(got), len(kept)))
            differ += 1
        for i, (a, b) in enumerate(zip(got, kept)):
            for key in a:
                if not same(a[key], b.get(key)):
                    print("%s: row %d: %s: %s has %r, the line %r" % (file, i, key, name, a[key], b.get(key)))
                    differ += 1
            rows += 1
print("%d rows of %d files, %d values differ" % (rows, len(files), differ))
sys.exit(differ > 0)
