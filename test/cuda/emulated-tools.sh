#!/usr/bin/env bash
# Stands in for nvcc in bench/gpu/run.sh: a step is compiled by g++ and runs in the emulator.
# From the environment: CXX, FLAGS (words of the emulated backend's), WATCHED (those by which
# each access is seen), EMULATED (libTmcCudaEmulated.a) and TRAINER (libtmc-trainer.a).
set -euo pipefail
kind=$1
shift
case $kind in
  name) echo "emulated, no GPU";;
  runtime) # into a folder: the two archives, as they were built already
    ln -sf "$EMULATED" "$1/libtmc-runtime-cuda.a"
    ln -sf "$TRAINER" "$1/libtmc-trainer.a";;
  # shellcheck disable=SC2086 # flags are words
  compile) "$CXX" -std=c++20 -fPIC $FLAGS $WATCHED -x c++ -c "$1" -o "$2";;
  library)
    object=$1 out=$2
    shift 2
    # shellcheck disable=SC2086
    "$CXX" $FLAGS -shared "$object" -Wl,--undefined=tmc_step_create "$@" -ldl -pthread -o "$out";;
  program)
    object=$1 out=$2
    shift 2
    # shellcheck disable=SC2086
    "$CXX" $FLAGS "$object" "$@" -ldl -pthread -o "$out";;
  *) exit 2;;
esac
