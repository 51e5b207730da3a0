#!/usr/bin/env bash
# quern train, eval and generate with --device cuda: the CUDA kernels, run on the CPU by a backend that is opened as the real one
# is (tests/simt_backend.cpp), against the CPU's own.
# shellcheck source=tests/lib.sh disable=SC2046,SC2086
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/cuda_lib.sh
. "$ROOT/tests/cuda_lib.sh"

as_the_cpu gpt ${SWEEP:+llama}

SIMT_LATE=1 status "the same again, queued and late" 0 quern-train $run $gpt --bf16 --device cuda --log-file again.jsonl
same "the same bits" <(sed 's/,"tokens_per_s.*//' gpt-bf16-cuda.jsonl) <(sed 's/,"tokens_per_s.*//' again.jsonl)

# ---- checkpoints go from one device to the other ----
check "algorithms are kept" grep -q "by tests/simt.h" cache/quern/cublaslt.tsv
n=$(wc -l <cache/quern/cublaslt.tsv)
status "algorithms are found again" 0 quern-train $run $gpt --bf16 --device cuda --train-iters 1
equal "and are not sought again" "$(wc -l <cache/quern/cublaslt.tsv)" "$n"
rm -rf half && cp -r gpt-fp32-cuda half && rm -rf half/iter_0000006 && echo 3 >half/latest_checkpointed_iteration.txt
status "a resumed run" 0 quern-train $run $gpt --device cuda --save half --log-file rest.jsonl
same "goes on with the same bits" <(sed 's/,"tokens_per_s.*//;1,3d' gpt-fp32-cuda.jsonl) <(sed 's/,"tokens_per_s.*//' rest.jsonl)
for device in cpu cuda; do
    status "eval on $device" 0 quern-eval --load gpt-fp32-cuda --data-path data --split 80,10,10 --device $device
    grep -o 'loss [0-9.]*' out | cut -c1-11 >eval-$device
    status "generate on $device" 0 quern-generate --load gpt-fp32-cuda --prompt-ids 1,2,3 --max-tokens 8 --temperature 0 --device $device
    cp out text-$device
done
same "the same loss" eval-cpu eval-cuda
same "the same tokens" text-cpu text-cuda
status "without cuBLASLt and cuDNN" 0 env SIMT_NO_LT=1 quern-train $run $gpt --bf16 --device cuda --train-iters 1
has "is said" err "no cuBLASLt was found"
has "of both" err "no cuDNN 9 was found"
status "with them" 0 env SIMT_DNN=91900 quern-train $run $gpt --bf16 --device cuda --train-iters 1
check "nothing is" bash -c "! grep -q \"was found\" err"
status "auto takes it" 0 quern-train $run $gpt --device auto --train-iters 1
has "and says so" out "device: cuda"
needed=$(sed -nE 's/^memory allocated: weights ([0-9]+) \+ gradients ([0-9]+) \+ optimizer ([0-9]+) \+ activations ([0-9]+) .*/\1+\2+\3+\4/p' out)
status "a GPU with too little memory" 3 env SIMT_ROOM=200000 quern-train $run $gpt --device cuda --log-file none.jsonl
has "is told before anything is allocated" err "this run needs, on the GPU, 0.0 GiB of memory; 0.0 can be used here"
check "and no log is begun" [ ! -e none.jsonl ]
two="plain 2 quern-train $run $gpt --device cuda --distributed-backend tcp --train-iters 1"
status "a GPU with just enough" 0 env SIMT_ROOM=$((needed)) quern-train $run $gpt --device cuda --train-iters 1
SIMT_ROOM=$((2 * (needed) - 1)) status "that two ranks share, which need twice that" 3 $two
has "are weighed together" err "the 2 ranks on one GPU need 0.0 GiB of memory; 0.0 can be used here"
SIMT_ROOM=$((2 * (needed))) status "a GPU with enough for two" 0 $two
SIMT_ROOM=$((needed)) SIMT_CARDS=1 status "a GPU each" 0 $two
status "no GPU: told why" 3 env QUERN_CUDA=/no/such.so quern-train $run $gpt --device cuda
has "what is missing" err "/no/such.so"
finish
