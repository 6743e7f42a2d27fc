// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the ops that move elements.

func.func @reduce_c1_order(%x: tensor<4x8xf32>) {
  // expected-error @below {{reduces over [1, 0], which aren't distinct, ascending dimensions of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce sum %x over [1, 0] : (tensor<4x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @reduce_c1_twice(%x: tensor<4x8xf32>) {
  // expected-error @below {{reduces over [1, 1], which aren't distinct}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce max %x over [1, 1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_c1_range(%x: tensor<4x8xf32>) {
  // expected-error @below {{reduces over [2], which aren't distinct}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce min %x over [2] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_c1_count(%x: tensor<4x8xf32>) {
  // expected-error @below {{maps the dimensions of 'tensor<4x8xf32>' to [0] of 'tensor<4x8x2xf32>'}}
  %0 = nn.broadcast %x to [0] : (tensor<4x8xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @broadcast_c1_order(%x: tensor<4x8xf32>) {
  // expected-error @below {{maps the dimensions of 'tensor<4x8xf32>' to [1, 0] of 'tensor<8x4xf32>'}}
  %0 = nn.broadcast %x to [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @broadcast_c1_range(%x: tensor<4x8xf32>) {
  // expected-error @below {{to [0, 3] of 'tensor<4x8x2xf32>'}}
  %0 = nn.broadcast %x to [0, 3] : (tensor<4x8xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @broadcast_c2_size(%x: tensor<4x8xf32>) {
  // expected-error @below {{stretches dimension 1 from 8 to 6}}
  %0 = nn.broadcast %x to [0, 2] : (tensor<4x8xf32>) -> tensor<4x2x6xf32>
  return
}

// -----

func.func @broadcast_c2_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{changes the element type from 'f32' to 'f16'}}
  %0 = nn.broadcast %x to [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x2xf16>
  return
}

// -----

func.func @transpose_c1_twice(%x: tensor<4x8xf32>) {
  // expected-error @below {{[0, 0] is no permutation of the dimensions of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.transpose %x [0, 0] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_c1_count(%x: tensor<4x8xf32>) {
  // expected-error @below {{[0] is no permutation of the dimensions of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.transpose %x [0] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reshape_c1_count(%x: tensor<4x8xf32>) {
  // expected-error @below {{reads the 32 elements of 'tensor<4x8xf32>' as 'tensor<4x9xf32>'}}
  %0 = nn.reshape %x : (tensor<4x8xf32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @reshape_c1_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{reads the 32 elements of 'tensor<4x8xf32>' as 'tensor<4x8xf16>'}}
  %0 = nn.reshape %x : (tensor<4x8xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @slice_c1_offset(%x: tensor<4x8xf32>) {
  // expected-error @below {{wants an offset and a positive step for each dimension of 'tensor<4x8xf32>', and has [0, -1] and [1, 1] for 'tensor<4x4xf32>'}}
  %0 = nn.slice %x [0, -1] step [1, 1] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @slice_c1_step(%x: tensor<4x8xf32>) {
  // expected-error @below {{and has [0, 0] and [1, 0] for 'tensor<4x4xf32>'}}
  %0 = nn.slice %x [0, 0] step [1, 0] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @slice_c1_count(%x: tensor<4x8xf32>) {
  // expected-error @below {{and has [0] and [1] for 'tensor<4x4xf32>'}}
  %0 = nn.slice %x [0] step [1] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @slice_c1_rank(%x: tensor<4x8xf32>) {
  // expected-error @below {{wants an offset and a positive step for each dimension}}
  %0 = nn.slice %x [0, 0] step [1, 1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @slice_c1_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{wants an offset and a positive step for each dimension}}
  %0 = nn.slice %x [0, 0] step [1, 1] : (tensor<4x8xf32>) -> tensor<4x4xf16>
  return
}

// -----

func.func @slice_c2(%x: tensor<4x8xf32>) {
  // expected-error @below {{reaches element 8 of dimension 1, which has 8}}
  %0 = nn.slice %x [0, 2] step [1, 3] : (tensor<4x8xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @pad_c1_low(%x: tensor<4x8xf32>) {
  // expected-error @below {{wants an offset and a positive step for each dimension of 'tensor<8x8xf32>', and has [-1, 0] and [1, 1] for 'tensor<4x8xf32>'}}
  %0 = nn.pad %x [-1, 0] step [1, 1] : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @pad_c1_step(%x: tensor<4x8xf32>) {
  // expected-error @below {{and has [0, 0] and [0, 1] for 'tensor<4x8xf32>'}}
  %0 = nn.pad %x [0, 0] step [0, 1] : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<4x8xf32>) {
  // expected-error @below {{reaches element 8 of dimension 0, which has 8}}
  %0 = nn.pad %x [2, 0] step [2, 1] : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @concat_c1_dim(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{dimension 2 is none of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dim = 2 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_c1_sizes(%a: tensor<4x8xf32>, %b: tensor<5x8xf32>) {
  // expected-error @below {{'tensor<5x8xf32>' doesn't fit beside 'tensor<4x8xf32>' along dimension 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @concat_c1_rank(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'tensor<4xf32>' doesn't fit beside 'tensor<4x8xf32>' along dimension 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @concat_c1_element(%a: tensor<4x8xf32>, %b: tensor<4x8xf16>) {
  // expected-error @below {{'tensor<4x8xf16>' doesn't fit beside 'tensor<4x8xf32>' along dimension 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf16>) -> tensor<4x16xf32>
  return
}

// -----

func.func @concat_c1_nothing() {
  // expected-error @below {{puts no operand beside none}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat  {dim = 0 : i64} : () -> tensor<4x8xf32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @below {{counts along dimension 2 of 'tensor<4x8xi64>'}}
  %0 = nn.iota {dim = 2 : i64} : () -> tensor<4x8xi64>
  return
}
