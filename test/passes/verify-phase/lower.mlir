// RUN: tmc-opt %s -tmc-verify-phase=phase=lower -split-input-file -verify-diagnostics

mem.program @step {
  %a = mem.buffer "a" "activations" : memref<64xf32>
  %b = mem.buffer "b" "activations" : memref<64xf32>
  // expected-error @below {{a defect: 'a' is read before it is written}}
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}

// -----

mem.program @step {
  %a = mem.buffer "a" "activations" : memref<64xf32>
  %b = mem.buffer "b" "activations" : memref<64xf32>
  mem.fill %a : memref<64xf32>
  // expected-error @below {{a defect: there is no kernel 'fused_0'}}
  mem.launch "fused_0"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {generated, in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}

// -----

mem.program @step {
  // expected-error @below {{a defect: lowering left it}}
  %a = arith.constant dense<1.0> : tensor<4xf32>
}

// -----

mem.program @step {
}
// expected-error @below {{a defect: lowering left it}}
func.func private @forward()
