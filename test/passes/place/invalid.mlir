// RUN: tmc-opt %s -pass-pipeline="builtin.module(mem.program(tmc-place))" -verify-diagnostics

// a and b are alive together: 512 bytes, where the plan promised 448.

// expected-error @below {{a defect: 512 bytes are alive at the peak where the plan promised 448}}
mem.program @step attributes {train.plan = {live_peak_bytes = 448 : i64}} {
  %a = mem.buffer "a" "activations" : memref<64xf32>
  %b = mem.buffer "b" "activations" : memref<64xf32>
  mem.fill %a : memref<64xf32>
  // expected-note @below {{the peak is here}}
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}
