#!/usr/bin/env bash
# quern tokenizer train --model superbpe: merges across words.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer/train
train() { quern tokenizer train --model superbpe "$@"; }

status "train" 0 train --vocab-size 1500 -j1 -o t.json "$D/texts.jsonl"
status "as Hugging Face's library" 0 quern tokenizer verify --allow-special --tokenizer t.json --against "$D/superbpe.jsonl.zst"
has "all of them" out "2500 texts have the same ids, 0 differ"
seq 400 | awk '{ print ($1 % 3 ? "the mill on the river grinds the grain of the valley" : "on the river, in the valley"), $1 }' >text
train --vocab-size 400 --subwords 300 -j1 -o one.json text 2>/dev/null
is_token() { grep -c "^      \"$1\": " one.json || true; }
equal "two words are a token" "$(is_token 'ĠtheĠriver')" 1
equal "four words are" "$(grep -cE '^      "[^Ġ"]*(Ġ[a-z,]+){4}": ' one.json | grep -vc '^0$')" 1
equal "five are none" "$(grep -cE '^      "(Ġ[^Ġ"]*){5,}": ' one.json)" 0
equal "digits stay apart" "$(grep -cE '^      "[^"]*[^0-9"][0-9]+": ' one.json)" 0
equal "no merge is there twice" "$(sed -n '/"merges"/,$ p' one.json | tr -d , | sort | uniq -d | grep -c '"')" 0
train --vocab-size 400 --subwords 400 -o words.json text 2>/dev/null
equal "none across words, if all tokens are for words" "$(grep -cE '^      "[^"]+Ġ[^"]*": ' words.json)" 0
quern tokenizer encode --tokenizer one.json text | wc -w >fewer
quern tokenizer encode --tokenizer words.json text | wc -w >whole
check "fewer tokens" test "$(cat fewer)" -lt "$(($(cat whole) * 3 / 4))"
quern tokenizer encode --tokenizer one.json text | quern tokenizer decode --tokenizer one.json >back
same "the text comes back" back text

# The same bytes, whatever the threads, the memory and the files.
awk 'BEGIN {
    for (i = 0; i < 60000; i++) {
        s = ""
        for (k = 0; k < 9; k++) {
            x = (x * 16807 + 11) % 2147483647
            n = int(sqrt(x / 9000))
            s = s sprintf(" %c%c%c", 97 + n % 26, 97 + int(n / 26), 97 + n % 7)
        }
        print s
    }
}' >many
train --vocab-size 3000 --across-sample 1M --memory 1G -j1 -o m1.json many 2>/dev/null
train --vocab-size 3000 --across-sample 1M --memory 64M -j3 -o m2.json many 2>/dev/null
same "threads and memory" m1.json m2.json
split -n l/3 many part.
train --vocab-size 3000 --across-sample 1M -j2 -o m3.json part.aa part.ab part.ac 2>/dev/null
same "files" m1.json m3.json
train --vocab-size 3000 --across-sample 0 -o m4.json many 2>/dev/null
check "a sample is not all" test "$(cksum <m1.json)" != "$(cksum <m4.json)"
cat many many many many many many many many >large
train --vocab-size 30000 --across-sample 0 -o killed.json large 2>/dev/null &
sleep 0.2
kill -9 $!
wait $! 2>/dev/null
absent "nothing is left of a killed run" killed.json

# What cannot be done is said.
status "a pipe" 2 train -o n.json <text
has "is read twice" err "twice"
mkfifo pipe
status "a pipe by name" 2 train -o n.json pipe
status "ranks" 2 train --ranks n.tiktoken text
status "a bound on tokens" 2 train --max-token-length 9 -o n.json text
status "too many for words" 2 train --vocab-size 400 --subwords 500 -o n.json text
status "too few for words" 2 train --vocab-size 400 --subwords 200 -o n.json text
: >empty
status "few tokens: all are bytes, or across" 0 train --vocab-size 300 -o few.json text
status "nothing" 0 train --vocab-size 700 -o e.json empty
printf '{"text": 1}\n{"text":"a b a b a b"}\n' >bad.jsonl
status "a bad line" 1 train --vocab-size 700 -o e.json bad.jsonl
equal "is told of once" "$(grep -c 'at byte 0' err)" 1
absent "nothing is written" n.json
finish
