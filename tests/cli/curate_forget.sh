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
finish
