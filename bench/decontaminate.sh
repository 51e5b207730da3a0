#!/usr/bin/env bash
# Looking for 30,187 evaluation questions in books with 1,600 of them planted: CPU time on
# one core, JSON in and out, and datatrove's NGramsDecontFilter on some of the same
# documents in the same run: decisions and time.
. bench/lib.sh
evals=$SHARED/data/evalsets/questions.jsonl.zst books=$SHARED/data/text/prose/books-dev.jsonl.zst
if [ ! -r "$evals" ] || [ ! -r "$books" ]; then
    printf 'decontaminate\t-\t-\tleft out: no %s\n' "$evals"
    exit 0
fi
zstd -dcq "$evals" >"$T/q.jsonl"
zstd -dcq "$books" >"$T/books.jsonl"
python3 tests/shared/decontaminate_plant.py "$T/q.jsonl" "$T/books.jsonl" 200 >"$T/docs.jsonl" 3>"$T/truth.tsv" || exit 1
echo '{"id":"none","text":"nothing"}' >"$T/none.jsonl"
bytes=$(wc -c <"$T/docs.jsonl")

run() { quern-decontaminate -q -j1 -a "$T/q.jsonl" "$@"; }

for m in quern datatrove curator decon; do
    start=$(cpu run -m $m "$T/none.jsonl")
    all=$(cpu run -m $m "$T/docs.jsonl")
    row "decontaminate-$m" "$(awk -v b="$bytes" -v a="$all" -v s="$start" 'BEGIN { printf "%.0f", b / 1e6 / (a - s) }')" \
        MB/s "a core, without reading the questions and making their index"
    row "decontaminate-$m-index" "$(awk -v s="$start" 'BEGIN { printf "%.0f", 1000 * s }')" ms "reading 30,187 questions and making the index"
done
for m in quern datatrove decon; do
    run -m $m --report "$T/report" "$T/docs.jsonl" >/dev/null
    sed 's/^{"id":"\([^"]*\)","task":"[^"]*","question_id":"\([^"]*\)".*/\1\t\2/' "$T/report" | sort -u >"$T/found"
    awk -F '\t' -v m=$m 'NR == FNR { found[$1 FS $2] = 1; next }
        { n[$3]++; ok[$3] += ($1 FS $2) in found }
        END { for (k in n) printf "recall-%s-%s\t%.3f\tof %d\tquestions planted that are found\n", m, k, ok[k] / n[k], n[k] }' \
        "$T/found" "$T/truth.tsv" | sort
    row "precision-$m" "$(cut -f1 "$T/found" | sort -u | awk -F '\t' 'NR == FNR { p[$1] = 1; next } { n++; ok += $1 in p } END { printf "%.4f", n ? ok / n : 1 }' "$T/truth.tsv" -)" \
        - "documents found that have a planted question"
done

if [ -z "${PEERS:-}" ]; then
    row decontaminate-ratio - - "left out: PEERS is not set"
    exit 0
fi
head -n 300 "$T/docs.jsonl" >"$T/few.jsonl"
for _ in 1 2 3 4 5 6 7 8 9 10; do cat "$T/few.jsonl"; done >"$T/ten.jsonl"
theirs=$("$PEERS" - "$T" <<'PY'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.decont import NGramsDecontFilter, NGramsDecontIndexer
T = sys.argv[1]
NGramsDecontIndexer._requires_dependencies = []
indexer, judge = NGramsDecontIndexer("/tmp"), NGramsDecontFilter("/tmp")
judge._index_hashes = {}
for line in open(T + "/q.jsonl"):
    q = json.loads(line)
    for h in indexer.compute_hashes(q["answer"], q["question"]):
        judge._index_hashes[h] = q["task"]
start = time.process_time()
with open(T + "/theirs", "w") as out:
    for line in open(T + "/few.jsonl"):
        d = json.loads(line)
        if judge.filter(Document(text=d["text"], id=d["id"])) is not True:
            print(d["id"], file=out)
print(time.process_time() - start)
PY
) || { row decontaminate-ratio - - "left out: datatrove does not run"; exit 0; }
start=$(cpu run -m datatrove "$T/none.jsonl")
ours=$(cpu run -m datatrove "$T/ten.jsonl")
row decontaminate-ratio "$(awk -v a="$ours" -v s="$start" -v b="$theirs" 'BEGIN { printf "%.0f", 10 * b / (a - s) }')" x \
    "CPU time of datatrove over ours, same method and documents"
quern=$(cpu run "$T/ten.jsonl")
row decontaminate-ratio-quern "$(awk -v a="$quern" -v s="$(cpu run "$T/none.jsonl")" -v b="$theirs" 'BEGIN { printf "%.0f", 10 * b / (a - s) }')" x \
    "the same over the method quern"
run -m datatrove --rejects "$T/rejects" "$T/few.jsonl" >/dev/null
sed 's/^{"id":"\([^"]*\)".*/\1/' "$T/rejects" >"$T/ours"
row decontaminate-decisions "$(cat "$T/ours" "$T/theirs" | sort | uniq -u | wc -l)" - \
    "of 300 documents decided otherwise than by datatrove ($(wc -l <"$T/theirs") dropped)"
