# shellcheck shell=bash
# Training by ranks that save beside it: any of them killed at random moments, and the rest with another number of ranks;
# a disk that is full for one of them.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
flags="--mock-data --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 64 -j 1
    --micro-batch-size 2 --global-batch-size 16 --train-iters 150 --lr 0.01 --eval-interval 0 --deterministic"
losses() { sed -E 's/,"tokens_per_s.*//' "$1" | sort -u -t: -k2n; }
lines() { cat parts.jsonl 2>/dev/null | wc -l; }

# shellcheck disable=SC2086
check 'a run without a stop' quern-train $flags --log-file whole.jsonl
torn=0
for i in $(seq 9); do
    want=$(($(lines) + 1 + i % 3)) # nearly all the time a save is under way
    # shellcheck disable=SC2086
    mpirun --oversubscribe -n $((1 << i % 3)) quern-train $flags --save store --save-interval 1 --async-save \
        --log-file parts.jsonl >out 2>err </dev/null &
    pid=$!
    while [ "$(lines)" -lt "$want" ] && kill -0 $pid 2>kill.err; do sleep 0.01; done
    sleep "0.0$((i * 7 % 30 + 10))"
    read -ra rank <"/proc/$pid/task/$pid/children"
    kill -9 "${rank[i % ${#rank[@]}]}" 2>kill.err
    wait $pid 2>kill.err
    grep -q 'checksum\|cut short\|none of its' err && torn=$((torn + 1))
done 2>kill.err
equal '9 kills: nothing torn' $torn 0
[ "$(lines)" -ge 20 ] && [ -d store ] && ok 'saves were under way' || bad 'saves were under way' "$(lines) steps"
# shellcheck disable=SC2086
check 'to the end' timeout 100 mpirun --oversubscribe -n 2 quern-train $flags --save store --save-interval 10 --async-save \
    --log-file parts.jsonl
same 'the losses of a run without a stop' <(losses whole.jsonl) <(losses parts.jsonl)
check 'every checkpoint is whole' quern-checkpoint verify store
equal 'nothing is left over' "$(find store -name '.iter*')" ''

# The second rank alone has no room.
# shellcheck disable=SC2086,SC2016
status 'no room for one rank' 3 timeout 100 mpirun --oversubscribe -n 2 bash -c '
    [ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -f 20; exec "$@"' x \
    quern-train $flags --save full --save-interval 50 --async-save --log-file full.jsonl
equal 'training went on' "$(wc -l <full.jsonl)" 150
has 'it is said which and why' err 'no checkpoint of step 50: rank 1: cannot write'
equal 'once a save, by one voice' "$(grep -c 'File too large; training goes on' err)" 2
equal 'nothing is left of them' "$(ls -A full)" ''
finish
