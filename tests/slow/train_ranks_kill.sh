# shellcheck shell=bash
# Training by ranks that save beside it: any of them killed at random moments, half of them within a save, by the same
# ranks again and by other numbers of them; a disk that is full for one of them.
# KILLS=30: so many; SEED: other moments.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
flags="--mock-data --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 64 -j 1
    --micro-batch-size 2 --global-batch-size 16 --lr 0.01 --eval-interval 0 --deterministic"
losses() { sed -E 's/,"tokens_per_s.*//' "$1" | sort -u -t: -k2n; }
lines() { cat parts.jsonl 2>/dev/null | wc -l; }
RANDOM=${SEED:-1}
kills=${KILLS:-30}
flags="$flags --train-iters $((2 * kills + 40))"

# moment PID: waits for a random one of a run that has begun: some steps on, or within a save.
moment() {
    local want=$(($(lines) + 1 + RANDOM % 3)) within=$((RANDOM % 2))
    while kill -0 "$1" 2>kill.err && { [ "$(lines)" -lt $want ] || { [ $within = 1 ] && [ -z "$(find store -name '.iter*')" ]; }; }; do
        sleep 0.003
    done
    if [ $within = 1 ]; then sleep "0.00$((RANDOM % 10))"; else sleep "0.0$((RANDOM % 30 + 10))"; fi
    find store -name '.iter*' | grep -q . && saving=$((saving + 1))
}
# killed N ARG...: a run of N ranks, one of which is killed.
killed() {
    local n=$1 pid rank committed at
    shift
    committed=$(cat store/latest_checkpointed_iteration.txt)
    # shellcheck disable=SC2086
    mpirun --oversubscribe -n "$n" quern-train $flags "$@" --save store --save-interval 1 --async-save \
        --log-file parts.jsonl >out 2>err </dev/null &
    pid=$!
    moment $pid
    read -ra rank <"/proc/$pid/task/$pid/children"
    kill -9 "${rank[RANDOM % ${#rank[@]}]}" 2>kill.err
    wait $pid 2>kill.err
    grep -q 'checksum\|cut short\|none of its' err && torn=$((torn + 1))
    at=$(sed -n 's/^going on after step //p' out)
    [ "${at:-0}" = "${committed:-0}" ] || lost="$lost $committed:$at"
}
# survives NAME FLAGS N...: kills in runs of N ranks in turn, and what is left of them.
survives() {
    local name=$1 layout=$2 torn=0 lost='' saving=0
    shift 2
    rm -rf store parts.jsonl whole.jsonl
    mkdir store
    # shellcheck disable=SC2086
    check "$name: a run without a stop" timeout -k 10 300 mpirun --oversubscribe -n "$1" quern-train $flags $layout --log-file whole.jsonl
    for i in $(seq $((kills / 2))); do
        # shellcheck disable=SC2086
        killed "${!i}" $layout
        set -- "$@" "${!i}"
    done 2>kill.err
    equal "$name, $((kills / 2)) kills: nothing torn" $torn 0
    equal 'each went on from the last one committed' "$lost" ''
    [ "$(lines)" -ge $((kills / 2)) ] && [ $saving -gt 0 ] && ok "in $saving a save was under way" || bad 'saves under way' "$saving; $(lines) steps"
    # shellcheck disable=SC2086
    check 'to the end' timeout -k 10 300 mpirun --oversubscribe -n "$1" quern-train $flags $layout --save store --save-interval 10 \
        --async-save --log-file parts.jsonl
    same 'the losses of a run without a stop' <(losses whole.jsonl) <(losses parts.jsonl)
    check 'every checkpoint is whole' quern-checkpoint verify store
    equal 'nothing is left over' "$(find store -name '.iter*')" ''
}
survives 'data-parallel ranks' '' 2 4 1
survives 'tensor and pipeline ranks' '--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2' 4

# The second rank alone has no room: training goes on, and what was saved before stands.
# shellcheck disable=SC2086
check 'some steps' timeout -k 10 300 mpirun --oversubscribe -n 2 quern-train $flags --save full --exit-interval 10 --log-file full.jsonl
# shellcheck disable=SC2086,SC2016
status 'no room for one rank' 3 timeout -k 10 300 mpirun --oversubscribe -n 2 bash -c '
    [ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -f 20; exec "$@"' x \
    quern-train $flags --save full --save-interval 20 --exit-interval 30 --async-save --log-file full.jsonl
equal 'training went on' "$(wc -l <full.jsonl)" 30
has 'it is said which and why' err 'no checkpoint of step 20: rank 1: cannot write'
equal 'on the way by one voice' "$(grep -c 'File too large; training goes on' err)" 1
equal 'nothing is left of them' "$(ls -A full)" $'iter_0000010\nlatest_checkpointed_iteration.txt'
check 'what was there is whole' quern-checkpoint verify full

# A disk that is full for all of them, where one can be made.
if unshare -rm sh -c 'mount -t tmpfs none /mnt' 2>unshare.err; then
    mkdir disk
    # shellcheck disable=SC2016
    status 'a full disk' 3 unshare -rm bash -c '
        mount -t tmpfs -o size=600k none disk
        timeout -k 10 300 mpirun --oversubscribe -n 4 "$@" >full.out 2>full.err
        rc=$?
        cp -r disk copy
        exit $rc' x quern-train $flags --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --save disk \
        --save-interval 10 --exit-interval 40 --async-save --log-file disk.jsonl
    equal 'training went on' "$(wc -l <disk.jsonl)" 40
    has 'it is said why' full.err 'No space left on device; training goes on'
    equal 'the one before is there' "$(ls -A copy)" $'iter_0000010\nlatest_checkpointed_iteration.txt'
    check 'and whole' quern-checkpoint verify copy
else
    skip "a full disk" "no disk can be made here: $(cat unshare.err)"
fi
finish
