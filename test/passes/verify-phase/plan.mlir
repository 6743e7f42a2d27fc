// RUN: tmc-opt %s -tmc-verify-phase=phase=plan -split-input-file -verify-diagnostics

// expected-error @below {{a defect: the step has no plan}}
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
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
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"})
    attributes {train.plan = {live_peak_bytes = 512 : i64, recomputed_ops = 0 : i64}} {
  // expected-error @below {{a defect: no instance number}}
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %loss = train.square_sum %g {train.instance = 0 : i64} : (tensor<4x4xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64, train.instance = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

// expected-error @below {{a defect: 1 recomputed ops where the plan has 0}}
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"})
    attributes {train.plan = {live_peak_bytes = 512 : i64, recomputed_ops = 0 : i64}} {
  %g0 = nn.matmul %x, %x transpose_lhs {train.instance = 0 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %loss = train.square_sum %g0 {train.instance = 0 : i64} : (tensor<4x4xf32>) -> tensor<f32>
  %g = nn.matmul %x, %x transpose_lhs {train.instance = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64, train.instance = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"})
    attributes {train.plan = {live_peak_bytes = 512 : i64, recomputed_ops = 0 : i64}} {
  %g = nn.matmul %x, %x transpose_lhs {train.instance = 0 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  // expected-note @below {{the update is here}}
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64, train.instance = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  // expected-error @below {{a defect: 'w' is read after its update}}
  %loss = train.square_sum %w {train.instance = 0 : i64} : (tensor<4x4xf32>) -> tensor<f32>
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}
