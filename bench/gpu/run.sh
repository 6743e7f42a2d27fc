#!/usr/bin/env bash
# Builds, checks and times emitted CUDA steps on a machine with a GPU; no LLVM, no cmake.
#
#   bench/gpu/run.sh [-s STEPS] [-o WORK] [-a sm_XX] [-j N] [--steps N] [--python PYTHON]
#                    [--without-cudnn] [--compile-only]
#                    [--cases FILE] [--levers FILE] [--goldens DIR] [--tools SCRIPT]
#                    [--parts "units golden levers cases prices sanitizer"] [--without-peer]
#
# STEPS is what emit.sh wrote (default: bench/gpu/steps), WORK where programs and logs go
# (default: bench/gpu/work). With nvcc (or CUDA_HOME), what is missing in WORK or made from
# other sources is built there; without nvcc, what WORK holds already is run: build it where
# nvcc is (--compile-only -a sm_90), and carry it. The cuBLASLt and cuDNN libraries are
# those of the toolkit, of the system, or of PyPI's nvidia-* wheels for PYTHON, as are the
# headers of cuDNN's frontend. Its standard library is enough for the rest; with torch, eager is timed.
#
# In this order: the kernels' unit tests, if WORK holds tmc-card-tests (a target of cmake's);
# losses, gradients and parameters against PyTorch's golden values; small steps with each lever
# against the cpu target's; the cases: equal bits under two budgets, one with --poison, the
# driver's view of the card's memory, times, as a table; a profile of each case, by launch, in
# WORK/measured, with the times of all kernels for prices.py and the fastest algorithms of
# products, for tmc compile --algorithms; compute-sanitizer on the small
# models, where there is one. Ends with a count of checks and with 1 if one failed. What this
# machine can't do is named and counted as skipped.
#
# --compile-only builds everything, for -a or sm_80 and sm_90, and stops. --without-cudnn
# builds for machines that lack it. --tools SCRIPT compiles and links instead of nvcc, and the
# GPU is what it says (test/cuda/emulated-tools.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
from=$here/steps work=$here/work arch= jobs=$(nproc) count=30 python=python3 compile_only=
cudnn=auto cases=$here/cases.txt levers=$here/levers.txt goldens=$here/goldens tools=
parts="units golden levers cases prices sanitizer" peer=1
while [ $# -gt 0 ]; do
  case $1 in
    -s) from=$2; shift 2;;
    -o) work=$2; shift 2;;
    -a) arch=$2; shift 2;;
    -j) jobs=$2; shift 2;;
    --steps) count=$2; shift 2;;
    --python) python=$2; shift 2;;
    --cases) cases=$2; shift 2;;
    --levers) levers=$2; shift 2;;
    --goldens) goldens=$2; shift 2;;
    --tools) tools=$2; shift 2;;
    --parts) parts=$2; shift 2;;
    --without-peer) peer=; shift;;
    --without-cudnn) cudnn=; shift;;
    --compile-only) compile_only=1; shift;;
    *) sed -n '2,28s/^# \{0,1\}//p' "$0" >&2; exit 2;;
  esac
done
fail() { echo "error: $1" >&2; exit 74; }
# shellcheck source=data.sh
. "$here/data.sh"
for part in $parts; do
  case $part in
    units|golden|levers|cases|prices|sanitizer) ;;
    *) echo "error: --parts: there is no '$part'" >&2; exit 2;;
  esac
done
[ -d "$from" ] || fail "no emitted steps in '$from': bench/gpu/emit.sh makes them"
mkdir -p "$work/runtime"
work=$(cd "$work" && pwd)
from=$(cd "$from" && pwd)

# --- what is here -------------------------------------------------------------------------
passed=0 failed=0 skipped=0
skip() { echo "   skipped $1"; skipped=$((skipped + 1)); }

nvcc=
if [ -z "$tools" ]; then
  nvcc=$(command -v nvcc || true)
  [ "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
  [ -x "$nvcc" ] || nvcc=
fi
if [ "$tools" ]; then
  gpu=$("$tools" name)
  arch=${arch:-sm_90}
elif [ "$compile_only" ]; then
  [ "$nvcc" ] || fail "no nvcc: set CUDA_HOME"
else
  command -v nvidia-smi > /dev/null || fail "no nvidia-smi: this machine has no GPU (--compile-only builds without)"
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
  [ "$arch" ] || arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
fi

# Folders with libraries: the toolkit's, then those of wheels.
folders=()
[ -z "$nvcc" ] || folders+=("$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd)/lib64")
while read -r folder; do
  [ -z "$folder" ] || folders+=("$folder")
done < <("$python" - << 'PYTHON' 2> /dev/null || true
import glob, sys
print("\n".join(sorted({file.rpartition("/")[0] for place in sys.path if place
                        for name in ("cublasLt", "cudnn")
                        for file in glob.glob(place + "/nvidia/*/lib/lib%s.so.*" % name)})))
PYTHON
)
library() { # name: the first file of that library, "" where there is none
  local folder file
  for folder in ${folders[@]+"${folders[@]}"}; do
    for file in "$folder/lib$1.so" "$folder/lib$1.so."[0-9]*; do
      [ ! -e "$file" ] || { echo "$file"; return; }
    done
  done
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2> /dev/null | sed -n "s/.*\blib$1\.so[^ ]* .*=> //p" | head -1
}
for folder in ${folders[@]+"${folders[@]}"}; do
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
lt=$(library cublasLt) dnn=
[ -z "$cudnn" ] || dnn=$(library cudnn)
includes=(-I "$root")
if [ "$dnn" ] && [ -f "$(dirname "$dnn")/../include/cudnn.h" ]; then
  includes+=(-isystem "$(cd "$(dirname "$dnn")/../include" && pwd)")
fi
if [ "$dnn" ] && [ "$nvcc" ] &&
   ! "$nvcc" "${includes[@]}" -x cu -E - <<< '#include <cudnn.h>' > /dev/null 2>&1; then
  dnn=
fi
# The headers of its frontend decide whether convolutions and attention call it. They also
# want NVRTC.
frontend= nvrtc=
if [ "$dnn" ] && [ "$nvcc" ]; then
  nvrtc=$(library nvrtc)
  while read -r folder; do
    if [ "$nvrtc" ] && [ -f "$folder/cudnn_frontend.h" ]; then frontend=$folder; break; fi
  done < <("$python" -c 'import sys; print("\n".join(p + "/include" for p in sys.path if p))' 2> /dev/null)
fi
if [ "$frontend" ]; then
  includes+=(-isystem "$frontend")
elif [ "$nvcc" ]; then
  dnn= nvrtc=
fi

# --- building -----------------------------------------------------------------------------
targets=()
for a in ${arch:-sm_80 sm_90}; do
  targets+=(-gencode "arch=compute_${a#sm_},code=[$a,compute_${a#sm_}]")
done
flags=(-std=c++20 -O3 -fmad=false --expt-relaxed-constexpr "${targets[@]}" -Xcompiler -fPIC)
[ -z "$frontend" ] || flags+=(-DTMC_CUDNN_FRONTEND)
if [ -z "$tools" ] && [ "$nvcc" ]; then
  [ "$lt" ] || fail "no cuBLASLt beside '$nvcc' or in the system"
  # A command of its own, so that xargs can run several.
  tools=$work/tools
  {
    echo '#!/bin/sh'
    echo 'kind=$1; shift; case $kind in runtime) exit 1;;'
    printf 'compile) exec'
    printf ' %q' "$nvcc" "${flags[@]}" "${includes[@]}"
    echo ' -c "$1" -o "$2";;'
    # nvcc moves archives in front of the linker's words, so none can be taken whole; one name
    # brings in the object with the whole C interface.
    printf 'library) object=$1 out=$2; shift 2; exec'
    printf ' %q' "$nvcc" "${targets[@]}" -shared
    echo ' "$object" -o "$out" -Xlinker --undefined=tmc_step_create "$@" \'
    printf ' %q' -Xlinker --as-needed "$lt" ${dnn:+"$dnn"} ${nvrtc:+"$nvrtc"} -lpthread
    echo ';;'
    printf 'program) object=$1 out=$2; shift 2; exec'
    printf ' %q' "$nvcc" "${targets[@]}"
    echo ' "$object" -o "$out" "$@" \'
    printf ' %q' -Xlinker --as-needed "$lt" ${dnn:+"$dnn"} ${nvrtc:+"$nvrtc"} -lpthread
    echo ';; esac'
  } > "$tools"
  chmod +x "$tools"
fi
sources() { # library, file: a line each
  while read -r kind source; do
    case $kind in step|cuda|trainer) echo "$kind $source";; esac
  done < <(grep -v '^#' "$root/runtime/sources.txt")
}
# What a build depends on, wherever it lies: sources, then flags. Dates are lost where files
# are carried.
digest() { sha256sum | cut -d ' ' -f 1; }
runtime_sources=$(cd "$root" && find runtime -type f | LC_ALL=C sort | xargs sha256sum | digest)
runtime_stamp="$runtime_sources $(echo "${flags[*]} ${dnn:+cudnn}" | digest)"
current() { [ -f "$1/stamp" ] && [ "$(cat "$1/stamp")" = "$2" ]; }

if [ "$tools" ] && ! current "$work/runtime" "$runtime_stamp"; then
  echo "== runtime (${arch:-sm_80, sm_90}${frontend:+, cuDNN})"
  begin=$SECONDS
  rm -f "$work"/runtime/*.o "$work"/runtime/*.a
  "$tools" runtime "$work/runtime" || sources | while read -r kind source; do
    printf 'compile\n%s\n%s\n' "$root/runtime/$source" "$work/runtime/$kind-$(basename "${source%.*}").o"
  done | xargs -d '\n' -n 3 -P "$jobs" "$tools"
  if compgen -G "$work/runtime/*.o" > /dev/null; then
    ar crs "$work/runtime/libtmc-runtime-cuda.a" "$work"/runtime/{step,cuda}-*.o
    ar crs "$work/runtime/libtmc-trainer.a" "$work"/runtime/trainer-*.o
    rm -f "$work"/runtime/*.o
  fi
  echo "$runtime_stamp" > "$work/runtime/stamp"
  echo "   $((SECONDS - begin)) s"
fi

echo "== steps"
build_step() { # emitted directory, directory for libstep.so and train
  local archive=$work/runtime/libtmc-runtime-cuda.a
  "$tools" compile "$1/step.cu" "$2/step.o" &&
    "$tools" library "$2/step.o" "$2/libstep.so" "$archive" &&
    "$tools" program "$2/step.o" "$2/train" "$work/runtime/libtmc-trainer.a" "$archive" || return 1
  rm -f "$2/step.o"
}
building() { # emitted directory, built directory, stamp
  local begin=$SECONDS
  rm -f "$2/stamp"
  build_step "$1" "$2" || { echo "error: '$1/step.cu' can't be built" >&2; return 1; }
  echo "$3" > "$2/stamp"
  echo "   ${1#"$from"/}: $((SECONDS - begin)) s"
}
built=0 carried=0 builds=()
for directory in "$from"/bench/*/* "$from"/golden/*/* "$from"/levers/*/*; do
  [ -f "$directory/step.cu" ] || continue
  to=$work/${directory#"$from"/}
  mkdir -p "$to"
  made_of=$( (echo "$runtime_sources"; cat "$directory/step.cu") | digest)
  stamp="$made_of ${runtime_stamp#* }"
  if [ "$tools" ] && ! current "$to" "$stamp"; then
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    building "$directory" "$to" "$stamp" &
    builds+=("$to")
    built=$((built + 1))
  elif [ -f "$to/libstep.so" ] || [ -f "$to/train" ]; then
    [ ! -f "$to/train" ] || chmod +x "$to/train" # lost by some ways of carrying
    [ "$(cut -d ' ' -f 1 "$to/stamp" 2> /dev/null)" = "$made_of" ] ||
      echo "   note: ${directory#"$from"/} was built from other sources than these"
    carried=$((carried + 1))
  fi
done
wait
for to in ${builds[@]+"${builds[@]}"}; do
  [ -f "$to/stamp" ] || exit 74
done
[ $((built + carried)) -gt 0 ] ||
  fail "no step below '$from' is built in '$work', and there is no nvcc to build it with"
echo "   $built built, $carried as they were"
if [ "$compile_only" ]; then
  echo "$((built + carried)) steps compile and link for ${arch:-sm_80 and sm_90}; nothing was run"
  exit 0
fi

# --- checks -------------------------------------------------------------------------------
verdict() { # text, command...: a line, and what the command said if it failed
  local text=$1 log; log=$(mktemp)
  shift
  if "$@" > "$log" 2>&1; then
    echo "   ok      $text"
    passed=$((passed + 1))
  else
    echo "   FAILED  $text"
    sed 's/^/           /' "$log"
    failed=$((failed + 1))
  fi
  rm -f "$log"
}
loads() { # programs: whether their libraries are all here; says which isn't
  local missing
  missing=$(ldd "$@" 2> /dev/null | sed -n 's/^\s*\(\S*\) => not found$/\1/p' | sort -u)
  [ -z "$missing" ] || skip "${1#"$work"/}: this machine has no ${missing//$'\n'/, }"
  [ -z "$missing" ]
}
train() { # built directory, log and checkpoint's name, data, rate, further flags
  local directory=$1 name=$2 data=$3 rate=$4
  shift 4
  rm -rf "${directory:?}/$name" "$directory/$name.jsonl"
  # shellcheck disable=SC2086 # data are words
  (cd "$root/examples/data" && ${wrapper[@]+"${wrapper[@]}"} "$directory/train" $data --init=random:0 \
    --lr="$rate" --quiet --log="$directory/$name.jsonl" "$@")
}
wrapper=()
# What the driver says of the card's memory while a step runs, beside what was planned.
watcher=
watch_memory() { # file
  [ ! "$tools" ] || [ "$nvcc" ] || return 0
  nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits > "$1"
  nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 50 >> "$1" &
  watcher=$!
}
watched() { # name, directory, plan
  [ "$watcher" ] || return 0
  kill "$watcher"
  wait "$watcher" 2> /dev/null || true
  watcher=
  local said fits=true
  said=$("$python" "$here/report.py" memory "$2/memory" "$3") || fits=false
  verdict "$1: $said" $fits
}

check_units() {
  local tests=$work/tmc-card-tests suite
  echo "== unit tests of the kernels"
  [ -x "$tests" ] || { skip "the kernels' unit tests: no $tests"; return; }
  loads "$tests" || return 0
  # They don't time anything, so suites run beside each other, each with a file of its lines. A
  # fault of the device ends what its process can do: a process for each. Left out: what only the
  # cpu backend has, and which of two faults is named first.
  rm -rf "$work/lines"
  mkdir "$work/lines"
  for suite in $("$tests" --gtest_list_tests | grep '^[A-Za-z0-9/]*\.'); do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    verdict "${suite%.}" "$tests" --gtest_brief=1 \
      --gtest_filter="$suite*-*HighWater*:*GuardPages*:*AllocationHook*:*CountsItsMemory:*EveryWaitIsNeeded:*ReportsAnIndex*" \
      > "$work/lines/${suite//\//_}" 2>&1 &
  done
  wait
  cat "$work"/lines/*
  passed=$((passed + $(cat "$work"/lines/* | grep -c '^   ok ' || true)))
  failed=$((failed + $(cat "$work"/lines/* | grep -c '^   FAILED ' || true)))
}

# Steps run one after the other: each sees how much of the card's memory is taken while it starts.
check_golden() {
  local directory name kind check
  echo "== against PyTorch's golden values"
  for directory in "$work"/golden/*/*; do
    [ -f "$directory/libstep.so" ] && loads "$directory/libstep.so" || continue
    name=$(basename "$(dirname "$directory")") kind=$(basename "$directory") check=(--run adamw)
    [ "$kind" = adamw ] || check=(--gradients)
    verdict "$name, $kind" "$python" "$root/test/golden/check.py" "$directory" \
      "$root/test/golden/$name.json" "${check[@]}"
  done
}

check_levers() {
  local name data rate more at nvme
  echo "== levers, against the cpu target"
  while IFS='|' read -r name _ _ _ data rate more; do
    read -r name <<< "$name"; read -r rate <<< "$rate"
    at=$work/levers/$name
    [ -x "$at/stays/train" ] || { skip "$name isn't built"; continue; }
    loads "$at/stays/train" || continue
    data=$(data_of "$root" "$data")
    verdict "$name: runs" train "$at/stays" ten "$data" "$rate" --steps=10 --save="$at/stays/ten"
    verdict "$name: losses are the stored ones" "$python" "$here/report.py" losses \
      "$at/stays/ten.jsonl" "$goldens/$name.json"
    [ -x "$at/moves/train" ] || continue
    nvme=()
    [ "${more#*--nvme}" = "$more" ] || nvme=(--nvme="$at/moves")
    verdict "$name: runs where states move" train "$at/moves" ten "$data" "$rate" --steps=10 \
      --poison --save="$at/moves/ten" ${nvme[@]+"${nvme[@]}"}
    verdict "$name: bits are the same where they move" cmp \
      "$at/stays/ten/checkpoint.safetensors" "$at/moves/ten/checkpoint.safetensors"
  done < <(grep -v '^#' "$levers")
}

# shellcheck disable=SC2086 # sizes are words
run_peer() { # case, its sizes, the row's name, further flags
  local name=$1 sizes=$2 row=$3
  shift 3
  if "$python" "$here/peer.py" "$name" $sizes --steps "$count" "$@" > "$work/bench/$name/${row// /-}.jsonl"; then
    rows+=("$name/$row==$work/bench/$name/${row// /-}.jsonl")
  else
    skip "$name: the step of $row fails"
  fi
}
time_peer() { # case, its sizes
  if [ ! "$peer" ]; then
    skip "$1: PyTorch isn't timed, as was asked"
  elif [ ! "$has_torch" ]; then
    skip "$1: PyTorch isn't timed, as '$python' has no torch with a GPU"
  else
    run_peer "$1" "$2" "PyTorch eager"
    case $1 in
      gpt2-124m-b8t1024*) run_peer "$1" "$2" "torch.compile, 50,304 rows" --compile --vocabulary 50304;;
    esac
  fi
}

check_cases() {
  local name sizes data rate kind plan plans steps directory poison rows=() has_torch=
  echo "== losses, bits, time ($gpu)"
  [ ! "$peer" ] ||
    ! "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null ||
    has_torch=1
  while IFS='|' read -r name _ sizes _ data rate kind; do
    read -r name <<< "$name"; read -r rate <<< "$rate"; read -r kind <<< "$kind"
    plans="loose tight" steps=$count
    data=$(data_of "$root" "$data")
    [ "$kind" != budget ] || plans=loose steps=4
    [ "$kind" != once ] || plans=loose
    for plan in $plans; do
      directory=$work/bench/$name/$plan
      [ -x "$directory/train" ] || { skip "$name: $plan isn't built"; continue 2; }
      loads "$directory/train" || continue 2
      poison=()
      [ $plan = loose ] || poison=(--poison)
      [ "$plans" = loose ] || verdict "$name/$plan: runs" train "$directory" ten "$data" "$rate" \
        --steps=10 --save="$directory/ten" ${poison[@]+"${poison[@]}"}
      watch_memory "$directory/memory"
      verdict "$name/$plan: timed" train "$directory" timed "$data" "$rate" --steps="$steps"
      watched "$name/$plan" "$directory" "$from/bench/$name/$plan/plan.json"
      [ ! -f "$goldens/$name.json" ] ||
        verdict "$name/$plan: losses are the stored ones" "$python" "$here/report.py" losses \
          "$directory/ten.jsonl" "$goldens/$name.json"
      [ ! -s "$directory/timed.jsonl" ] ||
        rows+=("$name/$plan=$from/bench/$name/$plan/plan.json=$directory/timed.jsonl")
    done
    if [ "$plans" != loose ]; then
      verdict "$name: a tight budget, buffers overwritten at their death, ends in the same bits" cmp \
        "$work/bench/$name/loose/ten/checkpoint.safetensors" \
        "$work/bench/$name/tight/ten/checkpoint.safetensors"
      rm -rf "$work/bench/$name"/*/ten
    fi
    [ "$kind" = budget ] || time_peer "$name" "$sizes"
  done < <(grep -v '^#' "$cases")
  echo "== $gpu"
  [ ${#rows[@]} -eq 0 ] || "$python" "$here/report.py" table "${rows[@]}" | tee "$work/table.md"
}

check_prices() {
  local name data rate kind at
  echo "== profiles, by events of the device"
  mkdir -p "$work/measured"
  while IFS='|' read -r name _ _ _ data rate kind; do
    read -r name <<< "$name"; read -r rate <<< "$rate"; read -r kind <<< "$kind"
    at=$work/bench/$name/loose
    [ -x "$at/train" ] && loads "$at/train" || continue
    verdict "$name: profiled" train "$at" profiled "$(data_of "$root" "$data")" "$rate" \
      --steps="$([ "$kind" = budget ] && echo 2 || echo 8)" --profile="$work/measured/$name.profile.json"
    gzip -9 -n -f "$work/measured/$name.profile.json" || true
    verdict "$name: products' algorithms measured" "$at/train" \
      --tune-algorithms="$work/measured/$name.algorithms.json"
  done < <(grep -v '^#' "$cases")
  if compgen -G "$work/measured/*.profile.json.gz" > /dev/null; then
    "$python" "$here/report.py" profile "$work"/measured/*.profile.json.gz > "$work/measured/families.md"
    local named=()
    for at in "$work"/measured/*.profile.json.gz; do
      named+=("$(basename "$at" .profile.json.gz)=$at")
    done
    "$python" "$here/prices.py" kernels "${named[@]}" -o "$work/measured/kernels.json"
  fi
}

sanitized() { # built directory, tool, data
  local name; name=$(basename "$(dirname "$1")")
  [ -x "$1/train" ] && loads "$1/train" || return 0
  wrapper=(timeout 120 "$sanitizer" --tool "$2" --error-exitcode 9 --launch-timeout 0)
  verdict "$name: $2, two steps" train "$1" "$2" "$3" 0.001 --steps=2
  wrapper=()
}
check_sanitizer() {
  local sanitizer name tool data
  echo "== compute-sanitizer"
  sanitizer=$(command -v compute-sanitizer || true)
  [ "$sanitizer" ] || [ -z "$nvcc" ] || sanitizer=$(dirname "$(readlink -f "$nvcc")")/compute-sanitizer
  [ -x "$sanitizer" ] || { skip "compute-sanitizer isn't here"; return; }
  for name in mlp-small gpt2-tiny resnet-tiny; do
    for tool in memcheck racecheck synccheck; do
      sanitized "$work/golden/$name/adamw" "$tool" "$(data_of "$root" "GOLDEN=$name")"
    done
  done
  while IFS='|' read -r name _ _ _ data _; do
    read -r name <<< "$name"
    sanitized "$work/levers/$name/stays" memcheck "$(data_of "$root" "$data")"
  done < <(grep -v '^#' "$levers")
}

for part in $parts; do
  "check_$part"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
