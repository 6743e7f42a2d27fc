// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:delayed}))' | FileCheck %s

// Each quantized value has a history of its own: a state, in which
// the step's amax overwrites the oldest one. A parameter's is found once, what is quantized in the
// loop by the largest of all its runs. Another state counts what saturates.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[H0:arg4]]: tensor<1024xf32> {train.init = "zeros", train.name = "w.input.amax_history", train.role = #train.role<state>, train.slot = ""}
//  CHECK-SAME:   %[[H1:arg5]]: tensor<1024xf32> {train.init = "zeros", train.name = "w.amax_history"
//  CHECK-SAME:   %[[H2:arg6]]: tensor<1024xf32> {train.init = "zeros", train.name = "w.gradient.amax_history"
//  CHECK-SAME:   %[[S:arg7]]: tensor<i64> {train.init = "zeros", train.name = "saturations", train.role = #train.role<state>, train.slot = ""}
//  CHECK-SAME:   tensor<1024xf32> {train.name = "w.input.amax_history", train.updates = 4 : i64}
//  CHECK-SAME:   tensor<i64> {train.name = "saturations", train.updates = 7 : i64}
//       CHECK:   %{{.*}}, %{{.*}}, %[[W:.*]], %[[SW:.*]] = nn.quantize %arg1 history(%[[H1]]) : (tensor<4x4xf32>, tensor<1024xf32>) -> (tensor<4x4xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<i64>)
//       CHECK:   %[[L:.*]]:6 = train.micro_batch 2 slices(%arg0
//       CHECK:   ^bb0(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<f32>, %{{.*}}: tensor<4x4xf32>, %[[BX:.*]]: tensor<f32>, %[[CX:.*]]: tensor<i64>, %[[BD:.*]]: tensor<f32>, %[[CD:.*]]: tensor<i64>):
//       CHECK:     %{{.*}}, %{{.*}}, %[[AX:.*]], %[[SX:.*]] = nn.quantize %{{.*}} history(%[[H0]]) : (tensor<2x4xf32>, tensor<1024xf32>) -> (tensor<2x4xf8E4M3FN>
//       CHECK:     %{{.*}}, %{{.*}}, %[[AD:.*]], %[[SD:.*]] = nn.quantize %{{.*}} history(%[[H2]]) : (tensor<2x4xf32>, tensor<1024xf32>) -> (tensor<2x4xf8E5M2>
//       CHECK:     %[[MX:.*]] = arith.maximumf %[[BX]], %[[AX]]
//       CHECK:     %[[NX:.*]] = arith.addi %[[CX]], %[[SX]]
//       CHECK:     %[[MD:.*]] = arith.maximumf %[[BD]], %[[AD]]
//       CHECK:     %[[ND:.*]] = arith.addi %[[CD]], %[[SD]]
//       CHECK:     train.yield %{{.*}}, %{{.*}}, %[[MX]], %[[NX]], %[[MD]], %[[ND]]
//       CHECK:   %[[V:.*]] = nn.broadcast %[[L]]#2 to [] : (tensor<f32>) -> tensor<1024xf32>
//       CHECK:   %[[P:.*]] = arith.remsi %arg3
//       CHECK:   %[[I:.*]] = nn.iota {dim = 0 : i64}
//       CHECK:   %[[B:.*]] = nn.broadcast %[[P]] to []
//       CHECK:   %[[M:.*]] = arith.cmpi eq, %[[I]], %[[B]]
//       CHECK:   %[[N:.*]] = arith.select %[[M]], %[[V]], %[[H0]]
//       CHECK:   %[[S1:.*]] = arith.addi %[[L]]#3, %[[L]]#5
//       CHECK:   %[[S2:.*]] = arith.addi %[[S1]], %[[SW]]
//       CHECK:   %[[S3:.*]] = arith.addi %[[S]], %[[S2]]
//       CHECK:   train.return %{{.*}}, %{{.*}}, %[[N]], %{{.*}}, %{{.*}}, %[[S3]] :
train.step @step(%x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}) {
  %sums:2 = train.micro_batch 2 slices(%x : tensor<4x4xf32>) -> tensor<f32>, tensor<4x4xf32> {
  ^bb0(%piece: tensor<2x4xf32>, %carriedLoss: tensor<f32>, %carried: tensor<4x4xf32>):
    %y = nn.matmul %piece, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("a")
    %s = nn.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %loss = arith.addf %carriedLoss, %s : tensor<f32>
    %d = arith.addf %y, %y : tensor<2x4xf32>
    %g = nn.matmul %piece, %d transpose_lhs : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32> loc("a")
    %next = arith.addf %carried, %g : tensor<4x4xf32>
    train.yield %loss, %next : tensor<f32>, tensor<4x4xf32>
  }
  %n, %q = train.sgd %w, %sums#1 lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %sums#0, %n : tensor<f32>, tensor<4x4xf32>
}
