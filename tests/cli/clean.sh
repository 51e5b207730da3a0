#!/usr/bin/env bash
# quern clean at a shell.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

printf '%s\n' '{"id":"a","n":1.50,"text":"two  spaces \r\nand\u00a0more e\u0301 x\u200b.\n\n\n\n\nend\n"}' \
    '{"id":"b","text":"clean as it is","x":[1, 2]}' >in.jsonl
printf '%s\n' '{"id":"a","n":1.50,"text":"two spaces\nand more é x.\n\n\nend"}' \
    '{"id":"b","text":"clean as it is","x":[1, 2]}' >want.jsonl
status "cleans" 0 quern clean -q in.jsonl
same "what it says" out want.jsonl
cp out once.jsonl
status "again" 0 quern clean -q once.jsonl
same "twice is once" out once.jsonl
status "options" 0 quern clean -q --no-newlines --no-spaces --no-controls --form any in.jsonl
has "leave things alone" out 'two  spaces \r\nand'
status "blank lines" 0 quern clean -q --blank-lines 0 in.jsonl
has "are gone" out 'x.\nend'

status "a missing file" 3 quern clean nowhere.jsonl
has "is named" err "nowhere.jsonl"
status "a folder" 3 quern clean .
printf 'not JSON\n{"id":"c","text":"fine"}\n{"id":"d","text":"\xff"}\n{"id":"e"}\n' >bad.jsonl
status "bad records are skipped" 1 quern clean bad.jsonl
equal "the good one comes through" "$(cat out)" '{"id":"c","text":"fine"}'
has "the place is named" err "bad.jsonl"
gzip -c in.jsonl | head -c 60 >cut.jsonl.gz
status "a truncated gzip file" 1 quern clean -o whole.jsonl cut.jsonl.gz
has "is named too" err "cut.jsonl.gz"
status "output into nowhere" 3 quern clean -o no/such/folder.jsonl in.jsonl
status "an unknown option" 2 quern clean --shine
status "a wrong form" 2 quern clean --form nfq
status "blank lines below 0" 2 quern clean --blank-lines -1
if [ -w /dev/full ]; then
    quern clean -q in.jsonl >/dev/full 2>err
    equal "a full disk" $? 3
fi
finish
