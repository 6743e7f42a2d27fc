// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cuda:h200 attention=cudnn})' --remarks-filter=attention -o %t.mlir > %t.log 2>&1
// RUN: FileCheck %s --check-prefixes=CHECK,CUDNN < %t.mlir
// RUN: FileCheck %s --check-prefix=WHY < %t.log
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cuda:h200 attention=own})' | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cuda:h200})' | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cpu:v3 attention=cudnn})' | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cuda:t4 attention=cudnn})' 2> %t.t4 | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: FileCheck %s --check-prefix=T4 < %t.t4
// RUN: not tmc-opt %s -pass-pipeline='builtin.module(tmc-choose-attention{target=cuda:h200 attention=all})' 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: attention is auto, own or cudnn, not 'all'

// An output and its gradient are one kernel each. Without a measured time by cuDNN, auto is own.
// CHECK-LABEL: @causal
// CUDNN: nn.attention %arg0, %arg1, %arg2 {causal, nn.cudnn, scale = 1.250000e-01 : f64}
// CUDNN: nn.attention_grad {{.*}} {causal, nn.cudnn, scale = 1.250000e-01 : f64}
// OWN-NOT: nn.cudnn
func.func @causal(%q: tensor<2x64x4x64xbf16>, %k: tensor<2x64x2x64xbf16>, %v: tensor<2x64x2x64xbf16>, %g: tensor<2x64x4x64xbf16>)
    -> (tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>) {
  %o, %l = nn.attention %q, %k, %v {causal, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %l, %g {causal, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>)
  return %dq, %dk, %dv : tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>
}

// Slices of one buffer, by strides, and their gradients in one.
// CHECK-LABEL: @joined
// CUDNN: nn.attention {{.*}}nn.cudnn
// CUDNN: nn.packed_attention_grad {{.*}}nn.cudnn
// OWN-NOT: nn.cudnn
func.func @joined(%qkv: tensor<2x64x12x64xf16>, %g: tensor<2x64x4x64xf16>) -> tensor<2x64x12x64xf16> {
  %q = nn.slice %qkv [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<2x64x12x64xf16>) -> tensor<2x64x4x64xf16>
  %k = nn.slice %qkv [0, 0, 4, 0] step [1, 1, 1, 1] : (tensor<2x64x12x64xf16>) -> tensor<2x64x4x64xf16>
  %v = nn.slice %qkv [0, 0, 8, 0] step [1, 1, 1, 1] : (tensor<2x64x12x64xf16>) -> tensor<2x64x4x64xf16>
  %o, %l = nn.attention %q, %k, %v {causal, scale = 0.125} : (tensor<2x64x4x64xf16>, tensor<2x64x4x64xf16>, tensor<2x64x4x64xf16>) -> (tensor<2x64x4x64xf16>, tensor<2x4x64xf32>)
  %d = nn.packed_attention_grad %q, %k, %v, %o, %l, %g {causal, scale = 0.125} : (tensor<2x64x4x64xf16>, tensor<2x64x4x64xf16>, tensor<2x64x4x64xf16>, tensor<2x64x4x64xf16>, tensor<2x4x64xf32>, tensor<2x64x4x64xf16>) -> tensor<2x64x12x64xf16>
  return %d : tensor<2x64x12x64xf16>
}

// What stays own, and why.
// CHECK-LABEL: @own
// CHECK-NOT: nn.cudnn
// WHY-DAG: StaysOwn{{.*}}"it takes bf16 and f16 alone
// WHY-DAG: StaysOwn{{.*}}"soft caps and windows aren't given to it
// WHY-DAG: StaysOwn{{.*}}"masks other than a causal one aren't given to it
// WHY-DAG: StaysOwn{{.*}}"groups of keys and prefixes aren't given to it
// WHY-DAG: StaysOwn{{.*}}"it rounds probabilities, which attention=exact forbids
// WHY-DAG: StaysOwn{{.*}}"q, k or v begins at no multiple of 16 bytes
// WHY-DAG: warning: --attention=cudnn: 6 of 10 kernels of attention stay own: it takes bf16 and f16 alone (1); soft caps and windows aren't given to it (1);
// T4: warning: --attention=cudnn: 10 of 10 kernels of attention stay own: it wants sm_80 or newer (7);
func.func @own(%a: tensor<2x64x4x64xf32>, %q: tensor<2x64x4x64xbf16>, %m: tensor<1x1x64x64xi1>, %i: tensor<2x64xi64>, %w: tensor<2x64x4x68xbf16>) {
  %0:2 = nn.attention %a, %a, %a {causal, scale = 0.125} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
  %1:2 = nn.attention %q, %q, %q {causal, scale = 0.125, window = 16 : i64} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  %2:2 = nn.attention %q, %q, %q mask(%m) {scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<1x1x64x64xi1>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  %3:2 = nn.attention %q, %q, %q groups(%i) {scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64xi64>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  %4:2 = nn.attention %q, %q, %q {exact, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  %s = nn.slice %w [0, 0, 0, 4] step [1, 1, 1, 1] : (tensor<2x64x4x68xbf16>) -> tensor<2x64x4x64xbf16>
  %5:2 = nn.attention %s, %q, %q {scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  return
}
