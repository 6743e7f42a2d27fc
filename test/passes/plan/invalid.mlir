// RUN: tmc-opt %s -pass-pipeline="builtin.module(train.step(tmc-plan{budget=512}))" -split-input-file -verify-diagnostics

// x, w, lr and the step's number alone take 128 + 64 + 64 + 64 bytes; the
// gradient and its kernel's scratch come on top.

// expected-error @below {{over the budget of}}
// expected-note @below {{the smallest budget for which a plan is known is}}
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  // expected-note @below {{the peak is at}}
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %loss = train.square_sum %g : (tensor<4x4xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

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
