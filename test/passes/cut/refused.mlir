// RUN: not tmc-opt %s -tmc-cut=ranks=2 --split-input-file 2>&1 | FileCheck %s

// A norm over the hidden columns sees all of them.
// CHECK: error: the model has no heads or hidden columns that 2 ranks could share
// CHECK: note: {{.*}}the sum of 'second' stays whole: norm can't be cut so
func.func @forward(
    %x: tensor<8x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x16xf32> {train.role = #train.role<param>, train.name = "w"},
    %s: tensor<16xf32> {train.role = #train.role<param>, train.name = "s"},
    %v: tensor<16x4xf32> {train.role = #train.role<param>, train.name = "v"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("first")
  %a = nn.rms_norm %h scale(%s) {epsilon = 1.0e-6 : f64} : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32> loc("norm")
  %y = nn.matmul %a, %v : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("second")
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What else reads the columns returns them.
// CHECK: error: the model has no heads
// CHECK: note: {{.*}}the sum of 'first' stays whole: 'x' would be cut, and is no parameter
// CHECK: note: {{.*}}the sum of 'second' stays whole: first is a result of the model
func.func @forward(
    %x: tensor<8x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x16xf32> {train.role = #train.role<param>, train.name = "w"},
    %v: tensor<16x4xf32> {train.role = #train.role<param>, train.name = "v"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<8x16xf32> {train.name = "hidden"}) {
  %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("first")
  %y = nn.matmul %h, %v : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("second")
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss, %h : tensor<f32>, tensor<8x16xf32>
}

// -----

// One table can't be cut along its rows and along its columns: its other reader
// would sum over them, too.
// CHECK: error: the model has no heads
// CHECK: note: {{.*}}the sum of 'second' stays whole: 'x' would be cut, and is no parameter
func.func @forward(
    %x: tensor<8x16xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %h = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("first")
  %a = nn.gelu %h {tanh} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = nn.matmul %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("second")
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
