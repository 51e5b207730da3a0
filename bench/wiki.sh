#!/usr/bin/env bash
# Wikipedia dumps: CPU time a core, of the whole command on one thread, against what the peers
# take for the wikitext alone; and the words they have in common.  WIKI: a dump, not packed; by
# default the sample of the English Wikipedia that gensim (in PEERS) comes with.
. bench/lib.sh
here=$PWD
has() { [ -n "${PEERS:-}" ] && "$PEERS" -c "import $1" 2>/dev/null; }
over() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / (b + 1e-9) }'; }
runs=5
cpu_out=$T/out

if [ -n "${WIKI:-}" ]; then
    cp "$WIKI" "$T/dump.xml"
elif has gensim; then
    data=$("$PEERS" -c 'import gensim, os; print(os.path.dirname(gensim.__file__) + "/test/test_data")')
    bzip2 -dc "$data"/enwiki-latest-pages-articles1.xml-*.bz2 >"$T/dump.xml"
else
    row wiki - - 'left out: set WIKI to a dump, or PEERS to a Python that has gensim'
    exit 0
fi
# Ten times over, so that starting does not count.
{
    sed '/<page>/,$d' "$T/dump.xml"
    for _ in 1 2 3 4 5 6 7 8 9 10; do sed -n '/<page>/,/<\/page>/p' "$T/dump.xml"; done
    echo '</mediawiki>'
} >"$T/ten.xml"
mb=$(stat -c %s "$T/ten.xml" | awk '{ printf "%.1f", $1 / 1e6 }')
sec=$(cpu quern-extract -q -j 1 "$T/ten.xml")
row 'wiki extract' "$(over "$mb" "$sec")" MB/s "$mb MB in $sec s of CPU"
if command -v bzip2 >/dev/null; then
    bzip2 -k "$T/ten.xml"
    packed=$(cpu quern-extract -q -j 1 "$T/ten.xml.bz2")
    row 'wiki extract .bz2' "$(over "$mb" "$packed")" MB/s "$mb MB in $packed s of CPU"
fi
read_only=$(cpu quern-extract -q -j 1 --namespaces 9999 "$T/ten.xml")
row 'wiki read' "$(over "$mb" "$read_only")" MB/s 'pages cut and parsed, none extracted'
quern-extract -q "$T/dump.xml" -o "$T/quern.jsonl"
one=$(awk -v s="$sec" 'BEGIN { print s / 10 }')
for p in wikiextractor mwparserfromhell gensim; do
    if ! has "$p"; then
        row "$p" - - 'left out: set PEERS to a Python that has it'
        continue
    fi
    psec=$("$PEERS" "$here/bench/wiki_peers.py" "$p" "$T/dump.xml" "$T/$p.jsonl") || continue
    row "$p" "$(over "$(awk -v m="$mb" 'BEGIN { print m / 10 }')" "$psec")" MB/s \
        "quern is $(over "$psec" "$one") times as fast"
    row "$p words" "$("$PEERS" "$here/bench/wiki_peers.py" compare "$T/quern.jsonl" "$T/$p.jsonl")" shares \
        "of quern's that it has, of its that quern has"
    [ -z "${KEEP:-}" ] || cp "$T/quern.jsonl" "$T/$p.jsonl" "$KEEP"
done
