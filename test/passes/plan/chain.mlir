// A chain is recomputed from what is always there: a = tanh x, b = |a|.
//
// x and w have 4.25 MiB. a and b wait from p to the end, so that a b p q meet: 16
// MiB. 14 MiB leave room for two of them. So neither waits: b takes the place of a,
// b p, p q, q k, then k a, u a with u in the place of k, and u b.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=14680064}))' | FileCheck %s

// CHECK: recomputed_ops = 2 : i64
// CHECK-COUNT-3: nn.matmul
// CHECK: nn.fused {{.*}}train.instance = 1 : i64
// CHECK-NEXT: math.tanh
// CHECK: nn.fused {{.*}}train.instance = 1 : i64
// CHECK-NEXT: math.absf

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %a = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("a")
  %b = nn.fused (%a0 = %a) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.absf %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("b")
  %p = nn.matmul %b, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %k = nn.matmul %q, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("k")
  %u = nn.fused (%a0 = %k, %a1 = %a) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("u")
  %loss = nn.fused (%a0 = %u, %a1 = %b) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
