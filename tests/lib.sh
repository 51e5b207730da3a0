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
# bad NAME [WHY]...: the case failed; says where it stands, from its helpers outwards, how it is written there, and each WHY.
bad() {
    local i at='' file line
    for ((i = 1; i < ${#FUNCNAME[@]}; i++)); do
        file=${BASH_SOURCE[i]} line=${BASH_LINENO[i - 1]}
        [[ $file == */tests/lib.sh ]] || at+=" ${file#"$ROOT/"}:$line"
    done
    echo "not ok - $1"
    echo "    at$at: $(cd "$ROOT" && sed -n "${line}{s/^ *//;p}" "$file" 2>&1)"
    shift
    for i; do printf '    %s\n' "${i//$'\n'/$'\n        '}"; done
    not_ok=1
}
# skip NAME WHY: the case cannot be tried here.
skip() { echo "skip - $1: $2"; }

# check NAME COMMAND...: the command must succeed.
check() {
    "${@:2}" >out 2>err
    came "$1" $? 0 "${@:2}"
}
# status NAME WANT COMMAND...: exit status; standard output in ./out, errors in ./err.
status() {
    "${@:3}" >out 2>err </dev/null
    came "$1" $? "$2" "${@:3}"
}
# came NAME GOT WANT COMMAND...: counts the status of a command.
came() {
    if [ "$2" = "$3" ]; then ok "$1"; return; fi
    bad "$1" "command: $(printf '%q ' "${@:4}")" "want: status $3" "got: status $2; $(head -c 400 err)"
}
# same NAME FILE1 FILE2: equal bytes.
same() {
    local differ
    if differ=$(cmp "$2" "$3" 2>&1); then ok "$1"; return; fi
    [ ! -f "$2" ] || [ ! -f "$3" ] || differ+=$'\n'$(diff -a "$2" "$3" 2>&1 | head -n 8 | cut -c 1-200)
    bad "$1" "got: $differ"
}
# has NAME FILE TEXT: the file has the text.
has() {
    if grep -qF -- "$3" "$2"; then ok "$1"; else bad "$1" "want: $3" "got, in $2: $(head -c 400 "$2" 2>&1)"; fi
}
# equal NAME GOT WANT: equal strings.
equal() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "want: $(printf %s "$3" | head -c 400)" "got: $(printf %s "$2" | head -c 400)"; fi
}
# absent NAME FILE...: none of the files exists.
absent() {
    local name=$1 f
    shift
    for f; do [ ! -e "$f" ] || { bad "$name" "$f exists"; return; }; done
    ok "$name"
}
# instrumented: the programs have a sanitizer that maps more than a limit of memory would allow.
instrumented() { grep -q '__[at]san_init' "$(command -v quern)"; }
# Call last.
finish() { exit $not_ok; }
