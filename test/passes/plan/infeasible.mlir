// A budget that can't be met is refused with the smallest one that can, and the
// place of the peak.
//
// x, p and q, 4 MiB each, and w, 0.25, meet while q is made, whatever the plan:
// 12.25 MiB and the scratch of a product.
//
// RUN: not tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=12582912}))' 2>&1 | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=14680064}))' | FileCheck %s --check-prefix=FITS

// CHECK: error: needs [[NEEDS:1[23]\.[0-9]+]] MiB, {{[01]\.[0-9]+}} MiB over the budget of 12.00 MiB
// CHECK: note: {{.*}}the peak is at q
// CHECK: note: the smallest budget for which a plan is known is [[NEEDS]] MiB ([[BYTES:[0-9]+]] bytes); none can exist below [[NEEDS]] MiB ([[BYTES]] bytes)

// FITS: recomputed_ops = 0 : i64

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %p = nn.matmul %x, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %loss = nn.fused (%a0 = %q, %a1 = %p) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<f32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    %r = nn.reduce sum %t over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("v")
  train.return %loss : tensor<f32>
}
