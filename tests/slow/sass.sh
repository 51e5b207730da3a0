# shellcheck shell=bash
# What nvcc makes of each kernel, against kernels/sass.inc: instructions, registers, widths of accesses, blocks of a multiprocessor.
. "$ROOT/tests/lib.sh"

# ---- the gate itself, on a kernel of ten instructions ----
mkdir -p here/kernels
touch here/kernels/vec.cu.o here/kernels/gone.cu.o # the second has no source
cat >nvcc <<'END'
#!/bin/sh
echo 'Cuda compilation tools, release 13.0, V13.0.88'
END
# cuobjdump -arch ARCH -WHAT FILE: prints what is in ./res-usage, ./elf or ./sass, or of this architecture alone in ./ARCH.WHAT.
cat >cuobjdump <<'END'
#!/bin/sh
cd "$(dirname "$0")" && if [ -e "$2.${3#-}" ]; then exec cat "$2.${3#-}"; else exec cat "${3#-}"; fi
END
chmod +x nvcc cuobjdump
cat >right.res-usage <<'END'
Resource usage:
 Common:
  GLOBAL:0
 Function _Z11copy_kernelILi4EEvPfPKfl:
  REG:32 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:552 TEXTURE:0 SURFACE:0 SAMPLER:0
END
cat >right.elf <<'END'
.nv.info._Z11copy_kernelILi4EEvPfPKfl
	<0x1>
	Attribute:	EIATTR_MAX_THREADS
	Format:	EIFMT_SVAL
	Value:	0x100 0x1 0x1
END
# The ends of rows, element by element, are out of line and longer.
cat >right.sass <<'END'
	code for sm_90
		Function : _Z11copy_kernelILi4EEvPfPKfl
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   S2R R0, SR_TID.X ;                        /* 0x0000000000007919 */
                                                                             /* 0x000e240000002100 */
        /*0010*/              @P1 EXIT ;                                     /* 0x000000000000194d */
        /*0020*/                   BSSY B0, 0x70 ;                           /* 0x0000004000007945 */
        /*0030*/              @P2 BRA 0xa0 ;                                 /* 0x000000600000a947 */
        /*0040*/                   LDG.E.128 R4, desc[UR4][R2.64] ;          /* 0x0000000402047981 */
        /*0050*/                   STG.E.128 desc[UR4][R8.64], R4 ;          /* 0x0000000408007986 */
        /*0060*/                   BSYNC B0 ;                                /* 0x0000000000007941 */
        /*0070*/                   IADD3 R0, R0, 0x100, RZ ;                 /* 0x0000010000007810 */
        /*0080*/             @!P0 BRA 0x20 ;                                 /* 0xfffffff800008947 */
        /*0090*/                   EXIT ;                                    /* 0x000000000000794d */
        /*00a0*/                   LDG.E R4, desc[UR4][R2.64] ;              /* 0x0000000402047981 */
        /*00b0*/                   LDG.E R5, desc[UR4][R2.64+0x4] ;          /* 0x0000000402047981 */
        /*00c0*/                   STG.E desc[UR4][R8.64], R4 ;              /* 0x0000000408007986 */
        /*00d0*/                   STG.E desc[UR4][R8.64+0x4], R5 ;          /* 0x0000000408007986 */
        /*00e0*/                   BSYNC B0 ;                                /* 0x0000000000007941 */
        /*00f0*/                   BRA 0xf0;                                 /* 0xfffffffc00fc7947 */
        /*0100*/                   NOP;                                      /* 0x0000000000007918 */
END
# gate NAME STATUS WHAT [SED-SCRIPT]: check or record of the kernel changed by a script; lines in ./out.
gate() {
    local name=$1 want=$2 what=$3 f
    for f in res-usage elf sass; do sed -E "${4:-}" right.$f >$f; done
    (cd "$ROOT" && NVCC=$T/nvcc CUOBJDUMP=$T/cuobjdump QUERN_SASS=$T/table bash tests/sass.sh "$what" "${B_OF-$T/here}") >out 2>err
    came "$name" $? "$want" sass.sh "$what"
}
kernel='vec.cu copy_kernel<4>:'
echo '/* what nvcc 13.0 makes */' >table
gate 'a kernel without a row' 1 check
has 'is named' out "$kernel no row in the table"
gate 'a table is written' 0 record
# 8 blocks: 2048 threads; 16 instructions but the NOP; the loop by its whole packs: 8 of them
has 'with what was counted' table 'SASS("vec.cu", "copy_kernel<4>", 256, 32, 1024, 0, 8, 16, 7, 0, 0, 0, 2, 0, 0, 0, 8, 8, 6)'
gate 'the same kernel passes' 0 check
gate 'more instructions a round do not' 1 check 's/^ .*LDG.E.128.*/&\n        \/*0048*\/ FADD R4, R4, R4 ;/'
has 'and are said' out "$kernel instructions for 16 bytes 3.50, got 4.00"
gate 'narrower accesses' 1 check 's/E\.128/E.64/'
has 'are said' out "$kernel bytes an access of memory 16.0, got 8.0"
gate 'a spilled register' 1 check 's/STACK:0/STACK:8/; s/S2R R0, SR_TID.X/STL [R1], R0/'
has 'is said as stack' out "$kernel bytes of stack 0, got 8"
has 'and as access' out "$kernel accesses of local memory 0, got 1"
gate 'registers that leave fewer blocks' 1 check 's/REG:32/REG:40/'
has 'are said' out "$kernel blocks of a multiprocessor 8, got 6 (256 threads, 40 registers, 1024 bytes shared)"
gate 'shared memory that no multiprocessor has' 1 check 's/SHARED:1024/SHARED:240000/'
has 'is said' out 'got none: 256 threads, 32 registers, 240000 bytes shared'
gate 'no launch bounds' 1 check 's/EIATTR_MAX_THREADS/EIATTR_OTHER/'
has 'are said' out "$kernel threads of __launch_bounds__ 256, got none"
gate 'a barrier a round' 1 check 's/IADD3 R0, R0, 0x100, RZ/BAR.SYNC.DEFER_BLOCKING 0x0/'
has 'is said' out "$kernel barriers for 16 bytes 0.00, got 0.50"
sed 's/REG:32/REG:48/; s/STACK:0/STACK:16/' right.res-usage >sm_120.res-usage
gate 'registers of another architecture' 1 check
has 'are said' out "$kernel blocks of a multiprocessor of sm_120 6, got 5"
has 'and its stack' out "$kernel bytes of stack 0, got 16"
: >sm_120.res-usage
gate 'code for fewer architectures is held by these' 0 check
gate 'a table takes all' 2 record
has 'and says so' out 'no kernel was built for sm_120 here'
rm sm_120.res-usage
gate 'a row without a kernel' 1 check 's/copy_kernelILi4/copy_kernelILi2/'
has 'is said' out "$kernel in the table, and no such kernel"
sed -i 's/13\.0/12.8/' table
gate 'a table of another compiler holds nothing' 2 check
has 'and says so' out 'the table is of another nvcc than 13.0'

# ---- the kernels that were built ----
cd "$ROOT" || exit 1
bash tests/sass.sh check "$B" >"$T/out" 2>&1
case $? in
0) ok "$(cat "$T/out")" ;;
2) skip 'the kernels against their table' "$(cat "$T/out")" ;;
*) while read -r line; do bad "${line%%: *}" "${line#*: }"; done <"$T/out" ;;
esac
finish
