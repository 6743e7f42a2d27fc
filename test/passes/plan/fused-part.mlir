// A part of a fused kernel is recomputed from the result that is kept.
//
// The kernel makes a residual r = x + y and n = tanh r; both wait from p to the
// end. 4 MiB each:
//
//     r n = f(x, y)     r n
//     p = n w           r n p
//     q = p w           r n p q    <- 16 MiB, with x, y and w 24.25
//     k = q w           r n q k
//     u = k * n         r n u      in place
//     v = u . r         r u
//
// 22 MiB leave room for three, and 1.75 MiB for scratch. n = tanh r moves 8 MiB:
// 700 us; the whole kernel moves 16, and r = x + y alone 12. So n goes, and comes
// back from r alone, by a kernel with one operand and no addition.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=23068672}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=23068672}))' \
// RUN:   --remarks-filter=plan --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=WHY < %t.yaml

// CHECK: recomputed_ops = 1 : i64
// CHECK: %[[F:.*]]:2 = nn.fused (%{{.*}} = %arg0, %{{.*}} = %arg1) {{.*}}train.instance = 0
// CHECK-NEXT: arith.addf
// CHECK-COUNT-2: nn.matmul
// CHECK: %[[N:.*]] = nn.fused (%{{.*}} = %[[F]]#0) {{.*}}train.instance = 1
// CHECK-NEXT: math.tanh
// CHECK: nn.fused ({{.*}}%[[N]]

// WHY: Name: Recomputed
// WHY: value: 'norm#1'
// WHY: Name: Recipe
// WHY: makes: 'norm#1'
// WHY: from: norm
// WHY: kept_results: '1'

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %y: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "y"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %f:2 = nn.fused (%a0 = %x, %a1 = %y) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> (tensor<4096x256xf32>, tensor<4096x256xf32>) {
    %r = arith.addf %a0, %a1 : tensor<4096x256xf32>
    %n = math.tanh %r : tensor<4096x256xf32>
    nn.yield %r, %n : tensor<4096x256xf32>, tensor<4096x256xf32>
  } loc("norm")
  %p = nn.matmul %f#1, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %k = nn.matmul %q, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("k")
  %u = nn.fused (%a0 = %k, %a1 = %f#1) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("u")
  %loss = nn.fused (%a0 = %u, %a1 = %f#0) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
