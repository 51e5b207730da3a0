#!/usr/bin/env bash
# quern filter at a shell.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
own=$ROOT/tests/data/filter/own.jsonl

status "one preset" 0 quern filter -q --preset gopher-quality --rejects r.jsonl -o kept.jsonl "$own"
equal "nothing is lost" "$(cat kept.jsonl r.jsonl | wc -l)" "$(wc -l <"$own")"
has "a reason" r.jsonl '{"id":"short","stage":"filter","rule":"gopher_short_doc","value":12,"threshold":50,'
status "all presets" 0 quern filter -q --preset gopher-quality,gopher-repetition,c4,fineweb -j1 -o one "$own"
status "and four threads" 0 quern filter -q --preset gopher-quality,gopher-repetition,c4,fineweb -j4 -o four "$own"
same "give the same bytes" one four
quern filter -q --preset gopher-quality "$own" | quern filter -q --preset gopher-repetition |
    quern filter -q --preset c4 | quern filter -q --preset fineweb >pipe
same "as one after the other" one pipe

printf '{"id":"u","url":"http://h/p","text":"few"}\n{"text":"no id"}\n' >short.jsonl
status "accounts with the documents" 0 quern filter -q --preset gopher-quality --rejects r.jsonl --rejects-full short.jsonl
has "say id, url, file and place" r.jsonl '"url":"http://h/p","file":"short.jsonl","offset":0,"document":{"id":"u"'
sed 's/.*"document":\(.*\)}$/\1/' r.jsonl >back.jsonl
same "and the documents can be had back" back.jsonl short.jsonl
status "which needs an account" 2 quern filter --preset gopher-quality --rejects-full short.jsonl
status "signals" 0 quern filter -q --annotate --preset gopher-quality,c4 "$own"
equal "drop nothing" "$(wc -l <out)" "$(wc -l <"$own")"
has "are there" out '"signals":{"gopher_short_doc":'
sed 's/,"signals":{[^}]*}//' out >without
same "and change nothing else" without "$own"

status "rules" 0 quern filter --list-rules
has "are listed" out "$(printf 'gopher-repetition\ttop_3_gram\tabove\t0.18')"
printf 'gopher-quality:\n  gopher_short_doc: 5\n  gopher_enough_stop_words: off\n' >c.yaml
echo '{"id":"x","text":"Seven green birds sing loudly today again"}' >x.jsonl
status "other thresholds" 0 quern filter -q --preset gopher-quality --config c.yaml x.jsonl
same "are used" out x.jsonl
printf 'gopher-quality:\n  gopher_short_doc: 5\n  gopher_shrt_doc: 5\n' >c.yaml
status "an unknown rule" 3 quern filter --preset gopher-quality --config c.yaml x.jsonl
has "is named with its line" err "line 3: preset gopher-quality has no rule 'gopher_shrt_doc'"
status "an unknown preset" 2 quern filter --preset gopher x.jsonl
has "is named" err "'gopher'"
status "a preset that is not here" 2 quern filter --preset fineweb2 x.jsonl
has "says so" err "fineweb2-icu"
status "no preset" 2 quern filter x.jsonl
status "no configuration" 3 quern filter --preset c4 --config nowhere.yaml x.jsonl
has "names the file" err nowhere.yaml
status "a missing file" 3 quern filter --preset c4 nowhere.jsonl
status "a folder" 3 quern filter --preset c4 .
printf '{"id":"a","text":"x"\n{"id":"b","text":"x"}\n' >bad.jsonl
status "a bad record" 1 quern filter --preset c4 bad.jsonl
has "is placed" err bad.jsonl
gzip -c "$own" | head -c 3000 >cut.jsonl.gz
status "a truncated gzip file" 1 quern filter --preset c4 -o whole.jsonl cut.jsonl.gz
status "statistics that cannot be written" 3 quern filter --preset c4 x.jsonl -o late.jsonl --rejects late.rejects --stats no/such.stats
absent "nothing else appears then" late.jsonl late.rejects
finish
