#!/usr/bin/env bash
# Adapters of experts that a router chooses: beside merged weights, on ranks that share the experts, resumed, saved, generated from.
# shellcheck disable=SC2034,SC2048,SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 8 --lr 0.01 --hidden-dropout 0 --train-iters 6"
rope="--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights"
experts="--num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 16"
moe="$rope $experts --moe-aux-loss-coeff 0.02 --lora-rank 4 --lora-target *linear_*"
alone="$experts --moe-layer-freq 2 --lora-rank 3 --lora-rslora --lora-target experts.*"
beside="$rope $experts --moe-shared-expert-intermediate-size 16 --lora-rank 2 --lora-target experts.linear_fc1 --lora-target *_proj"
capacity="$rope $experts --moe-expert-capacity-factor 0.7 --moe-pad-expert-input-to-capacity --lora-rank 8 --lora-target experts.*"

# tensors FOLDER PATTERN: how many of a checkpoint's match.
tensors() { quern-checkpoint info "$1" --tensors | grep -c -- "$2"; }
# merged_alike STEP: the model of that step of moe and the same merged have losses within 2e-6.
merged_alike() {
    rm -rf merged
    quern-checkpoint merge moe --ckpt-step $1 --save merged >/dev/null || return 1
    paste <(quern-eval --load moe --ckpt-step $1 --data-path data --part whole --micro-batch-size 4) \
        <(quern-eval --load merged --data-path data --part whole --micro-batch-size 4) |
        awk '{ for (i = 1; i < NF; i++) if ($i == "loss") v[n++] = $(i + 1) } END { d = v[0] - v[1]; exit !(n == 2 && d * d < 4e-12) }'
}

for kind in moe alone beside capacity; do
    alone $kind 3 6
    equal "$kind: memory as planned" "$(grep '^memory allocated' $kind.out | grep -c 'as planned$')" 1
    check "$kind learns" learns $kind.log
    for how in full selective; do
        rm -f log
        check "$kind, $how" quern-train $flags ${!kind} --recompute-granularity $how --log-file log
        equal "$kind, $how: the same bits" "$(numbers log)" "$(numbers $kind.log)"
    done
    on 2 $kind --tensor-model-parallel-size 2 --sequence-parallel
    on 2 $kind --expert-model-parallel-size 2
    check "$kind, bf16" quern-train $flags ${!kind} --bf16
    cached $kind
done
on 4 moe --expert-model-parallel-size 2 --tensor-model-parallel-size 2
on 4 moe --expert-model-parallel-size 2 --data-parallel-sharding-strategy optim_grads_params
on 2 moe --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
on 2 moe --context-parallel-size 2
for kind in moe alone; do
    on 2 $kind --pipeline-model-parallel-size 2
    on 2 $kind --data-parallel-sharding-strategy optim_grads_params --recompute-granularity full
done
on 2 moe --optimizer-cpu-offload
muon="$moe --optimizer muon"
alone muon 3 6
# Muon brings the small singular values of a gradient of low rank up to the others, and rounding with them: without a rank, AVX2 and
# the plain loops are 4e-7 apart at step 3 and 7e-4 at step 6.
rm -f log
check "muon, 4 ranks" ranks_train 4 $flags $muon --log-file log --expert-model-parallel-size 2 --use-distributed-optimizer
check "muon, 4 ranks: as one process" close <(head -n 3 muon.log) <(head -n 3 log) 6 1e-4

# The kernels of the GPU, run on the CPU: of ranks that tensor cores take, for which the host knows no counts, and of others.
eight="${moe/rank 4/rank 8}"
for kind in moe eight capacity alone; do
    for device in cpu cuda; do
        rm -f $device.log
        status "$kind, $device, bf16" 0 env QUERN_CUDA="$B/tests/simt-cuda.so" quern-train ${flags/--device cpu} ${!kind} --bf16 --train-iters 3 \
            --device $device --log-file $device.log
    done
    for device in cpu cuda; do
        grep -oE '"(loss|grad_norm)":[^,}]*' $device.log | cut -d: -f2 >$device.numbers
    done
    check "$kind: the CPU's losses, and norm of the first step" awk '{ getline x <"cpu.numbers"; d = $1 - x; if (d < 0) d = -d; n++
        if (n <= 2 ? d > 5e-4 : n % 2 && d > 5e-3) exit 1 } END { exit n != 6 }' cuda.numbers
done

# The same bits for any division over data-parallel ranks, and over those that share experts.
divided moe
rm -f log
check "deterministic, shared experts" plain 2 quern-train $flags $moe --deterministic --distributed-backend tcp \
    --expert-model-parallel-size 2 --log-file log
equal "deterministic, shared experts: the same bits" "$(numbers log)" "$(numbers one.log)"
same_joined moe
rm -rf two joined
check "shared experts are saved" plain 2 quern-train $flags $moe --deterministic --distributed-backend tcp --expert-model-parallel-size 2 \
    --save two
check "and joined" quern-checkpoint join two --save joined
for f in model optimizer; do
    same "shared experts: the same bytes of the $f" whole/*/$f.safetensors joined/*/$f.safetensors
done
rm -f log
check "what they saved goes on alone" quern-train $flags $moe --load two --train-iters 7 --log-file log
equal "from its step" "$(grep -c '"step":7,' log)" 1

# Of each expert a matrix of its own; nothing else is trained.
for half in A B; do
    equal "each expert has its $half" "$(tensors moe "^  decoder.*local_experts\.[0-3]\.linear_fc[12]\.lora_$half\.weight")" 16
done
equal "moments are of adapters alone" "$(tensors moe '^  exp_avg\.')" "$(tensors moe '^  decoder.*\.lora_[AB]\.')"
equal "experts alone: no other adapter" "$(tensors alone '^  decoder.*\.lora_[AB]\.')" 16

# Merged they compute the same, at each of ten steps.
rm -rf moe
check "ten steps" quern-train $flags $moe --train-iters 10 --save moe --save-interval 1
for step in $(seq 10); do
    check "step $step: merged weights compute the same" merged_alike $step
done
equal "merged there are none" "$(tensors merged lora_A)" 0
check "which transformers take" quern-checkpoint export merged --output hf

# New ones, of a base: B is 0.
check "a base" quern-train $flags ${moe%%--lora*} --train-iters 2 --save base
rm -f log
check "adapters of it" quern-train $flags $moe --load base --train-iters 1 --log-file log
rm -f again
check "the base goes on" quern-train $flags ${moe%%--lora*} --load base --finetune --train-iters 1 --log-file again
equal "the first loss is the base's" "$(grep -o '"loss":[^,]*' log)" "$(grep -o '"loss":[^,]*' again)"
status "other layers than it has" 2 quern-train $flags $moe --lora-target linear_qkv --load alone
status "experts of a model without" 2 quern-train $flags --lora-rank 4 --lora-target 'experts.*'
has "are named" err "'experts.*' is none of linear_qkv, linear_proj, linear_fc1, linear_fc2"
finish
