// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the norms.

func.func @layer_norm_c1_scale(%x: tensor<4x8xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{the scale is 'tensor<4xf32>' where a row of the input has 8 elements}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.layer_norm %x scale(%s) {epsilon = 1.0e-5} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_c1_shift(%x: tensor<4x8xf32>, %s: tensor<8xf16>) {
  // expected-error @below {{the shift is 'tensor<8xf16>' where a row of the input has 8 elements}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.layer_norm %x shift(%s) {epsilon = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf16>) -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_c1_scalar(%x: tensor<f32>) {
  // expected-error @below {{normalizes a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.layer_norm %x {epsilon = 1.0e-5} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @rms_norm_c1(%x: tensor<4x8xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{the scale is 'tensor<4xf32>' where a row of the input has 8 elements}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rms_norm %x scale(%s) {epsilon = 1.0e-5} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @softmax_c1(%x: tensor<f32>) {
  // expected-error @below {{normalizes a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.softmax %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @batch_norm_c1_rank(%x: tensor<8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) {
  // expected-error @below {{'tensor<8xf32>' has no channels}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5, momentum = 0.1} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c1_channels(%x: tensor<4x8x2x2xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<2xf32>, %v: tensor<8xf32>) {
  // expected-error @below {{a statistic or parameter is 'tensor<2xf32>' where the channels of 'tensor<4x8x2x2xf32>' want 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5, momentum = 0.1} : (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<8xf32>) -> (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c1_element(%x: tensor<4x8x2x2xf32>, %s: tensor<8xf32>, %b: tensor<8xf16>, %m: tensor<8xf32>, %v: tensor<8xf32>) {
  // expected-error @below {{a statistic or parameter is 'tensor<8xf16>' where the channels of 'tensor<4x8x2x2xf32>' want 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5, momentum = 0.1} : (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf16>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_grad_c1_grad(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %m: tensor<8xf32>, %r: tensor<8xf32>, %g: tensor<8x4xf32>) {
  // expected-error @below {{the gradient is 'tensor<8x4xf32>' where the input is 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.batch_norm_grad %x, %s, %m, %r, %g : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_grad_c1_channels(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %m: tensor<8xf32>, %r: tensor<8xf32>, %g: tensor<4x8xf32>) {
  // expected-error @below {{a statistic or parameter is 'tensor<4xf32>' where the channels of 'tensor<4x8xf32>' want 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.batch_norm_grad %x, %s, %m, %r, %g : (tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_statistics_c1(%x: tensor<4x8xf32>, %m: tensor<8xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{a statistic or parameter is 'tensor<4xf32>' where the channels of 'tensor<4x8xf32>' want 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = nn.batch_statistics %x, %m, %v {epsilon = 1.0e-05 : f64, momentum = 1.0e-01 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}
