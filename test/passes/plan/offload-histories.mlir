// A state that a generated kernel changes may be at home on the host, but the kernel runs
// on the device: the host has those of OnHostList.h alone, such as w's update.
//
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{offload=all target=cpu:v3}))' \
// RUN:   | FileCheck %s --check-prefix=ROOM
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-plan{budget=135000 offload=all target=cpu:v3}),tmc-verify-phase{phase=plan},tmc-lower{target=cpu:v3},tmc-verify-phase{phase=lower},mem.program(tmc-place,tmc-verify-schedule),tmc-verify-phase{phase=place})' \
// RUN:   | FileCheck %s --check-prefix=MEM

// ROOM: nn.fused (%{{.*}}, %{{.*}} = %{{.*}}) {{.*}} : (tensor<f32>, tensor<1024xf32>) -> tensor<1024xf32>
// ROOM-NOT: train.on_host

// While y is made x, y and 40 KiB of scratch are there, while g is made x, y, g, 48 KiB of
// scratch and w, in one place with g: 128 KiB and 64 bytes each of lr, n and the loss are
// 131264 bytes. h, of 4 KiB, doesn't fit beside.
//
// MEM: mem.buffer "h" "optimizer" {{.*}} : memref<1024xf32, #mem.space<host>>
// MEM: mem.copy %{{.*}} to [[H:%.*]] on h2d {{.*}} op = "h"
// MEM: mem.launch "fused_1"(%{{.*}}, [[H]] : memref<f32>, memref<1024xf32>) -> ([[H]] : memref<1024xf32>)
// MEM: mem.copy [[H]] to %{{.*}} on d2h {{.*}} op = "h"
// MEM: mem.launch "Sgd"(%{{.*}} : memref<64x64xf32, #mem.space<host>>, memref<64x64xf32, #mem.space<host>>,

train.step @step(%x: tensor<128x64xf32> {train.role = #train.role<batch>, train.name = "x"},
                 %w: tensor<64x64xf32> {train.role = #train.role<param>, train.name = "w"},
                 %h: tensor<1024xf32> {train.role = #train.role<state>, train.name = "h", train.slot = ""},
                 %lr: tensor<f32> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<64x64xf32> {train.updates = 1 : i64, train.name = "w"},
        tensor<1024xf32> {train.updates = 2 : i64, train.name = "h"},
        tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32> loc("y")
  %loss = nn.fused (%a = %y) : (tensor<128x64xf32>) -> tensor<f32> {
    %r = nn.reduce sum %a over [0, 1] : (tensor<128x64xf32>) -> tensor<f32>
    nn.yield %r : tensor<f32>
  } loc("l")
  %g = nn.matmul %x, %y transpose_lhs : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32> loc("g")
  %h2 = nn.fused (%a = %loss, %b = %h) : (tensor<f32>, tensor<1024xf32>) -> tensor<1024xf32> {
    %m = nn.broadcast %a to [] : (tensor<f32>) -> tensor<1024xf32>
    %r = arith.maximumf %m, %b : tensor<1024xf32>
    nn.yield %r : tensor<1024xf32>
  } loc("h")
  %new, %s = train.sgd %w, %g lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<i64>) -> (tensor<64x64xf32>, tensor<f32>) loc("w")
  train.return %new, %h2, %loss : tensor<64x64xf32>, tensor<1024xf32>, tensor<f32>
}
