#!/usr/bin/env bash
# Training on 242 MB with less and less memory: the same bytes, and the bound is held.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
zstd -dcq "$SHARED"/data/text/prose/*.jsonl.zst >prose.jsonl || bad "prose" "cannot read it"

# train OUTPUT OPTION...: and the peak of its memory in KiB, to the file peak
train() {
    local out=$1 now p
    shift
    quern-tokenizer train -q --vocab-size 32000 -o "$out" "$@" prose.jsonl &
    p=$!
    while now=$(awk '/VmHWM/ { print $2 }' /proc/$p/status 2>/dev/null) && [ -n "$now" ]; do
        echo "$now" >peak
        sleep 0.05
    done
    wait $p
}
status "4G" 0 train whole.json --memory 4G -j1
for memory in 64 128 256; do
    status "${memory}M" 0 train less.json --memory ${memory}M -j2
    same "${memory}M: the same bytes" whole.json less.json
    [ "$(cat peak)" -le $((memory * 1024)) ] && ok "${memory}M: no more than that" || bad "${memory}M" "peak of $(cat peak) KiB"
done
finish
