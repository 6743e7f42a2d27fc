// RUN: tmc-opt %s | tmc-opt | FileCheck %s

// A value leaves and comes back; the host updates a parameter that is at home there.

// CHECK-LABEL: train.step @step
// CHECK-SAME: %{{.*}}: tensor<4xf32, #train.space<host>>
// CHECK: %[[H:.*]] = train.stash_start %{{.*}} : tensor<4xf32> to tensor<4xf32, #train.space<host>>
// CHECK: train.stash_done %[[H]] : tensor<4xf32, #train.space<host>>
// CHECK: train.sgd {{.*}}train.on_host
// CHECK: train.work_done
// CHECK: %[[D:.*]] = train.fetch_start %{{.*}} : tensor<4xf32, #train.space<host>> to tensor<4xf32>
// CHECK: train.fetch_done %[[D]] : tensor<4xf32>
train.step @step(%w: tensor<4xf32, #train.space<host>> {train.role = #train.role<param>, train.name = "w"},
                 %g: tensor<4xf32> {train.role = #train.role<batch>, train.name = "g"},
                 %lr: tensor<f32, #train.space<host>> {train.role = #train.role<scalar>, train.name = "lr"},
                 %n: tensor<i64, #train.space<host>> {train.role = #train.role<scalar>, train.name = "n"})
    -> (tensor<4xf32, #train.space<host>> {train.updates = 0 : i64, train.name = "w"}, tensor<4xf32> {train.name = "copy"}) {
  %h = train.stash_start %g : tensor<4xf32> to tensor<4xf32, #train.space<host>>
  train.stash_done %h : tensor<4xf32, #train.space<host>>
  %new, %s = train.sgd %w, %h lr(%lr) step(%n) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64, train.on_host} : (tensor<4xf32, #train.space<host>>, tensor<4xf32, #train.space<host>>, tensor<f32, #train.space<host>>, tensor<i64, #train.space<host>>) -> (tensor<4xf32, #train.space<host>>, tensor<f32, #train.space<host>>)
  train.work_done %new, %s : tensor<4xf32, #train.space<host>>, tensor<f32, #train.space<host>>
  %d = train.fetch_start %new : tensor<4xf32, #train.space<host>> to tensor<4xf32>
  train.fetch_done %d : tensor<4xf32>
  train.return %new, %d : tensor<4xf32, #train.space<host>>, tensor<4xf32>
}
