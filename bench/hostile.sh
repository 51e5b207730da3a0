#!/usr/bin/env bash
# Pages made to be slow or large: processor seconds of extract, each page alone.
. bench/lib.sh
here=$PWD
cd "$T" || exit 1
. "$here/tests/hostile_pages.sh"
for page in "${hostile_pages[@]}" long; do
    for extractor in main everything justext; do
        run=(quern-extract -j 1 --quiet --max-page-bytes 256M --extractor "$extractor" "$page.html")
        row "hostile $page $extractor" "$(cpu "${run[@]}")" s "$(stat -c %s "$page.html") bytes"
    done
done
