// RUN: tmc-opt %s -tmc-fuse -split-input-file | FileCheck %s

// CHECK-LABEL: @chain
// CHECK: %[[T:.*]] = nn.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1)
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: %[[U:.*]] = math.tanh %[[S]]
// CHECK-NEXT: nn.yield %[[U]]
// CHECK: return %[[T]]
func.func @chain(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %s = arith.addf %x, %y : tensor<8x4xf32>
  %t = math.tanh %s : tensor<8x4xf32>
  return %t : tensor<8x4xf32>
}

// -----

// One kernel for a residual, its norm's two reductions and what follows them.
// CHECK-LABEL: @softmax
// CHECK-COUNT-1: nn.fused
// CHECK-NOT: nn.fused
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nn.reduce max %x over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = nn.broadcast %m to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %s = arith.subf %x, %mb : tensor<4x8xf32>
  %e = math.exp %s : tensor<4x8xf32>
  %n = nn.reduce sum %e over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %nb = nn.broadcast %n to [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = arith.divf %e, %nb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A product must run between the two: two kernels.
// CHECK-LABEL: @something_between
// CHECK: %[[T:.*]] = nn.fused
// CHECK: %[[P:.*]] = nn.matmul %[[T]]
// CHECK: nn.fused ({{.*}} = %[[P]], {{.*}} = %[[T]])
func.func @something_between(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %t = math.tanh %x : tensor<8x8xf32>
  %p = nn.matmul %t, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = arith.addf %p, %t : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// -----

// The draws are recomputed where they are wanted, and kept nowhere.
// CHECK-LABEL: @draws_twice
// CHECK: nn.fused ({{.*}}) : (tensor<2xi64>, tensor<4xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: nn.random
// CHECK: nn.matmul
// CHECK: nn.fused ({{.*}}) : (tensor<2xi64>, tensor<4xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: nn.random
func.func @draws_twice(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %seed: tensor<2xi64>, %samples: tensor<4xi64>) -> tensor<4x8xf32> {
  %u = nn.random %seed, %samples {stream = 1 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<4x8xf32>
  %p = arith.constant dense<0.1> : tensor<4x8xf32>
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %keep = arith.cmpf oge, %u, %p : tensor<4x8xf32>
  %a = arith.select %keep, %x, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  %m = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = arith.select %keep, %m, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

// A view at the border stays a view; inside it is nothing: 4 * 64 = 256.
// CHECK-LABEL: @views
// CHECK: %[[D:.*]]:2 = nn.fused ({{.*}}) : (tensor<4x64x96xf32>) -> (tensor<4x64x96xf32>, tensor<96xf32>)
// CHECK: nn.reshape {{.*}} : (tensor<4x64x96xf32>) -> tensor<256x96xf32>
// CHECK-NEXT: nn.reduce
// CHECK: %[[R:.*]] = nn.reshape %[[D]]#0
// CHECK: nn.matmul %[[R]]
func.func @views(%x: tensor<4x64x96xf32>, %w: tensor<96x32xf32>) -> (tensor<256x32xf32>, tensor<96xf32>) {
  %t = math.tanh %x : tensor<4x64x96xf32>
  %r = nn.reshape %t : (tensor<4x64x96xf32>) -> tensor<256x96xf32>
  %b = nn.reduce sum %r over [0] : (tensor<256x96xf32>) -> tensor<96xf32>
  %m = nn.matmul %r, %w : (tensor<256x96xf32>, tensor<96x32xf32>) -> tensor<256x32xf32>
  return %m, %b : tensor<256x32xf32>, tensor<96xf32>
}

// -----

// Saving the operand (one tensor) is less than saving what the derivative
// reads of the forward pass (two): the second kernel makes tanh and its square
// again, and the first one gives its result alone.
// CHECK-LABEL: @make_again
// CHECK: nn.fused (%{{.*}} = %[[H:.*]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK: nn.fused ({{.*}}%[[H]]{{.*}})
// CHECK-NEXT: math.tanh
func.func @make_again(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %h = nn.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %one = arith.constant dense<1.0> : tensor<8x8xf32>
  %t = math.tanh %h : tensor<8x8xf32>
  %y = arith.mulf %t, %h : tensor<8x8xf32>
  %p = nn.matmul %y, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = nn.matmul %p, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = arith.mulf %t, %t : tensor<8x8xf32>
  %d = arith.subf %one, %s : tensor<8x8xf32>
  %e = arith.addf %d, %t : tensor<8x8xf32>
  %g = arith.mulf %e, %q : tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}

// -----

// The sum over rows joins the kernel that reads the same rows.
// CHECK-LABEL: @join_readers
// CHECK: nn.fused
// CHECK-DAG: nn.reduce sum {{.*}} over [0]
// CHECK-DAG: nn.reduce sum {{.*}} over [1]
// CHECK: nn.yield
// CHECK-NOT: nn.fused
func.func @join_readers(%x: tensor<16x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<16x8xf32>) {
  %h = nn.matmul %x, %w : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %b = nn.reduce sum %h over [0] : (tensor<16x8xf32>) -> tensor<8xf32>
  %r = nn.reduce sum %h over [1] : (tensor<16x8xf32>) -> tensor<16xf32>
  %rb = nn.broadcast %r to [0] : (tensor<16xf32>) -> tensor<16x8xf32>
  %d = arith.subf %h, %rb : tensor<16x8xf32>
  return %b, %d : tensor<8xf32>, tensor<16x8xf32>
}
