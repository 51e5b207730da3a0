#!/usr/bin/env bash
# Deduplication: what one core does in memory, whole runs, and datatrove beside them.
. bench/lib.sh
data=$SHARED/data
docs=$data/dedup/planted-dev/docs.jsonl.zst
if [ ! -r "$docs" ]; then
    printf 'dedup\t-\t-\tleft out: no %s\n' "$docs"
    exit 0
fi
zstd -dcq "$docs" >"$T/docs.jsonl" || exit 1

program dedup_bench
"$B/bench/dedup_bench" "$T/docs.jsonl" || exit 1

rate() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.1f", b / 1e6 / s }'; }
bytes=$(quern-dedup exact -q "$T/docs.jsonl" -o "$T/out" --stats "$T/s" &&
    sed 's/.*"bytes_in":\([0-9]*\),"bytes_out".*"seconds".*/\1/' "$T/s")
for kind in exact "fuzzy" "fuzzy --preset datatrove" "fuzzy --preset datatrove --no-verify" "fuzzy --preset nemo" "fuzzy --preset text-dedup" "fuzzy --preset rpv2"; do
    # shellcheck disable=SC2086
    s=$(cpu quern-dedup $kind -j 1 -q "$T/docs.jsonl" -o "$T/out")
    printf 'dedup-run-%s\t%s\tMB/s\twhole run with input and output, a core; %s s of CPU\n' \
        "$(echo "$kind" | tr -d -- - | tr ' ' -)" "$(rate "$bytes" "$s")" "$s"
done

if [ -z "$PEERS" ]; then
    printf 'dedup-datatrove\t-\t-\tleft out: PEERS is not set\n'
    exit 0
fi
head -n 1000 "$T/docs.jsonl" >"$T/planted.jsonl"
# Prose five times over: 12 MB of it, or with EVERY=N every Nth document; every copy with ids of its own.
some() { if [ -n "${EVERY:-}" ]; then awk -v n="$EVERY" 'NR % n == 1'; else head -c 4000000 | sed '$d'; fi; }
for f in "$data"/text/prose/*.jsonl.zst; do zstd -dcq "$f" | some; done >"$T/once.jsonl"
for i in 1 2 3 4 5; do sed "s/\"id\": *\"/&$i-/" "$T/once.jsonl"; done >"$T/prose.jsonl"
cat >"$T/peer.py" <<'P'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.dedup import minhash as m
docs = [Document(text=d["text"], id=d["id"]) for d in map(json.loads, open(sys.argv[1]))]
out = sys.argv[2]
c = m.MinhashConfig()
step = m.MinhashDedupSignature(out + "/sig", config=c)
step.get_shingles("load the tokenizer before the clock starts")
start = time.process_time()
step.run(docs, 0, 1)
for b in range(c.num_buckets):
    m.MinhashDedupBuckets(out + "/sig", out + "/dup", config=c).run(None, b, c.num_buckets)
m.MinhashDedupCluster(out + "/dup", out + "/rm", config=c).run(None, 0, 1)
kept = sum(1 for _ in m.MinhashDedupFilter(out + "/rm").run(iter(docs), 0, 1))
print(time.process_time() - start, kept, sum(len(d.text.encode()) for d in docs))
P
# compare NAME: datatrove's four steps and ours on $T/NAME.jsonl
compare() {
    local in=$T/$1.jsonl peer secs kept few ours
    peer=$("$PEERS" "$T/peer.py" "$in" "$T/peer-$1" 2>/dev/null | tail -n 1)
    if [ -z "$peer" ]; then
        printf 'dedup-datatrove-%s\t-\t-\tleft out: it does not run here\n' "$1"
        return
    fi
    read -r secs kept few <<<"$peer"
    ours=$(cpu quern-dedup fuzzy --preset datatrove --no-verify -j 1 -q "$in" -o "$T/out")
    printf 'dedup-datatrove-%s\t%s\tMB/s\tdatatrove, signatures to filter, %s documents; it keeps %s\n' \
        "$1" "$(rate "$few" "$secs")" "$(wc -l <"$in")" "$kept"
    printf 'dedup-datatrove-%s-ratio\t%s\ttimes\tour CPU seconds on the same documents with input and output; we keep %s\n' \
        "$1" "$(awk -v a="$secs" -v b="$ours" 'BEGIN { printf "%.0f", a / b }')" "$(wc -l <"$T/out")"
}
compare planted
compare prose

# All prose five times over.  datatrove gets 20 times our CPU seconds, and is stopped then.
[ -n "${FULL:-}" ] || exit 0
for f in "$data"/text/prose/*.jsonl.zst; do zstd -dcq "$f"; done >"$T/once.jsonl"
for i in 1 2 3 4 5; do sed "s/\"id\": *\"/&$i-/" "$T/once.jsonl"; done >"$T/full.jsonl"
rm "$T/once.jsonl"
ours=$( ( TIMEFORMAT='%U %S'; time quern-dedup fuzzy --preset datatrove -j 1 -q "$T/full.jsonl" -o "$T/out" ) 2>&1 | awk '{ print $1 + $2 }')
printf 'dedup-full\t%s\ts\tof CPU for prose five times over, %s MB with its JSON, verified; %s of %s documents stay\n' "$ours" \
    "$(($(stat -c %s "$T/full.jsonl") / 1000000))" "$(wc -l <"$T/out")" "$(wc -l <"$T/full.jsonl")"
cat >"$T/full.py" <<'P'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.dedup import minhash as m
def docs():
    start, done = time.process_time(), 0
    for n, line in enumerate(open(sys.argv[1])):
        if n % 100 == 0:
            print(time.process_time() - start, n, done, flush=True)
        d = json.loads(line)
        done += len(line)
        yield Document(text=d["text"], id=d["id"])
c = m.MinhashConfig()
step = m.MinhashDedupSignature(sys.argv[2] + "/sig", config=c)
step.get_shingles("load the tokenizer before the clock starts")
step.run(docs(), 0, 1)
print("finished")
P
( ulimit -t "$(awk -v s="$ours" 'BEGIN { printf "%d", 20 * s + 30 }')"
  "$PEERS" "$T/full.py" "$T/full.jsonl" "$T/peer-full" ) 2>/dev/null >"$T/progress"
if [ "$(tail -n 1 "$T/progress")" = finished ]; then
    printf 'dedup-full-datatrove\t-\t-\tends its first step of four within 20 times our time\n'
else
    tail -n 1 "$T/progress" | awk -v all="$(stat -c %s "$T/full.jsonl")" -v ours="$ours" '{
        printf "dedup-full-datatrove\t%.0f\ttimes\tour CPU seconds for its first step of four, by the %.1f %% that it had done after %.0f s, when it was stopped\n",
            $1 / $3 * all / ours, 100 * $3 / all, $1 }'
fi
