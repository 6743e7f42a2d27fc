// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}))' | FileCheck %s

// A parameter is cast once for all runs of the loop; what the loop carries to the
// update is f32.

// CHECK-LABEL: train.step @step
//       CHECK:   %[[W:.*]] = arith.truncf %arg1
//       CHECK:   train.micro_batch 2
//       CHECK:     nn.matmul %{{.*}}, %[[W]] : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
//       CHECK:     nn.matmul %{{.*}} transpose_lhs : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
train.step @step(%x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}) {
  %sum = train.micro_batch 2 slices(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%piece: tensor<2x4xf32>, %carried: tensor<4x4xf32>):
    %y = nn.matmul %piece, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %g = nn.matmul %piece, %y transpose_lhs : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %next = arith.addf %carried, %g : tensor<4x4xf32>
    train.yield %next : tensor<4x4xf32>
  }
  %n, %q = train.sgd %w, %sum lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %n : tensor<4x4xf32>
}
