#!/usr/bin/env bash
# Builds, checks and times emitted CUDA steps on a machine with a GPU; no LLVM, no cmake.
#
#   bench/gpu/run.sh [-s STEPS] [-o WORK] [-a sm_XX] [-j N] [--steps N] [--python PYTHON]
#                    [--without-cudnn] [--compile-only]
#                    [--cases FILE] [--goldens DIR] [--tools SCRIPT]
#
# STEPS is what emit.sh wrote (default: bench/gpu/steps), WORK where programs and logs go
# (default: bench/gpu/work). With nvcc (or CUDA_HOME), what is missing in WORK or made from
# other sources is built there; without nvcc, what WORK holds already is run: build it where
# nvcc is (--compile-only -a sm_90), and carry it. The cuBLASLt and cuDNN libraries are
# those of the toolkit, of the system, or of PyPI's nvidia-* wheels for PYTHON, whose standard
# library is enough for the rest; with torch, PyTorch eager is timed too.
#
# In this order: losses, gradients and parameters against PyTorch's golden values;
# compute-sanitizer on small models, where there is one; equal bits under two budgets and with
# --poison; times, as a table. Ends with a count of checks and with 1 if one failed. What this
# machine can't do is named and counted as skipped.
#
# --compile-only builds everything, for -a or sm_80 and sm_90, and stops. --without-cudnn
# builds for machines that lack it. --tools SCRIPT compiles and links instead of nvcc, and the
# GPU is what it says (test/cuda/emulated-tools.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
from=$here/steps work=$here/work arch= jobs=$(nproc) count=30 python=python3 compile_only=
cudnn=auto cases=$here/cases.txt goldens=$here/goldens tools=
while [ $# -gt 0 ]; do
  case $1 in
    -s) from=$2; shift 2;;
    -o) work=$2; shift 2;;
    -a) arch=$2; shift 2;;
    -j) jobs=$2; shift 2;;
    --steps) count=$2; shift 2;;
    --python) python=$2; shift 2;;
    --cases) cases=$2; shift 2;;
    --goldens) goldens=$2; shift 2;;
    --tools) tools=$2; shift 2;;
    --without-cudnn) cudnn=; shift;;
    --compile-only) compile_only=1; shift;;
    *) sed -n '2,24s/^# \{0,1\}//p' "$0" >&2; exit 2;;
  esac
done
fail() { echo "error: $1" >&2; exit 74; }
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
# Its header decides whether convolutions call it.
includes=(-I "$root")
if [ "$dnn" ] && [ -f "$(dirname "$dnn")/../include/cudnn.h" ]; then
  includes+=(-isystem "$(cd "$(dirname "$dnn")/../include" && pwd)")
fi
if [ "$dnn" ] && [ "$nvcc" ] &&
   ! "$nvcc" "${includes[@]}" -x cu -E - <<< '#include <cudnn.h>' > /dev/null 2>&1; then
  dnn=
fi

# --- building -----------------------------------------------------------------------------
targets=()
for a in ${arch:-sm_80 sm_90}; do
  targets+=(-gencode "arch=compute_${a#sm_},code=[$a,compute_${a#sm_}]")
done
flags=(-std=c++20 -O3 -fmad=false --expt-relaxed-constexpr "${targets[@]}" -Xcompiler -fPIC)
[ "$dnn" ] || flags+=(-DTMC_WITHOUT_CUDNN)
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
    printf ' %q' -Xlinker --as-needed "$lt" ${dnn:+"$dnn"} -lpthread
    echo ';;'
    printf 'program) object=$1 out=$2; shift 2; exec'
    printf ' %q' "$nvcc" "${targets[@]}"
    echo ' "$object" -o "$out" "$@" \'
    printf ' %q' -Xlinker --as-needed "$lt" ${dnn:+"$dnn"} -lpthread
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
  echo "== runtime (${arch:-sm_80, sm_90}${dnn:+, cuDNN})"
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
built=0 carried=0
for directory in "$from"/bench/*/* "$from"/golden/*/*; do
  [ -f "$directory/step.cu" ] || continue
  to=$work/${directory#"$from"/}
  mkdir -p "$to"
  made_of=$( (echo "$runtime_sources"; cat "$directory/step.cu") | digest)
  stamp="$made_of ${runtime_stamp#* }"
  begin=$SECONDS
  if [ "$tools" ] && ! current "$to" "$stamp"; then
    build_step "$directory" "$to" || fail "'$directory/step.cu' can't be built"
    echo "$stamp" > "$to/stamp"
    echo "   ${directory#"$from"/}: $((SECONDS - begin)) s"
    built=$((built + 1))
  elif [ -f "$to/libstep.so" ] && [ -f "$to/train" ]; then
    chmod +x "$to/train" # lost by some ways of carrying
    [ "$(cut -d ' ' -f 1 "$to/stamp" 2> /dev/null)" = "$made_of" ] ||
      echo "   note: ${directory#"$from"/} was built from other sources than these"
    carried=$((carried + 1))
  fi
done
[ $((built + carried)) -gt 0 ] ||
  fail "no step below '$from' is built in '$work', and there is no nvcc to build it with"
echo "   $built built, $carried as they were"
if [ "$compile_only" ]; then
  echo "$((built + carried)) steps compile and link for ${arch:-sm_80 and sm_90}; nothing was run"
  exit 0
fi

# --- checks -------------------------------------------------------------------------------
verdict() { # text, command...
  local text=$1
  shift
  if "$@" > "$work/check.log" 2>&1; then
    echo "   ok      $text"
    passed=$((passed + 1))
  else
    echo "   FAILED  $text"
    sed 's/^/           /' "$work/check.log"
    failed=$((failed + 1))
  fi
}
loads() { # built directory: whether its libraries are all here; says which isn't
  local missing
  missing=$(ldd "$1/train" "$1/libstep.so" 2> /dev/null | sed -n 's/^\s*\(\S*\) => not found$/\1/p' | sort -u)
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

echo "== against PyTorch's golden values"
for directory in "$work"/golden/*/*; do
  [ -f "$directory/libstep.so" ] || continue
  loads "$directory" || continue
  name=$(basename "$(dirname "$directory")") kind=$(basename "$directory")
  check=(--run adamw)
  [ "$kind" = adamw ] || check=(--gradients)
  verdict "$name, $kind" "$python" "$root/test/golden/check.py" "$directory" \
    "$root/test/golden/$name.json" "${check[@]}"
done

echo "== compute-sanitizer"
sanitizer=$(command -v compute-sanitizer || true)
[ "$sanitizer" ] || [ -z "$nvcc" ] || sanitizer=$(dirname "$(readlink -f "$nvcc")")/compute-sanitizer
if [ ! -x "$sanitizer" ]; then
  skip "compute-sanitizer isn't here"
else
  for directory in "$work"/golden/*/adamw; do
    [ -x "$directory/train" ] || continue
    loads "$directory" || continue
    name=$(basename "$(dirname "$directory")") data=
    for file in "$root/test/golden/$name".*.npy; do
      input=$(basename "$file" .npy)
      data="$data --data=${input#"$name".}=$file"
    done
    for tool in memcheck racecheck synccheck; do
      wrapper=("$sanitizer" --tool "$tool" --error-exitcode 9 --launch-timeout 0)
      verdict "$name: $tool, two steps" train "$directory" "$tool" "$data" 0.001 --steps=2
    done
    wrapper=()
  done
fi

echo "== losses, bits, time ($gpu)"
rows=()
while IFS='|' read -r name _ sizes _ data rate; do
  read -r name <<< "$name"; read -r rate <<< "$rate"
  for plan in loose tight; do
    directory=$work/bench/$name/$plan
    [ -x "$directory/train" ] || { skip "$name: $plan isn't built"; continue 2; }
    loads "$directory" || continue 2
    verdict "$name/$plan: runs" train "$directory" ten "$data" "$rate" --steps=10 \
      --save="$directory/ten"
    verdict "$name/$plan: buffers overwritten at their death" \
      train "$directory" poison "$data" "$rate" --steps=10 --poison --save="$directory/poison"
    verdict "$name/$plan: timed" train "$directory" timed "$data" "$rate" --steps="$count"
    verdict "$name/$plan: losses are the stored ones" "$python" "$here/report.py" losses \
      "$directory/ten.jsonl" "$goldens/$name.json"
    verdict "$name/$plan: poison changes no bit" cmp "$directory/ten/checkpoint.safetensors" \
      "$directory/poison/checkpoint.safetensors"
    [ ! -s "$directory/timed.jsonl" ] ||
      rows+=("$name/$plan=$from/bench/$name/$plan/plan.json=$directory/timed.jsonl")
  done
  verdict "$name: both budgets end in the same bits" cmp \
    "$work/bench/$name/loose/ten/checkpoint.safetensors" \
    "$work/bench/$name/tight/ten/checkpoint.safetensors"
  if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    # shellcheck disable=SC2086
    if "$python" "$here/peer.py" "$name" $sizes --steps "$count" > "$work/bench/$name/peer.jsonl"; then
      rows+=("$name/PyTorch eager==$work/bench/$name/peer.jsonl")
    else
      skip "$name: PyTorch's step fails"
    fi
  else
    skip "$name: PyTorch isn't timed, as '$python' has no torch with a GPU"
  fi
done < <(grep -v '^#' "$cases")

echo "== $gpu"
[ ${#rows[@]} -eq 0 ] || "$python" "$here/report.py" table "${rows[@]}" | tee "$work/table.md"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
