// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the convolutions.

func.func @conv_c1_rank(%x: tensor<2x3x5xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{wants an input and a filter of rank 4 and one element type, and has 'tensor<2x3x5xf32>' and 'tensor<4x3x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c1_element(%x: tensor<2x3x5x5xf32>, %f: tensor<4x3x3x3xf16>) {
  // expected-error @below {{wants an input and a filter of rank 4 and one element type, and has 'tensor<2x3x5x5xf32>' and 'tensor<4x3x3x3xf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf16>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c2_channels(%x: tensor<2x3x5x5xf32>, %f: tensor<4x2x3x3xf32>) {
  // expected-error @below {{1 groups of 3 channels don't meet a filter of type 'tensor<4x2x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c2_filters(%x: tensor<2x4x5x5xf32>, %f: tensor<3x2x3x3xf32>) {
  // expected-error @below {{2 groups of 4 channels don't meet a filter of type 'tensor<3x2x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x4x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<2x3x3x3xf32>
  return
}

// -----

func.func @conv_c2_zero(%x: tensor<2x4x5x5xf32>, %f: tensor<4x4x3x3xf32>) {
  // expected-error @below {{0 groups of 4 channels don't meet a filter of type 'tensor<4x4x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 0 : i64} : (tensor<2x4x5x5xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c3_strides(%x: tensor<2x3x5x5xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{has strides [0, 1], dilations [1, 1], window [3, 3] and padding [0, 0, 0, 0], where two positive numbers each, and four of padding, are due}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 0, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c3_dilations(%x: tensor<2x3x5x5xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{has strides [1, 1], dilations [1], window [3, 3]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c3_padding(%x: tensor<2x3x5x5xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{and padding [0, -1, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, -1, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<2x3x5x5xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{a window of [3, 3] doesn't fit in an input of 5 by 5 with padding [0, 0, 0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 3>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x1x1xf32>
  return
}

// -----

func.func @conv_grad_input_c1(%g: tensor<2x4x3x3xf32>, %f: tensor<4x3x3x3xf32>) {
  // expected-error @below {{'nn.conv_grad_input' op takes a gradient of type 'tensor<2x4x3x3xf32>' where the forward result is 'tensor<2x4x4x4xf32>'}}
  %0 = nn.conv_grad_input %g, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x3x3xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x6x6xf32>
  return
}

// -----

func.func @conv_grad_filter_c1(%x: tensor<2x3x6x6xf32>, %g: tensor<2x4x3x3xf32>) {
  // expected-error @below {{'nn.conv_grad_filter' op takes a gradient of type 'tensor<2x4x3x3xf32>' where the forward result is 'tensor<2x4x4x4xf32>'}}
  %0 = nn.conv_grad_filter %x, %g {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<2x4x3x3xf32>) -> tensor<4x3x3x3xf32>
  return
}
