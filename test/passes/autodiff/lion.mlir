// RUN: tmc-opt %s -tmc-autodiff='optimizer=lion(weight_decay=0.1,decay=matrices,beta2=0.98)' -canonicalize | FileCheck %s
// RUN: tmc-opt %s -tmc-autodiff='optimizer=lion(master=none,moments=bf16)' -canonicalize | FileCheck %s --check-prefix=NARROW
// RUN: not tmc-opt %s -tmc-autodiff='optimizer=lion(eps=1e-8)' 2>&1 | FileCheck %s --check-prefix=OPTION

// One moment each; matrices alone decay.
// CHECK: train.step @step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: %[[MW:[a-z0-9]+]]: tensor<8x4xf32> {train.init = "zeros", train.name = "w.exp_avg", train.role = #train.role<state>, train.slot = "w"}
// CHECK-SAME: %[[MB:[a-z0-9]+]]: tensor<4xf32> {train.init = "zeros", train.name = "b.exp_avg"
// CHECK-DAG: train.lion %[[W]], %{{.*}}, %[[MW]] lr({{.*}} {beta1 = {{9.*}}e-01 : f64, beta2 = 0.97999{{[0-9]*}} : f64, weight_decay = 1.0{{.*}}e-01 : f64}
// CHECK-DAG: train.lion %[[B]], %{{.*}}, %[[MB]] lr({{.*}} weight_decay = 0.0{{.*}} : f64}

// NARROW-DAG: train.lion {{.*}}stream = 0 : i64{{.*}} (tensor<8x4xbf16>, tensor<8x4xf32>, tensor<8x4xbf16>,
// NARROW-DAG: train.lion {{.*}}stream = 1 : i64{{.*}} (tensor<4xbf16>, tensor<4xf32>, tensor<4xbf16>,

// OPTION: 'lion' has no option 'eps'
func.func @forward(%x: tensor<2x8xf32> {train.name = "x", train.role = #train.role<batch>},
                   %w: tensor<8x4xf32> {train.name = "w", train.role = #train.role<param>},
                   %b: tensor<4xf32> {train.name = "b", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w bias(%b) : (tensor<2x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %0 = arith.mulf %y, %y : tensor<2x4xf32>
  %1 = nn.reduce sum %0 over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
