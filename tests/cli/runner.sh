#!/bin/bash
# What the tests' own runner says: a failing case in full, and a total.
# shellcheck disable=SC2016
. "$ROOT/tests/lib.sh"
mkdir -p tests/some tests/fuzz build
cp "$ROOT"/tests/{lib,run}.sh tests
cat >tests/some/bad.sh <<'X'
. "$ROOT/tests/lib.sh"
twice() { equal "$1" one two; }
status 'a status' 3 bash -c 'echo words >&2; exit 1'
twice 'a text'
skip 'a disk' 'none here'
finish
X
printf '%s\n' '. "$ROOT/tests/lib.sh"' 'ok fine' 'ok "fine too"' finish >tests/some/good.sh
printf 'exit 0\n' >tests/some/none.sh
status 'cases fail' 1 env B=build ONLY='' bash tests/run.sh some
has 'file and line, and what stands there' out "at tests/some/bad.sh:3: status 'a status' 3 bash"
has 'the command' out "command: bash -c echo\\ words"
has 'what it should be' out 'want: status 3'
has 'and what it is' out 'got: status 1; words'
has 'a helper of the script, and where it was called' out "at tests/some/bad.sh:2 tests/some/bad.sh:4: twice 'a text'"
has 'two texts' out $'want: two\n    got: one'
has 'what was skipped' out 'skipped: bad: a disk: none here'
has 'a file without a case has failed' out 'none: ran no test'
has 'files that fail are named' out 'failed: bad none (details in build/tests.log)'
equal 'the total' "$(tail -n 2 out)" $'1 skipped\n2 passed, 3 failed'
equal 'one line of a file that passes' "$(grep -c fine out) $(grep -c 'good: 2 passed' out)" '0 1'
equal 'what each took' "$(grep -c 's of processor' build/tests.times)" 3
status 'those with a pattern' 0 env B=build ONLY=goo bash tests/run.sh some
equal 'their total' "$(tail -n 1 out)" '2 passed, 0 failed'

# A file that does not end is ended, with what it has started.
printf '%s\n' '. "$ROOT/tests/lib.sh"' 'ok begun' 'sleep 1000 & echo $! >"$ROOT/sleeps"' 'wait' >tests/some/stands.sh
status 'a file stands still' 1 env B=build ROOT="$T" FILE_SECONDS=1 ONLY=stands bash tests/run.sh some
has 'is said' out 'not ok - to end within 1 s'
has 'with what it waits for' out ': sleep 1000'
equal 'has failed' "$(tail -n 1 out)" '1 passed, 1 failed'
for _ in $(seq 100); do lives=$(sed -nE 's/.*\) ([^Z]) .*/\1/p' "/proc/$(cat sleeps)/stat" 2>/dev/null) && [ "$lives" ] || break; sleep 0.05; done
equal 'nothing of it runs' "$lives" ''

# A long step is a line; of one that fails the end of its log.
cp "$ROOT/tests/step.sh" tests
status 'a step' 0 sh tests/step.sh 'building it' build/it.log sh -c 'seq 100; echo more >&2'
equal 'is a line' "$(cat out err)" 'building it (details in build/it.log)'
equal 'with all in its log' "$(wc -l <build/it.log)" 101
status 'a step that fails' 4 sh tests/step.sh 'building it' build/it.log sh -c 'seq 100; exit 4'
equal 'shows the end' "$(tail -n +2 out | head -n 1) $(tail -n 1 out)" '61 100'
has 'and where all of it is' err 'building it: failed; all of it is in build/it.log'
finish
