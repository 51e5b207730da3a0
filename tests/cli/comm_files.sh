# shellcheck shell=bash
# Ranks that have only a folder in common: every call; what is said again by one that is started again, and what is not theirs.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/plain_ranks.sh"
case $B in /*) ;; *) B=$ROOT/$B ;; esac
prog=$B/tests/comm_ranks
export OMP_NUM_THREADS=1 RANKS_FOLDER=f
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # of ranks that give up
fresh() { rm -rf f && mkdir f; }
# files N MODE [NUMBER]: so many ranks.
files() { plain "$1" "$prog" "$2" "${3:-0}" files; }
# rank I N MODE: one of them.
rank() { RANK=$1 WORLD_SIZE=$2 timeout 60 "$prog" "$3" "${4:-0}" files; }

for n in 1 2 ${SWEEP:+8} 3; do # the last one is said again
    fresh
    check "every call, type and size, $n ranks" files $n all
    has 'by files' out "all: $n ranks, files"
done
(cd f && cksum ./*) >sums
check 'all said again' files 3 all
equal 'not a byte is new' "$(cd f && cksum ./*)" "$(cat sums)"
check 'by one rank alone, which all others have answered' rank 1 3 all
fresh
check 'more than a reduction takes at a time' files 4 large
fresh
check 'subgroups, calls in flight' files 3 groups

fresh
status 'a rank that hangs' 3 files 3 hang
has 'is named' err "stood still for 1.5 s, waiting for rank 2"
fresh
status 'counts that differ' 3 files 2 mismatch
has 'are named' err 'all-reduce of 64 bf16 elements: from rank 1: the message has 66 bytes, not 128'

# What does not fit together.
fresh
check 'three ranks' files 3 all
status 'of another number' 2 sh -c 'RANK=0 WORLD_SIZE=2 "$1" all 0 files; test $? = 3 && exit 2' x "$prog"
has 'is refused' err "'f/ranks': here are messages of 3 ranks, not of 2"
status 'another run' 3 rank 0 3 groups
has 'says something else' err "'f/0-1' at byte "
has 'and why' err "this rank has said something else here before"
cp f/ranks keep
echo 'a file of mine' >f/ranks
status 'a foreign folder' 3 rank 0 3 all
has 'is told' err "'f/ranks' is there already, and no file of ranks"
mv keep f/ranks

# Damage, which who reads names, and who wrote it heals when it is started again: it says the same there.
flip() { printf '\xff' | dd of=f/0-1 bs=1 seek="$1" conv=notrunc 2>dd.err; }
damage() { # NAME MESSAGE COMMAND...: to f/0-1
    cp f/0-1 good
    "${@:3}"
    RANKS_TIMEOUT=0.5 status "$1" 3 rank 1 3 all
    has "$1 is told" err "$2"
    check "$1: who wrote it says it again" rank 0 3 all
    equal "$1 is healed" "$(cksum <f/0-1)" "$(cksum <good)"
    check "$1: who reads it goes on" rank 1 3 all
}
anew='Rank 0, started again, writes anew what it says'
head_1=$((40 + $(od -An -t u8 -j 24 -N 8 f/0-1))) # where the second message begins
damage 'a byte of the first head' "'f/0-1' at byte 0: no message of this run begins here.  $anew" flip 3
damage 'a byte of the second head' "'f/0-1' at byte $head_1: no message of this run begins here.  $anew" flip $((head_1 + 20))
damage 'a byte of a message' "'f/0-1' at byte 40: the bytes of the message do not have its checksum.  $anew" flip 40
damage "another pair's messages" "'f/0-1' at byte 0: no message of this run begins here" cp f/0-2 f/0-1
damage 'a message that is cut' 'stood still for 0.5 s, waiting for rank 0' truncate -s $((head_1 + 30)) f/0-1
damage 'messages that are gone' 'stood still for 0.5 s, waiting for rank 0' rm f/0-1
finish
