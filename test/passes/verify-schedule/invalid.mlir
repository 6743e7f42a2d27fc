// RUN: tmc-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(mem.program(tmc-verify-schedule))"

// b takes bytes that are still copied.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  mem.record 0 on compute
  mem.wait 0 on d2h
  // expected-note @below {{the other access is here}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  // expected-error @below {{a defect: it writes 'b' on compute while d2h may still read 'a' there}}
  mem.fill %b : memref<64xf32>
  mem.wait 1 on compute
  mem.done 1
}

// -----

// a is copied before it is made.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  // expected-note @below {{the other access is here}}
  mem.fill %a : memref<64xf32>
  // expected-error @below {{a defect: it reads 'a' on d2h while compute may still write it}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
  mem.done 1
}

// -----

// The kernels go on without the copy.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  mem.record 0 on compute
  mem.wait 0 on d2h
  // expected-note @below {{the other access is here}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  // expected-error @below {{a defect: it stands where the kernels haven't waited for d2h}}
  mem.done 1
}

// -----

// What is copied is another buffer.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  // expected-note @below {{the other access is here}}
  mem.fill %b : memref<64xf32>
  mem.record 0 on compute
  mem.wait 0 on d2h
  // expected-error @below {{a defect: it reads 'a', whose bytes hold 'b'}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
  mem.done 1
}

// -----

// Nothing makes what is copied.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  // expected-error @below {{a defect: it reads 'a', which nothing has written}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
  mem.done 1
}

// -----

// No such event.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  // expected-error @below {{a defect: it waits for event 7, which nothing has recorded}}
  mem.wait 7 on d2h
}

// -----

// Work without an end.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  mem.record 0 on compute
  mem.wait 0 on d2h
  // expected-error @below {{a defect: it is never done}}
  mem.copy %a to %h on d2h {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
  mem.record 1 on d2h
  mem.wait 1 on compute
}

// -----

// An end without work.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  // expected-error @below {{a defect: it ends work that hasn't started}}
  mem.done 1
}

// -----

// The wrong way.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  mem.fill %a : memref<64xf32>
  // expected-error @below {{a defect: it goes from one space to another that h2d doesn't copy to}}
  mem.copy %a to %h on h2d {op = "a", instance = 0} : memref<64xf32>, memref<64xf32, #mem.space<host>>
}

// -----

// A kernel reaches for the host.

mem.program @step attributes {arena_bytes = #mem.bytes<device = 512, host = 4096>} {
  %a = mem.buffer "a" "activations" {offset = 0 : i64} : memref<64xf32>
  %b = mem.buffer "b" "activations" {offset = 0 : i64} : memref<64xf32>
  %h = mem.buffer "a@host" "activations" {offset = 0 : i64} : memref<64xf32, #mem.space<host>>
  // expected-error @below {{a defect: it touches 'a@host', which compute doesn't reach}}
  mem.launch "Fill"() -> (%h : memref<64xf32, #mem.space<host>>) {in_order = array<i64>, instance = 0 : i64, op = "h", out_order = array<i64: 0>, params = []}
}
