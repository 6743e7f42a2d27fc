// On cuda, updates wait for each other, to be one launch, while the live bytes stay
// within the peak: each keeps a gradient of 4 KiB alive. Here the peak is at `large`,
// 64 KiB, and the gradients of all four parameters are 16 KiB. On cpu a launch costs
// next to nothing, and no update waits.
//
// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-plan{target=cuda:sm_90}))' | FileCheck %s
// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-plan{target=cpu}))' | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: train.step @loose
// CHECK-COUNT-4: transpose_lhs
// CHECK-COUNT-4: train.sgd

// CPU-LABEL: train.step @loose
// CPU: transpose_lhs
// CPU-NEXT: train.sgd
// CPU-NEXT: nn.matmul
// CPU-NEXT: train.sgd

train.step @loose(%x: tensor<128x32xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %y: tensor<128x32xf32> {train.role = #train.role<batch>, train.name = "y"},
                 %w1: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w1"},
                 %w2: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w2"},
                 %w3: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w3"},
                 %w4: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w4"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<32x32xf32> {train.updates = 2 : i64, train.name = "w1"},
        tensor<32x32xf32> {train.updates = 3 : i64, train.name = "w2"},
        tensor<32x32xf32> {train.updates = 4 : i64, train.name = "w3"},
        tensor<32x32xf32> {train.updates = 5 : i64, train.name = "w4"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %large = nn.matmul %x, %y transpose_rhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<128x128xf32> loc("large")
  %loss = nn.fused (%a0 = %large) : (tensor<128x128xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<128x128xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("loss")
  %g1 = nn.matmul %x, %y transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g1")
  %n1, %s1 = train.sgd %w1, %g1 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w1")
  %g2 = nn.matmul %y, %x transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g2")
  %n2, %s2 = train.sgd %w2, %g2 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w2")
  %g3 = nn.matmul %x, %x transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g3")
  %n3, %s3 = train.sgd %w3, %g3 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w3")
  %g4 = nn.matmul %y, %y transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g4")
  %n4, %s4 = train.sgd %w4, %g4 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w4")
  train.return %n1, %n2, %n3, %n4, %loss : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>
}

// -----

// Without `large` the peak is at the gradients: no update waits for another one.

// CHECK-LABEL: train.step @tight
// CHECK: transpose_lhs
// CHECK-NEXT: train.sgd
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: train.sgd
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: train.sgd

train.step @tight(%x: tensor<128x32xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %y: tensor<128x32xf32> {train.role = #train.role<batch>, train.name = "y"},
                 %w1: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w1"},
                 %w2: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w2"},
                 %w3: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w3"},
                 %w4: tensor<32x32xf32> {train.role = #train.role<param>, train.name = "w4"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<32x32xf32> {train.updates = 2 : i64, train.name = "w1"},
        tensor<32x32xf32> {train.updates = 3 : i64, train.name = "w2"},
        tensor<32x32xf32> {train.updates = 4 : i64, train.name = "w3"},
        tensor<32x32xf32> {train.updates = 5 : i64, train.name = "w4"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.fused (%a0 = %x) : (tensor<128x32xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<128x32xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("loss")
  %g1 = nn.matmul %x, %y transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g1")
  %n1, %s1 = train.sgd %w1, %g1 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w1")
  %g2 = nn.matmul %y, %x transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g2")
  %n2, %s2 = train.sgd %w2, %g2 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w2")
  %g3 = nn.matmul %x, %x transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g3")
  %n3, %s3 = train.sgd %w3, %g3 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w3")
  %g4 = nn.matmul %y, %y transpose_lhs : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<32x32xf32> loc("g4")
  %n4, %s4 = train.sgd %w4, %g4 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> (tensor<32x32xf32>, tensor<f32>) loc("w4")
  train.return %n1, %n2, %n3, %n4, %loss : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>
}
