#!/bin/bash
# quern dedup exact and fuzzy at a shell.
. "$ROOT/tests/lib.sh"

# Ten documents of 40 words; b is a with one word changed (J = 31/41 = .756 of 5-word
# shingles), c is a with its last word changed (J = 35/37), d is a itself.
words() { seq -f "$1%g" 1 40 | tr '0-9\n' 'a-j '; }
{
    printf '{"id":"a","text":"%s","n":1}\n' "$(words w)"
    printf '{"id":"b","text":"%s"}\n' "$(words w | sed 's/wca /xca /')"
    printf '{"id":"c","text":"%s","more":[1, 2]}\n' "$(words w | sed 's/wea /xea /')"
    printf '{"id":"d","text":"%s"}\n' "$(words w)"
    for i in 1 2 3 4; do printf '{"id":"u%s","text":"%s"}\n' $i "$(words u$i-)"; done
    printf '{"id":"e1","text":""}\n{"id":"e2","text":""}\n'
} >in.jsonl

status "exact runs" 0 quern-dedup exact in.jsonl --rejects rej --stats stats.json
grep -vE '"id":"(d|e2)"' in.jsonl >want
same "exact keeps the first, byte for byte" out want
printf '%s\n' '{"id":"d","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"a","file":"in.jsonl","offset":536}' \
    '{"id":"e2","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"e1","file":"in.jsonl","offset":1742}' >want
same "exact accounts for what it drops" rej want
has "exact counts" stats.json '"distinct":8'


# Which of several stays.
cat >best.jsonl <<END
{"id":"1","text":"One text.","score":2,"signals":{"x":1}}
{"id":"2","text":"ONE  text","score":3,"signals":{"x":-5}}
{"id":"3","text":"One text.","score":7.5,"signals":{"x":0.5}}
{"id":"4","text":"another","score":1}
{"id":"5","text":"One   text.","signals":{"x":"none"}}
{"id":"6","text":"Ôné text","score":-1}
END
# kept NAME WANT OPTION...: the ids that stay, joined.
kept() {
    local name=$1 want=$2
    shift 2
    quern-dedup exact --rejects rej "$@" best.jsonl 2>err >out
    equal "$name" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr -d '\n')" "$want"
}
kept "exact: the first stays" 12456
kept "exact: the last stays" 23456 --keep last
kept "exact: none stays" 2456 --keep none
kept "exact: the best stays" 23456 --keep best --by score
kept "exact: the best by a number within" 12456 --keep best --by signals.x
kept "exact but for white space" 1246 --normalize space
kept "exact but for white space, the longest" 2456 --normalize space --keep longest
kept "exact in letters and digits" 146 --normalize words
kept "exact in letters and digits, the last" 456 --normalize words --keep last
has "exact: who stays is named" rej '{"id":"1","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"5","file":"best.jsonl","offset":0}'
kept "exact within a bound of memory" 12456 --memory 64M
printf '{"id":"old","text":"another"}\n' >old.jsonl
kept "exact against a file" 1256 --against old.jsonl
has "exact: the file's document is named" rej '"id":"4","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"old"'
kept "exact against a file, the last" 2356 --against old.jsonl --keep last
status "exact writes an index" 0 quern-dedup exact --index old.idx --normalize words old.jsonl in.jsonl
kept "exact against an index" 16 --against old.idx --normalize words
kept "exact against an index and a file" 16 --against old.idx --against old.jsonl --normalize words
status "an index of something else is refused" 3 quern-dedup exact --against old.idx best.jsonl
has "and told" err "is an index of 'dedup exact normalize=words', not of 'dedup exact normalize=none'"
head -c 200 old.idx >cut.idx
status "an index that is cut short is refused" 3 quern-dedup exact --normalize words --against cut.idx best.jsonl
has "with the place" err "'cut.idx' is cut short at byte 200"
cp old.idx bad.idx
printf X | dd of=bad.idx bs=1 seek=120 conv=notrunc 2>/dev/null
status "a damaged index is refused" 3 quern-dedup exact --normalize words --against bad.idx best.jsonl
has "with the place of the block" err "the block at byte"
{ cat old.idx; printf x; } >more.idx
status "an index with more behind it is refused" 3 quern-dedup exact --normalize words --against more.idx best.jsonl
has "with the place where it goes on" err "it goes on at byte"
status "it is made anew" 0 quern-dedup exact --index bad.idx --normalize words old.jsonl in.jsonl
same "as it was" bad.idx old.idx
status "the best of what?" 2 quern-dedup exact --keep best best.jsonl
# Many documents, little memory: as without a bound.
awk 'BEGIN { srand(3); for (i = 0; i < 60000; i++) printf "{\"id\":\"%d\",\"text\":\"t%d\",\"s\":%d}\n", i, rand() * 20000, rand() * 9 }' >many.jsonl
quern-dedup exact many.jsonl >want 2>/dev/null
for m in "-j1 --memory 64M" "-j8 --memory 64M" "--memory 8G"; do
    # shellcheck disable=SC2086
    quern-dedup exact $m many.jsonl >out 2>/dev/null
    same "exact with $m" out want
done
awk -F'[":,}]+' '{ if (!($5 in best) || $7 > best[$5]) { best[$5] = $7; line[$5] = $0; at[$5] = NR } } END { for (t in line) print at[t] "\t" line[t] }' many.jsonl |
    sort -n | cut -f2- >want
quern-dedup exact --keep best --by s many.jsonl >out 2>/dev/null
same "exact: the best of many" out want

status "fuzzy runs" 0 quern-dedup fuzzy --threshold 0.8 --clusters cl in.jsonl --rejects rej --stats stats.json
grep -vE '"id":"(c|d)"' in.jsonl >want
same "fuzzy drops what is close, and keeps texts without words" out want
printf 'a\tc\t0.945946\na\td\t1.000000\n' >want
same "fuzzy writes clusters" cl want
has "fuzzy accounts" rej '{"id":"c","stage":"dedup fuzzy","rule":"near-duplicate","value":0.945946,"threshold":0.8,"survivor":"a","file":"in.jsonl","offset":350}'
has "fuzzy counts" stats.json '"clusters":1,"largest_cluster":3,"largest_survivor":"a"'
has "fuzzy says how it cut signatures" stats.json '"bands":21,"rows":6'

status "a lower threshold drops more" 0 quern-dedup fuzzy --threshold 0.7 --clusters cl in.jsonl
printf 'a\tb\t0.756098\na\tc\t0.945946\na\td\t1.000000\n' >want
same "with similarities" cl want
status "all pairs" 0 quern-dedup fuzzy --threshold 0.7 --pairs pairs --clusters cn in.jsonl
printf 'a\tb\t0.756098\na\tc\t0.945946\nb\tc\t0.714286\na\td\t1.000000\nb\td\t0.756098\nc\td\t0.945946\n' >want
same "all pairs, by the second" pairs want
same "and the same clusters" cn cl

for p in quern2 quern datatrove nemo text-dedup rpv2; do
    status "preset $p, verified" 0 quern-dedup fuzzy --preset $p --threshold 0.8 in.jsonl
    grep -vE '"id":"(c|d)"' in.jsonl >want
    same "preset $p drops the close ones" out want
    status "preset $p, not verified" 0 quern-dedup fuzzy --preset $p --no-verify --clusters cl.$p in.jsonl
    has "preset $p still tells the similarity" cl.$p "$(printf 'a\td\t1.000000')"
    mv out told
    status "preset $p, not verified and not asked for it" 0 quern-dedup fuzzy --preset $p --no-verify --stats st in.jsonl
    same "preset $p drops the same" out told
    has "preset $p puts no shingles aside" st '"shingle_bytes":0,'
done

# Any number of threads, any instruction set.
for ((i = 0; i < 40; i++)); do base[i]=$(words "p$i-"); done
letters=abcdefg
for i in $(seq 300); do
    printf '{"id":"m%s","text":"%s"}\n' "$i" "$(sed "s/[a-z-]*-${letters:i % 7:1} /z$i /" <<<"${base[i % 40]}")"
done >many.jsonl
quern-dedup fuzzy -q -j 1 many.jsonl -o j1 --rejects r1 --clusters c1
[ "$(wc -l <c1)" -gt 200 ] && ok "many duplicates" || bad "many duplicates" "$(wc -l <c1)"
for j in 2 8; do
    quern-dedup fuzzy -q -j $j many.jsonl -o jn --rejects rn --clusters cn
    same "-j $j: same documents" jn j1
    same "-j $j: same account" rn r1
    same "-j $j: same clusters" cn c1
done
for isa in base avx2; do
    QUERN_ISA=$isa quern-dedup fuzzy -q many.jsonl -o jn --clusters cn
    same "$isa: same clusters" cn c1
done

# The kernels of a GPU, run on the CPU: the same bytes for any batch.
simt=$(cd "$ROOT" && cd "$B" && pwd)/tests/simt-cuda.so
cpu() { quern-dedup fuzzy -q "$@" $from -o cpu.out --rejects cpu.rej --clusters cpu.cl --stats cpu.st; }
gpu() { QUERN_GPU_WAIT=1 QUERN_CUDA=$simt quern-dedup fuzzy -q --device cuda "${batch[@]}" "$@" $from -o gpu.out --rejects gpu.rej --clusters gpu.cl --stats gpu.st; }
counts() { sed -i 's/"seconds":[0-9.e-]*//; s/"time":{[^}]*}//g; s/"signed_on_gpu":[0-9]*//' "$1"; }
twin() {
    local name=$1
    shift
    status "$name: the CPU" 0 cpu "$@"
    status "$name: the GPU's kernels" 0 gpu "$@"
    has "$name: the CPU signs" cpu.st '"signed_on_gpu":0,'
    has "$name: the GPU signs all" gpu.st "\"signed_on_gpu\":$docs,"
    counts cpu.st
    counts gpu.st
    for f in out rej cl st; do same "$name: same $f" gpu.$f cpu.$f; done
}
batch=() from=many.jsonl docs=300
for p in quern2 quern datatrove nemo text-dedup rpv2; do twin "preset $p" --preset $p; done
twin "not verified" --no-verify
# Blocks of 256 KiB: batches of one and of several, a document larger than a batch, one without shingles, several threads.
{
    for i in $(seq 1500); do sed "s/[a-z-]*-${letters:i % 7:1} /z$i /; s/.*/{\"id\":\"l$i\",\"text\":\"& & &\"}/" <<<"${base[i % 40]}"; done
    awk 'BEGIN { printf "{\"id\":\"long\",\"text\":\""; for (i = 0; i < 400000; i++) printf "w%d ", i; print "\"}"; print "{\"id\":\"none\",\"text\":\"\"}" }'
} >large.jsonl
from=large.jsonl docs=1501
for b in 1 200 16384; do
    batch=(--batch "$b")
    for j in 1 3; do
        twin "batches of $b, $j threads" -j $j --index x.idx
        mv x.idx gpu.idx
        cpu -j $j --index cpu.idx
        same "batches of $b, $j threads: the same index" gpu.idx cpu.idx
    done
    from=many.jsonl
    cpu --against cpu.idx --keep last
    gpu --against gpu.idx --keep last
    same "batches of $b: the same against an index" gpu.out cpu.out
    gpu --against large.jsonl --keep last
    cpu --against large.jsonl --keep last
    same "batches of $b: the same against documents" gpu.out cpu.out
    from=large.jsonl
done
# More documents in a block than a batch has room for at first.
awk 'BEGIN { for (i = 0; i < 9000; i++) { x = i % 5000; printf "{\"id\":\"s%d\",\"text\":\"a%d b%d c d e f g\"}\n", i, x, x * x } }' >small.jsonl
from=small.jsonl docs=9000 batch=()
twin "many small documents"
from=large.jsonl docs=1501 batch=(--batch 100)
SIMT_LATE=1 twin "a GPU that comes late" -j 3
cpu
QUERN_CUDA=$simt quern-dedup fuzzy -q --device cuda large.jsonl -o gpu.out --clusters gpu.cl
same "until the GPU is there the CPU signs: the same documents" gpu.out cpu.out
same "and clusters" gpu.cl cpu.cl
batch=() from=many.jsonl docs=300
cpu --pairs cpu.pairs --threshold 0.5
gpu --pairs gpu.pairs --threshold 0.5
same "all pairs by the GPU's kernels" gpu.pairs cpu.pairs
for d in cpu cuda; do
    printf 'input: large.jsonl\nstages:\n  - dedup fuzzy: {device: %s, batch: 100, clusters: plan.%s.cl}\noutput: plan.%s.out\n' $d $d $d >plan.$d.yaml
    status "a plan, $d" 0 env QUERN_GPU_WAIT=1 QUERN_CUDA="$simt" quern-curate plan.$d.yaml
done
same "a plan: the same documents" plan.cuda.out plan.cpu.out
same "a plan: the same clusters" plan.cuda.cl plan.cpu.cl
status "no GPU: told why" 3 env QUERN_CUDA=/no/such.so quern-dedup fuzzy --device cuda many.jsonl
has "with what was looked for" err "/no/such.so"
status "no GPU, no document: told why" 3 env QUERN_CUDA=/no/such.so quern-dedup fuzzy --device cuda /dev/null
status "auto without a GPU" 0 env QUERN_CUDA=/no/such.so quern-dedup fuzzy -v --device auto many.jsonl
same "auto: the same documents" out j1
has "auto: says why not" err "on the CPU: "

# Any bound of memory.
for m in 128M 256M 8G; do
    quern-dedup fuzzy -q -j 2 --memory $m many.jsonl -o jn --rejects rn --clusters cn
    same "--memory $m: same documents" jn j1
    same "--memory $m: same account" rn r1
    same "--memory $m: same clusters" cn c1
done

# Which of several stays: b is a part of a (J = .9), c as well.
words70() { seq -f "v%g" 1 "$1" | tr '0-9\n' 'a-j '; }
{
    printf '{"id":"a","text":"%s","score":1}\n' "$(words70 64)"
    printf '{"id":"b","text":"%s","score":3}\n' "$(words70 70)"
    printf '{"id":"c","text":"%s"}\n' "$(words70 67)"
    printf '{"id":"o","text":"%s"}\n' "$(words o)"
} >keep.jsonl
# stays NAME WANT OPTION...: the ids that stay, joined.
stays() {
    local name=$1 want=$2
    shift 2
    quern-dedup fuzzy --rejects rej "$@" keep.jsonl 2>err >out
    equal "$name" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr -d '\n')" "$want"
}
stays "fuzzy: the first stays" ao
stays "fuzzy: the last stays" co --keep last
stays "fuzzy: the longest stays" bo --keep longest
stays "fuzzy: the best stays" bo --keep best --by score
stays "fuzzy: the last of those linked" co --keep last --no-verify
has "fuzzy: who stays is named" rej '"id":"a","stage":"dedup fuzzy","rule":"near-duplicate","value":0.952381,"threshold":null,"survivor":"c"'
status "fuzzy: the best of what?" 2 quern-dedup fuzzy --keep best keep.jsonl
status "fuzzy: one must stay" 2 quern-dedup fuzzy --keep none keep.jsonl
status "fuzzy: too little memory" 2 quern-dedup fuzzy --memory 1M keep.jsonl

# An old collection as documents, or as an index.
head -n 1 keep.jsonl | sed 's/"a"/"old"/' >old.jsonl
status "fuzzy writes an index" 0 quern-dedup fuzzy --index old.idx old.jsonl in.jsonl
for o in old.jsonl old.idx "old.idx --memory 128M"; do
    # shellcheck disable=SC2086
    stays "fuzzy against $o" o --against $o --keep longest
    has "fuzzy: the old document is named" rej '"survivor":"old"'
done
quern-dedup fuzzy --index new.idx --against old.jsonl keep.jsonl >out 2>/dev/null
stays "an index has what stayed" a --against new.idx
status "an index of another preset is refused" 3 quern-dedup fuzzy --preset nemo --against old.idx keep.jsonl
has "and told" err "is an index of 'dedup fuzzy preset=quern2 bands=21 rows=6', not of 'dedup fuzzy preset=nemo bands=20 rows=13'"
quern-dedup fuzzy --preset quern --index words.idx old.jsonl >out 2>/dev/null
stays "an index is read by the preset that it names" o --against words.idx --stats st
has "by which the run goes" st '"preset":"quern","bands":21'
status "but not by another one" 3 quern-dedup fuzzy --preset quern2 --against words.idx keep.jsonl
quern-dedup fuzzy --seed 7 --index seed.idx old.jsonl >out 2>/dev/null
stays "another seed of the hash functions" o --against seed.idx --seed 7
status "an index of another seed is refused" 3 quern-dedup fuzzy --against seed.idx keep.jsonl
has "and told" err "is an index of 'dedup fuzzy preset=quern2 bands=21 rows=6 seed=7', not of 'dedup fuzzy preset=quern2 bands=21 rows=6'"
quern-dedup fuzzy --seed 1 --index own.idx old.jsonl >out 2>/dev/null
quern-dedup fuzzy --index default.idx old.jsonl >out 2>/dev/null
same "the preset's own seed by its number" own.idx default.idx
# Of pairs between the bands' reach and none, other functions find others, and about as many.
for s in 1 2 3; do quern-dedup fuzzy -q --threshold 0.3 --bands 20 --rows 5 --seed $s --pairs pairs.$s many.jsonl -o /dev/null; done
check "a seed gives the same again" quern-dedup fuzzy -q --threshold 0.3 --bands 20 --rows 5 --seed 2 --pairs pairs.again many.jsonl -o /dev/null
same "byte for byte" pairs.again pairs.2
equal "others give others" "$(cat pairs.[123] | sort | uniq -c | awk '$1 < 3' | wc -l | sed 's/^[1-9].*/some/')" some
sed '2s/quern/nobody/' words.idx >nobody.idx
status "an index of an unknown preset is refused" 3 quern-dedup fuzzy --against nobody.idx keep.jsonl
has "and told" err "'nobody.idx' is an index of preset 'nobody'"
stays "old documents may come by a pipe" o --keep longest --against <(cat old.jsonl)
equal "of exact copies too" "$(quern-dedup exact -q --against <(cat old.jsonl) old.jsonl)" ""

# An index that is cut, or changed where it is read: two lines, ids, documents, names of files, pages of keys, an end.
for n in 300 100; do
    head -c $n old.idx >cut.idx
    status "a fuzzy index of its first $n bytes is refused" 3 quern-dedup fuzzy --against cut.idx keep.jsonl
    has "with its name" err "the index 'cut.idx' is"
done
# changed NAME BYTE WHAT: old.idx with that byte changed is refused.
changed() {
    cp old.idx bad.idx
    printf X | dd of=bad.idx bs=1 seek="$2" conv=notrunc 2>/dev/null
    status "an index with $1 changed is refused" 3 quern-dedup fuzzy --against bad.idx keep.jsonl
    has "with the place" err "the index 'bad.idx' is damaged$3"
}
size=$(stat -c %s old.idx)
ids=$(head -n 2 old.idx | wc -c)
changed "its settings" $((ids - 4)) " at byte $((size - 96))"
changed "its end" $((size - 90)) " at byte $((size - 96))"
changed "a page" $((size - 300)) ": the page at byte $((size - 96 - 1024)) has another checksum"
changed "an id" "$ids" " at byte"
printf Z >>bad.idx
cat old.idx bad.idx >more.idx
status "an index with more behind it is refused" 3 quern-dedup fuzzy --against more.idx keep.jsonl
sed '1s/2/3/' old.idx >later.idx
status "an index of a later version is refused" 3 quern-dedup fuzzy --against later.idx keep.jsonl
has "by its version" err "the index 'later.idx' is of version 3"
gzip -c old.idx >packed.idx
status "a compressed index is refused" 3 quern-dedup fuzzy --against packed.idx keep.jsonl
has "with what to do" err "is compressed; decompress it"
status "none is written" 2 quern-dedup fuzzy --index new.idx.gz keep.jsonl
status "it is made anew by the same command" 0 quern-dedup fuzzy --index bad.idx old.jsonl in.jsonl
same "as it was" bad.idx old.idx

# Against an index as against the documents that it has, by whatever it finds their shingles; of 4,000 documents of which
# many are like one another.
awk 'BEGIN {
    srand(3)
    for (d = 0; d < 4000; d++) {
        of = d % 2 ? int(rand() * d / 2) * 2 : d
        text = ""
        for (i = 0; i < 20 + of % 97; i++) text = text (rand() < (d % 2) * (d % 7) / 40 ? "x" int(rand() * 1e6) : "w" of * i % 4999) " "
        printf "{\"id\":\"d%d\",\"text\":\"%s\"}\n", d, text
    }
}' >mixed.jsonl
mkdir -p far/texts
head -n 3000 mixed.jsonl | gzip >far/texts/1.jsonl.gz
sed -n '3001,3500p' mixed.jsonl >far/texts/2.jsonl
tail -n 500 mixed.jsonl >batch.jsonl
# against NAME OPTION...: what a run on batch.jsonl writes, into NAME.*
against() {
    local name=$1
    shift
    quern-dedup fuzzy -q -o "$name.docs" --rejects "$name.rejects" --clusters "$name.clusters" "$@" batch.jsonl
}
for how in '' '--threshold .6' '--preset nemo' '--keep longest --places'; do
    # shellcheck disable=SC2086
    {
        quern-dedup fuzzy -q $how --index far/texts.idx far/texts/* -o far/kept.jsonl
        quern-dedup fuzzy -q $how --index far/sets.idx --index-sets far/texts/* -o out
        against want $how --against far/kept.jsonl
        against texts $how --against far/texts.idx
        against sets $how --against far/sets.idx -j 3 --memory 128M
    }
    for i in texts sets; do
        same "$how, an index with $i: documents" $i.docs want.docs
        case $how in
        *places*) same "$how, an index with $i: account, but for places" <(sed -E 's/"survivor_file.*//' $i.rejects) <(sed -E 's/"survivor_file.*//' want.rejects) ;;
        *) for f in rejects clusters; do same "$how, an index with $i: $f" $i.$f want.$f; done ;;
        esac
    done
    [ "$(wc -l <want.clusters)" -gt 50 ] && ok "there was something to drop" || bad "there was something to drop" "$(wc -l want.clusters)"
done
quern-dedup fuzzy -q --index far/texts.idx far/texts/* -o far/kept.jsonl
quern-dedup fuzzy -q --index far/sets.idx --index-sets far/texts/* -o out
quern-dedup fuzzy -q --index far/pipe.idx <(zcat far/texts/1.jsonl.gz) far/texts/2.jsonl -o out
same "of a pipe an index has sets" far/pipe.idx.sets far/sets.idx.sets
against want --against far/kept.jsonl
size=$(stat -c %s far/texts.idx)
[ "$size" -lt $((500 * $(wc -l <far/kept.jsonl))) ] && ok "an index takes less than 500 bytes a document" || bad "an index takes less than 500 bytes a document" "$size"
mv far near
for i in texts sets pipe; do
    against $i --against near/$i.idx
    same "moved with what it needs, an index with $i" $i.docs want.docs
done
mkdir linked
ln -s ../near/texts.idx ../near/sets.idx linked
ln -s ../near/new.idx linked/new.idx
quern-dedup fuzzy -q --index linked/new.idx --index-sets near/texts/* -o out
for i in linked/texts linked/sets linked/new near/mark; do
    [ $i != near/mark ] || {
        sed -i '1s/^/\xef\xbb\xbf/' near/texts/2.jsonl # a mark at the beginning
        quern-dedup fuzzy -q --index near/mark.idx near/texts/* -o out
    }
    against linked --against $i.idx
    same "by a link, or with a mark: $i" linked.docs want.docs
done
cp -r near copy # a copy of all is no other
against linked --against copy/mark.idx
same "copied with what it needs" linked.docs want.docs
# Killed at any moment: what stands under a name is whole.
quern-dedup fuzzy -q --index whole.idx --index-sets near/texts/* -o out
cp whole.idx.sets killed.sets
for s in .01 .03 .06 .1 .15 .2; do
    rm -f killed.idx killed.idx.sets
    { timeout -s KILL $s quern-dedup fuzzy -q --index killed.idx --index-sets near/texts/* -o out; } 2>/dev/null
    if [ -e killed.idx.sets ]; then same "killed after $s s: the set file is whole" killed.idx.sets killed.sets; fi
    if [ ! -e killed.idx ]; then ok "killed after $s s: no index"; continue; fi
    against linked --against killed.idx
    same "killed after $s s: the index is whole" linked.docs want.docs
done
{ timeout -s KILL .02 quern-dedup merge --index killed.idx near/texts.idx near/mark.idx; } 2>/dev/null
check "merged after a kill" quern-dedup merge --index killed.idx near/texts.idx near/mark.idx
mv near/texts/1.jsonl.gz near/sets.idx.sets .
for i in texts sets; do
    status "without what it needs an index with $i is refused" 3 quern-dedup fuzzy --against near/$i.idx batch.jsonl
    has "with what to do" err "or drop by estimate with --no-verify"
    check "but not by estimate" quern-dedup fuzzy --no-verify --against near/$i.idx batch.jsonl -o $i.docs
done
same "and both estimate the same" texts.docs sets.docs
zcat 1.jsonl.gz | sed 's/ w/ v/g' | gzip >near/texts/1.jsonl.gz
status "other texts are refused" 3 quern-dedup fuzzy --against near/texts.idx batch.jsonl
has "with the place" err "near/texts/1.jsonl.gz' does not have at byte"
head -c 5000 sets.idx.sets >near/sets.idx.sets
status "and a set file that is cut" 3 quern-dedup fuzzy --against near/sets.idx batch.jsonl
has "with the place" err "near/sets.idx.sets' does not have at byte"
status "merge: of what?" 2 quern-dedup merge --index all.idx
status "merge: only indexes of near-duplicates" 3 quern-dedup merge --index all.idx near/texts.idx batch.jsonl
status "merge: of one kind" 3 quern-dedup merge --index all.idx near/texts.idx words.idx
absent "merge: nothing half done" all.idx

# The trap of a template: 10,000 pages of which 70 % is the same.  The trap of a chain: each
# page is like the next, the ends have nothing in common.  Every text that is not close to
# another stays, whatever links them.
awk 'BEGIN {
    for (i = 0; i < 70; i++) all = all "shared" i " "
    for (p = 0; p < 10000; p++) {
        own = ""
        for (i = 0; i < 30; i++) own = own "p" p "w" i " "
        printf "{\"id\":\"t%d\",\"text\":\"%s%s\"}\n", p, all, own
    }
}' >template.jsonl
awk 'BEGIN {
    for (p = 0; p < 500; p++) {
        text = ""
        for (i = 0; i < 104; i++) text = text "c" p * 4 + i " "
        printf "{\"id\":\"c%d\",\"text\":\"%s\"}\n", p, text
    }
}' >chain.jsonl
for m in ${SWEEP:+"-j 1"} "-j 3 --memory 128M"; do
    # shellcheck disable=SC2086
    quern-dedup fuzzy -q $m template.jsonl >out
    same "template, $m: all pages stay" out template.jsonl
    # shellcheck disable=SC2086
    quern-dedup fuzzy -q $m --clusters cl chain.jsonl >out
    equal "chain, $m: whoever goes is close to who stays for it" \
        "$(awk -F '\t' '$3 < 0.8 { n++ } END { print n + 0 }' cl)" 0
    [ "$(wc -l <out)" -ge 150 ] && ok "chain, $m: it is split" || bad "chain, $m: it is split" "$(wc -l <out) stay"
done
status "chain, not verified" 0 quern-dedup fuzzy --no-verify --report-over 400 --report report chain.jsonl
equal "one stays for all" "$(wc -l <out)" 1
has "and the report shows that they share nothing" report '"documents":500,"sample":["c1","c73",'
has "in no passage" report '"share":0.000,"passages":[]}'

# Ids that would break a line.
printf '{"id":"t\\tb\\n\\\\","text":"x y z"}\n{"id":"s","text":"x y z"}\n' >odd.jsonl
status "odd ids" 0 quern-dedup fuzzy --clusters cl odd.jsonl
printf 't\\tb\\n\\\\\ts\t1.000000\n' >want
same "odd ids are escaped" cl want

status "clusters over a size are reported" 0 quern-dedup fuzzy --report-over 2 in.jsonl
has "with their survivor" err "large cluster: 'a' stands for 3 documents"
status "and what they share" 0 quern-dedup fuzzy --report-over 2 --report report in.jsonl
has "in a report" report '{"survivor":"a","documents":3,"sample":["c","d"],"share":0.974,"passages":["wb wc wd '

: >empty.jsonl
for k in exact fuzzy; do
    status "$k: empty input" 0 quern-dedup $k empty.jsonl
    equal "$k: empty output" "$(cat out)" ""
    printf '{"id":"a","text":"x"}\nnot json\n{"id":"b"}\n{"id":"c","text":"x"}\n' >bad.jsonl
    status "$k: bad records are skipped" 1 quern-dedup $k bad.jsonl
    equal "$k: the rest is done" "$(cat out)" '{"id":"a","text":"x"}'
    has "$k: and named" err "bad.jsonl"
    status "$k: missing file" 3 quern-dedup $k nowhere.jsonl -o never
    has "$k: missing file named" err "nowhere.jsonl"
    absent "$k: nothing half-written" never
    status "$k: unknown option" 2 quern-dedup $k --no-such-option
done
status "no kind" 2 quern-dedup in.jsonl
has "no kind: what to say" err "exact"
status "threshold zero" 2 quern-dedup fuzzy --threshold 0 in.jsonl
status "threshold above one" 2 quern-dedup fuzzy --threshold 1.5 in.jsonl
status "unknown preset" 2 quern-dedup fuzzy --preset nobody in.jsonl
status "bands without rows" 2 quern-dedup fuzzy --bands 5 in.jsonl
status "pairs without verification" 2 quern-dedup fuzzy --no-verify --pairs p in.jsonl
status "no folder for temporary files" 3 quern-dedup fuzzy --tmp /nonexistent in.jsonl -o never
absent "no folder: nothing written" never
status "clusters cannot be written" 3 quern-dedup fuzzy --clusters /nonexistent/c in.jsonl -o never
absent "clusters: nothing written" never
status "help" 0 quern-dedup --help
has "help names both kinds" out "exact|fuzzy"
status "man page" 0 quern-dedup fuzzy --man
status "the example works" 0 bash -c "$(sed -n '/^Example:/,$p' <(quern-dedup --help) | sed 1d | sed 's/quern dedup/quern-dedup/')"

# What is held against a file of nothing but noise would be held against nothing.
seq 5 >noise
status "--against without a document" 3 quern-dedup exact --against noise -o none.jsonl best.jsonl
has "is said" err "'noise': none of 5 records is a document"
status "of near-duplicates too" 3 quern-dedup fuzzy --against noise -o none.jsonl best.jsonl
absent "and nothing is written" none.jsonl
if instrumented; then
    skip "under a limit of memory" "the sanitizer needs more"
else
    quern-dedup fuzzy -q best.jsonl >want
    status "under a limit of memory below --memory's default" 0 bash -c 'ulimit -v 400000; exec quern-dedup fuzzy -q best.jsonl'
    same "the documents are the same" out want
fi
finish
