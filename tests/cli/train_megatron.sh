# shellcheck shell=bash
# The flags of Megatron-LM's own recipes (examples/gpt3, llama, mixtral), with smaller sizes: taken, or refused with a reason.
# shellcheck disable=SC2034,SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
common="-j 1 --device cpu --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16
    --vocab-size 61 --lr-decay-style cosine --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0 --log-interval 1
    --eval-interval 1000 --eval-iters 0 --tensorboard-dir board"
gpt3="$common --attention-backend auto --micro-batch-size 1 --global-batch-size 8 --rampup-batch-size 2 2 12 --train-samples 48
    --init-method-std 0.006 --bf16 --lr 6.0e-5 --min-lr 6.0e-6 --lr-warmup-fraction .001 --lr-decay-iters 430000
    --data-path data --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt --split 949,50,1 --save-interval 10000 --save s"
llama="$common --use-mcore-models --ffn-hidden-size 96 --group-query-attention --num-query-groups 2 --kv-channels 8
    --position-embedding-type rope --rotary-base 1000000 --rotary-percent 1.0 --attention-dropout 0.0 --hidden-dropout 0.0
    --swiglu --init-method-std 0.0134 --attention-backend fused --untie-embeddings-and-output-weights --disable-bias-linear
    --apply-layernorm-1p --sequence-parallel --micro-batch-size 1
    --global-batch-size 4 --train-samples 8 --lr-decay-samples 7 --lr-warmup-samples 3 --lr 0.00015 --min-lr 0.00001 --bf16
    --cross-entropy-loss-fusion --calculate-per-token-loss --manual-gc --empty-unused-memory-level 1
    --exit-duration-in-mins 235 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --mock-data
    --tokenizer-type NullTokenizer --data-cache-path cache --tiktoken-pattern v2 --split 99,1,0 --num-workers 1
    --no-create-attention-mask-in-dataloader --no-mmap-bin-files --log-throughput --profile --profile-step-start 4
    --profile-step-end 6 --distributed-timeout-minutes 60"
mixtral="$common --use-mcore-models --disable-bias-linear --ffn-hidden-size 96 --normalization RMSNorm --swiglu
    --position-embedding-type rope --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2
    --no-masked-softmax-fusion --no-position-embedding --rotary-base 1000000 --num-experts 4 --moe-router-topk 2
    --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
    --overlap-param-gather --overlap-grad-reduce --use-distributed-optimizer --tokenizer-type Llama2Tokenizer
    --tokenizer-model tokenizer.model --mock-data --micro-batch-size 1 --global-batch-size 4 --lr 1e-4 --train-iters 2
    --min-lr 1.0e-5 --no-load-optim --no-load-rng"
for m in gpt3 llama mixtral; do
    check "$m" quern-train ${!m} --log-file $m.jsonl
    has 'what changes nothing is said' err "Megatron's flags that change nothing here: --"
done
equal 'a ramp of three words' "$(grep -o '"batch":[0-9]*' gpt3.jsonl | cut -d: -f2 | head -5 | tr '\n' ' ')" '2 2 4 6 8 '
check 'other names' quern-train $mixtral --no-position-embedding --recompute-activations --verbose
has 'are ours' out 'recompute-granularity                selective'
check 'linear angles, a value behind =' quern-train $llama --rotary-seq-len-interpolation-factor=4 --manual-gc-interval=5 --seed=7 --verbose
has 'are ours' out 'rope-scaling-type                    linear'
has 'with their value' out 'rope-scaling-factor                  4'
has 'as is one that is ours' out 'seed                                 7'
check 'yarn' quern-train $llama --position-embedding-type yarn --yarn-rotary-scaling-factor 32.0 --yarn-beta-slow=0.5 \
    --yarn-original-max-position-embeddings 4096 --yarn-mscale=1.0 --verbose
has 'is scaled rotary angles' out 'position-embedding-type              rope'
has 'of that type' out 'rope-scaling-type                    yarn'
has 'with its numbers' out 'rope-scaling-low                     0.5'
check 'a window' quern-train $llama --window-size 3,0 --window-attn-skip-freq 2 --verbose
has 'is the tokens before' out 'window-size                          3'
has 'not in all layers' out 'window-attn-skip-freq                2'
check 'a window in parentheses' quern-train $llama "--window-size=(4, 0)" --verbose
has 'is the same' out 'window-size                          4'
status 'a window to both sides' 2 quern-train $llama --window-size 3,2
has 'is none' err "--window-size: '3,2' is not N,0"
# refuses FLAG... SAYS: the last word is what the error has.
refuses() { status "${*:1:$#-1}" 2 quern-train $llama "${@:1:$#-1}"; has 'says why' err "${!#}"; }
refuses --fp16 '--fp16 of Megatron cannot be done here: training is in fp32 or, with --bf16'
refuses --lr-warmup-samples 7 'is not less than the 7 samples of the decay'
refuses --lr-decay-iters 2 'give one of them'
refuses --hybrid-override-pattern M 'all layers are attention and an MLP'
refuses --moe-router-dtype bf16 'it can only be fp32 fp64'
refuses --dataloader-type cyclic 'it can only be single'
refuses --muon-tp-mode blockwise 'it can only be duplicated distributed'
refuses --muon-scalar-optimizer lion 'it can only be adam'
refuses --dataloader-type=cyclic 'it can only be single'
refuses --fp16=yes '--fp16 of Megatron cannot be done here'
refuses --use-mcore-models=1 "unknown option '--use-mcore-models"
refuses --cp-comm-type a2a 'it can only be p2p'
refuses --no-such-flag "unknown option '--no-such-flag'"
# What asks for a guarantee, an output or a format that is not there is not passed over.
refuses --rerun-mode validate_results 'it can only be disabled'
refuses --ckpt-format torch_dist 'checkpoints have one format'
refuses --dist-ckpt-format zarr 'checkpoints have one format'
refuses --dist-ckpt-strictness log_all 'never loaded'
refuses --log-straggler 'not timed against each other'
refuses --log-params-norm 'no norm of the weights'
refuses --log-memory-to-tensorboard '--log-file the phases'
refuses --moe-per-layer-logging 'the mean of layers'
refuses --use-pytorch-profiler '--trace writes a timeline'
refuses --wandb-project Mixtral 'no connection to Weights & Biases'
has 'the hint after a refused flag names the program' err "try 'quern train --help'"
check 'a mode that is ours by another name' quern-train $gpt3 --deterministic-mode --rerun-mode disabled --verbose
has 'deterministic-mode is --deterministic' out 'deterministic                        true'
finish
