// RUN: tmc-opt %s -split-input-file -verify-diagnostics -o /dev/null

// A launch joins the one after it; views and buffers may stand between them.

mem.program @right {
  %g = mem.buffer "g" "gradients" {persistent} : memref<4x4xf32>
  %n = mem.buffer "n" "gradients" {persistent} : memref<f32>
  mem.launch "SquareSum"(%g : memref<4x4xf32>) -> (%n : memref<f32>) {in_order = array<i64>, instance = 0 : i64, joinable, joins_next, op = "a", out_order = array<i64>, params = []}
  %v = mem.view %g : memref<4x4xf32> to memref<16xf32>
  mem.launch "SquareSum"(%v : memref<16xf32>) -> (%n : memref<f32>) {in_order = array<i64>, instance = 0 : i64, joinable, op = "b", out_order = array<i64>, params = []}
}

// -----

mem.program @other {
  %g = mem.buffer "g" "gradients" {persistent} : memref<4x4xf32>
  %n = mem.buffer "n" "gradients" {persistent} : memref<f32>
  // expected-error @below {{joins the launch after it, which isn't a joinable one of the same kernel}}
  mem.launch "SquareSum"(%g : memref<4x4xf32>) -> (%n : memref<f32>) {in_order = array<i64>, instance = 0 : i64, joinable, joins_next, op = "a", out_order = array<i64>, params = []}
  mem.launch "Sum"(%g : memref<4x4xf32>) -> (%n : memref<f32>) {in_order = array<i64>, instance = 0 : i64, joinable, op = "b", out_order = array<i64>, params = []}
}

// -----

mem.program @last {
  %g = mem.buffer "g" "gradients" {persistent} : memref<4x4xf32>
  %n = mem.buffer "n" "gradients" {persistent} : memref<f32>
  // expected-error @below {{joins the launch after it}}
  mem.launch "SquareSum"(%g : memref<4x4xf32>) -> (%n : memref<f32>) {in_order = array<i64>, instance = 0 : i64, joinable, joins_next, op = "a", out_order = array<i64>, params = []}
  mem.fill %n : memref<f32>
}
