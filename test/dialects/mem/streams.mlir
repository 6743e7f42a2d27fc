// RUN: tmc-opt %s | tmc-opt | FileCheck %s

// A value leaves for another buffer on a stream of its own, and the step waits
// for it where it is read.

// CHECK-LABEL: mem.program @step
// CHECK: mem.record 0 on "compute"
// CHECK: mem.wait 0 on "out"
// CHECK: mem.copy %0 to %1 on "out" : memref<16xf32>, memref<16xf32>
// CHECK: mem.record 1 on "out"
// CHECK: mem.wait 1 on "compute"
mem.program @step {
  %x = mem.buffer "h" "activations" : memref<16xf32>
  %y = mem.buffer "h.stash" "activations" : memref<16xf32>
  mem.record 0 on "compute"
  mem.wait 0 on "out"
  mem.copy %x to %y on "out" : memref<16xf32>, memref<16xf32>
  mem.record 1 on "out"
  mem.wait 1 on "compute"
}
