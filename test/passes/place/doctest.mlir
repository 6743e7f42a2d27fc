// RUN: tmc-opt %s -pass-pipeline="builtin.module(mem.program(tmc-place))" | FileCheck %s

// a is alive in [0, 2), b in [1, 3), c in [2, 3): c takes a's bytes. The arena is
// w (64) + a (256) + b (256) = 576 bytes.

// CHECK: arena_bytes = #mem.bytes<device = 576>
// CHECK-DAG: mem.buffer "w" "parameters" {offset = [[W:[0-9]+]] : i64, persistent}
// CHECK-DAG: mem.buffer "a" "activations" {offset = [[A:[0-9]+]] : i64}
// CHECK-DAG: mem.buffer "c" "activations" {offset = [[A]] : i64}
mem.program @step {
  %w = mem.buffer "w" "parameters" {persistent} : memref<16xf32>
  %a = mem.buffer "a" "activations" : memref<64xf32>
  %b = mem.buffer "b" "activations" : memref<64xf32>
  %c = mem.buffer "c" "activations" : memref<64xf32>
  mem.fill %a : memref<64xf32>
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
  mem.launch "Copy"(%b : memref<64xf32>) -> (%c : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "second", out_order = array<i64: 0>, params = []}
}
