// RUN: tmc-opt %s -tmc-fuse -tmc-copy-views -split-input-file | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-fuse,tmc-copy-views,train.step(tmc-plan))' -split-input-file | FileCheck %s --check-prefix=PLAN

// A kernel that can't write over what it reads makes the new value elsewhere.

// CHECK-LABEL: train.step @product
//       CHECK:   %[[NEW:.*]] = nn.matmul %arg0, %arg1
//       CHECK:   %[[HOME:.*]] = nn.copy %[[NEW]]
//       CHECK:   train.return %[[HOME]]
//  PLAN-LABEL: train.step @product
//        PLAN:   nn.copy
train.step @product(%s: tensor<4x4xf32> {train.name = "s", train.role = #train.role<state>},
                    %x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<4x4xf32> {train.name = "s", train.updates = 0 : i64}) {
  %new = nn.matmul %s, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.return %new : tensor<4x4xf32>
}

// -----

// Something that depends on the new value reads the old one: the first state has a copy. The second one's kernel
// writes in place, behind the last read of the old value, and so do its readers.

// CHECK-LABEL: train.step @later
//       CHECK:   %[[A:.*]] = nn.fused (%{{.*}} = %arg0)
//       CHECK:   %[[B:.*]] = nn.fused (%{{.*}} = %arg1)
//       CHECK:   nn.matmul %[[A]], %arg0
//       CHECK:   nn.matmul %arg2, %arg1
//   CHECK-NOT:   nn.copy %[[B]]
//       CHECK:   %[[HOME:.*]] = nn.copy %[[A]]
//       CHECK:   train.return %[[HOME]], %[[B]]
//  PLAN-LABEL: train.step @later
//        PLAN:   nn.matmul %arg2, %arg1
//        PLAN:   nn.fused (%{{.*}} = %arg1)
train.step @later(%a: tensor<4x4xf32> {train.name = "a", train.role = #train.role<state>},
                  %b: tensor<4x4xf32> {train.name = "b", train.role = #train.role<state>},
                  %x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<4x4xf32> {train.name = "a", train.updates = 0 : i64},
        tensor<4x4xf32> {train.name = "b", train.updates = 1 : i64},
        tensor<4x4xf32> {train.name = "y"}, tensor<4x4xf32> {train.name = "z"},
        tensor<4x4xf32> {train.name = "v"}) {
  %p = arith.negf %a : tensor<4x4xf32>
  %q = arith.negf %b : tensor<4x4xf32>
  %y = nn.matmul %p, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = nn.matmul %q, %q : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = nn.matmul %x, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.return %p, %q, %y, %z, %v : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Two states take each other's old values: one copy aside for each.

// CHECK-LABEL: train.step @exchanged
//   CHECK-DAG:   %[[A:.*]] = nn.copy %arg0
//   CHECK-DAG:   %[[B:.*]] = nn.copy %arg1
//   CHECK-DAG:   %[[NEWA:.*]] = nn.copy %[[B]]
//   CHECK-DAG:   %[[NEWB:.*]] = nn.copy %[[A]]
//       CHECK:   train.return %[[NEWA]], %[[NEWB]]
//  PLAN-LABEL: train.step @exchanged
train.step @exchanged(%a: tensor<4xf32> {train.name = "a", train.role = #train.role<state>},
                      %b: tensor<4xf32> {train.name = "b", train.role = #train.role<state>})
    -> (tensor<4xf32> {train.name = "a", train.updates = 0 : i64},
        tensor<4xf32> {train.name = "b", train.updates = 1 : i64}) {
  train.return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// One value for two states, and for the caller: each has bytes of its own.

// CHECK-LABEL: train.step @shared
//       CHECK:   %[[Y:.*]] = nn.matmul
//       CHECK:   %[[A:.*]] = nn.copy %[[Y]]
//       CHECK:   %[[B:.*]] = nn.copy %[[Y]]
//       CHECK:   train.return %[[A]], %[[B]], %[[Y]]
//  PLAN-LABEL: train.step @shared
train.step @shared(%a: tensor<4x4xf32> {train.name = "a", train.role = #train.role<state>},
                   %b: tensor<4x4xf32> {train.name = "b", train.role = #train.role<state>},
                   %x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<4x4xf32> {train.name = "a", train.updates = 0 : i64},
        tensor<4x4xf32> {train.name = "b", train.updates = 1 : i64}, tensor<4x4xf32> {train.name = "y"}) {
  %y = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.return %y, %y, %y : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
