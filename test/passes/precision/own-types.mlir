// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16 target=cpu}))' | FileCheck %s

// What the model has in 16 bits keeps its type: a frozen filter of f32 is kept in f16
// beside an image of f16, and a pool of bf16 is left as it is.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %arg2: tensor<2x3x1x1xf16>
//       CHECK:   nn.conv %arg0, %arg2 {{.*}} -> tensor<1x4x4x2xf16>
//       CHECK:   nn.max_pool %arg1 {{.*}} : (tensor<1x4x4x3xbf16>) -> tensor<1x4x4x3xbf16>
//   CHECK-NOT:   arith.extf
//       CHECK:   train.return
train.step @step(%x: tensor<1x4x4x3xf16> {train.name = "x", train.role = #train.role<batch>},
                 %z: tensor<1x4x4x3xbf16> {train.name = "z", train.role = #train.role<batch>},
                 %f: tensor<2x3x1x1xf32> {train.name = "f", train.role = #train.role<param>, train.frozen})
    -> (tensor<1x4x4x2xf16> {train.name = "y", train.output}, tensor<1x4x4x3xbf16> {train.name = "p", train.output}) {
  %y = nn.conv %x, %f {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x4x3xf16>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf16>
  %p = nn.max_pool %z {channels_last, dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<1x4x4x3xbf16>) -> tensor<1x4x4x3xbf16>
  train.return %y, %p : tensor<1x4x4x2xf16>, tensor<1x4x4x3xbf16>
}
