#!/usr/bin/env bash
# Pages made to be slow or large: each ends, within 1 GiB of memory.  bench/hostile.sh measures how soon.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/hostile_pages.sh
. "$ROOT/tests/hostile_pages.sh"

# within NAME STATUS OPTIONS...: extracts NAME.html.  The bound on processor time is what quadratic work would pass.
within() {
    local name=$1 want=$2 got
    shift 2
    got=$(
        instrumented || ulimit -v 1048576 -t 20
        quern-extract -j 1 "$@" "$name.html" >out 2>err
        echo $?
    )
    if [ "$got" = "$want" ]; then
        ok "$name $*"
    else
        bad "$name $*" "status $got, not $want; $(head -c 300 err)"
    fi
}

for extractor in main rules everything justext; do
    for page in "${hostile_pages[@]}"; do
        within "$page" 0 --extractor $extractor
    done
    within long 1 --extractor $extractor
done
has "a page of 200 MB is named" err "'long.html'"
within long 0 --max-page-bytes 256M
finish
