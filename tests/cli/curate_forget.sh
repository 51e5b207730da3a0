# shellcheck shell=bash
# quern forget, and quern curate --forget-urls and --forget-ids: what comes is what a plan gives of inputs without the pages, also where
# these had driven out others as duplicates; after kills, in tasks.
. "$ROOT/tests/lib.sh"

# corpus SEED: 600 documents of six lines; of each ten the second is a copy of the first, the fourth nearly one of the third, the
# sixth has lines of the fifth.
corpus() {
    awk -v x="$1" -v s="$1" 'function word() { x = (x * 69069 + 1) % 2147483648; return letters[int(x / 65536) % 5000] }
        function line(  k, l) { l = word(); for (k = 0; k < 11; k++) l = l " " word(); return l }
        BEGIN { for (i = 0; i < 5000; i++) letters[i] = sprintf("%c%c%c", 97 + i % 26, 97 + int(i / 26) % 26, 97 + int(i / 676))
          for (i = 0; i < 600; i++) {
            if (i % 10 != 1 && i % 10 != 3) for (k = i % 10 == 5 ? 4 : 0; k < 6; k++) t[k] = line()
            if (i % 10 == 3) sub(/^[a-z]*/, "other", t[5])
            printf "{\"id\":\"%d-%d\",\"url\":\"http://h%d.example/%d\",\"text\":\"", s, i, i % 7, s * 1000 + i
            for (k = 0; k < 6; k++) printf "%s%s", k ? "\\n" : "", t[k]
            print "\"}" } }'
}
plan() {
    cat <<END
input: [1.jsonl, 2.jsonl, 3.jsonl]
stages:
  - clean
  - dedup exact
  - dedup fuzzy: {threshold: 0.7, clusters: $1.tsv}
  - dedup lines: {min-length: 1}
output: $1/
work: $1.work
stats: $1.json
rejects: $1.rejects
END
}
for c in 1 2 3; do corpus $c >$c.jsonl; done
plan all >all.yaml
quern curate -q all.yaml 2>err || bad 'a plan' "$(cat err)"
if grep -q 'no stage' err; then
    skip 'forgetting in a plan' 'a build without its stages'
    finish
fi

# Forgotten: of each third group of ten its first, third and fifth document, which are survivors, and some more.
for c in 1 2 3; do for ((i = 0; i < 600; i += 30)); do printf "$c-%d\n" $i $((i + 2)) $((i + 4)) $((i + 8)); done; done >ids
grep -hFf <(sed 's/.*/"id":"&"/' ids) 1.jsonl 2.jsonl 3.jsonl | grep -o '"url":"[^"]*' | cut -d'"' -f4 >urls
equal 'pages' "$(wc -l <ids) $(wc -l <urls)" '240 240'
for stage in 'dedup exact' 'dedup fuzzy'; do
    n=$(grep "\"stage\":\"$stage\"" all.rejects | grep -o '"survivor":"[^"]*' | cut -d'"' -f4 | sort -u | grep -cFxf ids)
    check "a twentieth of them and more survived others, $stage" test $((20 * n)) -ge 240
done
lines=$(for c in 1 2 3; do for ((i = 4; i < 600; i += 30)); do grep -h "\"id\":\"$c-$((i + 1))\"" all/*; done; done | awk -F'\\\\n' 'NF < 6' | wc -l)
check 'a twentieth of them and more had lines that others lost' test $((20 * lines)) -ge 240

cp -r all whole && cp all.rejects whole.rejects

# From scratch, of inputs without them.
mkdir left
for c in 1 2 3; do grep -vFf <(sed 's/.*/"id":"&"/' ids) $c.jsonl >left/$c.jsonl; done
plan want | sed 's/\([123]\).jsonl/left\/\1.jsonl/g' >want.yaml
check 'from scratch' quern curate -q want.yaml
# as_scratch WHAT NAME: NAME/ and its clusters are those.
as_scratch() {
    for f in want/*; do same "$1: ${f##*/}" "$f" "$2/${f##*/}"; done
    same "$1: clusters" want.tsv "$2.tsv"
}
plan by_urls >by_urls.yaml
check 'by URLs' quern curate -q --forget-urls urls by_urls.yaml
as_scratch 'by URLs' by_urls
equal 'all of them were there' "$(grep -c '"rule":"forgotten"' by_urls.rejects)" 240
check 'why' quern why 1-0 --rejects by_urls.rejects
has 'is said' out 'rule forgotten'
plan by_both >by_both.yaml
head -100 ids >ids.1
tail -n +101 urls >urls.2
check 'by both' quern curate -q --forget-ids ids.1 --forget-urls urls.2 by_both.yaml
as_scratch 'by both' by_both
check 'in a pipe' quern forget --ids ids.1 --urls urls.2 -o piped.jsonl 1.jsonl 2.jsonl 3.jsonl
same 'what is left' piped.jsonl <(cat left/1.jsonl left/2.jsonl left/3.jsonl)
plan stage | sed 's/  - clean/  - forget: {urls: urls}\n  - clean/' >stage.yaml
check 'as a stage' quern curate -q stage.yaml
as_scratch 'as a stage' stage

# The same plan's work: what it gave stands until it is told to do it again.
status 'an output that stands' 2 quern curate -q --forget-urls urls all.yaml
check 'is made again' quern curate -q --again --forget-urls urls all.yaml
as_scratch 'made again' all

# From documents that were kept: as from scratch, without a look at the inputs, which have other bytes by then.
plan first | sed '$a keep: kept' >first.yaml
check 'a plan that keeps documents' quern curate first.yaml
equal 'says nothing of those that it has not' "$(grep -c 'whole plan\|going on' err)" 0
for f in whole/*; do same "gives what it gives else: ${f##*/}" "$f" "first/${f##*/}"; done
same 'its account too' <(sort whole.rejects) <(sort first.rejects)
equal 'keeps them and their accounts' "$(cd kept && echo *)" "$(echo 0.00000{0,1,2}.{docs,done,rejects} plan)"
absent 'its work is done' first.work/0.000000.done
(cd kept && sha256sum *) >kept.sums
for c in 1 2 3; do
    cp -p $c.jsonl kept.$c
    tr '[:print:]' x <kept.$c >$c.jsonl
    touch -r kept.$c $c.jsonl
done
from_kept() {
    sed "s/first/$1/g" first.yaml >"$1.yaml"
    check "$1" quern curate --forget-urls urls "$1.yaml"
    has "$1: says so" err "going on from the documents in 'kept': only the stages behind them are run"
    as_scratch "$1" "$1"
}
from_kept from
same 'they stay as they are' kept.sums <(cd kept && sha256sum *)
# count FILE STAGE KEY: a number of the statistics.
count() { grep -o "\"stage\":\"$2\"[^}]*" "$1" | grep -o "\"$3\":[0-9]*" | cut -d: -f2; }
equal 'what stands before is counted as it was' "$(count from.json clean docs_in) $(count from.json clean docs_out)" '1800 1800'
equal 'then what is forgotten' "$(count from.json forget docs_in) $(count from.json forget forgotten)" '1800 240'
for s in exact fuzzy lines; do
    equal "then as from scratch: $s" "$(count from.json "dedup $s" docs_in) $(count from.json "dedup $s" docs_out)" \
        "$(count want.json "dedup $s" docs_in) $(count want.json "dedup $s" docs_out)"
done
# dropped FILE: what was dropped but for forgotten pages, and by what; their places in the inputs are others.
dropped() { grep -v '"forgotten"' "$1" | sed 's/"file":.*//; s/"survivor_file":.*//' | sort; }
same 'and so are others dropped' <(dropped from.rejects) <(dropped want.rejects)
status 'its work folder is not for other pages' 2 quern curate -q --forget-ids ids from.yaml
check 'but can be' quern curate --again --forget-ids ids from.yaml
has 'again from those that were kept' err 'going on from'
as_scratch 'again' from
check 'by an option' quern curate --keep kept --forget-ids ids <(sed 's/first/option/g; /^keep/d' first.yaml)
has 'likewise' err 'going on from'
as_scratch 'by an option' option
sed 's/first/looser/g; s/0.7/0.6/' first.yaml >looser.yaml
check 'other settings of what follows' quern curate looser.yaml
has 'go on from there too' err 'going on from'

# Killed and in tasks from there.
sed 's/first/hit/g' first.yaml >hit.yaml
for ms in 20 40 60 90 120 160 200 300; do
    timeout -s KILL "0.$(printf %03d "$ms")" quern curate -q --checkpoint 1 --forget-urls urls hit.yaml 2>/dev/null
done
check 'hit' quern curate --forget-urls urls hit.yaml # or the last one came to its end
as_scratch 'hit' hit
sed 's/first/shared/g' first.yaml >shared.yaml
quern curate -q --forget-urls urls --task 1 --tasks 2 shared.yaml &
check 'two tasks' quern curate -q --forget-urls urls --task 0 --tasks 2 shared.yaml
wait
as_scratch 'two tasks' shared
same 'those that were kept are there still' kept.sums <(cd kept && sha256sum *)

# Another head, or other inputs.
sed 's/first/other/g; s/- clean/- clean: {quotes: ascii}/' first.yaml >other.yaml
status 'another stage before' 2 quern curate --forget-urls urls other.yaml
has 'is told' err "'kept' is the work of another plan or other inputs (it has '  quotes: keep', this one '  quotes: ascii')"
same 'and nothing is lost' kept.sums <(cd kept && sha256sum *)
for c in 1 2 3; do mv kept.$c $c.jsonl; done
touch 2.jsonl
sed 's/first/touched/g' first.yaml >touched.yaml
status 'an input that has changed' 2 quern curate --forget-urls urls touched.yaml
has 'is told' err '2.jsonl'
check 'unless all is to be done again' quern curate --again --forget-urls urls touched.yaml
has 'which is said' err "'kept' does not have all documents: the whole plan is run"
as_scratch 'all of it' touched
status 'work cannot be kept' 2 quern curate -q --keep touched.work --again touched.yaml
has 'is told' err "keep 'touched.work' has to be another folder than work"
check 'a plan that keeps nothing' quern curate --forget-urls urls --work none.work <(plan none)
has 'says so' err 'the plan has kept no documents (keep): the whole plan is run'
as_scratch 'a plan that keeps nothing' none

# Kept and forgotten at once, killed on the way; killed while what is kept makes room for others.
rm -r kept
sed 's/first/both/g' first.yaml >both.yaml
for ms in 20 30 40 60 90 120 160 200 300; do
    timeout -s KILL "0.$(printf %03d "$ms")" quern curate -q --checkpoint 1 --forget-urls urls both.yaml 2>/dev/null
done
check 'kept and forgotten, killed' quern curate -q --forget-urls urls both.yaml
as_scratch 'kept and forgotten, killed' both
echo none >kept/plan
status 'half cleared' 2 quern curate -q --forget-urls urls looser.yaml
rm -r kept both.work both

# Branches: documents come to the cuts on several ways, some of them to an output uncompared.
branched() {
    cat <<END
input: [$2/1.jsonl, $2/2.jsonl, $2/3.jsonl]
stages: [clean]
branches:
  low:
    if: url ~ "h[0-3]"
    stages: [clean: {quotes: ascii}]
    output: $1.low.jsonl
  high:
    if: url ~ "h[4-6]"
    stages: [clean]
  rest:
    if: url ~ "h[56]"
    output: $1.rest/
  joined:
    from: [high, low]
    stages: [clean, dedup exact]
    output: $1.joined.jsonl
  numbers:
    stages:
      - stats: {output: $1.numbers.txt}
work: $1.work
END
}
branched b1 . | sed '$a keep: kept' >b1.yaml
branched b2 . >b2.yaml
branched b3 left >b3.yaml
check 'branches' quern curate -q b1.yaml
equal 'keep what leads to cuts' "$(cd kept && echo *.000000.docs*)" '1.000000.docs 2.000000.docs 3.000000.docs 5.000000.docs'
mv kept/1.000000.docs gone
status 'a file of these that is lost' 3 quern curate --forget-urls urls --keep kept b2.yaml
has 'is told, and what to do' err "cannot open 'kept/1.000000.docs', made by a former run; without its folder all is made again"
mv gone kept/1.000000.docs
check 'from there' quern curate --forget-urls urls --keep kept b2.yaml
has 'as is said' err 'going on from'
check 'and from scratch' quern curate -q b3.yaml
for f in low.jsonl rest/00000{0,1,2}.jsonl joined.jsonl numbers.txt; do same "branches: $f" "b3.$f" "b2.$f"; done

# A folder of pages, one of which has changed.
mkdir pages
for i in 1 2 3; do echo "<html><body><p>Page $i has a sentence of its own, and it is a long one, with many words.</p></body></html>" >pages/$i.html; done
printf 'input: pages\nstages: [extract, dedup exact]\noutput: pages.jsonl\nkeep: kept.pages\n' >pages.yaml
check 'pages' quern curate -q pages.yaml
check 'are gone on from' quern curate --again pages.yaml
has 'as is said' err 'going on from'
touch -d '2001-01-01' pages/2.html
status 'one has changed' 2 quern curate --work pages.2 pages.yaml
has 'is told' err "'kept.pages' is the work of another plan or other inputs (it has '  files 3 "
if command -v flock >/dev/null; then
    status 'one run at a time goes on from there' 3 flock kept.pages/lock.0.1 quern curate --work pages.2 pages.yaml
    has 'is told' err "at work in 'kept.pages'"
fi

# Killed on the way, again and again; in tasks.
plan killed >killed.yaml
for ms in 20 40 60 90 120 160 200 300; do
    timeout -s KILL "0.$(printf %03d "$ms")" quern curate -q --checkpoint 1 --forget-urls urls killed.yaml 2>/dev/null
done
check 'killed eight times' quern curate -q --forget-urls urls killed.yaml
as_scratch 'killed' killed
plan tasks >tasks.yaml
quern curate -q --forget-urls urls --task 1 --tasks 2 tasks.yaml &
check 'two tasks' quern curate -q --forget-urls urls --task 0 --tasks 2 tasks.yaml
wait
as_scratch 'two tasks' tasks

status 'no list' 2 quern forget 1.jsonl
status 'no file' 3 quern forget --ids none 1.jsonl
status 'nor in a plan' 3 quern curate -q --forget-urls none --again all.yaml

# What a list names and no document has, and a list as editors on Windows write it.
printf '\xef\xbb\xbfa\r\nb\r\nnone\r\n' >marked
printf '{"id":"%s","text":"x"}\n' a b c >three.jsonl
check 'a list with a byte order mark' quern forget --ids marked three.jsonl
equal 'has its first line' "$(cat out)" '{"id":"c","text":"x"}'
has 'and what no document has is told' err "1 of 3 names are no document's; the first: 'none'"
check 'all found' quern forget --ids <(echo a) three.jsonl
equal 'is no word' "$(grep -c names err)" 0
finish
