// RUN: tmc-opt %s -pass-pipeline='builtin.module(func.func(tmc-widen-composites))' -split-input-file | FileCheck %s

// CHECK-LABEL: @rms_norm
//       CHECK: %[[WIDE:.*]] = arith.extf %arg0 : tensor<4x8xbf16> to tensor<4x8xf32>
//       CHECK: %[[INNER:.*]] = nn.rms_norm %[[WIDE]] {epsilon = {{.*}}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
//       CHECK: %[[Y:.*]] = arith.truncf %[[INNER]] : tensor<4x8xf32> to tensor<4x8xbf16>
//       CHECK: return %[[Y]]
func.func @rms_norm(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %y = nn.rms_norm %x {epsilon = 1.0e-6 : f64} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

// Scale and shift are widened with the input; what is f32 stays as it is.
// CHECK-LABEL: @norms
// CHECK-COUNT-3: arith.extf
// CHECK: nn.layer_norm {{.*}}(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK: %[[ROUNDED:.*]] = arith.truncf
// CHECK-NOT: arith.
// CHECK: nn.softmax %arg3
// CHECK-NOT: arith.
// CHECK: return %[[ROUNDED]]
func.func @norms(%x: tensor<4x8xf16>, %s: tensor<8xf16>, %b: tensor<8xf16>, %z: tensor<4x8xf32>) -> (tensor<4x8xf16>, tensor<4x8xf32>) {
  %y = nn.layer_norm %x scale(%s) shift(%b) {epsilon = 1.0e-5 : f64} : (tensor<4x8xf16>, tensor<8xf16>, tensor<8xf16>) -> tensor<4x8xf16>
  %p = nn.softmax %z : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y, %p : tensor<4x8xf16>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @pointwise
// CHECK: nn.gelu {{.*}}tensor<8xf32>
// CHECK: arith.truncf {{.*}} to tensor<8xbf16>
// CHECK: arith.extf
// CHECK: nn.softmax {{.*}}log{{.*}}tensor<8xf32>
// CHECK: arith.truncf {{.*}} to tensor<8xbf16>
func.func @pointwise(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = nn.gelu %x : (tensor<8xbf16>) -> tensor<8xbf16>
  %z = nn.softmax %y {log} : (tensor<8xbf16>) -> tensor<8xbf16>
  return %z : tensor<8xbf16>
}

// -----

// All five results are rounded, each once.
// CHECK-LABEL: @batch_norm
// CHECK-COUNT-5: arith.extf
// CHECK: nn.batch_norm {{.*}}-> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK-COUNT-5: arith.truncf
func.func @batch_norm(%x: tensor<2x3x4xf16>, %s: tensor<3xf16>, %b: tensor<3xf16>, %m: tensor<3xf16>, %v: tensor<3xf16>)
    -> (tensor<2x3x4xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) {
  %y:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5 : f64, momentum = 1.0e-1 : f64} : (tensor<2x3x4xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) -> (tensor<2x3x4xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>)
  return %y#0, %y#1, %y#2, %y#3, %y#4 : tensor<2x3x4xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>
}
