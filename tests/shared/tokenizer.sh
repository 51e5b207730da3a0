#!/usr/bin/env bash
# Every id of 60 texts and 6,000 strings, against recorded ones.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$SHARED/data/tokenizers

# recorded NAME FOLDER TOKENIZER [OPTION...]
recorded() {
    local name=$1 set=$2 tok=$3 golden
    shift 3
    mkdir -p g && tar -I zstd -xf "$D/golden/$set.tar.zst" -C g || { bad "$name" "no recorded ids"; return; }
    golden=g/$set
    [ -d "$golden" ] || golden=$(find g -name fuzz.jsonl -exec dirname {} \; | head -1)
    python3 - "$D/texts" "$golden" >"$set.jsonl" <<'PY'
import json, os, sys
texts, golden = sys.argv[1:]
for f in sorted(os.listdir(texts)):
    want = os.path.join(golden, f[:-4] + ".json")
    if f.endswith(".txt") and os.path.exists(want):
        print(json.dumps({"text": open(os.path.join(texts, f), encoding="utf-8", newline="").read(),
                          "ids": json.load(open(want))}))
fuzz = [json.loads(l)["text"] for l in open(os.path.join(texts, "fuzz.jsonl"), encoding="utf-8")]
for text, line in zip(fuzz, open(os.path.join(golden, "fuzz.jsonl"), encoding="utf-8")):
    ids = json.loads(line)
    print(json.dumps({"text": text, "ids": ids["ids"] if isinstance(ids, dict) else ids}))
PY
    n=$(wc -l <"$set.jsonl")
    status "$name" 0 quern tokenizer verify --tokenizer "$tok" --against "$set.jsonl" "$@"
    equal "$name: all of them" "$(cat out)" "$n texts have the same ids, 0 differ"
    [ "$n" -ge 6000 ] || bad "$name" "only $n texts"
    for isa in base avx2; do
        QUERN_ISA=$isa status "$name, $isa" 0 quern tokenizer verify --tokenizer "$tok" --against "$set.jsonl" "$@"
    done
    rm -rf g
}

recorded "GPT-2" gpt2 "$D/gpt2"
recorded "GPT-2, ranks" gpt2 "$D/tiktoken/r50k_base.tiktoken"
recorded "cl100k" cl100k_base "$D/tiktoken/cl100k_base.tiktoken"
recorded "o200k" o200k_base "$D/tiktoken/o200k_base.tiktoken"
recorded "GPT-NeoX" hf-gpt-neox-olmo-dolma "$D/hf/gpt-neox-olmo-dolma/tokenizer.json" --allow-special
mkdir -p g && tar -I zstd -xf "$D/golden/spm.tar.zst" -C g || bad "SentencePiece" "no recorded ids"
for m in google-test_model google-test_ja_model sp8k_bpe_bytefallback sp8k_unigram_nmt_nfkc; do
    status "SentencePiece, $m" 0 quern tokenizer verify --sentencepiece 0.2.1 --tokenizer "$D/sentencepiece/$m.model" --against "g/spm-$m.jsonl"
    equal "SentencePiece, $m: all of them" "$(cat out)" "5761 texts have the same ids, 0 differ"
    quern tokenizer encode --jsonl --tokenizer "$D/sentencepiece/$m.model" "g/spm-$m.jsonl" |
        quern tokenizer decode --jsonl --tokenizer "$D/sentencepiece/$m.model" |
        python3 -c 'import json, sys
print(sum(json.loads(a)["decoded"] != json.loads(b) for a, b in zip(open(sys.argv[1]), sys.stdin, strict=True)))' "g/spm-$m.jsonl" >out
    equal "SentencePiece, $m: decoded" "$(cat out)" 0
done
finish
