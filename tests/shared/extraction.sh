#!/usr/bin/env bash
# Main content on pages with known answers, by the scorers that lie beside them (Python 3,
# standard library only).  Floors stand a little under what was measured: docs/extract.md.
. "$ROOT/tests/lib.sh"
D=$SHARED/data/extraction

# run SET: its pages to SET.jsonl, ids as the scorers have them.
run() {
    quern-extract --quiet --extractor rules "$D/$1/dev/html" 2>err |
        sed 's|^{"id":"[^"]*/\([0-9a-f]*\)\.html\.gz"|{"id":"\1"|' >"$1.jsonl"
}
# at_least NAME GOT FLOOR
at_least() {
    if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a >= b) }'; then
        ok "$1"
    else
        bad "$1" "F1 '$2', floor $3"
    fi
}

run article-benchmark
run segment-benchmark
equal "a document a page, articles" "$(wc -l <article-benchmark.jsonl)" 60
equal "a document a page, segments" "$(wc -l <segment-benchmark.jsonl)" 309
quern-extract --quiet -j 1 "$D/segment-benchmark/dev/html" >one.jsonl 2>err
quern-extract --quiet -j 3 "$D/segment-benchmark/dev/html" >three.jsonl 2>err
same "the same bytes for any number of threads" one.jsonl three.jsonl
if ! command -v python3 >/dev/null; then
    echo "no python3: quality was not scored"
    finish
fi
f1=$(python3 "$D/scorers/score_articles.py" --boot 0 "$D/article-benchmark/dev/ground-truth.json" \
    article-benchmark.jsonl | awk -F'\t' 'NR == 2 { print $4 }')
at_least "articles" "$f1" 0.975
f1=$(python3 "$D/scorers/score_segments.py" "$D/segment-benchmark/dev/segments.jsonl" segment-benchmark.jsonl |
    sed 's/.* F1=\([0-9.]*\).*/\1/')
at_least "segments" "$f1" 0.945
# The model has seen these pages in training (bench/content.sh has folds): this is that it runs as it was trained.
mkdir wcxb
zstd -dc --long=27 "$D/wcxb/wcxb-dev.tar.zst" | tar -C wcxb -x
quern-extract --quiet wcxb/dev/html >wcxb.jsonl 2>err
f1=$(python3 "$D/scorers/score_wcxb.py" wcxb/dev/ground-truth wcxb.jsonl | awk '$1 == "all" { print $3 }')
at_least "the model on the pages that it was trained on" "$f1" 0.89
if [ -z "${PEERS:-}" ]; then
    echo "not run: comparison with jusText (PEERS, a Python that has it, is not set)"
    finish
fi
for s in article segment; do
    check "as jusText, ${s}s" "$PEERS" "$ROOT/tests/record/justext_diff.py" "$D/$s-benchmark/dev/html" 0.996
done
finish
