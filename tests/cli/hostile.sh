#!/usr/bin/env bash
# Pages made to be slow or large: each within 1 s of processor time and 1 GiB of memory.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
repeat() { awk -v s="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }
instrumented() { grep -q __asan_init "$(command -v quern-extract)" || grep -q __tsan_init "$(command -v quern-extract)"; }

# within NAME STATUS OPTIONS...: extracts NAME.html.
within() {
    local name=$1 want=$2 got cpu
    shift 2
    cpu=$({ TIMEFORMAT='%U %S'; time (
        instrumented || ulimit -v 1048576
        quern-extract -j 1 "$@" "$name.html" >out 2>err
        echo $? >status
    ); } 2>&1 | awk '{ print $1 + $2 }')
    got=$(cat status)
    if [ "$got" != "$want" ]; then
        bad "$name" "status $got, not $want; $(head -c 300 err)"
    elif ! instrumented && awk -v t="$cpu" 'BEGIN { exit t < 1 }'; then
        bad "$name" "$cpu s"
    else
        ok "$name in $cpu s"
    fi
}

{ repeat '<div>' 100000; echo deep; } >levels.html
{ printf '<p '; repeat 'data-a=1 ' 1000000; echo '>text'; } >attributes.html
{ printf '<p '; awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "a%d=x ", i }'; echo '>text'; } >names.html
echo '<table><tr><td rowspan=9000000000000000 colspan=9000000000000000>a<td>b</table>' >span.html
{ repeat '<p><b><i><div><span><font>' 20000; echo text; } >unclosed.html
repeat '<p>some words of a page that goes on and on</p>' 4500000 >long.html
for extractor in main everything justext; do
    for page in levels attributes names span unclosed; do
        within $page 0 --extractor $extractor
    done
    within long 1 --extractor $extractor
done
has "a page of 200 MB is named" err "'long.html'"
within long 0 --max-page-bytes 256M
finish
