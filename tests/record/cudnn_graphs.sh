#!/bin/sh
# What tests/unit/cudnn_test.c holds our graphs of attention against: those that NVIDIA's frontend builds (cudnn_graphs.cpp).
#   cudnn_graphs.sh FOLDER     of the frontend's headers; CUDA=/usr/local/cuda has cuDNN's, of 9.19
set -e
cuda=${CUDA:-/usr/local/cuda}
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
ln -s "$cuda/lib64/stubs/libcuda.so" "$t/libcuda.so.1"
g++ -std=c++17 -w -I"$1" -I"$cuda/include" "$(dirname "$0")/cudnn_graphs.cpp" -o "$t/graphs" -L"$cuda/lib64" -L"$cuda/lib64/stubs" \
    -lcudart -lcuda -lnvrtc -ldl
while read -r graph; do
    echo "graph $graph"
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$cuda/lib64:$t "$t/graphs" $graph
done <<'END'
91900 2 256 4 2 64 0 0.1 0
91900 2 256 4 2 64 1 0.1 0
91900 2 256 2 2 256 0 0 0
91900 2 256 2 2 256 1 0 0
91900 8 256 4 2 64 0 0 1
91900 8 256 4 2 64 1 0 1
91900 8 256 2 2 128 1 0.1 1
91002 8 256 4 2 64 1 0 1
END
