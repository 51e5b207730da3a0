#!/bin/bash
# quern dedup fuzzy --strip-template: pages are compared without the lines that many have.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
ranks() { timeout -k 10 120 mpirun --oversubscribe -n "$@"; }

# Two sites with long templates of their own: 40 pages of each, of which those of b from the 20th on have the text of a page of
# a, but for a word.  A number in the template differs from page to page, and a menu's line is there twice.
awk 'function words(of, n,   i, t) {
        for (i = 0; i < n; i++) t = t (i ? " " : "") "w" of "x" i
        gsub(/0/, "k", t); gsub(/1/, "l", t); gsub(/2/, "m", t); gsub(/3/, "n", t); gsub(/4/, "o", t)
        gsub(/5/, "p", t); gsub(/6/, "q", t); gsub(/7/, "r", t); gsub(/8/, "s", t); gsub(/9/, "t", t)
        return t
    }
    function page(site, number, own,   i, t) {
        for (i = 0; i < 30; i++) {
            t = t words(site i "y", 12) "\\n"
            if (i == 9) t = t own "\\n\\n" words(site "4y", 12) "\\n"
        }
        printf "{\"id\":\"%s%d\",\"text\":\"%sPage %d of 40\"}\n", site, number, t, number
    }
    BEGIN {
        for (k = 0; k < 40; k++) page("a", k, words("own" k, 12) "\\n" words("more" k, 12))
        for (k = 0; k < 20; k++) page("b", k, words("other" k, 24))
        for (; k < 40; k++) page("b", k, words("own" k, 12) "\\n" words("more" k, 11) " end")
    }' >pages.jsonl

ids() { sed 's/^{"id":"\([^"]*\)".*/\1/' "$1"; }
status "without the option" 0 quern-dedup fuzzy pages.jsonl
equal "pages of a template are near-duplicates" "$(ids out | xargs)" "a0 b0"
status "with it" 0 quern-dedup fuzzy --strip-template 10 --clusters clusters --templates templates --stats stats -o kept --rejects rej \
    pages.jsonl
equal "they stay, but for mirrors of their own text" "$(wc -l <kept)" 60
head -n 60 pages.jsonl >want
same "whole" kept want
equal "a mirror's survivor is the page of which it is one" \
    "$(awk -F '\t' '$1 != "a" substr($2, 2)' clusters | wc -l) $(wc -l <clusters)" "0 20"
has "in the account too" rej '"id":"b27","stage":"dedup fuzzy","rule":"near-duplicate"'
equal "the template's lines are told" "$(wc -l <templates)" 61
equal "what most have comes first" "$(head -n 1 templates)" '{"documents":80,"line":"page 0 of 0"}'
check "then by text" env LC_ALL=C sort -c -t '"' -k 5 <(sed 1d templates)
equal "of all others 40 pages have each" "$(grep -c '^{"documents":40,' templates)" 60
has "and counted" stats '"lines":2620,"lines_of_templates":2480,"template_lines":61'

# The same bytes for threads, memory and ranks, and for a file that comes by a pipe; the report for any order.
for how in "-j 1" "-j 2 --memory 128M" "-j 3 --memory 1G"; do
    # shellcheck disable=SC2086
    quern-dedup fuzzy -q --strip-template 10 $how --clusters c --templates t -o k pages.jsonl
    for f in clusters templates kept; do same "$f with $how" ${f:0:1} $f; done
done
quern-dedup fuzzy -q --strip-template 10 <pages.jsonl >k
same "by a pipe" k kept
shuf --random-source=pages.jsonl pages.jsonl >mixed
quern-dedup fuzzy -q --strip-template 10 --templates t -o k mixed
same "in another order: the lines" t templates
equal "and as many pages" "$(wc -l <k)" 60
split -l 17 pages.jsonl part.
for n in 2 3; do
    check "$n ranks" ranks $n quern-dedup fuzzy -q --strip-template 10 --clusters c --templates t --stats s -o k part.*
    for f in clusters templates kept; do same "$f of $n ranks" ${f:0:1} $f; done
    has "counts of $n ranks" s '"lines":2620,"lines_of_templates":2480,"template_lines":61'
done

# In a plan, alone and by ranks.
cat >plan.yaml <<END
input: [$(echo part.* | sed 's/ /, /g')]
stages:
  - dedup fuzzy: {strip-template: 10, clusters: c, templates: t}
output: k
stats: s
work: work
END
for l in '' 'ranks 2'; do
    rm -rf k c t s work
    check "a plan, ${l:-alone}" $l quern curate -q ${l:+--ranks mpi} plan.yaml
    for f in clusters templates kept; do same "$f of a plan, ${l:-alone}" ${f:0:1} $f; done
    has "counts of a plan, ${l:-alone}" s '"lines":2620,"lines_of_templates":2480,"template_lines":61'
done

# Where nothing but a template is left all is compared; a document without text is like no other.
{
    for i in 1 2 3; do echo '{"id":"'$i'","text":"One line that all have\nand, of another, one\n\n--"}'; done
    echo '{"id":"4","text":"One line that all have\nand a line of its own that nobody else has"}'
    echo '{"id":"5","text":""}'
    echo '{"id":"6","text":"\n \n"}'
} >few.jsonl
status "few documents" 0 quern-dedup fuzzy --strip-template 3 --templates t --clusters c few.jsonl
equal "copies of nothing but a template go" "$(ids out | xargs)" "1 4 5 6"
printf '%s\n' '{"documents":4,"line":"one line that all have"}' '{"documents":3,"line":"and of another one"}' >want
same "lines are told as they are compared" t want
status "no line comes so often" 0 quern-dedup fuzzy --strip-template 5 --templates t few.jsonl
equal "the report is empty" "$(wc -c <t)" 0
equal "and all is compared" "$(ids out | xargs)" "1 4 5 6"
: >empty
status "no documents" 0 quern-dedup fuzzy --strip-template 2 --templates t empty

# What is refused.
for n in 0 1 -3 x 2x '' 5000000000; do
    status "--strip-template '$n'" 2 quern-dedup fuzzy --strip-template "$n" few.jsonl
done
status "with an index" 2 quern-dedup fuzzy --strip-template 2 --index i few.jsonl
has "and told" err "it goes with neither"
status "against others" 2 quern-dedup fuzzy --strip-template 2 --against pages.jsonl few.jsonl
status "a report without it" 2 quern-dedup fuzzy --templates t few.jsonl
has "and told" err "which is not given"
status "a report over the input" 2 quern-dedup fuzzy --strip-template 2 --templates few.jsonl few.jsonl
absent "nothing is written" i
finish
