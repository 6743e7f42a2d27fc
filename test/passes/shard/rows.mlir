// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=0}),canonicalize)" | FileCheck %s --check-prefix=WHOLE
// RUN: tmc-opt %s "-pass-pipeline=builtin.module(train.step(tmc-shard{level=3}),canonicalize)" | FileCheck %s --check-prefix=ALL
// RUN: sed 's/2x5x/2x75x/g; s/<10x/<150x/g; s/x10x/x150x/g' %s | tmc-opt - "-pass-pipeline=builtin.module(train.step(tmc-shard{level=3}),canonicalize)" | FileCheck %s --check-prefix=MANY

// A table of 300 rows that a lookup and a head read. The batch of both ranks
// names 20 of them: the other part of the gradient is exchanged by itself, and
// a lookup needs no gather. A batch of 300 rows or more needs the whole table.

// WHOLE-LABEL: train.step @step(
//       WHOLE:   %[[IDS:.*]] = nn.gather %{{.*}} over dp of 2 : tensor<2x5xi64> to tensor<2x2x5xi64>
//       WHOLE:   nn.embedding %{{.*}}, %{{.*}} : (tensor<300x32xf32>, tensor<2x5xi64>)
//       WHOLE:   %[[G:.*]] = nn.matmul {{.*}} -> tensor<300x32xf32>
//  WHOLE-NEXT:   %[[P:.*]] = nn.exchange %[[G]] over dp of 2
//  WHOLE-NEXT:   %[[H:.*]] = nn.sum_pieces %[[P]]
//       WHOLE:   %[[R:.*]] = nn.gather %{{.*}} over dp of 2 : tensor<2x5x32xf32> to tensor<2x2x5x32xf32>
//  WHOLE-NEXT:   %[[S:.*]] = nn.embedding_grad_shard %[[IDS]], %[[R]] acc(%[[H]] : tensor<8192xf32>) of tensor<300x32xf32>
//       WHOLE:   nn.gather %[[S]] over dp of 2 : tensor<8192xf32> to tensor<300x32xf32>

// ALL-LABEL: train.step @step(
//  ALL-SAME:   %[[W:[a-z0-9]+]]: tensor<8192xf32> {train.name = "w"
//       ALL:   %[[IDS:.*]] = nn.gather %{{.*}} over dp of 2 : tensor<2x5xi64> to tensor<2x2x5xi64>
//  ALL-NEXT:   %[[P:.*]] = nn.embedding_pieces %[[W]], %[[IDS]] of tensor<300x32xf32> over dp of 2
//  ALL-NEXT:   %[[E:.*]] = nn.exchange %[[P]] over dp of 2 : tensor<2x4096xf32>
//  ALL-NEXT:   %[[S:.*]] = nn.sum_pieces %[[E]]
//  ALL-NEXT:   nn.slice %[[S]] [0] step [1] : (tensor<4096xf32>) -> tensor<320xf32>
//       ALL:   %[[READ:.*]] = nn.gather %[[W]] over dp of 2
//  ALL-NEXT:   nn.transpose %[[READ]]
//   ALL-NOT:   nn.embedding_grad %
//       ALL:   nn.embedding_grad_shard %[[IDS]]

//     MANY: nn.embedding %
//     MANY: nn.embedding_grad %
// MANY-NOT: nn.embedding_pieces
train.step @step(
    %ids: tensor<2x5xi64> {train.name = "ids", train.role = #train.role<batch>},
    %w: tensor<300x32xf32> {train.name = "w", train.role = #train.role<param>},
    %m: tensor<300x32xf32> {train.name = "w.momentum_buffer", train.role = #train.role<state>, train.slot = "w"},
    %lr: tensor<f32> {train.name = "lr", train.role = #train.role<scalar>, train.feed = "lr"},
    %t: tensor<i64> {train.name = "step", train.role = #train.role<scalar>, train.feed = "step"})
    -> (tensor<300x32xf32> {train.name = "w", train.updates = 1 : i64},
        tensor<300x32xf32> {train.name = "w.momentum_buffer", train.updates = 2 : i64},
        tensor<f32> {train.name = "grad_norm"})
    attributes {train.ranks = 2 : i64} {
  %x = nn.embedding %w, %ids : (tensor<300x32xf32>, tensor<2x5xi64>) -> tensor<2x5x32xf32>
  %y = nn.reshape %x : (tensor<2x5x32xf32>) -> tensor<10x32xf32>
  %v = nn.transpose %w [1, 0] : (tensor<300x32xf32>) -> tensor<32x300xf32>
  %z = nn.matmul %y, %v : (tensor<10x32xf32>, tensor<32x300xf32>) -> tensor<10x300xf32>
  %zt = nn.transpose %z [1, 0] : (tensor<10x300xf32>) -> tensor<300x10xf32>
  %g = nn.matmul %zt, %y : (tensor<300x10xf32>, tensor<10x32xf32>) -> tensor<300x32xf32>
  %h = nn.embedding_grad %ids, %x : (tensor<2x5xi64>, tensor<2x5x32xf32>) -> tensor<300x32xf32>
  %s = arith.addf %g, %h : tensor<300x32xf32>
  %G = nn.sum_over %s over dp of 2 : tensor<300x32xf32>
  %p, %q, %r = train.sgd %w, %G momentum(%m) lr(%lr) step(%t) {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<300x32xf32>, tensor<300x32xf32>, tensor<300x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<300x32xf32>, tensor<300x32xf32>, tensor<f32>)
  %norm, %clip = train.grad_norm %r {max_norm = 0.0 : f64} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  train.return %p, %q, %norm : tensor<300x32xf32>, tensor<300x32xf32>, tensor<f32>
}
