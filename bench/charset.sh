#!/usr/bin/env bash
# Detection of charsets without a label, beside uchardet.
set -u
udhr=$SHARED/data/langid/udhr/dev.jsonl
if [ ! -f "$udhr" ] || [ -z "${PEERS:-}" ] || ! "$PEERS" -c 'import cchardet' 2>/dev/null; then
    printf 'charset\t-\t-\tleft out: needs %s and PEERS with cchardet\n' "$udhr"
    exit 0
fi
for n in 100 300 1000; do
    "$PEERS" bench/charset_peers.py "$udhr" "$(command -v quern-extract)" $n || exit 1
done
