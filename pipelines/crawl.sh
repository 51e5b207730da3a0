#!/bin/sh
# Feeds a crawl's list of paths through a plan, a file at a time: fetches, curates, and
# removes each archive before the next.
#   pipelines/crawl.sh PLAN PATHS OUT [PREFIX]
# PLAN    a plan without stages that must know other documents (deduplicate OUT afterwards);
#         its input, output, rejects and stats are replaced
# PATHS   a file of paths, a line each; .gz is fine (Common Crawl's warc.paths.gz)
# OUT     a folder: NAME.jsonl.zst, NAME.rejects.jsonl and NAME.stats.json for each archive
# PREFIX  what to put before a path [https://data.commoncrawl.org/]; a folder will do
# Start it again after whatever happened: what is done stays, what was half done goes on.
# TASK and TASKS (or a Slurm array) take every TASKS-th path.
set -eu
plan=${1:?which plan?} paths=${2:?which paths?} out=${3:?which folder?} prefix=${4-https://data.commoncrawl.org/}
task=${TASK:-${SLURM_ARRAY_TASK_ID:-0}} tasks=${TASKS:-${SLURM_ARRAY_TASK_COUNT:-1}}
mkdir -p "$out"
case $paths in *.gz) gzip -dc "$paths" ;; *) cat "$paths" ;; esac |
    awk -v t="$task" -v n="$tasks" 'NF && (NR - 1) % n == t' >"$out/.paths.$task"
failed=0
while read -r path; do
    name=$(basename "$path")
    name=${name%.gz}
    [ -e "$out/$name.jsonl.zst" ] && continue
    archive=$out/.$name.archive
    if [ ! -e "$archive" ]; then
        case $prefix in
        *://*) wget -q --tries=5 --continue -O "$archive.part" "$prefix$path" || { failed=$((failed + 1)); continue; } ;;
        *) cp "$prefix$path" "$archive.part" || { failed=$((failed + 1)); continue; } ;;
        esac
        mv "$archive.part" "$archive"
    fi
    # The task's number is for paths here, not for the plan.
    env -u SLURM_ARRAY_TASK_ID quern curate -q "$plan" "$archive" -o "$out/$name.jsonl.zst" --rejects "$out/$name.rejects.jsonl" \
        --stats "$out/$name.stats.json" --work "$out/.$name.work" || [ $? = 1 ] || { failed=$((failed + 1)); continue; }
    rm -rf "$archive" "$out/.$name.work"
done <"$out/.paths.$task"
rm -f "$out/.paths.$task"
[ "$failed" = 0 ] || { echo "crawl: $failed archives failed; start again to go on" >&2; exit 1; }
