// RUN: tmc-opt %s -tmc-copy-views | FileCheck %s

// A product takes rows by a stride, but no columns.
// CHECK: %[[S:.*]] = nn.slice
// CHECK: %[[C:.*]] = nn.copy %[[S]]
// CHECK: nn.matmul %[[C]]
func.func @forward(%x: tensor<4x6xf32>, %w: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %s = nn.slice %x [0, 2] step [1, 2] : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %y = nn.matmul %s, %w : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
