# shellcheck shell=bash
# Ranks that share the optimizer's state train as those that each have all of it: the same bits.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
model="--num-layers 3 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --mock-data -j 1
    --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --train-iters 20 --eval-iters 2 --eval-interval 5"
zero="--use-distributed-optimizer --ddp-bucket-size 5000"
beside="--overlap-grad-reduce --overlap-param-gather"
# ranks N ARG...: a run of N ranks.
# shellcheck disable=SC2317
ranks() {
    local n=$1
    shift
    # shellcheck disable=SC2086
    ranks_train "$n" $model "$@"
}
# joined DIR: the checkpoint of step 20 as one process would have written it.
# shellcheck disable=SC2317
joined() { rm -rf "j$1" && quern-checkpoint join "$1" --save "j$1"; }
# tensors A B: two checkpoints joined are the same.
tensors() {
    for f in model optimizer; do
        same "$1 and $2: $f" {j$1,j$2}/iter_0000020/$f.safetensors
    done
}

# shellcheck disable=SC2086
check 'one process' quern-train $model --log-file one.jsonl
for how in '2' '4' '2 --bf16' '4 --deterministic' '4 --tensor-model-parallel-size 2 --sequence-parallel' \
    '4 --pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1'; do
    n=${how%% *}
    # shellcheck disable=SC2086
    {
        check "$how: without" ranks $how --log-file a.jsonl --save a
        check "$how: shared" ranks $how $zero --log-file z.jsonl --save z
        check "$how: beside the passes" ranks $how $zero $beside --log-file b.jsonl --save b
    }
    same "$how: the same bits of losses and norms" <(losses a.jsonl) <(losses z.jsonl)
    same "$how: the same bits beside the passes" <(losses a.jsonl) <(losses b.jsonl)
    for f in z/iter_0000020/*-rank-*; do
        same "$how: the same files: ${f##*/}" "$f" "b/${f#*/}"
    done
    check "$how: joined" joined a
    check "$how: shared, joined" joined z
    tensors a z
    case $how in *bf16*) ;; *) check "$how: as one process" close one.jsonl z.jsonl 45 ;; esac
    rm -rf a z b a.jsonl z.jsonl b.jsonl
done

# Without shares, gradients alone are reduced beside backward.
for how in '2' '4 --deterministic' \
    '4 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --num-layers 4'; do
    # shellcheck disable=SC2086
    {
        check "$how: without" ranks $how --log-file a.jsonl
        check "$how: gradients beside" ranks $how --overlap-grad-reduce --ddp-bucket-size 5000 --log-file b.jsonl
        check "$how: all beside" ranks $how $zero $beside --log-file z.jsonl
    }
    same "$how: gradients beside: the same bits" <(losses a.jsonl) <(losses b.jsonl)
    same "$how: all beside: the same bits" <(losses a.jsonl) <(losses z.jsonl)
    rm -f a.jsonl b.jsonl z.jsonl
done
# shellcheck disable=SC2086
status 'weights beside need shares' 2 ranks 2 --overlap-param-gather
has 'is said' err '--overlap-param-gather needs --use-distributed-optimizer'

# A timeline: of each rank phases, layers, and every call; what was waited for is said.
# shellcheck disable=SC2086
check 'a timeline' ranks 2 $zero $beside --trace tl --eval-iters 0 --train-iters 4
has 'says what was waited for' out 'gradients and weights among replicas'
buckets=$(grep -c '"name":"reduce-scatter"' tl.0)
check 'several buckets' test "$buckets" -gt 8
for r in 0 1; do
    equal "rank $r: an array of events, one a line" \
        "$(grep -vcE '^[{]"name":"[^"]*","ph":"X",.*[}],?$' tl.$r) $(head -n 1 tl.$r) $(tail -n 1 tl.$r)" '2 [ ]'
    # One gather a bucket before the first step, one a bucket after each.
    gathers=$(grep -c '"name":"all-gather".*replicas' tl.$r)
    equal "rank $r: calls of all steps" "$(grep -c '"name":"reduce-scatter"' tl.$r) $gathers" "$buckets $((buckets * 5 / 4))"
    equal "rank $r: layers" "$(grep -c '"name":"forward 2"' tl.$r) $(grep -c '"name":"backward 0"' tl.$r)" '8 8'
done

# A checkpoint of shares goes on in any division, and in the same one to the same bits.
# shellcheck disable=SC2086
{
    check 'two ranks, shared, in bf16' ranks 2 $zero --bf16 --deterministic --log-file whole.jsonl
    check 'the first half' ranks 2 $zero --bf16 --deterministic --exit-interval 10 --save half
}
sed -n '11,$p' whole.jsonl >rest.jsonl
for how in '2' '1' '4'; do
    rm -rf go log.jsonl
    cp -r half go
    # shellcheck disable=SC2086
    check "the rest by $how" ranks $how $zero --bf16 --deterministic --save go --log-file log.jsonl
    same "the rest by $how: the same bits" <(losses rest.jsonl) <(losses log.jsonl)
done
# shellcheck disable=SC2086
{
    check 'two, one, four: two' ranks 2 $zero --exit-interval 5 --save chain --log-file chain.jsonl
    check 'two, one, four: one, without' quern-train $model --exit-interval 10 --save chain --log-file chain.jsonl
    check 'two, one, four: four' ranks 4 $zero --save chain --log-file chain.jsonl
}
check 'two, one, four: as one process' close one.jsonl chain.jsonl 45

# What it takes.
memory() { grep "^memory: " out | grep -oE "$1 [0-9.]+" | cut -d' ' -f2; }
big="--hidden-size 256 --vocab-size 4000 --train-iters 1 --bf16"
# shellcheck disable=SC2086
{
    check 'memory without' ranks 4 $big
    w=$(memory weights) o=$(memory optimizer)
    check 'memory of four that share' ranks 4 $big $zero
}
# bf16 and fp32 weights, two moments: 6 + 8 bytes a parameter; now 2 + 12 / 4.  Beside these the sum of the squares of every
# 64 gradients, on the device and on the host: a quarter of a byte.
check 'as planned' awk -v w="$w" -v o="$o" -v sw="$(memory weights)" -v so="$(memory optimizer)" \
    'function near(a, b) { return a > 0.97 * b && a < 1.03 * b } BEGIN { exit !(near(sw, w / 3) && near(so, o * 3.25 / 8.25)) }'
finish
