// RUN: tmc-opt %s -tmc-autodiff='optimizer=adafactor(d=2,weight_decay=0.1,no_decay=b)' -canonicalize | FileCheck %s
// RUN: tmc-opt %s -tmc-autodiff='optimizer=adafactor(master=none,beta2_decay=-0.5,eps1=1e-3,eps2=1e-2)' -canonicalize | FileCheck %s --check-prefix=NARROW
// RUN: not tmc-opt %s -tmc-autodiff='optimizer=adafactor(moments=bf16)' 2>&1 | FileCheck %s --check-prefix=OPTION

// A moment for each row and each column of the last two dimensions; of a vector for
// each element.
// CHECK: train.step @step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<5x8x4xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<5x8x1xf32> {train.init = "zeros", train.name = "w.row_var", train.role = #train.role<state>, train.slot = "w"}
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<5x1x4xf32> {train.init = "zeros", train.name = "w.col_var"
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4xf32> {train.init = "zeros", train.name = "b.variance"
// CHECK-DAG: train.adafactor %[[W]], %{{.*}} moments(%[[R]], %[[C]]) lr({{.*}} {beta2_decay = -8.0{{.*}}e-01 : f64, d = 2.0{{.*}} : f64, eps1 = 1.1920928955078125E-7 : f64, eps2 = 1.0{{.*}}e-03 : f64, weight_decay = 1.0{{.*}}e-01 : f64}
// CHECK-DAG: train.adafactor %[[B]], %{{.*}} moments(%[[V]]) lr({{.*}} weight_decay = 0.0{{.*}} : f64}

// Moments are f32 whatever a param is kept in.
// NARROW-DAG: train.adafactor {{.*}}beta2_decay = -5.0{{.*}}e-01 : f64, {{.*}}eps1 = 1.0{{.*}}e-03 : f64, eps2 = 1.0{{.*}}e-02 : f64, stream = 0 : i64{{.*}} (tensor<5x8x4xbf16>, tensor<5x8x4xf32>, tensor<5x8x1xf32>, tensor<5x1x4xf32>,
// NARROW-DAG: train.adafactor {{.*}}stream = 1 : i64{{.*}} (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>,

// OPTION: 'adafactor' has no option 'moments'
func.func @forward(%x: tensor<5x2x8xf32> {train.name = "x", train.role = #train.role<batch>},
                   %w: tensor<5x8x4xf32> {train.name = "w", train.role = #train.role<param>},
                   %b: tensor<4xf32> {train.name = "b", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w : (tensor<5x2x8xf32>, tensor<5x8x4xf32>) -> tensor<5x2x4xf32>
  %p = nn.broadcast %b to [2] : (tensor<4xf32>) -> tensor<5x2x4xf32>
  %0 = arith.mulf %y, %p : tensor<5x2x4xf32>
  %1 = nn.reduce sum %0 over [0, 1, 2] : (tensor<5x2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
