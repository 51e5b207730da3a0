#!/usr/bin/env bash
# quern train --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16: a run learns as with fp32 moments; the bits are the same for any division
# of the state; checkpoints go either way.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 --micro-batch-size 2
    --global-batch-size 4 --lr 0.003 --attention-dropout 0 --hidden-dropout 0 --eval-iters 0 -j 1 --device cpu --train-iters 200 --weight-decay 0.1"
low='--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16'
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }
# mean LOG: that of the last 50 losses.
mean() { grep -oE '"loss":[^,}]*' "$1" | tail -n 50 | awk -F: '{ sum += $2 } END { print sum / NR }'; }
# learns NAME LOG: within 2 % of what fp32 moments learn.
learns() { check "$1" awk -v a="$(mean fp32.log)" -v b="$(mean "$2")" 'BEGIN { exit !(a < 3.5 && b < 1.02 * a && b > 0.98 * a) }'; }

check 'fp32' quern-train $flags --save fp32 --save-interval 100 --log-file fp32.log
check 'bf16' quern-train $flags $low --use-precision-aware-optimizer --save low --save-interval 100 --log-file low.log
learns 'bf16: learns as much' low.log
check 'bf16: other numbers' test "$(numbers low.log)" != "$(numbers fp32.log)"
check 'the second alone' quern-train $flags --exp-avg-sq-dtype bf16 --log-file second.log
learns 'the second alone: learns as much' second.log
check 'the first alone' quern-train $flags --exp-avg-dtype bf16 --log-file first.log
learns 'the first alone: learns as much' first.log

# near LOG LOG: losses within 0.01.
near() {
    paste <(grep -oE '"loss":[^,}]*' "$1") <(grep -oE '"loss":[^,}]*' "$2") |
        awk -F'[:\t]' '{ d = $2 - $4; if (d > .01 || -d > .01) exit 1; n++ } END { exit n != 12 }'
}

# resumed NAME STORE WANT FLAGS...
resumed() {
    rm -f log
    check "$1" quern-train $flags --load $2 --ckpt-step 100 --log-file log "${@:4}"
}
resumed 'resumed' low low $low
equal 'resumed: the same bits' "$(numbers log)" "$(tail -n 200 <(numbers low.log))"
resumed 'from fp32' fp32 '' $low
has 'from fp32: said' err '--exp-avg-dtype is bf16 now'
cat <(head -n 100 fp32.log) log >both.log
learns 'from fp32: learns as much' both.log
resumed 'to fp32' low ''
cat <(head -n 100 low.log) log >both.log
learns 'to fp32: learns as much' both.log

few='--train-iters 12'
check 'a short run' quern-train $flags $low $few --log-file few.log
rm -f log
check 'state on the host' quern-train $flags $low $few --optimizer-cpu-offload --log-file log
equal 'state on the host: the same bits' "$(numbers log)" "$(numbers few.log)"
rm -f one.log
check 'deterministic' quern-train $flags $low $few --deterministic --log-file one.log
for strategy in no_shard optim optim_grads optim_grads_params; do
    rm -f log
    check "deterministic, $strategy" plain 2 quern-train $flags $low $few --distributed-backend tcp --deterministic --log-file log \
        --data-parallel-sharding-strategy $strategy
    equal "deterministic, $strategy: the same bits" "$(numbers log)" "$(numbers one.log)"
done
for how in '--tensor-model-parallel-size 2' '--pipeline-model-parallel-size 2'; do
    rm -f log
    check "$how" plain 2 quern-train $flags $low $few --distributed-backend tcp --log-file log $how
    check "$how: nearly the same training" near few.log log
done
for kind in lion sgd 'muon --muon-extra-scale-factor 0.2'; do
    rm -f log
    check "$kind" quern-train $flags $few --optimizer $kind ${low#"$([ "$kind" = "${kind#muon}" ] || echo '--exp-avg-dtype bf16')"} --log-file log
done
check 'bf16 weights alone' quern-train $flags $low $few --bf16 --main-params-dtype bf16
status 'the momentum of matrices' 3 quern-train $flags $low --optimizer muon
has 'is said' err '--exp-avg-dtype: the momentum of whole matrices is fp32'
plan() { quern-train $flags --plan "$@" | grep -i 'optimizer'; }
check 'the plan knows' test "$(plan)" != "$(plan $low)"
finish
