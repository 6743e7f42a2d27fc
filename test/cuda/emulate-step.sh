#!/usr/bin/env bash
# Emits a CUDA step, runs it in the emulator, and compares it with PyTorch's golden values:
#
#   emulate-step.sh TMC CXX PYTHON ROOT LIBRARY CUDA_INCLUDE OUT GOLDEN OPTION...
#
# What is emulated is the emitted text itself, the offsets of the plan included: only cuBLASLt,
# cuDNN and the device are stand-ins. Once more with threads and blocks in the reverse
# order.
set -euo pipefail
tmc=$1 cxx=$2 python=$3 root=$4 library=$5 include=$6 out=$7 golden=$8
shift 8
rm -rf "$out"
"$tmc" compile "$@" --target=cuda:sm_90 --emit=source -o "$out" \
  --optimizer='adamw(beta1=0.9,beta2=0.999,eps=1e-08,weight_decay=0.01,decay=matrices)' \
  2> /dev/null
"$cxx" -std=c++20 -O1 -fPIC -march=native -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas \
  -DTMC_CUDA_EMULATED -include "$root/test/cuda/emulator/Emulator.h" -I "$root" \
  -isystem "$include" -x c++ -c "$out/step.cu" -o "$out/step.o"
"$cxx" -shared "$out/step.o" -Wl,--whole-archive "$library" -Wl,--no-whole-archive \
  -o "$out/libstep.so"
for order in "" 1; do
  TMC_EMULATOR_REVERSE=$order "$python" "$root/test/golden/check.py" "$out" "$golden" --run adamw
done
