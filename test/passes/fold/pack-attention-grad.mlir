// RUN: tmc-opt %s -tmc-fold-into-kernels | FileCheck %s

// The gradients of q, k and v side by side are one result, whatever the attributes.

// CHECK-LABEL: @packed
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x4x8xbf16>, %[[K:.*]]: tensor<2x3x2x8xbf16>, %[[L:.*]]: tensor<2x4x3xf32>)
// CHECK-NEXT: %[[ALL:.*]] = nn.packed_attention_grad %[[Q]], %[[K]], %[[K]], %[[Q]], %[[L]], %[[Q]] {causal, exact, nn.fill = -1.000000e+04 : f64, scale = 5.000000e-01 : f64, window = 2 : i64} : {{.*}} -> tensor<2x3x8x8xbf16>
// CHECK-NEXT: %[[ROWS:.*]] = nn.reshape %[[ALL]] : (tensor<2x3x8x8xbf16>) -> tensor<2x3x64xbf16>
// CHECK-NEXT: return %[[ROWS]]
func.func @packed(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x3x2x8xbf16>, %l: tensor<2x4x3xf32>) -> tensor<2x3x64xbf16> {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %q, %l, %q {causal, exact, nn.fill = -1.0e4, scale = 0.5, window = 2 : i64} : (tensor<2x3x4x8xbf16>, tensor<2x3x2x8xbf16>, tensor<2x3x2x8xbf16>, tensor<2x3x4x8xbf16>, tensor<2x4x3xf32>, tensor<2x3x4x8xbf16>) -> (tensor<2x3x4x8xbf16>, tensor<2x3x2x8xbf16>, tensor<2x3x2x8xbf16>)
  %v = nn.reshape %dv : (tensor<2x3x2x8xbf16>) -> tensor<2x3x16xbf16>
  %k1 = nn.reshape %dk : (tensor<2x3x2x8xbf16>) -> tensor<2x3x16xbf16>
  %q1 = nn.reshape %dq : (tensor<2x3x4x8xbf16>) -> tensor<2x3x32xbf16>
  %all = nn.concat %q1, %k1, %v {dim = 2 : i64} : (tensor<2x3x32xbf16>, tensor<2x3x16xbf16>, tensor<2x3x16xbf16>) -> tensor<2x3x64xbf16>
  return %all : tensor<2x3x64xbf16>
}

// Heads side by side are, too.

// CHECK-LABEL: @heads
// CHECK-NEXT: %[[ALL:.*]] = nn.packed_attention_grad
// CHECK-NEXT: return %[[ALL]]
func.func @heads(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %l: tensor<2x4x3xf32>) -> tensor<2x3x8x8xf32> {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %q, %l, %q {scale = 0.5} : (tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %all = nn.concat %dq, %dk, %dv {dim = 2 : i64} : (tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>) -> tensor<2x3x8x8xf32>
  return %all : tensor<2x3x8x8xf32>
}

// Side by side along another dimension they stay as they are: samples, or the
// columns of each head.

// CHECK-LABEL: @samples
// CHECK-NOT: packed
func.func @samples(%q: tensor<2x3x2x8xf32>, %l: tensor<2x2x3xf32>) -> (tensor<6x3x2x8xf32>, tensor<2x3x2x24xf32>) {
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.5} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %eq, %ek, %ev = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.7} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %all = nn.concat %dq, %dk, %dv {dim = 0 : i64} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>) -> tensor<6x3x2x8xf32>
  %wide = nn.concat %eq, %ek, %ev {dim = 3 : i64} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>) -> tensor<2x3x2x24xf32>
  return %all, %wide : tensor<6x3x2x8xf32>, tensor<2x3x2x24xf32>
}

// In another order they stay as they are.

// CHECK-LABEL: @swapped
// CHECK-NOT: packed
func.func @swapped(%q: tensor<2x3x2x8xf32>, %l: tensor<2x2x3xf32>) -> tensor<2x3x48xf32> {
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.5} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %v = nn.reshape %dv : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %k1 = nn.reshape %dk : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %q1 = nn.reshape %dq : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %all = nn.concat %q1, %v, %k1 {dim = 2 : i64} : (tensor<2x3x16xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x48xf32>
  return %all : tensor<2x3x48xf32>
}

// So they do where something else reads one of them.

// CHECK-LABEL: @read
// CHECK-NOT: packed
func.func @read(%q: tensor<2x3x2x8xf32>, %l: tensor<2x2x3xf32>) -> (tensor<2x3x48xf32>, tensor<2x3x2x8xf32>) {
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.5} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %v = nn.reshape %dv : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %k1 = nn.reshape %dk : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %q1 = nn.reshape %dq : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %all = nn.concat %q1, %k1, %v {dim = 2 : i64} : (tensor<2x3x16xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x48xf32>
  return %all, %dk : tensor<2x3x48xf32>, tensor<2x3x2x8xf32>
}

// And of one attention and another.

// CHECK-LABEL: @two
// CHECK-NOT: packed
func.func @two(%q: tensor<2x3x2x8xf32>, %l: tensor<2x2x3xf32>) -> tensor<2x3x48xf32> {
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.5} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %eq, %ek, %ev = nn.attention_grad %q, %q, %q, %q, %l, %q {scale = 0.7} : (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x2x3xf32>, tensor<2x3x2x8xf32>) -> (tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x8xf32>)
  %v = nn.reshape %ev : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %k1 = nn.reshape %dk : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %q1 = nn.reshape %dq : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
  %all = nn.concat %q1, %k1, %v {dim = 2 : i64} : (tensor<2x3x16xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x48xf32>
  return %all : tensor<2x3x48xf32>
}
