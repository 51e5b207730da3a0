#!/usr/bin/env bash
# Real documents in XML formats against independent texts of them, and hostile ones.  Floors stand a little under what was
# measured: docs/xml.md.
. "$ROOT/tests/lib.sh"
D=$SHARED/data/xml
tar --zstd -xf "$D/xml-corpora.tar.zst" || finish
if ! command -v python3 >/dev/null; then
    echo "no python3: quality was not scored"
    finish
fi
# A kind's mean word F1 over its references that are not empty.
f1() {
    local ref doc n=0
    for ref in data/"$1"/reference/*"$2"; do
        [ -s "$ref" ] || continue
        for doc in "data/$1/$(basename "$ref" "$2")".*; do
            quern-extract --quiet "$doc" 2>err | python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["text"])' >text
        done
        python3 data/wordf1.py "$ref" text
        n=$((n + 1))
    done | awk '{for (i = 1; i < NF; i++) if ($i == "F1") {sum += $(i + 1); n += $(i + 3) > 0}} END {printf "%.4f\n", n ? sum / n : 0}'
}
at_least() { # KIND ENDING FLOOR
    local got
    got=$(f1 "$1" "$2")
    if awk "BEGIN {exit !($got >= $3)}"; then ok "$1: F1 $got"; else bad "$1: F1 $got, below $3"; fi
}
at_least jats .lxml.txt 0.99
at_least tei .txt 0.99
at_least docbook .txt 0.985
at_least epub .txt 0.99
at_least docx .txt 0.975
at_least odt .txt 0.965
at_least stackexchange .txt 0.99
finish
