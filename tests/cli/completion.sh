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
equal 'bash: an action that may be there' "$(completed quern perplexity m)$(completed quern ablate f)" 'model fit folder '
equal 'bash: or a file' "$(completed quern perplexity d)" 'docs.jsonl '
equal 'bash: the options of that action' "$(completed quern perplexity model --lo)$(completed quern perplexity --lo)" '--load  '
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
# all OPTION: what each command says to it, and for each of its actions.
all() {
    local p a
    for p in "$ROOT/$B"/bin/quern-*; do
        "$p" "$1"
        for a in $("$p" --completion | sed -n 's/\t-\tcommand.*//p'); do "$p" "$a" "$1"; done
    done
}
all --completion | sed -n 's/^--\(no-\)\{0,1\}\([^\t]*\)\t.*/\2/p' | sort -u >../completed
all --help | sed -nE 's/^  (-.,|   ) --(\[no-\]|no-)?([A-Za-z0-9-]+).*/\3/p' | sort -u >../helped
same 'what --completion prints is what --help has' ../completed ../helped
has 'the help of perplexity has the options of both its forms' <(quern perplexity --help) 'the checkpoint'"'"'s folder'
has 'and its man page' <(quern perplexity --man) 'ckpt\-step'
has 'the help of classify those of training' <(quern classify --help) '--wordNgrams N'

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
    equal 'zsh: an action or a file' "$(offered quern perplexity '')" 'command model files '
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
