#!/bin/bash
# A plan whose stages decide by all ranks of mpirun: the bytes of one process, also of a run that was killed and that others
# go on with.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
command -v mpirun >/dev/null || bad 'mpirun is here' 'make deps installs it'
ranks() { timeout -k 10 120 mpirun --oversubscribe -n "$@"; }
for s in 1 2 3 4 5; do
    awk -v s=$s 'BEGIN {
        srand(s)
        for (i = 0; i < 120 * s; i++) {
            k = rand() < .3 ? int(rand() * 40) : 1000 * s + i
            t = ""
            for (j = 0; j < 60; j++) t = t "w" (k * 7919 + j * j * (k % 13)) % 5000 " "
            if (rand() < .4) t = t "odd" i
            printf "{\"id\":\"%d-%d\",\"text\":\"%s\",\"lang\":\"%s\"}\n", s, i, t, rand() < .5 ? "de" : "en"
        }
    }' >$s.jsonl
done
cat >plan.yaml <<END
input: [1.jsonl, 2.jsonl, 3.jsonl, 4.jsonl, 5.jsonl]
stages:
  - dedup exact
branches:
  de:
    if: lang == de
    stages:
      - dedup fuzzy: {threshold: 0.7, clusters: clusters.tsv}
      - dedup lines
    output: de.jsonl
  en:
    if: else
    stages:
      - dedup fuzzy: {threshold: 0.6}
    output: en/
rejects: out.rejects
stats: out.stats
work: work
END
status "one process" 0 quern curate plan.yaml
totals() { sed 's/,"bytes_in".*//' out.stats; }
keep() { # FOLDER
    mkdir "$1"
    totals >"$1/stats"
    mv de.jsonl en out.rejects clusters.tsv "$1"
    rm -rf work out.stats
}
compare() { # name
    local f
    for f in de.jsonl en/00000{0,1,2,3,4}.jsonl out.rejects clusters.tsv; do same "same $f $1" "$f" "want/$f"; done
    equal "same counts $1" "$(totals)" "$(cat want/stats)"
    rm -rf de.jsonl en out.rejects out.stats clusters.tsv work
}
keep want
[ -s want/de.jsonl ] && [ "$(wc -l <want/clusters.tsv)" -gt 20 ] && [ "$(wc -l <want/out.rejects)" -gt 200 ]
equal "there are duplicates of all kinds" $? 0
for n in 2 5; do
    check "$n ranks" ranks $n quern curate -j 1 --ranks mpi plan.yaml
    compare "by $n ranks"
done
# KILLS times one of 4 ranks is killed, at moments that spread from the start of a run to its end; mpirun ends the others.
finished=0
for k in $(seq "${KILLS:-3}"); do
    wait=$(awk -v k="$k" 'BEGIN { srand(k); print .1 + rand() * .9 }')
    ranks 1 timeout -s KILL "$wait" quern curate -q -j 1 --ranks mpi --checkpoint 5K plan.yaml : \
        -n 3 quern curate -q -j 1 --ranks mpi --checkpoint 5K plan.yaml >err 2>&1 && finished=$((finished + 1)) && rm -rf work de.jsonl en
done
echo "# of ${KILLS:-3} runs of 4 ranks that were to be killed $finished had ended" >&2
check "after kills two ranks go on" ranks 2 quern curate -q -j 1 --ranks mpi plan.yaml
compare "after kills"
ranks 1 timeout -s KILL .4 quern curate -q -j 1 --ranks mpi plan.yaml : -n 2 quern curate -q -j 1 --ranks mpi plan.yaml >err 2>&1
check "and one process goes on" quern curate plan.yaml
compare "by one process after ranks"
for n in 3 2; do
    check "$n ranks keep documents, or go on from there" ranks $n quern curate -j 1 --ranks mpi --keep kept plan.yaml
    equal "which is said once: $n" "$(grep -c 'going on from' err)" $((3 - n))
    compare "kept, by $n ranks"
done
# Tasks that tell one another in the work folder what a decision needs; none is a rank of a launcher.
task() { timeout -k 10 120 quern curate -q -j 1 --checkpoint 5K --ranks files --task "$1" --tasks "$2" plan.yaml; }
tasks() { # N: all of them
    local i pids=() rc=0
    for ((i = 0; i < $1; i++)); do task $i "$1" 2>"err.$i" & pids+=($!); done
    for i in "${pids[@]}"; do wait "$i" || rc=$?; done
    return $rc
}
for n in 4 2; do
    check "$n tasks by files" tasks $n
    equal "and leave what others do: $n" "$(ls work)" 'finished
plan'
    compare "by $n tasks"
done
again=0
for k in $(seq "${KILLS:-3}"); do
    pids=()
    for i in 0 1 2 3; do task $i 4 2>>kill.err & pids[i]=$!; done
    for _ in 1 2 3; do
        v=$((RANDOM % 4))
        for _ in $(seq 500); do [ -s work/lock.$v.4 ] && break; sleep .01; done
        sleep "0.$(printf %03d $((RANDOM % 400)))"
        pid=$(sed -n 's/^[^ ]* //p' "work/lock.$v.4" 2>kill.err)
        [ "$pid" ] && kill -9 "$pid" 2>kill.err || continue
        wait "${pids[v]}" 2>kill.err && continue
        again=$((again + 1))
        task $v 4 2>>kill.err & pids[v]=$!
    done
    for i in 0 1 2 3; do check "run $k: task $i ends" wait "${pids[i]}"; done
    compare "by tasks that were killed, $k"
done
[ $again -ge "${KILLS:-3}" ] && ok "$again tasks were started again" || bad 'tasks were started again' "$again"
for n in 4 3; do
    for ((i = 0; i < n; i++)); do
        timeout -s KILL .6 quern curate -q -j 1 --ranks files --task $i --tasks $n plan.yaml 2>>kill.err &
    done
    wait
done
check "two tasks go on where four and three were killed" tasks 2
compare "by two after four and three"
status "tasks that are all there" 2 quern curate --ranks files --task 0 --tasks 2 --no-wait plan.yaml
has "are needed" err "without --processes and --no-wait"
status "a task" 2 quern curate --ranks files plan.yaml
has "says which it is" err 'which rank is this?'
status "ranks are all tasks" 2 quern curate --ranks self --tasks 2 plan.yaml
has "which is said" err "--ranks says who shares the plan"
status "alone" 0 quern curate -q --ranks self plan.yaml
compare "by one rank"
finish
