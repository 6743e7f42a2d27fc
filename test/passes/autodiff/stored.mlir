// RUN: tmc-opt %s -tmc-autodiff='optimizer=adamw(master=none,moments=bf16)' -canonicalize | FileCheck %s
// RUN: tmc-opt %s -tmc-autodiff='optimizer=sgd(momentum=0.9,moments=bf16)' -canonicalize | FileCheck %s --check-prefix=SGD
// RUN: not tmc-opt %s -tmc-autodiff='optimizer=adamw(moments=f16)' 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not tmc-opt %s -tmc-autodiff='optimizer=adamw8bit(moments=bf16)' 2>&1 | FileCheck %s --check-prefix=OPTION

// The model computes with what the params, kept in 16 bits, are; updates read and
// write what is kept, each with draws of its own. A bias that the model has in 16
// bits is kept in 32 where there are masters, and its gradient stays what it is.
// CHECK: train.step @step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xbf16> {train.name = "w"
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xbf16> {train.name = "b"
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<8x4xbf16> {train.init = "zeros", train.name = "w.exp_avg",
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<8x4xbf16> {train.init = "zeros", train.name = "w.exp_avg_sq",
// CHECK-DAG: %[[WIDE:.*]] = arith.extf %[[W]] : tensor<8x4xbf16> to tensor<8x4xf32>
// CHECK-DAG: nn.matmul %{{.*}}, %[[WIDE]]
// CHECK-DAG: train.adamw %[[W]], %{{.*}}, %[[M]], %[[V]] {{.*}}stream = 0 : i64{{.*}} (tensor<8x4xbf16>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8x4xbf16>
// CHECK-DAG: train.adamw %[[B]], {{.*}}stream = 1 : i64{{.*}} (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>

// SGD: train.step @step
// SGD-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xf32> {train.name = "w"
// SGD-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32> {train.name = "b"
// SGD-SAME: tensor<8x4xbf16> {train.init = "zeros", train.name = "w.momentum_buffer"
// SGD-DAG: arith.truncf %[[B]] : tensor<4xf32> to tensor<4xbf16>
// SGD-DAG: train.sgd %[[B]], {{.*}}stream = 1 : i64{{.*}} (tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>

// WORD: moments=f16 is neither f32 nor bf16
// OPTION: 'adamw8bit' has no option 'moments'
func.func @forward(%x: tensor<2x8xf32> {train.name = "x", train.role = #train.role<batch>},
                   %w: tensor<8x4xf32> {train.name = "w", train.role = #train.role<param>},
                   %b: tensor<4xbf16> {train.name = "b", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %p = nn.broadcast %b to [1] : (tensor<4xbf16>) -> tensor<2x4xbf16>
  %c = arith.extf %p : tensor<2x4xbf16> to tensor<2x4xf32>
  %0 = arith.mulf %y, %c : tensor<2x4xf32>
  %1 = nn.reduce sum %0 over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
