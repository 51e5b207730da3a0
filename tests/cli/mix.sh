#!/bin/bash
# quern mix at a shell.
. "$ROOT/tests/lib.sh"
docs() { seq -f "{\"id\":\"$1%g\",\"text\":\"$(printf "%${4:-10}s" | tr ' ' "$1")\",\"n\":3}" "$2" "$3"; }
docs a 1 2000 100 >a.jsonl
docs b 1 300 50 >b.jsonl
docs c 1 50 >c.jsonl

# A permutation, the same for any threads and memory, another for another seed.
status "shuffles" 0 quern-mix -q --seed 7 a.jsonl b.jsonl
cp out want
sort out >sorted
sort a.jsonl b.jsonl >all
same "keeps every line as it is" sorted all
for j in 1 2 5; do
    quern-mix -q --seed 7 -j$j a.jsonl b.jsonl >got
    same "the same with $j threads" got want
done
seq 1 60000 | awk '{ printf "{\"id\":%d,\"text\":\"%0*d\"}\n", $1, 200 + $1 % 1000, $1 }' >big.jsonl
quern-mix -q -j2 --memory 4G big.jsonl >want.big
for m in 16M 24M 100M; do
    check "runs in $m" quern-mix -q -j3 --memory $m --tmp . -o got.big big.jsonl
    same "the same in $m of memory" got.big want.big
done
check "compresses what it puts aside" quern-mix -q --memory 16M --compress-tmp -o got.big big.jsonl
same "and gives the same" got.big want.big
equal "leaves nothing behind" "$(find . -name '.*part' -o -name 'quern*' | wc -l)" 0
quern-mix -q --seed 8 a.jsonl b.jsonl >got
equal "another seed, another order" "$(cmp -s got want && echo same)" ""
quern-mix -q -j3 --order input a.jsonl b.jsonl >got
same "input order" got <(cat a.jsonl b.jsonl)
sort -R --random-source=want a.jsonl >other.jsonl
quern-mix -q --key id a.jsonl >got
quern-mix -q --key id other.jsonl >got2
same "by id the order of the input does not matter" got got2

# Each document is as likely in each place: 400 shuffles of 20, chi-square with 361 degrees
# of freedom stays below its 99.9th percentile, 448.
docs d 1 20 >d.jsonl
for s in $(seq 400); do quern-mix -q -j1 --seed "$s" d.jsonl; done | sed 's/.*"id":"d\([0-9]*\)".*/\1/' |
    awk '{ n[$1, (NR - 1) % 20]++ } END { for (i = 1; i <= 20; i++) for (k = 0; k < 20; k++) x += (n[i, k] - 20) ^ 2 / 20; print (x < 448 && x > 280) ? "even" : x }' >chi
equal "chance is even" "$(cat chi)" even

# Blends.  Bytes: 2000 x 100, 300 x 50, 50 x 10.
taken() { awk -v k="$1" 'BEGIN { RS = "," } $0 ~ "\"" k "\":" { sub(/.*:/, ""); sub(/[}\]].*/, ""); print }' stats.json | tr '\n' ' '; }
status "blends to a budget" 0 quern-mix -q -b 100000 -s 3:a.jsonl -s 1:b.jsonl --stats stats.json
equal "exactly" "$(taken taken_bytes)" "75000 25000 "
equal "the smaller is repeated" "$(taken epochs)" "0.375 1.6666666666666667 "
equal "whole epochs first" "$(grep -o '"id":"b[0-9]*"' out | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | tr -s ' \n' ' ')" " 100 1 200 2 "
status "an odd budget" 0 quern-mix -q -b 99999 -s 3:a.jsonl -s 1:b.jsonl --stats stats.json
equal "is not passed" "$(taken taken_bytes)" "74900 24950 "
status "a source that is repeated" 0 quern-mix -b 100000 -s 3:a.jsonl -s 1:b.jsonl
has "is named, with how often" err "source 'b.jsonl' is repeated: taken 1.667 times"
equal "and no other is" "$(grep -c 'is repeated' err)" 1
status "a budget that repeats a source more than 4 times is refused" 2 quern-mix -b 1e10 -u tokens -s 1:a.jsonl -s 1:b.jsonl -o never.jsonl
has "with source, times and bound" err "source 'a.jsonl' has 50000 tokens and would be taken 100000 times: more than 4 epochs (--max-epochs)"
status "a bound of one's own" 0 quern-mix -b 150000 --max-epochs 10 b.jsonl
has "allows it" err "source 'b.jsonl' is repeated: taken 10 times"

# Documents by a number in them: the size of the cluster that each stands for.
for n in 1 2 3 4 5 99 100 999 1000 0; do echo "{\"id\":\"s$n\",\"text\":\"0123456789\",\"cluster_size\":$n}"; done >sizes.jsonl
echo '{"id":"none","text":"0123456789"}' >>sizes.jsonl
often() { sed 's/.*"id":"\([^"]*\)".*/\1/' | sort | uniq -c | awk '{ print $2 ":" $1 }' | LC_ALL=C sort | tr '\n' ' '; }
status "repeats by cluster size" 0 quern-mix -q --repeat-by cluster_size --stats stats.json sizes.jsonl
equal "as FineWeb-2 did" "$(often <out)" "none:1 s0:1 s1000:1 s100:8 s1:1 s2:2 s3:3 s4:3 s5:5 s999:8 s99:5 "
equal "which the statistics say" "$(taken documents_in)$(taken taken_documents)" "11 38 "
cp out want
for how in "-j3" "--memory 16M -j2"; do
    # shellcheck disable=SC2086
    quern-mix -q $how --repeat-by cluster_size sizes.jsonl >got
    same "the same bytes, $how" got want
done
check "of a pipe" sh -c 'cat sizes.jsonl | quern-mix -q --repeat-by cluster_size >got'
same "the same" got want
status "by steps of one's own, 0 drops" 0 quern-mix -q --order input --repeat-by cluster_size --repeat 2:0,100:2 sizes.jsonl
equal "in input order" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr '\n' ' ')" "s1 s100 s100 s999 s999 s1000 s1000 s0 none "
status "a budget counts what is repeated" 0 quern-mix -q --repeat-by cluster_size -b 38 -u documents --stats stats.json sizes.jsonl
equal "as one epoch" "$(taken epochs)$(often <out)" "1 $(often <want)"
status "what is held out is there once" 0 quern-mix -q --repeat-by cluster_size --split a=0.00001,b=0.99999 -o 'held-%s' sizes.jsonl
equal "each" "$(wc -l <held-b)" 11
sed 's/cluster_size/clustersize/' sizes.jsonl >misnamed.jsonl
status "a field that no document has" 0 quern-mix --repeat-by cluster_size misnamed.jsonl
has "is said" err 'no document has "cluster_size": none is repeated by it'
printf '{"text":"a","cluster_size":"7"}\n{"text":"b","cluster_size":-1}\n{"text":"c","cluster_size":1}\n' >bad.sizes
status "what is no number is a bad document" 1 quern-mix --repeat-by cluster_size bad.sizes
has "named" err "'bad.sizes' at byte 32: \"cluster_size\" is no number to repeat by; skipped"
equal "and the others are there" "$(cat out)" '{"text":"c","cluster_size":1}'
for steps in '' : 1 1: :2 1:x 2:1,1:2 1:1,1:2 1:1.5 1:1001 1:-1 nan:1 1:1,,2:2; do
    status "no steps: '$steps'" 2 quern-mix --repeat-by cluster_size --repeat "$steps" sizes.jsonl
done
status "steps of no field" 2 quern-mix --repeat 1:1 sizes.jsonl

status "epochs that are asked for are not refused" 0 quern-mix -q --by epochs -s 10:b.jsonl -o ten.jsonl
equal "but taken" "$(wc -l <ten.jsonl)" 3000
status "what the disk has no room for is refused" 3 quern-mix -b 4e13 --max-epochs 1e6 big.jsonl -o never.jsonl
has "with both sizes" err "are to be written into '.', where"
absent "before a byte is written" never.jsonl .never.jsonl.part
for name in never.jsonl.zst never.parquet; do
    status "$name too" 3 quern-mix -b 4e13 --max-epochs 1e6 big.jsonl -o $name
    grep -o 'at least [0-9]* MB' err >$name.wants
done
same "Parquet is compressed as zstd is" never.jsonl.zst.wants never.parquet.wants
status "documents" 0 quern-mix -q -b 101 -u documents -s 1:a.jsonl -s 1:c.jsonl --stats stats.json
equal "are counted" "$(taken taken_documents)" "50 50 "
status "tokens of a field" 0 quern-mix -q -b 300 -u tokens --tokens-field n a.jsonl --stats stats.json
equal "are counted too" "$(taken taken_documents)" "100 "
status "tokens by estimate" 0 quern-mix -q -b 250 -u tokens --bytes-per-token 10 a.jsonl --stats stats.json
equal "are bytes over a number" "$(taken taken_documents)" "25 "
status "without a budget" 0 quern-mix -q -s 1:a.jsonl -s 1:b.jsonl --stats stats.json
equal "nothing is repeated" "$(taken taken_bytes)" "15000 15000 "
status "epochs" 0 quern-mix -q --by epochs -s 2:b.jsonl -s 0.5:a.jsonl --stats stats.json
equal "are taken" "$(taken taken_documents)" "600 1000 "
printf 'sources:\n  - name: x\n    weight: 3\n    files: [a.jsonl]\n  - {name: y, weight: 1, files: b.jsonl}\n' >plan.yaml
quern-mix -q -b 100000 -s 3:a.jsonl -s 1:b.jsonl >want
status "a plan" 0 quern-mix -q -b 100000 --plan plan.yaml
same "says the same" out want
quern-mix -q -j3 -b 100000 --memory 16M --plan plan.yaml >out
same "with any threads" out want

# Splits and shards.
status "splits" 0 quern-mix -q --split train=0.8,valid=0.1,test=0.1 -o '%s.jsonl' a.jsonl --stats stats.json
cat train.jsonl valid.jsonl test.jsonl | sort >got
sort a.jsonl >all
same "into all documents" got all
equal "about as asked" "$(wc -l <train.jsonl | awk '{ print ($1 > 1540 && $1 < 1660) }')" 1
sort valid.jsonl >valid.before
quern-mix -q --seed 9 --split train=0.8,valid=0.1,test=0.1 -o '%s.jsonl' other.jsonl b.jsonl
equal "a document stays where it was when the corpus grows" "$(sort valid.jsonl | comm -13 - valid.before | wc -l)" 0
status "shards" 0 quern-mix -q --shards 7 -o 's-%05d.jsonl.gz' a.jsonl --stats stats.json
equal "of equal numbers" "$(for f in s-*.gz; do zcat "$f" | wc -l; done | tr '\n' ' ')" "286 286 286 285 286 286 285 "
quern-mix -q a.jsonl >want
zcat s-*.gz >got
same "are the whole in order" got want
has "are listed" stats.json '{"file":"s-00006.jsonl.gz","documents":285,'
status "shards by size" 0 quern-mix -q --shard-size 100K -o 't-%d.jsonl' a.jsonl
cat t-0.jsonl t-1.jsonl t-2.jsonl >got
same "hold all" got want
equal "and are no larger" "$(find . -name 't-*.jsonl' -size +100k | wc -l)" 0
head -n 2 c.jsonl >two.jsonl
status "more shards than documents" 0 quern-mix -q --shards 3 -o "u-%d.jsonl" two.jsonl
equal "are empty" "$(cat u-*.jsonl | wc -l) $(ls u-* | wc -l)" "2 3"

# Killed: nothing half under the final name, and a rerun is as if nothing had been.
for ms in 02 05 10 20 40; do
    rm -f k.jsonl
    quern-mix -q -o k.jsonl --memory 16M big.jsonl &
    sleep 0.$ms
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ ! -e k.jsonl ] || cmp -s k.jsonl want.big || bad "killed after 0.$ms s" "half a file"
done
check "runs again" quern-mix -q -o k.jsonl big.jsonl
same "as if nothing had been" k.jsonl want.big

# What is wrong.
{ head -n 3 c.jsonl; echo '{"id":1}'; echo nonsense; } >bad.jsonl
status "bad records" 1 quern-mix bad.jsonl
equal "are skipped" "$(wc -l <out)" 3
has "and named" err "'bad.jsonl' at byte 114: no \"text\" in the document; skipped"
echo '{"id":"a","text":"x"}' >small.jsonl
mapfile -t names < <(yes small.jsonl | head -n 20000)
instrumented || status "20,000 files" 0 bash -c 'ulimit -v 800000; exec "$@"' x quern-mix -q -j 2 "${names[@]}"
instrumented || equal "are a source" "$(wc -l <out)" 20000
for order in shuffle input; do
    echo '{"body":"a"}' >none.jsonl
    status "no document at all, --order $order" 3 quern-mix --order $order none.jsonl -o never.jsonl
    has "is said" err 'none of 1 records is a document: nothing is written'
    absent "and nothing is published" never.jsonl
done
status "weights on standard input" 2 quern-mix -b 5 -
quern-mix -q <(cat c.jsonl) >got
quern-mix -q c.jsonl >want
same "a pipe by name is read whole" got want
status "fractions" 2 quern-mix --split a=0.5,b=0.4 -o '%s' c.jsonl
status "a name for splits" 2 quern-mix --split a=0.5,b=0.5 -o x c.jsonl
status "a name for shards" 2 quern-mix --shards 2 -o x c.jsonl
status "a name that means nothing" 2 quern-mix --shards 2 -o 'x%x' c.jsonl
status "no weight" 2 quern-mix -s c.jsonl
status "a weight of nothing" 2 quern-mix -s 0:c.jsonl
printf 'sources:\n  - {weight: 1, file: c.jsonl}\n' >plan.yaml
status "an unknown key in a plan" 3 quern-mix --plan plan.yaml
has "names the line" err "'plan.yaml' line 2: 'file' is unknown"
status "a missing file" 3 quern-mix nowhere.jsonl

# Fewer shards than the run before had: all that the pattern names would be two mixtures.
check "three shards" quern-mix -q --shards 3 -o 'old-%05d.jsonl' a.jsonl
check "two shards" quern-mix --seed 1 --shards 2 -o 'old-%05d.jsonl' a.jsonl
has "the third of the run before is told" err "'old-00002.jsonl' is of another run: this one has 2 shards"
check "three shards again" quern-mix --shards 3 -o 'old-%05d.jsonl' a.jsonl
equal "nothing is told where there is none" "$(grep -c 'another run' err)" 0
finish
