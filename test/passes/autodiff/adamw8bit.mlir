// RUN: tmc-opt %s -tmc-autodiff='optimizer=adamw8bit(min_size=300)' -canonicalize | FileCheck %s

// Of 512 elements: codes, and a maximum of each 256. The table is looked up, and the bias is
// small: their moments are f32.
// CHECK: train.step @step
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<100x32xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x32xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<16xf32>
// CHECK-SAME: tensor<100x32xf32> {train.init = "zeros", train.name = "table.exp_avg", train.role = #train.role<state>, train.slot = "table"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<16x32xi8> {train.init = "zeros", train.name = "w.exp_avg.codes", train.role = #train.role<state>, train.slot = "w"}
// CHECK-SAME: %[[MM:[a-z0-9]+]]: tensor<2xf32> {train.init = "zeros", train.name = "w.exp_avg.max"
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<16x32xi8> {train.init = "zeros", train.name = "w.exp_avg_sq.codes"
// CHECK-SAME: %[[VM:[a-z0-9]+]]: tensor<2xf32> {train.init = "zeros", train.name = "w.exp_avg_sq.max"
// CHECK-SAME: tensor<16xf32> {train.init = "zeros", train.name = "b.exp_avg_sq"
// CHECK-DAG: train.adamw %[[T]], {{.*}}tensor<100x32xf32>
// CHECK-DAG: train.adamw8bit %[[W]], %{{[0-9a-z_#]+}}, %[[M]], %[[MM]], %[[V]], %[[VM]] lr(
// CHECK-DAG: train.adamw %[[B]], {{.*}}tensor<16xf32>
func.func @forward(%table: tensor<100x32xf32> {train.name = "table", train.role = #train.role<param>},
                   %w: tensor<16x32xf32> {train.name = "w", train.role = #train.role<param>},
                   %b: tensor<16xf32> {train.name = "b", train.role = #train.role<param>},
                   %ids: tensor<4xi64> {train.name = "ids", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %x = nn.embedding %table, %ids : (tensor<100x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  %y = nn.matmul %x, %w transpose_rhs bias(%b) : (tensor<4x32xf32>, tensor<16x32xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %0 = arith.mulf %y, %y : tensor<4x16xf32>
  %1 = nn.reduce sum %0 over [0, 1] : (tensor<4x16xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
