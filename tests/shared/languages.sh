#!/usr/bin/env bash
# fineweb2-icu on the Universal Declaration of Human Rights in thirty languages: texts in their own
# language are kept, noise and texts under another's name mostly dropped, and each decision is
# that of datatrove's filters on the same words (tests/record/languages.py made the table).
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

check "documents" python3 "$ROOT/tests/shared/languages.py" made.jsonl
quern clean -q made.jsonl -o docs.jsonl
status "fineweb2-icu runs" 0 quern filter -q --preset fineweb2-icu --lang auto --rejects rejects.jsonl -o kept.jsonl docs.jsonl
zstd -dcq "$ROOT/tests/data/filter/languages.tsv.zst" | sort >want
{
    sed 's/^{"id": *"\([^"]*\)".*/\1\t-/' kept.jsonl
    sed 's/^{"id": *"\([^"]*\)".*"rule":"\([^"]*\)".*/\1\t\2/' rejects.jsonl
} | sort >got
# Korean stop words are endings with us, so that a rule differs there.
grep -v ' ko ' want >want_but_ko
grep -v ' ko ' got >got_but_ko
same "decides as datatrove's filters on these words" got_but_ko want_but_ko
equal "as many as recorded" "$(wc -l <got)" "$(wc -l <want)"
for kind in right wrong words menu loop digits; do
    echo "$kind: $(grep -c "^$kind .*	-\$" got) of $(grep -c "^$kind " got) kept"
done >kept
cat kept
has "each text is kept in its own language" kept "right: 46 of 46 kept"
for kind in menu loop digits; do has "$kind is dropped" kept "$kind: 0 of 46 kept"; done
echo "by language, texts of others kept under its name:"
sed -n 's/^wrong \([a-z]*\) .*	-$/\1/p' got | sort | uniq -c | awk '{ printf "%s %d  ", $2, $1 } END { print "" }'
finish
