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

printf '%s\n' '{"id":"m","text":"sÃ³ &lt;b> &amp; \u201cx\u201d"}' '{"id":"n","text":"Ã© &amp; â€œ ﬁ Ａ\u001b[1m"}' >broken.jsonl
status "repair" 0 quern clean -q broken.jsonl
equal "undoes mojibake" "$(cat out)" '{"id":"m","text":"só <b> & “x”"}
{"id":"n","text":"é & “ ﬁ Ａ"}'
status "repair by option" 0 quern clean -q --unescape off --quotes ascii --ligatures --width broken.jsonl
equal "does what it says" "$(cat out)" '{"id":"m","text":"só &lt;b> &amp; \"x\""}
{"id":"n","text":"é &amp; \" fi A"}'
status "no repair" 0 quern clean -q --no-repair --unescape off --no-terminal-escapes broken.jsonl
has "leaves mojibake" out 'sÃ³ &lt;b>'
status "a wrong way to unescape" 2 quern clean --unescape maybe

cat >pii.jsonl <<'EOF'
{"id":"p","text":"a@b.org, 8.8.8.8, +44 20 7946 0958, 4111 1111 1111 1111, DE89370400440532013000"}
{"id":"q","text":"x@y.net and 9.9.9.9, z@y.net"}
{"id":"r","text":"nothing, in 2020"}
EOF
status "personal data" 0 quern clean -q --pii email,ip,phone,card,iban --stats s.json pii.jsonl
equal "is replaced by tags" "$(head -n 1 out)" \
    '{"id":"p","text":"|||EMAIL_ADDRESS|||, |||IP_ADDRESS|||, |||PHONE_NUMBER|||, |||CREDIT_CARD|||, |||IBAN_CODE|||"}'
has "and counted" s.json '"changed":2,"pii":{"email":3,"ip":2,"phone":1,"card":1,"iban":1}'
cp out once.jsonl
status "personal data again" 0 quern clean -q --pii all once.jsonl
same "is gone" out once.jsonl
status "other tags" 0 quern clean -q --pii phone --pii-tag '<KIND>' pii.jsonl
has "as given" out '8.8.8.8, <PHONE_NUMBER>, 4111'
status "datatrove's way" 0 quern clean -q -j3 --pii-preset datatrove --pii phone,card pii.jsonl
equal "takes turns in each document" "$(sed -n 2p out)" \
    '{"id":"q","text":"email@example.com and 22.214.171.124, firstname.lastname@example.org"}'
status "an unknown kind" 2 quern clean --pii shoe pii.jsonl
has "is named" err "shoe"
status "e-mail twice" 2 quern clean --pii email --pii-preset datatrove pii.jsonl

status "a missing file" 3 quern clean nowhere.jsonl
has "is named" err "nowhere.jsonl"
status "a folder" 3 quern clean .
printf 'not JSON\n{"id":"c","text":"fine"}\n{"id":"d","text":"\xff"}\n{"id":"e"}\n' >bad.jsonl
status "bad records are skipped" 1 quern clean bad.jsonl
equal "the good one comes through" "$(cat out)" '{"id":"c","text":"fine"}'
has "the place is named" err "bad.jsonl"

yes junk | head -50 | cat - bad.jsonl >much.jsonl
status "what is no JSON at all" 1 quern clean -o out.jsonl much.jsonl
equal "the first are named" "$(grep -c '; skipped$' err)" 20
has "the others counted" err "33 more bad records were skipped"
status "the same, told to say more" 1 quern clean -v -o out.jsonl much.jsonl
equal "all are named" "$(grep -c '; skipped$' err)" 53
gzip -c in.jsonl | head -c 60 >cut.jsonl.gz
status "a truncated gzip file, with nothing before the damage" 3 quern clean -o whole.jsonl cut.jsonl.gz
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
