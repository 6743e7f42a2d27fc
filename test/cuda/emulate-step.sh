#!/usr/bin/env bash
# Emits a CUDA step, runs it in the emulator, and compares it with PyTorch's golden values:
#
#   emulate-step.sh TMC CXX PYTHON ROOT LIBRARY OUT GOLDEN OPTION...
#
# What is emulated is the emitted text itself, the offsets of the plan included: only cuBLASLt,
# cuDNN and the device are stand-ins. Every launch is watched (emulator/Steps.h). Under the
# orders of several seeds, SEEDS in the environment: "0 1 2" unless it says otherwise.
set -euo pipefail
tmc=$1 cxx=$2 python=$3 root=$4 library=$5 out=$6 golden=$7
shift 7
rm -rf "$out"
"$tmc" compile "$@" --target=cuda:sm_90 --emit=source -o "$out" \
  --optimizer='adamw(beta1=0.9,beta2=0.999,eps=1e-08,weight_decay=0.01,decay=matrices)' \
  2> /dev/null
flags=(-std=c++20 -O1 -g1 -fPIC -march=x86-64-v3 -ffp-contract=off -fno-tree-sra
  -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -I "$root" -isystem "$root/test/cuda/emulator/include")
watched=(-DTMC_CUDA_EMULATED -Dtmc_step_program=tmc_step_program_emitted
  -include "$root/test/cuda/emulator/Emulator.h"
  -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fsanitize=alignment,bounds)
"$cxx" "${flags[@]}" "${watched[@]}" -x c++ -c "$out/step.cu" -o "$out/step.o"
"$cxx" "${flags[@]}" -c "$root/test/cuda/WatchedStep.cpp" -o "$out/watched.o"
"$cxx" -shared "$out/step.o" "$out/watched.o" -Wl,--whole-archive "$library" \
  -Wl,--no-whole-archive -o "$out/libstep.so"
for seed in ${SEEDS:-0 1 2}; do
  TMC_EMULATOR_SEED=$seed "$python" "$root/test/golden/check.py" "$out" "$golden" --run adamw
done
