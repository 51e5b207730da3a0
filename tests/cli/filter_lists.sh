#!/usr/bin/env bash
# quern filter with lists from files and languages, at a shell.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/filter
docs=$data/filter_lists.jsonl
lists=(--url-domains "$data/url_domains.txt" --url-blocklist "$data/url_urls.txt" --banned-words "$data/url_words.txt"
    --soft-words "$data/url_soft.txt" --banned-subwords "$data/url_subwords.txt")

# id and the reason recorded of datatrove (tests/record/filter_lists.py), for those dropped.
recorded() { sed -n 's/^{"id": "\([^"]*\)".*"'"$1"'": "\([^-"][^"]*\)".*/\1 \2/p' "$docs"; }
said() { sed 's/^{"id":"\([^"]*\)".*"rule":"\([^"]*\)".*/\1 \2/' "$1"; }

status "URLs" 0 quern filter -q --preset url "${lists[@]}" --rejects r.jsonl -o kept.jsonl "$docs"
recorded url_reason >want
said r.jsonl >got
same "are judged as datatrove does" got want
[ "$(wc -l <want)" -gt 60 ] || bad "enough cases" "$(wc -l <want)"
status "bad words" 0 quern filter -q --preset c4-badwords --lang auto --bad-words "$data/bad.txt" --rejects r.jsonl -o kept.jsonl "$docs"
recorded bad_reason >want
said r.jsonl >got
same "are found as datatrove does" got want
[ "$(wc -l <want)" -gt 60 ] || bad "enough cases" "$(wc -l <want)"

zstd -q "$data/url_domains.txt" -o domains.zst
printf '{"id":"a","url":"http://www.bad.co.uk/","text":"x"}\n{"id":"b","url":"http://good.co.uk/free-win","text":"x"}\n' >x.jsonl
status "a compressed list" 0 quern filter -q --preset url --url-domains domains.zst --rejects r.jsonl x.jsonl
has "works" r.jsonl '{"id":"a","stage":"filter","rule":"domain","value":1,"threshold":0,"url":"http://www.bad.co.uk/","file":"x.jsonl","offset":0}'
printf 'url:\n  soft_blacklisted: 3\n' >c.yaml
status "another number of soft words" 0 quern filter -q --preset url --soft-words "$data/url_soft.txt" --config c.yaml x.jsonl
same "is used" out x.jsonl
echo '{"id":"c","text":"x"}' >y.jsonl
status "a document without a URL" 1 quern filter --preset url --url-domains domains.zst y.jsonl
has "is a bad record" err "no url"
printf 'good\nb\377d\n' >latin1
status "a list that is not UTF-8" 3 quern filter -q --preset url --url-domains latin1 x.jsonl
has "is named with its line" err "'latin1' line 2"
status "a list that is not there" 3 quern filter -q --preset url --url-domains nowhere x.jsonl
has "is named" err "'nowhere'"
status "no list" 2 quern filter --preset url x.jsonl
has "is asked for" err "preset url needs"
status "a list for nothing" 2 quern filter --preset c4 --url-domains domains.zst x.jsonl
has "is refused" err "looks at --url-domains"

for i in 1 2 3 4 5 6 7 8 9 10; do echo "{\"id\":\"$i\",\"text\":\"a walnut, number $i\"}"; done >w.jsonl
printf 'c4-badwords:\n  keep_fraction: 0.5\n  seed: 7\n' >c.yaml
status "a part of the bad ones" 0 quern filter -q --preset c4-badwords --bad-words "en:$data/bad.txt" --config c.yaml -o kept.jsonl w.jsonl
n=$(wc -l <kept.jsonl)
if [ "$n" -gt 0 ] && [ "$n" -lt 10 ]; then ok "is kept"; else bad "is kept" "$n of 10"; fi
quern filter -q -j4 --preset c4-badwords --bad-words "en:$data/bad.txt" --config c.yaml -o four w.jsonl
same "the same one always" kept.jsonl four
status "another language's list" 0 quern filter -q --preset c4-badwords --bad-words "de:$data/bad.txt" w.jsonl
same "does not count" out w.jsonl

status "a signal" 0 quern filter -q --preset rpv2 --annotate --bad-words "$data/bad.txt" w.jsonl
has "of the list" out '"rps_doc_ldnoobw_words":1'
has "of each line" out '"rps_lines_num_words":[[0,18,4]]'
status "without the list" 0 quern filter -q --preset rpv2 --annotate w.jsonl
if grep -q ldnoobw out; then bad "is not there"; else ok "is not there"; fi
printf 'rpv2:\n  rps_doc_ldnoobw_words: 1\n' >c.yaml
status "a rule without its list" 2 quern filter --preset rpv2 --config c.yaml w.jsonl
has "says what it needs" err "rps_doc_ldnoobw_words needs --bad-words"
printf 'rpv2:\n  ccnet_perplexity: 100\n' >c.yaml
status "a rule that needs a model" 2 quern filter --preset rpv2 --config c.yaml w.jsonl
has "says so" err "ccnet_perplexity needs a model"
printf 'rpv2:\n  rps_doc_unigram_entropy: on\n' >c.yaml
status "a rule without a threshold of its own" 3 quern filter --preset rpv2 --config c.yaml w.jsonl
has "needs a number" err "line 2: rps_doc_unigram_entropy is off by itself"

status "no language" 2 quern filter --preset fineweb2-icu w.jsonl
has "is asked for" err "needs --lang"
status "an unknown language" 2 quern filter --preset fineweb2-icu --lang tlh w.jsonl
has "is named" err "'tlh'"
status "documents without a known language" 0 quern filter -q --preset fineweb2-icu --lang auto --rejects r.jsonl w.jsonl
has "are dropped" r.jsonl '"rule":"unknown_language"'

# A list that begins with a byte order mark, as editors on Windows write it.
printf '\xef\xbb\xbfgone.com\r\n' >marked.txt
echo '{"id":"a","url":"http://gone.com/1","text":"x"}' >marked.jsonl
check "a list with a byte order mark" quern filter -q --preset url --url-domains marked.txt marked.jsonl
equal "has its first line" "$(cat out)" ''
finish
