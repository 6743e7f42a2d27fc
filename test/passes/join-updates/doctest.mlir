// RUN: tmc-opt %s -split-input-file -pass-pipeline="builtin.module(mem.program(tmc-join-updates))" | FileCheck %s
// RUN: tmc-opt %s -split-input-file -pass-pipeline="builtin.module(mem.program(tmc-join-updates,tmc-place))" | FileCheck %s --check-prefix=PLACED

// Two updates side by side are one launch: the first has as many kernels as the one
// that needs most. A fill, another momentum and another learning rate each begin
// another one.

// CHECK-LABEL: mem.program @kinds
// CHECK: mem.launch "Sgd"{{.*}}device_launches = 2 : i64, {{.*}}joins_next, op = "w1.update"
// CHECK-NEXT: mem.launch "Sgd"{{.*}}device_launches = 0 : i64
// CHECK-NOT: joins_next
// CHECK: mem.fill
// CHECK-NEXT: mem.launch "Sgd"
// CHECK-NOT: joins_next
// CHECK: op = "w3.update"
// CHECK-NEXT: mem.launch "Sgd"
// CHECK-NOT: joins_next
// CHECK: op = "w4.update"
// CHECK-NEXT: mem.launch "Sgd"
// CHECK-NOT: joins_next
// CHECK: op = "w5.update"

// Operands of joined updates are alive together: the second one's scratch isn't in
// the bytes of the first one's gradient. The third one's is.

// PLACED-LABEL: mem.program @kinds
// PLACED: mem.buffer "g1" "gradients" {offset = [[GRADIENT:[0-9]+]] : i64}
// PLACED-NOT: mem.buffer "w2.scratch" "workspace" {offset = [[GRADIENT]] : i64}
// PLACED: mem.buffer "w3.scratch" "workspace" {offset = [[GRADIENT]] : i64}
// PLACED: mem.launch

mem.program @kinds {
  %lr = mem.buffer "lr" "other" {persistent} : memref<f32>
  %lr2 = mem.buffer "lr2" "other" {persistent} : memref<f32>
  %t = mem.buffer "t" "other" {persistent} : memref<i64>
  %small = mem.buffer "small" "activations" : memref<16xf32>
  %large = mem.buffer "large" "activations" : memref<100000xi8>
  %w1 = mem.buffer "w1" "parameters" {persistent} : memref<32x32xf32>
  %g1 = mem.buffer "g1" "gradients" : memref<32x32xf32>
  %s1 = mem.buffer "w1.scratch" "workspace" : memref<64xi8>
  %w2 = mem.buffer "w2" "parameters" {persistent} : memref<32x32xf32>
  %g2 = mem.buffer "g2" "gradients" : memref<32x32xf32>
  %s2 = mem.buffer "w2.scratch" "workspace" : memref<64xi8>
  %w3 = mem.buffer "w3" "parameters" {persistent} : memref<32x32xf32>
  %g3 = mem.buffer "g3" "gradients" : memref<32x32xf32>
  %s3 = mem.buffer "w3.scratch" "workspace" : memref<64xi8>
  %w4 = mem.buffer "w4" "parameters" {persistent} : memref<32x32xf32>
  %g4 = mem.buffer "g4" "gradients" : memref<32x32xf32>
  %s4 = mem.buffer "w4.scratch" "workspace" : memref<64xi8>
  %w5 = mem.buffer "w5" "parameters" {persistent} : memref<32x32xf32>
  %g5 = mem.buffer "g5" "gradients" : memref<32x32xf32>
  %s5 = mem.buffer "w5.scratch" "workspace" : memref<64xi8>
  mem.fill %large : memref<100000xi8>
  mem.fill %g1 : memref<32x32xf32>
  mem.fill %g2 : memref<32x32xf32>
  mem.fill %g3 : memref<32x32xf32>
  mem.fill %g4 : memref<32x32xf32>
  mem.fill %g5 : memref<32x32xf32>
  mem.launch "Sgd"(%w1, %g1, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w1 : memref<32x32xf32>) scratch(%s1 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w1.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.1]]}
  mem.launch "Sgd"(%w2, %g2, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w2 : memref<32x32xf32>) scratch(%s2 : memref<64xi8>) {device_launches = 2 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w2.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.2]]}
  mem.fill %small : memref<16xf32>
  mem.launch "Sgd"(%w3, %g3, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w3 : memref<32x32xf32>) scratch(%s3 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w3.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.3]]}
  mem.launch "Sgd"(%w4, %g4, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w4 : memref<32x32xf32>) scratch(%s4 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w4.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.5], ["weightDecay", 0.4]]}
  mem.launch "Sgd"(%w5, %g5, %lr2, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w5 : memref<32x32xf32>) scratch(%s5 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w5.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.5], ["weightDecay", 0.5]]}
}

// -----

// The live peak is at the first update, with all gradients and one scratch. A second
// scratch would raise it: the first two aren't joined. By then there is room for two.

// CHECK-LABEL: mem.program @peak
// CHECK: op = "w1.update"
// CHECK-NOT: joins_next
// CHECK: mem.launch "Sgd"{{.*}}joins_next, op = "w2.update"
// CHECK-NOT: joins_next
// CHECK: op = "w3.update"

mem.program @peak {
  %lr = mem.buffer "lr" "other" {persistent} : memref<f32>
  %lr2 = mem.buffer "lr2" "other" {persistent} : memref<f32>
  %t = mem.buffer "t" "other" {persistent} : memref<i64>
  %w1 = mem.buffer "w1" "parameters" {persistent} : memref<32x32xf32>
  %g1 = mem.buffer "g1" "gradients" : memref<32x32xf32>
  %s1 = mem.buffer "w1.scratch" "workspace" : memref<64xi8>
  %w2 = mem.buffer "w2" "parameters" {persistent} : memref<32x32xf32>
  %g2 = mem.buffer "g2" "gradients" : memref<32x32xf32>
  %s2 = mem.buffer "w2.scratch" "workspace" : memref<64xi8>
  %w3 = mem.buffer "w3" "parameters" {persistent} : memref<32x32xf32>
  %g3 = mem.buffer "g3" "gradients" : memref<32x32xf32>
  %s3 = mem.buffer "w3.scratch" "workspace" : memref<64xi8>
  mem.fill %g1 : memref<32x32xf32>
  mem.fill %g2 : memref<32x32xf32>
  mem.fill %g3 : memref<32x32xf32>
  mem.launch "Sgd"(%w1, %g1, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w1 : memref<32x32xf32>) scratch(%s1 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w1.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.1]]}
  mem.launch "Sgd"(%w2, %g2, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w2 : memref<32x32xf32>) scratch(%s2 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w2.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.2]]}
  mem.launch "Sgd"(%w3, %g3, %lr, %t : memref<32x32xf32>, memref<32x32xf32>, memref<f32>, memref<i64>) -> (%w3 : memref<32x32xf32>) scratch(%s3 : memref<64xi8>) {device_launches = 1 : i64, in_order = array<i64: 0, 1, -1, 2, 3>, instance = 0 : i64, joinable, op = "w3.update", out_order = array<i64: 0, -1, -1>, params = [["count", 1024], ["momentum", 0.0], ["weightDecay", 0.3]]}
}
