#!/usr/bin/env bash
# The first run on a card, rehearsed: bench/gpu's emit.sh and run.sh from end to end with the
# emulator in place of nvcc and of the card. Then with a fault planted in a stored loss, and
# from what was built before, as on a machine without a compiler:
#
#   first-run.sh TMC ROOT OUT PYTHON        and the environment of emulated-tools.sh
set -euo pipefail
tmc=$1 root=$2 out=$3 python=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out"
mkdir -p "$out/goldens"
cat > "$out/cases.txt" << 'CASES'
mlp-small | test/models/mlp-small.onnx | --dim=batch=16 | adamw(weight_decay=0.01) | --data=image=../../test/golden/mlp-small.image.npy --data=label=../../test/golden/mlp-small.label.npy | 0.001
CASES
cat > "$out/levers.txt" << 'LEVERS'
mlp-moves | test/models/mlp-small.onnx | --dim=batch=16 --micro-batches=3 | adamw | GOLDEN=mlp-small | 0.001 | --offload=all
LEVERS
fail() { echo "error: $1" >&2; exit 1; }
says() { # file, expected text: a line of it
  grep -q -- "$2" "$1" || { cat "$1" >&2; fail "no '$2' in $1"; }
}
run() { # log, tools, more
  local log=$1
  shift
  "$root/bench/gpu/run.sh" -s "$out/steps" -o "$out/work" --steps 8 --python "$python" \
    --cases "$out/cases.txt" --levers "$out/levers.txt" --goldens "$out/goldens" --tools "$here/emulated-tools.sh" "$@" > "$log" 2>&1
}
"$root/bench/gpu/emit.sh" -t "$tmc" --cases "$out/cases.txt" --levers "$out/levers.txt" --goldens "$out/goldens" > "$out/emit.log"
"$root/bench/gpu/emit.sh" -t "$tmc" --cases "$out/cases.txt" --levers "$out/levers.txt" --models mlp-small -o "$out/steps" >> "$out/emit.log"

run "$out/first.log" || { cat "$out/first.log" >&2; fail "the first run"; }
says "$out/first.log" "ok      mlp-small, adamw"
says "$out/first.log" "ok      mlp-small, gradients"
says "$out/first.log" "skipped the kernels' unit tests"
says "$out/first.log" "ok      mlp-moves: bits are the same where they move"
says "$out/first.log" "skipped compute-sanitizer"
says "$out/first.log" "ok      mlp-small: a tight budget, buffers overwritten at their death, ends in the same bits"
says "$out/first.log" "6 built, 0 as they were"
says "$out/first.log" "^| mlp-small/tight | [0-9.]* | [0-9.]* | [0-9]* samples | [0-9.]* | [0-9.]* | [0-9.]* |$"
says "$out/first.log" "ok      mlp-small: products' algorithms measured"
"$python" -c "import json, sys; table = json.load(open(sys.argv[1])); assert table['device'] == 'emulator' and table['products'], table" \
  "$out/work/measured/mlp-small.algorithms.json"
says "$out/first.log" "^15 passed, 0 failed, [23] skipped$"
cmp -s "$out/steps/bench/mlp-small/loose/step.cu" "$out/steps/bench/mlp-small/tight/step.cu" &&
  fail "both budgets give the same step"

# A loss that is off by more than rounding is found, and only that.
sed -i 's/"losses": \[/"losses": [9/' "$out/goldens/mlp-small.json"
! run "$out/second.log" || fail "a wrong loss passed"
says "$out/second.log" "0 built, 6 as they were"
says "$out/second.log" "FAILED  mlp-small/loose: losses are the stored ones"
says "$out/second.log" "^13 passed, 2 failed, [23] skipped$"
tail -n 8 "$out/first.log"
