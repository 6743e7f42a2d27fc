// RUN: tmc-opt %s -tmc-cut=ranks=2 -tmc-autodiff="optimizer=adamw8bit" | FileCheck %s
// RUN: not tmc-opt %s -tmc-cut=ranks=2 -tmc-autodiff="optimizer=adamw8bit(min_size=8192)" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not tmc-opt %s -tmc-cut=ranks=32 -tmc-autodiff="optimizer=adamw8bit(min_size=16)" 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not tmc-opt %s -tmc-cut=ranks=2 -tmc-autodiff="optimizer=adafactor" 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not tmc-opt %s -tmc-cut=ranks=2 -tmc-autodiff="optimizer=adamw(moments=bf16)" 2>&1 | FileCheck %s --check-prefix=DRAWN

// Moments in codes have a scale for 256 of them. A rank has 1024 columns in each of
// four rows: four scales, side by side.

// CHECK-LABEL: train.step
//  CHECK-SAME:   tensor<4x1024xi8> {train.cut = #train.cut<tensor<4x2048xi8>, dim 1, runs 1>, {{[^}]*}}train.name = "w1.exp_avg.codes"
//  CHECK-SAME:   tensor<16xf32> {train.cut = #train.cut<tensor<32xf32>, dim 0, runs 4>, {{[^}]*}}train.name = "w1.exp_avg.max"
//  CHECK-SAME:   tensor<16xf32> {train.cut = #train.cut<tensor<32xf32>, dim 0, runs 1>, {{[^}]*}}train.name = "w2.exp_avg.max"

// One device would have codes where a rank's piece is too small for them; a block
// would be of two ranks; all elements are updated together; or they draw numbers.

//    FEW: error: is cut over ranks, 1024 elements side by side, and the optimizer can't update such pieces
// BLOCKS: error: is cut over ranks, 64 elements side by side, and the optimizer can't update such pieces
//  WHOLE: error: is cut over ranks, 1024 elements side by side, and the optimizer can't update such pieces
//  DRAWN: error: is cut over ranks, 1024 elements side by side, and the optimizer can't update such pieces
func.func @forward(
    %x: tensor<8x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w1: tensor<4x2048xf32> {train.role = #train.role<param>, train.name = "w1"},
    %w2: tensor<2048x4xf32> {train.role = #train.role<param>, train.name = "w2"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %h = nn.matmul %x, %w1 : (tensor<8x4xf32>, tensor<4x2048xf32>) -> tensor<8x2048xf32>
  %a = math.tanh %h : tensor<8x2048xf32>
  %y = nn.matmul %a, %w2 : (tensor<8x2048xf32>, tensor<2048x4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
