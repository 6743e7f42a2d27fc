// RUN: tmc-opt %s -tmc-join-products | FileCheck %s --check-prefixes=CHECK
// RUN: tmc-opt %s -tmc-join-products='optimizer=adamw8bit' | FileCheck %s --check-prefixes=CHECK
// RUN: tmc-opt %s -tmc-join-products='optimizer=adafactor' | FileCheck %s --check-prefix=APART
// RUN: tmc-opt %s -tmc-join-products='precision="bf16,attn.q=f32"' | FileCheck %s --check-prefix=PRECISE

// Three products of %x, read by attention. 64 x 64 elements are coded by
// adamw8bit, in blocks of 256 = 4 rows; a bias of 64 isn't coded, in any shape.
// Adafactor adds up rows and columns of a whole parameter. An exception of
// --precision makes q's product another kind.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:arg0]]: tensor<16x64xf32>
// CHECK-SAME: %[[W:arg1]]: tensor<192x64xf32> {train.name = "attn.{q,k,v}.weight", train.parts = [#train.part<"attn.q.weight", 64>, #train.part<"attn.k.weight", 64, "ones">, #train.part<"attn.v.weight", 64>], train.role = #train.role<param>}
// CHECK-SAME: %[[B:arg2]]: tensor<192xf32> {train.name = "attn.{q,k,v}.bias", train.parts = [#train.part<"attn.q.bias", 64, "zeros">, #train.part<"attn.k.bias", 64, "zeros">, #train.part<"attn.v.bias", 64, "zeros">], train.role = #train.role<param>}
// The running sum is the last argument: its number changes with the others'.
// CHECK-SAME: train.updates = 3
// CHECK: %[[Y:.*]] = nn.matmul %[[X]], %[[W]] transpose_rhs bias(%[[B]]) : {{.*}} -> tensor<16x192xf32>
// CHECK: %[[Q:.*]] = nn.slice %[[Y]] [0, 0] step [1, 1]
// CHECK: %[[K:.*]] = nn.slice %[[Y]] [0, 64] step [1, 1]
// CHECK: %[[V:.*]] = nn.slice %[[Y]] [0, 128] step [1, 1]
// CHECK: nn.reshape %[[Q]]
// APART-LABEL: func.func @forward
// APART-NOT: train.parts
// APART-COUNT-3: nn.matmul
// PRECISE-LABEL: func.func @forward
// PRECISE-SAME: "attn.{k,v}.weight"
// PRECISE-COUNT-2: nn.matmul
// PRECISE-NOT: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %bq: tensor<64xf32> {train.role = #train.role<param>, train.name = "attn.q.bias", train.init = "zeros"},
    %wk: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight", train.init = "ones"},
    %bk: tensor<64xf32> {train.role = #train.role<param>, train.name = "attn.k.bias", train.init = "zeros"},
    %wv: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %bv: tensor<64xf32> {train.role = #train.role<param>, train.name = "attn.v.bias", train.init = "zeros"},
    %s: tensor<f32> {train.role = #train.role<state>, train.name = "sum"})
    -> (tensor<2x8x4x16xf32>, tensor<f32> {train.updates = 7 : i64}) {
  %q = nn.matmul %x, %wq transpose_rhs bias(%bq) : (tensor<16x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs bias(%bk) : (tensor<16x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %v = nn.matmul %x, %wv transpose_rhs bias(%bv) : (tensor<16x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %v4 = nn.reshape %v : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %o, %lse = nn.attention %q4, %k4, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o, %s : tensor<2x8x4x16xf32>, tensor<f32>
}

