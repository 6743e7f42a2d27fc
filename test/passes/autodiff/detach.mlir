// RUN: tmc-opt %s -tmc-autodiff='optimizer=sgd(momentum=0)' -canonicalize | FileCheck %s

// loss = sum(w detach(w)): the gradient is detach(w), once; the op itself is
// gone.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[W:[a-z0-9]+]]: tensor<3xf32> {train.name = "w"
//       CHECK:   %[[Z:.*]] = arith.mulf %[[W]], %[[W]]
//       CHECK:   nn.reduce sum %[[Z]]
//   CHECK-NOT:   nn.detach
//   CHECK-NOT:   arith.addf
//       CHECK:   %[[G:.*]] = arith.mulf %{{.*}}, %[[W]]
//       CHECK:   train.sgd %[[W]], %[[G]] lr
//   CHECK-NOT:   nn.detach
func.func @forward(
    %w: tensor<3xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.name = "loss", train.loss}) {
  %d = nn.detach %w : (tensor<3xf32>) -> tensor<3xf32>
  %z = arith.mulf %w, %d : tensor<3xf32>
  %loss = nn.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
