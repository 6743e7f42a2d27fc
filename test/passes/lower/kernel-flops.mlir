// RUN: tmc-opt %s -tmc-lower="target=cpu" | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: tmc-opt %s -tmc-lower="target=cuda:sm_90" | FileCheck %s --check-prefixes=CHECK,CUDA

// A launch counts what the backend's kernel does. Of attention's gradient that is
// five products on the cpu, and seven on cuda, which makes the scores twice: for dk
// and dv, and for dq. There are 2 * 4 heads with 3 * 5 scores each, of 8 channels:
// a product is 120 * 2 * 8 operations, and each score has 8 of its own.

// CHECK: mem.launch "Attention"(
// 120 * (2 * 16 + 5):
// CHECK-SAME: flops = 4440
// CHECK: mem.launch "AttentionGrad"(
// 120 * (5 * 16 + 8), and 120 * (7 * 16 + 8):
// CPU-SAME: flops = 10560
// CUDA-SAME: flops = 14400
train.step @step(
    %q: tensor<2x3x4x8xf32> {train.name = "q", train.role = #train.role<batch>},
    %k: tensor<2x5x2x8xf32> {train.name = "k", train.role = #train.role<batch>},
    %w: tensor<2x3x4x8xf32> {train.name = "w", train.role = #train.role<param>},
    %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
    %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<2x3x4x8xf32> {train.name = "w", train.updates = 2 : i64}, tensor<f32> {train.loss, train.name = "loss"}) {
  %out, %lse = nn.attention %w, %k, %k {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  %dq, %dk, %dv = nn.attention_grad %w, %k, %k, %out, %lse, %q {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
  %loss = train.square_sum %dq : (tensor<2x3x4x8xf32>) -> tensor<f32>
  %new, %square = train.sgd %w, %dq lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<f32>, tensor<i64>) -> (tensor<2x3x4x8xf32>, tensor<f32>)
  train.return %new, %loss : tensor<2x3x4x8xf32>, tensor<f32>
}
