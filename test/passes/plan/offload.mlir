// c waits over three products on the host: its way there runs beside the first.
//
// x has 4 MiB, w 0.25, and c, p, q, k and u 4 each. While q is made, x, w, c, p and
// q are there, 16.25 MiB, and up to 0.5 of scratch; while k is made x, w, c, q and k.
// A budget of 13 MiB has room for one value less: c. Making it again would take 700
// us of the kernels' time, copying it back takes 360 us, as k must have been made.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=13631488 offload=activations target=cpu:v3}))' \
// RUN:   | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=13631488 offload=activations target=cpu:v3}),tmc-verify-phase{phase=plan},tmc-lower{target=cpu:v3},tmc-verify-phase{phase=lower},mem.program(tmc-place,tmc-verify-schedule),tmc-verify-phase{phase=place})' \
// RUN:   | FileCheck %s --check-prefix=MEM

// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=13631488 offload=activations target=cpu:v3}))' \
// RUN:   --remarks-filter=plan --remark-format=yaml --remarks-output-file=%t.yaml -o /dev/null
// RUN: FileCheck %s --check-prefix=WHY < %t.yaml

// WHY: Name: Moved
// WHY: bytes: '4194304'
// WHY-NOT: Name: Recomputed
// WHY-NOT: Name: EarlyUpdate

// CHECK: moved_bytes_d2h = 4194304 : i64
// CHECK-SAME: moved_bytes_h2d = 4194304 : i64
// CHECK-SAME: recomputed_ops = 0 : i64
// CHECK: %[[C:.*]] = nn.fused
// CHECK: %[[AWAY:.*]] = train.stash_start %[[C]] : tensor<4096x256xf32> to tensor<4096x256xf32, #train.space<host>>
// CHECK: nn.matmul %[[C]]
// CHECK: train.stash_done %[[AWAY]]
// CHECK: nn.matmul
// CHECK: %[[BACK:.*]] = train.fetch_start %[[AWAY]]
// CHECK: train.fetch_done %[[BACK]]
// CHECK: nn.fused (%{{.*}} = %[[BACK]],

// The copy begins when c is made; the kernels wait for it before q takes c's place.
// MEM: host = 4194304>
// MEM: mem.record [[MADE:.*]] on compute
// MEM-NEXT: mem.wait [[MADE]] on d2h
// MEM-NEXT: mem.copy %{{.*}} to %{{.*}} on d2h
// MEM-NEXT: mem.record [[STASHED:.*]] on d2h
// MEM: mem.launch "Matmul"
// MEM: mem.wait [[STASHED]] on compute
// MEM-NEXT: mem.done [[STASHED]]
// MEM: mem.launch "Matmul"
// MEM: mem.copy %{{.*}} to %{{.*}} on h2d

train.step @step(%x: tensor<4096x256xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<256x256xf32> {train.role = #train.role<param>, train.name = "w"},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<256x256xf32> {train.updates = 1 : i64, train.name = "w"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %c = nn.fused (%a0 = %x) : (tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = math.tanh %a0 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("c")
  %p = nn.matmul %c, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("p")
  %q = nn.matmul %p, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("q")
  %k = nn.matmul %q, %w : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32> loc("k")
  %u = nn.fused (%a0 = %c, %a1 = %k) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32> {
    %t = arith.mulf %a0, %a1 : tensor<4096x256xf32>
    nn.yield %t : tensor<4096x256xf32>
  } loc("u")
  %g = nn.matmul %x, %u transpose_lhs : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<256x256xf32> loc("g")
  %loss = nn.fused (%a0 = %u) : (tensor<4096x256xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a0 over [0, 1] : (tensor<4096x256xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("l")
  %new, %s = train.sgd %w, %g lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<f32>, tensor<i64>) -> (tensor<256x256xf32>, tensor<f32>) loc("w")
  train.return %new, %loss : tensor<256x256xf32>, tensor<f32>
}
