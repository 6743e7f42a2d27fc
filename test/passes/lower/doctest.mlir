// RUN: tmc-opt %s -tmc-lower | FileCheck %s

// Values become buffers, arguments persistent ones with what the runtime must
// know of them. The update writes over the parameter; the reshape is a view.

// CHECK: mem.program @step
// CHECK-DAG: %[[X:.*]] = mem.buffer "x" "batch" {persistent, tensor = {train.name = "x"
// CHECK-DAG: %[[W:.*]] = mem.buffer "w" "parameters" {persistent, tensor = {train.name = "w"
// CHECK-DAG: %[[LOSS:.*]] = mem.buffer "loss" {{.*}}train.loss{{.*}} : memref<f32>
// CHECK: mem.launch "Matmul"(%[[X]], %[[X]]
// CHECK-SAME: -> (%[[G:.*]] : memref<4x4xf32>)
// CHECK-SAME: op = "grad"
// CHECK: mem.launch "SquareSum"(%[[G]]
// CHECK-SAME: -> (%[[LOSS]] : memref<f32>)
// CHECK: mem.launch "Sgd"(%[[W]], %[[G]]
// CHECK-SAME: -> (%[[W]]
// CHECK-SAME: instance = 0
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("grad")
  %loss = train.square_sum %g : (tensor<4x4xf32>) -> tensor<f32> loc("loss")
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}
