#!/usr/bin/env bash
# Completion in bash and zsh.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
mkdir files && cd files && mkdir folder && touch docs.jsonl 'two words.txt'
# What bash completes of the words given, the last of which is at the cursor.
# shellcheck source=completion/quern.bash
. "$ROOT/completion/quern.bash"
completed() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _quern quern "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
}
check 'bash completes quern with it' bash -c '. "$1" && complete -p quern' - "$ROOT/completion/quern.bash"
equal 'bash: a command' "$(completed quern tokeni)" 'tokenize tokenizer '
equal 'bash: all commands' "$(completed quern '')" \
    "$(quern --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | tr '\n' ' ')"
equal 'bash: an action' "$(completed quern dedup '')" 'exact fuzzy lines merge substring '
equal 'bash: the only action' "$(completed quern crawl '')" 'select '
equal 'bash: an action after it is a file' "$(completed quern dedup exact fu)" ' '
equal 'bash: an option' "$(completed quern langid --kee)" '--keep '
equal 'bash: an option of the action alone' "$(completed quern dedup fuzzy --thr)$(completed quern dedup exact --thr)" '--threshold  '
equal 'bash: a flag that is on is turned off' "$(completed quern clean --no-contr)" '--no-controls '
equal 'bash: a word of several' "$(completed quern clean --form nfk)" 'nfkc '
equal 'bash: the same after =' "$(completed quern clean --form = nfk)" 'nfkc '
equal 'bash: all of them right after =' "$(completed quern clean --form = | wc -w)" \
    "$(quern clean --completion | sed -n 's/^--form\t[^\t]*\t\([^\t]*\).*/\1/p' | tr '|' '\n' | wc -l)"
equal 'bash: a file that is read' "$(completed quern filter --config d)" 'docs.jsonl '
equal 'bash: a file by a letter' "$(completed quern filter -c d)" 'docs.jsonl '
equal 'bash: a file that is written' "$(completed quern filter -o two)" 'two words.txt '
equal 'bash: a folder' "$(completed quern train --save '')" 'folder '
equal 'bash: a number is nothing' "$(completed quern clean -j '')" ' '
equal 'bash: files otherwise' "$(completed quern clean d)" 'docs.jsonl '
equal 'bash: quern-COMMAND' "$(completed quern-dedup f)$(completed quern-clean --form nfk)" 'fuzzy nfkc '
equal 'bash: a program that is not there' "$(completed none/quern d)" 'docs.jsonl '

# Every option of every help can be completed.
for p in "$ROOT/$B"/bin/quern-*; do
    "$p" --completion | sed -n 's/^--\(no-\)\{0,1\}\([^\t]*\)\t.*/\2/p' | sort -u
done >../completed
for p in "$ROOT/$B"/bin/quern-*; do
    "$p" --help | sed -nE 's/^  (-.,|   ) --(\[no-\]|no-)?([a-z0-9-]+).*/\3/p'
done | sort -u >../helped
sort -u -o ../completed ../completed
same 'what --completion prints is what --help has' ../completed ../helped

if command -v zsh >/dev/null; then
    # What it would offer, told by functions in the place of zsh's own.
    cat >../try.zsh <<'END'
_files() { print -r -- files $* }
_describe() { print -rl -- "$1" ${(P)2%%:*} }
_message() { print -r -- message }
compadd() { shift; print -r -- $* }
words=("${@[2,-1]}") CURRENT=$(( $# - 1 ))
source $1
END
    offered() { zsh -f ../try.zsh "$ROOT/completion/_quern" "$@" | tr '\n' ' '; }
    has 'zsh: commands' <(offered quern '') 'command crawl extract '
    equal 'zsh: actions' "$(offered quern dedup '')" 'command exact fuzzy lines substring merge '
    has 'zsh: options of an action' <(offered quern dedup fuzzy --) ' --threshold '
    equal 'zsh: words' "$(offered quern clean --form '')" "$(quern clean --completion |
        sed -n 's/^--form\t[^\t]*\t\([^\t]*\).*/\1/p' | tr '|' ' ') "
    equal 'zsh: a file, a folder, a number, an operand' \
        "$(offered quern filter -c '')$(offered quern train --save '')$(offered quern clean -j '')$(offered quern clean '')" \
        'files files -/ message files '
else
    skip 'completion in zsh' 'no zsh here (make deps-dev installs it)'
fi
finish
