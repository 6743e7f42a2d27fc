#!/usr/bin/env bash
# Emits the step directories that run.sh builds, for a machine without LLVM:
#
#   bench/gpu/emit.sh [-t TMC] [-a sm_90] [-o OUT]     (default OUT: bench/gpu/steps)
#                     [--cases FILE] [--levers FILE] [--models "NAME ..."] [--only CASE]
#                     [--python PYTHON] [--graphs DIR]
#   bench/gpu/emit.sh --goldens [DIR]                  losses on cpu -> DIR (goldens/)
#
# OUT/bench/CASE/{loose,tight}: each case of cases.txt under the target's whole
# memory, and under a budget a quarter of the way up from the smallest workable one.
# OUT/golden/NAME/{adamw,gradients}: models of test/golden, whose weights are small.
# -a is an architecture or a card (h200): plan for the one that will run. Graphs that examples/ doesn't hold
# are read from DIR (OUT/graphs), or written there by PYTHON, which has torch and transformers; without
# either their cases are left out, and named.
# OUT/levers/NAME/{stays,moves}: those of levers.txt, and where they name what may leave the
# device, once more with a budget a twentieth of the way up.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmc=$root/build/bin/tmc arch=sm_90 out=$here/steps goldens= only= python=python3 graphs= cases=$here/cases.txt levers=$here/levers.txt models=
while [ $# -gt 0 ]; do
  case $1 in
    -t) tmc=$2; shift 2;;
    -a) arch=$2; shift 2;;
    -o) out=$2; shift 2;;
    --only) only=$2; shift 2;;
    --cases) cases=$2; shift 2;;
    --levers) levers=$2; shift 2;;
    --models) models=$2; shift 2;;
    --python) python=$2; shift 2;;
    --graphs) graphs=$2; shift 2;;
    --goldens) goldens=$here/goldens; shift
      case ${1:--} in -*) ;; *) goldens=$1; shift;; esac;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2;;
  esac
done
steps=10 # of the stored losses
# shellcheck source=data.sh
. "$here/data.sh"

# field FILE NAME: a number of a plan.json
field() { sed -n "s/^ *\"$2\": \([0-9]*\),\{0,1\}$/\1/p" "$1" | head -1; }

graph_of() { # the path of a case's graph
  case $1 in */*) echo "$root/$1";; *) echo "${graphs:-$out/graphs}/$1";; esac
}
is_here() { # graph, case: whether it exists; exports it if it can
  local path; path=$(graph_of "$1")
  [ ! -f "$path" ] || return 0
  mkdir -p "$(dirname "$path")"
  "$python" "$here/export.py" "$1" "$path" > "$path.log" 2>&1 && return 0
  echo "left out: $2, as '$python' can't export $1 (--python)"
  return 1
}

compile() { # directory, target, emit kind, graph, further options
  local directory=$1 target=$2 kind=$3 graph=$4
  shift 4
  echo "$directory ($target)"
  mkdir -p "$(dirname "$directory")"
  "$tmc" compile "$(graph_of "$graph")" --target="$target" --emit="$kind" -o "$directory" \
    "$@" > "$directory.log" 2>&1 || { cat "$directory.log" >&2; exit 1; }
  rm -f "$directory.log"
}

each_case() { # calls $1 for each line of $2
  local name graph sizes optimizer data rate more
  while IFS='|' read -r name graph sizes optimizer data rate more; do
    read -r name <<< "$name"; read -r graph <<< "$graph"; read -r optimizer <<< "$optimizer"
    read -r rate <<< "$rate"; read -r more <<< "$more"
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    "$1" "$name" "$graph" "$sizes" "$optimizer" "$data" "$rate" "$more"
  done < <(grep -v '^#' "$2")
}

emit_case() {
  local name=$1 graph=$2 sizes=$3 optimizer=$4
  local to=$out/bench/$name
  is_here "$graph" "$name" || return 0
  # shellcheck disable=SC2086 # sizes are words
  compile "$to/loose" "cuda:$arch" source "$graph" $sizes --optimizer="$optimizer"
  [ "$7" != budget ] && [ "$7" != once ] || return 0
  local least most
  least=$(field "$to/loose/plan.json" smallest_found_bytes)
  most=$(field "$to/loose/plan.json" arena_bytes)
  # shellcheck disable=SC2086
  compile "$to/tight" "cuda:$arch" source "$graph" $sizes --optimizer="$optimizer" \
    --budget=$((least + (most - least) / 4))
}

emit_levers() {
  local name=$1 graph=$2 sizes=$3 optimizer=$4 moves=$7
  local to=$out/levers/$name
  # shellcheck disable=SC2086
  compile "$to/stays" "cuda:$arch" source "$graph" $sizes --optimizer="$optimizer"
  [ "$moves" ] && [ "$moves" != losses ] || return 0
  local least most
  # shellcheck disable=SC2086
  least=$(field <("$tmc" plan "$(graph_of "$graph")" --target="cuda:$arch" $sizes --optimizer="$optimizer" \
    $moves --budget=1 --json 2> /dev/null) smallest_found_bytes)
  most=$(field "$to/stays/plan.json" arena_bytes)
  # shellcheck disable=SC2086
  compile "$to/moves" "cuda:$arch" source "$graph" $sizes --optimizer="$optimizer" \
    $moves --budget=$((least + (most - least) / 20))
}

golden_case() {
  case $7 in alone|budget|once) return 0;; esac
  local name=$1 graph=$2 sizes=$3 optimizer=$4 data rate=$6 precision=f32
  data=$(data_of "$root" "$5")
  [ "${sizes#*--precision=}" = "$sizes" ] || read -r precision _ <<< "${sizes#*--precision=}"
  local work; work=$(mktemp -d)
  # shellcheck disable=SC2086
  compile "$work/step" cpu exe "$graph" $sizes --optimizer="$optimizer"
  # shellcheck disable=SC2086
  (cd "$root/examples/data" && "$work/step/train" $data --init=random:0 --seed=0 \
    --steps=$steps --lr="$rate" --quiet --log="$work/log.jsonl")
  {
    echo '{'
    echo "  \"from\": \"tmc, target cpu, --init random:0\","
    echo "  \"precision\": \"$precision\","
    echo "  \"losses\": [$(sed 's/.*"loss":\([^,]*\),.*/\1/' "$work/log.jsonl" | paste -sd, | sed 's/,/, /g')]$([ "$7" = losses ] || echo ,)"
    [ "$7" = losses ] || echo "  \"grad_norms\": [$(sed 's/.*"grad_norm":\([^,]*\),.*/\1/' "$work/log.jsonl" | paste -sd, | sed 's/,/, /g')]"
    echo '}'
  } > "$goldens/$name.json"
  rm -rf "$work"
}

if [ "$goldens" ]; then
  each_case golden_case "$cases"
  each_case golden_case "$levers"
  exit
fi

each_case emit_case "$cases"
each_case emit_levers "$levers"
[ -z "$only" ] || exit 0
adamw='adamw(beta1=0.9,beta2=0.999,eps=1e-08,weight_decay=0.01,decay=matrices)'
while read -r name graph sizes; do
  case " ${models:-$name} " in *" $name "*) ;; *) continue;; esac
  # shellcheck disable=SC2086
  for kind in adamw gradients; do
    optimizer=$adamw
    [ $kind = adamw ] || optimizer='sgd(momentum=0,weight_decay=0)'
    compile "$out/golden/$name/$kind" "cuda:$arch" source "$graph" $sizes --optimizer="$optimizer"
  done
done << 'LIST'
mlp-small test/models/mlp-small.onnx --dim=batch=16
gpt2-tiny test/models/gpt2-tiny.onnx --dim=batch=4 --dim=sequence=32
resnet-tiny examples/resnet-tiny.onnx --dim=batch=8
llama-tiny test/models/llama-tiny.onnx --dim=batch=4 --dim=sequence=32
bert-tiny-mlm test/models/bert-tiny-mlm-nodropout.onnx --dim=batch=4 --dim=sequence=32
biased-tiny test/models/biased-tiny.onnx --dim=batch=4
unet-tiny test/models/unet-tiny.onnx --dim=batch=2
LIST
