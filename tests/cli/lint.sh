#!/usr/bin/env bash
# tests/lint.sh says what is against the rules: a small tree, and one fault after the other.
. "$ROOT/tests/lib.sh"
CC=${CC:-cc}
export B=build
lint() { (cd tree && bash "$ROOT/tests/lint.sh" "$@"); }

mkdir tree
cd tree || exit 1
mkdir -p base curate/low curate/high tests docs build
cat >docs/architecture.md <<'END'
| folder | what lives there | may include |
|---|---|---|
| `curate/` | a trade | `base` |
| `base/` | what all need | libc |

| folder in `curate/` | what lives there | may include |
|---|---|---|
| `high/` | a stage | `low` |
| `low/` | characters | none |
END
printf '#ifndef A_H\n#define A_H\nstruct a {\n    int x;\n};\nint a_get(const struct a *a);\n#endif\n' >base/a.h
printf '#include "base/a.h"\n\nint a_get(const struct a *a)\n{\n    return a->x;\n}\n' >base/a.c
printf '#include "base/a.h"\n' >curate/low/low.h
printf '#include "curate/low/low.h"\n\nint high_get(const struct a *a);\nint high_get(const struct a *a)\n{\n    return a_get(a);\n}\n' >curate/high/high.c
printf 'int high_get(const void *a);\nint main(void)\n{\n    return high_get(0);\n}\n' >curate/cmd_x.c
: >tests/a_test.c
cd ..
build() (
    cd tree || exit
    rm -f build/lib*.a
    $CC -I. -c base/a.c -o build/a.c.o && ar rc build/libbase.a build/a.c.o &&
        $CC -I. -c curate/high/high.c -o build/high.c.o && ar rc build/libcurate.a build/high.c.o &&
        mkdir -p build/curate && $CC -I. -c curate/cmd_x.c -o build/curate/cmd_x.c.o
)
check "the small tree is built" build
status "floors of a sound tree" 0 lint floors
status "tags, paths, calls and text of a sound tree" 0 lint tags paths calls text headers
lint symbols >out 2>&1
equal "symbols of a sound tree" "$(grep -v 'not for tests alone' out)" ''

# fault NAME RULE SAYS: the tree as it stands is refused by that rule, with these words.
fault() {
    status "$1: refused" 1 lint "$2"
    has "$1: said" out "$3"
}
echo '#include "curate/high/high.h"' >tree/curate/low/up.c
fault 'a folder includes what stands above it' floors 'curate/low/up.c includes curate/high/high.h, which does not stand below it'
echo '#include "curate/low/low.h"' >tree/base/up.c
rm tree/curate/low/up.c
fault 'base includes a trade' floors 'base/up.c includes curate/low/low.h, which does not stand below it'
rm tree/base/up.c
mkdir tree/curate/new
echo '#include "curate/low/low.h"' >tree/curate/new/new.c
fault 'a folder that the tables do not have' floors 'does not say where curate/new/ stands'
rm -r tree/curate/new
cp tree/docs/architecture.md sound
sed -i 's/| characters | none |/| characters | `high` |/' tree/docs/architecture.md
fault 'tables in which two folders include each other' floors 'curate/low/ may include curate/high/, which does not stand below it'
cp sound tree/docs/architecture.md

printf 'struct a {\n    int y;\n};\n' >tree/curate/low/tag.h
fault 'one tag in two headers' tags 'struct a stands in base/a.h and in curate/low/tag.h'
rm tree/curate/low/tag.h
echo 'int b_get(const struct b_missing *b, size_t n);' >tree/base/b.h
fault 'a header that needs another first' headers 'base/b.h does not compile alone'
rm tree/base/b.h

printf 'int a_more(void);\nint a_twice(void);\n' >tree/base/more.h
printf '#include "base/more.h"\nint a_more(void)\n{\n    return 1;\n}\n' >>tree/base/a.c
build
fault 'a symbol that nothing uses' symbols 'a_more of base/a.c is used nowhere else'
echo 'int a_more(void);' >tree/tests/a_test.c
fault 'a symbol for tests alone' symbols 'a_more of base/a.c is used by tests alone'
printf 'int a_twice(void)\n{\n    return a_more() + a_get(0);\n}\n' >>tree/base/a.c
echo 'int a_twice(void);' >>tree/curate/cmd_x.c
echo 'int (*a_use)(void) = a_twice;' >>tree/curate/cmd_x.c
build
lint symbols >out 2>&1
equal "what its own file uses may be for a test" "$(grep -v 'not for tests alone' out)" ''
cp tree/build/a.c.o again.c.o
ar rc tree/build/libcurate.a again.c.o
fault 'a symbol in two libraries' symbols 'symbols defined twice'

echo 'Data are in ../shar''ed/data.' >tree/docs/data.md
fault 'a path beside the repository' paths 'a path outside the repository'
echo 'Data are in /wo''rk/data.' >tree/docs/data.md
fault 'a path of one machine' paths 'a path of one machine'
rm tree/docs/data.md
echo 'void f(void) { exit(1); }' >tree/base/c.c
fault 'a library that exits' calls 'a library prints or exits'
printf 'void f(char *s) { strcpy(s, ""); }\n' >tree/base/c.c
fault 'a banned call' calls 'banned call'
printf '\tint x;\n' >tree/base/c.c
fault 'a tab' text 'tab, trailing blank or long line'
fault 'a rule that does not exist' nonsense "no rule 'nonsense'"
finish
