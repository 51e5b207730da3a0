#!/bin/bash
# A plan over 240 MB of real text and over real archives: the bytes of the pipe, killed at
# 50 moments and more.
. "$ROOT/tests/lib.sh"
prose=$SHARED/data/text/prose
for f in books man docs; do zstd -qdc "$prose/$f-dev.jsonl.zst" >$f.jsonl || bad "reading $prose"; done
cat >plan.yaml <<END
input: [books.jsonl, man.jsonl, docs.jsonl]
stages:
  - clean
  - langid: {keep: "en:0.65"}
  - filter: {preset: [gopher-quality, gopher-repetition, c4]}
  - dedup exact
  - dedup fuzzy: {threshold: 0.8}
output: out.jsonl
rejects: out.rejects
stats: out.stats
END
quern clean books.jsonl man.jsonl docs.jsonl 2>/dev/null | quern langid --keep en:0.65 2>/dev/null |
    quern filter --preset gopher-quality,gopher-repetition,c4 2>/dev/null | quern dedup exact 2>/dev/null |
    quern dedup fuzzy --threshold 0.8 >want 2>/dev/null
[ "$(wc -c <want)" -gt 50000000 ]
equal "the pipe gives text" $? 0
status "a plan over 240 MB" 0 quern curate plan.yaml
same "gives the bytes of the pipe" out.jsonl want
mv out.rejects want.rejects
counts() { sed 's/"seconds":[^,]*,//' "$1"; }
counts out.stats >want.stats

# Run after run, killed at random moments, until there were 50.
kills=0
while [ $kills -lt 50 ]; do
    rm -rf out.*
    while :; do
        quern curate --checkpoint 8M plan.yaml 2>/dev/null &
        sleep "$(awk -v k=$kills 'BEGIN { srand(k + 1); print .1 + rand() * 2.5 }')"
        kill -9 $! 2>/dev/null || break
        wait $! 2>/dev/null
        kills=$((kills + 1))
    done 2>/dev/null
    same "same bytes after $kills kills" out.jsonl want
    same "same rejects" out.rejects want.rejects
    counts out.stats >got
    same "same counts" got want.stats
done

quern extract "$SHARED"/data/warc/real/* 2>/dev/null | quern clean 2>/dev/null | quern dedup exact >want 2>/dev/null
printf 'stages: [extract, clean, dedup exact]\noutput: pages.jsonl\n' >pages.yaml
quern curate --processes 2 -j 2 pages.yaml "$SHARED"/data/warc/real/* 2>/dev/null
same "archives: the bytes of the pipe" pages.jsonl want
ls "$SHARED/data/warc/real" >paths
printf 'stages: [extract, clean]\n' >crawl.yaml
check "a list of paths, a file at a time" sh "$ROOT/pipelines/crawl.sh" crawl.yaml paths crawled "$SHARED/data/warc/real/"
for f in "$SHARED"/data/warc/real/*; do
    n=$(basename "$f" .gz)
    zstd -qdc "crawled/$n.jsonl.zst" || bad "reading $n"
done >all.jsonl
quern extract "$SHARED"/data/warc/real/* 2>/dev/null | quern clean >want 2>/dev/null
equal "and all documents are there" "$(wc -l <all.jsonl)" "$(wc -l <want)"
finish
