#!/bin/bash
# Outputs: what stands under a name that was there, what a run that ends leaves, and what reaches a terminal.
. "$ROOT/tests/lib.sh"
printf '{"id":"%s","text":"The mill grinds the grain number %s."}\n' a 1 b 2 c 3 c 3 >d.jsonl

# what is there and is no regular file is written as it is
ln -s /proc/self/fd/1 to_stdout
quern dedup fuzzy --clusters to_stdout -o kept.jsonl d.jsonl 2>err | cat >got
has 'output through a link to a pipe goes to the pipe' got "$(printf 'c\tc\t1.000000')"
check 'and the link is still one' test -L to_stdout
quern dedup fuzzy --clusters /dev/stdout -o kept2.jsonl d.jsonl 2>err | cat >got2
same '/dev/stdout is the pipe that it leads to' got got2
quern dedup fuzzy -o /proc/self/fd/1 d.jsonl 2>err | cat >got2
same 'the temporary file of a second pass is not made beside a pipe' got2 kept2.jsonl
quern dedup exact -q --rejects /dev/stdout -o kept3.jsonl d.jsonl >>got3
has 'and the file that it leads to' got3 '"id":"c"'
mkfifo fifo
cat fifo >got4 &
quern dedup exact -q -o fifo d.jsonl
wait $!
same 'a named pipe is written as it is' got4 kept3.jsonl
check 'and stays one' test -p fifo
status 'a folder is no file' 3 quern dedup exact -o . d.jsonl
has 'and is called one' err 'is a directory'

printf 'input: d.jsonl\nstages: [dedup exact]\noutput: fifo\nwork: fifo.work\n' >plan.yaml
cat fifo >got5 &
quern curate -q plan.yaml
wait $!
same "a plan's too" got5 kept3.jsonl
check 'and it stays one' test -p fifo
echo old >plan.jsonl
chmod 600 plan.jsonl
check 'a plan that replaces a file' quern curate -q -o plan.jsonl --work own.work plan.yaml
equal 'keeps its mode' "$(stat -c %a plan.jsonl)" 600
same 'and has all' plan.jsonl kept3.jsonl
status 'started again it is done' 0 quern curate -o plan.jsonl --work own.work plan.yaml
equal 'and leaves nothing beside it' "$(compgen -G '.plan.jsonl*')" ''

# descriptors 0 to 2
status 'a run without standard output' 0 sh -c 'quern dedup exact d.jsonl -o z.jsonl >&-'
same 'writes its file' z.jsonl kept3.jsonl
status 'standard output that is closed cannot be written' 3 sh -c 'quern dedup exact d.jsonl >&-'
has 'and that is said' err "cannot write 'standard output'"
status 'nor by what prints' 3 sh -c 'quern stats d.jsonl >&-'
status 'standard input that is closed cannot be read' 3 sh -c 'quern dedup exact <&-'
status 'no file becomes standard error' 0 sh -c 'quern dedup exact d.jsonl -o y.jsonl 2>&- <&- >&-'
same 'and all of it is there' y.jsonl kept3.jsonl

# temporary names
echo precious >victim
ln -s victim .planted.jsonl.part
check 'a link that somebody planted' quern dedup exact -q -o planted.jsonl d.jsonl
equal 'is not followed' "$(cat victim)" precious
check 'and the output is a file of its own' test ! -L planted.jsonl
umask 022
echo old >private.jsonl
chmod 600 private.jsonl
check 'a file that only its owner may read' quern dedup exact -q -o private.jsonl d.jsonl
equal 'stays so' "$(stat -c %a private.jsonl)" 600
equal 'and a new one is as the shell would make it' "$(stat -c %a kept3.jsonl)" 644
ln -s there/out.jsonl dangling.jsonl
mkdir there
check 'a link that leads nowhere yet' quern dedup exact -q -o dangling.jsonl d.jsonl
same 'leads to the output' there/out.jsonl kept3.jsonl

# What ends a tool takes its unfinished output with it.
mkfifo slow
for sig in INT TERM HUP QUIT ALRM USR1 USR2; do
    mkdir "by_$sig"
    # A shell starts what runs beside it with INT ignored, nohup all with HUP.
    env --default-signal=INT,TERM,HUP,QUIT,ALRM,USR1,USR2 quern clean -o "by_$sig/out.jsonl" --rejects "by_$sig/rejects.jsonl" slow 2>err &
    pid=$!
    exec 7>slow
    cat d.jsonl >&7
    for ((i = 0; i < 600; i++)); do
        [ "$(find "by_$sig" -name '.*.part' | wc -l)" = 2 ] && break
        sleep 0.1
    done
    equal "before $sig two files are begun" "$(find "by_$sig" -name '.*.part' | wc -l)" 2
    kill -"$sig" $pid
    wait $pid 2>/dev/null
    equal "$sig ends a tool with its own status" $? $((128 + $(kill -l "$sig")))
    exec 7>&-
    equal "and nothing is left" "$(ls -A "by_$sig")" ''
done
quern clean -o killed.jsonl slow 2>err &
pid=$!
exec 7>slow
cat d.jsonl >&7
for ((i = 0; i < 600; i++)); do
    compgen -G '.killed.jsonl.*.part' >/dev/null && break
    sleep 0.1
done
status 'a second writer of a name is refused' 3 quern clean -o killed.jsonl d.jsonl
has 'and told why' err 'another process is writing it'
kill -KILL $pid
wait $pid 2>/dev/null
exec 7>&-
check 'after kill -9 a file is left' compgen -G '.killed.jsonl.*.part'
check 'the next run' quern clean -q -o killed.jsonl d.jsonl
equal 'takes it away' "$(compgen -G '.killed.jsonl.*.part')" ''

# compression is a matter of the name, and what cannot be written is refused before anything is
for end in xz bz2 lz4 zip; do
    status "-o NAME.$end is refused" 2 quern clean -o "x.jsonl.$end" d.jsonl
    has 'with what can be written' err ".$end cannot be written, .gz, .zst and .parquet can"
    absent 'and nothing is there' "x.jsonl.$end"
done
status 'also for what is written beside' 2 quern clean -o x.jsonl --rejects r.jsonl.xz d.jsonl
absent 'before the output begins' x.jsonl
for end in gz zst; do
    check "-o NAME.$end is compressed" quern dedup exact -q -o "x.jsonl.$end" d.jsonl
done
gunzip -c x.jsonl.gz | cmp -s - kept3.jsonl && zstd -dcq x.jsonl.zst | cmp -s - kept3.jsonl &&
    ok 'as the name says' || bad 'as the name says'

# messages
name=$(printf 'esc\033[31m\r\n\302\233')
status 'a file that is not there' 3 quern clean "$name"
has 'is named without what steers a terminal' err 'esc\x1b[31m\x0d\n\xc2\x9b'
equal 'and in one line' "$(wc -l <err)" 1
status 'an address of another kind' 3 quern clean hf://datasets/d.jsonl
has 'is told which there are' err "cannot open 'hf://datasets/d.jsonl': no file here, and no address of http, https or s3"
status 'a command that there is not' 2 quern "$name"
has 'is named so too' err 'esc\x1b[31m'
for ((i = 0; i < 40; i++)); do echo "no JSON $i"; done >bad.jsonl
if command -v strace >/dev/null; then
    ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" strace -f -e trace=write -o calls quern clean -v bad.jsonl >out 2>err
    equal 'each message is one write' "$(grep -c 'write(2,' calls)" "$(wc -l <err)"
else
    skip 'each message is one write' 'no strace'
fi

# a reader that goes
mkfifo gone
exec 8<>gone 9>gone 8<&-
quern clean --help 2>err >&9
equal 'help without a reader ends as other tools do' $? 141
exec 9>&-
equal 'and says nothing' "$(cat err)" ''
set -o pipefail
for ((i = 0; i < 20000; i++)); do printf '{"id":"%d","text":"The mill grinds the grain number %d, and more."}\n' $i $i; done >many.jsonl
quern clean -q many.jsonl 2>err | head -n 1 >got
equal 'head ends a tool as it ends others' $? 141
equal 'without a word' "$(cat err)" ''
(trap '' PIPE; exec quern clean -q many.jsonl) 2>err | head -n 1 >got
equal 'who ignores SIGPIPE gets an error' $? 3
has 'and a message' err 'Broken pipe'
set +o pipefail

# how to turn an option off
check 'the help of a flag' quern clean --help
has 'says how to turn it off' out '--[no-]controls'
grep -q -- '--\[no-\]help' out && bad 'but help is not turned off' || ok 'but help is not turned off'
status 'a flag takes no value' 2 quern clean --controls=false d.jsonl
has 'and what there is instead is said' err '--no-controls turns it off'
check 'man pages too' quern clean --man
has 'say how' out '\-\-[no\-]controls'
finish
