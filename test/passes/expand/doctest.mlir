// RUN: tmc-opt %s -tmc-expand-composites -split-input-file | FileCheck %s

// CHECK-LABEL: @rms_norm
// CHECK: %[[SQUARE:.*]] = arith.mulf %arg0, %arg0
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[SQUARE]] over [1]
// CHECK: %[[EIGHTH:.*]] = arith.constant dense<1.250000e-01> : tensor<4xf32>
// CHECK: %[[MEAN:.*]] = arith.mulf %[[SUM]], %[[EIGHTH]]
// CHECK: %[[MORE:.*]] = arith.addf %[[MEAN]]
// CHECK: %[[RSTD:.*]] = math.rsqrt %[[MORE]]
// CHECK: %[[FACTOR:.*]] = nn.broadcast %[[RSTD]] to [0]
// CHECK: arith.mulf %arg0, %[[FACTOR]]
func.func @rms_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.rms_norm %x {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Two reductions of rows: the mean, and the mean of squares around it; 1/16 of
// the sum each.
// CHECK-LABEL: @layer_norm
// CHECK: %[[SUM:.*]] = nn.reduce sum %arg0 over [2]
// CHECK: %[[MEAN:.*]] = arith.mulf %[[SUM]]
// CHECK: %[[CENTRED:.*]] = arith.subf %arg0
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[CENTRED]], %[[CENTRED]]
// CHECK: nn.reduce sum %[[SQUARE]] over [2]
// CHECK: math.rsqrt
// CHECK: nn.broadcast %arg1 to [2]
// CHECK: nn.broadcast %arg2 to [2]
// CHECK-NOT: nn.layer_norm
func.func @layer_norm(%x: tensor<2x4x16xf32>, %g: tensor<16xf32>, %s: tensor<16xf32>) -> tensor<2x4x16xf32> {
  %y = nn.layer_norm %x scale(%g) shift(%s) {epsilon = 1.0e-5 : f64}
      : (tensor<2x4x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  return %y : tensor<2x4x16xf32>
}

// -----

// exp(x - max), then one division per row.
// CHECK-LABEL: @softmax
// CHECK: %[[MAX:.*]] = nn.reduce max %arg0 over [1]
// CHECK: %[[SHIFTED:.*]] = arith.subf %arg0
// CHECK: %[[E:.*]] = math.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[E]] over [1]
// CHECK: %[[INVERSE:.*]] = arith.divf {{.*}}, %[[SUM]] : tensor<4xf32>
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[INVERSE]] to [0]
// CHECK: arith.mulf %[[E]], %[[SPREAD]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The logarithm needs no division at all.
// CHECK-LABEL: @log_softmax
// CHECK: %[[SHIFTED:.*]] = arith.subf %arg0
// CHECK: %[[LOG:.*]] = math.log {{.*}} : tensor<4xf32>
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[LOG]] to [0]
// CHECK: arith.subf %[[SHIFTED]], %[[SPREAD]]
// CHECK-NOT: arith.divf
func.func @log_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.softmax %x {log} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @gelu
// CHECK: math.tanh
// CHECK: math.erf
// CHECK-NOT: nn.gelu
func.func @gelu(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %y = nn.gelu %x {tanh} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = nn.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
