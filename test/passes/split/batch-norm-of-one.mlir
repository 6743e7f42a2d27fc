// RUN: not tmc-opt %s -tmc-split 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: tmc-opt %s -tmc-split=batch-norm=frozen
// RUN: sed s/1x3x/4x3x/g %s > %t
// RUN: not tmc-opt %t -tmc-split="micro-batches=4 batch-norm=per-micro-batch" 2>&1 | FileCheck %s --check-prefix=PIECES
// RUN: tmc-opt %t -tmc-split="micro-batches=3 batch-norm=per-micro-batch" 2>&1 | FileCheck %s --check-prefix=EQUAL
// RUN: tmc-opt %t -tmc-split="micro-batches=2 batch-norm=per-micro-batch"

// One value for each channel, of the batch or of one of its pieces.

//  WHOLE: error: has one value for each channel, which has no variance
//  WHOLE: note: take a larger batch, or --batchnorm=frozen for the running statistics
// PIECES: error: can't be computed in 4 micro-batches: a micro-batch has one value for each channel, which has no variance
//  EQUAL: warning: a batch of 4 makes 2 micro-batches of at most 2, not 3
func.func @forward(
    %x: tensor<1x3x1xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<3xf32> {train.role = #train.role<param>, train.name = "w"},
    %mean: tensor<3xf32> {train.role = #train.role<state>, train.name = "mean"},
    %var: tensor<3xf32> {train.role = #train.role<state>, train.name = "var"})
    -> (tensor<f32> {train.loss, train.name = "loss"},
        tensor<3xf32> {train.updates = 2 : i64, train.name = "mean"},
        tensor<3xf32> {train.updates = 3 : i64, train.name = "var"}) {
  %y, %nm, %nv, %m, %r = nn.batch_norm %x, %w, %w, %mean, %var {epsilon = 1.0e-5 : f64, momentum = 0.25 : f64} : (tensor<1x3x1xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<1x3x1xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %y2 = arith.mulf %y, %y : tensor<1x3x1xf32>
  %loss = nn.reduce sum %y2 over [0, 1, 2] : (tensor<1x3x1xf32>) -> tensor<f32>
  return %loss, %nm, %nv : tensor<f32>, tensor<3xf32>, tensor<3xf32>
}
