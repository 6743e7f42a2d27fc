// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// CHECK-LABEL: func @shifted(
//  CHECK-NEXT:   nn.softmax %arg0 : (tensor<4x8xf32>)
//  CHECK-NEXT:   return
func.func @shifted(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nn.reduce max %x over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = nn.broadcast %m to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = arith.subf %x, %mb : tensor<4x8xf32>
  %e = math.exp %d : tensor<4x8xf32>
  %s = nn.reduce sum %e over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %s1 = nn.reshape %s : (tensor<4xf32>) -> tensor<4x1xf32>
  %s2 = nn.reshape %s1 : (tensor<4x1xf32>) -> tensor<4xf32>
  %sb = nn.broadcast %s2 to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.divf %e, %sb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @by_the_reciprocal(
//  CHECK-NEXT:   nn.softmax %arg0 : (tensor<4x8xf32>)
//  CHECK-NEXT:   return
func.func @by_the_reciprocal(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = math.exp %x : tensor<4x8xf32>
  %s = nn.reduce sum %e over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %i = arith.divf %one, %s : tensor<4xf32>
  %ib = nn.broadcast %i to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.mulf %ib, %e : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @logarithm(
//  CHECK-NEXT:   nn.softmax %arg0 {log} : (tensor<4x8xf32>)
//  CHECK-NEXT:   return
func.func @logarithm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nn.reduce max %x over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = nn.broadcast %m to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = arith.subf %x, %mb : tensor<4x8xf32>
  %e = math.exp %d : tensor<4x8xf32>
  %s = nn.reduce sum %e over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %l = math.log %s : tensor<4xf32>
  %lb = nn.broadcast %l to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.subf %d, %lb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @logarithm_of_softmax(
//  CHECK-NEXT:   nn.softmax %arg0 {log} : (tensor<4x8xf32>)
//  CHECK-NEXT:   return
func.func @logarithm_of_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = nn.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = math.log %p : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The maximum of another row is no shift: it stays, inside.

// CHECK-LABEL: func @shifted_by_another(
//       CHECK:   %[[D:.*]] = arith.subf %arg0
//       CHECK:   nn.softmax %[[D]]
func.func @shifted_by_another(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nn.reduce max %z over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = nn.broadcast %m to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = arith.subf %x, %mb : tensor<4x8xf32>
  %e = math.exp %d : tensor<4x8xf32>
  %s = nn.reduce sum %e over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %sb = nn.broadcast %s to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.divf %e, %sb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @over_columns(
//   CHECK-NOT:   nn.softmax
//       CHECK:   return
func.func @over_columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = math.exp %x : tensor<8x8xf32>
  %s = nn.reduce sum %e over [0] : (tensor<8x8xf32>) -> tensor<8xf32>
  %sb = nn.broadcast %s to [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %y = arith.divf %e, %sb : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: func @sum_of_another(
//   CHECK-NOT:   nn.softmax
//       CHECK:   return
func.func @sum_of_another(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = math.exp %x : tensor<4x8xf32>
  %f = math.exp %z : tensor<4x8xf32>
  %s = nn.reduce sum %f over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %sb = nn.broadcast %s to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.divf %e, %sb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
