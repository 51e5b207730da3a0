#!/usr/bin/env bash
# Attention alone, causal, 12 heads of 64, one sequence of 1024 and of 4096 tokens, forward and backward: processor seconds
# beside those of PyTorch's scaled_dot_product_attention, on one thread, in turns, medians.  ROUNDS of each.
. bench/lib.sh
rounds=${ROUNDS:-3}
program kernels_bench
export OMP_WAIT_POLICY=passive

# ours TYPE T: milliseconds, forward and backward together.
ours() {
    "$B/bench/kernels_bench" 1 "${SECONDS_EACH:-0.3}" cpu "$1.T$2.attention" 2>/dev/null |
        awk -F'\t' '$1 ~ /attention/ { sum += $4 } END { print sum }'
}
for t in 1024 4096; do
    for dt in fp32 bf16; do
        rm -f "$T/ours" "$T/plain" "$T/torch"
        for ((r = 0; r < rounds; r++)); do
            ours "$dt" "$t" >>"$T/ours"
            [ "$dt" = fp32 ] || ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI ours "$dt" "$t" >>"$T/plain"
            [ -z "${PEERS:-}" ] || "$PEERS" bench/attention_torch.py "$dt" "$t" 1 >>"$T/torch" || exit 1
        done
        a=$(median <"$T/ours")
        row "attention_${dt}_$t" "$a" ms "forward and backward, processor time, one thread"
        [ "$dt" = fp32 ] || row "attention_${dt}_${t}_through_fp32" "$(median <"$T/plain")" ms \
            "as where bf16 is not multiplied: $(over "$(median <"$T/plain")" "$a") times as long"
        if [ -s "$T/torch" ]; then
            row "attention_torch_${dt}_$t" "$(median <"$T/torch")" ms \
                "PyTorch: $(over "$(median <"$T/torch")" "$a") times as long"
        else
            row "attention_torch_${dt}_$t" - - 'left out: no torch (set PEERS)'
        fi
    done
done
