# shellcheck shell=bash
# Data parallelism over MPI: the same training for any number of ranks.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
model="--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 64 --mock-data -j 1"
batch="--micro-batch-size 2 --global-batch-size 16 --lr 0.01 --eval-iters 3 --eval-interval 5 --log-interval 5"
# ranks N ARG...: a run of N ranks.
# shellcheck disable=SC2317
ranks() {
    local n=$1
    shift
    # shellcheck disable=SC2086
    timeout -k 10 600 mpirun --oversubscribe -n "$n" quern-train $model $batch "$@"
}

# shellcheck disable=SC2086
check 'one process' quern-train $model $batch --train-iters 20 --log-file one.jsonl --save one
for n in 2 ${SWEEP:+4 8}; do
    check "$n ranks" ranks $n --train-iters 20 --log-file $n.jsonl --save "$n"
    has "$n ranks: what each does" out "on each of $n data-parallel ranks"
    equal "$n ranks: one log, one voice" "$(grep -c '^step ' out) $(grep -c '"loss":' $n.jsonl)" '4 20'
    check "$n ranks: losses, norms and validation within 1e-5" close one.jsonl $n.jsonl 45
done
for n in 1 4 ${SWEEP:+2 8}; do
    check "$n ranks, deterministic" ranks $n --deterministic --train-iters 20 --log-file d$n.jsonl --save d$n
    same "$n ranks, deterministic: the same bits of loss" <(losses d1.jsonl) <(losses d$n.jsonl)
    check "$n ranks, deterministic: joined" quern-checkpoint join d$n --save j$n
    for f in model optimizer; do
        same "$n ranks, deterministic: $f" {d1,j$n}/iter_0000020/$f.safetensors
    done
done

for r in 0 1 2 3; do stat -c %s d4/iter_0000020/*-rank-0000$r.safetensors | awk '{ n += $1 } END { print n }'; done >sizes
check 'each rank wrote a fourth' awk '{ n += $1; if ($1 > most) most = $1 } END { exit !(NR == 4 && most < 0.3 * n) }' sizes

# A run goes on with another number of ranks.
check 'half of it with 2 ranks' ranks 2 --deterministic --train-iters 20 --exit-interval 10 --async-save --log-file h.jsonl --save h
check 'the rest with 4' ranks 4 --deterministic --train-iters 20 --log-file h.jsonl --save h
same 'is the run in one' <(losses d1.jsonl) <(losses h.jsonl)
check 'every checkpoint is whole' quern-checkpoint verify h
# shellcheck disable=SC2086
check 'one process goes on from two' quern-train $model $batch --deterministic --train-iters 20 --load h --ckpt-step 10 --log-file o.jsonl
same 'as the run in one' <(losses d1.jsonl | tail -n 11) <(losses o.jsonl)
check 'generate from shares' quern-generate --load d4 --prompt-ids 5,9 --max-tokens 6 --temperature 0 --print-ids
equal 'as from one file' "$(cat out)" "$(quern-generate --load d1 --prompt-ids 5,9 --max-tokens 6 --temperature 0 --print-ids)"
check 'export of shares' quern-checkpoint export d4 --output x4 --max-shard-size 40K
check 'export of one file' quern-checkpoint export d1 --output x1 --max-shard-size 40K
same 'the same files' <(cd x4 && sha256sum -- *) <(cd x1 && sha256sum -- *)
check 'info of shares' quern-checkpoint info d4 --tensors
has 'says how many' out 'slices'

# A signal ends all after the same step, though mpirun, which gives it to ranks a second later, reads nothing that they print from
# then on.  It kills what has not ended a second after that, unless told; a second signal, as timeout sends its group, ends mpirun at once.
# shellcheck disable=SC2086
OMPI_MCA_odls_base_sigkill_timeout=5 timeout --foreground -k 90 300 mpirun --oversubscribe -n 2 quern-train $model $batch \
    --train-iters 1000000 --eval-interval 0 --log-interval 1 --log-file s.jsonl --save s >out 2>err </dev/null &
pid=$!
for _ in $(seq 200); do [ -s s.jsonl ] && break; sleep 0.05; done
kill -TERM $pid
wait $pid
equal 'SIGTERM to mpirun: a checkpoint of the last step' "$(wc -l <s.jsonl)" "$(cat s/latest_checkpointed_iteration.txt)"

# What cannot be.
status 'a batch that ranks cannot share' 2 ranks 3 --train-iters 1
has 'is said' err 'not a multiple of the micro-batch of 2 on 3 data-parallel ranks'
status 'deterministic needs powers of two' 2 ranks 2 --deterministic --global-batch-size 12 --train-iters 1
has 'is said too' err 'it needs a power of two'
status 'no place for a checkpoint' 3 ranks 2 --train-iters 1 --save /dev/null/x
has 'is the first rank'"'"'s to say' err '/dev/null/x'
finish
