# shellcheck shell=bash
# Checkpoints of several ranks: saved under one division of the tensors, loaded under others; damage, full disks, kills.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so
# ranks N MODE DIR STEP SEED
# shellcheck disable=SC2317
ranks() {
    local n=$1
    shift
    timeout -k 10 600 mpirun --oversubscribe -n "$n" "$B/tests/checkpoint_ranks" "$@"
}

# ---- any division to any other ----
step=0
for n in 1 2 4 7; do
    step=$((step + 1))
    check "$n ranks save" ranks $n save any $step $((step * 31))
    for m in 1 3 8; do check "$m load what $n saved" ranks $m load any $step $((step * 100 + m)); done
done
check 'four that have the same' ranks 4 save any 6 0
check 'loaded by two' ranks 2 load any 6 5
check 'loaded by four that want the same' ranks 4 load any 6 0
check 'what a rank lacks is refused' ranks 3 hole any 7 3
equal 'it left nothing' "$(find any -name '.iter*')" ''

# ---- damage: each file of the last one ----
check 'the one before' ranks 3 save hurt 1 5
check 'the last one' ranks 4 save hurt 2 6
check 'damage in each file is found by all' ranks 3 damage hurt 2 7
check 'verify: whole' quern-checkpoint verify hurt
f=$(find hurt/iter_0000002 -name 'optimizer*' | sort | tail -1)
printf 'x' | dd of="$f" bs=1 seek="$(($(stat -c %s "$f") - 2))" conv=notrunc 2>dd.err
status 'verify: damaged' 1 quern-checkpoint verify hurt
has 'verify: which file' out "$f: damaged"
has 'verify: the other' out 'whole    hurt/iter_0000001'

# ---- no room ----
check 'before a disk is full' ranks 3 save full 1 9
check 'one rank has no room' ranks 3 full full 2 9

# ---- any call of the system fails ----
# FAULTS=1: each of them, not every third.
export FAULTS=${FAULTS:-3}
check 'a call that fails, in each place' ranks 3 fault faults 1 "$((FAULTS + 4))"
check 'what stands is whole' quern-checkpoint verify faults
check 'the same, one process' ranks 1 fault faults 1000 2

# ---- kill -9 of any rank at any moment ----
mkdir kills
last=0 lost=0 torn=0
for i in $(seq 10); do
    rm -f said
    timeout -k 10 600 mpirun --oversubscribe -n 3 "$B/tests/checkpoint_ranks" loop kills $((last + 1)) "$i" >said 2>err &
    pid=$!
    while [ ! -s said ] && kill -0 $pid 2>kill.err; do sleep 0.01; done
    sleep "0.$((i * 37 % 40 + 10))"
    kill -9 "$(cat kills/pid.$((i % 3)))" 2>kill.err
    wait $pid 2>kill.err
    said=$(tail -n 1 said)
    ranks $((i % 4 + 1)) load kills 0 "$i" >out 2>err || torn=$((torn + 1))
    got=$(sed -n 's/^loaded //p' out)
    [ "${got:-0}" -ge "${said:-1000000}" ] || lost=$((lost + 1))
    last=${got:-$last}
done 2>kill.err
equal '10 kills: what is loaded is whole' $torn 0
equal '10 kills: nothing that was committed is lost' $lost 0
check 'every checkpoint is whole' quern-checkpoint verify kills
check 'the next save' ranks 3 save kills $((last + 1)) 3
equal 'clears what the kills left' "$(find kills -name '.iter*')" ''
finish
