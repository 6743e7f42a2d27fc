// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the pools.

func.func @max_pool_c1(%x: tensor<2x3x5xf32>) {
  // expected-error @below {{'tensor<2x3x5xf32>' is no activation of rank 4}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.max_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x3x5xf32>) -> tensor<2x3x3xf32>
  return
}

// -----

func.func @max_pool_c3_window(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{has strides [1, 1], dilations [1, 1], window [3, 0] and padding [0, 0, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.max_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 0>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  return
}

// -----

func.func @max_pool_c3_padding(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{and padding [0, 0], where two positive numbers each}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.max_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x3x3xf32>
  return
}

// -----

func.func @max_pool_c4(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{a window of [6, 3] doesn't fit in an input of 5 by 5 with padding [0, 0, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.max_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 6, 3>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x1x1xf32>
  return
}

// -----

func.func @avg_pool_c1(%x: tensor<2x3x5xf32>) {
  // expected-error @below {{'tensor<2x3x5xf32>' is no activation of rank 4}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.avg_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x3x5xf32>) -> tensor<2x3x3xf32>
  return
}

// -----

func.func @avg_pool_c3_window(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{has strides [1, 1], dilations [1, 1], window [3, 0] and padding [0, 0, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.avg_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 0>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  return
}

// -----

func.func @avg_pool_c3_padding(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{and padding [0, 0], where two positive numbers each}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.avg_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x3x3xf32>
  return
}

// -----

func.func @avg_pool_c4(%x: tensor<2x3x5x5xf32>) {
  // expected-error @below {{a window of [6, 3] doesn't fit in an input of 5 by 5 with padding [0, 0, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.avg_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 6, 3>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x1x1xf32>
  return
}

// -----

func.func @max_pool_grad_c1_grad(%x: tensor<2x3x4x4xf32>, %g: tensor<2x3x3x3xf32>) {
  // expected-error @below {{'nn.max_pool_grad' op takes a gradient of type 'tensor<2x3x3x3xf32>' where the forward result is 'tensor<2x3x2x2xf32>'}}
  %0 = nn.max_pool_grad %x, %g {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x3x4x4xf32>, tensor<2x3x3x3xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @max_pool_grad_c1_result(%x: tensor<2x3x4x4xf32>, %g: tensor<2x3x2x2xf32>) {
  // expected-error @below {{'nn.max_pool_grad' op makes a gradient of type 'tensor<2x3x2x2xf32>' for an input of type 'tensor<2x3x4x4xf32>'}}
  %0 = nn.max_pool_grad %x, %g {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x3x4x4xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x2x2xf32>
  return
}

// -----

func.func @avg_pool_grad_c1(%g: tensor<2x3x3x3xf32>) {
  // expected-error @below {{'nn.avg_pool_grad' op takes a gradient of type 'tensor<2x3x3x3xf32>' where the forward result is 'tensor<2x3x2x2xf32>'}}
  %0 = nn.avg_pool_grad %g {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x3x3x3xf32>) -> tensor<2x3x4x4xf32>
  return
}
