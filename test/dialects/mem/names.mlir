// RUN: tmc-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// Spaces and engines have the names of the machine's tables.

// CHECK-LABEL: mem.program @names
// CHECK-SAME: arena_bytes = #mem.bytes<device = 0, file = 65536>
// CHECK: memref<16xf32, #mem.space<file>>
// CHECK: mem.record 0 on file-write
// CHECK: mem.wait 0 on file-read
mem.program @names attributes {arena_bytes = #mem.bytes<device = 0, file = 65536>} {
  %x = mem.buffer "w" "parameters" {offset = 0 : i64} : memref<16xf32, #mem.space<file>>
  mem.record 0 on file-write
  mem.wait 0 on file-read
}

// -----

mem.program @engine {
  // expected-error @+2 {{there is no engine 'read'}}
  // expected-error @+2 {{failed to parse Mem_EngineAttr parameter}}
  mem.record 0 on read
}

// -----

// expected-error @+2 {{there is no space 'disk'}}
// expected-error @below {{failed to parse Mem_BytesAttr parameter}}
mem.program @space attributes {arena_bytes = #mem.bytes<disk = 1>} {
}
