#!/usr/bin/env bash
# Title, author and date of WCXB's development pages, each with its address, against trafilatura on the same pages in one
# run: how often they are exactly right.
. bench/lib.sh
X=$SHARED/data/extraction/wcxb
if [ ! -d "$X" ]; then
    printf 'metadata\t-\t-\tleft out: no %s\n' "$X"
    exit 0
fi
zstd -dc --long=27 "$X/wcxb-dev.tar.zst" | tar -C "$T" -x
python3 bench/metadata.py warc "$T/dev" "$T/pages.warc" || exit 1
quern-extract --quiet "$T/pages.warc" >"$T/quern.jsonl" || exit 1
# rows NAME NOTE: the scores in $T/NAME.jsonl.
rows() {
    python3 bench/metadata.py score "$T/dev" "$T/$1.jsonl" | grep -E '	(all|looked at|held back)	' |
        while IFS=$'\t' read -r field part stated right wrong none; do
            row "$1 $field, $part" "$right" pages "of $stated; $wrong wrong, $none where none is stated${2:+; $2}"
        done
}
rows quern ''
if [ -z "${PEERS:-}" ] || ! "$PEERS" -c 'import trafilatura' 2>/dev/null; then
    row 'trafilatura metadata' - - 'left out: set PEERS to a Python that has it'
    exit 0
fi
"$PEERS" bench/metadata.py trafilatura "$T/dev" "$T/trafilatura.jsonl" || exit 1
rows trafilatura "$("$PEERS" -c "import trafilatura; print(trafilatura.__version__)")"
