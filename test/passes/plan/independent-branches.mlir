// Branches that don't depend on one another run one after the other: only one of
// their large values is alive, and nothing is recomputed.
//
// x and w have 4.25 MiB; the program makes a, b and c, 4 MiB each, before it sums
// them up. One at a time they need 8.25 MiB; the budget of 10 has 1.75 for scratch.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=10485760}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan))' | FileCheck %s --check-prefix=ROOM

// CHECK: recomputed_ops = 0 : i64
// CHECK: {{nn.matmul|math.tanh|math.absf}}
// CHECK: nn.reduce
// CHECK: {{nn.matmul|math.tanh|math.absf}}
// CHECK: nn.reduce
// CHECK: {{nn.matmul|math.tanh|math.absf}}
// CHECK: nn.reduce

// Where there is room, the program's order stays.
// ROOM: nn.matmul
// ROOM: math.tanh
// ROOM: math.absf
// ROOM: nn.reduce

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %a = nn.matmul %x, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("a")
  %b = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("b")
  %c = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.absf %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("c")
  %la = nn.fused (%a0 = %a) : (tensor<4096x256xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("la")
  %lb = nn.fused (%a0 = %b) : (tensor<4096x256xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("lb")
  %lc = nn.fused (%a0 = %c) : (tensor<4096x256xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("lc")
  %loss = nn.fused (%a0 = %la, %a1 = %lb, %a2 = %lc) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> {
    %s = arith.addf %a0, %a1 : tensor<f32>
    %t = arith.addf %s, %a2 : tensor<f32>
    nn.yield %t : tensor<f32>
  } loc("loss")
  train.return %loss : tensor<f32>
}
