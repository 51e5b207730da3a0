# shellcheck shell=bash
# quern dedup exact and fuzzy by several ranks: the bytes of one process.
. "$ROOT/tests/lib.sh"
# mpirun wants to be told that root is meant, and looks for a remote shell that it does not need.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
# What Open MPI allocated and unloaded has no name any more by which a sanitizer could leave it out.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
ranks() { timeout -k 10 120 mpirun --oversubscribe -n "$@"; }
command -v mpirun >/dev/null || bad 'mpirun is here' 'make deps installs it'

# 4,000 documents of some hundred words: copies, near copies far apart, a template that many share, chains of
# small changes, texts without words; in seven files, one of them empty, one with a bad line.
awk 'function word(i) { return "w" int(i * 7919 % 5003) }
    BEGIN {
        srand(11)
        for (d = 0; d < 4000; d++) {
            kind = rand(); n = 40 + int(rand() * 100); text = ""
            if (d > 50 && kind < .1) text = kept[int(rand() * d)]
            else if (d > 50 && kind < .4) {
                m = split(kept[int(rand() * d)], w, " ")
                for (k = 0; k < 1 + m / 120; k++) w[1 + int(rand() * m)] = "x" int(rand() * 1e6)
                for (k = 1; k <= m; k++) text = text (k > 1 ? " " : "") w[k]
            } else if (kind < .5) {
                for (k = 0; k < 90; k++) text = text (k ? " " : "") (k < 75 ? "template" k : word(rand() * 1e6))
            } else if (kind > .01) for (k = 0; k < n; k++) text = text (k ? " " : "") word(rand() * 1e6)
            kept[d] = text
            printf "{\"id\":\"d\\u00e9%d\",\"text\":\"%s\",\"score\":%d}\n", d, text, rand() * 50
        }
    }' >all.jsonl
mkdir in
head -n 700 all.jsonl >in/1.jsonl
sed -n 701,1500p all.jsonl >in/2.jsonl
: >in/3.jsonl
{ sed -n 1501,2000p all.jsonl; echo '{"id":"no text"}'; } | gzip >in/4.jsonl.gz
sed -n 2001,2010p all.jsonl >in/5.jsonl
sed -n 2011,3600p all.jsonl | zstd -q >in/6.jsonl.zst
sed -n 3601,4000p all.jsonl >in/7.jsonl

# What a run gives, under DIR: documents, rejects, clusters, statistics but for time and for how often it had to
# look, which depends on what comes together.
run() { # DIR LAUNCHER... -- KIND OPTION...
    local dir=$1 launch=()
    shift
    mkdir -p "$dir"
    while [ "$1" != -- ]; do launch+=("$1"); shift; done
    shift
    "${launch[@]}" quern-dedup "$@" -o "$dir/docs" --rejects "$dir/rejects" --stats "$dir/stats" in/* 2>"$dir/err"
    [ $? = 1 ] || return 1 # one line is bad
    sed -i -E 's/"(seconds|candidates|compared)":[0-9.e+-]+//g; s/,"(time":\{[^}]*\}|signed_on_gpu":0)//g' "$dir/stats"
}
all_equal() { # NAME WANT GOT
    for f in docs rejects stats clusters; do
        [ -e "$2/$f" ] && same "$1: $f" "$3/$f" "$2/$f"
    done
}
i=0
for how in 'fuzzy' 'fuzzy --preset nemo --keep best --by score --memory 256M --cluster-size n' 'fuzzy --no-verify --keep last --places' 'exact --cluster-size n --places' \
    'exact --keep none --memory 64M'; do
    i=$((i + 1))
    clusters=
    # shellcheck disable=SC2086
    case $how in fuzzy*) clusters=1 ;; esac
    # shellcheck disable=SC2086
    check "$how, one process" run "plain$i" -- $how ${clusters:+--clusters plain$i/clusters}
    counts=3
    [ $i = 1 ] && counts=${SWEEP:+1 2 8 }4
    [ $i = 4 ] && counts=${SWEEP:+8 }2
    for n in $counts; do
        # shellcheck disable=SC2086
        check "$how, $n ranks" run "ranks$i.$n" ranks $n -- $how ${clusters:+--clusters ranks$i.$n/clusters}
        all_equal "$how, $n ranks" "plain$i" "ranks$i.$n"
    done
done
ranks 3 quern-dedup fuzzy -q --no-verify --keep last --stats bare.st -o bare in/* 2>/dev/null
same 'not verified, and nobody asks for similarities' bare plain3/docs
has 'then no shingles are put aside' bare.st '"shingle_bytes":0,'
[ "$(wc -l <plain1/clusters)" -gt 700 ] && ok 'there was something to find' || bad 'there was something to find' "$(wc -l plain1/clusters)"
has 'the bad line is named by whoever read it' ranks1.4/err "'in/4.jsonl.gz' at byte"
check 'more threads' run ranks.j ranks 2 -- fuzzy -j 3 --clusters ranks.j/clusters
all_equal 'more threads' plain1 ranks.j

# Against an index and a file; an index of what stays; a file for each rank.
for kind in fuzzy exact; do
    quern-dedup $kind -q --index $kind.idx -o old.jsonl in/1.jsonl
    for l in '' 'ranks 3' ${SWEEP:+'ranks 8'}; do
        dir=$kind.${l#ranks }
        mkdir "$dir"
        check "$kind against others, ${l:-one process}" $l quern-dedup $kind -q --against $kind.idx --against in/2.jsonl \
            --keep longest --index "$dir/idx" -o "$dir/docs" --rejects "$dir/rejects" --stats "$dir/stats" in/[567]*
        sed -i -E 's/"(seconds|candidates|compared)":[0-9.e+-]+//g; s/,"(time":\{[^}]*\}|signed_on_gpu":0)//g' "$dir/stats"
        for f in docs rejects stats idx; do
            [ -z "$l" ] || same "$kind against others, $l: $f" "$dir/$f" "$kind./$f"
        done
    done
    has "$kind against others: they are named" $kind./rejects '"survivor":"dé'
done
check 'a file for each rank' ranks 3 quern-dedup exact -q -o 'part-*.jsonl.gz' --rejects 'part-*.rejects' in/[1-3]* in/[5-7]*
check 'one file' quern-dedup exact -q -o whole --rejects whole.rejects in/[1-3]* in/[5-7]*
zcat part-0000[012].jsonl.gz >parts
same 'the files are the parts of one' parts whole
cat part-0000[012].rejects >parts
same 'so are the accounts' parts whole.rejects
cp in/1.jsonl own-00001.jsonl
status "a rank's file is what another reads" 2 ranks 2 quern-dedup exact -q -o 'own-*.jsonl' own-00001.jsonl in/2.jsonl
has 'and is named' err "--output 'own-00001.jsonl' is a file that is read too: input 'own-00001.jsonl'"
same 'and stays' own-00001.jsonl in/1.jsonl
for x in index stats; do
    status "no file for each rank is --$x" 2 ranks 2 quern-dedup exact -q -o stars.jsonl --$x 'star*' in/1.jsonl in/2.jsonl
    has 'which is said' err "--$x 'star*': of several ranks one writes it"
done
absent 'and none is written' star* stars.jsonl
check 'of one process it is a name' quern-dedup exact -q -o stars.jsonl --index 'star*' in/1.jsonl
[ -f 'star*' ]
equal 'as any other' $? 0

# Each rank writes its own index: together, by a pattern, or merged they drop what one does.
check 'an index of one process' quern-dedup fuzzy -q --index whole.idx -o whole in/[1-3]* in/5*
for how in '' --index-sets; do
    check "an index of each rank $how" ranks 3 quern-dedup fuzzy -q $how --index 'shard-*.idx' -o shards in/[1-3]* in/5*
    same 'the documents' shards whole
    equal 'a file for each' "$(echo shard-*.idx)" 'shard-00000.idx shard-00001.idx shard-00002.idx'
    check 'merged' quern-dedup merge --memory 1M --index merged.idx shard-*.idx
    for k in verify no-verify; do
        quern-dedup fuzzy -q --$k --against whole.idx --rejects whole.rejects -o rest in/[67]*
        [ "$k$how" = no-verify ] && [ -z "${SWEEP:-}" ] && continue
        for a in 'shard-*.idx' merged.idx 'ranks 4'; do
            set -- --against "$a"
            l=
            case $a in ranks*) l=$a && set -- --against shard-00000.idx --against shard-00001.idx --against shard-00002.idx ;; esac
            # shellcheck disable=SC2086
            check "--$k $*, ${l:-one process}" $l quern-dedup fuzzy -q --$k "$@" --rejects rejects -o docs in/[67]*
            same 'the documents' docs rest
            same 'the account' rejects whole.rejects
        done
    done
done
[ "$(grep -c survivor whole.rejects)" -gt 20 ] && ok 'there was something to drop' || bad 'there was something to drop'

# The preset of an index.
quern-dedup fuzzy -q --preset quern --index words.idx -o old.jsonl in/1.jsonl
for n in 1 2; do
    check "an index by its preset, $n ranks" ranks $n quern-dedup fuzzy -q --against words.idx -o "words.$n" in/[567]*
done
same "an index by its preset" words.2 words.1
status "a Bloom filter is for one" 3 ranks 2 quern-dedup exact -q --bloom-count 10 in/*

# All pairs, and what large clusters share: in the order of one process; an index beside them has no texts.
for how in '--keep longest --against fuzzy.idx --against in/2.jsonl --index x' '--no-verify --threshold .7' '--memory 128M -j 2'; do
    pairs='--pairs pairs'
    case $how in *no-verify*) pairs= ;; esac
    for n in 0 ${SWEEP:+1 2 8} 4; do
        l=
        [ $n = 0 ] || l="ranks $n"
        rm -rf "extra.$n"
        mkdir "extra.$n"
        # shellcheck disable=SC2086
        (cd "extra.$n" && ln -s ../in ../fuzzy.idx . && $l quern-dedup fuzzy -q $how $pairs --report report --report-over 3 \
            -o docs --rejects rejects in/[4-7]* 2>err)
        equal "fuzzy $how, pairs and report, $n ranks" $? 1
        for f in docs rejects ${pairs:+pairs} report; do same "$f" "extra.$n/$f" "extra.0/$f"; done
        case $how in *index*) same 'the index' "extra.$n/x" extra.0/x ;; esac
    done
    if [ "$pairs" ]; then [ "$(wc -l <extra.0/pairs)" -gt 100 ] && ok "there are pairs" || bad "there are pairs" "$(wc -l extra.0/pairs)"; fi
    [ "$(wc -l <extra.0/report)" -gt 1 ] && ok 'there are large clusters' || bad 'there are large clusters' "$(wc -l extra.0/report)"
done

# Large linked groups, which all ranks decide: pages of a template, some of them alike; a chain; copies; and a few others.
awk 'function words(from, n,   t, k) { t = ""; for (k = 0; k < n; k++) t = t " " (from ? "w" (from + k) : "r" int(rand() * 1e6)); return t }
    BEGIN {
        srand(5)
        for (d = 0; d < 1600; d++) {
            kind = int(rand() * 8)
            if (kind < 4) text = words(1, 60) words(0, 3 + int(rand() * 12)) words(70, 60)
            else if (kind < 6) text = words(1000 + 4 * int(d / 2), 90)
            else if (kind < 7 && d > 20) text = kept[int(rand() * d)] words(0, int(rand() * 2))
            else text = words(0, 80)
            kept[d] = text
            printf "{\"id\":\"g%d\",\"text\":\"%s\",\"score\":%d}\n", d, text, rand() * 50
        }
    }' >groups.jsonl
mkdir groups
split -n l/9 --additional-suffix=.jsonl groups.jsonl groups/
for how in '' '--keep best --by score --cluster-size n --memory 128M' '--keep last --against fuzzy.idx --against groups/ab.jsonl --places'; do
    for n in 0 ${SWEEP:+1 2} 4 ${SWEEP:+8}; do
        l=
        [ $n = 0 ] || l="ranks $n"
        rm -rf "groups.$n"
        mkdir "groups.$n"
        # shellcheck disable=SC2086
        check "large groups $how, $n ranks" $l quern-dedup fuzzy --report-over 30 $how -o groups.$n/docs --rejects groups.$n/rejects \
            --clusters groups.$n/clusters --stats groups.$n/stats groups/*
        sed -i -E 's/"(seconds|candidates|compared)":[0-9.e+-]+//g; s/,"(time":\{[^}]*\}|signed_on_gpu":0)//g' "groups.$n/stats"
        sed -n 's/.*large cluster/large cluster/p' err | sort >groups.$n/warned
        for f in docs rejects clusters stats warned; do same "large groups $how, $n ranks: $f" "groups.$n/$f" "groups.0/$f"; done
        [ $n -lt 2 ] && continue
        grep -qE 'others, [0-9]{3,} in groups that all ranks decide' err
        equal "large groups $how, $n ranks: all decide" $? 0
    done
    [ "$(wc -l <groups.0/clusters)" -gt 200 ] && ok 'there are clusters' || bad 'there are clusters' "$(wc -l groups.0/clusters)"
    [ -s groups.0/warned ] && ok 'and large ones' || bad 'and large ones' "$(wc -l groups.0/clusters)"
done

# A rank that is killed: the others end too, and nothing stands under the name.
for i in $(seq 30); do cat all.jsonl; done >more1.jsonl
cp more1.jsonl more2.jsonl
( for _ in $(seq 300); do [ -s pid.1 ] && break; sleep .05; done; sleep .3; kill -9 "$(cat pid.1)" ) &
status 'a rank that is killed' 137 ranks 2 sh -c \
    'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec quern-dedup fuzzy -q -o killed.jsonl --clusters killed.tsv more1.jsonl more2.jsonl'
wait
absent 'leaves nothing half done' killed.jsonl killed.tsv

status 'no files' 2 ranks 2 quern-dedup exact
has 'are said to be needed' err 'several ranks need input files'
status 'a pipe' 2 ranks 2 quern-dedup exact /dev/stdin
status 'a file that is not there' 3 ranks 2 quern-dedup fuzzy -o x.jsonl in/1.jsonl no-such.jsonl
status 'another kind' 3 ranks 2 quern-dedup lines -o x.jsonl in/1.jsonl
has 'is refused' err "'dedup lines' is not for several ranks"
status 'a setting that ranks do not have' 3 ranks 2 quern-dedup fuzzy --device cuda -o x.jsonl in/1.jsonl
has 'is refused too' err '--device cuda is not for several ranks'
# Ranks that have nothing to do with one another.
check 'each rank for itself' ranks 2 sh -c 'quern-dedup exact --ranks self -o own.$OMPI_COMM_WORLD_RANK in/1.jsonl'
same 'gives each the whole' own.0 own.1
absent 'nothing half done' x.jsonl
finish
