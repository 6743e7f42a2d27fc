// RUN: tmc-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(tmc-verify-ranks{data=2})"

// Two ranks gather in another order.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 0's call 1, a gather of 'a' over dp, is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: rank 1's call 1, a gather of 'b' over dp, stands where rank 0 makes a gather of 'a' over dp: the two ranks have another order}}
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}

// -----

// Rank 1 lacks a gather.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  // expected-error @below {{a defect: rank 0's call 2, a gather of 'b' over dp, has no partner among the 1 calls of rank 1 over dp}}
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// A gather meets an exchange.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 0's call 1, a gather of 'a' over dp, is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: rank 1's call 1, an exchange of 'a' over dp, meets rank 0's gather}}
  mem.launch "ExchangeRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The types of elements differ.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 0's call 1, a gather of 'a' over dp, is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf16>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf16>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf16>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf16>
  // expected-error @below {{a defect: rank 1's call 1, a gather of 'a' over dp, moves f16, where rank 0's moves f32}}
  mem.launch "GatherRanks"(%a : memref<4xf16>) -> (%x : memref<2x4xf16>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The pieces differ.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 0's call 1, a gather of 'a' over dp, is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: rank 1's call 1, a gather of 'a' over dp, has pieces of 8 bytes, where rank 0's have 16}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 8], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The wholes differ.

mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{rank 0's call 1, a gather of 'a' over dp, is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: rank 1's call 1, a gather of 'a' over dp, is of 28 bytes in all, where rank 0's is of 32}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 28]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// A call is of more ranks than the mesh has.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  // expected-error @below {{a defect: each rank makes a gather of 'b' over dp of 4 ranks, where the mesh is dp=2 tp=1 pp=1}}
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 4], ["bytes", 16], ["total", 32]]}
  mem.record 1 on network
  mem.wait 1 on compute
  mem.done 1
}

// -----

// The last bytes of the whole are no rank's.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: each rank's gather of 'a' has pieces of 8 bytes for 2 ranks: the last 16 of 32 belong to no rank}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 8], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// A shard that isn't of whole units.

mem.program @step {
  %s = mem.buffer "s" "activations" {offset = 0 : i64, persistent} : memref<4096xf32>
  %w = mem.buffer "w" "activations" {offset = 16384 : i64} : memref<64x64xf32>
  // expected-error @below {{a defect: each rank's gather of 's' has pieces of 8192 bytes, where 16384 are the fewest units of 16384 for 2 ranks and 16384 bytes}}
  mem.launch "GatherRanks"(%s : memref<4096xf32>) -> (%w : memref<64x64xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "s", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 8192], ["total", 16384]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The offset of a shard.

mem.program @step {
  %s = mem.buffer "s" "activations" {offset = 0 : i64, persistent} : memref<4096xf32>
  %v = mem.view %s : memref<4096xf32> to memref<4096xf32, strided<[1], offset: 1024>>
  %w = mem.buffer "w" "activations" {offset = 32768 : i64} : memref<64x128xf32>
  // expected-error @below {{a defect: each rank's gather of 's' reads bytes [4096, 20480) of 's', which has 16384}}
  mem.launch "GatherRanks"(%v : memref<4096xf32, strided<[1], offset: 1024>>) -> (%w : memref<64x128xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "s", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16384], ["total", 32768]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// A rank keeps less than its shard.

mem.program @step {
  %s = mem.buffer "w" "activations" {offset = 0 : i64, persistent, tensor = {train.name = "w", train.role = #train.role<param>, train.whole = tensor<128x128xf32>}} : memref<4096xf32>
  %x = mem.buffer "x" "activations" {offset = 16384 : i64} : memref<4096xf32>
  // expected-error @below {{a defect: each rank keeps 4096 elements of 'w', where a shard of 16384 has 8192}}
  mem.launch "Some"(%s : memref<4096xf32>) -> (%x : memref<4096xf32>) {in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
}

// -----

// The kernels read a gather's result too early, and the done shows it as well.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{a gather of 'a' over dp is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  // expected-error @below {{a defect: each rank reads 'x' on compute while a gather of 'a' over dp may still write it}}
  mem.launch "Some"(%x : memref<2x4xf32>) -> (%y : memref<2x4xf32>) {in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The wait before a done is dropped.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{a gather of 'a' over dp is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  // expected-error @below {{a defect: each rank counts a gather of 'a' over dp as done where the kernels haven't waited for it}}
  mem.done 0
}

// -----

// The network doesn't wait for the kernel that makes its operand.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{the other access is here}}
  mem.launch "Some"(%b : memref<4xf32>) -> (%a : memref<4xf32>) {in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
  // expected-error @below {{a defect: each rank reads 'a' in a gather of 'a' over dp while compute may still write it: the network doesn't wait}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// The operand of a call is written again in the meantime.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-note @below {{a gather of 'a' over dp is here}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  // expected-error @below {{a defect: each rank writes 'a' on compute while a gather of 'a' over dp may still read it}}
  mem.launch "Some"(%b : memref<4xf32>) -> (%a : memref<4xf32>) {in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
  mem.wait 0 on compute
  mem.done 0
}

// -----

// A call is never done.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: each rank never waits for a gather of 'a' over dp: it has no done}}
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
}

// -----

// A gather is missing on all ranks.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%b : memref<4xf32>) -> (%y : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "b", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
  // expected-error @below {{a defect: each rank reads 'x' in 'f', which nothing has made}}
  mem.launch "Some"(%x : memref<2x4xf32>) -> (%y : memref<2x4xf32>) {in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
}

// -----

// An updated shard doesn't come back.

mem.program @step {
  %w = mem.buffer "w" "activations" {offset = 0 : i64, persistent} : memref<64x128xf32>
  %s = mem.buffer "s" "activations" {offset = 32768 : i64} : memref<4096xf32>
  // expected-error @below {{a defect: each rank takes its piece of 'w', and no gather makes it whole again}}
  mem.launch "ShardOf"(%w : memref<64x128xf32>) -> (%s : memref<4096xf32>) {in_order = array<i64>, instance = 0 : i64, op = "w", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16384], ["total", 32768]]}
}

// -----

// A kernel of the network that is no call between ranks.

mem.program @step {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  // expected-error @below {{a defect: 'Some' on network is no call between ranks}}
  mem.launch "Some"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "f", out_order = array<i64>, params = []}
}

// -----

// Rank 1 has two programs.

mem.program @first attributes {mem.ranks = array<i64: 0, 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// expected-error @below {{is the program of rank 1, which isn't one of 2 ranks or has another program}}
mem.program @second attributes {mem.ranks = array<i64: 1>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}

// -----

// Rank 1 has no program.

// expected-error @below {{stands beside no program of rank 1}}
mem.program @first attributes {mem.ranks = array<i64: 0>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64, persistent} : memref<4xf32>
  %b = mem.buffer "b" "activations" {offset = 64 : i64, persistent} : memref<4xf32>
  %x = mem.buffer "x" "activations" {offset = 128 : i64} : memref<2x4xf32>
  %y = mem.buffer "y" "activations" {offset = 192 : i64} : memref<2x4xf32>
  mem.launch "GatherRanks"(%a : memref<4xf32>) -> (%x : memref<2x4xf32>) {engine = #mem<engine network>, in_order = array<i64>, instance = 0 : i64, op = "a", out_order = array<i64: 0>, params = [["axis", "Axis::Data"], ["ranks", 2], ["bytes", 16], ["total", 32]]}
  mem.record 0 on network
  mem.wait 0 on compute
  mem.done 0
}
