// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// Two transposes that undo each other, behind pointwise work, slices and a
// concatenation: the work is done on [B, T, H, D].

// CHECK-LABEL: func @undone_behind_work(
//   CHECK-NOT:   nn.transpose
//       CHECK:   %[[C:.*]] = nn.concat %{{.*}} {dim = 3 : i64} : (tensor<2x8x4x8xf32>, tensor<2x8x4x8xf32>) -> tensor<2x8x4x16xf32>
//  CHECK-NEXT:   return %[[C]]
func.func @undone_behind_work(%q: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %t = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %low = nn.slice %t [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %high = nn.slice %t [0, 0, 0, 8] step [1, 1, 1, 1] : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %neg = arith.negf %high : tensor<2x4x8x8xf32>
  %c = nn.concat %neg, %low {dim = 3 : i64} : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %c [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// The sum is returned in both orders: one of them takes a transpose, and the work
// isn't done twice.

// CHECK-LABEL: func @shared_work(
//       CHECK:   nn.transpose
//       CHECK:   %[[E:.*]] = math.exp
//       CHECK:   %[[R:.*]] = nn.transpose %[[E]]
//   CHECK-NOT:   math.exp
//       CHECK:   return %[[R]], %[[E]]
func.func @shared_work(%q: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x4x8xf32>) {
  %t = nn.transpose %q [0, 2, 1] : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
  %e = math.exp %t : tensor<2x4x8xf32>
  %r = nn.transpose %e [0, 2, 1] : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
  return %r, %e : tensor<2x8x4xf32>, tensor<2x4x8xf32>
}

// [2, 3, 4] flattened around a transpose is a transpose of the last two; a unit
// dimension moves for nothing; three transposes that turn in a circle are none.

// CHECK-LABEL: func @flattened(
//       CHECK:   %[[T:.*]] = nn.matmul %arg0, %arg0 transpose_rhs : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x4xf32>
//  CHECK-NEXT:   return %[[T]]
func.func @flattened(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x4x4xf32> {
  %f = nn.reshape %x : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %t = nn.transpose %f [0, 2, 1] : (tensor<6x4x5xf32>) -> tensor<6x5x4xf32>
  %u = nn.reshape %t : (tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32>
  %y = nn.matmul %x, %u : (tensor<2x3x4x5xf32>, tensor<2x3x5x4xf32>) -> tensor<2x3x4x4xf32>
  return %y : tensor<2x3x4x4xf32>
}

// CHECK-LABEL: func @unit(
//  CHECK-NEXT:   %[[R:.*]] = nn.reshape %arg0 : (tensor<2x1x4xf32>) -> tensor<2x4x1xf32>
//  CHECK-NEXT:   return %[[R]]
func.func @unit(%x: tensor<2x1x4xf32>) -> tensor<2x4x1xf32> {
  %t = nn.transpose %x [0, 2, 1] : (tensor<2x1x4xf32>) -> tensor<2x4x1xf32>
  return %t : tensor<2x4x1xf32>
}

// CHECK-LABEL: func @circle(
//  CHECK-NEXT:   return %arg0
func.func @circle(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %a = nn.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %b = nn.transpose %a [1, 2, 0] : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %c = nn.transpose %b [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %c : tensor<2x3x4xf32>
}

// A reshape that cuts through the middle of a moved dimension keeps both.

// CHECK-LABEL: func @cut_through(
//       CHECK:   nn.transpose %arg0 [1, 0]
//       CHECK:   nn.reshape
//       CHECK:   nn.transpose %{{.*}} [1, 0]
func.func @cut_through(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %a = nn.transpose %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %b = nn.reshape %a : (tensor<6x4xf32>) -> tensor<8x3xf32>
  %c = nn.transpose %b [1, 0] : (tensor<8x3xf32>) -> tensor<3x8xf32>
  return %c : tensor<3x8xf32>
}
