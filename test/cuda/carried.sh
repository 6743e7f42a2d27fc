#!/usr/bin/env bash
# What bench/gpu/run.sh builds with nvcc is whole, and is found again where there is no nvcc. The
# card is a stand-in that has a name only, so each check that runs a step has to say that there is
# no device (on a machine with one it may pass).
#
#   carried.sh TMC ROOT OUT PYTHON
set -euo pipefail
tmc=$1 root=$2 out=$3 python=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out"
mkdir -p "$out/bin"
fail() { echo "error: $1" >&2; exit 1; }
echo '# no cases' > "$out/cases.txt"
cp "$out/cases.txt" "$out/levers.txt"
"$root/bench/gpu/emit.sh" -t "$tmc" --cases "$out/cases.txt" --levers "$out/levers.txt" --models mlp-small -o "$out/steps" > "$out/log"
run() {
  "$root/bench/gpu/run.sh" -s "$out/steps" -o "$out/work" -a sm_90 --cases "$out/cases.txt" --levers "$out/levers.txt" \
    --python "$python" "$@" > "$out/log" 2>&1
}
run --compile-only || { cat "$out/log" >&2; fail "nothing is built"; }
grep -q "2 steps compile and link for sm_90" "$out/log" || { cat "$out/log" >&2; fail "two steps were expected"; }
for library in "$out"/work/golden/*/*/libstep.so; do
  "$python" "$here/library.py" --of "$library" "$root"
done

cat > "$out/bin/nvidia-smi" << 'SMI'
#!/bin/sh
case $1 in *compute_cap*) echo 9.0;; *) echo "a stand-in, 0";; esac
SMI
chmod +x "$out/bin/nvidia-smi"
find "$out/work" -exec touch -d 2000-01-01 {} + # dates don't matter
PATH=$out/bin:/usr/bin:/bin CUDA_HOME=/nowhere run && code=0 || code=$?
grep -q "0 built, 2 as they were" "$out/log" || { cat "$out/log" >&2; fail "what was carried isn't found"; }
! grep -q "note:" "$out/log" || { cat "$out/log" >&2; fail "the same sources are taken for others"; }
if [ $code != 0 ]; then
  [ "$(grep -c "FAILED .*mlp-small" "$out/log")" = "$(grep -c "can't use a cuda device" "$out/log")" ] ||
    { cat "$out/log" >&2; fail "another fault than a missing device"; }
  grep -q "^0 passed, [1-9]" "$out/log" || { cat "$out/log" >&2; fail "no count"; }
fi
tail -n 1 "$out/log"
