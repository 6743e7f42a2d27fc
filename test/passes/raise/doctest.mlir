// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// q and k are read as they lie in memory: all four transposes are gone, and the
// factor 0.25 is the scale.

// CHECK-LABEL: func @attention
//  CHECK-SAME:   (%[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: tensor
//       CHECK:   %[[OUT:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]]
//  CHECK-SAME:     {scale = 2.500000e-01 : f64}
//   CHECK-NOT:   nn.transpose
//       CHECK:   return %[[OUT]]
func.func @attention(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>,
                     %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %f = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
  %t = arith.mulf %s, %f : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}
