#!/usr/bin/env bash
# Builds, checks and times emitted CUDA steps on a machine with nvcc and a GPU; no LLVM.
#
#   bench/gpu/run.sh [-s STEPS] [-o WORK] [-a sm_XX] [-j N] [--steps N] [--python PYTHON]
#                    [--compile-only]
#
# STEPS is what emit.sh wrote (default: bench/gpu/steps). Needs nvcc (or CUDA_HOME), the
# cuBLASLt and cuDNN libraries, and a python3 whose standard library is enough; with
# torch it also times PyTorch eager. Ends with a table, and with 1 if a check failed.
# --compile-only builds everything, for -a or sm_80 and sm_90, and stops: what a machine
# without a GPU can do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
from=$here/steps work=$here/work arch= jobs=$(nproc) count=30 python=python3 compile_only=
while [ $# -gt 0 ]; do
  case $1 in
    -s) from=$2; shift 2;;
    -o) work=$2; shift 2;;
    -a) arch=$2; shift 2;;
    -j) jobs=$2; shift 2;;
    --steps) count=$2; shift 2;;
    --python) python=$2; shift 2;;
    --compile-only) compile_only=1; shift;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2;;
  esac
done
fail() { echo "error: $1" >&2; exit 74; }

nvcc=$(command -v nvcc || true)
[ "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || fail "no nvcc: set CUDA_HOME"
libraries=$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd)/lib64
[ -d "$from/bench" ] || fail "no emitted steps in '$from': bench/gpu/emit.sh makes them"
if [ -z "$compile_only" ]; then
  command -v nvidia-smi > /dev/null || fail "no nvidia-smi: this machine has no GPU (--compile-only builds without)"
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
  [ "$arch" ] || arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
fi
targets=()
for a in ${arch:-sm_80 sm_90}; do
  targets+=(-gencode "arch=compute_${a#sm_},code=$a")
done
flags=(-std=c++20 -O3 -fmad=false --expt-relaxed-constexpr --extended-lambda
  "${targets[@]}" -Xcompiler -fPIC -I "$root")
mkdir -p "$work/runtime"
work=$(cd "$work" && pwd)
from=$(cd "$from" && pwd)

# A command of its own, so that xargs can run several.
{
  echo '#!/bin/sh'
  printf 'exec'
  printf ' %q' "$nvcc" "${flags[@]}"
  echo ' -c "$1" -o "$2"'
} > "$work/compile"
chmod +x "$work/compile"

echo "== runtime (${arch:-sm_80, sm_90})"
begin=$SECONDS
stale=$(find "$root/runtime" -newer "$work/runtime/built" -print -quit 2> /dev/null || echo all)
if [ "$stale" ] || ! cmp -s "$work/compile" "$work/runtime/compile"; then
  while read -r library source; do
    case $library in step|cuda|trainer) ;; *) continue;; esac
    printf '%s\n%s\n' "$root/runtime/$source" "$work/runtime/$library-$(basename "${source%.*}").o"
  done < <(grep -v '^#' "$root/runtime/sources.txt") |
    xargs -d '\n' -n 2 -P "$jobs" "$work/compile"
  rm -f "$work"/runtime/*.a
  ar crs "$work/runtime/libtmc-runtime-cuda.a" "$work"/runtime/{step,cuda}-*.o
  ar crs "$work/runtime/libtmc-trainer.a" "$work"/runtime/trainer-*.o
  cp "$work/compile" "$work/runtime/compile"
  touch "$work/runtime/built"
fi
echo "   $((SECONDS - begin)) s"

echo "== steps"
link=(-L "$libraries" -Xlinker -rpath -Xlinker "$libraries" -lcublasLt -lcudnn -lpthread)
build_step() { # emitted directory, directory for libstep.so and train
  mkdir -p "$2"
  if [ "$2/train" -nt "$1/step.cu" ] && [ "$2/train" -nt "$work/runtime/built" ]; then
    return
  fi
  "$work/compile" "$1/step.cu" "$2/step.o"
  "$nvcc" "${targets[@]}" -shared "$2/step.o" -o "$2/libstep.so" -Xlinker --whole-archive \
    "$work/runtime/libtmc-runtime-cuda.a" -Xlinker --no-whole-archive "${link[@]}"
  "$nvcc" "${targets[@]}" "$2/step.o" -o "$2/train" "$work/runtime/libtmc-trainer.a" \
    "$work/runtime/libtmc-runtime-cuda.a" "${link[@]}"
}
built=0
for directory in "$from"/bench/*/* "$from"/golden/*/*; do
  [ -f "$directory/step.cu" ] || continue
  begin=$SECONDS
  build_step "$directory" "$work/${directory#"$from"/}"
  built=$((built + 1))
  echo "   ${directory#"$from"/}: $((SECONDS - begin)) s"
done
[ $built -gt 0 ] || fail "no step.cu below '$from'"
if [ "$compile_only" ]; then
  echo "$built steps compile and link for ${arch:-sm_80 and sm_90}; nothing was run"
  exit 0
fi

failed=0
verdict() { # text, command...
  local text=$1
  shift
  if "$@" > "$work/check.log" 2>&1; then
    echo "   ok      $text"
  else
    echo "   FAILED  $text"
    sed 's/^/           /' "$work/check.log"
    failed=$((failed + 1))
  fi
}

echo "== against PyTorch's golden values"
for directory in "$work"/golden/*/*; do
  [ -f "$directory/libstep.so" ] || continue
  name=$(basename "$(dirname "$directory")") kind=$(basename "$directory")
  check=(--run adamw)
  [ "$kind" = adamw ] || check=(--gradients)
  verdict "$name, $kind" "$python" "$root/test/golden/check.py" "$directory" \
    "$root/test/golden/$name.json" "${check[@]}"
done

train() { # built directory, log and checkpoint's name, data, rate, further flags
  local directory=$1 name=$2 data=$3 rate=$4
  shift 4
  rm -rf "$directory/$name" "$directory/$name.jsonl"
  # shellcheck disable=SC2086 # data are words
  (cd "$root/examples/data" && "$directory/train" $data --init=random:0 --lr="$rate" --quiet \
    --log="$directory/$name.jsonl" "$@")
}

echo "== losses, bits, time ($gpu)"
rows=()
while IFS='|' read -r name _ sizes _ data rate; do
  read -r name <<< "$name"; read -r rate <<< "$rate"
  for plan in loose tight; do
    directory=$work/bench/$name/$plan
    [ -x "$directory/train" ] || continue 2
    verdict "$name/$plan: runs" train "$directory" ten "$data" "$rate" --steps=10 \
      --save="$directory/ten"
    verdict "$name/$plan: buffers overwritten at their death" \
      train "$directory" poison "$data" "$rate" --steps=10 --poison --save="$directory/poison"
    verdict "$name/$plan: timed" train "$directory" timed "$data" "$rate" --steps="$count"
    verdict "$name/$plan: losses are the stored ones" "$python" "$here/report.py" losses \
      "$directory/ten.jsonl" "$here/goldens/$name.json"
    verdict "$name/$plan: poison changes no bit" cmp "$directory/ten/checkpoint.safetensors" \
      "$directory/poison/checkpoint.safetensors"
    rows+=("$name/$plan=$from/bench/$name/$plan/plan.json=$directory/timed.jsonl")
  done
  verdict "$name: both budgets end in the same bits" cmp \
    "$work/bench/$name/loose/ten/checkpoint.safetensors" \
    "$work/bench/$name/tight/ten/checkpoint.safetensors"
  if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    # shellcheck disable=SC2086
    "$python" "$here/peer.py" "$name" $sizes --steps "$count" > "$work/bench/$name/peer.jsonl" &&
      rows+=("$name/PyTorch eager==$work/bench/$name/peer.jsonl")
  fi
done < <(grep -v '^#' "$here/cases.txt")

echo "== $gpu"
"$python" "$here/report.py" table "${rows[@]}"
if [ $failed -gt 0 ]; then
  echo "$failed checks failed"
  exit 1
fi
echo "all checks passed"
