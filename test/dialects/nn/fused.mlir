// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn.fused.

func.func @fused_c1_operands(%x: tensor<4xf32>) {
  // expected-error @below {{yields 'tensor<4xf32>' as results of types 'tensor<8xf32>'}}
  %0 = nn.fused (%a = %x) : (tensor<4xf32>) -> tensor<8xf32> {
    nn.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @fused_c1_count(%x: tensor<4xf32>) {
  // expected-error @below {{yields 'tensor<4xf32>' as results of types 'tensor<4xf32>', 'tensor<4xf32>'}}
  %0:2 = nn.fused (%a = %x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    nn.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @fused_c1_arguments(%x: tensor<4xf32>) {
  // expected-error @below {{hands operands of types 'tensor<4xf32>' to a region that takes 'tensor<8xf32>'}}
  %0 = "nn.fused"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "nn.yield"(%a) : (tensor<8xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @yield_parent(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.yield' op expects parent op 'nn.fused'}}
  nn.yield %x : tensor<4xf32>
}
