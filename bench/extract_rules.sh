#!/usr/bin/env bash
# How much the quality of main content hangs on each rule and number: one is changed at a time, and the pages with known
# answers are scored again.
. bench/lib.sh
X=$SHARED/data/extraction
if [ ! -d "$X" ]; then
    printf 'extract_rules\t-\t-\tleft out: no %s\n' "$X"
    exit 0
fi
html=$T/curate/html
mkdir -p "$html"
libs=$(awk '/^LIB_/ { of[substr($1, 5)] = substr($0, index($0, ":=") + 2) }
    /^HAVE_/ && $3 == 1 { print of[substr($1, 6)] }' "$B/config.mk")

# changed NAME SCRIPT: the rules as sed's script makes them, which must change something.
changed() {
    local set score=()
    cp curate/html/main_content* "$html"
    sed -i "$2" "$html"/*
    if [ "$2" ] && cat curate/html/main_content* | cmp -s - <(cat "$html"/*); then
        row "extract rules: $1" - F1 "left out: '$2' changes nothing"
        return
    fi
    # shellcheck disable=SC2086 # words
    "${CC:-cc}" -O1 -march=native -D_GNU_SOURCE -I"$T" -I. "$html"/*.c "$B/curate/cmd_extract.c.o" -Wl,--start-group \
        "$B"/lib*.a -Wl,--end-group -Wl,--as-needed $libs -lm -lpthread -lstdc++ -fopenmp -o "$T/quern-extract" || exit 1
    for set in article segment; do
        "$T/quern-extract" --quiet --extractor rules "$X/$set-benchmark/dev/html" |
            sed 's|^{"id":"[^"]*/\([0-9a-f]*\)\.html\.gz"|{"id":"\1"|' >"$T/$set.jsonl"
        score+=("$(f1 $set "$T/$set.jsonl")")
    done
    row "extract rules: $1" "${score[0]}" "F1, articles" "segments ${score[1]}"
}
# number NAME VALUE...: a constant of main_content_parts.h.
number() {
    local name=$1 value
    shift
    for value; do changed "$name $value" "s/ $name = [0-9]*/ $name = $value/"; done
}

changed 'as it is' ''
number PARA_MIN 20 45 60
for n in 75 90; do changed "a child with $n % of the paragraphs" "s/para \* 80ull/para * ${n}ull/"; done
for n in 50 80; do changed "a child with $n % of the text" "s/link) \* 70ull/link) * ${n}ull/"; done
changed 'boilerplate up to a third of the page' 's/at->para \* 2 <= total/at->para * 3 <= total/'
changed 'boilerplate up to two thirds' 's/at->para \* 2 <= total/at->para * 3 <= total * 2/'
changed 'links from a third of the text' 's/at->link \* 2 <= at->text/at->link * 3 <= at->text/'
changed 'links from two thirds' 's/at->link \* 2 <= at->text/at->link * 3 <= at->text * 2/'
number LEAD_MIN 40 80 160
changed 'no leads' 's/own_para < LEAD_MIN/own_para < UINT32_MAX/'
for n in 120 400; do changed "again below $n columns" "s/most >= ENOUGH/most >= $n/"; done
changed 'never again' 's/most >= ENOUGH/most >= 0/'
changed 'no hints from names for boilerplate' 's/{ALL_HINTS, PARA/{0, PARA/; s/{FEW_HINTS, /{0, /g'
changed 'captions stay' 's/if (role & ANNOTATION ||/if (0 \&\&/'
number CAPTION_MIN 60 110 180 100000
changed 'what stands above the headline stays' \
    's/i = 1; headline &&/i = headline; headline \&\&/; s/(t->node\[c\].end <= lead || c > at)/c > at/'
changed 'only <h1> is a headline' 's/bool says = /bool says = t->node[i].tag == HTML_h1 \&\& /'
changed 'no rule for lines' 's/^    content_drop_lines(m, root);//'
changed "the root's candidate, not going down" 's/return walk_down(m, best);/return best;/'
changed 'going down from the page, no candidates' 's/return walk_down(m, best);/return walk_down(m, 0);/'
changed 'no sections by their headings' 's/^    mark_sections(&m);//'
