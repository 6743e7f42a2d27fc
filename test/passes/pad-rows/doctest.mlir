// RUN: tmc-opt %s -pass-pipeline='builtin.module(func.func(tmc-pad-rows))' -split-input-file | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: tmc-opt %s -pass-pipeline='builtin.module(func.func(tmc-pad-rows{narrow=true}))' -split-input-file | FileCheck %s --check-prefixes=CHECK,NARROW

// A product of 16 bits. 1001 classes become 1008: 64 would add one part in 44.
// CHECK-LABEL: @bf16
// CHECK: %[[T:.*]] = nn.pad %arg1 [0, 0] step [1, 1] : (tensor<1001x16xbf16>) -> tensor<1008x16xbf16>
// CHECK: %[[L:.*]] = nn.matmul %arg0, %[[T]] transpose_rhs {{.*}} -> tensor<8x1008xbf16>
// CHECK: nn.cross_entropy %[[L]], %arg2, %arg3 {vocabulary = 1001 : i64} : (tensor<8x1008xbf16>
func.func @bf16(%x: tensor<8x16xbf16>, %t: tensor<1001x16xbf16>, %y: tensor<8xi64>, %w: tensor<f32>) -> tensor<f32> {
  %l = nn.matmul %x, %t transpose_rhs : (tensor<8x16xbf16>, tensor<1001x16xbf16>) -> tensor<8x1001xbf16>
  %loss, %lse = nn.cross_entropy %l, %y, %w : (tensor<8x1001xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}

// -----

// A product of f32 is padded if it will be narrow. The bias is, too; reshapes
// and slices of rows follow; whoever else reads the logits gets the classes.
// CHECK-LABEL: @f32
// WIDE-NOT: nn.pad
// NARROW: %[[T:.*]] = nn.pad %arg1 [0, 0] step [1, 1] : (tensor<16x50257xf32>) -> tensor<16x50304xf32>
// NARROW: %[[B:.*]] = nn.pad %arg2 [0] step [1] : (tensor<50257xf32>) -> tensor<50304xf32>
// NARROW: %[[P:.*]] = nn.matmul %arg0, %[[T]] bias(%[[B]])
// NARROW: %[[A:.*]] = nn.slice %[[P]] [0, 0] step [1, 1] : (tensor<8x50304xf32>) -> tensor<8x50257xf32>
// NARROW: %[[R:.*]] = nn.reshape %[[P]] : (tensor<8x50304xf32>) -> tensor<2x4x50304xf32>
// NARROW: %[[S:.*]] = nn.slice %[[R]] [0, 0, 0] step [1, 1, 1] : (tensor<2x4x50304xf32>) -> tensor<2x3x50304xf32>
// NARROW: %[[F:.*]] = nn.reshape %[[S]] : (tensor<2x3x50304xf32>) -> tensor<6x50304xf32>
// NARROW: %[[L:.*]], %{{.*}} = nn.cross_entropy %[[F]], %arg3, %arg4 {vocabulary = 50257 : i64}
// NARROW: return %[[L]], %[[A]]
func.func @f32(%x: tensor<8x16xf32>, %t: tensor<16x50257xf32>, %b: tensor<50257xf32>, %y: tensor<6xi64>, %w: tensor<f32>) -> (tensor<f32>, tensor<8x50257xf32>) {
  %l = nn.matmul %x, %t bias(%b) : (tensor<8x16xf32>, tensor<16x50257xf32>, tensor<50257xf32>) -> tensor<8x50257xf32>
  %r = nn.reshape %l : (tensor<8x50257xf32>) -> tensor<2x4x50257xf32>
  %s = nn.slice %r [0, 0, 0] step [1, 1, 1] : (tensor<2x4x50257xf32>) -> tensor<2x3x50257xf32>
  %f = nn.reshape %s : (tensor<2x3x50257xf32>) -> tensor<6x50257xf32>
  %loss, %lse = nn.cross_entropy %f, %y, %w : (tensor<6x50257xf32>, tensor<6xi64>, tensor<f32>) -> (tensor<f32>, tensor<6xf32>)
  return %loss, %l : tensor<f32>, tensor<8x50257xf32>
}

// -----

// CHECK-LABEL: @chunks
// CHECK: %[[T:.*]] = nn.pad %arg1 [0, 0] step [1, 1] : (tensor<21x16xbf16>) -> tensor<24x16xbf16>
// CHECK: %[[B:.*]] = nn.pad %arg4 [0] step [1] : (tensor<21xf32>) -> tensor<24xf32>
// CHECK: nn.linear_cross_entropy %arg0, %[[T]], %arg2, %arg3 bias(%[[B]]) {chunk = 2 : i64, vocabulary = 21 : i64}
func.func @chunks(%x: tensor<8x16xbf16>, %t: tensor<21x16xbf16>, %y: tensor<8xi64>, %w: tensor<f32>, %b: tensor<21xf32>) -> tensor<f32> {
  %loss, %lse = nn.linear_cross_entropy %x, %t, %y, %w bias(%b) {chunk = 2 : i64} : (tensor<8x16xbf16>, tensor<21x16xbf16>, tensor<8xi64>, tensor<f32>, tensor<21xf32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}

// -----

// Rows of whole 16 bytes stay, and logits that no product makes.
// CHECK-LABEL: @stays
// CHECK-NOT: nn.pad
func.func @stays(%x: tensor<8x16xbf16>, %t: tensor<1000x16xbf16>, %y: tensor<8xi64>, %w: tensor<f32>, %z: tensor<8x21xbf16>) -> (tensor<f32>, tensor<f32>) {
  %l = nn.matmul %x, %t transpose_rhs : (tensor<8x16xbf16>, tensor<1000x16xbf16>) -> tensor<8x1000xbf16>
  %loss, %lse = nn.cross_entropy %l, %y, %w : (tensor<8x1000xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  %other, %e = nn.cross_entropy %z, %y, %w : (tensor<8x21xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss, %other : tensor<f32>, tensor<f32>
}
