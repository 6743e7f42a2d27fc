// RUN: tmc-opt %s -tmc-split="micro-batches=3 batch-norm=per-micro-batch" | FileCheck %s
// RUN: tmc-opt %s -tmc-split="micro-batches=3 batch-norm=per-micro-batch" -tmc-autodiff=optimizer=sgd -canonicalize | FileCheck %s --check-prefix=STEP
// RUN: tmc-opt %s -tmc-split="micro-batches=3 batch-norm=frozen" | FileCheck %s --check-prefix=FROZEN
// RUN: tmc-opt %s -tmc-split="batch-norm=frozen" | FileCheck %s --check-prefix=ONE
// RUN: not tmc-opt %s -tmc-split="batch-norm=thawed" 2>&1 | FileCheck %s --check-prefix=THAWED

// Of five samples twice two and one. A piece leaves 0.75 of a running statistic.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:     tensor<3xf32> {train.decay = 7.500000e-01 : f64, train.name = "mean", train.updates = 2 : i64}
//  CHECK-SAME:     tensor<3xf32> {train.decay = 7.500000e-01 : f64, train.name = "var", train.updates = 3 : i64}
//       CHECK:   nn.batch_norm {{.*}} -> (tensor<2x3x4xf32>, tensor<3xf32>
// CHECK-LABEL: func @rest(
//       CHECK:   nn.batch_norm {{.*}} -> (tensor<1x3x4xf32>, tensor<3xf32>

// What is added to them is carried, from zeros on. 0.75^3 = 0.421875

// STEP-LABEL: train.step
//       STEP:   %[[POWER:.*]] = arith.constant dense<4.218750e-01> : tensor<3xf32>
//       STEP:   %[[LOOP:.*]]:4 = train.micro_batch 2
//       STEP:   ^bb0(%{{.*}}: tensor<2x3x4xf32>, %{{.*}}: tensor<f32>, %[[M:.*]]: tensor<3xf32>, %[[V:.*]]: tensor<3xf32>, %{{.*}}: tensor<3xf32>):
//       STEP:     %{{.*}}, %[[NM:.*]], %[[NV:.*]], %{{.*}}, %{{.*}} = nn.batch_norm %{{.*}}, %arg1, %{{.*}}, %[[M]], %[[V]]
//       STEP:     train.yield %{{.*}}, %[[NM]], %[[NV]], %{{.*}}
//       STEP:   %{{.*}}, %[[MEAN:.*]], %{{.*}}, %{{.*}}, %{{.*}} = nn.batch_norm %{{.*}}, %arg1, %{{.*}}, %[[LOOP]]#1, %[[LOOP]]#2
//       STEP:   %[[LEFT:.*]] = arith.mulf %arg2, %[[POWER]]
//       STEP:   arith.addf %[[LEFT]], %[[MEAN]]

// FROZEN-LABEL: func @forward(
//   FROZEN-NOT:   train.updates
//   FROZEN-NOT:   nn.batch_norm
//       FROZEN:   math.rsqrt
//       FROZEN:   arith.subf %{{.*}}, %{{.*}} : tensor<2x3x4xf32>
// FROZEN-LABEL: func @rest(

//    ONE-LABEL: func @forward(
//      ONE-NOT:   train.updates
//      ONE-NOT:   nn.batch_norm
//          ONE:   arith.subf %{{.*}}, %{{.*}} : tensor<5x3x4xf32>

// THAWED: error: --batchnorm takes per-micro-batch or frozen, not 'thawed'
func.func @forward(
    %x: tensor<5x3x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<3xf32> {train.role = #train.role<param>, train.name = "w"},
    %mean: tensor<3xf32> {train.role = #train.role<state>, train.name = "mean"},
    %var: tensor<3xf32> {train.role = #train.role<state>, train.name = "var"})
    -> (tensor<f32> {train.loss, train.name = "loss"},
        tensor<3xf32> {train.updates = 2 : i64, train.name = "mean"},
        tensor<3xf32> {train.updates = 3 : i64, train.name = "var"}) {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %y, %nm, %nv, %m, %r = nn.batch_norm %x, %w, %zero, %mean, %var {epsilon = 1.0e-5 : f64, momentum = 0.25 : f64} : (tensor<5x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<5x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %y2 = arith.mulf %y, %y : tensor<5x3x4xf32>
  %loss = nn.reduce sum %y2 over [0, 1, 2] : (tensor<5x3x4xf32>) -> tensor<f32>
  return %loss, %nm, %nv : tensor<f32>, tensor<3xf32>, tensor<3xf32>
}
