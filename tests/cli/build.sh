#!/bin/bash
# What the build says of libraries that are missing, and how programs are hardened.
# shellcheck disable=SC2016
. "$ROOT/tests/lib.sh"
case $B in /*) built=$B ;; *) built=$ROOT/$B ;; esac

# build GOAL HAVE_X=0...: what make would do.
build() { MAKEFLAGS='' make -n --no-print-directory -C "$ROOT" B="$T/b" HAVE_CUDA=0 "$@"; }
mkdir b
cp "$built/config.mk" b
status 'without a base library' 2 build all HAVE_ZSTD=0 HAVE_YAML=0
has 'one line names them, and what installs them' err 'Nothing can be built without ZSTD YAML: `make deps` installs what is missing'
equal 'nothing is tried' "$(grep -c . out) $(grep -c . err)" '0 1'
status 'help is there all the same' 0 build help HAVE_ZSTD=0
status 'no compiler yet' 0 build check CC=no-such-cc CXX=no-such-c++
equal 'is not complained of: it is about to be installed' "$(cat err)" ''
status 'without other libraries' 0 build all HAVE_ICU=0 HAVE_NETTLE=0 HAVE_MPI=0
has 'the commands left out are named, with the reason' out 'left out: quern-decontaminate, for want of ICU NETTLE (make deps installs it)'
has 'and several ranks' out 'left out: several ranks (quern-mpi.so), for want of mpicc'
equal 'what needs them is not compiled' "$(grep -cE 'archive/charset.c.o$|base/digest.c.o$|mpi_backend|bin/quern-clean$' out)" 0
equal 'the others are' "$(grep -c 'bin/quern-tokenize$' out)" 1

# Packages, for an ordinary user: with all of them there nobody is asked for a password.
mkdir user
printf '#!/bin/sh\necho 1000\n' >user/id
printf '#!/bin/sh\necho installed\n' >user/dpkg-query
printf '#!/bin/sh\ntouch asked\n' >user/sudo
chmod +x user/*
status 'packages that are there' 0 env PATH="$T/user:$PATH" sh "$ROOT/tests/deps.sh" gcc make
equal 'in silence' "$(cat out err)" ''
absent 'sudo is not asked' asked
rm user/sudo user/dpkg-query
for c in sh grep env; do ln -s "$(command -v $c)" user; done
status 'packages that are not, without sudo' 1 env PATH="$T/user" sh "$ROOT/tests/deps.sh" gcc make
has 'are named' err 'missing, to be installed by root: apt-get install gcc make'

# Programs and plugins: addresses that cannot be guessed, tables that cannot be written, canaries, checked copies.
for f in "$built"/bin/* "$built"/lib/*.so; do
    [ -f "$f" ] || continue
    readelf -Whlds "$f" >elf
    n=${f##*/}
    check "$n: position-independent" grep -qE '^ *Type: +DYN' elf
    check "$n: its tables are read-only" grep -q GNU_RELRO elf
    check "$n: all is bound at the start" grep -qE 'BIND_NOW|Flags: .*NOW' elf
    check "$n: no stack is executable" grep -qE 'GNU_STACK +([^ ]+ +){5}RW ' elf
    check "$n: stack protector" grep -q '__stack_chk_fail' elf
    if [ -z "${SAN:-}" ] && ! grep -q __asan_ elf; then check "$n: checked copies" grep -qE '__[a-z_]+_chk@' elf; fi
done
finish
