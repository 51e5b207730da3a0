# shellcheck shell=bash
# For tests that build quern without some libraries, after tests/lib.sh.

case $B in /*) built=$B ;; *) built=$ROOT/$B ;; esac

# lean_make DIR ARGUMENT...: makes in ./DIR, quickly.
lean_make() {
    MAKEFLAGS='' make -C "$ROOT" --no-print-directory -j"$(nproc)" B="$T/$1" OPT=-O0 "${@:2}"
}
# optional: the libraries that may be missing, MPI and the CUDA compiler with them.
optional() {
    lean_make ask -s optional
}
# without LIBRARY...: builds all that can be without them in ./lean, from the objects of $built: what asks for libraries is compiled
# again, and all is linked.
without() {
    local off=("${@/%/=0}") floor
    off=("${off[@]/#/HAVE_}")
    rm -rf lean && mkdir lean || return 1
    for floor in base comm kernels indexed_dataset curate tokenize train pipelines bindings; do cp -a "$built/$floor" lean || return 1; done
    (cd "$ROOT" && grep -rlE --include='*.[ch]' --include='*.cpp' 'HAVE_|QUERN_LIBRARIES' .) | sed 's,^\./,,' >asks
    find lean -name '*.d' -exec grep -lF -f asks {} + | sed 's/d$/o/' | xargs rm -f
    lean_make lean "${off[@]}" optional >/dev/null # notes the flags
    find lean -name '*.o' -exec touch {} +
    lean_make lean "${off[@]}" all
}
