#!/bin/bash
# The tools' tests and the unit tests under the address and undefined-behaviour sanitizers, and those of training.
. "$ROOT/tests/lib.sh"
unset B KILLS SWEEP # the build folder follows from the sanitizers; kills and ranks are as many as in make check
export MAKEFLAGS='' ONLY=
cd "$ROOT" || exit 1
for target in check-san-unit check-san check-san-ranks; do
    if make "$target" >"$T/log" 2>&1; then ok "$target: $(tail -n 1 "$T/log")"; else bad "$target" "$(tail -n 60 "$T/log")"; fi
done
finish
