#!/usr/bin/env bash
# What make gpu-check and gpu-bench run: without a GPU, without time, and what becomes JSON of what they say.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
built=$(cd "$ROOT" && cd "$B" && pwd)
if [ ! -x "$built/tests/gpu_check" ] || [ ! -x "$built/bench/gpu_train_bench" ]; then
    skip "the GPU's programs" "they are not built"
    finish
fi
export QUERN_CUDA=$T/none.so XDG_CACHE_HOME=$T/cache
mkdir -p b/tests b/bench
later=$(($(date +%s) + 1000))
# Whether a file is JSON: the tools read it, as a field of a document.
valid() { tr -d '\n' <"$1" | sed 's/.*/{"id":"x","text":"t","json":&}\n/' | quern clean -q >valid.jsonl; }
echo '{"a":[1,{"b":2}' >broken
check 'what is no JSON is seen' eval '! valid broken 2>seen'

# ---- no GPU ----
ln -s "$built/tests/gpu_check" b/tests/gpu_check
ln -s "$built/bench/gpu_train_bench" b/bench/gpu_train_bench
for what in check bench; do
    status "gpu-$what without a GPU" 2 bash "$ROOT/tests/gpu.sh" $what b "$later"
    has "says why" out "cannot open the CUDA backend: $T/none.so"
    equal "names its file last" "$(tail -n 1 out)" "b/gpu-$what.json"
    check "which is JSON" valid b/gpu-$what.json
    has "with the reason" b/gpu-$what.json "cannot open the CUDA backend: $T/none.so"
done

# ---- no time ----
QUERN_CUDA=$built/tests/simt-cuda.so status "a check without time" 1 "$built/tests/gpu_check" 1 - 0.000001
has "leaves out" out "# left out for time: matmul"
equal "and does not pass" "$(tail -n 1 out | sed 's/[1-9][0-9]*/N/')" "0 passed, 0 failed, N left out"

# ---- each comparison ----
QUERN_CUDA=$built/tests/simt-cuda.so status "one check" 0 "$built/tests/gpu_check" 1 "matmul of"
has "names a comparison" out "products, 8 groups of 240 rows, 48 to 40, bf16, bias: 0 of 9600 wrong, largest "
has "and the way" out "; one launch, tensor cores"

# ---- models: updates of two micro-batches ----
QUERN_CUDA=$built/tests/simt-cuda.so status "a model" 0 "$built/tests/gpu_check" 1 "GPT without dropout, bf16"
has "trains to the same bits by graphs" out "ok - GPT without dropout, bf16, 3 steps, the same bits as graphs"

# ---- JSON ----
rm b/tests/gpu_check
cat >b/tests/gpu_check <<'END'
#!/bin/sh
printf '%s\n' 'ok - matmul: product "a", 1 x 2: 0 of 2310 wrong, largest 0.0954, norm 0 of the tolerance; cuBLASLt tile 20' \
    'not ok - x: y: 3 of 4 wrong, largest nan, norm 1.2e+03 of the tolerance; why \ this' 'not ok - x: 1 of 2 failed' \
    '# cuda: cuDNN 91900'
printf 'op\tshape\tseconds\ncopy\tall\t0.5\ncopy\tsome\tdoes not run: "no"\n'
exit 1
END
chmod +x b/tests/gpu_check
status "a check that fails" 1 bash "$ROOT/tests/gpu.sh" check b "$later"
check "its JSON" valid b/gpu-check.json
comparison='"comparison":"matmul: product \"a\", 1 x 2","wrong":0,"of":2310,"largest":0.0954,"norm":0,"how":"cuBLASLt tile 20"'
for line in "\"ok\":true,$comparison" \
    '"ok":false,"comparison":"x: y","wrong":3,"of":4,"largest":"nan","norm":1.2e+03,"how":"why \\ this"' \
    '"ok":false,"check":"x: 1 of 2 failed"' '"line":"# cuda: cuDNN 91900"' '"op":"copy","shape":"all","seconds":0.5' \
    '"op":"copy","shape":"some","seconds":"does not run: \"no\""'; do
    has "has the line" b/gpu-check.json "{$line}"
done
finish
