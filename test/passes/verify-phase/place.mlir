// RUN: tmc-opt %s -tmc-verify-phase=phase=place -split-input-file -verify-diagnostics

// a and b are alive together and share bytes.
// expected-error @below {{a defect: }}
mem.program @step attributes {arena_bytes = #mem.bytes<device = 512>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 192 : i64} : memref<64xf32>
  mem.fill %a : memref<64xf32>
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}

// -----

mem.program @step attributes {arena_bytes = #mem.bytes<device = 448>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  // expected-error @below {{a defect: 'b' lies at [256, 512) in an arena of 448 bytes}}
  %b = mem.buffer "b" "activations" {offset = 256 : i64} : memref<64xf32>
  mem.fill %a : memref<64xf32>
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}

// -----

// expected-error @below {{a defect: 512 bytes are alive at the peak where the plan promised 448}}
mem.program @step attributes {arena_bytes = #mem.bytes<device = 512>, train.plan = {live_peak_bytes = 448 : i64}} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 256 : i64} : memref<64xf32>
  mem.fill %a : memref<64xf32>
  mem.launch "Copy"(%a : memref<64xf32>) -> (%b : memref<64xf32>) {in_order = array<i64>, instance = 0 : i64, op = "first", out_order = array<i64: 0>, params = []}
}
