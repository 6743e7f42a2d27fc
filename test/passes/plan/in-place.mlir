// A result takes the place of an operand that dies there: a chain of pointwise
// kernels needs one buffer.
//
// x, w and p: 8.25 MiB; 10 leave 1.75 for scratch. Each of the pointwise kernels
// would need 4 MiB more if it had to write elsewhere.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=10485760}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=10485760}))' \
// RUN:   --remarks-filter=plan --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=WHY < %t.yaml

// CHECK: recomputed_ops = 0 : i64

// WHY: Name: InPlace
// WHY: value: a
// WHY: over: p
// WHY: Name: InPlace
// WHY: value: b
// WHY: over: a
// WHY: Name: InPlace
// WHY: value: c
// WHY: over: b

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %p = nn.matmul %x, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %a = nn.fused (%a0 = %p) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("a")
  %b = nn.fused (%a0 = %a) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.absf %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("b")
  %c = nn.fused (%a0 = %b) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.sqrt %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("c")
  %loss = nn.fused (%a0 = %c, %a1 = %x) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
