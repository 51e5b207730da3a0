#!/usr/bin/env bash
# quern train --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16: a run learns as with fp32 moments; the bits are the same for any division
# of the state; checkpoints go either way.
# shellcheck disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 4 --lr 0.003 --hidden-dropout 0 --train-iters 200 --weight-decay 0.1"
low='--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16'
# mean LOG: that of the last 50 losses.
mean() { grep -oE '"loss":[^,}]*' "$1" | tail -n 50 | awk -F: '{ sum += $2 } END { print sum / NR }'; }
# as_much NAME LOG: within 2 % of what fp32 moments learn.
as_much() { check "$1" awk -v a="$(mean fp32.log)" -v b="$(mean "$2")" 'BEGIN { exit !(a < 3.5 && b < 1.02 * a && b > 0.98 * a) }'; }

check 'fp32' quern-train $flags --save fp32 --save-interval 100 --log-file fp32.log
check 'bf16' quern-train $flags $low --use-precision-aware-optimizer --save low --save-interval 100 --log-file low.log
as_much 'bf16: learns as much' low.log
check 'bf16: other numbers' test "$(numbers low.log)" != "$(numbers fp32.log)"
check 'the second alone' quern-train $flags --exp-avg-sq-dtype bf16 --log-file second.log
as_much 'the second alone: learns as much' second.log
check 'the first alone' quern-train $flags --exp-avg-dtype bf16 --log-file first.log
as_much 'the first alone: learns as much' first.log

# near LOG LOG N: N losses within 0.01.
near() {
    paste <(grep -oE '"loss":[^,}]*' "$1") <(grep -oE '"loss":[^,}]*' "$2") |
        awk -F'[:\t]' '{ d = $2 - $4; if (d > .01 || -d > .01) exit 1; n++ } END { exit n != '"${3:-12}"' }'
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
as_much 'from fp32: learns as much' both.log
resumed 'to fp32' low ''
cat <(head -n 100 low.log) log >both.log
as_much 'to fp32: learns as much' both.log

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

# Eight bits: blocks of 256 elements of a parameter, whoever has which.
eight='--exp-avg-dtype 8bit --exp-avg-sq-dtype 8bit'
check '8bit' quern-train $flags $eight --save eight --save-interval 100 --log-file eight.log
as_much '8bit: learns as much' eight.log
check '8bit: other numbers' test "$(numbers eight.log)" != "$(numbers fp32.log)"
resumed '8bit, resumed' eight eight $eight
equal '8bit, resumed: the same bits' "$(numbers log)" "$(tail -n 200 <(numbers eight.log))"
resumed '8bit, from fp32' fp32 '' $eight
cat <(head -n 100 fp32.log) log >both.log
as_much '8bit, from fp32: learns as much' both.log
resumed '8bit, to fp32' eight ''
cat <(head -n 100 eight.log) log >both.log
as_much '8bit, to fp32: learns as much' both.log
check '8bit, the second alone' quern-train $flags --exp-avg-sq-dtype 8bit --log-file eight_second.log
as_much '8bit, the second alone: learns as much' eight_second.log
# Whoever has which part, codes and scales are the same: files joined are the same bytes.
even="$flags $eight $few --micro-batch-size 1 --deterministic --save-interval 6"
# joined STORE OUT
joined() { rm -rf $2 && quern-checkpoint join $1 --save $2 >/dev/null && cat $2/iter_0000012/*.safetensors; }
check '8bit, deterministic' quern-train $even --save one --log-file one8.log
joined one a >one.files
for part in exp_avg_scale exp_avg_sq_scale; do check "8bit, deterministic: $part" grep -qa "\"$part\.decoder" one.files; done
for ranks in '2 no_shard' '2 optim' '4 optim_grads' '4 optim_grads_params'; do
    rm -rf log other
    check "8bit, deterministic, $ranks" plain ${ranks% *} quern-train $even --distributed-backend tcp --log-file log --save other --async-save \
        --data-parallel-sharding-strategy ${ranks#* }
    equal "8bit, deterministic, $ranks: the same bits" "$(numbers log)" "$(numbers one8.log)"
    check "8bit, deterministic, $ranks: the same files" cmp one.files <(joined other b)
done
rm -rf log third
check '8bit, resharded' plain 2 quern-train $even --distributed-backend tcp --load other --ckpt-step 6 --log-file log --save third \
    --use-distributed-optimizer --pipeline-model-parallel-size 2
equal '8bit, resharded: the same bits' "$(numbers log)" "$(tail -n 12 <(numbers one8.log))"
check '8bit, resharded: the same files' cmp one.files <(joined third b)
rm -f log
check '8bit, state on the host' quern-train $flags $eight $few --optimizer-cpu-offload --log-file log
check '8bit, a short run' quern-train $flags $eight $few --log-file few8.log
equal '8bit, state on the host: the same bits' "$(numbers log)" "$(numbers few8.log)"
wide="--mock-data --num-layers 1 --hidden-size 512 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --micro-batch-size 1 --global-batch-size 2
    --lr 0.001 --eval-iters 0 -j 1 --device cpu --train-iters 4 $eight"
check '8bit, one' quern-train $wide --log-file wide.log --save wide --save-interval 2
rm -f log
check '8bit, tensor ranks' plain 2 quern-train $wide --distributed-backend tcp --tensor-model-parallel-size 2 --save apart \
    --save-interval 2 --log-file log
check '8bit, tensor ranks: nearly the same training' near wide.log log 4
rm -f log
check '8bit, tensor ranks to one' quern-train $wide --load apart --ckpt-step 2 --log-file log
check '8bit, tensor ranks to one: as if none had stopped' near <(tail -n 2 wide.log) log 2
for kind in lion sgd; do check "8bit, $kind" quern-train $flags $few --optimizer $kind --exp-avg-dtype 8bit; done
status '8bit, a block is cut' 2 quern-train $flags $eight --plan --plan-ranks 2 --tensor-model-parallel-size 2
has '8bit, a block is cut: said' err "cuts 'decoder.layers.0.self_attention.linear_qkv.bias' within a block of 256 elements"
status '8bit beside bf16' 3 quern-train $flags --exp-avg-dtype 8bit --exp-avg-sq-dtype bf16
has '8bit beside bf16: said' err '8bit goes with adam, lion and sgd, beside fp32 moments and weights'
plan() { quern-train $flags --plan "$@" | grep -i 'optimizer'; }
check 'the plan knows' test "$(plan)" != "$(plan $low)"
check 'the plan knows 8bit' test "$(plan $eight)" != "$(plan $low)"
finish
