# shellcheck shell=bash
# Completion of quern for bash.  What there is to complete each command says itself, from its table of
# options: quern COMMAND --completion prints lines of a word, its letter, what follows it, and help.

# The words in $words that name the program, into $run, and what it completes, into $table: quern alone,
# with a command, with an action of it.
_quern_program() {
    local i deepest=2
    [[ ${words[0]##*/} != quern ]] || deepest=3
    run=("${words[0]}")
    for ((i = 1; ; i++)); do
        table=$("${run[@]}" --completion 2>/dev/null)
        ((i < deepest)) || { table=$(grep -v $'\t-\tcommand' <<<"$table"); return; }
        ((i < at)) && [[ $'\n'$table == *$'\n'"${words[i]}"$'\t-\tcommand'* ]] || return
        run+=("${words[i]}")
    done
}

_quern() {
    local words=("${COMP_WORDS[@]}") at=$COMP_CWORD current=$2 option=$3 table run long letter value options=() commands=() files=1
    # bash cuts --option=value in three
    if [[ $current == = ]]; then
        current=
    elif [[ $option == = ]]; then
        option=${words[at - 2]}
    fi
    COMPREPLY=()
    _quern_program
    while IFS=$'\t' read -r long letter value _; do
        if [[ $value == command* ]]; then # "command|file": a file may stand there, too
            commands+=("$long") files=${value#command}
            continue
        fi
        options+=("$long")
        [[ $value != flag ]] && [[ $option == "$long" || $option == "$letter" ]] || continue
        case $value in
        file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        text) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$current") ;;
        esac
        return
    done <<<"$table"
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options[*]}" -- "$current")
    else
        [[ -z $files ]] || compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -W "${commands[*]}" -- "$current"; [[ -z $files ]] || compgen -f -- "$current")
    fi
}
# shellcheck disable=SC2046 # words
complete -F _quern quern $(compgen -c quern- | sort -u)
