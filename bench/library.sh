#!/usr/bin/env bash
# quern.py and tokenizers on a batch of texts, one thread each, in one process, until there is a list of ids for each text.
. bench/lib.sh
data=$SHARED/data
if [ -z "$PEERS" ] || [ ! -r "$data/text/prose/books-dev.jsonl.zst" ]; then
    row library - - "left out: no PEERS, or no $data/text/prose/books-dev.jsonl.zst"
    exit 0
fi
zstd -dcq "$data/text/prose/books-dev.jsonl.zst" >"$T/books.jsonl" || exit 1
for t in "$data"/tokenizers/hf/*/tokenizer.json; do
    QUERN_LIBRARY=$B/lib/libquern.so.0 PYTHONPATH=bindings PYTHONDONTWRITEBYTECODE=1 \
        "$PEERS" bench/library_peers.py "$t" "$T/books.jsonl" || exit 1
done
