#!/usr/bin/env bash
# LaTeX against the text of the PDFs made of it, and a book with heavy macros.  Floors stand a little under
# what was measured: docs/latex.md.
. "$ROOT/tests/lib.sh"
D=$SHARED/data/latex

quern-extract --quiet "$D/articles" >a.jsonl 2>err
equal 'a document for each article' "$(wc -l <a.jsonl)" 45
quern-extract --quiet -j 1 "$D/articles" >one.jsonl 2>err
quern-extract --quiet -j 3 "$D/articles" >three.jsonl 2>err
same 'the same bytes for any number of threads' one.jsonl three.jsonl
cp "$D/hott"/*.tex .
{
    printf '\\documentclass{book}\\input{macros}\\begin{document}'
    for f in "$D/hott"/*.tex; do
        f=$(basename "$f" .tex)
        [ "$f" = macros ] || printf '\\include{%s}\n' "$f"
    done
    printf '\\end{document}'
} >all-chapters.tex
quern-extract --quiet all-chapters.tex >book.jsonl 2>err
# shellcheck disable=SC2016
has 'a dependent product, from macros that look at what follows' book.jsonl '$\\prod_{x:A}\\,'
for own in '\\prd' '\\jdeq' '\\opp' '\\refl' '\\define' '\\cref' '@endlamarg' '\\xspace'; do
    if grep -qF -- "$own{" book.jsonl; then bad "$own is expanded"; else ok "$own is expanded"; fi
done
if ! command -v python3 >/dev/null; then
    echo "no python3: quality was not scored"
    finish
fi
# at_least NAME GOT FLOOR
at_least() {
    if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a >= b) }'; then ok "$1"; else bad "$1" "'$2', floor $3"; fi
}
IFS=$'\t' read -r n recall precision _ < <(python3 "$ROOT/tests/shared/latex_score.py" "$D/articles-pdftext" <a.jsonl)
equal 'articles with a PDF' "$n" 38
at_least 'recall' "$recall" 0.80
at_least 'precision' "$precision" 0.96
finish
