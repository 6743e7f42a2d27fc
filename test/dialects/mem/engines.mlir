// RUN: tmc-opt %s | tmc-opt | FileCheck %s

// A value leaves for the host on an engine of its own, and the step waits for it
// where its bytes become another's.

// CHECK-LABEL: mem.program @step
// CHECK: mem.record 0 on compute
// CHECK: mem.wait 0 on d2h
// CHECK: mem.copy %0 to %1 on d2h {instance = 0 : i64, op = "h"} : memref<16xf32>, memref<16xf32, #mem.space<host>>
// CHECK: mem.record 1 on d2h
// CHECK: mem.wait 1 on compute
// CHECK: mem.done 1
mem.program @step {
  %x = mem.buffer "h" "activations" : memref<16xf32>
  %y = mem.buffer "h@host" "activations" : memref<16xf32, #mem.space<host>>
  mem.record 0 on compute
  mem.wait 0 on d2h
  mem.copy %x to %y on d2h {op = "h", instance = 0} : memref<16xf32>, memref<16xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
  mem.done 1
}
