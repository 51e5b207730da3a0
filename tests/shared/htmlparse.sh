#!/usr/bin/env bash
# The text of html5lib's tests of HTML 5: whole documents, and the tokenizer from its first state.
# What differs, and why, is in docs/extract.md.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
D=$SHARED/data/htmlparse

case $B in /*) test=$B/tests/unit/html5lib_test ;; *) test=$ROOT/$B/tests/unit/html5lib_test ;; esac
check "read" "$test" "$D"/tree-construction/*.dat "$D"/tokenizer/*.test
read -r _ n equal moved wrong <<<"$(grep '^tree' out)"
echo "tree construction: $n documents, $equal with the same text, $moved in another order, $wrong otherwise"
equal "documents" "$n" 1600
equal "whose text differs" "$wrong" 22
equal "or stands elsewhere" "$moved" 5
equal "tokenizer" "$(grep '^tokenizer' out)" "tokenizer 6684 6684 0 0"
finish
