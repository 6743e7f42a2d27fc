// A parameter that is used three times, twice with a gradient, has one gradient in
// one buffer and one update: behind every read of it, though the program has the
// update before the last one (which values alone would allow).
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan))' | FileCheck %s

// CHECK: train.step
// CHECK: nn.matmul %arg0, %arg1
// CHECK: nn.matmul {{.*}}, %arg1
// CHECK: %[[G0:.*]] = nn.matmul %arg0, {{.*}} transpose_lhs {train
// CHECK: %[[G:.*]] = nn.matmul {{.*}} transpose_lhs acc(%[[G0]])
// CHECK: nn.matmul {{.*}}, %arg1
// CHECK: %[[NEW:.*]], %{{.*}} = train.sgd %arg1, %[[G]]
// CHECK-NOT: nn.matmul
// CHECK: train.return %[[NEW]]

train.step @step(%x: tensor<64x1024xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w1: tensor<1024x1024xf32> {train.role = #train.role<param>, train.name = "w1"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<1024x1024xf32> {train.updates = 1 : i64, train.name = "w1"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %a = nn.matmul %x, %w1 : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32> loc("a")
  %h = nn.fused (%a0 = %a) : (tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    %t = math.tanh %a0 : tensor<64x1024xf32>
    nn.yield %t : tensor<64x1024xf32>
  } loc("h")
  %b = nn.matmul %h, %w1 : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32> loc("b")
  %g0 = nn.matmul %x, %b transpose_lhs : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc("g0")
  %g1 = nn.matmul %h, %b transpose_lhs acc(%g0) : (tensor<64x1024xf32>, tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc("g1")
  %n1, %s1 = train.sgd %w1, %g1 lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>, tensor<i64>) -> (tensor<1024x1024xf32>, tensor<f32>) loc("w1")
  %d = nn.matmul %b, %w1 : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32> loc("d")
  %loss = nn.fused (%a0 = %d) : (tensor<64x1024xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<64x1024xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %n1, %loss : tensor<1024x1024xf32>, tensor<f32>
}
