// Of two values that wait, the cheap one is recomputed.
//
// x, c, e, ... are 4096 x 256 floats, 4 MiB; w is 0.25 MiB. In the program's order
// c and e wait over two products:
//
//     c = tanh x    c
//     e = x w       c e
//     s = c + e     c e s
//     p = s w       c e s p      <- 16 MiB, with x and w 20.25
//     q = p w       c e p q
//     u = q * c     c e q        u in the place of q
//     v = u . e     e u
//
// A budget of 18 MiB leaves room for three of them and 1.75 MiB for the kernels'
// scratch. Without c: s takes its place, then e s p, e p q, and c comes back where
// p was: e q c. tanh moves 8 MiB at 12 GB/s, 699 us, and 1 us to launch; e would
// cost 2 * 4096 * 256 * 256 operations at 120 GF/s, 4474 us.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=18874368}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan))' | FileCheck %s --check-prefix=ROOM
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=18874368}))' \
// RUN:   --remarks-filter=plan --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=WHY < %t.yaml

// CHECK: recomputed_ops = 1 : i64
// CHECK: nn.fused {{.*}}train.instance = 0 : i64
// CHECK-NEXT: math.tanh
// CHECK-COUNT-3: nn.matmul {{.*}}train.instance = 0
// CHECK: nn.fused {{.*}}train.instance = 1 : i64
// CHECK-NEXT: math.tanh

// ROOM: recomputed_ops = 0 : i64
// ROOM-NOT: train.instance = 1

// WHY: Name: Recomputed
// WHY: value: c
// WHY: bytes: '4194304'
// WHY: over_peak: 'true'
// WHY: paid_ps: '70
// WHY: Name: Kept
// WHY: value: e
// WHY: over_peak: 'true'
// WHY: least_ps: '447

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %c = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("c")
  %e = nn.matmul %x, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("e")
  %s = nn.fused (%a0 = %c, %a1 = %e) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.addf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("s")
  %p = nn.matmul %s, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %u = nn.fused (%a0 = %q, %a1 = %c) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("u")
  %loss = nn.fused (%a0 = %u, %a1 = %e) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
