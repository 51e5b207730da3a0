#!/usr/bin/env bash
# quern langid at a shell.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"

printf '%s\n' '{"id":"en","text":"The mill stands by the river, and the miller knows everyone who comes."}' \
    '{"id":"de","text":"Die Mühle steht am Fluss, und der Müller kennt alle, die zu ihm kommen."}' \
    '{"id":"none","text":"1234"}' >in.jsonl
status "finds languages" 0 quern langid -q in.jsonl
equal "three documents" "$(wc -l <out)" 3
has "English" out '"lang":"en","lang_score":0.9'
has "German" out '"lang":"de","lang_score":0.9'
has "unknown" out '"lang":"und","lang_score":0}'
status "keeps some" 0 quern langid -q --keep de --rejects r.jsonl in.jsonl
equal "one is left" "$(wc -l <out)" 1
has "with its reason" r.jsonl '{"id":"en","stage":"langid","rule":"lang","value":0.9'
status "a threshold of its own" 0 quern langid -q --keep de:1,en:0.5 --rejects r.jsonl in.jsonl
has "low score" r.jsonl '{"id":"de","stage":"langid","rule":"lang_score","value":0.9'
has "and the threshold" r.jsonl '"threshold":1'
status "a threshold for all" 0 quern langid -q --keep de,en --threshold 1 in.jsonl
equal "nothing is that sure" "$(wc -l <out)" 0
status "an unknown language" 2 quern langid --keep en,klingon in.jsonl
has "is named" err klingon
status "a threshold beyond 1" 2 quern langid --keep en:7 in.jsonl
status "a missing file" 3 quern langid nowhere.jsonl
printf '[]\n' >bad.jsonl
status "a bad record" 1 quern langid bad.jsonl
finish
