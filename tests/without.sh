# shellcheck shell=bash
# For tests that build quern without some libraries, after tests/lib.sh.

# lean_make DIR ARGUMENT...: makes in ./DIR, quickly.
lean_make() {
    MAKEFLAGS='' make -C "$ROOT" --no-print-directory -j"$(nproc)" B="$T/$1" OPT=-O0 "${@:2}"
}
# optional: the libraries that may be missing, MPI and the CUDA compiler with them.
optional() {
    lean_make ask -s optional
}
# without LIBRARY...: builds all that can be without them in ./lean.  Where `lean_make whole all` has built everything, only
# what asks for libraries is compiled again, and all is linked.
without() {
    local off=("${@/%/=0}")
    off=("${off[@]/#/HAVE_}")
    rm -rf lean
    if [ -d whole ]; then
        cp -a whole lean && rm -rf lean/bin lean/lib lean/lib*.a
        (cd "$ROOT" && grep -rlE --include='*.[ch]' --include='*.cpp' 'HAVE_|QUERN_LIBRARIES' .) | sed 's,^\./,,' >asks
        find lean -name '*.d' -exec grep -lF -f asks {} + | sed 's/d$/o/' | xargs rm -f
        lean_make lean "${off[@]}" optional >/dev/null # notes the flags
        find lean -name '*.o' -exec touch {} +
    fi
    lean_make lean "${off[@]}" all
}
