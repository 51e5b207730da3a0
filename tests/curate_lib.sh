# shellcheck shell=bash
# For the tests of plans in tests/cli, after tests/lib.sh: a plan.yaml must come to the same however its work is divided and
# however often it is killed.  A test has the functions `again`, which removes what the plan made, `compare NAME`, which holds
# that against what one run made, and `whole`, which names every output that a kill has left half written; and the variables
# $work, the work folder, and $came, the status of a run.
# shellcheck disable=SC2154

# counts FILE: statistics but for the time.
counts() { sed 's/"seconds":[^,]*,//' "$1"; }
# wrong NAME TEXT MESSAGE [STATUS]: a plan of this text, after $begin, is refused; with the options $options.
# shellcheck disable=SC2086
wrong() {
    printf '%s%s' "${begin-}" "$2" >wrong.yaml
    status "$1" "${4:-3}" quern curate wrong.yaml one.jsonl ${options-}
    has "$1: told" err "$3"
}
# divided HOW...: by threads and processes as each HOW says, by three tasks, and by two that come one after the other.
divided() {
    local how t rounds=0
    for how; do
        again
        # shellcheck disable=SC2086
        status "runs with $how" "$came" quern curate $how plan.yaml
        compare "with $how"
    done
    again
    for t in 0 1 2; do quern curate --task $t --tasks 3 plan.yaml 2>"err$t" & done
    wait
    compare "from three tasks"
    again
    while [ $rounds -lt 12 ] && [ ! -e "$work/finished" ]; do
        for t in 1 0; do quern curate --no-wait --task $t --tasks 2 plan.yaml 2>/dev/null; done
        rounds=$((rounds + 1))
    done
    compare "from two tasks that come one after the other"
}
# killed CHECKPOINT: some times at many moments, with a rest every CHECKPOINT of input.  A run that comes to its end first
# begins again.
killed() {
    local kills=0 ends=0 half TMPDIR=$PWD/spills
    export TMPDIR
    mkdir -p spills
    again
    while [ $kills -lt "${KILLS:-12}" ] && [ $ends -lt 50 ]; do
        quern curate --checkpoint "$1" -j 2 plan.yaml 2>/dev/null &
        sleep "$(awk -v k=$((kills + ends)) 'BEGIN { srand(k + 1); print .002 + rand() * .05 }')"
        if ! kill -9 $! 2>/dev/null; then
            again
            ends=$((ends + 1))
            continue
        fi
        wait $! 2>/dev/null
        half=$(whole)
        [ -z "$half" ] || bad "a killed run leaves nothing half written" "$half"
        kills=$((kills + 1))
    done 2>/dev/null
    quern curate --checkpoint "$1" -j 2 plan.yaml 2>/dev/null
    if [ $kills -gt 2 ]; then ok "was killed"; else bad "was killed" "only $kills times"; fi
    compare "after kills"
    equal "and nothing is left under temporary names" "$(find . -name '.*.part') $(ls spills)" " "
}
