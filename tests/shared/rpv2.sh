#!/usr/bin/env bash
# Preset rpv2 against the signals of RedPajama-Data v2 on a thousand real documents
# (tests/record/rpv2.py made the table).
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

zstd -dcq "$ROOT/tests/data/filter/rpv2_shared.tsv.zst" >table.tsv || exit 1
check "documents picked" python3 "$ROOT/tests/shared/filter_pick.py" table.tsv docs.jsonl
n=$(wc -l <docs.jsonl)
if [ "$n" -ge 1000 ]; then ok "$n documents"; else bad "documents" "only $n"; fi
status "signals" 0 quern filter -q --preset rpv2 --annotate --bad-words "$ROOT/tests/data/filter/bad.txt" \
    -o signals.jsonl docs.jsonl
check "are as recorded" python3 "$ROOT/tests/shared/rpv2_compare.py" table.tsv signals.jsonl
finish
