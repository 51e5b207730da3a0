#!/bin/bash
# Each library by itself missing: what is left builds, links and runs, and what is left out is said.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/without.sh"
read -ra optional < <(optional)
check 'there are some' [ "${#optional[@]}" -gt 10 ]
for l in "${optional[@]}"; do
    check "without $l: it builds" without "$l"
    equal "without $l: no warning" "$(grep 'warning:' out err)" ''
    sed -n 's/^left out: \(quern-[a-z]*\),.*/\1/p' out | sort >left
    for p in "$built"/bin/*; do
        n=${p##*/}
        if grep -qx "$n" left; then absent "without $l: $n is left out" "lean/bin/$n"; else
            check "without $l: $n runs" "lean/bin/$n" --help
        fi
    done
done
finish
