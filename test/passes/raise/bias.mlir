// RUN: tmc-opt %s -tmc-raise -split-input-file | FileCheck %s

// CHECK-LABEL: @bias
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %arg0, %arg1 bias(%arg2)
// CHECK-NEXT: return %[[Y]]
func.func @bias(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %r = nn.broadcast %b to [1] : (tensor<6xf32>) -> tensor<8x6xf32>
  %y = arith.addf %p, %r : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// -----

// On the left, and behind a reshape that keeps the rows: 8 = 2 * 4.
// CHECK-LABEL: @bias_left_of_reshape
// CHECK: %[[P:.*]] = nn.matmul %arg0, %arg1 bias(%arg2)
// CHECK: nn.reshape %[[P]] : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
// CHECK-NOT: arith.addf
func.func @bias_left_of_reshape(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<2x4x6xf32> {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %q = nn.reshape %p : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %r = nn.broadcast %b to [2] : (tensor<6xf32>) -> tensor<2x4x6xf32>
  %y = arith.addf %r, %q : tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}

// -----

// Not a bias: another reader wants the product without it.
// CHECK-LABEL: @bias_of_a_shared_product
// CHECK-NOT: bias
// CHECK: arith.addf
func.func @bias_of_a_shared_product(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %r = nn.broadcast %b to [1] : (tensor<6xf32>) -> tensor<8x6xf32>
  %y = arith.addf %p, %r : tensor<8x6xf32>
  return %p, %y : tensor<8x6xf32>, tensor<8x6xf32>
}
