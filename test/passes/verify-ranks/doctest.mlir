// RUN: tmc-opt %s -pass-pipeline="builtin.module(tmc-verify-ranks{data=2})" | FileCheck %s

// Two ranks exchange the pieces of a gradient, and gather the sums.

// CHECK: mem.launch "ExchangeRanks"
// CHECK: mem.launch "GatherRanks"
mem.program @step {
  %g = mem.buffer "g" "gradients" {offset = 0 : i64, persistent} : memref<128x128xf32>
  %p = mem.buffer "pieces" "gradients" {offset = 65536 : i64} : memref<2x8192xf32>
  %s = mem.buffer "sum" "gradients" {offset = 131072 : i64} : memref<8192xf32>
  mem.launch "ExchangeRanks"(%g : memref<128x128xf32>) -> (%p : memref<2x8192xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "w", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 32768], ["total", 65536]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  mem.launch "SumPieces"(%p : memref<2x8192xf32>) -> (%s : memref<8192xf32>) {in_order = array<i64>, instance = 0 : i64, op = "w", out_order = array<i64: 0>, params = []}
  mem.record 1 on compute
  mem.wait 1 on network
  mem.launch "GatherRanks"(%s : memref<8192xf32>) -> (%g : memref<128x128xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "w", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 32768], ["total", 65536]]}
  mem.record 2 on network
  mem.wait 2 on compute
  mem.done 2
}
