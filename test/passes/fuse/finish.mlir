// What depends on a sum over the columns is known row by row; what is made when
// all rows are done can't ask for it. With one sample, the norm of a vector
// looks like a result of that kind: it has no rows. It gets a kernel of its own.
// RUN: tmc-opt -tmc-fuse %s | FileCheck %s

// CHECK-LABEL: @norm_of_a_mean
// CHECK: nn.fused
// CHECK-NOT: tensor<64x32xf32>
// CHECK: nn.yield
// CHECK: nn.fused
// CHECK: tensor<64x32xf32>
// CHECK: nn.yield
func.func @norm_of_a_mean(%x: tensor<1x32xf32>, %y: tensor<64x32xf32>) -> (tensor<1x32xf32>, tensor<32xf32>) {
  %sum = nn.reduce sum %x over [1] : (tensor<1x32xf32>) -> tensor<1xf32>
  %spread = nn.broadcast %sum to [0] : (tensor<1xf32>) -> tensor<1x32xf32>
  %normed = arith.divf %x, %spread : tensor<1x32xf32>
  %row = nn.reshape %normed : (tensor<1x32xf32>) -> tensor<32xf32>
  %all = nn.broadcast %row to [1] : (tensor<32xf32>) -> tensor<64x32xf32>
  %product = arith.mulf %y, %all : tensor<64x32xf32>
  %columns = nn.reduce sum %product over [0] : (tensor<64x32xf32>) -> tensor<32xf32>
  return %normed, %columns : tensor<1x32xf32>, tensor<32xf32>
}
