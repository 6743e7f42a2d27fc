// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// Sample times 4 plus position: 0, 1, ... 7, all rows of the mask in order.

// CHECK-LABEL: func @every_pair(
//  CHECK-NEXT:   %[[M:.*]] = nn.reshape %arg0 : (tensor<2x4xi1>) -> tensor<2x1x1x4xi1>
//  CHECK-NEXT:   return %[[M]]
func.func @every_pair(%mask: tensor<2x4xi1>) -> tensor<2x1x1x4xi1> {
  %pairs = arith.constant dense<[[[0, 0], [0, 1], [0, 2], [0, 3]], [[1, 0], [1, 1], [1, 2], [1, 3]]]> : tensor<2x4x2xi64>
  %s0 = nn.slice %pairs [0, 0, 0] step [1, 1, 1] : (tensor<2x4x2xi64>) -> tensor<2x4x1xi64>
  %s = nn.reshape %s0 : (tensor<2x4x1xi64>) -> tensor<2x1x1x4xi64>
  %four = arith.constant dense<4> : tensor<2x1x1x4xi64>
  %row = arith.muli %s, %four : tensor<2x1x1x4xi64>
  %t0 = nn.slice %pairs [0, 0, 1] step [1, 1, 1] : (tensor<2x4x2xi64>) -> tensor<2x4x1xi64>
  %t = nn.reshape %t0 : (tensor<2x4x1xi64>) -> tensor<2x1x1x4xi64>
  %ids = arith.addi %row, %t : tensor<2x1x1x4xi64>
  %flat = nn.reshape %mask : (tensor<2x4xi1>) -> tensor<8xi1>
  %m = nn.embedding %flat, %ids : (tensor<8xi1>, tensor<2x1x1x4xi64>) -> tensor<2x1x1x4xi1>
  return %m : tensor<2x1x1x4xi1>
}

// CHECK-LABEL: func @out_of_order(
//       CHECK:   nn.embedding
func.func @out_of_order(%table: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %ids = arith.constant dense<[0, 2, 1]> : tensor<3xi64>
  %y = nn.embedding %table, %ids : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func @first_rows(
//       CHECK:   nn.embedding
func.func @first_rows(%table: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %ids = nn.iota {dim = 0 : i64} : () -> tensor<3xi64>
  %y = nn.embedding %table, %ids : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
