// RUN: tmc-opt %s -split-input-file -tmc-lower="target=cpu:v3" | FileCheck %s

// What lasts from step to step is overwritten by its update alone: lowering lays buffers out as the plan counted them.

// A count at home on the host is fetched, added to, and stashed: the sum takes the place of what was fetched, and not
// of the sum's first operand, which ends there as well.

// CHECK: mem.copy %[[HOME:.*]] to %[[HERE:.*]] on h2d
// CHECK: mem.launch {{.*}}(%[[G:.*]], %[[HERE]] : {{.*}}) -> (%[[HERE]] :
// CHECK: mem.copy %[[HERE]] to %[[HOME]] on d2h
train.step @step(%w: tensor<4xf32, #train.space<host>> {train.role = #train.role<state>, train.name = "count"},
                 %x: tensor<4xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<4xf32, #train.space<host>> {train.updates = 0 : i64, train.name = "count"}) {
  %g = nn.fused (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %square = arith.mulf %a, %a : tensor<4xf32>
    nn.yield %square : tensor<4xf32>
  }
  %d = train.fetch_start %w : tensor<4xf32, #train.space<host>> to tensor<4xf32>
  train.fetch_done %d : tensor<4xf32>
  %sum = nn.fused (%a = %g, %b = %d) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %both = arith.addf %a, %b : tensor<4xf32>
    nn.yield %both : tensor<4xf32>
  }
  %h = train.stash_start %sum : tensor<4xf32> to tensor<4xf32, #train.space<host>>
  train.stash_done %h : tensor<4xf32, #train.space<host>>
  train.return %h : tensor<4xf32, #train.space<host>>
}

// -----

// Nothing takes the place of a fetched parameter, though its copy is read nowhere else.

// CHECK: %[[COPY:.*]] = mem.buffer "w" "activations"
// CHECK: %[[Y:.*]] = mem.buffer "nn.fused"
// CHECK: mem.launch {{.*}}(%[[COPY]], %{{.*}}) -> (%[[Y]] :
train.step @step(%w: tensor<4xf32, #train.space<host>> {train.role = #train.role<param>, train.name = "w", train.frozen},
                 %x: tensor<4xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<4xf32> {train.name = "out"}) {
  %d = train.fetch_start %w : tensor<4xf32, #train.space<host>> to tensor<4xf32>
  train.fetch_done %d : tensor<4xf32>
  %y = nn.fused (%a = %d, %b = %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %product = arith.mulf %a, %b : tensor<4xf32>
    nn.yield %product : tensor<4xf32>
  }
  train.return %y : tensor<4xf32>
}
