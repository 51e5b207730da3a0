#!/usr/bin/env bash
# quern clean's repair on ftfy's cases, on sentences that were damaged on purpose, and on
# text that is fine.  With PEERS (a Python that has ftfy 6.3.1 and datatrove 0.10) also
# beside both on damaged and on real text.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

data=$SHARED/data/unicode prose=$SHARED/data/text/prose
bare=(--form any --no-zero-width --no-soft-hyphens --no-spaces --no-newlines --no-controls)

cat >cases.py <<'PY'
import json, subprocess, sys
def clean(texts, *options):
    given = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    p = subprocess.run(["quern", "clean", "-q", *options], input=given, capture_output=True, text=True, check=True)
    return [json.loads(line)["text"] for line in p.stdout.split("\n") if line]
bare = sys.argv[2:]
bad = n = 0
for name in "in-the-wild", "synthetic", "negative", "language-names":
    cases = json.load(open(f"{sys.argv[1]}/ftfy/{name}.json"))
    encoding = clean([c["original"] for c in cases], *bare, "--unescape", "off", "--no-terminal-escapes")
    text = clean([c["original"] for c in cases], *bare, "--form", "nfc", "--quotes", "ascii", "--ligatures", "--width")
    for c, a, b in zip(cases, encoding, text):
        # ftfy's own step that removes these is --controls, which removes more
        b = b.replace("\x1a", "")
        n += 1
        if a != c.get("fixed-encoding", c["fixed"]) or b != c["fixed"]:
            bad += 1
            print(c["label"], ascii(a), ascii(b))
print(n - bad, "of", n)
sys.exit(bad != 0 or n != 151)
PY
check "ftfy's cases" python3 cases.py "$data" "${bare[@]}"
cat out

cat >damaged.py <<'PY'
import json, sys
want = [json.loads(line) for line in open(sys.argv[1])]
got = [json.loads(line)["text"] for line in open(sys.argv[2])]
right = sum(g == w["fixed"] for g, w in zip(got, want))
kept = [g == w["fixed"] for g, w in zip(got, want) if not w["steps"]]
print(f"{right} of {len(want)} right; {sum(kept)} of {len(kept)} fine ones as they were")
sys.exit(len(got) != len(want) or right < int(sys.argv[3]) or not all(kept))
PY
sed 's/"original":/"text":/' "$data/mojibake-dev.jsonl" >damaged.jsonl
quern clean -q "${bare[@]}" -o repaired.jsonl damaged.jsonl || bad "clean damaged sentences"
# 894 are what ftfy.fix_encoding gets right
check "damaged sentences" python3 damaged.py "$data/mojibake-dev.jsonl" repaired.jsonl 894
cat out

# Text that is fine or was found: as many documents change as with ftfy.
changed() { # NAME FILE WANT
    quern clean -q "${bare[@]}" -o out.jsonl "$2" || bad "clean $1"
    equal "documents changed in $1" "$(paste -d '\n' "$2" out.jsonl |
        awk 'NR % 2 { a = $0; next } a != $0 { n++ } END { print n + 0 }')" "$3"
}
# 20 texts of the Declaration have C1 controls for apostrophes
python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    print(json.dumps({"text": json.loads(line)["text"]}, ensure_ascii=False, separators=(",", ":")))' \
    "$SHARED/data/langid/udhr/dev.jsonl" >udhr.jsonl
changed "the Declaration of Human Rights" udhr.jsonl 20
for f in "$data"/charsets/*.utf8; do
    python3 -c 'import json, sys; print(json.dumps({"text": open(sys.argv[1], encoding="utf-8", newline="").read()},
        ensure_ascii=False, separators=(",", ":")))' "$f"
done >charsets.jsonl
changed "texts in many scripts" charsets.jsonl 0
for pair in books:156 docs:2 man:21; do
    f=${pair%:*}
    zstd -dcq "$prose/$f-dev.jsonl.zst" >"$f.jsonl"
    changed "$f" "$f.jsonl" "${pair#*:}"
done

if [ -z "${PEERS:-}" ]; then
    echo "not run: comparison with ftfy and datatrove (PEERS is not set)"
    finish
fi
check "as ftfy on 40,000 damaged texts in four settings" "$PEERS" "$ROOT/tests/record/mojibake_diff.py" 40000 11 \
    "$data/mojibake-dev.jsonl" "$SHARED/data/langid/udhr/dev.jsonl"
cat out
head -n 1500 man.jsonl >man-some.jsonl
check "as datatrove on 40,000 made-up texts and on manuals" "$PEERS" "$ROOT/tests/record/pii.py" compare 40000 11 man-some.jsonl
cat out
finish
