#!/bin/sh
# cuda_tools.sh BUILD NVCC: where nvcc is without cuobjdump (NVIDIA's packages of the compiler alone), gets that and nvdisasm into
# BUILD/cuda-tools, for tests/slow/sass.sh, by pip; without pip or a network that test is left out, and says so.
build=$1 nvcc=$2
if [ -z "$nvcc" ] || [ -e "$build/cuda-tools" ] || [ -x "$(dirname "$nvcc")/cuobjdump" ] || command -v cuobjdump >/dev/null; then
    exit 0
fi
for pip in pip3 pip; do
    command -v $pip >/dev/null || continue
    sh tests/step.sh 'getting cuobjdump and nvdisasm' "$build/cuda-tools.log" $pip install -q --no-deps --target "$build/cuda-tools" \
        nvidia-cuda-cuobjdump==13.2.86 nvidia-cuda-nvdisasm==13.2.86 || rm -rf "$build/cuda-tools"
    exit 0
done
exit 0
