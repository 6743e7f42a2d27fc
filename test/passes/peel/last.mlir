// RUN: tmc-opt %s -split-input-file -tmc-peel | FileCheck %s

// Of three trips two stay, on the first four of six rows. The last one adds
// onto what they leave, and the update reads the whole sum.

// CHECK-LABEL: train.step @three(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<6x4xf32>
//       CHECK:   %[[HEAD:.*]] = nn.slice %[[X]] [0, 0] step [1, 1] : (tensor<6x4xf32>) -> tensor<4x4xf32>
//       CHECK:   %[[PIECE:.*]] = nn.slice %[[X]] [4, 0] step [1, 1] : (tensor<6x4xf32>) -> tensor<2x4xf32>
//       CHECK:   %[[SUM:.*]] = train.micro_batch 2 slices(%[[HEAD]] : tensor<4x4xf32>) -> tensor<4x5xf32>
//       CHECK:     nn.matmul %{{.*}}, %{{.*}} transpose_lhs acc(%{{.*}})
//       CHECK:     train.yield
//       CHECK:   %[[DY:.*]] = nn.matmul %[[PIECE]], %{{.*}} : (tensor<2x4xf32>, tensor<4x5xf32>)
//       CHECK:   %[[ALL:.*]] = nn.matmul %[[PIECE]], %[[DY]] transpose_lhs acc(%[[SUM]])
//       CHECK:   train.sgd %{{.*}}, %[[ALL]]
train.step @three(
    %x: tensor<6x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x5xf32> {train.role = #train.role<param>, train.name = "w"},
    %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
    %t: tensor<i64> {train.role = #train.role<scalar>, train.name = "step"})
    -> (tensor<4x5xf32> {train.updates = "w"}) {
  %g = train.micro_batch 3 slices(%x : tensor<6x4xf32>) -> tensor<4x5xf32> {
  ^bb0(%piece: tensor<2x4xf32>, %sum: tensor<4x5xf32>):
    %dy = nn.matmul %piece, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %next = nn.matmul %piece, %dy transpose_lhs acc(%sum) : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    train.yield %next : tensor<4x5xf32>
  }
  %p, %s = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x5xf32>, tensor<f32>)
  train.return %p : tensor<4x5xf32>
}

// -----

// Of two trips no loop is left. The first product writes what the second adds
// onto; a generated kernel has the zeros that it would read in its body.

// CHECK-LABEL: train.step @two(
//   CHECK-NOT:   train.micro_batch
//       CHECK:   %[[FIRST:.*]] = nn.slice %{{.*}} [0, 0]
//       CHECK:   %[[SECOND:.*]] = nn.slice %{{.*}} [2, 0]
//       CHECK:   %[[PART:.*]] = nn.matmul %[[FIRST]], %{{.*}} transpose_lhs :
//       CHECK:   %[[COUNT:.*]] = nn.fused (%{{[a-z0-9]+}} = %[[FIRST]]) : (tensor<2x4xf32>) -> tensor<2x4xf32>
//       CHECK:     arith.constant dense<0.000000e+00> : tensor<2x4xf32>
//       CHECK:   %[[G:.*]] = nn.matmul %[[SECOND]], %{{.*}} transpose_lhs acc(%[[PART]])
//       CHECK:   nn.fused (%{{[a-z0-9]+}} = %[[COUNT]], %{{[a-z0-9]+}} = %[[SECOND]])
//       CHECK:   train.sgd %{{.*}}, %[[G]]
train.step @two(
    %x: tensor<4x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x5xf32> {train.role = #train.role<param>, train.name = "w"},
    %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
    %t: tensor<i64> {train.role = #train.role<scalar>, train.name = "step"})
    -> (tensor<4x5xf32> {train.updates = "w"}, tensor<2x4xf32> {train.name = "count"}) {
  %g, %c = train.micro_batch 2 slices(%x : tensor<4x4xf32>) -> tensor<4x5xf32>, tensor<2x4xf32> {
  ^bb0(%piece: tensor<2x4xf32>, %sum: tensor<4x5xf32>, %count: tensor<2x4xf32>):
    %dy = nn.matmul %piece, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %next = nn.matmul %piece, %dy transpose_lhs acc(%sum) : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %more = nn.fused (%a = %count, %b = %piece) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = arith.addf %a, %b : tensor<2x4xf32>
      nn.yield %0 : tensor<2x4xf32>
    }
    train.yield %next, %more : tensor<4x5xf32>, tensor<2x4xf32>
  }
  %p, %s = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x5xf32>, tensor<f32>)
  train.return %p, %c : tensor<4x5xf32>, tensor<2x4xf32>
}

// -----

// A loop on a part of the batch: what is left of it runs elsewhere.

// CHECK-LABEL: train.step @part(
//       CHECK:   train.micro_batch 2
//   CHECK-NOT:   nn.slice
//       CHECK:   train.sgd
train.step @part(
    %x: tensor<5x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x5xf32> {train.role = #train.role<param>, train.name = "w"},
    %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
    %t: tensor<i64> {train.role = #train.role<scalar>, train.name = "step"})
    -> (tensor<4x5xf32> {train.updates = "w"}) {
  %head = nn.slice %x [0, 0] step [1, 1] : (tensor<5x4xf32>) -> tensor<4x4xf32>
  %g = train.micro_batch 2 slices(%head : tensor<4x4xf32>) -> tensor<4x5xf32> {
  ^bb0(%piece: tensor<2x4xf32>, %sum: tensor<4x5xf32>):
    %dy = nn.matmul %piece, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %next = nn.matmul %piece, %dy transpose_lhs acc(%sum) : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    train.yield %next : tensor<4x5xf32>
  }
  %p, %s = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x5xf32>, tensor<f32>)
  train.return %p : tensor<4x5xf32>
}
