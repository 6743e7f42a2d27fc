// RUN: tmc-opt %s -tmc-copy-views -split-input-file | FileCheck %s

// Kernels that read an operand by strides take rows of a packed buffer, but no
// columns apart from each other.

// CHECK-LABEL: func @forward(
//   CHECK-DAG:   %[[Q:.*]] = nn.slice %arg0 [0, 0, 0, 0]
//   CHECK-DAG:   %[[K:.*]] = nn.slice %arg0 [0, 0, 2, 0]
//   CHECK-NOT:   nn.copy
//       CHECK:   %[[R:.*]] = nn.rotary_embedding %[[Q]], %arg1, %arg1
//       CHECK:   nn.attention %[[R]], %[[K]], %[[K]]
func.func @forward(%qk: tensor<1x4x4x8xf32>, %t: tensor<1x4x1x8xf32>) -> tensor<1x4x2x8xf32> {
  %q = nn.slice %qk [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<1x4x4x8xf32>) -> tensor<1x4x2x8xf32>
  %k = nn.slice %qk [0, 0, 2, 0] step [1, 1, 1, 1] : (tensor<1x4x4x8xf32>) -> tensor<1x4x2x8xf32>
  %r = nn.rotary_embedding %q, %t, %t : (tensor<1x4x2x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>) -> tensor<1x4x2x8xf32>
  %o, %l = nn.attention %r, %k, %k {scale = 1.0 : f64} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x8xf32>
}

// -----

// CHECK-LABEL: func @forward(
//   CHECK-DAG:   %[[Q:.*]] = nn.slice %arg0 [0, 0, 0, 0] step [1, 1, 1, 2]
//   CHECK-DAG:   %[[K:.*]] = nn.slice %arg0 [0, 0, 0, 1] step [1, 1, 1, 2]
//   CHECK-DAG:   %[[Q1:.*]] = nn.copy %[[Q]]
//   CHECK-DAG:   %[[K1:.*]] = nn.copy %[[K]]
//       CHECK:   %[[R:.*]] = nn.rotary_embedding %[[Q1]], %arg1, %arg1
//       CHECK:   nn.attention %[[R]], %[[K1]], %[[K1]]
func.func @forward(%qk: tensor<1x4x2x16xf32>, %t: tensor<1x4x1x8xf32>) -> tensor<1x4x2x8xf32> {
  %q = nn.slice %qk [0, 0, 0, 0] step [1, 1, 1, 2] : (tensor<1x4x2x16xf32>) -> tensor<1x4x2x8xf32>
  %k = nn.slice %qk [0, 0, 0, 1] step [1, 1, 1, 2] : (tensor<1x4x2x16xf32>) -> tensor<1x4x2x8xf32>
  %r = nn.rotary_embedding %q, %t, %t : (tensor<1x4x2x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>) -> tensor<1x4x2x8xf32>
  %o, %l = nn.attention %r, %k, %k {scale = 1.0 : f64} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x8xf32>
}
