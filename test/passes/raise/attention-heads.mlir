// RUN: tmc-opt %s -tmc-raise -split-input-file | FileCheck %s

// An attention that was one op in the file reads each key head once: four query
// heads share two, in the order of a repetition behind each head.

// CHECK-LABEL: func @shared(
//  CHECK-NEXT:   nn.attention %arg0, %arg1, %arg2 {{.*}} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
func.func @shared(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %v: tensor<2x8x2x16xf32>) -> tensor<2x8x4x16xf32> {
  %k1 = nn.transpose %k [0, 2, 1, 3] : (tensor<2x8x2x16xf32>) -> tensor<2x2x8x16xf32>
  %k2 = nn.broadcast %k1 to [0, 1, 3, 4] : (tensor<2x2x8x16xf32>) -> tensor<2x2x2x8x16xf32>
  %k3 = nn.reshape %k2 : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  %k4 = nn.transpose %k3 [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %v1 = nn.broadcast %v to [0, 1, 2, 4] : (tensor<2x8x2x16xf32>) -> tensor<2x8x2x2x16xf32>
  %v2 = nn.reshape %v1 : (tensor<2x8x2x2x16xf32>) -> tensor<2x8x4x16xf32>
  %o, %l = nn.attention %q, %k4, %v2 {scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// All heads are repeated one after another: query heads 0 and 2 share a head.

// CHECK-LABEL: func @tiled(
//       CHECK:   nn.broadcast
//       CHECK:   nn.attention {{.*}} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>)
func.func @tiled(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>) -> tensor<2x8x4x16xf32> {
  %k1 = nn.broadcast %k to [0, 1, 3, 4] : (tensor<2x8x2x16xf32>) -> tensor<2x8x2x2x16xf32>
  %k2 = nn.reshape %k1 : (tensor<2x8x2x2x16xf32>) -> tensor<2x8x4x16xf32>
  %o, %l = nn.attention %q, %k2, %k2 {scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// Only the keys are repeated.

// CHECK-LABEL: func @keys_alone(
//       CHECK:   nn.attention {{.*}} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>)
func.func @keys_alone(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %k1 = nn.broadcast %k to [0, 1, 2, 4] : (tensor<2x8x2x16xf32>) -> tensor<2x8x2x2x16xf32>
  %k2 = nn.reshape %k1 : (tensor<2x8x2x2x16xf32>) -> tensor<2x8x4x16xf32>
  %o, %l = nn.attention %q, %k2, %v {scale = 0.25 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}
