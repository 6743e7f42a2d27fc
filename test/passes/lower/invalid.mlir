// RUN: tmc-opt %s -tmc-lower -split-input-file -verify-diagnostics

// An op that no kernel computes.
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{'arith.negf' is no kernel and no view}}
  %h = arith.negf %g : tensor<4x4xf32>
  %loss = train.square_sum %h : (tensor<4x4xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

// Every thread reads the total that one of them writes.
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %loss, %g = train.micro_batch 2 slices(%x : tensor<8x4xf32>) -> tensor<f32>, tensor<4x4xf32> {
  ^bb0(%p: tensor<4x4xf32>, %total: tensor<f32>, %sum: tensor<4x4xf32>):
    // expected-error @below {{over the value of the trip before}}
    %added, %scaled = nn.fused (%a = %p, %b = %total) : (tensor<4x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x4xf32>) {
      %r = nn.reduce sum %a over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
      %s = arith.addf %b, %r : tensor<f32>
      %all = nn.broadcast %b to [] : (tensor<f32>) -> tensor<4x4xf32>
      %m = arith.mulf %a, %all : tensor<4x4xf32>
      nn.yield %s, %m : tensor<f32>, tensor<4x4xf32>
    }
    %next = nn.matmul %p, %scaled transpose_lhs acc(%sum) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    train.yield %added, %next : tensor<f32>, tensor<4x4xf32>
  }
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}
