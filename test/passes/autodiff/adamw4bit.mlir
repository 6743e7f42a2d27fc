// RUN: tmc-opt %s -tmc-autodiff=optimizer=adamw4bit -canonicalize | FileCheck %s
// RUN: not tmc-opt %s -tmc-autodiff='optimizer=adamw4bit(moments=bf16)' 2>&1 | FileCheck %s --check-prefix=OPTION

// Of 8192 elements, a table's, and 6400: half as many bytes of codes, and a scale of
// each 128. 4100 elements aren't a multiple of 128, and a bias is small: their moments are f32.
// CHECK: train.step @step
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<128x64xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<64x100xf32>
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<100x41xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<41xf32>
// CHECK-SAME: tensor<4096xi8> {train.init = "zeros", train.name = "table.exp_avg.codes", train.role = #train.role<state>, train.slot = "table"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<3200xi8> {train.init = "zeros", train.name = "w.exp_avg.codes"
// CHECK-SAME: %[[MS:[a-z0-9]+]]: tensor<50xf32> {train.init = "zeros", train.name = "w.exp_avg.scale"
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<3200xi8> {train.init = "zeros", train.name = "w.exp_avg_sq.codes"
// CHECK-SAME: %[[VS:[a-z0-9]+]]: tensor<50xf32> {train.init = "zeros", train.name = "w.exp_avg_sq.scale"
// CHECK-SAME: tensor<100x41xf32> {train.init = "zeros", train.name = "u.exp_avg"
// CHECK-SAME: tensor<41xf32> {train.init = "zeros", train.name = "b.exp_avg_sq"
// CHECK-DAG: train.adamw4bit %[[T]], {{.*}}tensor<128x64xf32>
// CHECK-DAG: train.adamw4bit %[[W]], %{{[0-9a-z_#]+}}, %[[M]], %[[MS]], %[[V]], %[[VS]] lr(
// CHECK-DAG: train.adamw %[[U]], {{.*}}tensor<100x41xf32>
// CHECK-DAG: train.adamw %[[B]], {{.*}}tensor<41xf32>

// OPTION: 'adamw4bit' has no option 'moments'
func.func @forward(%table: tensor<128x64xf32> {train.name = "table", train.role = #train.role<param>},
                   %w: tensor<64x100xf32> {train.name = "w", train.role = #train.role<param>},
                   %u: tensor<100x41xf32> {train.name = "u", train.role = #train.role<param>},
                   %b: tensor<41xf32> {train.name = "b", train.role = #train.role<param>},
                   %ids: tensor<4xi64> {train.name = "ids", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %x = nn.embedding %table, %ids : (tensor<128x64xf32>, tensor<4xi64>) -> tensor<4x64xf32>
  %y = nn.matmul %x, %w : (tensor<4x64xf32>, tensor<64x100xf32>) -> tensor<4x100xf32>
  %z = nn.matmul %y, %u bias(%b) : (tensor<4x100xf32>, tensor<100x41xf32>, tensor<41xf32>) -> tensor<4x41xf32>
  %0 = arith.mulf %z, %z : tensor<4x41xf32>
  %1 = nn.reduce sum %0 over [0, 1] : (tensor<4x41xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
