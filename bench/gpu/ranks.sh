#!/usr/bin/env bash
# Checks and times steps of several cards on a machine that has them, or on one card that ranks
# share.
#
#   bench/gpu/ranks.sh [-t TMC] [-o WORK] [-n RANKS] [-a cuda:CARD] [--networks "nccl gloo"]
#                      [--batch N] [--steps N] [--compile-only]
#
# TMC (default: build/bin/tmc) compiles GPT-2 124M, N samples of 1,024 tokens for each rank, for
# 1 and for RANKS cards (default: those of this machine, and 2 where there is one) into WORK
# (default: bench/gpu/work/ranks), with zero=0, 2 and 3. A step that is there already isn't
# compiled again: --compile-only does that where nvcc is, and WORK can be carried. NETWORKS
# default to nccl and gloo, and to gloo alone where ranks share a card.
#
# In this order: the bandwidth of gathers and exchanges by size, of each network; ten steps of
# each form by each network, whose checkpoints have the same bits; the median time of a step, and
# the tokens of all ranks a second, beside one card. Ends with a count of
# checks, and with 1 if one failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmc=$root/build/bin/tmc work=$here/work/ranks ranks='' card=cuda:h100 networks='' batch=8 count=30
compile_only=''
while [ $# -gt 0 ]; do
  case $1 in
    -t) tmc=$2; shift 2;;
    -o) work=$2; shift 2;;
    -n) ranks=$2; shift 2;;
    -a) card=$2; shift 2;;
    --networks) networks=$2; shift 2;;
    --batch) batch=$2; shift 2;;
    --steps) count=$2; shift 2;;
    --compile-only) compile_only=1; shift;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2;;
  esac
done
fail() { echo "error: $1" >&2; exit 74; }
cards=$(nvidia-smi -L 2>/dev/null | wc -l || true)
[ -n "$ranks" ] || ranks=$((cards > 1 ? cards : 2))
shares=''; [ "$cards" -lt "$ranks" ] && shares=1
[ -n "$networks" ] || networks=$([ -n "$shares" ] && echo gloo || echo "nccl gloo")
mkdir -p "$work"
passed=0 failed=0
verdict() { # name, good: 0
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1"
  else failed=$((failed + 1)); echo "FAILED  $1"; fi
}

# GPT-2 124M for so many ranks, in a form of what each keeps.
compile() { # folder, ranks, more flags
  local to=$work/$1 number=$2
  shift 2
  [ -x "$to/train" ] && return
  "$tmc" compile "$root/examples/gpt2-124m-nodropout.onnx" --target "$card" --precision bf16 \
    --batch $((batch * number)) --dim sequence=1024 -o "$to" "$@" > "$to.log" 2>&1 ||
    { cat "$to.log" >&2; fail "tmc compile of $to"; }
}
modes="zero=0 zero=2 zero=3"
# Ranks that share a card have their part of its memory.
budget=''; [ -n "$shares" ] && budget="--budget=8GiB"
# shellcheck disable=SC2086 # no word, where there is no budget
compile one 1 $budget
for mode in $modes; do
  # shellcheck disable=SC2086
  compile "$ranks-${mode/=/-}" "$ranks" --devices "$ranks" --parallel "dp=$ranks,$mode" $budget
done
if [ ! -x "$work/bandwidth" ]; then
  nvcc -std=c++20 -O2 -I "$root" "$here/Bandwidth.cpp" "$(dirname "$tmc")/../lib/libtmc-network.a" \
    -ldl -lpthread -o "$work/bandwidth" || fail "nvcc of Bandwidth.cpp"
fi
[ -z "$compile_only" ] || { echo "compiled into $work"; exit 0; }

# A program as all ranks of a world; rank 0's output.
port=29500
world() { # command
  local rank pids=()
  port=$((port + 1))
  for ((rank = ranks - 1; rank > 0; --rank)); do
    TMC_RANKS=$ranks TMC_RANK=$rank TMC_LOCAL_RANK=$rank TMC_ADDRESS=127.0.0.1:$port "$@" > /dev/null 2>&1 &
    pids+=($!)
  done
  local code=0
  TMC_RANKS=$ranks TMC_RANK=0 TMC_LOCAL_RANK=0 TMC_ADDRESS=127.0.0.1:$port "$@" || code=$?
  wait "${pids[@]}" || code=$?
  return "$code"
}
train=(--data "$root/examples/data/text.u16.bin" --init random:1 --seed 7 --quiet)
median() { # log: of all but the first five steps
  grep '"kind": *"step"' "$1" | tail -n +6 | sed 's/.*"seconds": *\([0-9.e+-]*\).*/\1/' | sort -g |
    awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

for network in $networks; do
  world "$work/bandwidth" "$network" "$work/$ranks-zero-2" || verdict "bandwidth by $network" 1
done
first=''
table="| cards | form | network | step s | tokens/s |
|---|---|---|---|---|"
for mode in $modes; do
  for network in $networks; do
    step=$work/$ranks-${mode/=/-} name="$mode by $network"
    out=$step/$network
    rm -rf "$out"; mkdir -p "$out"
    code=0
    world "$step/train" "${train[@]}" --network "$network" --steps 10 --save "$out" > "$out/text" 2>&1 || code=$?
    verdict "$name: ten steps" "$code"
    [ "$code" = 0 ] || { tail -n 3 "$out/text"; continue; }
    [ -n "$first" ] || first=$out
    cmp -s "$first/checkpoint.safetensors" "$out/checkpoint.safetensors" && same=0 || same=1
    verdict "$name: the bits of the first run" "$same"
    world "$step/train" "${train[@]}" --network "$network" --steps "$count" --log "$out/log.jsonl" > "$out/text" 2>&1 || continue
    seconds=$(median "$out/log.jsonl")
    table+="
| $ranks | $mode | $network | $seconds | $(awk "BEGIN { printf \"%.0f\", $batch * $ranks * 1024 / $seconds }") |"
  done
done
mkdir -p "$work/one/alone"
if "$work/one/train" "${train[@]}" --steps "$count" --log "$work/one/alone/log.jsonl" > /dev/null 2>&1; then
  seconds=$(median "$work/one/alone/log.jsonl")
  table+="
| 1 | | | $seconds | $(awk "BEGIN { printf \"%.0f\", $batch * 1024 / $seconds }") |"
fi
echo "$table"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
