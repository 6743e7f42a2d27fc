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

// -----

// Statistics of 16 bits are f32; the result is rounded once.
// CHECK-LABEL: @batch_norm
// CHECK: %[[M:[a-z_]*]], %[[V:[a-z_]*]], %[[MEAN:[a-z_]*]], %[[RSTD:[a-z_]*]] = nn.batch_statistics %arg0, %arg3, %arg4 {channels_last
// CHECK: %[[X:.*]] = arith.extf %arg0
// CHECK: %[[MEANS:.*]] = nn.broadcast %[[MEAN]] to [1]
// CHECK: %[[CENTRED:.*]] = arith.subf %[[X]], %[[MEANS]]
// CHECK: %[[RSTDS:.*]] = nn.broadcast %[[RSTD]] to [1]
// CHECK: %[[NORMAL:.*]] = arith.mulf %[[CENTRED]], %[[RSTDS]]
// CHECK: %[[SCALES:.*]] = nn.broadcast %arg1 to [1]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[NORMAL]], %[[SCALES]]
// CHECK: %[[SHIFTS:.*]] = nn.broadcast %arg2 to [1]
// CHECK: %[[Y:.*]] = arith.addf %[[SCALED]], %[[SHIFTS]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[Y]]
// CHECK: return %[[ROUNDED]], %[[M]], %[[V]]
func.func @batch_norm(%x: tensor<4x8xbf16>, %s: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>) {
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {channels_last, epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Channels are dimension 1.
// CHECK-LABEL: @batch_norm_grad
// CHECK-DAG: %[[DSHIFT:.*]] = nn.reduce sum %arg4 over [0, 2, 3]
// CHECK-DAG: %[[PRODUCT:.*]] = arith.mulf %arg4
// CHECK-DAG: %[[DSCALE:.*]] = nn.reduce sum %[[PRODUCT]] over [0, 2, 3]
// CHECK-DAG: nn.broadcast %[[DSCALE]] to [1]
// CHECK-DAG: nn.broadcast %[[DSHIFT]] to [1]
// CHECK-DAG: arith.constant dense<6.250000e-02>
// CHECK: return %{{.*}}, %[[DSCALE]], %[[DSHIFT]]
func.func @batch_norm_grad(%x: tensor<4x8x2x2xf32>, %s: tensor<8xf32>, %m: tensor<8xf32>, %r: tensor<8xf32>, %g: tensor<4x8x2x2xf32>) -> (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:3 = nn.batch_norm_grad %x, %s, %m, %r, %g : (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8x2x2xf32>) -> (tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>
}
