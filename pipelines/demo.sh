#!/bin/sh
# The whole chain on real pages, from a crawl to a model that writes:
#   Debian's HTML documentation -> a local web server -> wget's WARC -> extract | clean |
#   langid | filter | dedup exact | dedup fuzzy -> tokenizer -> indexed dataset -> a small
#   GPT trained on the CPU -> text.
# Everything lands in ./demo.  SHORT=1: fewer pages and a smaller model, for a quick look.
# MINUTES=N: how long to train [7; SHORT 1].
set -eu
B=${B:-build}
case $B in /*) bin=$B/bin ;; *) bin=$PWD/$B/bin ;; esac
PATH=$bin:$PATH
SHORT=${SHORT:-}
here=$PWD/pipelines
D=$PWD/demo
rm -rf "$D"
mkdir -p "$D/debs" "$D/root"
cd "$D"
began=$(date +%s)
say() { printf '\n== %s (%d s)\n' "$*" $(($(date +%s) - began)); }

# ---- pages -------------------------------------------------------------------
packages="postgresql-doc-15 debian-policy"
[ -n "$SHORT" ] || packages="$packages python3.11-doc debian-handbook git-doc debian-reference-en"
say "pages: $packages"
# The packages are unpacked here, not installed: an image that leaves documentation out
# when it installs packages gives the same pages.
fetch() { (cd debs && apt-get download -qq $packages >/dev/null 2>&1); }
fetch || { apt-get update -qq >/dev/null 2>&1 && fetch; } || {
    echo "cannot download $packages with apt-get" >&2
    exit 3
}
for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done

# ---- crawl -------------------------------------------------------------------
site=root/usr/share/doc
port=8080 server=
while :; do
    busybox httpd -f -p "127.0.0.1:$port" -h "$site" 2>/dev/null &
    server=$!
    sleep 1
    kill -0 $server 2>/dev/null && break
    port=$((port + 1))
    [ $port -lt 8180 ] || { echo "no free port for the web server" >&2; exit 3; }
done
trap 'kill $server 2>/dev/null || true' EXIT INT TERM
url=http://127.0.0.1:$port
{
    echo $url/postgresql-doc-15/html/index.html
    echo $url/debian-policy/policy.html/index.html
    [ -n "$SHORT" ] || cat <<END
$url/python3.11/html/index.html
$url/debian-handbook/html/en-US/index.html
$url/debian-handbook/html/de-DE/index.html
$url/debian-handbook/html/fr-FR/index.html
$url/git-doc/git.html
$url/git-doc/user-manual.html
$url/debian-reference-en/docs/index.en.html
END
} >urls
say "crawl"
# wget says 8 when a link was broken; what it fetched is whole.
wget -q -r -l inf -np --delete-after -e robots=off -R '*.png,*.svg,*.gif,*.jpg,*.ico,*.js,*.css,*.txt,*.inv,*.pdf' \
    --warc-file=crawl --no-warc-keep-log -i urls || [ $? = 8 ]
kill $server
trap - EXIT INT TERM
ls -l crawl.warc.gz

# ---- curate ------------------------------------------------------------------
say "extract | clean | langid | filter | dedup exact | dedup fuzzy"
quern extract crawl.warc.gz -q --stats 1.extract.json |
    quern clean -q --stats 2.clean.json |
    quern langid -q --keep en:0.65 --stats 3.langid.json --rejects langid.rejects.jsonl |
    quern filter -q --preset gopher-quality,gopher-repetition,fineweb --config "$here/demo-filter.yaml" --stats 4.filter.json --rejects filter.rejects.jsonl |
    quern dedup exact -q --stats 5.exact.json --rejects exact.rejects.jsonl |
    quern dedup fuzzy -q --threshold 0.8 --stats 6.fuzzy.json --rejects fuzzy.rejects.jsonl -o docs.jsonl

printf '\n%-10s %9s %9s %9s %9s\n' stage 'docs in' 'docs out' 'MB in' 'MB out'
for f in [1-6].*.json; do
    s=${f#*.}
    in=$(sed -nE 's/^\{[^[]*"docs_in":([0-9]+).*/\1/p' "$f")
    out=$(sed -nE 's/^\{[^[]*"docs_out":([0-9]+).*/\1/p' "$f")
    bi=$(sed -nE 's/^\{[^[]*"bytes_in":([0-9]+).*/\1/p' "$f")
    bo=$(sed -nE 's/^\{[^[]*"bytes_out":([0-9]+).*/\1/p' "$f")
    printf '%-10s %9d %9d %9s %9s\n' "${s%.json}" "$in" "$out" \
        "$(awk "BEGIN { printf \"%.1f\", $bi / 1e6 }")" "$(awk "BEGIN { printf \"%.1f\", $bo / 1e6 }")"
done

set --
for f in [1-6].*.json; do set -- "$@" --stats "$f"; done
for f in *.rejects.jsonl; do set -- "$@" --rejects "$f"; done
quern report "$@" --docs docs.jsonl --title "The demo's documents" -o report.html

# ---- tokens ------------------------------------------------------------------
say "tokenizer, tokens"
vocab=4096
[ -z "$SHORT" ] || vocab=2048
quern tokenizer train --vocab-size $vocab -o tokenizer.json docs.jsonl
quern tokenize --tokenizer tokenizer.json --append-eod --output-prefix docs docs.jsonl
quern dataset info docs_text_document

# ---- train -------------------------------------------------------------------
# How many steps fit the time: a few are taken to see how fast this machine is.
layers=4 hidden=256 heads=4 seq=256 batch=8 length=200
minutes=${MINUTES:-7}
if [ -n "$SHORT" ]; then layers=2 hidden=128 heads=2 seq=128 length=100 minutes=${MINUTES:-1}; fi
model="--num-layers $layers --hidden-size $hidden --num-attention-heads $heads --seq-length $seq
    --vocab-size $vocab --bf16 --attention-dropout 0 --hidden-dropout 0
    --position-embedding-type rope --normalization RMSNorm --qk-layernorm --mlp-activation relu2 --disable-bias-linear
    --optimizer muon --muon-scale-mode spectral --muon-extra-scale-factor 0.2 --muon-momentum 0.95
    --adam-beta2 0.95 --weight-decay 0.1 --lr 5e-3
    --micro-batch-size $batch --data-path docs_text_document --split 98,2,0"
s=s
[ "$minutes" != 1 ] || s=
say "train: $layers layers of $hidden, for about $minutes minute$s"
# shellcheck disable=SC2086 # a list of options
quern train $model --train-iters 8 --log-file speed.jsonl -q >/dev/null
steps=$(sed -nE 's/.*"tokens_per_s":([0-9.e+]+).*/\1/p' speed.jsonl | sort -g |
    awk -v n=$((batch * seq)) -v s=$((minutes * 60)) '{ v[NR] = $1 } END { print int(s * v[int((NR + 1) / 2)] / n) }')
# shellcheck disable=SC2086
quern train -q $model --train-iters "$steps" --lr-decay-style linear --min-lr 0 --lr-warmup-iters $((steps / 20 + 1)) \
    --eval-interval $((steps / 5 + 1)) --eval-iters 8 --log-interval $((steps / 10 + 1)) --log-file train.jsonl --save checkpoint
quern report --curves train.jsonl --title "The demo's training" -o curves.html

# ---- use ---------------------------------------------------------------------
say "loss on pages it has not seen"
quern eval -q --load checkpoint --data-path docs_text_document --split 98,2,0 --eval-iters 20
say "what it writes"
quern generate --load checkpoint --tokenizer tokenizer.json --seed 1 --temperature 0.7 --top-k 40 --repetition-penalty 1.1 \
    --max-tokens $length --prompt "The server" >sample.txt
cat -s sample.txt # a model that has just begun writes many empty lines
say "done; everything is in ./demo: report.html has what was dropped and why, curves.html how training went"
