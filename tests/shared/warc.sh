# shellcheck shell=bash
# Every record of the sample archives, held against their truth files.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
data=$SHARED/data/warc

for k in made real; do
    quern extract -q --list "$data/$k"/* >"$k.jsonl" 2>err
    python3 "$ROOT/tests/shared/warc_truth.py" $k "$data" "$k.jsonl" || bad "$k: the comparison failed"
done

# What is damaged is reported, never fatal; the rest becomes documents.
documents() { # FILE STATUS DOCUMENTS
    status "$1" "$2" timeout 20 quern extract "$data/made/$1"
    equal "$1: documents" "$(wc -l <out)" "$3"
}
documents bad-garbage-between.warc 1 3
documents bad-length-short.warc 1 2
documents bad-length-long.warc 1 3
documents bad-length-huge.warc 1 2
documents bad-length-negative.warc 1 2
documents bad-no-trailing-crlf.warc 0 4
documents bad-corrupt-member.warc.gz 1 3
documents bad-crc.warc.gz 1 2
documents bad-truncated-member.warc.gz 1 2
documents bad-trailing-nul.warc.gz 0 2
documents bad-huge-header.warc 1 1
documents not-a-warc.warc.gz 1 0
documents not-gzip.warc.gz 0 1
documents lf-only.warc 0 3
documents clueweb-like.warc.gz 0 1
documents empty.warc 0 0
documents empty.warc.gz 0 0
documents sample.wet.gz 0 50
documents sample.arc.gz 0 6
documents bomb-200MB.warc.gz 1 0
has 'the bomb is named' err 'the page of 200000000 bytes is longer than 16777216'
case $B in *address*) ;; *) # the sanitizer reserves terabytes
( ulimit -v 400000; exec quern extract -q -j1 "$data/made/bomb-200MB.warc.gz" >/dev/null 2>&1 )
equal 'the bomb in 400 MB of address space' $? 1 ;;
esac

# One content in six containers: the same documents, but for where they are.
pages() { quern extract -q "$@" | sed 's/"file":"[^"]*","offset":[0-9]*,\("length":[0-9]*,\)\?\("within":[0-9]*,\)\?//'; }
pages "$data/made/clean.warc" >want.jsonl
for f in clean.warc.zst clean-dict.warc.zst; do
    pages "$data/made/$f" >got.jsonl
    same "$f" want.jsonl got.jsonl
done
pages "$data/made/clean.warc.gz" >want.jsonl
for f in clean-onemember.warc.gz clean-splitmembers.warc.gz; do
    pages -j3 "$data/made/$f" >got.jsonl
    same "$f" want.jsonl got.jsonl
done
finish
