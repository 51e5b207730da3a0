# shellcheck shell=bash
# quern dedup by processes that have only a folder in common: the bytes of one process, also when they are
# killed and started again.
# KILLS=30: so many runs with kills; SEED: other moments.
. "$ROOT/tests/lib.sh"
RANDOM=${SEED:-1}

# Copies, near copies, pages of a template (a group that all ranks decide), in seven files, one of them empty.
awk 'function words(n,   t, k) { t = ""; for (k = 0; k < n; k++) t = t " r" int(rand() * 3e5); return t }
    BEGIN {
        srand(3)
        for (d = 0; d < 3000; d++) {
            kind = rand()
            if (d > 20 && kind < .1) text = kept[int(rand() * d)]
            else if (d > 20 && kind < .35) text = kept[int(rand() * d)] words(1 + int(rand() * 4))
            else if (kind < .6) { text = ""; for (k = 0; k < 70; k++) text = text " w" k; text = text words(3 + int(rand() * 15)) }
            else text = words(30 + int(rand() * 60))
            kept[d] = text
            printf "{\"id\":\"d%d\",\"text\":\"%s\",\"lang\":\"%s\"}\n", d, substr(text, 2), d % 3 ? "en" : "de"
        }
    }' >all.jsonl
mkdir in
split -n l/6 --additional-suffix=.jsonl all.jsonl in/
: >in/aab.jsonl

# start I N DIR KIND OPTION...: rank I of N, which writes under DIR.
start() {
    local i=$1 n=$2 dir=$3 kind=$4
    shift 4
    timeout -k 5 120 quern-dedup "$kind" -q --ranks-folder "$dir/ranks" --task "$i" --tasks "$n" -o "$dir/docs" \
        --rejects "$dir/rejects" --stats "$dir/stats" "$@" in/* 2>"$dir/err.$i"
}
# ranks N DIR KIND OPTION...: all of them, each with a number of threads of its own.
ranks() {
    local n=$1 i pids=() rc=0
    shift
    mkdir -p "$1"
    for ((i = 0; i < n; i++)); do start $i $n "$@" -j $((1 + i % 3)) & pids+=($!); done
    for i in "${pids[@]}"; do wait "$i" || rc=$?; done
    return $rc
}
one() { # DIR KIND OPTION...
    local dir=$1
    mkdir "$1"
    quern-dedup "${@:2}" -q -o "$dir/docs" --rejects "$dir/rejects" --stats "$dir/stats" in/*
}
# holder DIR I: the process that is rank I of 4, if it has come so far.
holder() { sed -n 's/^[^ ]* //p' "$1/ranks/lock.$2.4" 2>holder.err; }
counts() { sed -E 's/"(seconds|candidates|compared)":[0-9.e+-]+//g; s/,"(time":\{[^}]*\}|signed_on_gpu":0)//g' "$1"; }
compare() { # NAME GOT WANT
    local f
    for f in docs rejects clusters; do [ -e "$3/$f" ] && same "$1: $f" "$2/$f" "$3/$f"; done
    equal "$1: counts" "$(counts "$2/stats")" "$(counts "$3/stats")"
}
check 'fuzzy, one process' one want.fuzzy fuzzy --clusters want.fuzzy/clusters
check 'exact, one process' one want.exact exact
[ "$(grep -c survivor want.fuzzy/rejects)" -gt 500 ] && ok 'there is something to find' || bad 'there is something to find'
for kind in fuzzy exact; do
    clusters=
    [ $kind = fuzzy ] && clusters="--clusters got.$kind/clusters"
    # shellcheck disable=SC2086
    check "$kind, 4 ranks" ranks 4 got.$kind $kind $clusters
    compare "$kind, 4 ranks" got.$kind want.$kind
done
cksum got.fuzzy/ranks/*-* >said
for i in 2 0; do check "all is done, and rank $i is started again" start $i 4 got.fuzzy fuzzy --clusters got.fuzzy/clusters -j 2; done
equal 'it says nothing new' "$(cksum got.fuzzy/ranks/*-*)" "$(cat said)"
compare 'and gives the same' got.fuzzy want.fuzzy
RANK=1 WORLD_SIZE=4 check 'by RANK and WORLD_SIZE' quern-dedup exact -q --ranks-folder got.exact/ranks -o got.exact/docs \
    --rejects got.exact/rejects --stats got.exact/stats in/*
SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_COUNT=4 check 'by a Slurm array' quern-dedup exact -q \
    --ranks-folder got.exact/ranks -o got.exact/docs --rejects got.exact/rejects --stats got.exact/stats in/*
quern-dedup fuzzy -q --index other.idx -o none in/aa.jsonl
n=0
for how in '--against other.idx --keep longest' '--strip-template 2 --memory 128M'; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    check "one process, $how" one want.$n fuzzy $how
    # shellcheck disable=SC2086
    check "3 ranks, $how" ranks 3 got.$n fuzzy $how
    compare "$how" got.$n want.$n
    cksum got.$n/ranks/*-* >said
    # shellcheck disable=SC2086
    check "rank 1 again, with more threads, $how" start 1 3 got.$n fuzzy $how -j 4
    equal "says the same, $how" "$(cksum got.$n/ranks/*-*)" "$(cat said)"
done

# What is not theirs.
again() { status "$1" 2 quern-dedup fuzzy -q --ranks-folder got.fuzzy/ranks -o x --rejects x.rejects --stats x.stats "${@:2}" in/*; }
again 'nobody says who this is'
has 'which is asked' err 'which rank is this?'
again 'another number of ranks' --task 0 --tasks 3 --clusters x.clusters
has 'is told' err "here are messages of 4 ranks, not of 3"
again 'other settings' --task 0 --tasks 4 --clusters x.clusters --threshold 0.7
has 'are told' err 'here are messages of ranks with other inputs or options'
touch -d '2001-01-01' in/af.jsonl
status 'an input that has changed' 2 start 0 4 got.fuzzy fuzzy --clusters got.fuzzy/clusters
has 'is told too' got.fuzzy/err.0 'here are messages of ranks with other inputs or options'
status 'a number without a folder' 2 quern-dedup fuzzy --task 0 --tasks 2 -o x in/*
has 'is refused' err '--task and --tasks are for ranks of a --ranks-folder'
absent 'nothing is written' x x.*
mkdir twice
start 1 2 twice exact & first=$!
until [ -s twice/ranks/1-0 ]; do sleep .01; done
status 'the same rank twice' 3 quern-dedup exact -q --ranks-folder twice/ranks --task 1 --tasks 2 -o x in/*
has 'is refused' err "is at work in 'twice/ranks'"
check 'the other rank comes later' start 0 2 twice exact
check 'and the first has waited' wait $first
compare 'two ranks' twice want.exact

# A damaged message: named by who reads it, and written anew by who says it.
mkdir broken
start 3 4 broken exact 2>kill.err &
until [ -s broken/ranks/3-2 ]; do sleep .01; done
printf '\xff' | dd of=broken/ranks/3-2 bs=1 seek=3 conv=notrunc 2>dd.err
status 'a damaged message' 3 start 2 4 broken exact --distributed-timeout-minutes 0.01
has 'is named with its place' broken/err.2 "'broken/ranks/3-2' at byte 0: no message of this run begins here"
has 'and with whom to start again' broken/err.2 'Rank 3, started again, writes anew what it says'
kill -9 "$(holder broken 3)"
wait
check 'started again, all ranks end' ranks 4 broken exact
compare 'after damage' broken want.exact

# KILLS runs of 4 ranks, one of which is killed twice at random moments and started again each time.
killed=0
for k in $(seq "${KILLS:-4}"); do
    rm -rf kills && mkdir kills
    kind=fuzzy; [ $((k % 4)) = 0 ] && kind=exact
    clusters=; [ $kind = fuzzy ] && clusters='--clusters kills/clusters'
    pids=()
    # shellcheck disable=SC2086
    for i in 0 1 2 3; do start $i 4 kills $kind $clusters 2>>kill.err & pids[i]=$!; done
    v=$((RANDOM % 4))
    for _ in 1 2; do
        sleep "0.$(printf %03d $((RANDOM % 300)))"
        pid=$(holder kills $v)
        [ "$pid" ] && kill -9 "$pid" 2>kill.err && killed=$((killed + 1))
        wait "${pids[v]}" 2>kill.err && continue
        # shellcheck disable=SC2086
        start $v 4 kills $kind $clusters 2>>kill.err & pids[v]=$!
    done
    for i in 0 1 2 3; do check "run $k, rank $i" wait ${pids[i]}; done
    compare "run $k, rank $v killed" kills want.$kind
done
least=${KILLS:-4}
! instrumented || least=1 # they start slowly
[ $killed -ge "$least" ] && ok "$killed ranks were killed" || bad 'ranks were killed' "$killed"
finish
