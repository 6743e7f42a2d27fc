// Of a kernel with two results, only the one that is needed is recomputed.
//
// f makes tanh x and |x|; their product goes on, tanh x waits for the end: with x,
// w, p and q 16.25 MiB. 14 MiB leave room for two values beside x and w: tanh x goes,
// and comes back by a kernel without |x|: 700 us, for 8 MiB moved instead of 12.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=14680064}))' | FileCheck %s

// CHECK: recomputed_ops = 1 : i64
// CHECK: nn.fused (%{{.*}} = %arg0) {{.*}}train.instance = 0
// CHECK-NEXT: math.tanh
// CHECK-NEXT: math.absf
// CHECK-COUNT-3: nn.matmul
// CHECK: nn.fused (%{{.*}} = %arg0) {{.*}}train.instance = 1
// CHECK-NEXT: math.tanh
// CHECK-NEXT: nn.yield

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %f:2 = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> (tensor<4096x256xf32>, tensor<4096x256xf32>) {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    %s = math.absf %a0 : tensor<4096x256xf32>
    nn.yield %t, %s : tensor<4096x256xf32>, tensor<4096x256xf32>
  } loc("f")
  %h = nn.fused (%a0 = %f#0, %a1 = %f#1) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("h")
  %p = nn.matmul %h, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %k = nn.matmul %q, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("k")
  %loss = nn.fused (%a0 = %k, %a1 = %f#0) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
