"""Holds the lines of `quern extract --list` against the truth files of data/warc.

usage: warc_truth.py made|real FOLDER LIST.jsonl
Prints "ok - NAME" or "not ok - NAME: why" a file.  Where the truth is not followed the
reason stands with EXPLAINED below.
"""
import collections
import json
import os
import sys

which, folder, listing = sys.argv[1:]

# (file, what) -> why it is read otherwise than the truth file says.
EXPLAINED = {
    # Lengths that run into the next record: the reference lister gives such records,
    # quern calls them bad and goes on at the next one.
    ("aut--badexample.arc.gz", "3 arc"), ("aut--badexample.arc.gz", "extra at 2606"),
    ("aut--badexample.arc.gz", "extra at 2882"),
    # A length of -1 or abc: no usable length, a bad record.
    ("warcio--bad.arc", "0 filedesc"), ("warcio--bad.arc", "extra at 134"), ("warcio--bad.arc", "extra at 202"),
    # The file ends 12 bytes before the block does.
    ("warcio--example-space-in-url.arc", "1 arc"),
    # The digest is right, but in base64, which the lister does not read.
    ("warcio--example-digest.warc", "3 request"),
}


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
            if key in t and g.get(key) != t[key]:
                wrong.append(f"{label}: {key} ({g.get('charset')})")
        if "digest_ok" in t and g.get("block_digest_ok") != t["digest_ok"]:
            wrong.append(f"{label}: digest")
    return wrong


def check_real(name, truth, got):
    wrong = []
    ours = {g["offset"]: g for g in got if "type" in g}
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
        if t.get("member_offset") is not None:
            want["member"] = t["member_offset"]
        if "block_digest_ok" in t:
            want["block_digest_ok"] = t["block_digest_ok"]
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
records = explained = 0
for name, rows in truth.items():
    wrong = (check_made if which == "made" else check_real)(name, rows, got.get(name, []))
    new = [w for w in wrong if (name, w.split(":")[0]) not in EXPLAINED]
    explained += len(wrong) - len(new)
    wrong = new
    records += len(rows)
    if wrong:
        print(f"not ok - {name}: {len(wrong)} of {len(rows)}: " + "; ".join(wrong[:20]))
    else:
        print(f"ok - {name}: {len(rows)} records")
print(f"# {records} records in {len(truth)} files; {explained} facts read otherwise, as explained in this script")
