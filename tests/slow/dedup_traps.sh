#!/usr/bin/env bash
# Near-duplicates where it is easy to drop too much or too little: pages of one template, some just below the threshold, chains,
# and mirrors of a text within another site's page.  Of three sizes each; every drop by comparing shingles as strings.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
case $B in /*) ;; *) B=$ROOT/$B ;; esac

# Each is given the number of documents.  A word is a number that no other place has.
words='function words(source, from, n,    i, t) { for (i = 0; i < n; i++) t = t " w" source "x" from + i; return t }
    function doc(id, text) { printf "{\"id\":\"%s\",\"text\":\"%s\"}\n", id, substr(text, 2) } '
# Pages of 200 shingles of the template and so many of their own that any two have the similarity.
template() { awk -v n="$1" -v j="$2" "$words"'BEGIN { own = int(200 * (1 - j) / (2 * j) + .999)
    for (d = 0; d < n; d++) doc(d, words("t", 0, 204) words("o" d, 0, own)) }'; }
# Windows of 100 words (96 shingles), 2 words apart: up to 10 words apart they are similar by .8, the first of 6 stays.
chain() { awk -v n="$1" "$words"'BEGIN { for (d = 0; d < n; d++) doc(d, words("c", 2 * d, 100)) }'; }
# A text of 300 words, and it three times within 12 words of others before it and 12 behind.
mirror() { awk -v n="$1" "$words"'BEGIN { for (d = 0; d < n; d++) doc(d % 4 "-" int(d / 4),
    words("b" d % 4, 0, 12) words("m" int(d / 4), 0, 300) words("e" d % 4, 0, 12)) }'; }

# trap NAME STAY KIND N [J]: so many stay, each drop is right, and all is as where every candidate is looked at.
trap_of() {
    local name=$1 stay=$2
    "$3" "${@:4}" >docs.jsonl
    status "$name" 0 quern-dedup fuzzy -q --report-over 0 --clusters clusters -o kept docs.jsonl
    equal "$name: so many stay" "$(wc -l <kept)" "$stay"
    "$B/tests/dedup_truth" score docs.jsonl <clusters >scored
    equal "$name: no wrong drop" "$(awk -F'\t' '$4 < .8 || $3 - $4 > 2e-6 || $4 - $3 > 2e-6' scored)" ""
    equal "$name: an account of each" "$(wc -l <scored)" $(($4 - stay))
    quern-dedup fuzzy -q --report-over 0 --clusters all.clusters --pairs pairs -o all docs.jsonl
    same "$name: the documents of looking at every candidate" kept all
    same "$name: and the clusters" clusters all.clusters
    [ "$4" = 540 ] || return
    for how in "--memory 128M -j 3" "--seed 5"; do
        # shellcheck disable=SC2086
        quern-dedup fuzzy -q --report-over 0 $how -o other docs.jsonl
        same "$name: $how" kept other
    done
}
for n in 60 180 540; do
    for j in .30 .60 .75 .79; do trap_of "$n pages of a template, $j" $n template $n $j; done
    trap_of "$n pages of a template, .85" 1 template $n .85
    trap_of "a chain of $n" $((n / 6)) chain $n
    trap_of "$n documents, three in four mirrors" $((n / 4)) mirror $n
done
finish
