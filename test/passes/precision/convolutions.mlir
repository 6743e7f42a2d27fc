// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}),tmc-fold-into-kernels,tmc-round-as-read,canonicalize)' | FileCheck %s --check-prefix=FOLDED
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}),tmc-fold-into-kernels,tmc-round-as-read{target=cuda:sm_90},canonicalize)' | FileCheck %s --check-prefix=FOLDED
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16,norm=f32}))' | FileCheck %s --check-prefix=WIDE

// A convolution's factors and result are bf16, its filter's gradient f32. What keeps
// activations follows: a batch norm and its gradient read and write bf16 beside
// statistics of f32, a pool too. A sum of two branches is rounded once for all that
// read it, as the convolution does; so is its gradient.

// CHECK-LABEL: train.step @step
//   CHECK-DAG:   %[[X:.*]] = arith.truncf %arg0 : tensor<2x4x4x8xf32> to tensor<2x4x4x8xbf16>
//   CHECK-DAG:   %[[F:.*]] = arith.truncf %arg1 : tensor<8x8x1x1xf32> to tensor<8x8x1x1xbf16>
//       CHECK:   %[[C:.*]] = nn.conv %[[X]], %[[F]]
//  CHECK-SAME:     -> tensor<2x4x4x8xbf16>
//       CHECK:   %[[B:.*]], %{{.*}}, %{{.*}}, %[[M:.*]], %[[R:.*]] = nn.batch_norm %[[C]], %arg2, %arg3, %arg4, %arg5
//  CHECK-SAME:     (tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x4x8xbf16>, tensor<8xf32>
//       CHECK:   %[[BW:.*]] = arith.extf %[[B]]
//       CHECK:   %[[P:.*]] = nn.max_pool %[[C]] {{.*}}(tensor<2x4x4x8xbf16>) -> tensor<2x4x4x8xbf16>
//       CHECK:   %[[PW:.*]] = arith.extf %[[P]]
//       CHECK:   %[[S:.*]] = arith.addf %[[BW]], %[[PW]]
//       CHECK:   %[[Y:.*]] = arith.maximumf %[[S]],
//       CHECK:   %[[YN:.*]] = arith.truncf %[[Y]]
//       CHECK:   %[[YW:.*]] = arith.extf %[[YN]]
//       CHECK:   %[[D:.*]] = nn.conv %[[YN]], %[[F]]
//       CHECK:   arith.addf %{{.*}}, %[[YW]] : tensor<2x4x4x8xf32>
//       CHECK:   nn.conv_grad_filter %[[YN]], %{{.*}}(tensor<2x4x4x8xbf16>, tensor<2x4x4x8xbf16>) -> tensor<8x8x1x1xf32>
//       CHECK:   %[[G:.*]] = nn.conv_grad_input %{{.*}}, %[[F]] {{.*}} -> tensor<2x4x4x8xbf16>
//       CHECK:   %[[GB:.*]], %{{.*}}, %{{.*}} = nn.batch_norm_grad %[[C]], %arg2, %[[M]], %[[R]], %{{[0-9]+}} {
//  CHECK-SAME:     (tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x4x4x8xbf16>) -> (tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>)

// The derivative of relu asks what is kept; a filter is rounded as it is read.

// FOLDED-LABEL: train.step @step
//       FOLDED:   nn.conv %{{.*}}, %arg1 {{.*}}(tensor<2x4x4x8xbf16>, tensor<8x8x1x1xf32>) -> tensor<2x4x4x8xbf16>
//       FOLDED:   %[[YN:.*]] = arith.truncf %{{.*}} : tensor<2x4x4x8xf32> to tensor<2x4x4x8xbf16>
//       FOLDED:   %[[YW:.*]] = arith.extf %[[YN]]
//       FOLDED:   nn.conv_grad_input %{{.*}}, %arg1 {{.*}}(tensor<2x4x4x8xbf16>, tensor<8x8x1x1xf32>) -> tensor<2x4x4x8xbf16>
//       FOLDED:   arith.cmpf ogt, %[[YW]],

// An exception keeps a norm in f32.

// WIDE-LABEL: train.step @step
//       WIDE:   nn.conv {{.*}} -> tensor<2x4x4x8xbf16>
//       WIDE:   nn.batch_norm {{.*}}(tensor<2x4x4x8xf32>, tensor<8xf32>
//       WIDE:   nn.batch_norm_grad {{.*}}(tensor<2x4x4x8xf32>, tensor<8xf32>
train.step @step(%x: tensor<2x4x4x8xf32> {train.name = "x", train.role = #train.role<batch>},
                 %f: tensor<8x8x1x1xf32> {train.name = "conv.f", train.role = #train.role<param>},
                 %s: tensor<8xf32> {train.name = "norm.s", train.role = #train.role<param>, train.frozen},
                 %b: tensor<8xf32> {train.name = "norm.b", train.role = #train.role<param>, train.frozen},
                 %m: tensor<8xf32> {train.name = "norm.m", train.role = #train.role<param>, train.frozen},
                 %v: tensor<8xf32> {train.name = "norm.v", train.role = #train.role<param>, train.frozen},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<8x8x1x1xf32> {train.name = "conv.f", train.updates = 1 : i64}, tensor<f32> {train.name = "grad_norm"}) {
  %zero = arith.constant dense<0.0> : tensor<2x4x4x8xf32>
  %c = nn.conv %x, %f {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4x4x8xf32>, tensor<8x8x1x1xf32>) -> tensor<2x4x4x8xf32> loc("conv")
  %n:5 = nn.batch_norm %c, %s, %b, %m, %v {channels_last, epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<2x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) loc("norm")
  %p = nn.max_pool %c {channels_last, dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  %sum = arith.addf %n#0, %p : tensor<2x4x4x8xf32>
  %y = arith.maximumf %sum, %zero : tensor<2x4x4x8xf32>
  %d = nn.conv %y, %f {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4x4x8xf32>, tensor<8x8x1x1xf32>) -> tensor<2x4x4x8xf32> loc("conv")
  %e = arith.addf %d, %y : tensor<2x4x4x8xf32>
  %loss = nn.reduce sum %e over [0, 1, 2, 3] : (tensor<2x4x4x8xf32>) -> tensor<f32>
  %dd = arith.mulf %e, %e : tensor<2x4x4x8xf32>
  %g = nn.conv_grad_filter %y, %dd {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<8x8x1x1xf32> loc("conv")
  %dy = nn.conv_grad_input %dd, %f {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4x4x8xf32>, tensor<8x8x1x1xf32>) -> tensor<2x4x4x8xf32> loc("conv")
  %all = arith.addf %dy, %dd : tensor<2x4x4x8xf32>
  %is = arith.cmpf ogt, %sum, %zero : tensor<2x4x4x8xf32>
  %ds = arith.select %is, %all, %zero : tensor<2x4x4x8xi1>, tensor<2x4x4x8xf32>
  %ng:3 = nn.batch_norm_grad %c, %s, %n#3, %n#4, %ds {channels_last} : (tensor<2x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x4x4x8xf32>) -> (tensor<2x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>) loc("norm")
  %pg = nn.max_pool_grad %c, %ds {channels_last, dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  %dc = arith.addf %ng#0, %pg : tensor<2x4x4x8xf32>
  %h = nn.conv_grad_filter %x, %dc {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>) -> tensor<8x8x1x1xf32> loc("conv")
  %gh = arith.addf %g, %h : tensor<8x8x1x1xf32>
  %new, %q = train.sgd %f, %gh lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<8x8x1x1xf32>, tensor<8x8x1x1xf32>, tensor<f32>, tensor<i64>) -> (tensor<8x8x1x1xf32>, tensor<f32>)
  %norm, %clip = train.grad_norm %q {max_norm = 0.0 : f64} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  train.return %loss, %new, %norm : tensor<f32>, tensor<8x8x1x1xf32>, tensor<f32>
}
