#!/usr/bin/env bash
# quern train --qk-clip: the largest logits are the same however the work is divided, and so is what is scaled by them; a run goes on
# from its checkpoints to the same bits; what it does not go with is refused.
# shellcheck disable=SC2034,SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --num-attention-heads 4 --micro-batch-size 1 --global-batch-size 4 --lr 0.01 --hidden-dropout 0.1 --train-iters 6
    --init-method-std 0.3 --normalization RMSNorm --position-embedding-type rope --qk-clip --qk-clip-threshold 2"
groups='--group-query-attention --num-query-groups 2'
latent='--multi-latent-attention --qk-layernorm --q-lora-rank 12 --kv-lora-rank 10 --qk-head-dim 6 --qk-pos-emb-head-dim 4
    --v-head-dim 5 --qk-clip-alpha 0.3'
# Signs of gradients, none of which is rounding alone: no bias of keys, which a softmax takes out where keys are not turned.
lion='--optimizer lion --position-embedding-type learned_absolute --disable-bias-linear'
# logits LOG: the largest of each step.
logits() { grep -oE '"max_attention_logit":[^,]*' "$1" | cut -d: -f2; }
for kind in groups latent lion; do
    alone $kind 3 6
    check "$kind: steps are clipped, and the next ones are lower" awk 'NR == 1 { first = $1 } END { exit !(first > 5 && $1 < first / 2) }' \
        <(logits $kind.log)
    rm -f log
    check "$kind without" quern-train $flags ${!kind} --qk-clip-threshold 1e9 --log-file log
    check "$kind without: other numbers" test "$(numbers log)" != "$(numbers $kind.log)"
    for how in '--tensor-model-parallel-size 2 --sequence-parallel' '--pipeline-model-parallel-size 2 --recompute-granularity full' \
        '--context-parallel-size 2' '--data-parallel-sharding-strategy optim_grads_params' \
        '--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather'; do
        on 2 $kind $how
        check "$kind, $how: the same largest logits" awk '{ d = $1 - $2 } d > 1e-4 || d < -1e-4 { exit 1 }' \
            <(paste <(logits log) <(logits $kind.log))
    done
done
# With that bias nothing but logits shows it.
bias='--optimizer lion --position-embedding-type learned_absolute --qk-clip-threshold 1e9'
alone bias 3 6
on 2 bias --tensor-model-parallel-size 2
on 2 bias --context-parallel-size 2
bf16="$groups --bf16 --main-params-dtype bf16"
same_joined bf16
status 'bounded logits' 2 quern-train $flags --attn-logit-softcapping 5
has 'are named' err 'attn-logit-softcapping bounds logits already'
status 'norms of heads' 2 quern-train $flags --qk-layernorm
has 'are named' err 'behind --qk-layernorm'
status 'no share' 2 quern-train $flags --qk-clip-alpha 1
has 'is named' err 'qk-clip-alpha'
finish
