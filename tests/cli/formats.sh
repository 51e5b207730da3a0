# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

for i in 1 2 3 4 5; do printf '{"id":"%d","text":"The mill number %d grinds its corn."}\n' $i $i; done >docs.jsonl
quern clean -q docs.jsonl >want.jsonl

# compressed input, told by its first bytes whatever its name says
xz -c docs.jsonl >docs.xz
lz4 -qc docs.jsonl >docs.lz4
cp docs.xz named.jsonl
{ head -n 2 docs.jsonl | xz -c; printf '\0\0\0\0'; tail -n 3 docs.jsonl | xz -C sha256 -c; } >two.xz
{ head -n 2 docs.jsonl | lz4 -qc; tail -n 3 docs.jsonl | lz4 -qc -B4; } >two.lz4
for f in docs.xz docs.lz4 named.jsonl two.xz two.lz4; do
    status "$f" 0 quern clean -q "$f"
    same "has the documents of the plain file, $f" out want.jsonl
done
quern clean -q - <two.xz >out
same 'xz through a pipe' out want.jsonl
head -c 100 docs.xz >cut.xz
status 'xz that is cut short' 1 quern clean cut.xz
has 'is named' err "'cut.xz': xz stream at offset 0 is cut short"
at=$(head -n 2 docs.jsonl | lz4 -qc | wc -c)
{ head -c "$at" two.lz4; printf '\x04\x22\x4d\x18\x64\x40\xa7\x09\0\0\0what is this'; cat docs.lz4; } >bad.lz4
status 'a damaged lz4 frame' 1 quern clean bad.lz4
has 'is named' err "'bad.lz4': damaged lz4 frame at offset $at"
equal 'the frames around it are read' "$(wc -l <out)" 7
finish
