#!/bin/bash
# Plans that branch, at a shell: the bytes of the pipes that their branches stand for, for any division of the work, after
# any number of kills; and branches that make no sense.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/curate_lib.sh"

make() { # file n: documents of two languages with scores, some the same as in the other files
    awk -v f="$1" -v n="$2" 'BEGIN {
        srand(n)
        for (i = 0; i < n; i++) {
            k = rand() < .3 ? int(rand() * 30) : n * 1000 + i
            t = ""
            for (j = 0; j < 30; j++) t = t "the word" (k * 7919 + j * j * (k % 13)) % 5000 " "
            r = rand()
            printf "{\"id\":\"%s-%d\",\"text\":\"%s\\u00a0end\"", f, i, t
            if (r < .9) printf ",\"lang\":\"%s\"", r < .4 ? "de" : r < .8 ? "en" : "fr"
            printf ",\"score\":%.2f,\"signals\":{\"words\":%d,\"ok\":%s}}\n", rand(), i % 50, i % 2 ? "true" : "false"
        }
    }' >"$1.jsonl"
}
make one 600
make two 300
echo 'no document' >>two.jsonl
make three 1
make four 500
gzip -c four.jsonl >four.gz
inputs="one.jsonl two.jsonl three.jsonl four.gz"
cat >plan.yaml <<END
input: [one.jsonl, two.jsonl, three.jsonl, four.gz]
stages:
  - clean
branches:
  german:
    if: lang == de
    stages:
      - dedup exact
  high:
    if: [lang == en, score >= 0.5, signals.ok == true]
    output: high.jsonl.zst
  rest:
    if: else
    output: rest/
  both:
    from: [german, high]
    stages:
      - dedup fuzzy: {threshold: 0.7, clusters: clusters.tsv}
    output: both.jsonl
  short:
    from: both
    if: signals.words < 10
    output: short.jsonl
rejects: out.rejects
stats: out.stats
work: work
END
outputs="high rest.all both.jsonl short.jsonl out.rejects clusters.tsv"

# What each branch stands for, input by input where branches come together.
: >clean.de
: >clean.high
# shellcheck disable=SC2086
for f in $inputs; do
    quern clean -q $f 2>/dev/null >clean.$f
    grep '"lang":"de"' clean.$f >de.$f
    grep '"lang":"en".*"score":\(0\.[5-9]\|1\).*"ok":true' clean.$f >high.$f
    grep -vxFf de.$f clean.$f | grep -vxFf high.$f >rest.$f
    cat de.$f >>clean.de
    cat high.$f >>clean.high
done
quern dedup exact clean.de >exact.de 2>/dev/null
# shellcheck disable=SC2086
for f in $inputs; do
    grep -xFf de.$f exact.de
    cat high.$f
done | quern dedup fuzzy -q --threshold 0.7 --clusters want.clusters >want.both
grep '"words":[0-9],' want.both >want.short
for f in $inputs; do cat "rest.$f"; done >want.rest
[ "$(wc -l <want.rest)" -gt 100 ] && [ "$(wc -l <want.both)" -gt 100 ] && [ -s want.short ] && [ "$(wc -l <want.clusters)" -gt 20 ]
equal "there is something in each branch" $? 0

gather() { # what the plan made, as files to compare
    zstd -qdc high.jsonl.zst >high
    cat rest/*.jsonl >rest.all
}
status "a plan with branches runs, with a bad line" 1 quern curate plan.yaml
gather
same "one branch has what meets its tests" high clean.high
same "else has what no other takes" rest.all want.rest
equal "in a folder, a file an input" "$(cd rest && echo *)" "000000.jsonl 000001.jsonl 000002.jsonl 000003.jsonl"
same "a branch reads the outputs of two, input by input" both.jsonl want.both
same "with its clusters" clusters.tsv want.clusters
same "and is read itself" short.jsonl want.short
has "the account names the branch" out.rejects '"stage":"dedup exact","branch":"german","rule":"duplicate"'
has "so do the statistics" out.stats '{"stage":"dedup fuzzy","branch":"both",'
equal "which say how many went where" "$(sed -n 's/.*"branches":{"german":\([0-9]*\),.*/\1/p' out.stats)" "$(wc -l <clean.de)"
equal "and how many came out" "$(sed -n 's/.*"docs_out":\([0-9]*\),"dropped.*/\1/p' out.stats | head -n 1)" \
    "$(cat high rest.all both.jsonl short.jsonl | wc -l)"
for f in $outputs; do cp "$f" "want-$f"; done
counts out.stats >want.stats
absent "the work folder is empty" work/0.000000.done work/0.000000.docs work/0.000000.docs.1

again() { rm -rf work high.jsonl.zst rest both.jsonl short.jsonl out.rejects out.stats clusters.tsv; }
compare() { # name
    local f
    gather
    for f in $outputs; do same "same $f $1" "$f" "want-$f"; done
    counts out.stats >got
    same "same counts $1" got want.stats
}
whole() {
    local f
    for f in both.jsonl short.jsonl; do [ ! -e $f ] || cmp "$f" "want-$f" 2>&1; done
}
work=work came=1
divided "-j 1" "--processes 3 -j 3 --checkpoint 10K"
killed 10K

# With documents that are kept it comes to the same, whatever of them is there.
again() { rm -rf work high.jsonl.zst rest both.jsonl short.jsonl out.rejects out.stats clusters.tsv kept/*.000001.*; }
cp plan.yaml without.yaml
echo 'keep: kept' >>plan.yaml
divided "-j 1" "--processes 3 -j 3 --checkpoint 10K"
killed 10K
again
status "goes on from what is kept" 1 quern curate plan.yaml
compare "from there"
rm -r kept
mv without.yaml plan.yaml
again
quern curate plan.yaml 2>/dev/null

sed 's/score >= 0.5/score >= 0.6/' plan.yaml >plan2.yaml
status "another test makes another plan" 2 quern curate plan2.yaml
has "which is told" err "score >= 0.6"

# A page about it.
rm -rf work
status "a plan writes its report" 1 quern curate plan.yaml --report got.html
has "which says how many came in, in branches or not" got.html $'Of <b>1\u202f401</b> documents'
has "and names the stages of branches" got.html '<td>dedup fuzzy of both</td>'
quern report --stats out.stats --rejects out.rejects -o want.html
same "that of quern report" got.html want.html
printf 'input: one.jsonl\nstages: []\noutput: lonely\n' >lonely.yaml
status "which needs statistics" 2 quern curate lonely.yaml --report got.html
has "and says so" err "report is made of stats"

# What no branch takes.
printf 'stages: []\nbranches:\n  de: {if: lang == de, output: de.jsonl}\nrejects: lost\n' >lost.yaml
status "documents that no branch takes" 0 quern curate lost.yaml one.jsonl
equal "are in the account" "$(grep -c '"stage":"branches","rule":"no_branch"' lost)" "$(grep -vc '"lang":"de"' one.jsonl)"
status "where they are explained" 0 quern why --rejects lost "$(sed -n '1s/{"id":"\([^"]*\)".*/\1/p' lost)"
has "in words" out "no branch of the plan takes such documents"
printf 'stages: []\noutput: all.jsonl\nbranches:\n  de: {if: lang == de, output: de2.jsonl}\nrejects: lost2\n' >kept.yaml
status "unless the plan's own output has them" 0 quern curate kept.yaml one.jsonl
same "which has all" all.jsonl one.jsonl
same "and the branch its own" de2.jsonl de.jsonl
equal "then none is lost" "$(wc -c <lost2)" 0

# Tests, by what they take of these documents.
printf '%s\n' '{"id":"a","text":"x","lang":"de","n":1,"b":true,"o":{"n":2.5,"s":"x y"}}' '{"id":"b","text":"x","lang":null,"n":"1"}' \
    '{"id":"c","text":"x","lang":"en","n":-3e2,"l":[1]}' '{"id":"d","text":"x","lang":"fr"}' >tests.jsonl
takes() { # test ids
    printf 'stages: []\nbranches:\n  t: {if: "%s", output: t.jsonl}\n' "${1//\"/\\\"}" >t.yaml
    quern curate -q --again t.yaml tests.jsonl 2>err || cat err
    equal "if: $1" "$(sed 's/{"id":"\(.\)".*/\1/' t.jsonl | tr -d '\n')" "$2"
}
takes "lang == de" a
takes "lang != de" cd
takes "lang in de, fr" ad
takes "lang in en fr" cd
takes "n == 1" ab
takes "n < 1" c
takes "n <= 1" ac
takes "n > -300" a
takes "n >= -300" ac
takes "n != 1" c
takes "b == true" a
takes "o.n > 2" a
takes 'o.s == "x y"' a
takes "o == 1" ""
takes "l != 1" ""
takes "none == 1" ""
takes "lang.x == 1" ""
takes "lang = de or lang = fr" ad
takes "not lang = de" bcd
takes "(lang = de or lang = en) and n < 1" c
takes "lang in (de, en) and not (n < 1 or o.n > 3)" a
takes "lang >= en" cd
takes "n < en" b

begin=$'stages:\n  - clean\n'
wrong "a branch that gives nothing" $'branches:\n  a: {if: lang == de}\n' "'wrong.yaml' line 4: branch 'a' gives nothing"
wrong "an unknown key" $'branches:\n  a:\n    when: x\n' "line 5: a branch has no key 'when', but from, if, stages, output, compress"
wrong "an unknown branch" $'branches:\n  german: {output: a}\n  b:\n    from: germen\n    output: b\n' \
    "line 6: no branch 'germen' stands before this one; did you mean 'german'?"
wrong "a branch that stands later" $'branches:\n  a: {from: b, output: a}\n  b: {output: b}\n' "line 4: no branch 'b' stands before"
wrong "the same twice" $'branches:\n  a: {output: a}\n  b: {from: [a, a], output: b}\n' "line 5: 'a' is there twice"
wrong "a test without an operator" $'branches:\n  a: {if: lang, output: a}\n' "line 4: 'lang': column 5: an operator is missing: =, !=, <"
wrong "an unknown operator" $'branches:\n  a: {if: lang % de, output: a}\n' "line 4: 'lang % de': column 6: an operator is missing"
wrong "a test without a value" $'branches:\n  a: {if: lang ==, output: a}\n' "line 4: 'lang ==': column 8: a value is missing"
wrong "a quote without an end" $'branches:\n  a: {if: "lang in \'de en", output: a}\n' "line 4: 'lang in 'de en': column 9: a quote without an end"
wrong "two values" $'branches:\n  a: {if: lang == de en, output: a}\n' "line 4: 'lang == de en': column 12: 'and' or 'or' is expected"
wrong "an open parenthesis" $'branches:\n  a: {if: "(lang == de or x = 1", output: a}\n' "column 21: a ')' is missing"
wrong "no test" $'branches:\n  a: {if: {lang: de}, output: a}\n' "line 4: if is a test such as lang == de"
wrong "extract in a branch" $'branches:\n  a: {stages: [extract], output: a}\n' "line 4: extract can only be the first stage"
wrong "a stage's setting in a branch" $'branches:\n  a:\n    stages: [langid: {treshold: 1}]\n' "line 5: langid has no setting 'treshold'"
wrong "two branches with one output" $'branches:\n  a: {output: x}\n  b: {output: x}\n' "line 4, output 'x' and line 5, output 'x' are one file" 2
wrong "compress of a file" $'branches:\n  a: {output: x, compress: gz}\n' "line 4: compress is for a folder"
wrong "an output in no folder" $'branches:\n  a: {output: x}\n  b: {output: no/x}\n' "line 5: cannot write 'no/x': No such file"
wrong "a folder where a file is" $'branches:\n  a: {output: one.jsonl/}\n' "line 4: 'one.jsonl/' is no folder" 2
wrong "a file and a folder of one name" $'work: half\nbranches:\n  a: {output: x}\n  b: {output: x/}\n' "line 5: 'x' is a folder" 2
finish
