// RUN: tmc-opt %s -canonicalize -split-input-file | FileCheck %s

// Columns 0..1, 2..4 and 5 of 6, added up: every element comes from one part.

// CHECK-LABEL: func @parts_fill_the_tensor
//       CHECK:   %[[C:.*]] = nn.concat %arg0, %arg1, %arg2 {dim = 1 : i64}
//       CHECK:   return %[[C]]
func.func @parts_fill_the_tensor(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>, %c: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = nn.pad %b [0, 2] step [1, 1] : (tensor<4x3xf32>) -> tensor<4x6xf32>
  %1 = nn.pad %a [0, 0] step [1, 1] : (tensor<4x2xf32>) -> tensor<4x6xf32>
  %2 = arith.addf %0, %1 : tensor<4x6xf32>
  %3 = nn.pad %c [0, 5] step [1, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  %4 = arith.addf %2, %3 : tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}

// -----

// Column 2 comes from nobody.

// CHECK-LABEL: func @a_hole
//   CHECK-NOT:   nn.concat
func.func @a_hole(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = nn.pad %a [0, 0] step [1, 1] : (tensor<4x2xf32>) -> tensor<4x6xf32>
  %1 = nn.pad %b [0, 3] step [1, 1] : (tensor<4x3xf32>) -> tensor<4x6xf32>
  %2 = arith.addf %0, %1 : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}
