// RUN: tmc-opt %s -tmc-fuse -split-input-file | FileCheck %s

// Two halves of a row, read where they lie. Nothing copies them.
// CHECK-LABEL: @columns
// CHECK: nn.fused (%[[A:.*]] = %arg0) : (tensor<4x64xf32>) -> tensor<4x32xf32> {
// CHECK-DAG: nn.slice %[[A]] [0, 0] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
// CHECK-DAG: nn.slice %[[A]] [0, 32] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
func.func @columns(%y: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %g = nn.slice %y [0, 0] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %u = nn.slice %y [0, 32] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %z = arith.mulf %g, %u : tensor<4x32xf32>
  return %z : tensor<4x32xf32>
}

// -----

// Both parts of a concatenation, made by one kernel behind reshapes, in the
// other order. The third result stays.
// CHECK-LABEL: @parts
// CHECK: %[[F:.*]]:2 = nn.fused
// CHECK: %[[W:.*]] = nn.concat %{{.*}}, %{{.*}} {dim = 1 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x64xf32>
// CHECK: nn.yield %{{.*}}, %[[W]] : tensor<2x4x32xf32>, tensor<8x64xf32>
// CHECK: }
// CHECK-NOT: nn.concat
// CHECK: return %[[F]]#1, %[[F]]#0
func.func @parts(%a: tensor<2x4x32xf32>, %b: tensor<2x4x32xf32>) -> (tensor<8x64xf32>, tensor<2x4x32xf32>) {
  %s = arith.addf %a, %b : tensor<2x4x32xf32>
  %m = arith.mulf %s, %b : tensor<2x4x32xf32>
  %d = arith.subf %m, %b : tensor<2x4x32xf32>
  %s2 = nn.reshape %s : (tensor<2x4x32xf32>) -> tensor<8x32xf32>
  %m2 = nn.reshape %m : (tensor<2x4x32xf32>) -> tensor<8x32xf32>
  %w = nn.concat %m2, %s2 {dim = 1 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x64xf32>
  return %w, %d : tensor<8x64xf32>, tensor<2x4x32xf32>
}

// -----

// A part that something else reads, too, has a place of its own.
// CHECK-LABEL: @alsoRead
// CHECK: nn.yield %{{.*}}, %{{.*}} : tensor<8x32xf32>, tensor<8x32xf32>
// CHECK: nn.concat
func.func @alsoRead(%a: tensor<8x32xf32>, %b: tensor<8x32xf32>) -> (tensor<8x64xf32>, tensor<8x32xf32>) {
  %s = arith.addf %a, %b : tensor<8x32xf32>
  %m = arith.mulf %s, %b : tensor<8x32xf32>
  %w = nn.concat %m, %s {dim = 1 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x64xf32>
  return %w, %s : tensor<8x64xf32>, tensor<8x32xf32>
}

// -----

// Columns from 4 on don't begin at a multiple of 16 bytes in 16 bits, and a
// column of a row isn't a run of elements: these are copied.
// CHECK-LABEL: @others
// CHECK: nn.slice %arg0
// CHECK: nn.fused
// CHECK-NOT: nn.slice
// CHECK: }
// CHECK: nn.slice %arg1
// CHECK: nn.fused
// CHECK-NOT: nn.slice
// CHECK: return
func.func @others(%y: tensor<4x64xbf16>, %z: tensor<64x64xf32>) -> (tensor<4x32xbf16>, tensor<64x32xf32>) {
  %g = nn.slice %y [0, 4] step [1, 1] : (tensor<4x64xbf16>) -> tensor<4x32xbf16>
  %n = arith.negf %g : tensor<4x32xbf16>
  %u = nn.slice %z [0, 0] step [1, 2] : (tensor<64x64xf32>) -> tensor<64x32xf32>
  %m = arith.negf %u : tensor<64x32xf32>
  return %n, %m : tensor<4x32xbf16>, tensor<64x32xf32>
}

// -----

// The gradients of the halves of a row, as of a gate and what it multiplies. Both kernels read the
// row and the gradient. They are one, which writes the whole gradient.
// CHECK-LABEL: @gradientOfHalves
// CHECK: %[[F:.*]] = nn.fused
// CHECK: nn.concat
// CHECK: }
// CHECK-NOT: nn.fused
// CHECK-NOT: nn.concat
// CHECK: return %[[F]]
func.func @gradientOfHalves(%y: tensor<4x64xf32>, %dz: tensor<4x32xf32>) -> tensor<4x64xf32> {
  %g = nn.slice %y [0, 0] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %u = nn.slice %y [0, 32] step [1, 1] : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %dg = arith.mulf %dz, %u : tensor<4x32xf32>
  %du = arith.mulf %dz, %g : tensor<4x32xf32>
  %dy = nn.concat %dg, %du {dim = 1 : i64} : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x64xf32>
  return %dy : tensor<4x64xf32>
}
