# shellcheck shell=bash
# For tests/cli and tests/shared: source it first.  Moves to a scratch folder that is
# removed at the end, and counts cases.
set -u
T=$(mktemp -d) || exit 1
scratch=$T # a test may use the name T for something else
trap 'rm -rf "$scratch"' EXIT
cd "$T" || exit 1
not_ok=0

ok() { echo "ok - $1"; }
bad() { echo "not ok - $1${2:+: $2}"; not_ok=1; }

# check NAME COMMAND...: the command must succeed.
check() {
    local name=$1
    shift
    if "$@" >out 2>err; then ok "$name"; else bad "$name" "status $?; $(head -c 400 err)"; fi
}
# status NAME WANT COMMAND...: exit status; standard output in ./out, errors in ./err.
status() {
    local name=$1 want=$2 got
    shift 2
    "$@" >out 2>err </dev/null
    got=$?
    if [ "$got" = "$want" ]; then ok "$name"; else bad "$name" "status $got, not $want; $(head -c 400 err)"; fi
}
# same NAME FILE1 FILE2: equal bytes.
same() {
    if cmp -s "$2" "$3"; then ok "$1"; else bad "$1" "$(cmp "$2" "$3" 2>&1 | head -c 200)"; fi
}
# has NAME FILE TEXT: the file has the text.
has() {
    if grep -qF -- "$3" "$2"; then ok "$1"; else bad "$1" "no '$3' in: $(head -c 400 "$2")"; fi
}
# equal NAME GOT WANT: equal strings.
equal() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "got '$(printf %s "$2" | head -c 300)', want '$(printf %s "$3" | head -c 300)'"; fi
}
# absent NAME FILE...: none of the files exists.
absent() {
    local name=$1 f
    shift
    for f; do [ ! -e "$f" ] || { bad "$name" "$f exists"; return; }; done
    ok "$name"
}
# Call last.
finish() { exit $not_ok; }
