#!/usr/bin/env bash
# Where bench/gpu/run.sh looks for cuBLASLt and cuDNN, and what it makes of what it finds: the
# folders of PyPI's wheels, wheels without cuDNN, none at all. nvcc, the wheels and the card are
# stand-ins: files of the right names, and programs that write down how they were called.
#
#   libraries.sh TMC ROOT OUT PYTHON
set -euo pipefail
tmc=$1 root=$2 out=$3 python=$4
rm -rf "$out"
mkdir -p "$out"/{toolkit/bin,bin,empty,wheels/nvidia/{cublas,cudnn}/{lib,include},half/nvidia/cublas/lib,front/include}
out=$(cd "$out" && pwd)
fail() { echo "error: $1" >&2; exit 1; }
echo '# no cases' > "$out/cases.txt"
cp "$out/cases.txt" "$out/levers.txt"
"$root/bench/gpu/emit.sh" -t "$tmc" --cases "$out/cases.txt" --levers "$out/levers.txt" --models mlp-small -o "$out/steps" > "$out/log"
touch "$out"/{wheels,half}/nvidia/cublas/lib/libcublasLt.so.13 "$out/wheels/nvidia/cudnn/lib/libcudnn.so.9" \
  "$out/wheels/nvidia/cudnn/include/cudnn.h"

# Called as the compiler, it makes what it was asked for. As the preprocessor it finds headers only where it was told to look.
cat > "$out/toolkit/bin/nvcc" << NVCC
#!/usr/bin/env bash
echo "\$*" >> "$out/calls"
to= headers=
while [ \$# -gt 0 ]; do
  case \$1 in
    -o) to=\$2; shift;;
    -isystem) [ ! -f "\$2/cudnn.h" ] || headers=1; shift;;
    -E) preprocesses=1;;
  esac
  shift
done
[ -z "\${preprocesses:-}" ] || { [ "\$headers" ]; exit; }
touch "\$to"
NVCC
printf '#!/bin/sh\n' > "$out/bin/ldconfig" # this machine's own libraries aren't there
# What runs steps says where their libraries are looked for.
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH" >> "%s/searched"\nexec "%s" "$@"\n' \
  "$out" "$(command -v "$python")" > "$out/bin/python"
cat > "$out/bin/nvidia-smi" << 'SMI'
#!/bin/sh
case $1 in *compute_cap*) echo 9.0;; *) echo "a stand-in, 0";; esac
SMI
chmod +x "$out/toolkit/bin/nvcc" "$out"/bin/*

run() { # folder of wheels, PATH's own, more
  local wheels=$1 path=$2
  shift 2
  rm -f "$out/calls" "$out/searched"
  PATH=$path:$out/bin:/usr/bin:/bin CUDA_HOME=/nowhere PYTHONPATH=$wheels LD_LIBRARY_PATH='' \
    "$root/bench/gpu/run.sh" -s "$out/steps" -o "$out/work" -a sm_90 --steps 1 \
    --cases "$out/cases.txt" --levers "$out/levers.txt" --python "$out/bin/python" "$@" > "$out/log" 2>&1
}
calls() { # text: in some call
  grep -q -- "$1" "$out/calls" || { cat "$out/log" "$out/calls" >&2; fail "no call with '$1'"; }
}
never() {
  ! grep -q -- "$1" "$out/calls" || { cat "$out/log" >&2; fail "a call with '$1'"; }
}
compiler=$out/toolkit/bin

run "$out/wheels" "$compiler" --compile-only || { cat "$out/log" >&2; fail "with wheels"; }
calls "$out/wheels/nvidia/cublas/lib/libcublasLt.so.13"
never TMC_CUDNN_FRONTEND
never libcudnn
# Carried to where there is no compiler, programs find the wheels' libraries.
run "$out/wheels" "$out/empty" || true
grep -q "0 built, 2 as they were" "$out/log" || { cat "$out/log" >&2; fail "nothing was carried"; }
[ ! -f "$out/calls" ] || fail "a compiler was called"
grep -q "$out/wheels/nvidia/cublas/lib:$out/wheels/nvidia/cudnn/lib" "$out/searched" ||
  { cat "$out/log" >&2; fail "steps don't look into the wheels"; }
rm -r "$out/work"
run "$out/half" "$compiler" --compile-only || { cat "$out/log" >&2; fail "with wheels without cuDNN"; }
calls "$out/half/nvidia/cublas/lib/libcublasLt.so.13"
never TMC_CUDNN_FRONTEND
never libcudnn
rm -r "$out/work"
# The frontend's header, in a folder of packages. Without nvrtc, which it calls, it counts for nothing.
touch "$out/front/include/cudnn_frontend.h"
run "$out/wheels:$out/front" "$compiler" --compile-only || { cat "$out/log" >&2; fail "without nvrtc"; }
never TMC_CUDNN_FRONTEND
never libcudnn
rm -r "$out/work"
mkdir -p "$out/toolkit/lib64" && touch "$out/toolkit/lib64/libnvrtc.so"
run "$out/wheels:$out/front" "$compiler" --compile-only || { cat "$out/log" >&2; fail "with the frontend"; }
calls "TMC_CUDNN_FRONTEND .*-isystem $out/front/include .*-c .*CudnnGraph.cpp"
calls "-isystem $out/wheels/nvidia/cudnn/include .*-c .*CudnnGraph.cpp"
calls "$out/wheels/nvidia/cublas/lib/libcublasLt.so.13 $out/wheels/nvidia/cudnn/lib/libcudnn.so.9 $out/toolkit/lib64/libnvrtc.so"
rm -r "$out/work"
run "$out/wheels:$out/front" "$compiler" --compile-only --without-cudnn || { cat "$out/log" >&2; fail "--without-cudnn"; }
calls "$out/wheels/nvidia/cublas/lib/libcublasLt.so.13"
never TMC_CUDNN_FRONTEND
never libcudnn
rm "$out/toolkit/lib64/libnvrtc.so"
! run "$out/empty" "$compiler" --compile-only || fail "without cuBLASLt"
grep -q "error: no cuBLASLt beside" "$out/log" || { cat "$out/log" >&2; fail "no word of cuBLASLt"; }
echo "wheels, carried, wheels without cuDNN, the frontend, --without-cudnn, nothing"
