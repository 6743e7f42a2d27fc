// A parameter is updated as soon as its gradient is there, which frees the
// gradient; nothing is recomputed for it.
//
// Three parameters of 4 MiB, x and y of 0.25: 12.5 MiB. In the program's order
// all three gradients are made before the first update: 12 MiB more. With each
// update behind its gradient only one of them is alive: 16.5 MiB. The budget of 18
// MiB has room for one, and 1.5 MiB for scratch.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=18874368}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=18874368}))' \
// RUN:   --remarks-filter=plan --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=WHY < %t.yaml

// CHECK: recomputed_ops = 0 : i64
// CHECK: nn.matmul
// CHECK-NOT: nn.matmul
// CHECK: train.sgd
// CHECK: nn.matmul
// CHECK-NOT: nn.matmul
// CHECK: train.sgd
// CHECK: nn.matmul
// CHECK: train.sgd

// WHY: Name: EarlyUpdate
// WHY: gradient_bytes: '4194304'
// WHY: Name: EarlyUpdate
// WHY: gradient_bytes: '4194304'

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
  %n1, %s1 = train.sgd %w1, %g1 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w1")
  %n2, %s2 = train.sgd %w2, %g2 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w2")
  %n3, %s3 = train.sgd %w3, %g3 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w3")
  train.return %n1, %n2, %n3, %loss : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>
}
