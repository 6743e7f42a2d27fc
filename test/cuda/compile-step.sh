#!/usr/bin/env bash
# Emits a CUDA step and compiles and links it as a user's would be, without running it; what the
# assembler says of its kernels is left in OUT/NAME.ptxas, where OUT ends in -NAME:
#
#   compile-step.sh TMC NVCC ROOT LIBRARIES OUT "NVCC FLAGS" MODEL OPTION...
set -euo pipefail
tmc=$1 nvcc=$2 root=$3 libraries=$4 out=$5 flags=$6 model=$7
shift 7
rm -rf "$out"
"$tmc" compile "$root/$model" --target=cuda:sm_90 --emit=source -o "$out" "$@" > /dev/null
log=$out/${out##*-}.ptxas
# shellcheck disable=SC2086 # flags are words
"$root/tools/cmake/logged.sh" "$log" "$nvcc" $flags -Xptxas -v --expt-relaxed-constexpr -I "$root" \
  -c "$out/step.cu" -o "$out/step.o"
"$nvcc" "$out/step.o" -o "$out/train" "$libraries/libtmc-trainer.a" \
  "$libraries/libtmc-runtime-cuda.a" -Xlinker --as-needed -lcublasLt -lcudnn -lnvrtc
"$out/train" --help > /dev/null
