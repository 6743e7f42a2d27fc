// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=0}),canonicalize)" | FileCheck %s --check-prefix=WHOLE
// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=2}),canonicalize)" | FileCheck %s --check-prefix=MOMENTS
// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=3}),canonicalize)" | FileCheck %s --check-prefix=ALL
// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=3 whole=1}),canonicalize)" | FileCheck %s --check-prefix=FIRST

// A parameter of 128 x 128, of which each of two ranks updates a half, and a
// bias that is too small to be cut. The small sums ride together: the bias's
// and those of squares.

// WHOLE-LABEL: train.step @step(
//  WHOLE-SAME:   %[[W:[a-z0-9]+]]: tensor<128x128xf32> {train.name = "w"
//  WHOLE-SAME:   %[[M:[a-z0-9]+]]: tensor<128x128xf32> {train.name = "w.momentum_buffer"
//       WHOLE:   %[[P:.*]] = nn.exchange %{{.*}} over dp of 2 : tensor<128x128xf32>
//  WHOLE-NEXT:   %[[S:.*]] = nn.sum_pieces %[[P]] : tensor<2x8192xf32>
//       WHOLE:   train.square_sum %[[S]]
//       WHOLE:   %[[G:.*]] = nn.gather %[[S]] over dp of 2 : tensor<8192xf32> to tensor<128x128xf32>
//       WHOLE:   train.sgd %[[W]], %[[G]] momentum(%[[M]])

// MOMENTS-LABEL: train.step @step(
//  MOMENTS-SAME:   %[[W:[a-z0-9]+]]: tensor<128x128xf32> {train.name = "w"
//  MOMENTS-SAME:   %[[M:[a-z0-9]+]]: tensor<8192xf32> {train.name = "w.momentum_buffer", {{.*}}train.whole = tensor<128x128xf32>}
//       MOMENTS:   %[[S:.*]] = nn.sum_pieces %{{.*}} : tensor<2x8192xf32>
//       MOMENTS:   %[[OLD:.*]] = nn.shard_of %[[W]] over dp of 2 : tensor<128x128xf32>
//       MOMENTS:   %[[NEW:.*]], %[[MOVED:.*]], %[[SQUARE:.*]] = train.sgd %[[OLD]], %[[S]] momentum(%[[M]])
//       MOMENTS:   %[[HOME:.*]] = nn.gather %[[NEW]] over dp of 2 : tensor<8192xf32> to tensor<128x128xf32>
//       MOMENTS:   nn.concat %{{.*}}, %{{.*}} {dim = 0 : i64} : (tensor<1xf32>, tensor<128xf32>) -> tensor<129xf32>
//  MOMENTS-NEXT:   nn.sum_over %{{.*}} over dp of 2 : tensor<129xf32>
//       MOMENTS:   train.return %[[HOME]], %[[MOVED]]

// ALL-LABEL: train.step @step(
//  ALL-SAME:   %[[W:[a-z0-9]+]]: tensor<8192xf32> {train.name = "w", train.role = #train.role<param>, train.whole = tensor<128x128xf32>}
//       ALL:   %[[READ:.*]] = nn.gather %[[W]] over dp of 2 : tensor<8192xf32> to tensor<128x128xf32>
//  ALL-NEXT:   nn.matmul %{{.*}}, %[[READ]]
//       ALL:   %[[NEW:.*]], %[[MOVED:.*]], %{{.*}} = train.sgd %[[W]], %{{.*}} momentum(%{{.*}})
//       ALL:   train.return %[[NEW]], %[[MOVED]]
train.step @step(
    %x: tensor<4x128xf32> {train.name = "x", train.role = #train.role<batch>},
    %w: tensor<128x128xf32> {train.name = "w", train.role = #train.role<param>},
    %c: tensor<128xf32> {train.name = "c", train.role = #train.role<param>},
    %m: tensor<128x128xf32> {train.name = "w.momentum_buffer", train.role = #train.role<state>, train.slot = "w"},
    %n: tensor<128xf32> {train.name = "c.momentum_buffer", train.role = #train.role<state>, train.slot = "c"},
    %lr: tensor<f32> {train.name = "lr", train.role = #train.role<scalar>, train.feed = "lr"},
    %t: tensor<i64> {train.name = "step", train.role = #train.role<scalar>, train.feed = "step"})
    -> (tensor<128x128xf32> {train.name = "w", train.updates = 1 : i64},
        tensor<128x128xf32> {train.name = "w.momentum_buffer", train.updates = 3 : i64},
        tensor<128xf32> {train.name = "c", train.updates = 2 : i64},
        tensor<128xf32> {train.name = "c.momentum_buffer", train.updates = 4 : i64},
        tensor<f32> {train.name = "grad_norm"})
    attributes {train.ranks = 2 : i64} {
  %y = nn.matmul %x, %w : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %z = nn.transpose %x [1, 0] : (tensor<4x128xf32>) -> tensor<128x4xf32>
  %g = nn.matmul %z, %y : (tensor<128x4xf32>, tensor<4x128xf32>) -> tensor<128x128xf32>
  %h = nn.reduce sum %y over [0] : (tensor<4x128xf32>) -> tensor<128xf32>
  %G = nn.sum_over %g over dp of 2 : tensor<128x128xf32>
  %p, %q, %s = train.sgd %w, %G momentum(%m) lr(%lr) step(%t) {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<f32>, tensor<i64>) -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<f32>)
  %H = nn.sum_over %h over dp of 2 : tensor<128xf32>
  %d, %e, %r = train.sgd %c, %H momentum(%n) lr(%lr) step(%t) {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<f32>, tensor<i64>) -> (tensor<128xf32>, tensor<128xf32>, tensor<f32>)
  %norm, %clip = train.grad_norm %s, %r {max_norm = 0.0 : f64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  train.return %p, %q, %d, %e, %norm : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<f32>
}

// A sum that the step returns keeps bytes of its own, and so does one of which
// it returns a view. The third has no other to ride with.

// MOMENTS-LABEL: train.step @returned(
//   MOMENTS-NOT:   nn.concat
//       MOMENTS:   train.return
train.step @returned(%x: tensor<2xf32> {train.name = "x", train.role = #train.role<batch>},
                     %y: tensor<2xf32> {train.name = "y", train.role = #train.role<batch>},
                     %z: tensor<2xf32> {train.name = "z", train.role = #train.role<batch>})
    -> (tensor<2xf32> {train.name = "a"}, tensor<1x2xf32> {train.name = "b"}, tensor<2xf32> {train.name = "c"})
    attributes {train.ranks = 2 : i64} {
  %a = nn.sum_over %x over dp of 2 : tensor<2xf32>
  %s = nn.sum_over %y over dp of 2 : tensor<2xf32>
  %b = nn.reshape %s : (tensor<2xf32>) -> tensor<1x2xf32>
  %t = nn.sum_over %z over dp of 2 : tensor<2xf32>
  %c = math.tanh %t : tensor<2xf32>
  train.return %a, %b, %c : tensor<2xf32>, tensor<1x2xf32>, tensor<2xf32>
}

// The first parameter that the step reads stays whole: not the first argument,
// nor the first that is updated. A frozen one is read by what it is.

// FIRST-LABEL: train.step @reads(
//  FIRST-SAME:   %[[V:[a-z0-9]+]]: tensor<8192xf32> {train.name = "v", train.role = #train.role<param>, train.whole = tensor<128x128xf32>}
//  FIRST-SAME:   %[[W:[a-z0-9]+]]: tensor<128x128xf32> {train.name = "w", train.role = #train.role<param>}
//  FIRST-SAME:   %[[F:[a-z0-9]+]]: tensor<8192xf32> {train.frozen, train.name = "f", train.role = #train.role<param>, train.whole = tensor<128x128xf32>}
//       FIRST:   nn.matmul %{{.*}}, %[[W]]
//       FIRST:   %[[READ:.*]] = nn.gather %[[V]] over dp of 2
//       FIRST:   %[[KEPT:.*]] = nn.gather %[[F]] over dp of 2
//       FIRST:   %[[NEWV:.*]], %{{.*}} = train.sgd %[[V]], %{{.*}}
//       FIRST:   %[[OLD:.*]] = nn.shard_of %[[W]] over dp of 2
//       FIRST:   %[[NEWW:.*]], %{{.*}} = train.sgd %[[OLD]], %{{.*}}
//       FIRST:   %[[HOME:.*]] = nn.gather %[[NEWW]] over dp of 2
//       FIRST:   train.return %[[NEWV]], %[[HOME]]
train.step @reads(
    %x: tensor<4x128xf32> {train.name = "x", train.role = #train.role<batch>},
    %v: tensor<128x128xf32> {train.name = "v", train.role = #train.role<param>},
    %w: tensor<128x128xf32> {train.name = "w", train.role = #train.role<param>},
    %f: tensor<128x128xf32> {train.name = "f", train.role = #train.role<param>, train.frozen},
    %lr: tensor<f32> {train.name = "lr", train.role = #train.role<scalar>, train.feed = "lr"},
    %t: tensor<i64> {train.name = "step", train.role = #train.role<scalar>, train.feed = "step"})
    -> (tensor<128x128xf32> {train.name = "v", train.updates = 1 : i64},
        tensor<128x128xf32> {train.name = "w", train.updates = 2 : i64},
        tensor<4x128xf32> {train.name = "y"})
    attributes {train.ranks = 2 : i64} {
  %a = nn.matmul %x, %w : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %c = nn.matmul %a, %v : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %y = nn.matmul %c, %f : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %z = nn.transpose %x [1, 0] : (tensor<4x128xf32>) -> tensor<128x4xf32>
  %g = nn.matmul %z, %c : (tensor<128x4xf32>, tensor<4x128xf32>) -> tensor<128x128xf32>
  %G = nn.sum_over %g over dp of 2 : tensor<128x128xf32>
  %p, %r = train.sgd %v, %G lr(%lr) step(%t) {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<128x128xf32>, tensor<128x128xf32>, tensor<f32>, tensor<i64>) -> (tensor<128x128xf32>, tensor<f32>)
  %h = nn.matmul %z, %a : (tensor<128x4xf32>, tensor<4x128xf32>) -> tensor<128x128xf32>
  %H = nn.sum_over %h over dp of 2 : tensor<128x128xf32>
  %q, %s = train.sgd %w, %H lr(%lr) step(%t) {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<128x128xf32>, tensor<128x128xf32>, tensor<f32>, tensor<i64>) -> (tensor<128x128xf32>, tensor<f32>)
  train.return %p, %q, %y : tensor<128x128xf32>, tensor<128x128xf32>, tensor<4x128xf32>
}
