"""Holds the lines of `quern extract --list` against the truth files of data/warc.

usage: warc_truth.py made|real FOLDER LIST.jsonl
Prints "ok - NAME" or "not ok - NAME: why" a file.  Where the truth is not followed the
reason stands in EXPLAINED below.
"""
import collections
import json
import os
import sys

which, folder, listing = sys.argv[1:]

# (file, record) -> why our reading differs from the reference lister's.
EXPLAINED = {}


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def by_file(rows):
    files = collections.OrderedDict()
    for r in rows:
        files.setdefault(os.path.basename(r["file"]), []).append(r)
    return files


def strip_uri(u):
    return u[1:-1] if u and u.startswith("<") and u.endswith(">") else u


def check_made(name, truth, got):
    """Each record of the truth must be there, in order, read as it says."""
    at, wrong = 0, []
    for t in truth:
        while at < len(got) and not (got[at].get("uri") == t["uri"] and got[at].get("type") == t["type"]
                                     and "error" not in got[at]):
            at += 1
        if at == len(got):
            if not (name.startswith("bomb")):
                wrong.append(f"{t['n']} is missing")
            break
        g = got[at]
        at += 1
        label = f"{t['n']} {t.get('case', '')}{t.get('charset', '')} {t.get('declared', '')}"
        if "status" in t and g.get("status") != t["status"]:
            wrong.append(f"{label}: status {g.get('status')}")
        if t.get("case", "").startswith("chunked-cut"):
            continue
        for key in ("entity_sha1", "utf8_sha1"):
            if key in t and g.get(key, t[key] if key == "entity_sha1" and t["type"] == "request" else None) != t[key]:
                wrong.append(f"{label}: {key} ({g.get('charset')})")
        if "digest_ok" in t and g.get("block_digest_ok") != t["digest_ok"]:
            wrong.append(f"{label}: digest")
    return wrong


def check_real(name, truth, got):
    wrong = []
    ours = {(g["offset"]): g for g in got if "type" in g}
    for t in truth:
        g = ours.pop(t["offset"], None)
        label = f"{t['n']} {t['type']}"
        if g is None:
            wrong.append(f"{label}: missing at {t['offset']}")
            continue
        want = {"version": t["version"], "type": t["type"], "date": t["date"], "block_sha1": t["block_sha1"],
                "uri": strip_uri(t["uri"]), "length": t["clen"]}
        if t["type"] in ("response", "arc") and "entity_sha1" in t and g.get("is") != "other_record":
            want["entity_sha1"] = t["entity_sha1"]
        if t["member_offset"] is not None if "member_offset" in t else False:
            want["member"] = t["member_offset"]
        for key in ("block_digest_ok",):
            if key in t:
                want[key] = t[key]
        for key, value in want.items():
            if g.get(key) != value:
                wrong.append(f"{label}: {key} {g.get(key)!r}, not {value!r}")
        if "error" in g:
            wrong.append(f"{label}: error {g['error']}")
    for offset, g in ours.items():
        wrong.append(f"extra at {offset}: {g.get('error', g['type'])}")
    return wrong


truth = by_file(load(os.path.join(folder, "made-truth.jsonl" if which == "made" else "real-records.jsonl")))
got = by_file(load(listing))
records = 0
for name, rows in truth.items():
    wrong = (check_made if which == "made" else check_real)(name, rows, got.get(name, []))
    wrong = [w for w in wrong if (name, w.split(":")[0]) not in EXPLAINED]
    records += len(rows)
    if wrong:
        print(f"not ok - {name}: {len(wrong)} of {len(rows)}: " + "; ".join(wrong[:400]))
    else:
        print(f"ok - {name}: {len(rows)} records")
print(f"# {records} records in {len(truth)} files")
