// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16,gradients=bf16}))' | FileCheck %s

// The product's gradient is rounded once, and read so by norm and update; one that no
// product makes is cast. Of a table kept in 16 bits rows are looked up, then widened.

// CHECK-LABEL: train.step @step
//       CHECK:   %[[R:.*]] = nn.embedding %arg1, %arg0 : (tensor<8x4xbf16>, tensor<2xi64>) -> tensor<2x4xbf16>
//       CHECK:   %[[X:.*]] = arith.extf %[[R]] : tensor<2x4xbf16> to tensor<2x4xf32>
//       CHECK:   %[[Y:.*]] = nn.matmul %[[R]], %{{.*}} : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
//       CHECK:   %[[G:.*]] = nn.matmul %[[R]], %[[Y]] transpose_lhs : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xbf16>
//       CHECK:   %[[E:.*]] = nn.embedding_grad %arg0, %[[X]]
//       CHECK:   %[[N:.*]] = arith.truncf %[[E]] : tensor<8x4xf32> to tensor<8x4xbf16>
//       CHECK:   train.square_sum %[[G]]
//       CHECK:   train.sgd %arg2, %[[G]] {{.*}}(tensor<4x4xf32>, tensor<4x4xbf16>
//       CHECK:   train.sgd %arg1, %[[N]] {{.*}}stream = 1 : i64
train.step @step(%i: tensor<2xi64> {train.name = "i", train.role = #train.role<batch>},
                 %e: tensor<8x4xbf16> {train.name = "e", train.role = #train.role<param>},
                 %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 2 : i64}, tensor<8x4xbf16> {train.name = "e", train.updates = 1 : i64}, tensor<f32> {train.name = "s"}) {
  %wide = arith.extf %e : tensor<8x4xbf16> to tensor<8x4xf32>
  %x = nn.embedding %wide, %i : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %g = nn.matmul %x, %y transpose_lhs : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %d = nn.embedding_grad %i, %x : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %s = train.square_sum %g : (tensor<4x4xf32>) -> tensor<f32>
  %n, %q = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  %m, %r = train.sgd %e, %d lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64, stream = 1 : i64} : (tensor<8x4xbf16>, tensor<8x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<8x4xbf16>, tensor<f32>)
  train.return %n, %m, %s : tensor<4x4xf32>, tensor<8x4xbf16>, tensor<f32>
}
