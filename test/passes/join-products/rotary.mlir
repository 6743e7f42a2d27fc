// RUN: tmc-opt %s -tmc-join-products -split-input-file | FileCheck %s

// Queries and keys are rotated on their way to attention: four heads of queries
// and two of keys, before two of values. They stand in that order whatever the
// order of the products. Rows of the result are 64 + 32 + 32 columns.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:arg0]]: tensor<16x64xf32>
// CHECK-SAME: %[[W:arg1]]: tensor<128x64xf32> {train.name = "attn.{q,k,v}.weight", train.parts = [#train.part<"attn.q.weight", 64>, #train.part<"attn.k.weight", 32>, #train.part<"attn.v.weight", 32>]
// CHECK-SAME: %[[COS:arg2]]: tensor<1x8x1x16xf32>, %[[SIN:arg3]]: tensor<1x8x1x16xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[W]] transpose_rhs : {{.*}} -> tensor<16x128xf32>
// CHECK-NEXT: %[[H:.*]] = nn.reshape %[[Y]] : (tensor<16x128xf32>) -> tensor<2x8x8x16xf32>
// CHECK-NEXT: %[[R:.*]] = nn.rotary_embedding %[[H]], %[[COS]], %[[SIN]] {heads = 6 : i64} :
// CHECK-NEXT: %[[Q:.*]] = nn.slice %[[R]] [0, 0, 0, 0] step [1, 1, 1, 1] : {{.*}} -> tensor<2x8x4x16xf32>
// CHECK-NEXT: %[[K:.*]] = nn.slice %[[R]] [0, 0, 4, 0] step [1, 1, 1, 1] : {{.*}} -> tensor<2x8x2x16xf32>
// CHECK-NEXT: %[[V:.*]] = nn.slice %[[R]] [0, 0, 6, 0] step [1, 1, 1, 1] : {{.*}} -> tensor<2x8x2x16xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]]
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// The first 8 of 16 columns, pairs of neighbours, and the adjoint.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: "attn.{q,k,v}.weight"
// CHECK: nn.rotary_embedding {{.*}} {heads = 6 : i64, interleaved, transposed} : (tensor<2x8x8x16xf32>, tensor<1x8x1x8xf32>
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x8xf32>, %sin: tensor<1x8x1x8xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin {interleaved, transposed} : (tensor<2x8x4x16xf32>, tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin {interleaved, transposed} : (tensor<2x8x2x16xf32>, tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Other sines for keys than for queries.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %cos : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Other cosines.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %sin, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Other pairs.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin {interleaved} : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// The other way.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin {transposed} : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Values that are rotated, and keys that aren't.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %vr = nn.rotary_embedding %v4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %vr {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Keys that aren't rotated: values are joined with them, and queries are not.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: "attn.{k,v}.weight"
// CHECK: nn.rotary_embedding {{.*}} : (tensor<2x8x4x16xf32>
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %o, %lse = nn.attention %qr, %k4, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Rotated keys that something else reads.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>) {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o, %kr : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>
}

// -----

// Keys of another value.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>, %z: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %z, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// A frozen table of keys.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight", train.frozen},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// The gradient of attention with a bias isn't packed.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %b: tensor<1x4x8x8xf32> {train.role = #train.role<param>, train.name = "bias"},
    %cos: tensor<1x8x1x16xf32>, %sin: tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x4x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 bias(%b) {causal, scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<1x4x8x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Angles of each head.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-3: nn.matmul
func.func @forward(
    %x: tensor<16x64xf32>,
    %wq: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.q.weight"},
    %wk: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.k.weight"},
    %wv: tensor<32x64xf32> {train.role = #train.role<param>, train.name = "attn.v.weight"},
    %cos: tensor<1x8x2x16xf32>, %sin: tensor<1x8x2x16xf32>) -> tensor<2x8x2x16xf32> {
  %q = nn.matmul %x, %wq transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %k = nn.matmul %x, %wk transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %v = nn.matmul %x, %wv transpose_rhs : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %q4 = nn.reshape %q : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %k4 = nn.reshape %k : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = nn.reshape %v : (tensor<16x32xf32>) -> tensor<2x8x2x16xf32>
  %qr = nn.rotary_embedding %q4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> tensor<2x8x2x16xf32>
  %kr = nn.rotary_embedding %k4, %cos, %sin : (tensor<2x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> tensor<2x8x2x16xf32>
  %o, %lse = nn.attention %qr, %kr, %v4 {causal, scale = 0.25 : f64} : (tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x2x16xf32>, tensor<2x2x8xf32>)
  return %o : tensor<2x8x2x16xf32>
}
