// RUN: tmc-opt %s -tmc-verify-phase=phase=import -split-input-file -verify-diagnostics

// expected-error @below {{argument 0 has no role}}
func.func @forward(%x: tensor<4xf32>) -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.reduce sum %x over [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{no result is the loss}}
func.func @forward(%x: tensor<4xf32> {train.name = "x", train.role = #train.role<batch>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{the loss is a 'tensor<4xf32>'}}
func.func @forward(%x: tensor<4xf32> {train.name = "x", train.role = #train.role<batch>}) -> (tensor<4xf32> {train.loss, train.name = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{there is no @forward}}
module {}
