// RUN: tmc-opt %s -split-input-file -tmc-split=micro-batches=2 -tmc-autodiff="optimizer=sgd outputs=kept" -verify-diagnostics

// Outputs that pieces don't put together.

// expected-error @below {{micro-batches can't keep the output 'kept': it is one number of the whole batch}}
// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<4x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<f32> {train.name = "kept"}) {
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = arith.mulf %x, %bb : tensor<4x5xf32>
  %sum = nn.reduce sum %x over [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  return %loss, %sum : tensor<f32>, tensor<f32>
}

// -----

// expected-error @below {{micro-batches can't keep the output 'kept': its pieces lie along dimension 1}}
// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<4x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<5x4xf32> {train.name = "kept"}) {
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = arith.mulf %x, %bb : tensor<4x5xf32>
  %t = nn.transpose %y [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  return %loss, %t : tensor<f32>, tensor<5x4xf32>
}

// -----

// expected-error @below {{micro-batches can't keep the output 'kept': it doesn't depend on the batch}}
// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<4x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<5xf32> {train.name = "kept"}) {
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = arith.mulf %x, %bb : tensor<4x5xf32>
  %t = arith.addf %b, %b : tensor<5xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  return %loss, %t : tensor<f32>, tensor<5xf32>
}
