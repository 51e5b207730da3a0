#!/usr/bin/env bash
# Main content from HTML: CPU time a core and quality, against trafilatura and resiliparse
# on the same pages in one run, its version beside its speed.  Pages: the development pages of three sets with known
# answers, and documentation.  The model has learned from these pages: bench/content.sh has its quality by folds; F1 here is
# that of the rules, which were made on the pages of article and segment.
. bench/lib.sh
D=$SHARED/data
X=$D/extraction
if [ ! -d "$X" ]; then
    printf 'extract\t-\t-\tleft out: no %s\n' "$X"
    exit 0
fi
here=$PWD

# Pages as plain files, so that nothing but extraction is measured.
for s in article segment; do
    mkdir "$T/$s"
    for f in "$X/$s-benchmark/dev/html"/*.gz; do
        f2=${f##*/}
        gzip -dc "$f" >"$T/$s/${f2%.gz}"
    done
done
mkdir "$T/doc"
tar -C "$T" -I zstd -xf "$D/text/html/pages-dev.tar.zst"
n=0
find "$T" -path "$T/article" -prune -o -path "$T/segment" -prune -o -type f -name '*.html' -print | LC_ALL=C sort |
    while read -r f; do
        n=$((n + 1))
        [ $((n % 8)) = 0 ] && cp "$f" "$T/doc/$n.html"
    done
zstd -dc --long=27 "$X/wcxb/wcxb-dev.tar.zst" | tar -C "$T" -x
mv "$T/dev/html" "$T/wcxb"

cpu_out=$T/out
ids() { sed 's|^{"id":"[^"]*/\([^"/]*\)\.html"|{"id":"\1"|'; }
for s in article segment wcxb doc; do
    mb=$(find "$T/$s" -name '*.html' -printf '%s\n' | awk '{ n += $1 } END { printf "%.1f", n / 1e6 }')
    sec=$(cpu quern-extract --quiet -j 1 "$T/$s")
    row "extract $s" "$(awk -v m="$mb" -v s="$sec" 'BEGIN { printf "%.1f", m / s }')" MB/s "$mb MB in $sec s of CPU"
    if [ "$s" != doc ]; then
        quern-extract --quiet -j 1 --extractor rules "$T/$s" | ids >"$T/quern.jsonl"
        row "extract $s F1" "$(f1 "$s" "$T/quern.jsonl")" F1 "by the rules"
    fi
    for p in trafilatura resiliparse; do
        if [ -z "${PEERS:-}" ] || ! "$PEERS" -c "import $p" 2>/dev/null; then
            row "$p $s" - - "left out: set PEERS to a Python that has it"
            continue
        fi
        psec=$("$PEERS" "$here/bench/extract_peers.py" "$p" "$T/$s" "$T/$p.jsonl") || continue
        version=$("$PEERS" -c "from importlib.metadata import version; print(version('$p'))")
        row "$p $s" "$(awk -v m="$mb" -v s="$psec" 'BEGIN { printf "%.1f", m / s }')" MB/s \
            "$version; quern is $(awk -v a="$psec" -v b="$sec" 'BEGIN { printf "%.1f", a / b }') times as fast"
        [ "$s" = doc ] || row "$p $s F1" "$(f1 "$s" "$T/$p.jsonl")" F1 "$version"
    done
done
