// RUN: tmc-opt %s -pass-pipeline="builtin.module(mem.program(tmc-verify-schedule))" | FileCheck %s

// a leaves for the host, b takes its bytes: the wait stands between.

// CHECK: mem.copy
// CHECK: mem.wait 1 on compute
// CHECK-NEXT: mem.done 1
// CHECK: mem.launch "Fill"
mem.program @step attributes {arena_bytes = #mem.bytes<device = 256, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  mem.record 0 on compute
  mem.wait 0 on d2h
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
  mem.done 1
  mem.launch "Fill"() -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = []}
}
