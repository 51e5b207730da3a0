"""Holds what `quern filter --preset rpv2 --annotate` wrote against a table of tests/record/rpv2.py."""
import json
import sys
import zlib

rows = [x.rstrip("\n").split("\t") for x in open(sys.argv[1])]
head, rows = rows[0], {r[0]: r for r in rows[1:]}
values = wrong = docs = 0


def crc(rows):
    return "%08x" % zlib.crc32(" ".join("%d %d %s" % (a, b, "-" if v is None else "%.6f" % v)
                                        for a, b, v in rows).encode())


for line in open(sys.argv[2]):
    d = json.loads(line)
    docs += 1
    for name, want in zip(head[1:], rows[d["id"]][1:]):
        got = d["signals"][name]
        values += 1
        if name.startswith("rps_lines_"):
            fine = crc(got) == want
        elif got is None or want == "-":
            fine = got is None and want == "-"
        else:
            fine = abs(got - float(want)) <= 1e-6
        if not fine:
            wrong += 1
            print(d["id"], name, json.dumps(got)[:300], want)
print("%d values of %d documents, %d differ" % (values, docs, wrong))
sys.exit(wrong > 0 or docs != len(rows))
