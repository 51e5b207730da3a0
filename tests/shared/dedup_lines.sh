#!/bin/bash
# Repeated sentences of real documents struck as datatrove strikes them, and repeated passages
# of a whole corpus, the same for any memory.
. "$ROOT/tests/lib.sh"
data=$SHARED/data

# The SHA-1 of what tests/record/dedup_lines.py --stdin prints for the documents.
digest() {
    quern-dedup lines -q --preset datatrove "$1" | python3 -c '
import hashlib, json, sys
for line in sys.stdin:
    d = json.loads(line)
    print(d["id"], hashlib.sha1(d["text"].encode()).hexdigest(), sep="\t")' | sha1sum | cut -c1-40
}
{ zstd -dcq "$data/text/prose/man-dev.jsonl.zst" | head -n 600; zstd -dcq "$data/text/prose/docs-dev.jsonl.zst" | head -n 300; } >mix 2>/dev/null
equal "datatrove: 900 manual pages and guides" "$(digest mix)" 35d0784e30b4ad9d02feae931296e77bfe0a29f7
zstd -dcq "$data/dedup/planted-dev/docs.jsonl.zst" 2>/dev/null | head -n 3000 >planted
equal "datatrove: 3000 documents in 17 languages" "$(digest planted)" 0b8b8ccd80de3186f18cd5849bb3d78e2b2013ac

prose=("$data"/text/prose/*-dev.jsonl.zst)
quern-dedup substring -q -j 1 --memory 2G --stats stats -o want "${prose[@]}"
has "passages of 100 bytes: as many as ever" stats '"candidates":41447225,"docs_shortened":8992,"passages_struck":53631,"bytes_struck":27203441'
for m in 256M 512M; do
    quern-dedup substring -q -j 2 --memory $m -o got "${prose[@]}" &
    p=$! peak=0
    while m2=$(awk '/VmHWM/ { print $2 }' /proc/$p/status 2>/dev/null) && [ -n "$m2" ]; do peak=$m2; sleep 0.05; done
    wait $p
    same "$m: the same bytes" got want
    if [ "$peak" -gt 0 ] && [ "$peak" -lt $((${m%M} * 1024 * 11 / 10)) ]; then ok "$m: within memory"; else bad "$m: within memory" "$peak KiB"; fi
done
for m in 16M 1G; do
    quern-dedup lines -q --preset ccnet --memory $m -o "lines.$m" "${prose[@]}"
done
same "lines: the same bytes with 16 MB and 1 GB" lines.16M lines.1G
finish
