// RUN: tmc-opt %s -pass-pipeline="builtin.module(mem.program(tmc-place))" | FileCheck %s
// RUN: not tmc-opt %s -pass-pipeline="builtin.module(mem.program(tmc-place,tmc-verify-schedule))" 2>&1 | FileCheck %s --check-prefix=STRAY

// A done that ends nothing keeps nothing alive; the schedule's verifier names it.

// CHECK: arena_bytes = #mem.bytes<device = 64>
// CHECK: mem.done 7
// STRAY: error: a defect: it ends work that hasn't started
mem.program @step {
  %a = mem.buffer "a" "activations" : memref<16xf32>
  mem.fill %a : memref<16xf32>
  mem.done 7
}
