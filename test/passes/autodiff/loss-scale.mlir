// RUN: tmc-opt %s -tmc-autodiff='optimizer=adamw(clip=1) loss-scale=dynamic(start=1024,interval=7) keep-gradients=true' -canonicalize | FileCheck %s
// RUN: tmc-opt %s -tmc-autodiff='optimizer=sgd loss-scale=512' -canonicalize | FileCheck %s --check-prefix=FIXED
// RUN: not tmc-opt %s -tmc-autodiff='loss-scale=dynamic(start=0)' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not tmc-opt %s -tmc-autodiff='loss-scale=dynamic(interval=2.5)' 2>&1 | FileCheck %s --check-prefix=INTERVAL
// RUN: not tmc-opt %s -tmc-autodiff='loss-scale=dynamic(speed=2)' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not tmc-opt %s -tmc-autodiff='loss-scale=64K' 2>&1 | FileCheck %s --check-prefix=WORD

// The gradient of the loss begins as the scale. No update comes before the norm of all
// gradients, from which the number of this update is made, 0 where it overflowed. A
// gradient that is kept for others to read is the loss's own.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[S:[a-z0-9]+]]: tensor<f32> {train.init = 1.024000e+03 : f32, train.name = "loss_scale", train.role = #train.role<state>, train.slot = ""}
//  CHECK-SAME:   %[[CLEAN:[a-z0-9]+]]: tensor<i64> {train.init = 0 : i64, train.name = "loss_scale.clean_steps"
//  CHECK-SAME:   %[[COUNT:[a-z0-9]+]]: tensor<i64> {train.init = 0 : i64, train.name = "optimizer.step"
//       CHECK:   %[[SEED:.*]] = nn.broadcast %[[S]]
//       CHECK:   %[[DZ:.*]] = arith.mulf %[[SEED]]
//       CHECK:   %[[DW:.*]] = nn.matmul
//       CHECK:   %[[SQUARE:.*]] = train.square_sum %[[DW]]
//       CHECK:   %[[NORM:.*]], %[[CLIP:.*]] = train.grad_norm %[[SQUARE]] scale(%[[S]]) {max_norm = 1.000000e+00 : f64}
//       CHECK:   %[[NS:.*]], %[[NCLEAN:.*]], %[[NCOUNT:.*]], %[[T:.*]] = train.loss_scale %[[NORM]] scale(%[[S]]) clean(%[[CLEAN]]) count(%[[COUNT]]) {backoff = 5.000000e-01 : f64, growth = 2.000000e+00 : f64, interval = 7 : i64}
//       CHECK:   train.adamw {{.*}} step(%[[T]]) clip(%[[CLIP]])
//       CHECK:   %[[G:.*]] = arith.divf %[[DW]]
//       CHECK:   train.return %[[NORM]], %[[NS]], %[[NCLEAN]], %[[NCOUNT]], {{.*}}, %[[G]] :

// FIXED: tensor<f32> {train.init = 5.120000e+02 : f32, train.name = "loss_scale"
// FIXED: %[[NORM:.*]], %[[CLIP:.*]] = train.grad_norm {{.*}} scale(%{{.*}}) {max_norm = 0.000000e+00 : f64}
// FIXED: train.loss_scale %[[NORM]] {{.*}}interval = 0 : i64
// FIXED: train.sgd {{.*}} clip(%[[CLIP]])

// ZERO: loss scale: a scale is a positive number
// INTERVAL: loss scale: interval is a number of steps, 1 at least
// OPTION: loss scale: 'dynamic' has no option 'speed'
// WORD: loss scale: '64K' is none of auto, none, dynamic and a number
func.func @forward(
    %x: tensor<2x3xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<3x4xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.name = "loss", train.loss}) {
  %y = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %z = arith.mulf %y, %y : tensor<2x4xf32>
  %loss = nn.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
