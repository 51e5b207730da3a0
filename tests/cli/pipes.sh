#!/bin/bash
# A tool that fails tells the next one in a pipe, which then publishes nothing.  Without pipefail.
. "$ROOT/tests/lib.sh"
printf '{"id":"%s","text":"The mill grinds the grain number %s, slowly."}\n' a 1 b 2 c 3 >p.jsonl
quern clean -q p.jsonl missing.jsonl 2>err1 | quern dedup exact -o out.jsonl 2>err
equal 'after a tool that failed the next one fails' $? 3
has 'says which and why' err "quern-clean, which writes this input, failed: cannot open 'missing.jsonl'"
absent 'and publishes nothing' out.jsonl
quern clean --no-such-option p.jsonl 2>err1 | quern dedup exact -o out.jsonl 2>err
equal 'after a wrong command line too' $? 3
has 'with its reason' err "unknown option '--no-such-option'"
quern cleen p.jsonl 2>err1 | quern dedup exact -o out.jsonl 2>err
equal 'after a command that there is not' $? 3
quern clean p.jsonl missing.jsonl 2>err1 | quern langid 2>err2 | quern dedup exact -o out.jsonl 2>err
equal 'through several tools' $? 3
has 'the first reason arrives' err "missing.jsonl"
absent 'and nothing is published' out.jsonl
quern mix -o - missing.jsonl 2>err1 | quern stats >out 2>err
equal 'stats' $? 3
quern clean missing.jsonl 2>err1 | quern mix -o mixed.jsonl 2>err
equal 'mix' $? 3
check 'a tokenizer' quern tokenizer train -q --vocab-size 300 -o t.json p.jsonl
quern clean missing.jsonl 2>err1 | quern tokenize --tokenizer t.json --output-prefix n 2>err
equal 'tokenize' $? 3
has 'says who failed' err 'quern-clean, which writes this input, failed'
quern clean missing.jsonl 2>err1 | quern tokenizer train --vocab-size 300 -o t2.json 2>err
equal 'tokenizer train' $? 3
quern tokenizer encode --jsonl --tokenizer t.json missing.jsonl 2>err1 | quern clean -o e.jsonl 2>err
equal 'after encode --jsonl' $? 3
absent 'nothing of these' mixed.jsonl n_text_document.bin n_text_document.idx .n_text_document.bin.part t2.json e.jsonl

# a stream that stands in the middle of a line
mkfifo slow
(
    for ((i = 0; i < 6000; i++)); do printf '{"id":"%d","text":"The mill grinds the grain number %d, and more of it."}\n' $i $i; done
) >many.jsonl
quern clean -q many.jsonl - 2>err1 <. | tail -n 2 >last
has 'the line stands by itself' last '{"quern_failed":{"tool":"quern-clean","reason":'
equal 'in one line' "$(grep -c '^{"quern_failed"' last)" 1

# a signal
quern clean -q slow 2>err1 | quern dedup exact -o out.jsonl 2>err &
pipe=$!
exec 7>slow
cat p.jsonl >&7
pid=
for ((i = 0; i < 600; i++)); do
    for p in /proc/[0-9]*; do
        if [ "$(readlink "$p/cwd" 2>/dev/null)" = "$PWD" ] && grep -qa '^[^ ]*quern-clean' "$p/cmdline" 2>/dev/null; then
            pid=${p#/proc/}
        fi
    done
    [ -n "$pid" ] && break
    sleep 0.1
done
sleep 0.5
kill -TERM "$pid"
wait $pipe
equal 'a tool that TERM ends' $? 3
exec 7>&-
has 'says so' err 'a signal ended it'
absent 'and nothing is published' out.jsonl

# who gets no such line
status 'a file' 3 quern clean missing.jsonl
equal 'never' "$(cat out)" ''
quern clean -o o.jsonl missing.jsonl 2>err1 | cat >got
equal 'nor a pipe without documents' "$(cat got)" ''
quern stats missing.jsonl 2>err1 | cat >got
equal 'nor one of another tool' "$(cat got)" ''

# documents that only look like it
printf '{"quern_failed":{"why":"a document of somebody"},"id":"x","text":"The mill."}\n' >like.jsonl
check 'a document with such a field' quern clean -q like.jsonl
has 'is a document' out '"text":"The mill."'
finish
