// RUN: tmc-opt %s -tmc-lower -split-input-file | FileCheck %s

// What needn't be made gets no buffer, the kernel no address for it, and its
// product isn't counted: 5 x 8 logits, 2 * 2 * 4 + 7 operations each.

// CHECK: mem.program @dropped
// CHECK: mem.launch "LinearCrossEntropyWithGrad"
// CHECK-SAME: -> (%{{.*}}, %{{.*}} : memref<f32>, memref<5x4xf32>)
// CHECK-SAME: flops = 920 : i64
// CHECK-SAME: out_order = array<i64: 0, -1, 1>
train.step @dropped(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %labels: tensor<8xi64> {train.name = "labels", train.role = #train.role<batch>},
    %w: tensor<5x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<5x4xf32> {train.name = "w", train.updates = 2 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %loss, %dx, %dw = nn.linear_cross_entropy_with_grad %x, %w, %labels, %one, %one {chunk = 4 : i64, unread = array<i64: 1>} : (tensor<8x4xf32>, tensor<5x4xf32>, tensor<8xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<8x4xf32>, tensor<5x4xf32>)
  %new, %square = train.sgd %w, %dw lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<5x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<5x4xf32>, tensor<f32>
}

// -----

// A plan may run a kernel twice and read other results each time. It counted
// all of them both times, so all are made.

// CHECK: mem.program @counted
// CHECK: mem.launch "LinearCrossEntropyWithGrad"
// CHECK-SAME: -> (%{{.*}}, %{{.*}}, %{{.*}} : memref<f32>, memref<8x4xf32>, memref<5x4xf32>)
// CHECK-SAME: flops = 1240 : i64
// CHECK-SAME: out_order = array<i64: 0, 1, 2>
train.step @counted(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %labels: tensor<8xi64> {train.name = "labels", train.role = #train.role<batch>},
    %w: tensor<5x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<5x4xf32> {train.name = "w", train.updates = 2 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %loss, %dx, %dw = nn.linear_cross_entropy_with_grad %x, %w, %labels, %one, %one {chunk = 4 : i64} : (tensor<8x4xf32>, tensor<5x4xf32>, tensor<8xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<8x4xf32>, tensor<5x4xf32>)
  %new, %square = train.sgd %w, %dw lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<5x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<5x4xf32>, tensor<f32>
}
