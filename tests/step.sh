#!/bin/sh
# step.sh WHAT LOG COMMAND...: says what is done, in a line; what the command prints goes to the log, whose end is shown if it fails.
what=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
echo "$what (details in $log)"
"$@" >"$log" 2>&1 </dev/null && exit 0
status=$?
tail -n 40 "$log"
echo "$what: failed; all of it is in $log" >&2
exit $status
