#!/usr/bin/env bash
# Emits a CUDA step and compiles and links it as a user's would be, without running it:
#
#   compile-step.sh TMC NVCC ROOT LIBRARIES OUT "NVCC FLAGS" MODEL OPTION...
set -euo pipefail
tmc=$1 nvcc=$2 root=$3 libraries=$4 out=$5 flags=$6 model=$7
shift 7
rm -rf "$out"
"$tmc" compile "$root/$model" --target=cuda:sm_90 --emit=source -o "$out" "$@" > /dev/null
# shellcheck disable=SC2086 # flags are words
"$nvcc" $flags --expt-relaxed-constexpr -I "$root" -c "$out/step.cu" -o "$out/step.o"
"$nvcc" "$out/step.o" -o "$out/train" "$libraries/libtmc-trainer.a" \
  "$libraries/libtmc-runtime-cuda.a" -lcublasLt -lcudnn
"$out/train" --help > /dev/null
