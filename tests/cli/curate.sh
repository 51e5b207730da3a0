#!/bin/bash
# quern curate at a shell: the bytes of the pipe, for any division of the work, after any
# number of kills; and plans that make no sense.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/curate_lib.sh"

# Four files of documents, some the same, some nearly, one line that is none.
make() { # file seed n
    awk -v s="$2" -v n="$3" -v f="$1" 'BEGIN {
        srand(s)
        for (i = 0; i < n; i++) {
            k = rand() < .2 ? int(rand() * 40) : 1000 * s + i
            t = ""
            for (j = 0; j < 60; j++) t = t "the word" (k * 7919 + j * j * (k % 13)) % 5000 " "
            if (rand() < .3) t = t " odd" i "\\u00a0\\r\\n\\r\\n\\r\\n\\r\\nend"
            printf "{\"id\":\"%s-%d\",\"text\":\"%s\",\"n\":%d}\n", f, i, t, i
        }
    }' >"$1.jsonl"
}
make one 1 900
make two 2 400
echo 'no document' >>two.jsonl
make three 4 1
make four 5 700
gzip -c four.jsonl >four.gz
inputs="one.jsonl two.jsonl three.jsonl four.gz"
cat >plan.yaml <<END
input: [one.jsonl, two.jsonl, "thr*.jsonl", four.gz]
stages:
  - clean
  - filter: {preset: gopher-repetition, config: off.yaml}
  - dedup exact
  - dedup fuzzy: {threshold: 0.7, clusters: clusters.tsv}
output: out.jsonl
rejects: out.rejects
stats: out.stats
END
printf 'gopher-repetition: {top_2_gram: off, top_3_gram: off, top_4_gram: off}\n' >off.yaml

# shellcheck disable=SC2086
quern clean $inputs --rejects r1 2>/dev/null | quern filter --preset gopher-repetition -c off.yaml --rejects r2 2>/dev/null |
    quern dedup exact --rejects r3 2>/dev/null |
    quern dedup fuzzy --threshold 0.7 --rejects r4 --clusters want.clusters >want 2>/dev/null
reasons() { sed 's/,"file":.*/}/' "$@" | sort; } # a pipe has no names of files
reasons r1 r2 r3 r4 >want.rejects
status "a plan runs, with a bad line" 1 quern curate plan.yaml
has "the bad line is named" err "'two.jsonl' at byte"
equal "and at the end the input that has it" "$(tail -n 1 err)" "quern-curate: input 'two.jsonl': 1 bad record"
has "in the statistics too" out.stats '"bad_inputs":[{"input":"two.jsonl","bad":1}]'
same "a plan gives the bytes of the pipe" out.jsonl want
reasons out.rejects >got
same "and its rejects" got want.rejects
same "and its clusters" clusters.tsv want.clusters
[ "$(wc -l <want)" -gt 500 ] && [ "$(wc -l <r3)" -gt 50 ] && [ "$(wc -l <r4)" -gt 5 ]
equal "both kinds of duplicates were met" $? 0
counts out.stats >want.stats
has "counts of a stage that decides" want.stats '"bands":'
has "counts of drops" want.stats '"duplicate":'
cp out.rejects want.order

place() { # id: the bytes at the place that the account names
    local file offset
    file=$(sed -n "s/.*\"id\":\"$1\".*\"file\":\"\([^\"]*\)\".*/\1/p" out.rejects)
    offset=$(sed -n "s/.*\"id\":\"$1\".*\"offset\":\([0-9]*\).*/\1/p" out.rejects)
    zcat -f "$file" | tail -c +$((offset + 1)) | head -n 1
}
id=$(sed -n 's/.*"id":"\(four-[0-9]*\)".*"dedup fuzzy".*/\1/p' out.rejects | head -n 1)
equal "a dropped document is where the account says" "$(place "$id")" "$(grep -F "\"id\":\"$id\"" four.jsonl)"
sed '/^rejects:/a rejects-full: true' plan.yaml >full.yaml
status "accounts with the documents" 1 quern curate full.yaml -o full.jsonl --rejects full.rejects --stats full.stats
sed -n 's/.*"stage":"filter".*"document":\({.*}\)}$/\1/p' full.rejects | sort >got
sed -n 's/.*"id":"\([^"]*\)","stage":"filter".*/"id":"\1",/p' out.rejects | grep -hFf - one.jsonl two.jsonl three.jsonl four.jsonl | sort >want.dropped
same "have them as they came" got want.dropped
equal "all of them" "$(grep -c '"document":{"id"' full.rejects)" "$(wc -l <out.rejects)"
same "and change nothing else" full.jsonl want

status "what is done is not done again, and ends as it did" 1 quern curate plan.yaml
has "which is said" err "says that this is done, with 1 bad record; --again"
status "but for a task that is not the first" 0 quern curate --task 1 --tasks 2 plan.yaml
rm out.jsonl
status "unless it is asked for" 1 quern curate --again plan.yaml
same "with the same result" out.jsonl want
same "in the same order" out.rejects want.order

again() { rm -rf out.*; }
compare() { # name
    same "same bytes $1" out.jsonl want
    same "same rejects $1" out.rejects want.order
    counts out.stats >got
    same "same counts $1" got want.stats
}
whole() { [ ! -e out.jsonl ] || cmp out.jsonl want 2>&1; }
work=out.jsonl.work came=1
divided "-j 1" "-j 8" "--processes 3 -j 3" "--checkpoint 20K -j 2"
rm -rf out.*
rounds=0
while [ $rounds -lt 9 ] && [ ! -e out.jsonl ]; do
    for t in 1 0; do
        OMPI_COMM_WORLD_RANK=$t OMPI_COMM_WORLD_SIZE=2 quern curate --no-wait plan.yaml 2>/dev/null
    done
    rounds=$((rounds + 1))
done
same "same bytes from two ranks that come one after the other" out.jsonl want

rm -rf out.* shards
status "a folder of shards" 1 quern curate plan.yaml -o shards/ --rejects out.rejects
cat shards/*.jsonl >got
same "holds the same documents" got want
equal "a file an input" "$(cd shards && echo *)" "000000.jsonl 000001.jsonl 000002.jsonl 000003.jsonl"
for z in gz zst; do
    rm -rf out.*
    status "compressed to .$z" 1 quern curate plan.yaml -o out.jsonl.$z --stats out.stats --rejects out.rejects.$z
    zstd -qdc out.rejects.$z >got
    same "an account in .$z" got want.order
    quern dedup exact out.jsonl.$z >got 2>/dev/null
    same "a .$z file of the same documents" got want
    printf 'stages: []\ncompress: %s\n' $z >plain.yaml
    quern curate plain.yaml one.jsonl -o shards.$z/ 2>/dev/null
    quern dedup exact one.jsonl >want.one 2>/dev/null
    quern dedup exact shards.$z/000000.jsonl.$z >got 2>/dev/null
    same "a folder of .$z files" got want.one
done

# Killed until it comes through.
KILLS=200 killed 20K

# The same plan started while it is at work: refused, and neither harms the other.
rm -rf out.*
cat one.jsonl one.jsonl four.jsonl one.jsonl four.jsonl one.jsonl >long.jsonl
at_work() { # starts a run and stops it in the midst, as $older
    for _ in 1 2 3 4 5 6 7 8; do
        rm -rf out.*
        quern curate -j 2 --checkpoint 20K "$@" plan.yaml long.jsonl $inputs 2>older.err &
        older=$!
        while kill -0 $older 2>/dev/null && [ ! -s out.jsonl.work/lock.0.1 ]; do sleep .01; done
        kill -STOP $older 2>/dev/null
        [ -e out.jsonl.work/finished ] || return 0
        kill -CONT $older 2>/dev/null
        wait $older
    done
    bad "a run can be stopped in the midst"
}
at_work
status "a second start is refused" 3 quern curate plan.yaml long.jsonl $inputs
has "with process and host" err "process $older on $(uname -n) is at work in 'out.jsonl.work'"
status "also with --again" 3 quern curate --again plan.yaml long.jsonl $inputs
status "and as one of several tasks" 3 quern curate --task 1 --tasks 2 plan.yaml long.jsonl $inputs
has "which is told" err "with another number of tasks"
quern curate --wait plan.yaml long.jsonl $inputs 2>younger.err &
younger=$!
while kill -0 $younger 2>/dev/null && [ ! -s younger.err ]; do sleep .01; done
has "with --wait it says for whom" younger.err "waiting for process $older on $(uname -n)"
kill -CONT $older
wait $older
equal "the older run ends as if it had been alone" $? 1
wait $younger
equal "and the one that waited finds it done, and ends as that did" $? 1
has "and says so" younger.err "says that this is done"
cp out.jsonl twice
rm -rf out.*
quern curate plan.yaml long.jsonl $inputs 2>/dev/null
same "the output is that of one run" twice out.jsonl
absent "a run that ended leaves no lock" out.jsonl.work/lock.0.1

rm -rf out.*
mkdir out.jsonl.work
echo 'elsewhere 4711' >out.jsonl.work/lock.0.1
status "a run on another host counts" 3 flock out.jsonl.work/lock.0.1 quern curate plan.yaml
has "and is named" err "process 4711 on elsewhere is at work"
status "a lock that nobody holds does not" 1 quern curate plan.yaml
same "and the work is done" out.jsonl want

at_work --processes 2
kill -9 $older
wait $older 2>/dev/null
status "a run that was killed can be started again at once, though it was divided" 1 quern curate plan.yaml long.jsonl $inputs
same "and goes on" out.jsonl twice

# Somebody else's work folder, or other inputs.
rm -rf out.*
quern curate plan.yaml 2>/dev/null
rm out.jsonl
sed 's/threshold: 0.7/threshold: 0.9/' plan.yaml >plan2.yaml
status "another plan is refused" 2 quern curate plan2.yaml
has "and the difference told" err "threshold"
echo >>one.jsonl
status "other inputs are refused" 2 quern curate plan.yaml
has "and told" err "one.jsonl"
echo badly >bad.txt
printf 'input: two.jsonl\nstages:\n  - filter: {preset: c4-badwords, bad-words: ["en:bad.txt"]}\noutput: listed.jsonl\n' >listed.yaml
quern curate listed.yaml 2>/dev/null
echo odd10 >>bad.txt
status "another list of words is refused" 2 quern curate listed.yaml
has "and told" err "file bad.txt 6 "
status "and begun with afresh if asked for" 1 quern curate --again listed.yaml
quern filter --preset c4-badwords --bad-words en:bad.txt two.jsonl >want.listed 2>/dev/null
same "by the new list" listed.jsonl want.listed
printf 'input: two.jsonl\nstages: [clean]\noutput: rows.parquet\nrow-group-size: 10\n' >rows.yaml
quern curate rows.yaml 2>/dev/null
sed -i 's/size: 10/size: 20/' rows.yaml
status "so are other row groups" 2 quern curate rows.yaml
has "and told" err "row-group-size 10"

# Many small inputs: what is made of each is made to last with the others'.
few_syncs() { # NAME PLAN
    if command -v strace >/dev/null; then
        ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" strace -f -e trace=fsync,fdatasync,syncfs -o calls quern curate -j 4 "$2" 2>/dev/null
        equal "$1" "$(grep -c 'sync' calls | awk '{ print ($1 < 60) }')" 1
    else
        skip "$1" 'no strace'
        quern curate -j 4 "$2" 2>/dev/null
    fi
}
mkdir small
for i in $(seq 100 299); do sed -n "${i}p" one.jsonl >small/$i.jsonl; done
printf 'input: small/*.jsonl\nstages: [clean, dedup exact]\noutput: small.jsonl\n' >small.yaml
few_syncs "of 200 inputs not each is synced" small.yaml
quern clean small/*.jsonl 2>/dev/null | quern dedup exact >want.small 2>/dev/null
same "and many inputs give the bytes of the pipe" small.jsonl want.small
printf 'input: small/*.jsonl\nstages:\n  - forget: {ids: all.txt}\noutput: none/\n' >none.yaml
sed 's/.*"id":"\([^"]*\)".*/\1/' one.jsonl >all.txt
few_syncs "nor of 200 outputs of no document" none.yaml
equal "which are there" "$(cat none/* | wc -c) $(find none -type f | wc -l)" "0 200"

# Plans that make no sense.
options="-o never.jsonl"
wrong "an unknown key" $'stages: [clean]\ninputs: x\n' "'wrong.yaml' line 2: a plan has no key 'inputs', but input, stages, branches, columns, json-key, output, row-group-size, rejects, rejects-full, stats, report, work, keep, compress; did you mean 'input'?"
wrong "an unknown stage" $'stages:\n  - clean\n  - wash\n' "line 3: no stage 'wash'"
wrong "a misspelt one" $'stages:\n  - claen\n' "did you mean 'clean'?"
wrong "an unknown setting" $'stages:\n  - langid:\n      keep: en\n      treshold: 0.5\n' "line 4: langid has no setting 'treshold'"
wrong "an impossible threshold" $'stages:\n  - langid: {threshold: 7}\n' "line 2: --threshold: 7 is outside 0..1"
wrong "a wrong type" $'stages:\n  - clean: {blank-lines: many}\n' "line 2: --blank-lines: not a whole number"
wrong "a setting that the stage refuses" $'stages:\n  - clean\n  - filter: {preset: fine}\n' "line 3: no preset 'fine'" 2
wrong "extract in the middle" $'stages: [clean, extract]\n' "extract can only be the first stage"
wrong "no stages" $'output: x\n' "no stages"
wrong "a list for one value" $'stages:\n  - clean: {form: [nfc, nfkc]}\n' "line 2: form takes one value"
printf 'input: missing.jsonl\nstages: [clean]\noutput: x\n' >wrong.yaml
status "a missing input" 3 quern curate wrong.yaml
printf 'input: "none*.jsonl"\nstages: [clean]\noutput: x\n' >wrong.yaml
status "a pattern without files" 3 quern curate wrong.yaml
has "told with its line" err "line 1: no file matches"
status "a pipe cannot be read again" 2 quern curate plan.yaml <(cat one.jsonl) -o never.jsonl
absent "none of it left anything" never.jsonl never.jsonl.work
status "a plan is checked" 0 quern curate --check plan.yaml
has "and shown" out "threshold: 0.7"
finish
