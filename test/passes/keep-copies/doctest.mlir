// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-keep-copies))' -split-input-file | FileCheck %s

// What a product multiplies is written by the update. %b is rounded for pointwise work
// alone, which rounds as it reads: its cast stays. The copy of %w counts as a state, whose
// new value is the step's last result.

// CHECK-LABEL: train.step @beside
//  CHECK-SAME:   %[[C:arg6]]: tensor<4x4xbf16> {train.copy_of = "w", train.name = "w.bf16", train.role = #train.role<state>}
//  CHECK-SAME:   tensor<4x4xbf16> {train.name = "w.bf16", train.updates = 6 : i64}
//  CHECK-NEXT:   arith.truncf %arg2 : tensor<4xf32> to tensor<4xbf16>
//  CHECK-NEXT:   nn.matmul %arg0, %[[C]] :
//       CHECK:   nn.matmul %{{.*}}, %[[C]] transpose_rhs
//       CHECK:   %[[P:.*]], %[[S:.*]]:2, %[[Q:.*]] = train.sgd %arg1, %{{.*}} momentum(%arg3) lr(%arg4) step(%arg5) copy(%[[C]])
//  CHECK-SAME:     -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>, tensor<f32>)
//       CHECK:   train.return %[[P]], %[[S]]#0, %[[Q]], %{{.*}}, %[[S]]#1
train.step @beside(%x: tensor<2x4xbf16> {train.name = "x", train.role = #train.role<batch>},
                   %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                   %b: tensor<4xf32> {train.name = "b", train.role = #train.role<param>},
                   %m: tensor<4x4xf32> {train.name = "w.momentum_buffer", train.role = #train.role<state>, train.slot = "w"},
                   %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                   %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64},
        tensor<4x4xf32> {train.name = "w.momentum_buffer", train.updates = 3 : i64},
        tensor<f32> {train.name = "square"}, tensor<2x4xbf16> {train.name = "y"}) {
  %n = arith.truncf %w : tensor<4x4xf32> to tensor<4x4xbf16>
  %c = arith.truncf %b : tensor<4xf32> to tensor<4xbf16>
  %y = nn.matmul %x, %n : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  %r = nn.broadcast %c to [1] : (tensor<4xbf16>) -> tensor<2x4xbf16>
  %z = arith.addf %y, %r : tensor<2x4xbf16>
  %d = nn.matmul %z, %n transpose_rhs : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  %g = nn.matmul %x, %d transpose_lhs : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
  %p, %v, %q = train.sgd %w, %g momentum(%m) lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.9 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>)
  train.return %p, %v, %q, %d : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<2x4xbf16>
}

// -----

// Read through a view in a loop, with a gradient that is clipped. A second type stays a
// cast, and so does what nothing updates. A name that is taken is another's.

// CHECK-LABEL: train.step @loop
//  CHECK-SAME:   %[[C:arg7]]: tensor<16xf16> {train.copy_of = "w", train.name = "w.2.f16", train.role = #train.role<state>}
//  CHECK-NEXT:   %[[B:.*]] = arith.truncf %arg1 : tensor<16xf32> to tensor<16xbf16>
//  CHECK-NEXT:   %[[F:.*]] = arith.truncf %arg2
//       CHECK:     %[[V:.*]] = nn.reshape %[[C]]
//       CHECK:     nn.matmul %{{.*}}, %[[V]]
//       CHECK:   %{{.*}}, %[[N:.*]], %{{.*}} = train.sgd %arg1, %{{.*}} lr(%arg4) step(%arg5) clip(%arg6) copy(%[[C]])
//       CHECK:   train.return %{{.*}}, %[[N]] : tensor<16xf32>, tensor<16xf16>
train.step @loop(%x: tensor<4x4xf16> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<16xf32> {train.name = "w", train.role = #train.role<param>},
                 %f: tensor<4x4xf32> {train.frozen, train.name = "f", train.role = #train.role<param>},
                 %s: tensor<f32> {train.name = "w.f16", train.role = #train.role<state>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>},
                 %clip: tensor<f32> {train.name = "clip", train.role = #train.role<scalar>})
    -> (tensor<16xf32> {train.name = "w", train.updates = 1 : i64}) {
  %n = arith.truncf %w : tensor<16xf32> to tensor<16xf16>
  %b = arith.truncf %w : tensor<16xf32> to tensor<16xbf16>
  %e = arith.truncf %f : tensor<4x4xf32> to tensor<4x4xf16>
  %sum = train.micro_batch 2 slices(%x : tensor<4x4xf16>) -> tensor<4x4xf32> {
  ^bb0(%piece: tensor<2x4xf16>, %carried: tensor<4x4xf32>):
    %v = nn.reshape %n : (tensor<16xf16>) -> tensor<4x4xf16>
    %y = nn.matmul %piece, %v : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
    %z = nn.matmul %y, %e : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
    %g = nn.matmul %piece, %z transpose_lhs : (tensor<2x4xf16>, tensor<2x4xf16>) -> tensor<4x4xf32>
    %next = arith.addf %carried, %g : tensor<4x4xf32>
    train.yield %next : tensor<4x4xf32>
  }
  %g = nn.reshape %sum : (tensor<4x4xf32>) -> tensor<16xf32>
  %h = arith.extf %b : tensor<16xbf16> to tensor<16xf32>
  %k = arith.addf %g, %h : tensor<16xf32>
  %p, %q = train.sgd %w, %k lr(%lr) step(%t) clip(%clip) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<16xf32>, tensor<f32>)
  train.return %p : tensor<16xf32>
}

// -----

// Moments in 8 bits. What no product multiplies has no copy.

// CHECK-LABEL: train.step @codes
//  CHECK-SAME:   %[[C:arg8]]: tensor<4x4xbf16> {train.copy_of = "w",
//       CHECK:   %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[N:.*]], %{{.*}} = train.adamw8bit %arg1, {{.*}} copy(%[[C]])
//       CHECK:   train.return %[[P]], %[[N]]
train.step @codes(%x: tensor<4x4xbf16> {train.name = "x", train.role = #train.role<batch>},
                  %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                  %m: tensor<4x4xi8> {train.name = "m", train.role = #train.role<state>, train.slot = "w"},
                  %mm: tensor<1xf32> {train.name = "mm", train.role = #train.role<state>, train.slot = "w"},
                  %v: tensor<4x4xi8> {train.name = "v", train.role = #train.role<state>, train.slot = "w"},
                  %vm: tensor<1xf32> {train.name = "vm", train.role = #train.role<state>, train.slot = "w"},
                  %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                  %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}) {
  %n = arith.truncf %w : tensor<4x4xf32> to tensor<4x4xbf16>
  %g = nn.matmul %x, %n : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xf32>
  %0:6 = train.adamw8bit %w, %g, %m, %mm, %v, %vm lr(%lr) step(%t) {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 0.1 : f64, weight_decay = 0.0 : f64}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xi8>, tensor<1xf32>, tensor<4x4xi8>, tensor<1xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<4x4xf32>, tensor<4x4xi8>, tensor<1xf32>, tensor<4x4xi8>, tensor<1xf32>, tensor<f32>)
  train.return %0#0 : tensor<4x4xf32>
}
