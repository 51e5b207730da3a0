#!/bin/bash
# quern decontaminate at a shell.
. "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/decontaminate

# Forty different words, w1 to w40, from number $1 to $2 with prefix $3.
words() { seq -f "${3:-w}%g" -s ' ' "$1" "$2"; }
{
    printf '{"id":"long","task":"t","question":"%s","answer":"%s"}\n' "$(words 1 40)" "$(words 1 20 a)"
    printf '{"id":"short","task":"t","question":"%s","answer":null}\n' "$(words 101 108)"
    printf '{"id":"tiny","task":"u","question":"%s","answer":["%s","z1"]}\n' "$(words 201 204)" "$(words 301 310)"
    printf '{"id":"none","task":"u","question":"w1 w2"}\n'
} >eval.jsonl
fill="$(words 1 30 f)"
doc() { printf '{"id":"%s","text":"%s"}\n' "$1" "$2"; }
{
    doc clean "$fill. $fill"
    doc thirteen "$fill $(words 5 17) $fill"
    doc twelve "$fill $(words 5 16) $fill"
    doc case "$fill: $(words 5 20 W | sed 's/ /, /g') $fill"
    doc short "$fill $(words 101 108) $fill"
    doc seven "$fill $(words 101 107) $fill"
    doc tiny "$(words 201 204) - $(words 301 310) z1"
    doc changed "$fill $(words 1 40 | sed 's/w10 /x /; s/w20 /x /; s/w30 /x /')"
    doc inserted "$fill $(words 1 12) x $(words 13 24) x x $(words 25 36) $fill"
    doc half "$fill $(words 1 12) x $(words 13 24) $fill"
    doc reversed "$(words 28 40). $(words 15 27). $(words 1 14)"
    doc answer "$fill $(words 3 17 a)"
    doc seam "$(words 35 40) $(words 1 8 a)"
} >in.jsonl

status "runs" 0 quern-decontaminate -a eval.jsonl in.jsonl --rejects rej --report report --stats stats.json
sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr '\n' ' ' >kept
equal "keeps what has too little of a question" "$(cat kept)" "clean twelve seven half "
has "accounts for a run" rej '{"id":"thirteen","stage":"decontaminate","rule":"words","value":13,"threshold":13,"survivor":"long","file":"in.jsonl","offset":247}'
has "accounts for a short question" rej '"id":"short","stage":"decontaminate","rule":"words","value":8,"threshold":8,"survivor":"short"'
has "accounts for a share" rej '{"id":"changed","stage":"decontaminate","rule":"share","value":0.925,"threshold":0.8,"survivor":"long",'
has "reports both places" report '{"id":"thirteen","task":"t","question_id":"long","method":"quern","rule":"words","value":13,"threshold":13,"document":{"begin":111,"end":157,"text":"w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17"},"question":{"begin":12,"end":58,"text":"w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17"}}'
has "counts by task" stats.json '{"task":"t","questions":2,"documents":8},{"task":"u","questions":2,"documents":1}'
cp out want
cp report want.report
for j in 1 3; do
    quern-decontaminate -q -a eval.jsonl -j$j --report r in.jsonl >out2
    same "same documents with $j threads" out2 want
    same "same report with $j threads" r want.report
done
quern-decontaminate -q -a eval.jsonl in.jsonl >out2
same "same without a report" out2 want

status "a lower threshold" 0 quern-decontaminate -q -a eval.jsonl -t 0.5 in.jsonl
equal "drops more" "$(grep -c half out)" 0
status "more words" 0 quern-decontaminate -q -a eval.jsonl -n 14 -t 1 in.jsonl
equal "drop less" "$(grep -c thirteen out)" 1

status "strips" 0 quern-decontaminate -q -a eval.jsonl --action strip in.jsonl --rejects rej
equal "leaves nothing of a document that is a question" "$(grep -c '"id":"tiny"' out)$(grep -c tiny rej)" 01
cp out stripped.jsonl
status "what was stripped is clean" 0 quern-decontaminate -q -a eval.jsonl stripped.jsonl --rejects rej
equal "strips all" "$(wc -l <rej)" 0
printf '{"id":"s","text":"One here. Two %s, yes! Three there.\\nFour."}\n' "$(words 3 20)" >s.jsonl
quern-decontaminate -q -a eval.jsonl --action strip s.jsonl >out
printf '{"id":"s","text":"One here. Three there.\\nFour."}\n' >want
same "strips whole sentences" out want
status "annotates" 0 quern-decontaminate -q -a eval.jsonl --action annotate in.jsonl
equal "keeps all" "$(wc -l <out)" 13
has "adds the field" out '"contamination":[{"task":"t","id":"long","rule":"words","value":13,"threshold":13}]'

# Other methods, as recorded from their origins.
status "datatrove runs" 0 quern-decontaminate -q -m datatrove -a $data/questions.jsonl $data/docs.jsonl.zst --report report
sed 's/^{"id":"\([^"]*\)".*"document":{"text":"\([^"]*\)"}}$/{"id":"\1","ngram":"\2"}/' report >got
same "datatrove's decisions and n-grams" got $data/datatrove.jsonl
zstd -dcq $data/curator.jsonl.zst >curator.jsonl
for j in 1 3; do
    status "curator runs" 0 quern-decontaminate -q -j$j -m curator -a $data/questions.jsonl $data/docs.jsonl.zst --rejects rej --stats stats.json
    grep '"text"' curator.jsonl >want
    same "curator's pieces, $j threads" out want
    sed -n 's/^\({"id":"[^"]*"\).*\(,"rule":"[^"]*","value":[0-9]*\),.*/\1\2}/p' rej >got
    grep -v '"text"' curator.jsonl >want
    same "and what it drops, $j threads" got want
done
has "curator finds a common gram" stats.json '"grams_too_common":1'

# decon: 30 words of 40 with the answer behind, and without it.
{
    doc whole "$fill $(words 1 40) $(words 1 20 a) $fill"
    doc most "$fill $(words 1 38) x x $(words 1 20 a) $fill"
    doc question "$fill $(words 1 40) $fill"
    doc half "$fill $(words 1 20) $fill $(words 1 20 a)"
} >decon.jsonl
for p in b c d; do printf '{"id":"%s","question":"%s"}\n' $p "$(words 1 30 $p)"; done >more.jsonl
status "decon runs" 0 quern-decontaminate -q -m decon -a eval.jsonl -a more.jsonl decon.jsonl --report report
equal "decon keeps questions without their answers" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr '\n' ' ')" "question half "
has "decon's score" report '"question_id":"long","method":"decon","rule":"score","value":1,"threshold":0.8'

# In a plan: the same documents and the same report.
cat >plan.yaml <<EOF
input: [in.jsonl]
stages:
  - decontaminate: {against: [eval.jsonl], report: plan.report}
output: plan.out
EOF
check "runs in a plan" quern-curate -q plan.yaml
quern-decontaminate -q -a eval.jsonl in.jsonl >want
same "with the same documents" plan.out want
same "and the same report" plan.report want.report

# What makes no sense.
status "needs a set" 2 quern-decontaminate in.jsonl
status "unknown action" 2 quern-decontaminate -a eval.jsonl --action burn in.jsonl
status "datatrove cannot strip" 2 quern-decontaminate -a eval.jsonl -m datatrove --action strip in.jsonl
status "curator has no report" 2 quern-decontaminate -a eval.jsonl -m curator --report r in.jsonl
printf '{"question":"q","id":1}\n{"answer":"x"}\n' >bad.jsonl
status "a line without a question" 3 quern-decontaminate -a bad.jsonl in.jsonl -o never
has "names file and line" err "'bad.jsonl' line 2: no \"question\" in the line"
absent "and writes nothing" never
printf '{"question":\n' >bad.jsonl
status "a line that is no JSON" 3 quern-decontaminate -a bad.jsonl in.jsonl
: >empty.jsonl
status "an empty set" 2 quern-decontaminate -a empty.jsonl in.jsonl
status "a set that is not there" 3 quern-decontaminate -a nowhere.jsonl in.jsonl
printf '{"q":"%s","n":5}\n' "$(words 1 12)" >named.jsonl
status "named fields" 0 quern-decontaminate -q -a named.jsonl --question-field q --id-field n --report r in.jsonl
has "the file is the task" r '"task":"named","question_id":"5"'
finish
