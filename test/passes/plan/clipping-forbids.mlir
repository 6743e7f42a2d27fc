// Clipping by the global norm reads every gradient before the first update: the
// gradients wait, or are recomputed once the norm is known.
//
// As in early-update.mlir 18 MiB leave room for one gradient. Whichever is alive
// at the norm is used first; the two others run twice.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=18874368}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=27262976}))' | FileCheck %s --check-prefix=ROOM

// CHECK: recomputed_ops = 2 : i64
// CHECK-NOT: train.sgd
// CHECK: train.grad_norm
// CHECK: train.sgd
// CHECK: nn.matmul {{.*}}train.instance = 1
// CHECK: train.sgd
// CHECK: nn.matmul {{.*}}train.instance = 1
// CHECK: train.sgd

// With room for all three (24.5 MiB and scratch), the norm still comes first.
// ROOM: recomputed_ops = 0 : i64
// ROOM-NOT: train.sgd
// ROOM: train.grad_norm
// ROOM-COUNT-3: train.sgd

train.step @step(%x: tensor<64x1024xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %y: tensor<64x1024xf32> {train.role = #train.role<batch>, train.name = "y"},
                 %w1: tensor<1024x1024xf32> {train.role = #train.role<param>, train.name = "w1"},
                 %w2: tensor<1024x1024xf32> {train.role = #train.role<param>, train.name = "w2"},
                 %w3: tensor<1024x1024xf32> {train.role = #train.role<param>, train.name = "w3"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<1024x1024xf32> {train.updates = 2 : i64, train.name = "w1"},
        tensor<1024x1024xf32> {train.updates = 3 : i64, train.name = "w2"},
        tensor<1024x1024xf32> {train.updates = 4 : i64, train.name = "w3"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %g1 = nn.matmul %x, %y transpose_lhs : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc("g1")
  %g2 = nn.matmul %y, %x transpose_lhs : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc("g2")
  %g3 = nn.matmul %x, %x transpose_lhs : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc("g3")
  %loss = nn.fused (%a0 = %x) : (tensor<64x1024xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<64x1024xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  %q1 = train.square_sum %g1 : (tensor<1024x1024xf32>) -> tensor<f32> loc("q1")
  %q2 = train.square_sum %g2 : (tensor<1024x1024xf32>) -> tensor<f32> loc("q2")
  %q3 = train.square_sum %g3 : (tensor<1024x1024xf32>) -> tensor<f32> loc("q3")
  %norm, %clip = train.grad_norm %q1, %q2, %q3 {max_norm = 1.0 : f64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) loc("norm")
  %n1, %s1 = train.sgd %w1, %g1 lr(%lr) step(%n) clip(%clip) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w1")
  %n2, %s2 = train.sgd %w2, %g2 lr(%lr) step(%n) clip(%clip) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w2")
  %n3, %s3 = train.sgd %w3, %g3 lr(%lr) step(%n) clip(%clip) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w3")
  train.return %n1, %n2, %n3, %loss : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>
}
