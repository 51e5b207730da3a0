#!/usr/bin/env bash
# What README and the pages show works when pasted, on small files of those names.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
page='<html lang=en><title>A page</title><p>The mill of the village stands by the river and grinds the grain of all who live there.</p>'
http=$(printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n%s' "$page")
printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://example.org/\r\n%s\r\n%s\r\n\r\n%s\r\n\r\n' \
    'Content-Type: application/http; msgtype=response' "Content-Length: $(printf %s "$http" | wc -c)" "$http" |
    gzip >crawl.warc.gz
awk 'BEGIN { for (i = 0; i < 200; i++) printf "{\"id\":\"d%d\",\"text\":\"document %d of some words\"}\n", i, i }' >docs.jsonl
for f in big wiki web; do cp docs.jsonl $f.jsonl; done
for f in web books; do zstd -q docs.jsonl -o $f.jsonl.zst; done
cp docs.jsonl books.jsonl
mkdir data crawl
cp crawl.warc.gz crawl

# Indented lines of a page from the first that begins with TEXT up to an empty one.
indented() { awk -v s="$2" 'index($0, "    " s) == 1 { on = 1 } on && $0 == "" { exit } on { print substr($0, 5) }' "$ROOT/$1"; }
# The first block of KIND in a page, or the Nth.
block() { awk -v s='```'"$2" -v n="${3:-1}" 'on && /^```/ { exit } on; $0 == s && --n == 0 { on = 1 }' "$ROOT/$1"; }

indented README.md 'set -o pipefail' >readme.sh
status "README's pipe" 0 bash -e readme.sh
check "it wrote its file" test -f docs.jsonl.zst
for _ in $(seq 10); do cat web.jsonl; done | zstd -q -f -o docs.jsonl.zst
indented README.md 'quern tokenizer train' | # as small as the documents
    sed 's/num-layers 12/num-layers 1/; s/size 768/size 32/; s/heads 12/heads 2/; s/seq-length 1024/seq-length 64/
        s/size 32000/size 300/; s/micro-batch-size 4 --global-batch-size 32/micro-batch-size 2 --global-batch-size 4/
        s/iters 10000/iters 2/' >train.sh
status "README's training" 0 bash -eo pipefail train.sh
has "writes a text" out "The mill"
block docs/curate.md yaml >plan.yaml
status "the plan of curate's page" 0 quern curate --check plan.yaml
if command -v quern-dedup >/dev/null && command -v quern-langid >/dev/null; then
    status "it runs" 0 quern curate -q plan.yaml
    block docs/curate.md yaml 2 | sed 's/preset: .*}/preset: c4, config: few.yaml}/' >branches.yaml # few words, but some
    printf 'c4: {too_few_sentences: 1}\n' >few.yaml
    status "and the one with branches" 0 quern curate -q branches.yaml
    status "which ends in a dataset" 0 quern dataset info tokens/000000_text_document
fi
cp docs.jsonl.zst crawl # what the ablation of its page names
zstd -q -f -d docs.jsonl.zst -o heldout-news.jsonl
printf '{"q": "the mill grinds", "choices": ["grain", "stone"], "gold": 0}\n' >arc.jsonl
cat >arc-easy.yaml <<'END'
task: arc-easy
output_type: multiple_choice
dataset_path: json
dataset_kwargs: {data_files: {test: arc.jsonl}}
test_split: test
doc_to_text: q
doc_to_choice: choices
doc_to_target: gold
END
block docs/ablation.md yaml >ablation.yaml
if command -v quern-ablate >/dev/null; then
    status "the ablation of its page" 0 quern ablate --dry-run ablation.yaml
    has "has five variants" out "5 variants, 4 seeds"
fi
block docs/mix.md '' | sed 's/1e10/5e2/' >mix.sh # not so many tokens of so little
equal "mix's page shows commands" "$(grep -c '^quern mix' mix.sh)" 6
status "they run" 0 bash -e mix.sh
indented docs/report.md 'quern dedup exact' >report.sh
status "report's page" 0 bash -eo pipefail report.sh
mkdir Llama-3.2-1B # as small as the test's, whose shape no preset has
cp "$ROOT"/tests/data/train/sft/{model/*,tokenizer.json} Llama-3.2-1B
cp "$ROOT/tests/data/train/sft/chat.jsonl" chats.jsonl
block docs/finetuning.md '' |
    sed 's/--preset llama3.2-1b/$model/; s/seq-length 2048/seq-length 128/; s/embeddings 131072/embeddings 128/
        s/iters 200/iters 4/; s/iters 10 /iters 1 /; s/batch-size 16/batch-size 4/' >finetune.sh
export model="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --ffn-hidden-size 48
    --swiglu --normalization RMSNorm --norm-epsilon 1e-6 --position-embedding-type rope --disable-bias-linear --add-qkv-bias"
status "finetuning's recipe" 0 bash -eo pipefail finetune.sh
check "PEFT's files" test -s adapter/adapter_config.json -a -s adapter/adapter_model.safetensors
check "a model of its own" test -s model/model.safetensors
finish
