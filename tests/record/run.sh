#!/usr/bin/env bash
# make record: makes anew what the scripts here recorded from other systems, in place, and says of each file whether it
# came out as it was; `git diff` shows what did not.  Each group of peers has a virtual environment with the versions of
# requirements-GROUP.txt, and Python 3.11 (Debian 12's), outside the repository.
#   RECORD=FOLDER   where environments and peers' sources are kept [~/.cache/quern-record]
#   ONLY=PATTERN    steps whose script has it in its name
#   SHARED=FOLDER   data for what was recorded from more than the repository has; without it that is left
#   REDPAJAMA=FOLDER, CC_NET=FOLDER   sources that no package index has, of togethercomputer/RedPajama-Data (main) and
#                   facebookresearch/cc_net 1.0.0
#   KENLM=FOLDER    kenlm 0.3.0's source distribution, unpacked
#   TRANSFORMER_ENGINE=FOLDER   its sources (commit d0067d0), for fp8_blocks.py
#   CUDA=FOLDER     for fp8.sh and, with cuDNN's headers in it, cudnn_graphs.sh
# Exit status 1 if a file differs or a step fails; what cannot run here is counted and named.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3.11}
RECORD=${RECORD:-${XDG_CACHE_HOME:-$HOME/.cache}/quern-record}
SHARED=${SHARED:-}
R=tests/record D=tests/data
same=0 differ=0 failed=0 left=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export PATH=$PWD/${B:-build}/bin:$PATH
mkdir -p "$RECORD"
command -v "$python" >/dev/null || { echo "record: no $python here" >&2; exit 1; }

# The environment of a group, made when its list has changed.
environment() {
    local venv=$RECORD/$1 list=$R/requirements-$1.txt
    cmp -s "$list" "$venv/made-of" && return
    echo "# $1: installing what $list names"
    rm -rf "$venv"
    "$python" -m venv "$venv" && "$venv/bin/pip" install -q -r "$list" >"$RECORD/$1.log" 2>&1 && cp "$list" "$venv/made-of"
}
# The unpacked wheel of a package, of which a script loads files alone: source NAME VERSION.
source_of() {
    local at=$RECORD/src/$1-$2
    [ -d "$at" ] || {
        environment dialects && mkdir -p "$scratch/wheel" && "$RECORD/dialects/bin/pip" download -q --no-deps -d "$scratch/wheel" "$1==$2" &&
            mkdir -p "$at" && "$python" -m zipfile -e "$scratch"/wheel/*.whl "$at"
        rm -rf "$scratch/wheel"
    } >>"$RECORD/src.log" 2>&1
    echo "$at"
}
# Whether ONLY wants a script.
wanted() { case $1 in *"${ONLY:-}"*) ;; *) return 1 ;; esac; }
leave() { wanted "$1" || return; echo "left out: $1: $2"; left=$((left + 1)); }
# settle NAME FILE...: whether the files are as they are committed.
settle() {
    local name=$1 f
    for f in "${@:2}"; do
        if git diff --quiet -- "$f" && [ -z "$(git ls-files -o --exclude-standard -- "$f")" ]; then
            same=$((same + 1))
        else
            echo "differs: $f ($name)"
            differ=$((differ + 1))
        fi
    done
}
# step GROUP SCRIPT ARGUMENTS -- FILE...: runs a script that writes FILEs.  With one FILE after "->" instead, that is its
# standard output; if FILE ends in .zst it is packed, and left alone where what it holds is the same.
step() {
    local group=$1 script=$2 arguments=() to=
    shift 2
    wanted "$script" || return
    while [ "$1" != -- ] && [ "$1" != '->' ]; do arguments+=("$1"); shift; done
    [ "$1" = '->' ] && to=$2
    shift
    environment "$group" || { leave "$script" "no environment '$group' ($RECORD/$group.log)"; return; }
    if ! "$RECORD/$group/bin/python" "$R/$script" ${arguments[@]+"${arguments[@]}"} >"$scratch/out" 2>"$scratch/err" </dev/null; then
        echo "failed: $script ${arguments[*]-}: $(tail -n 1 "$scratch/err")"
        failed=$((failed + 1))
        return
    fi
    case $to in
    '') ;;
    *.zst) zstd -dcq "$to" | cmp -s - "$scratch/out" || zstd -19 -q -f "$scratch/out" -o "$to" ;;
    *) cp "$scratch/out" "$to" ;;
    esac
    [ "$group" != torch ] || "$RECORD/torch/bin/python" $R/last_places.py "$@"
    settle "$script" "$@"
}
# shared SCRIPT: whether there is data beside the repository for it.
shared() {
    wanted "$1" && { { [ -n "$SHARED" ] && [ -d "$SHARED/data" ]; } || { leave "$1" "SHARED names no folder with data"; return 1; }; }
}

# Facts that are compiled in.
step text html_entities.py -- curate/text/html_entities.inc
step text mojibake.py -- curate/clean/repair_data.inc
step text justext_pages.py lists '->' curate/html/justext_lists.inc
step datatrove words.py '->' curate/text/words_data.inc
step tokenizers unicode_classes.py '->' tokenize/ucd_table.c
step tokenizers tokenizer_classes.py '->' tokenize/hf_table.c
# Text.
step text mojibake_cases.py -- $D/clean/mojibake.jsonl
step text justext_pages.py pages $D/justext/*.html -- $D/justext
step datatrove words_cases.py '->' $D/words/cases.jsonl
step datatrove pii.py record 300 5 -- $D/clean/pii_datatrove.jsonl
# Statistics.
step scipy ablation.py '->' $D/ablation/ranking.json
# Files.
step crawl crawl.py - $D/crawl 4 -- $D/crawl
step crawl crawl_prune.py $D/crawl -- $D/crawl/prune.txt $D/crawl/prune.parquet $D/crawl/prune_none.parquet
step s3 s3_sign.py '->' $D/s3/signatures.tsv.zst
# Filters and classifiers.
step datatrove filter.py own '->' $D/filter/own.tsv
step datatrove filter_lists.py $D/filter -- $D/filter
step dialects filter_dialects.py docs '->' $D/filter/dialects.jsonl
nemo='' dolma=''
if wanted filter_dialects.py || wanted classify.py; then nemo=$(source_of nemo-curator 1.4.0) dolma=$(source_of dolma 1.2.1); fi
step dialects filter_dialects.py nemo "$nemo" '->' $D/filter/nemo.tsv
step dialects filter_dialects.py dolma "$dolma" '->' $D/filter/dolma.tsv
step dialects filter_dialects.py dclm - '->' $D/filter/dclm.tsv
step rpv2 rpv2.py own '->' $D/filter/rpv2.tsv
for script in filter.py filter_dialects.py rpv2.py; do
    shared $script || continue
    case $script in
    filter.py) step datatrove filter.py shared "$SHARED" '->' $D/filter/shared.tsv.zst ;;
    rpv2.py) step rpv2 rpv2.py shared "$SHARED" '->' $D/filter/rpv2_shared.tsv.zst ;;
    *)
        step dialects filter_dialects.py nemo "$nemo" "$SHARED" '->' $D/filter/nemo.tsv.zst
        step dialects filter_dialects.py dolma "$dolma" "$SHARED" '->' $D/filter/dolma.tsv.zst
        step dialects filter_dialects.py dclm - "$SHARED" '->' $D/filter/dclm.tsv.zst
        ;;
    esac
done
if shared languages.py && command -v quern >/dev/null; then
    SHARED=$SHARED python3 tests/shared/languages.py "$scratch/made.jsonl" && quern clean -q "$scratch/made.jsonl" >"$scratch/docs.jsonl"
    step languages languages.py icu "$scratch/docs.jsonl" '->' $D/filter/languages.tsv.zst
fi
if [ -d "${KENLM:-}/lm" ] && [ -d "${CC_NET:-}/cc_net" ]; then
    step kenlm perplexity.py "$KENLM" "$CC_NET" $D/tokenizer $D/perplexity -- $D/perplexity
else
    leave perplexity.py "KENLM= or CC_NET= is not set"
fi
CURATOR=$nemo step datatrove classify.py '->' $D/classify/answers.jsonl
# Deduplication and decontamination.
step datatrove minhash.py '->' $D/dedup/datatrove.jsonl
step text-dedup minhash_peers.py text-dedup '->' $D/dedup/text-dedup.jsonl
if [ -d "${REDPAJAMA:-}/app/src" ]; then
    step text-dedup minhash_peers.py rpv2 "$REDPAJAMA/app/src" '->' $D/dedup/rpv2.jsonl
else
    leave "minhash_peers.py rpv2" "REDPAJAMA= is not set"
fi
if [ -d "${CC_NET:-}/cc_net" ]; then
    PYTHONPATH=$CC_NET step datatrove dedup_lines.py $D/dedup -- $D/dedup
else
    leave dedup_lines.py "CC_NET= is not set"
fi
made=$scratch/decontaminate
mkdir "$made"
if wanted decontaminate.py; then
    step datatrove decontaminate.py "$(source_of nemo-curator 0.9.0)" "$made" --
fi
for f in "$made"/*.jsonl; do
    [ -f "$f" ] || continue
    to=$D/decontaminate/$(basename "$f")
    if [ -f "$to.zst" ]; then
        zstd -dcq "$to.zst" | cmp -s - "$f" || zstd -19 -q -f "$f" -o "$to.zst"
    else
        cp "$f" "$to"
    fi
done
[ ! -s "$made/docs.jsonl" ] || settle decontaminate.py $D/decontaminate
step datatrove parquet.py $D/parquet -- $D/parquet
# Tokenizers.
step tokenizers tokenizer_kinds.py $D/tokenizer/train "${QUERN:-build/bin/quern}" -- $D/tokenizer/train
step tokenizers tokenizer_across.py $D/tokenizer/train "${QUERN:-build/bin/quern}" -- $D/tokenizer/train/superbpe.jsonl.zst
for script in tokenizer tokenizer_spm tokenizer_tekken tokenizer_train; do
    step tokenizers $script.py $D/tokenizer -- $D/tokenizer
done
step tokenizers tokenizer_forms.py /dev/stdout '->' $D/tokenizer/forms.jsonl.zst
step tokenizers tokenizer_families.py '->' $D/tokenizer/families.json
leave tokenizer_edited.py "needs two versions of SentencePiece: see its head"
leave tokenizer_unigram.py "needs two versions of SentencePiece and texts in many languages: see its head"
# Training.
for script in gpt2_parity llama_parity moe_parity router_parity head_parity mtp_parity attention_parity value_parity qk_clip documents muon \
    optimizers hf_models hf_steps; do
    step torch $script.py -- $D/train
done
step torch nanogpt_parity.py '->' $D/train/nanogpt.tsv
step torch sft_parity.py $D/train/sft -- $D/train/sft
step torch megatron_dataset.py '->' $D/indexed_dataset/megatron.txt
step torch sample_trace.py '->' $D/train/sample_trace.txt
if command -v fasttext >/dev/null; then
    step dialects fasttext_answers.py $D/fasttext -- $D/fasttext
else
    leave fasttext_answers.py "no fasttext here (Debian's package)"
fi
# hashes COMMAND...: whether kernels_fp8_test.c has the last word of each line of what it says.
hashes() {
    local line
    while read -r line; do
        grep -qi "${line##* }" tests/unit/kernels_fp8_test.c && same=$((same + 1)) || { echo "differs: $line of $*"; differ=$((differ + 1)); }
    done < <("$@")
}
header=${CUDA:-/usr/local/cuda}/include/cuda_fp8.h
if [ ! -f "$header" ]; then
    leave fp8.sh "no $header"
elif wanted fp8.sh; then
    hashes sh $R/fp8.sh
fi
if [ -z "${TRANSFORMER_ENGINE:-}" ]; then
    leave fp8_blocks.py "TRANSFORMER_ENGINE names no folder with its sources"
elif wanted fp8_blocks.py && environment torch; then
    hashes "$RECORD/torch/bin/python" $R/fp8_blocks.py "$TRANSFORMER_ENGINE"
fi
if [ -f "${CUDA:-/usr/local/cuda}/include/cudnn.h" ]; then
    if wanted cudnn_graphs.sh; then
        sh $R/cudnn_graphs.sh "$(source_of nvidia-cudnn-frontend 1.32.0)/include" >"$scratch/graphs" && cp "$scratch/graphs" $D/cudnn/graphs.txt
        settle cudnn_graphs.sh $D/cudnn/graphs.txt
    fi
else
    leave cudnn_graphs.sh "no cuDNN's headers in ${CUDA:-/usr/local/cuda}"
fi
# Fits.
step fits fits.py -- $D/fit
# Comparisons that keep nothing: quern beside the peer, on what is built.
step datatrove parquet_diff.py -- $D/parquet
step text mojibake_diff.py 2000 1 $D/clean/mojibake.jsonl -- $D/clean
if shared justext_diff.py; then
    step text justext_diff.py "$SHARED/data/extraction/segment-benchmark/dev/html" .95 -- $D/justext
fi
echo "$same files as they were, $differ differ, $failed steps failed, $left left out"
[ "$differ$failed" = 00 ]
