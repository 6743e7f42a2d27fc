// RUN: tmc-opt %s -tmc-lower | FileCheck %s

// A loop's sums are one buffer each. A product that accumulates writes where it
// would add in the first trip; what another kernel adds to begins as zeros.

// CHECK: %[[X:.*]] = mem.buffer "x" "batch"
// CHECK-DAG: %[[LOSS:.*]] = mem.buffer {{.*}}train.loss
// CHECK: mem.fill %[[LOSS]]
// CHECK: mem.loop 2
// CHECK: %[[PIECE:.*]] = mem.piece %[[X]][%{{.*}}] : memref<8x4xf32> to memref<4x4xf32>
// CHECK: mem.launch "Matmul"(%[[PIECE]], %[[PIECE]]
// CHECK-SAME: -> (%[[G:.*]] : memref<4x4xf32>) scratch{{.*}}{accumulate{{.*}}first_writes
// CHECK: mem.launch "fused_0"({{.*}}%[[LOSS]]{{.*}}) -> (%[[LOSS]] : memref<f32>)
// CHECK: }
// CHECK: mem.launch "Sgd"(%{{.*}}, %[[G]]
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %loss, %g = train.micro_batch 2 slices(%x : tensor<8x4xf32>) -> tensor<f32>, tensor<4x4xf32> {
  ^bb0(%p: tensor<4x4xf32>, %total: tensor<f32>, %sum: tensor<4x4xf32>):
    %next = nn.matmul %p, %p transpose_lhs acc(%sum) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %added = nn.fused (%a = %p, %b = %total) : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32> {
      %r = nn.reduce sum %a over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
      %s = arith.addf %b, %r : tensor<f32>
      nn.yield %s : tensor<f32>
    }
    train.yield %added, %next : tensor<f32>, tensor<4x4xf32>
  }
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}
