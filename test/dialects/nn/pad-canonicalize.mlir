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

// -----

// What is no pad is added to the concatenation.

// CHECK-LABEL: func @beside_another_addend
//       CHECK:   %[[C:.*]] = nn.concat %arg0, %arg1 {dim = 1 : i64}
//  CHECK-NEXT:   %[[S:.*]] = arith.addf %[[C]], %arg2
//  CHECK-NEXT:   return %[[S]]
func.func @beside_another_addend(%a: tensor<4x2xf32>, %b: tensor<4x4xf32>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.pad %a [0, 0] step [1, 1] : (tensor<4x2xf32>) -> tensor<4x6xf32>
  %1 = arith.addf %x, %0 : tensor<4x6xf32>
  %2 = nn.pad %b [0, 2] step [1, 1] : (tensor<4x4xf32>) -> tensor<4x6xf32>
  %3 = arith.addf %2, %1 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// -----

// Two corners of a square.

// CHECK-LABEL: func @corners
//   CHECK-NOT:   nn.concat
func.func @corners(%x: tensor<1x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<1x4xf32>) -> tensor<2x8xf32>
  %b = nn.pad %x [1, 4] step [1, 1] : (tensor<1x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}
