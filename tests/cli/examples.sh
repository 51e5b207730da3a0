#!/usr/bin/env bash
# The example in each command's help works when pasted.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
for p in "${B:?}"/bin/quern-* "$ROOT/$B"/bin/quern-*; do
    [ -x "$p" ] || continue
    n=${p##*/quern-}
    mkdir "$n"
    quern "$n" --help | sed '1,/^Example:/d' >"$n.sh"
    status "the example of $n" 0 bash -ec "cd $n && . ../$n.sh"
done
finish
