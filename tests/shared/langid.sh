#!/usr/bin/env bash
# quern langid on the Universal Declaration of Human Rights (sentences and articles) and
# on Debian's texts: accuracy over the languages that CLD2 knows.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

cat >score.py <<'PY'
import collections, json, sys
# UDHR's ISO 639-3 to what langid answers
short = dict(line.split() for line in """afr af|amh am|arb ar|aze az|azj az|bel be|ben bn|bul bg|cat ca|ces cs|cym cy|dan da|deu de|ell el|eng en|epo eo|est et|ekk et|eus eu|fao fo|fin fi|fra fr|fry fy|gla gd|gle ga|glg gl|guj gu|hat ht|hau ha|heb he|hin hi|hrv hr|hun hu|hye hy|ibo ig|ind id|isl is|ita it|jav jv|jpn ja|kal kl|kan kn|kat ka|kaz kk|khm km|kin rw|kir ky|kor ko|lao lo|lat la|lav lv|lvs lv|lin ln|lit lt|ltz lb|lug lg|mal ml|mar mr|mkd mk|mlg mg|plt mg|mlt mt|mon mn|khk mn|mri mi|mya my|nep ne|npi ne|nld nl|nno nn|nob no|nya ny|oci oc|pan pa|pol pl|por pt|pes fa|fas fa|ron ro|roh rm|run rn|rus ru|san sa|sin si|slk sk|slv sl|smo sm|sna sn|som so|sot st|spa es|sqi sq|als sq|srp sr|ssw ss|sun su|swe sv|swh sw|swa sw|tam ta|tat tt|tel te|tgk tg|tgl tl|tha th|tir ti|ton to|tsn tn|tso ts|tuk tk|tur tr|uig ug|ukr uk|urd ur|uzn uz|uzb uz|vie vi|wol wo|xho xh|yid yi|ydd yi|yor yo|cmn zh|zul zu""".split("|"))
right, seen = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    d = json.loads(line)
    want = short.get(d["iso6393"]) if "iso6393" in d else d["want"]
    if want and len(d["text"]) >= int(sys.argv[3]):
        seen[want] += 1
        right[want] += d["lang"] == want
per = {k: right[k] / seen[k] for k in seen}
total, mean = sum(right.values()) / sum(seen.values()), sum(per.values()) / len(per)
print("%d texts, %d languages: %.4f of texts, mean over languages %.4f; lowest: %s" % (
    sum(seen.values()), len(seen), total, mean,
    " ".join("%s %.2f" % (k, per[k]) for k in sorted(per, key=per.get)[:12])))
if len(sys.argv) > 4:
    json.dump(per, open(sys.argv[4], "w"))
sys.exit(total < float(sys.argv[2]))
PY
quern langid -q -o udhr.jsonl "$SHARED/data/langid/udhr/dev.jsonl" || bad "langid on UDHR"
sed 's/"lang":/"want":/' "$SHARED/data/langid/debian/dev.jsonl" >debian-in.jsonl
quern langid -q -o debian.jsonl debian-in.jsonl || bad "langid on Debian"
check "UDHR accuracy" python3 score.py udhr.jsonl 0.92 0
cat out
check "UDHR accuracy, 80 characters or more" python3 score.py udhr.jsonl 0.92 80
cat out
check "Debian accuracy" python3 score.py debian.jsonl 0.92 0
cat out
if [ -z "${LANGID_MODEL:-}" ]; then
    echo "fastText left out: LANGID_MODEL is not set"
    finish
fi
cat >table.py <<'PY'
import json, sys
tables = [json.load(open(f)) for f in sys.argv[1:]]
rows = [[k] + ["%.2f" % t[k] for t in tables] for k in sorted(tables[0])]
rows += [[""] * 3] * (-len(rows) % 4)
n = len(rows) // 4
print("| lang | CLD2 | model " * 4 + "|\n" + "|---|---|---" * 4 + "|")
for i in range(n):
    print("".join("| %s | %s | %s " % tuple(rows[i + j * n]) for j in range(4)) + "|")
PY
quern langid -q --model "$LANGID_MODEL" -o model.jsonl "$SHARED/data/langid/udhr/dev.jsonl" || bad "the model on UDHR"
quern langid -q --model "$LANGID_MODEL" -o debian.jsonl debian-in.jsonl || bad "the model on Debian"
check "UDHR with the model" python3 score.py model.jsonl 0.5 0 model.json
cat out
check "UDHR with the model, 80 characters or more" python3 score.py model.jsonl 0.5 80
cat out
check "Debian with the model" python3 score.py debian.jsonl 0.5 0
cat out
check "UDHR with CLD2, by language" python3 score.py udhr.jsonl 0.5 0 cld2.json
python3 table.py cld2.json model.json
finish
