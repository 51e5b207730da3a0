#!/usr/bin/env bash
# Text from LaTeX: CPU time a core, and recall and precision against text from the PDFs (bench of
# words: tests/shared/latex_score.py), against pandoc and pylatexenc on the same files in one run.
. bench/lib.sh
X=$SHARED/data/latex
if [ ! -d "$X" ]; then
    printf 'latex\t-\t-\tleft out: no %s\n' "$X"
    exit 0
fi
here=$PWD

cpu_out=$T/out
# score NAME JSONL: rows of recall, precision, and control sequences left.
score() {
    python3 "$here/tests/shared/latex_score.py" "$X/articles-pdftext" <"$2" | {
        IFS=$'\t' read -r n recall precision left
        row "$1 recall" "$recall" share "$n documents"
        row "$1 precision" "$precision" share ""
        row "$1 control sequences" "$left" "in 1,000 words" ""
    }
}
mb() { find "$1" -name '*.tex' -printf '%s\n' | awk -v k="$2" '{ n += $1 } END { printf "%.1f", k * n / 1e6 }'; }

# Ten times over, so that starting does not count.
for i in 1 2 3 4 5 6 7 8 9 10; do
    mkdir -p "$T/many/$i"
    cp "$X/articles"/*.tex "$T/many/$i"
done
sec=$(cpu quern-extract --quiet -j 1 "$T/many")
size=$(mb "$X/articles" 1)
each=$(awk -v s="$sec" 'BEGIN { print s / 10 }')
row latex "$(awk -v m="$size" -v s="$each" 'BEGIN { printf "%.1f", m / s }')" MB/s "$size MB, ten times, in $sec s of CPU"
quern-extract --quiet "$X/articles" >"$T/quern.jsonl" 2>/dev/null
score latex "$T/quern.jsonl"
mkdir "$T/hott"
cp "$X/hott"/*.tex "$T/hott"
{
    printf '\\documentclass{book}\\input{macros}\\begin{document}'
    for f in "$X/hott"/*.tex; do
        f=$(basename "$f" .tex)
        [ "$f" = macros ] || printf '\\include{%s}\n' "$f"
    done
    printf '\\end{document}'
} >"$T/hott.main"
mv "$T/hott.main" "$T/hott/all-chapters.tex"
sec=$(cpu quern-extract --quiet -j 1 "$T/hott/all-chapters.tex")
row 'latex, a book of macros' "$(awk -v m="$(mb "$X/hott" 1)" -v s="$sec" 'BEGIN { printf "%.1f", m / s }')" MB/s "$sec s of CPU"

for p in pandoc latex2text; do
    python=${PEERS:-python3}
    if [ $p = pandoc ] && ! command -v pandoc >/dev/null; then
        row "$p" - - "left out: not installed"
        continue
    fi
    if [ $p = latex2text ] && ! "$python" -c 'import pylatexenc' 2>/dev/null; then
        row "$p" - - "left out: set PEERS to a Python that has pylatexenc"
        continue
    fi
    psec=$("$python" "$here/bench/latex_peers.py" $p "$X/articles" "$T/$p.jsonl") || continue
    row "$p" "$(awk -v m="$size" -v s="$psec" 'BEGIN { printf "%.2f", m / s }')" MB/s \
        "quern is $(awk -v a="$psec" -v b="$each" 'BEGIN { printf "%.0f", a / b }') times as fast"
    score "$p" "$T/$p.jsonl"
    python3 - "$T/$p.jsonl" "$T/quern.jsonl" >"$T/same.jsonl" <<'EOF'
import json, sys
have = {json.loads(l)["id"] for l in open(sys.argv[1])}
sys.stdout.writelines(l for l in open(sys.argv[2]) if json.loads(l)["id"] in have)
EOF
    score "latex, what $p reads" "$T/same.jsonl"
done
