# shellcheck shell=bash
# `quern COMMAND`, installation, and what all commands have in common.
. "$ROOT/tests/lib.sh"

status 'quern alone explains itself' 2 quern
has 'it lists the commands' err tokenize
status 'quern --help' 0 quern --help
has 'with the commands' out 'extract '
for p in "$ROOT/$B"/bin/quern-* "$B"/bin/quern-*; do
    [ ! -x "$p" ] || has "it lists ${p##*/quern-}" out "  ${p##*/quern-} "
done
status 'an unknown command is a usage error' 2 quern frobnicate
has 'and is named' err frobnicate
status 'a path is no command' 2 quern no/a
has 'it is named as it was typed' err "no command 'no/a'"
status 'one nearly known' 2 quern tokenise
has 'is guessed' err "did you mean 'tokenize'?"
status 'quern help COMMAND' 0 quern help clean
has 'is its help' out 'usage: quern clean'
status 'quern --help COMMAND' 0 quern --help clean
has 'too' out 'usage: quern clean'
status "a command's option before it" 2 quern -q clean
has 'is none of quern itself' err "unknown option '-q'"
has 'and where it goes is said' err "a command's options follow it"
quern --help >out
equal 'quern has no option that does nothing' "$(grep -c -e --quiet out)" 0
status 'quern --version' 0 quern --version
mv out version
check 'is of quern, with the commit if it is known' grep -qE '^quern [0-9]+[.][0-9]+[.][0-9]+( [(][0-9a-f]{7,40}(-dirty)?[)])?$' version
status 'a misspelt option' 2 quern clean --blank-line 1
has 'is guessed' err "unknown option '--blank-line'; did you mean '--blank-lines'?"
printf '\xEF\xBB\xBF{"id":"1","text":"a"}\n<p>\n' >marked.jsonl
status 'a byte order mark is no fault, HTML is' 1 quern clean marked.jsonl
equal 'the marked line is read' "$(cat out)" '{"id":"1","text":"a"}'
has 'what HTML is is said' err 'quern extract reads that'
status 'quern COMMAND runs quern-COMMAND' 0 quern clean --version
has 'with its version' out quern-clean

# The commit: of git, else as git archive writes it; a new one compiles one file again.  With the flags of the make that runs the
# tests: others would build all of it again, under those that run beside.
makes() { make -C "$ROOT" --no-print-directory B="$B" HAVE_CUDA=0 "$@"; }
makes -n -W "$B/commit" all | grep -e ' -c ' | grep -o '[a-z_/]*[.]c ' >compiled
equal 'another commit compiles one file again' "$(cat compiled)" 'base/version.c '
if [ -e "$ROOT/.git" ] && command -v git >/dev/null; then
    git -C "$ROOT" archive HEAD .commit | tar -xO >commit
    check 'an archive of git carries the commit' grep -qxE '[0-9a-f]{7,40}' commit
else
    skip 'an archive of git carries the commit' 'no git here'
fi

status 'make install' 0 makes -s install PREFIX="$T/usr"
status 'what was installed runs' 0 "$T/usr/bin/quern" clean --version
man=$(find "$T/usr/share/man/man1" -name 'quern-*.1' | wc -l)
bins=$(find "$T/usr/bin" -name 'quern-*' | wc -l)
equal 'a man page for each command' "$man" "$bins"
has 'a man page has a synopsis' "$T/usr/share/man/man1/quern-clean.1" '.SH SYNOPSIS'
echo other >"$T/usr/bin/quern-other"
status 'make uninstall' 0 makes -s uninstall PREFIX="$T/usr"
equal 'leaves what make install did not put there, and nothing else' "$(cd usr && find . -type f)" ./bin/quern-other

# NOTICE says of each table from elsewhere where it is from.
sed -n 's/^Files: //p' "$ROOT/NOTICE" | tr ' ' '\n' | grep -vxF '*' >noticed
check 'NOTICE names files that are there' bash -c 'cd "$1" && ls $(cat)' - "$ROOT" <noticed
find "$ROOT" -maxdepth 4 -name '*.inc' -path "$ROOT/[a-z]*" ! -path "$ROOT/build*" ! -name wikitext_patterns.inc ! -name sass.inc -printf '%P\n' | sort >tables
equal 'and every table of words or characters' "$(grep '[.]inc$' noticed | sort)" "$(cat tables)"

printf '{"id":"1","text":"one line"}\n' >good.jsonl
{ gzip -c good.jsonl; gzip -c good.jsonl | head -c 30; } >cut.jsonl.gz
printf 'nonsense\n{"id":"2","text":"x"}\n\xff\n' >bad.jsonl
for stage in clean langid 'filter --preset c4 --annotate' 'dedup exact' 'dedup fuzzy' 'dedup lines' 'dedup substring'; do
    # shellcheck disable=SC2086 # words
    set -- $stage
    status "$stage: a missing file" 3 quern "$@" missing.jsonl
    has "$stage: names it" err missing.jsonl
    status "$stage: a directory" 3 quern "$@" .
    status "$stage: bad lines" 1 quern "$@" bad.jsonl
    has "$stage: names their place" err "'bad.jsonl' at byte 0"
    status "$stage: a full disk" 3 bash -c "quern $stage --help >/dev/null; quern $stage good.jsonl good.jsonl bad.jsonl >/dev/full"
    status "$stage: no such folder" 3 quern "$@" -o none/out.jsonl good.jsonl
    status "$stage: a truncated gzip" 1 quern "$@" -o cut.out cut.jsonl.gz
    has "$stage: names it too" err cut.jsonl.gz
    status "$stage: an unknown option" 2 quern "$@" --frobnicate
done
finish
