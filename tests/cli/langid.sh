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
printf '[]\n{"id":"b","text":"x"}\n' >bad.jsonl
status "a bad record" 1 quern langid bad.jsonl

# A fastText model: its labels are made-up languages.
model=$ROOT/tests/data/fasttext/hs.bin
printf '%s\n' '{"id":"a","text":"kator velish mundra\nlomi rana solmi\n\n7"}' '{"id":"b","text":"lomi rana solmi béca"}' >made.jsonl
status "a model" 0 quern langid -q --model "$model" made.jsonl
has "its labels" out '"lang":"south","lang_score":0.'
status "keeps a label" 0 quern langid -q --model "$model" --keep south:0.4 --rejects r.jsonl made.jsonl
equal "the one" "$(grep -o '"id":"."' out)" '"id":"b"'
has "the other" r.jsonl '{"id":"a","stage":"langid","rule":"lang"'
status "a label that the model lacks" 2 quern langid --model "$model" --keep en made.jsonl
has "says so" err "no such label"
status "a missing model" 3 quern langid --model nowhere.bin made.jsonl
status "no model" 3 quern langid --model made.jsonl made.jsonl
has "is called that" err "'made.jsonl' is no fastText model"

# Labels with scripts.
for _ in 1 2 3 4 5 6; do
    printf '%s\n' '{"label":"eng_Latn","text":"the mill and the miller"}' '{"label":"eng_Cyrl","text":"зе милл анд зе миллер"}' \
        '{"label":"cmn_Hani","text":"磨坊 和 磨坊 主"}' '{"label":"gsw_Latn","text":"d müli u dr müller"}'
done >labels.jsonl
status "a model with scripts" 0 quern classify train -q --dim 8 --epoch 60 --lr 0.5 -o scripts.bin labels.jsonl
printf '%s\n' '{"id":"1","text":"the\nmiller"}' '{"id":"2","text":"зе милл"}' '{"id":"3","text":"磨坊"}' '{"id":"4","text":"müli"}' \
    '{"id":"5","text":"zzz"}' >in.jsonl
status "finds" 0 quern langid -q --model scripts.bin in.jsonl
equal "languages and scripts" "$(sed 's/.*"lang":"\([a-z]*\)".*"lang_script":"\([A-Za-z]*\)".*/\1 \2/' out | head -n 4 | paste -sd,)" \
    "en Latn,en Cyrl,zh Hani,gsw Latn"
for keep in en:0 eng:0 eng_Latn:0,eng_Cyrl:0; do
    status "keeps $keep" 0 quern langid -q --model scripts.bin --keep "$keep,zh:1" --rejects r.jsonl in.jsonl
    equal "both scripts" "$(head -n 2 out | grep -c '"lang":"en"')" 2
done

# Lines.
printf '%s\n' '{"id":"x","text":"The mill stands by the river, and the miller knows everyone who comes.\n\nDie Mühle steht am Fluss, und der Müller kennt alle, die zu ihm kommen.\n12\nHe grinds the corn between two heavy stones every morning, before his breakfast."}' >lines.jsonl
status "by line" 0 quern langid -q --per-line lines.jsonl
has "each" out '"lang_lines":[{"lang":"en","score":0.98},null,{"lang":"de","score":0.98},null,{"lang":"en","score":0.98}]'
status "lines of other languages" 0 quern langid -q --per-line --strip-lines lines.jsonl
has "go" out 'comes.\n\n12\nHe grinds'
has "from the list too" out '"lang_lines":[{"lang":"en","score":0.98},null,null,{"lang":"en","score":0.98}]'
status "unless they are kept" 0 quern langid -q --strip-lines --keep en:0.5,de lines.jsonl
has "then all stay" out 'Die Mühle'
status "a line's threshold" 0 quern langid -q --strip-lines --keep fr:0,en:0.3 --line-threshold 0.98 --rejects r.jsonl lines.jsonl
has "only that language" out '"text":"The mill stands by the river, and the miller knows everyone who comes.\n\n12'
finish
