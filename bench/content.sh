#!/usr/bin/env bash
# The models of main content: trained and scored by folds, each page by models that know nothing of its domain; then trained
# on all pages and written to $MODEL.  Takes some ten minutes of two processors:
#   SHARED=DIR MODEL=curate/html/content_weights.inc make bench BENCH=content
. bench/lib.sh
X=$SHARED/data/extraction
if [ -z "${MODEL:-}" ] || [ ! -d "$X" ]; then
    printf 'content\t-\t-\tleft out: MODEL=FILE trains the models of main content from %s\n' "$X"
    exit 0
fi
program content_train
export OMP_WAIT_POLICY=passive # many short loops: threads that wait in turns take a busy machine's time
zstd -dc --long=27 "$X/wcxb/wcxb-dev.tar.zst" | tar -C "$T" -x
"$B/bench/content_train" folds "$X" "$T/dev" "$T" || exit 1
python3 "$X/scorers/score_wcxb.py" "$T/dev/ground-truth" "$T/wcxb.jsonl" |
    while IFS=$'\t' read -r kind n score; do row "content wcxb $kind" "$score" F1 "$n pages, by folds"; done
for s in segment article; do row "content $s" "$(f1 $s "$T/$s.jsonl")" F1 'by folds'; done
"$B/bench/content_train" model "$X" "$T/dev" "$MODEL" || exit 1
row 'content model' "$(wc -c <"$MODEL")" bytes "$(sed -n 's/#define CONTENT_MODEL_NAME //p' "$MODEL")"
