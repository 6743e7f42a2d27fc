// RUN: tmc-opt %s -verify-diagnostics -pass-pipeline="builtin.module(tmc-verify-ranks{data=2 tensor=2})"

// Four ranks wait for each other in a ring: each pair agrees in its own order.

mem.program @some attributes {mem.ranks = array<i64: 0, 3>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: rank 0's call 1, a gather of 'a' over dp, waits for rank 2's call 1, a gather of 'b' over tp, which waits for rank 3's call 1, a gather of 'a' over dp, which waits for rank 1's call 1, a gather of 'b' over tp, which waits for rank 0}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Tensor"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}

mem.program @others attributes {mem.ranks = array<i64: 1, 2>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 2's call 1, a gather of 'b' over tp, is here}}
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Tensor"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}
