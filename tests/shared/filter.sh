#!/usr/bin/env bash
# quern filter against what the originals said of real documents: decisions, the text that
# is left, every signal (tests/record/filter.py and filter_dialects.py made the tables).
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

zstd -dcq "$ROOT/tests/data/filter/shared.tsv.zst" >table.tsv || exit 1
cat >compare.py <<'PY'
import json, sys, zlib
rows = [line.rstrip("\n").split("\t") for line in open("table.tsv")]
head, rows = rows[0], {r[0]: r for r in rows[1:]}
wrong = 0
if sys.argv[1] == "signals":
    values = 0
    for line in open("signals.jsonl"):
        d = json.loads(line)
        for name, x in zip(head[6:], rows[d["id"]][6:]):
            if name in d["signals"] and x not in ("", "nan"):
                values += 1
                if not abs(d["signals"][name] - float(x)) <= 1e-6:
                    wrong += 1
                    print(d["id"], name, d["signals"][name], x)
    print(values, "values")
else:
    column = head.index(sys.argv[1])
    kept = {}
    for line in open("kept.jsonl"):
        d = json.loads(line)
        kept[d["id"]] = d["text"]
    dropped = {}
    for line in open("rejects.jsonl"):
        d = json.loads(line)
        dropped[d["id"]] = d["rule"]
    for name, r in rows.items():
        if dropped.get(name, "-") != r[column] or (name in kept) == (name in dropped):
            wrong += 1
            print(name, dropped.get(name), r[column])
        if sys.argv[1] == "c4" and name in kept and "%08x" % zlib.crc32(kept[name].encode()) != r[5]:
            wrong += 1
            print(name, "another text")
sys.exit(wrong > 0)
PY
check "documents picked" python3 "$ROOT/tests/shared/filter_pick.py" table.tsv docs.jsonl
n=$(wc -l <docs.jsonl)
if [ "$n" -ge 2000 ]; then ok "$n documents"; else bad "documents" "only $n"; fi
for p in gopher-quality gopher-repetition c4 fineweb; do
    status "$p runs" 0 quern filter -q --preset $p -o kept.jsonl --rejects rejects.jsonl docs.jsonl
    check "$p decides as datatrove" python3 compare.py $p
done
for p in gopher-quality,gopher-repetition,c4 fineweb; do # behind c4 fineweb would see another text
    status "signals of $p" 0 quern filter -q --annotate --preset $p -o signals.jsonl docs.jsonl
    check "signals of $p within 1e-6" python3 compare.py signals
done
cat >dialect.py <<'PY'
import json, sys, zlib
rows = [line.rstrip("\n").split("\t") for line in open("dialect.tsv")]
names, rows = rows[0][3:], {r[0]: r for r in rows[1:]}
wrong = values = 0
dropped = {d["id"]: d["rule"] for d in map(json.loads, open("rejects.jsonl"))}
kept = {d["id"] for d in map(json.loads, open("kept.jsonl"))}
left = {d["id"]: d["text"] for d in map(json.loads, open("left.jsonl"))}
for name, r in rows.items():
    if dropped.get(name, "-") != r[1] or (name in kept) == (name in dropped):
        wrong += 1
        print(name, dropped.get(name), r[1])
    if r[2] != "-" and name in left and "%08x" % zlib.crc32(left[name].encode()) != r[2]:
        wrong += 1
        print(name, "another text")
for d in map(json.loads, open("signals.jsonl")):
    for name, x in zip(names, rows.get(d["id"], [""] * 3)[3:]):
        y = d["signals"][name]
        values += 1
        if not (y is None if x == "" else y is not None and abs(y - float(x)) <= 1e-6):
            wrong += 1
            print(d["id"], name, y, x)
print(len(rows), "documents,", values, "values")
sys.exit(wrong > 0 or len(rows) < 400)
PY
cat >strip.yaml <<'YAML'
dolma:
  lines_with_no_ending_punctuation: on
  lines_with_too_few_words: on
  fraction_of_duplicate_lines: off
YAML
for p in nemo dolma dclm; do
    zstd -dcq "$ROOT/tests/data/filter/$p.tsv.zst" >dialect.tsv || exit 1
    status "$p runs" 0 quern filter -q --preset $p -o kept.jsonl --rejects rejects.jsonl docs.jsonl
    status "$p strips lines" 0 quern filter -q --preset $p --config strip.yaml -o left.jsonl docs.jsonl
    status "signals of $p" 0 quern filter -q --annotate --preset $p -o signals.jsonl docs.jsonl
    check "$p decides and measures as the original" python3 dialect.py
done
quern filter -q -j1 --preset gopher-quality,c4 -o one docs.jsonl
quern filter -q -j4 --preset gopher-quality,c4 -o four docs.jsonl
same "the same for one thread and four" one four
finish
