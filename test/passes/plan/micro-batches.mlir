// Inside a loop over four micro-batches a value is recomputed in each; the sum of
// gradients is carried in one buffer, and the update comes behind the loop.
//
// The whole batch x has 16 MiB, w and the sum 0.25 each. A micro-batch's c = tanh x
// waits over three products: c q k meet, 12 MiB. 26 MiB leave room for two values
// and 1.5 MiB for scratch: c is recomputed before u = k * c, for 4 times 700 us.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=27262976}))' | FileCheck %s

// CHECK: recomputed_ops = 1 : i64
// CHECK: train.micro_batch 4
// CHECK: ^bb0(%[[X:.*]]: tensor<4096x256xf32>, %[[SUM:.*]]: tensor<256x256xf32>
// CHECK: nn.fused (%{{.*}} = %[[X]]) {{.*}}train.instance = 0
// CHECK-COUNT-3: nn.matmul
// CHECK: %[[C:.*]] = nn.fused (%{{.*}} = %[[X]]) {{.*}}train.instance = 1
// CHECK-NEXT: math.tanh
// CHECK: nn.matmul %[[C]], {{.*}} transpose_lhs acc(%[[SUM]])
// CHECK: train.yield
// CHECK: train.sgd

train.step @step(%x: tensor<16384x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<256x256xf32> {train.updates = 1 : i64, train.name = "w"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %grad, %loss = train.micro_batch 4 slices(%x : tensor<16384x256xf32>) -> tensor<256x256xf32>, tensor<f32> {
  ^bb0(%xs: tensor<4096x256xf32>, %sum: tensor<256x256xf32>, %total: tensor<f32>):
    %c = nn.fused (%a0 = %xs) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
      %t = math.tanh %a0 : tensor<4096x256xf32>
      nn.yield %t : tensor<4096x256xf32>
    } loc("c")
    %p = nn.matmul %c, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
    %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
    %k = nn.matmul %q, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("k")
    %u = nn.fused (%a0 = %k, %a1 = %c) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
      %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
      nn.yield %t : tensor<4096x256xf32>
    } loc("u")
    %g = nn.matmul %c, %u transpose_lhs acc(%sum) : (tensor<4096x256xf32>, tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("g")
    %l = nn.fused (%a0 = %u, %a1 = %total) : (tensor<4096x256xf32>, tensor<f32>) -> tensor<f32> {
      %r = nn.reduce sum %a0 over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
      %t = arith.addf %a1, %r : tensor<f32>
      nn.yield %t : tensor<f32>
    } loc("l")
    train.yield %g, %l : tensor<256x256xf32>, tensor<f32>
  }
  %new, %s = train.sgd %w, %grad lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<f32>, tensor<i64>) -> (tensor<256x256xf32>, tensor<f32>) loc("w")
  train.return %new, %loss : tensor<256x256xf32>, tensor<f32>
}
