#!/usr/bin/env bash
# Filters by signal, language and list: CPU time of whole runs on one core, JSON in and out; URLs
# against five million domains, datatrove's URLFilter beside on the same URLs and list.
. bench/lib.sh
data=$SHARED/data/text/prose
for f in books docs man; do
    zstd -dcq "$data/$f-dev.jsonl.zst" 2>/dev/null | head -c 25000000 | sed '$d'
done >"$T/docs.jsonl"

# speed ROW NOTE OPTIONS...: MB/s of quern filter over the documents.
speed() {
    local name=$1 note=$2 s
    shift 2
    s=$(cpu quern-filter -q -j1 "$@" "$T/docs.jsonl")
    row "$name" "$(awk -v b="$(wc -c <"$T/docs.jsonl")" -v s="$s" 'BEGIN { printf "%.1f", b / 1e6 / s }')" MB/s "$note"
}
if [ -s "$T/docs.jsonl" ]; then
    speed filter-rpv2 "a core" --preset rpv2
    speed filter-rpv2-annotate "a core; every signal, of each line too" --preset rpv2 --annotate
    speed filter-fineweb2 "a core; every signal, words by ICU" --preset fineweb2-icu --lang de --annotate
    speed filter-gopher-icu "a core; gopher-quality, words by ICU" --preset gopher-quality --lang de
    speed filter-badwords "a core; $(wc -l <"tests/data/filter/bad.txt") words" --preset c4-badwords \
        --bad-words "tests/data/filter/bad.txt"
else
    row filter-rpv2 - - "left out: no $data"
fi

awk 'BEGIN { for (i = 0; i < 5000000; i++) printf "site-%07d.%s\n", i, i % 3 ? "com" : "co.uk" }' >"$T/domains"
awk 'BEGIN { for (i = 0; i < 400000; i++) printf "{\"id\":\"%d\",\"url\":\"https://www.site-%07d.%s/a/page-%d.html?x=free\",\"text\":\"\"}\n",
    i, (i * 7919) % 10000000, i % 3 ? "com" : "co.uk", i }' >"$T/urls.jsonl"
echo '{"id":"x","url":"http://x.org/","text":""}' >"$T/one.jsonl"
load=$(cpu quern-filter -q -j1 --preset url --url-domains "$T/domains" "$T/one.jsonl")
all=$(cpu quern-filter -q -j1 --preset url --url-domains "$T/domains" "$T/urls.jsonl")
row url-load "$load" s "CPU time to read five million domains"
row url "$(awk -v a="$all" -v b="$load" 'BEGIN { printf "%.2f", .4 / (a - b) }')" "million/s" "URLs a core, five million domains"
if [ -z "${PEERS:-}" ]; then
    row url-datatrove - - "left out: PEERS is not set"
    exit 0
fi
theirs=$(head -20000 "$T/urls.jsonl" >"$T/few.jsonl"; "$PEERS" - "$T" 2>/dev/null <<'PY'
import json, sys, time
import tldextract
from datatrove.data import Document
from datatrove.pipeline.filters import URLFilter
f = URLFilter(extra_domains=[x.strip() for x in open(sys.argv[1] + "/domains")], use_integrated_lists=False)
f.tldextractor = tldextract.TLDExtract(suffix_list_urls=())
f.tldextractor("http://a.b.com")
start = time.process_time()
for line in open(sys.argv[1] + "/few.jsonl"):
    d = json.loads(line)
    f.filter(Document(text="", id=d["id"], metadata={"url": d["url"]}))
print(time.process_time() - start)
PY
) || { row url-datatrove - - "left out: datatrove does not run"; exit 0; }
row url-datatrove "$(awk -v s="$theirs" 'BEGIN { printf "%.3f", .02 / s }')" "million/s" "URLs a core, the first twentieth, same list"
row url-ratio "$(awk -v a="$all" -v b="$load" -v s="$theirs" 'BEGIN { printf "%.0f", s * 20 / (a - b) }')" x "CPU time of datatrove over ours"
