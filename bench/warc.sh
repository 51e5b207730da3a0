#!/usr/bin/env bash
# Reading archives: CPU time a core, without pages (records that are passed over) and with
# them, against FastWARC and warcio on the same file in one run.
. bench/lib.sh
made=$SHARED/data/warc/made/clean.warc.gz
if [ ! -f "$made" ]; then
    printf 'warc\t-\t-\tleft out: no %s\n' "$made"
    exit 0
fi

# Fifty times the sample; the same with its responses renamed, so that nothing is a page.
python3 - "$made" "$T" <<'EOF' || exit 1
import gzip, re, sys
made, folder = sys.argv[1:]
open(folder + "/pages.warc.gz", "wb").write(open(made, "rb").read() * 50)
data = gzip.open(made).read()
data = re.sub(rb"(?m)^WARC-Type: response", b"WARC-Type: requests", data)
starts = [m.start() for m in re.finditer(rb"WARC/1\.0\r\n", data)] + [len(data)]
members = b"".join(gzip.compress(data[a:b], 6) for a, b in zip(starts, starts[1:]))
open(folder + "/other.warc", "wb").write(data * 50)
open(folder + "/other.warc.gz", "wb").write(members * 50)
EOF
mb=$(stat -c %s "$T/other.warc" | awk '{ printf "%.1f", $1 / 1e6 }')

runs=5
row() { # NAME SECONDS
    printf '%s\t%s\tMB/s\t%s MB in %s s of CPU\n' "$1" "$(awk -v m="$mb" -v s="$2" 'BEGIN { printf "%.0f", m / (s + 1e-9) }')" \
        "$mb" "$2"
}
peer() { # MODULE FILE
    if [ -z "${PEERS:-}" ] || ! "$PEERS" -c "import $1" 2>/dev/null; then
        printf '%s\t-\t-\tleft out: set PEERS to a Python that has it\n' "$1 read"
        return
    fi
    case $1 in
    fastwarc) code='import sys, fastwarc.warc as w
for r in w.ArchiveIterator(open(sys.argv[1], "rb"), parse_http=False): r.reader.read()' ;;
    warcio) code='import sys, warcio.archiveiterator as w
for r in w.ArchiveIterator(open(sys.argv[1], "rb")): r.raw_stream.read()' ;;
    esac
    row "$1 read ${2#"$T"/other}" "$(cpu "$PEERS" -c "$code" "$2")"
}
for f in "$T/other.warc" "$T/other.warc.gz"; do
    row "warc read ${f#"$T"/other}" "$(cpu quern-extract -q -j 1 "$f")"
    peer fastwarc "$f"
    peer warcio "$f"
done
row 'warc extract .warc.gz' "$(cpu quern-extract -q -j 1 "$T/pages.warc.gz")"
