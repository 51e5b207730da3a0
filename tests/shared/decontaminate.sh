#!/bin/bash
# quern decontaminate on 30,187 questions of 20 evaluations and real books.
. "$ROOT/tests/lib.sh"
evals=$SHARED/data/evalsets/questions.jsonl.zst
zstd -dcq "$evals" >q.jsonl
zstd -dcq "$SHARED/data/text/prose/books-dev.jsonl.zst" >books.jsonl
status "plants 1,600 questions" 0 sh -c "python3 '$ROOT/tests/shared/decontaminate_plant.py' q.jsonl books.jsonl 200 >docs.jsonl 3>truth.tsv"
equal "in half of the documents" "$(wc -l <docs.jsonl) $(wc -l <truth.tsv)" "3200 1600"

status "finds them" 0 quern-decontaminate -q -a "$evals" docs.jsonl --report report --rejects rejects --stats stats.json -o kept
# Pairs of document and question that were reported.
sed 's/^{"id":"\([^"]*\)","task":"[^"]*","question_id":"\([^"]*\)".*/\1\t\2/' report | sort -u >found
# Recall by kind: of all, and of those of which 13 words in a row, or all of 8 or more words, were planted.
awk -F '\t' 'NR == FNR { found[$1 FS $2] = 1; next }
    { n[$3]++; ok[$3] += hit = ($1 FS $2) in found
      if ($4 >= 13 || ($4 >= 8 && $4 == $5)) { m[$3]++; must[$3] += hit } }
    END { for (k in n) print k, n[k], ok[k], m[k], must[k] }' found truth.tsv | sort >recall
cat recall
equal "finds every question of which enough was planted" "$(awk '$4 != $5' recall)" ""
equal "changed at every tenth word: 94 in 100 at least" "$(awk '$1 == "every-10th" && $3 < 188' recall)" ""
equal "sentences in another order: 95 in 100 at least" "$(awk '$1 == "reversed" && $3 < 190' recall)" ""
equal "words inserted: 99 in 100 at least" "$(awk '$1 == "inserted" && $3 < 198' recall)" ""
# Documents without a planted question: one of them has a sentence that LAMBADA has too.
equal "precision" "$(sed 's/^{"id":"\([^"]*\)".*/\1/' rejects | sort | comm -23 - <(cut -f1 truth.tsv | sort) | wc -l)" 1

status "strips them" 0 quern-decontaminate -q -a "$evals" --action strip docs.jsonl -o stripped
status "for good" 0 quern-decontaminate -q -a "$evals" stripped --rejects rejects -o kept2
equal "nothing is left to be found" "$(wc -l <rejects)" 0
quern-decontaminate -q -j3 -a "$evals" docs.jsonl --report report3 -o kept3
same "the same with three threads" kept3 kept
same "and the same report" report3 report
finish
