# shellcheck shell=bash
# `quern doctor`: exit 0 with or without a GPU, and the reason why there is none.
. "$ROOT/tests/lib.sh"

status 'doctor' 0 quern doctor
has 'the instruction set' out instruction_set
has 'what this build has' out simdjson
has 'whether a GPU can be used' out usable
status 'doctor --json' 0 quern doctor --json
has 'with the machine' out '"machine":{"processor":'
has 'and the GPU' out '"gpu":{"usable":'
printf '{"id":"1","text":"x","doctor":%s}\n' "$(cat out)" >doc.jsonl
status 'is one JSON object' 0 quern dedup exact doc.jsonl
if nm "$(command -v quern-doctor)" | grep -q ' __[at]san_init$'; then
    skip 'memory limited by the shell' 'a sanitizer takes all addresses'
else
    status 'memory limited by the shell' 0 bash -c 'ulimit -v 3000000; quern doctor --json'
    has 'is what may be used' out '"memory_limit":3072000000'
fi
status 'an instruction set lowered' 0 env QUERN_ISA=base quern doctor --json
has 'is the one shown' out '"instruction_set":"base"'
status 'a backend that is not there' 0 env QUERN_CUDA=/no/such/backend.so quern doctor --json
has 'is the reason' out '"usable":false,"why_not":"cannot open the CUDA backend: /no/such/backend.so'
status 'a backend that is none' 0 env QUERN_CUDA=libm.so.6 quern doctor
has 'is the reason too' out 'is not the CUDA backend of this build'
status 'a GPU without cuDNN' 0 env QUERN_CUDA="$(cd "$ROOT" && cd "$B" && pwd)/tests/simt-cuda.so" quern doctor --json
has 'what products and attention are by' out '"cublaslt":"0.0.2","cudnn":null'
status 'ranks over MPI' 0 quern doctor --json
has 'and by which' out '"mpi":"Open MPI'
status 'no MPI' 0 env QUERN_MPI=/no/such/backend.so quern doctor --json
has 'is a reason' out '"mpi":null,"why_no_mpi":"cannot open the MPI backend: /no/such/backend.so'
status 'NCCL where it is said to be' 0 env QUERN_NCCL=libm.so.6 quern doctor --json
has 'is looked for there' out '"nccl":"libm.so.6"'
status 'no NCCL' 0 env QUERN_NCCL=/no/such/nccl.so quern doctor --json
has 'is none, whatever the linker has' out '"nccl":null'
status 'an operand' 2 quern doctor x
status 'a full disk' 3 bash -c 'quern doctor >/dev/full'
finish
