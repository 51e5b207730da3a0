# shellcheck shell=bash
# What --plan says of a step's time: near published figures, op by op, and by the file of a measured device.
. "$ROOT/tests/lib.sh"

# near NAME PUBLISHED FACTOR ARG...: tokens a second of the plan are the published ones within a factor.
near() {
    local name=$1 published=$2 factor=$3
    shift 3
    check "$name: a plan" quern-train --plan --bf16 "$@"
    equal "$name: tokens a second within $factor of $published" \
        "$(awk -v want="$published" -v factor="$factor" '/ tokens\/s/ { for (i = 2; i <= NF; i++) if ($i ~ /^tokens/) got = $(i - 1) }
            END { print (got < want * factor && got > want / factor ? "near" : got) }' out)" near
}
# llm.c, discussion 481 and after it: one micro-batch of 64 a device.
gpt="--preset gpt2-124m --micro-batch-size 64 --global-batch-size 512 --plan-ranks 8"
# shellcheck disable=SC2086
{
    near 'GPT-2 124M on 8 A100, llm.c' 1850000 1.15 $gpt --plan-device a100
    near 'GPT-2 124M on 8 H100, llm.c' 3700000 1.35 $gpt --plan-device h100
}
large="--preset gpt2-1.5b --micro-batch-size 16 --global-batch-size 128 --plan-device h100"
# shellcheck disable=SC2086
{
    near 'GPT-2 1.5B on an H100, LLM.Q' 58900 1.15 $large
    near 'GPT-2 1.5B on an H100 in FP8, LLM.Q' 73000 1.15 $large --fp8-format hybrid
}
# Measured: 131,072 tokens a step.
wide="--preset llama2-7b --num-layers 16 --micro-batch-size 4 --global-batch-size 32 --plan-device h200"
# shellcheck disable=SC2086
{
    near "Llama 7B's widths on an H200, in FP8" 43500 1.1 $wide --fp8-format hybrid
    near 'the same by blocks' 35730 1.1 $wide --fp8-format e4m3 --fp8-recipe blockwise
    has 'of which products by blocks' out 'product in FP8 by blocks     1024'
    has 'gradients of weights by blocks' out 'weight gradient, blocks       512'
    equal 'and no other in FP8' "$(grep -c '^product in FP8  ' out)" 0
}
for recipe in delayed tensorwise blockwise; do
    # shellcheck disable=SC2086
    quern-train --plan --bf16 $wide --fp8-format e4m3 --fp8-recipe $recipe | awk '/^step:/ { print $2 }'
done >steps
check 'one scale a tensor takes less than blocks, remembered scales least' sort -c -g -u steps
ranks="--tensor-model-parallel-size 8 --sequence-parallel"
shared="$ranks --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --plan-device h100"
third="--preset gpt3-175b --seq-length 4096 --max-position-embeddings 4096 --vocab-size 131072 --global-batch-size 1152
    --pipeline-model-parallel-size 12 --num-layers-per-virtual-pipeline-stage 1"
# shellcheck disable=SC2086
{
    # 420 TFLOP/s a device; mfu 47 % and 42 %
    near 'Llama 2 70B on 1024 H100, Megatron-LM' 1003000 1.2 --preset llama2-70b $shared --pipeline-model-parallel-size 4 \
        --global-batch-size 1024 --plan-ranks 1024
    near 'GPT-3 175B on 96 H100, Megatron-LM' 41200 1.2 $third $shared --plan-ranks 96
    near 'GPT-3 175B on 4608 H100, Megatron-LM' 1765000 1.2 $third $shared --plan-ranks 4608
    # arXiv:2407.21783, table 4: 400 TFLOP/s a device
    near 'Llama 3.1 405B on 16384 H100' 2600000 1.2 --preset llama3.1-405b $shared --pipeline-model-parallel-size 16 \
        --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --num-virtual-stages-per-pipeline-rank 4 \
        --global-batch-size 2048 --plan-ranks 16384
    # arXiv:2205.05198, whose attention wrote its scores to memory: 13.75 s
    near 'GPT-3 175B on 64 A100, 2022' 9532 1.35 --preset gpt3-175b $ranks --global-batch-size 64 --plan-ranks 64 --plan-device a100 \
        --pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 4
    near 'Llama 2 7B on 128 H100, FSDP' 1228800 1.35 --preset llama2-7b --plan-ranks 128 --plan-device h100 --micro-batch-size 2 \
        --global-batch-size 256 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
        --data-parallel-sharding-strategy optim_grads_params
}
# A newer device is faster.
for device in a100 h100 h200 b200; do
    # shellcheck disable=SC2086
    quern-train --plan --bf16 --preset gpt2-1.5b --micro-batch-size 8 --global-batch-size 64 --plan-device $device |
        awk '/^step:/ { print $2 }'
done >steps
check 'each device is faster than the one before' sort -c -g -r steps
check 'a plan in fp32' quern-train --plan --preset gpt2-124m --plan-device h100
check 'experts' quern-train --plan --bf16 --preset mixtral-8x7b --plan-device h200 --plan-ranks 8 --expert-model-parallel-size 8 \
    --use-distributed-optimizer
has 'have rows that move' out 'route: join rows'

# ---- a measured device ----
cat >h200.jsonl <<'END'
{"device":"cuda: NVIDIA H200, 2 threads","version":1}
{"op":"product","m":16384,"n":6400,"k":1600,"d":0,"kv":0,"seconds":0.00105}
END
# shellcheck disable=SC2086
check 'a plan by a measured device' quern-train --plan --bf16 $large --plan-device ./h200.jsonl
has 'says how much of it was measured' out 'rates: measured of 1 ops, else calculated'
equal 'and of which op' "$(awk '/^product / { print $NF }' out)" measured
equal 'whose seconds are twice the calculated ones' "$(awk '/^product / { print ($3 > 3 && $3 < 4.5) }' out)" 1
cat >blocks.jsonl <<'END'
{"device":"cuda: NVIDIA H200","version":1}
{"op":"product in FP8 by blocks","m":16384,"n":22016,"k":4096,"d":0,"kv":0,"seconds":0.0055}
{"op":"weight gradient, blocks","m":4096,"n":11008,"k":16384,"d":8,"kv":0,"seconds":0.00142}
{"op":"to FP8 by blocks","m":16384,"n":4096,"k":0,"d":0,"kv":0,"seconds":0.000101}
END
# shellcheck disable=SC2086
check 'a plan by blocks by a measured device' quern-train --plan --bf16 $wide --fp8-format e4m3 --fp8-recipe blockwise \
    --plan-device ./blocks.jsonl
equal 'has all three' "$(awk '/blocks/ && $NF == "measured"' out | wc -l)" 3
equal 'products that take twice what is calculated' \
    "$(awk '/^product in FP8 by blocks / { print ($7 > 2.9 && $7 < 3.5) }' out)" 1
grep -v blocks "$ROOT/bench/results/h200.jsonl" >before.jsonl
# shellcheck disable=SC2086
check 'a file from before there were these' quern-train --plan --bf16 $wide --fp8-format e4m3 --fp8-recipe blockwise \
    --plan-device ./before.jsonl
has 'which has others' out 'rates: measured of 25 ops'
equal 'and these calculated' "$(awk '/blocks/ && $NF == "measured"' out | wc -l)" 0
status 'a file that is none' 3 quern-train --plan --preset gpt2-124m --plan-device ./nowhere.jsonl
echo '{}' >odd.jsonl
status 'another file' 3 quern-train --plan --preset gpt2-124m --plan-device ./odd.jsonl
has 'is said' err './odd.jsonl: line 1: no device and version 1'
status 'no name of a device' 2 quern-train --plan --preset gpt2-124m --plan-device abacus
has 'the names are said' err "'abacus' is none of a100, h100, h200, b200, and no file"
finish
