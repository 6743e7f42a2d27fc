// RUN: tmc-opt %s -tmc-verify-phase=phase=shape -split-input-file -verify-diagnostics

train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{a defect: neither a kernel nor a view}}
  %h = arith.negf %g : tensor<4x4xf32>
  %loss = train.square_sum %h : (tensor<4x4xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

// expected-error @below {{a defect: no new value for 'w'}}
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = train.square_sum %w : (tensor<4x4xf32>) -> tensor<f32>
  train.return %loss : tensor<f32>
}

// -----

// A fused region whose total is asked for element by element has no kernel.
train.step @step(
    %x: tensor<8x4xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %g = nn.matmul %x, %x transpose_lhs : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{a defect: no kernel computes it}}
  %h = nn.fused (%a = %g) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %tr = nn.transpose %a [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.yield %tr : tensor<4x4xf32>
  }
  %loss = train.square_sum %h : (tensor<4x4xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %new, %loss : tensor<4x4xf32>, tensor<f32>
}
