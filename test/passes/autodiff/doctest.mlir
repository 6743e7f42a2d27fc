// RUN: tmc-opt %s -tmc-autodiff='optimizer=sgd(momentum=0.9)' -canonicalize | FileCheck %s

// y = x w; loss = sum(y y): dy = 2 y as y + y, dw = xᵀ dy; x is a batch and
// takes no gradient. The update of w follows its gradient, and the norm all
// updates.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<2x3xf32> {train.name = "x", train.role = #train.role<batch>}
//  CHECK-SAME:   %[[W:[a-z0-9]+]]: tensor<3x4xf32> {train.name = "w", train.role = #train.role<param>}
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: tensor<3x4xf32> {train.init = "zeros", train.name = "w.momentum_buffer", train.role = #train.role<state>, train.slot = "w"}
//       CHECK:   %[[Y:.*]] = nn.matmul %[[X]], %[[W]]
//       CHECK:   %[[LOSS:.*]] = nn.reduce sum
//       CHECK:   %[[DY:.*]] = arith.addf
//       CHECK:   %[[DW:.*]] = nn.matmul %[[X]], %[[DY]] transpose_lhs
//       CHECK:   %[[NEW:.*]], %[[NEWM:.*]], %[[SQUARE:.*]] = train.sgd %[[W]], %[[DW]] momentum(%[[M]])
//       CHECK:   %[[NORM:.*]], %{{.*}} = train.grad_norm %[[SQUARE]]
//       CHECK:   train.return %[[NEW]], %[[NEWM]], %[[NORM]], %[[LOSS]]
func.func @forward(
    %x: tensor<2x3xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<3x4xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.name = "loss", train.loss}) {
  %y = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %z = arith.mulf %y, %y : tensor<2x4xf32>
  %loss = nn.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
