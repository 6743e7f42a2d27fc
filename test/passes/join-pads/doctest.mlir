// RUN: tmc-opt %s -tmc-join-pads | FileCheck %s

// CHECK-LABEL: func @three(
//  CHECK-NEXT:   %[[C:.*]] = nn.concat %arg0, %arg1, %arg2 {dim = 1 : i64}
//  CHECK-NEXT:   return %[[C]]
func.func @three(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>, %z: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %b = nn.pad %y [0, 3] step [1, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %c = nn.pad %z [0, 4] step [1, 1] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %c, %a : tensor<2x8xf32>
  %t = arith.addf %s, %b : tensor<2x8xf32>
  return %t : tensor<2x8xf32>
}

// What is no pad is added to the concatenation.

// CHECK-LABEL: func @with_another_term(
//  CHECK-NEXT:   %[[C:.*]] = nn.concat %arg0, %arg1 {dim = 1 : i64}
//  CHECK-NEXT:   %[[T:.*]] = arith.addf %[[C]], %arg2
//  CHECK-NEXT:   return %[[T]]
func.func @with_another_term(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>, %w: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %b = nn.pad %y [0, 3] step [1, 1] : (tensor<2x5xf32>) -> tensor<2x8xf32>
  %s = arith.addf %w, %a : tensor<2x8xf32>
  %t = arith.addf %b, %s : tensor<2x8xf32>
  return %t : tensor<2x8xf32>
}

// A hole, an overlap, pads along two dimensions, elements apart, a sum that is
// read elsewhere: all stay.

// CHECK-LABEL: func @hole(
//   CHECK-NOT:   nn.concat
//       CHECK:   return
func.func @hole(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %b = nn.pad %y [0, 4] step [1, 1] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// CHECK-LABEL: func @overlap(
//   CHECK-NOT:   nn.concat
//       CHECK:   return
func.func @overlap(%x: tensor<2x5xf32>, %y: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<2x5xf32>) -> tensor<2x8xf32>
  %b = nn.pad %y [0, 4] step [1, 1] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// CHECK-LABEL: func @corners(
//   CHECK-NOT:   nn.concat
//       CHECK:   return
func.func @corners(%x: tensor<1x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<1x4xf32>) -> tensor<2x8xf32>
  %b = nn.pad %x [1, 4] step [1, 1] : (tensor<1x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// CHECK-LABEL: func @apart(
//   CHECK-NOT:   nn.concat
//       CHECK:   return
func.func @apart(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %a = nn.pad %x [0, 0] step [1, 2] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %b = nn.pad %x [0, 1] step [1, 2] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// CHECK-LABEL: func @read_elsewhere(
//   CHECK-NOT:   nn.concat
//       CHECK:   return
func.func @read_elsewhere(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %a = nn.pad %x [0, 0] step [1, 1] : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %b = nn.pad %y [0, 3] step [1, 1] : (tensor<2x5xf32>) -> tensor<2x8xf32>
  %s = arith.addf %a, %b : tensor<2x8xf32>
  return %s, %a : tensor<2x8xf32>, tensor<2x8xf32>
}
