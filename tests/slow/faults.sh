#!/usr/bin/env bash
# Every allocation of every tool fails in turn (tests/faults.c): the tool says so, ends with 3, and leaves nothing
# under a final name.  And tools that write are killed just before each change of a file: nothing half-written has a final
# name, and the next run ends as the first would have.  Of the faults at one place in a program's code the first of its first
# run and each sixteenth of every run is taken; FAULT_STEP=1 takes all.  CASES=pattern takes some of the runs.
# In memory where there is room: ext4 takes most of the time for passing over inodes that were freed within five seconds.
[ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 1000000 ] 2>/dev/null && export TMPDIR=/dev/shm
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
case $B in /*) ;; *) B=$ROOT/$B ;; esac
[ -f "$B/tests/faults.so" ] || { bad "faults.so is built (make slow-tests)"; finish; }
data=$ROOT/tests/data
export FAIL_ANY='\.stats$' FAIL_FOLDER=$T/runs FAIL_STEP=${FAULT_STEP:-16} FAIL_JOBS=${JOBS:-$(nproc)} OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
mkdir "$FAIL_FOLDER" in
cd in || exit 1
in=$PWD PRELOAD=

# sweep NAME [VARIABLE=VALUE...] COMMAND...: all its cases.  `out` and other files of the command are made in a folder
# that is looked at after each; inputs are $in/NAME.
sweep() {
    local name=$1 set=()
    shift
    while [[ $1 == *=* ]]; do set+=("$1"); shift; done
    [[ $name =~ ${CASES:-} ]] || return 0
    command -v "quern-${1#quern-}" >/dev/null || [ "$1" = quern ] || return 0
    env FAIL_NAME="$name" FAIL_SEEN="$T/seen.$1" "${set[@]}" LD_PRELOAD="$B/tests/faults.so $PRELOAD" "$@" </dev/null 2>"$T/log" || {
        not_ok=1
        cat "$T/log"
    }
}

# ---- inputs ----
text='The mill grinds the corn that the farmers of the valley bring, and the river turns its wheel all day and all night.'
{
    printf '{"id":"a","url":"http://www.example.com/one","lang":"en","text":"%s %s"}\n' "$text" "$text"
    printf '{"id":"b","url":"http://h.example.org/two","text":"%s\\nWrite to me@example.com or 10.1.2.3 \\u00c3\\u00a9 \\ufb01&amp;.\\r\\n\\r\\n\\r\\n\\r\\nEnd."}\n' "$text"
    printf '{"id":"c","text":"%s"}\n' "$text"
    printf '{"id":"d","text":"%s"}\n' "$text"
    printf '{"id":"e","n":1,"text":"Wer rastet, der rostet, sagt man im Land, und wer nicht rastet, der kommt zu nichts.","x":{"y":[1,2]}}\n'
    printf '{"id":"f","text":"%s"}\n' "$(seq -s ' ' 300)"
} >docs.jsonl
gzip -c docs.jsonl >docs.jsonl.gz
zstd -q docs.jsonl
lz4 -q docs.jsonl docs.jsonl.lz4
bzip2 -k docs.jsonl
printf '{"id":"q","task":"t","question":"%s"}\n{"id":"s","task":"t","question":"Wer rastet, der rostet"}\n' "$text" >eval.jsonl
page="<!doctype html><html lang=en><head><title>One &amp; two</title><meta name=author content=Me><script type='application/ld+json'>{\"datePublished\":\"2020-01-02\"}</script></head><body><nav><a href=/a>A</a></nav><article><h1>One</h1><p>$text</p><ul><li>a<li>b</ul><table><tr><td>1<td>2</table><pre>x = 1</pre><p>$text $text</p><blockquote>Q</blockquote></article><footer>None</footer></body></html>"
printf '%s' "$page" >page.html
printf '%s' "<html lang=pl><meta name=robots content=noai><link rel=license href=/l><h1>Jeden</h1><p>By Ann Lee, 3 stycznia 2024</p><p>$text" >dated.html
{
    block=$(printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n%s\n<p>caf\351' "$page")
    printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: http://h/1\r\nWARC-Date: 2020-01-02T03:04:05Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n' \
        "$(printf '%s' "$block" | LC_ALL=C wc -c)" "$block"
} >a.warc
gzip -c a.warc >a.warc.gz
cat >paper.tex <<'END'
\documentclass{article}\newcommand{\both}[2][first]{(#1, #2)}\newtheorem{thm}{Theorem}
\title{A \emph{title}}\author{Me \and You}\begin{document}\maketitle
\section{One}\label{s} See~\ref{s} and \both{x}, \cite{a}. \input{more}
\begin{thm} $a = \frac{1}{2}$ \end{thm} \[ \int x \]
\begin{tabular}{ll} A & B \\ 1 & 2 \end{tabular}\begin{itemize}\item one \item two\end{itemize}
\begin{verbatim} x \end{verbatim} \footnote{A note.}
\end{document}
END
echo 'More of \textbf{it}.' >more.tex
tar cf paper.tar paper.tex more.tex
cp "$data/wiki/sample.xml" wiki.xml

# ---- documents ----
sweep 'extract a page' quern-extract -j1 "$in/page.html" -o out.jsonl --rejects out.rejects --stats out.stats
sweep 'extract a page with a date in words' quern-extract -j1 "$in/dated.html" -o out.jsonl
sweep 'extract a letter' quern-extract -j1 "$data/xml/styles.docx" -o out.jsonl
sweep 'extract a page as Markdown' quern-extract -j1 --format markdown "$in/page.html" -o out.jsonl.zst
sweep 'extract a page by jusText' quern-extract -j1 --extractor justext "$in/page.html"
sweep 'extract an archive' quern-extract -j1 "$in/a.warc.gz" -o out.jsonl.gz
for kind in index.cdxj "cc-index/collections/CC-MAIN-2026-48/indexes" "cc-index/table/cc-main/warc/crawl=CC-MAIN-2026-48/subset=warc"; do
    sweep "crawl select ${kind##*/}" quern-crawl select -j1 -i "$data/crawl/$kind" -w 'host = www.boats.co.uk and url ~ "/[0-9]/"' -o out.jsonl \
        --stats out.stats
done
quern crawl select -i "$data/crawl/index.cdxj" -w 'domain = muelle.es' -o list.jsonl
sweep 'extract a list of records' quern-extract -j1 --connections 1 --crawl-prefix "$data/crawl" "$in/list.jsonl" -o out.jsonl
sweep 'extract an article' quern-extract -j1 "$in/paper.tar" -o out.jsonl
sweep 'extract a dump' quern-extract -j1 "$in/wiki.xml" -o out.jsonl
sweep 'clean' quern-clean -j1 --pii all --width --ligatures --quotes ascii "$in/docs.jsonl" -o out.jsonl --rejects out.rejects --stats out.stats
sweep 'clean gzip' quern-clean -j1 "$in/docs.jsonl.gz" -o out.jsonl.gz
# With another file behind it, so that one that is taken for damaged, and passed over, does not end the run.
sweep 'clean zstd' quern-clean -j1 "$in/docs.jsonl.zst" "$in/docs.jsonl" -o out.jsonl.zst
sweep 'clean lz4' quern-clean -j1 "$in/docs.jsonl.lz4" "$in/docs.jsonl"
sweep 'clean bzip2' quern-clean -j1 "$in/docs.jsonl.bz2" "$in/docs.jsonl"
sweep 'clean with threads' quern-clean -j3 "$in/docs.jsonl" -o out.jsonl
sweep 'langid' quern-langid -j1 --keep en --per-line "$in/docs.jsonl" -o out.jsonl --rejects out.rejects
sweep 'langid by a model' quern-langid -j1 --model "$data/fasttext/softmax.bin" "$in/docs.jsonl"
for preset in $(quern filter --list-rules | sed 1d | cut -f1 | sort -u); do
    printf '\n' >banned
    # shellcheck disable=SC2046
    sweep "filter $preset" quern-filter -j1 --preset "$preset" --lang en "$in/docs.jsonl" -o out.jsonl --rejects out.rejects \
        --stats out.stats $([ "$preset" != url ] || echo --url-domains "$data/filter/url_domains.txt" --banned-words \
        "$data/filter/url_words.txt" --soft-words "$data/filter/url_soft.txt" --banned-subwords "$data/filter/url_subwords.txt" \
        --url-blocklist "$data/filter/url_urls.txt") $([[ $preset != *bad* ]] || echo --bad-words "en:$data/filter/bad.txt")
done
quern classify train -q --dim 2 --epoch 1 --minCount 1 --bucket 10 --positive docs.jsonl --negative eval.jsonl --json-key text -o model.bin 2>/dev/null
sed 's/"id"/"label":"hq","id"/; 3,$s/hq/cc/' docs.jsonl >labels.jsonl
# fastText's threads wait for ever for a file that they got no memory to open; they do that through libc.
sweep 'classify train' FAIL_EXCEPT='/libc\.so' quern-classify train -j1 --dim 2 --epoch 1 --minCount 1 --bucket 10 "$in/labels.jsonl" -o out.bin
quern classify train -q -j1 --dim 2 --epoch 1 --minCount 1 --bucket 10 labels.jsonl -o model.bin || bad 'a classifier'
sweep 'perplexity' quern-perplexity -j1 --lm "$data/perplexity/pieces.both" --tokenizer "$data/tokenizer/spm_unigram.model" --normalize ccnet \
    --percentiles 30,60 --keep head,middle "$in/docs.jsonl" -o out.jsonl --stats out.stats
sweep 'perplexity by an ARPA file' quern-perplexity -j1 --lm "$data/perplexity/two.arpa" --cutoffs 30,60 "$in/docs.jsonl" -o out.jsonl
sweep 'classify score' quern-classify score -j1 --model "$in/model.bin" "$in/docs.jsonl" -o out.jsonl --stats out.stats
sweep 'dedup exact' quern-dedup exact -j1 "$in/docs.jsonl" -o out.jsonl --rejects out.rejects --index out.index --stats out.stats
quern dedup exact -q docs.jsonl -o /dev/null --index docs.index
sweep 'dedup exact against an index' quern-dedup exact -j1 --keep longest --against "$in/docs.index" "$in/docs.jsonl" -o out.jsonl
sweep 'dedup fuzzy' quern-dedup fuzzy -j1 --places "$in/docs.jsonl" -o out.jsonl --rejects out.rejects --clusters out.tsv --index out.index
quern dedup fuzzy -q docs.jsonl -o /dev/null --index docs.near
quern dedup fuzzy -q docs.jsonl -o /dev/null --index docs.sets --index-sets
sweep 'dedup fuzzy against an index' quern-dedup fuzzy -j1 --against "$in/docs.near" "$in/docs.jsonl" -o out.jsonl
sweep 'dedup fuzzy with a set file' quern-dedup fuzzy -j1 --against "$in/docs.sets" "$in/docs.jsonl" -o out.jsonl \
    --index out.index --index-sets
sweep 'dedup merge' quern-dedup merge --index out.index "$in/docs.near" "$in/docs.sets"
sweep 'dedup fuzzy in bounded memory' quern-dedup fuzzy -j1 --memory 128M --preset nemo "$in/docs.jsonl" -o out.jsonl
sweep 'dedup exact by a pointer' quern-dedup exact -j1 --key /x/y --cluster-size n --places "$in/docs.jsonl" -o out.jsonl --rejects out.rejects
sweep 'dedup exact by addresses' quern-dedup exact -j1 --key url --normalize url --bloom-count 100 "$in/docs.jsonl" -o out.jsonl
sweep 'dedup lines over two' quern-dedup lines -j1 --over 2 --min-length 1 "$in/docs.jsonl" -o out.jsonl
sweep 'dedup lines' quern-dedup lines -j1 "$in/docs.jsonl" -o out.jsonl --rejects out.rejects
sweep 'dedup lines, ccnet' quern-dedup lines -j1 --preset ccnet "$in/docs.jsonl" -o out.jsonl
sweep 'dedup substring' quern-dedup substring -j1 --length 40 "$in/docs.jsonl" -o out.jsonl
for method in $(quern decontaminate --help | sed -n 's/.*--method \([a-z|]*\).*/\1/p' | tr '|' ' '); do
    [ "$method" = curator ] && report=() || report=(--report out.report)
    sweep "decontaminate, $method" quern-decontaminate -j1 --method "$method" -a "$in/eval.jsonl" "$in/docs.jsonl" -o out.jsonl \
        --rejects out.rejects --stats out.stats "${report[@]}"
done
sweep 'mix' FAIL_KEEP='^out-' quern-mix -j1 "$in/docs.jsonl" --split train=0.5,valid=0.5 --shards 2 -o 'out-%s-%05d.jsonl' --stats out.stats
sweep 'mix to a budget' quern-mix -j1 --source "2:$in/docs.jsonl" --source "1:$in/docs.jsonl.gz" --budget 500 -o out.jsonl.zst
sweep 'stats' FAIL_ANY=stdout quern-stats -j1 --by lang "$in/docs.jsonl" -o out.txt
sweep 'stats as JSON' quern-stats -j1 --json "$in/docs.jsonl"
quern filter -q --preset gopher-quality docs.jsonl --rejects rejects.jsonl --stats stats.json -o kept.jsonl
sweep 'report' quern-report -j1 --stats "$in/stats.json" --rejects "$in/rejects.jsonl" --input "$in/docs.jsonl" --docs "$in/kept.jsonl" -o out.html
sweep 'why' quern-why a f --rejects "$in/rejects.jsonl" --docs "$in/kept.jsonl"
cat >plan.yaml <<END
input: [$in/docs.jsonl]
stages:
  - clean
  - dedup exact
  - dedup fuzzy: {threshold: 0.7}
output: out.jsonl
rejects: out.rejects
stats: out.stats
END
sweep 'curate' FAIL_ANY=stats FAIL_SPARE='^out.jsonl.work/.' FAIL_KEEP='^out.(jsonl.work/|stats|rejects)' FAIL_RESUME=1 quern-curate -j1 "$in/plan.yaml"
# The note of a text of many lines goes on in a file.
{
    printf '{"id":"l","text":"'
    seq -s '\n' 70000 | tr -d '\n'
    printf '"}\n'
    cat docs.jsonl
} >long.jsonl
cat >long.yaml <<END
input: [$in/long.jsonl]
stages:
  - dedup lines: {min-length: 1}
output: out.jsonl
END
sweep 'curate, a long text' FAIL_SPARE='^out.jsonl.work/.' FAIL_KEEP='^out.jsonl.work/' FAIL_RESUME=1 quern-curate -j1 "$in/long.yaml"

# ---- tokens ----
quern tokenizer train -q --vocab-size 300 docs.jsonl -o tokenizer.json || bad 'a tokenizer'
cat >branches.yaml <<END
input: [$in/docs.jsonl]
stages: [clean]
output: out.jsonl
branches:
  english: {if: lang == en, output: out.english}
  rest: {if: else, stages: [dedup exact]}
  tokens:
    from: [english, rest]
    stages: [tokenize: {tokenizer: $in/tokenizer.json, output-prefix: out}]
  numbers:
    from: rest
    stages: [stats: {by: lang, output: out.numbers}]
rejects: out.rejects
stats: out.stats
END
sweep 'curate, branches' FAIL_ANY='stats$' FAIL_SPARE='^out.jsonl.work/.' FAIL_KEEP='^out[._]' FAIL_RESUME=1 quern-curate -j1 "$in/branches.yaml"
cat >chat.jinja <<'END'
{% set ns = namespace(n=0) %}{% macro m(x, y='-') %}{{ y ~ x|upper }}{% endmacro %}
{% for m in messages if m.content %}{% set ns.n = ns.n + 1 %}{{ m.role }}: {{ (m.content ~ ns.n)|trim }}{{ m(m.role[1:]) }}
{% set t %}{{ tools | tojson(indent=1) }}{% endset %}{{ t.split('a')|join('-') }}{% endfor %}
{{ messages | map(attribute='role') | sort | list }}{{ {'b': [1, 2.5]} }}{% if add_generation_prompt %}assistant{% endif %}
END
printf '{"messages":[{"role":"user","content":"A b"},{"role":"assistant","content":"C"}],"tools":[{"a":1}]}\n' >chat.jsonl
printf '{"bos_token":"<s>"}' >tokenizer_config.json
sweep 'tokenizer chat' quern-tokenizer chat --chat-template "$in/chat.jinja" --loss-on all --tokenizer "$data/train/sft/tokenizer.json" "$in/chat.jsonl"
sweep 'tokenize conversations' FAIL_KEEP='^out_chat_document' FAIL_RESUME=1 quern-tokenize -j1 --tokenizer "$data/train/sft/tokenizer.json" --chat-template chatml \
    --output-prefix out "$in/chat.jsonl"
sweep 'tokenizer train' FAIL_KEEP='^out/$' quern-tokenizer train -j1 --memory 64M --vocab-size 280 "$in/docs.jsonl" -o out.json --vocab-merges out --ranks out.ranks
sweep 'tokenizer train and measure' FAIL_KEEP='^out.json$' quern-tokenizer train -j1 --memory 64M --vocab-size 280 "$in/docs.jsonl" -o out.json \
    --measure "$in/docs.jsonl" --stats out.stats
sweep 'tokenizer measure' FAIL_ANY=stdout quern-tokenizer measure -j1 --by id --tokenizer "$in/tokenizer.json" "$in/docs.jsonl" --stats out.stats
sweep 'tokenizer train across words' quern-tokenizer train -j1 --memory 64M --model superbpe --vocab-size 300 --subwords 280 "$in/docs.jsonl" -o out.json
sweep 'tokenizer train Unigram' quern-tokenizer train -j1 --memory 64M --model unigram --byte-fallback --vocab-size 310 "$in/docs.jsonl" -o out.json \
    --sentencepiece-model out.model
sweep 'tokenizer encode' quern-tokenizer encode --tokenizer "$in/tokenizer.json" --jsonl "$in/docs.jsonl"
sweep 'tokenizer info' quern-tokenizer info --pattern gpt2 --tokenizer "$data/tokenizer/ranks.tiktoken"
sweep 'tokenizer encode by SentencePiece' quern-tokenizer encode --tokenizer "$data/tokenizer/spm_unigram_user.model" --jsonl "$in/docs.jsonl"
quern tokenizer encode --tokenizer tokenizer.json --jsonl docs.jsonl >ids.jsonl
sweep 'tokenizer decode' quern-tokenizer decode --tokenizer "$in/tokenizer.json" --jsonl "$in/ids.jsonl"
sweep 'tokenize' FAIL_KEEP='^out_text_document\.work' quern-tokenize -j1 --tokenizer "$in/tokenizer.json" --output-prefix out "$in/docs.jsonl"
sweep 'tokenize for NumPy' FAIL_KEEP='^out_0' FAIL_RESUME=1 quern-tokenize -j1 --tokenizer "$in/tokenizer.json" --format npy --output-prefix out "$in/docs.jsonl"
quern tokenize -q --tokenizer tokenizer.json --output-prefix set docs.jsonl
dataset=$in/set_text_document
for verb in info verify head; do sweep "dataset $verb" quern-dataset $verb "$dataset"; done
quern tokenize -q --tokenizer tokenizer.json --ledger --output-prefix kept docs.jsonl
sweep 'tokenize with a ledger' FAIL_KEEP='^out_text_document\.work' quern-tokenize -j1 --tokenizer "$in/tokenizer.json" --ledger --output-prefix out "$in/docs.jsonl"
sweep 'dataset verify with a ledger' quern-dataset verify --ledger "$in/kept_text_document"
sweep 'dataset merge with ledgers' quern-dataset merge "$in/kept_text_document" "$in/kept_text_document" -o out
sweep 'dataset merge' quern-dataset merge "$dataset" "$dataset" -o out
sweep 'dataset filter' quern-dataset filter "$dataset" --min-tokens 30 -o out
sweep 'dataset forget' quern-dataset forget "$in/kept_text_document" --id b -o out
sweep 'dataset split' FAIL_KEEP='^out_a' FAIL_RESUME=1 quern-dataset split "$dataset" --shares a:50,b:50 -o out

# ---- models ----
# oneDNN ends the process where it gets no memory, so does the loader where CUDA's libraries start: what oneDNN asks for itself
# is left out, and no GPU is looked for.
export FAIL_BENEATH='/libdnnl'
tiny="--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --vocab-size 300 --micro-batch-size 2 --lr 0.01
    --eval-iters 1 --eval-interval 1 --split 80,10,10 -j 1 --device cpu"
# shellcheck disable=SC2086
quern-train -q $tiny --data-path "$dataset" --train-iters 1 --save ck >/dev/null || bad 'a checkpoint'
# shellcheck disable=SC2086
quern-train -q $tiny --data-path 1 "$in/kept_text_document" 2 "$in/kept_text_document" --split 1,0,0 --eval-iters 0 --train-iters 1 --save kept >/dev/null || bad 'a blend'
sweep 'dataset trace a step' quern-dataset trace --checkpoint "$in/kept" --step 1
sweep 'dataset trace pages' quern-dataset trace --checkpoint "$in/kept" --id b
sweep 'dataset forget and trace' quern-dataset forget "$in/kept_text_document" --id b --checkpoint "$in/kept" -o out
# shellcheck disable=SC2086
{
    sweep 'train' FAIL_ANY='stdout|log.jsonl' FAIL_KEEP='^(ck/|log.jsonl)' quern-train $tiny --data-path "$dataset" --train-iters 2 --save ck \
        --log-file log.jsonl
    sweep 'train from a checkpoint' FAIL_ANY=stdout quern-train $tiny --data-path "$dataset" --train-iters 2 --load "$in/ck"
}
sweep 'eval' FAIL_ANY=stdout quern-eval -j 1 --device cpu --load "$in/ck" --data-path "$dataset" --split 34,33,33
printf '{"q":"the mill","c":["grinds","is"],"g":0}\n{"q":"the river ","c":["turns"],"g":0}\n' >ask.jsonl
for kind in 'multiple_choice
doc_to_choice: c
num_fewshot: 1
fewshot_split: test
doc_to_target: g' 'generate_until
doc_to_target: q
generation_kwargs: {max_gen_toks: 3}
filter_list: [{name: x, filter: [{function: regex, regex_pattern: "[a-z]+"}, {function: uppercase}]}]'; do
    printf 'dataset_path: json\ndataset_kwargs: {data_files: {test: %s/ask.jsonl}}\ntest_split: test\ndoc_to_text: "{{q}}"\noutput_type: %s\n' \
        "$in" "$kind" >ask.yaml
    sweep "eval, tasks: ${kind%%$'\n'*}" FAIL_ANY=stdout quern-eval -j 1 --device cpu --load "$in/ck" --tokenizer "$in/tokenizer.json" \
        --eval-tasks "$in/ask.yaml" --records records.jsonl
done
sweep 'perplexity model' quern-perplexity model -j1 --device cpu --load "$in/ck" --tokenizer "$in/tokenizer.json" "$in/docs.jsonl" -o out.jsonl
sweep 'generate' quern-generate -j 1 --device cpu --load "$in/ck" --tokenizer "$in/tokenizer.json" --prompt 'the mill' --max-tokens 3
for verb in info verify; do sweep "checkpoint $verb" quern-checkpoint $verb "$in/ck"; done
# The folder stays, empty.
sweep 'checkpoint export' FAIL_KEEP='^out/$' quern-checkpoint export "$in/ck" --output out
# Removing a folder takes memory; and a checkpoint that is whole stays when its name cannot be written as the latest.
sweep 'checkpoint import' FAIL_KEEP='^out/(\.iter_.*|iter_0000000/.*)?$' quern-checkpoint import "$data/train/hf/llama" --save out --seq-length 16
sweep 'quern' quern --version

# ---- addresses ----
# Of libcurl's own allocations the tool knows only that a transfer failed, and tries again: they are left out, for which the library
# has to be there from the start.
served() { PRELOAD=libcurl.so.4 sweep "$1" QUERN_HTTP_TIMEOUT=1 FAIL_BENEATH='/lib(curl|crypto)' AWS_ENDPOINT_URL="$H/store" AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b "${@:2}"; }
if [ -x "$B/tests/http_server" ] && ! quern clean http://127.0.0.1:1/x 2>&1 | grep -q libcurl; then
    mkdir served
    cp docs.jsonl served
    "$B/tests/http_server" served served/log >port &
    trap 'kill $!; rm -rf "$scratch"' EXIT
    for ((i = 0; i < 100; i++)); do [ -s port ] && break; sleep .1; done
    H=http://127.0.0.1:$(cat port)
    served 'clean from an address' quern-clean -j1 "$H/plain/0/docs.jsonl" -o out.jsonl
    served 'clean from S3 to S3' quern-clean -j1 s3://000/docs.jsonl -o s3://000/made.jsonl
    served 'clean to Parquet in S3' quern-clean -j1 "$in/docs.jsonl" -o s3://000/made.parquet
fi
# No doctor: NCCL, which it opens, ends the process where it gets no memory.

# ---- kills ----
# killed NAME [VARIABLE=VALUE...] COMMAND...: sweeps it with kills instead.
killed() { sweep "killed: $1" FAIL_MODES=kill FAIL_ANY='stdout|stats$' FAIL_SPARE='^quern[-.]' "${@:2}"; }
killed 'extract' quern-extract -j1 "$in/a.warc.gz" -o out.jsonl.gz --rejects out.rejects
killed 'clean' quern-clean -j1 "$in/docs.jsonl" -o out.jsonl.zst --rejects out.rejects --stats out.stats
killed 'to Parquet' quern-clean -j1 "$in/docs.jsonl" -o out.parquet
killed 'dedup exact' quern-dedup exact -j1 "$in/docs.jsonl" -o out.jsonl --rejects out.rejects --index out.index
killed 'dedup fuzzy' quern-dedup fuzzy -j1 "$in/docs.jsonl" -o out.jsonl --rejects out.rejects --clusters out.tsv --index out.index --index-sets
killed 'mix' quern-mix -j1 "$in/docs.jsonl" --split train=0.5,valid=0.5 --shards 2 -o 'out-%s-%05d.jsonl'
killed 'curate' FAIL_SPARE='^(quern[-.]|out.jsonl.work/.)' quern-curate -j1 "$in/plan.yaml"
killed 'curate, a long text' FAIL_SPARE='^(quern[-.]|out.jsonl.work/.)' quern-curate -j1 "$in/long.yaml"
killed 'curate, branches' FAIL_SPARE='^(quern[-.]|out.jsonl.work/.)' quern-curate -j1 "$in/branches.yaml"
killed 'tokenizer train' quern-tokenizer train -j1 --memory 64M --vocab-size 280 "$in/docs.jsonl" -o out.json --vocab-merges out --ranks out.ranks
for format in megatron npy llmc; do
    killed "tokenize, $format" quern-tokenize -j1 --tokenizer "$in/tokenizer.json" --checkpoint 0 --format $format --output-prefix out "$in/docs.jsonl"
done
killed 'tokenize with a ledger' quern-tokenize -j1 --tokenizer "$in/tokenizer.json" --checkpoint 0 --ledger --output-prefix out "$in/docs.jsonl"
killed 'dataset merge' quern-dataset merge "$in/kept_text_document" "$in/kept_text_document" -o out
killed 'dataset forget' quern-dataset forget "$in/kept_text_document" --id b -o out
killed 'dataset split' quern-dataset split "$dataset" --shares a:50,b:50 -o out
killed 'tokenize conversations' quern-tokenize -j1 --tokenizer "$data/train/sft/tokenizer.json" --chat-template chatml --checkpoint 0 \
    --output-prefix out "$in/chat.jsonl"
# shellcheck disable=SC2086
killed 'train' FAIL_KEEP='^ck/latest' quern-train $tiny --data-path "$dataset" --train-iters 3 --save-interval 1 --save ck
killed 'checkpoint export' quern-checkpoint export "$in/ck" --output out
killed 'checkpoint import' quern-checkpoint import "$data/train/hf/llama" --save out --seq-length 16
finish
