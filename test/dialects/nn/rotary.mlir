// RUN: tmc-opt %s -split-input-file -verify-diagnostics

func.func @rotary_embedding_c1(%x: tensor<1x1x2x3x4xf32>, %t: tensor<1x1x1x3x4xf32>) {
  // expected-error @below {{rotates the rows of 'tensor<1x1x2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x3x4xf32>, tensor<1x1x1x3x4xf32>) -> tensor<1x1x2x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c2(%x: tensor<2x3x4xbf16>, %t: tensor<1x3x4xbf16>) {
  // expected-error @below {{rotates 'tensor<2x3x4xbf16>' by cosines of type 'tensor<1x3x4xbf16>' and sines of type 'tensor<1x3x4xbf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t : (tensor<2x3x4xbf16>, tensor<1x3x4xbf16>, tensor<1x3x4xbf16>) -> tensor<2x3x4xbf16>
  return
}

// -----

func.func @rotary_embedding_c2_rows(%x: tensor<4x3x4xf32>, %t: tensor<2x3x4xf32>) {
  // expected-error @below {{by cosines of type 'tensor<2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t : (tensor<4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<4x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c2_one_type(%x: tensor<4x3x4xf32>, %c: tensor<1x3x4xf32>, %s: tensor<1x1x4xf32>) {
  // expected-error @below {{by cosines of type 'tensor<1x3x4xf32>' and sines of type 'tensor<1x1x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %c, %s : (tensor<4x3x4xf32>, tensor<1x3x4xf32>, tensor<1x1x4xf32>) -> tensor<4x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c3(%x: tensor<4x4xf32>, %t: tensor<4x3xf32>) {
  // expected-error @below {{rotates 3 columns of 'tensor<4x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t : (tensor<4x4xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @rotary_embedding_c3_more(%x: tensor<4x4xf32>, %t: tensor<4x6xf32>) {
  // expected-error @below {{rotates 6 columns of 'tensor<4x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t : (tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @rotary_embedding_c4(%x: tensor<2x3x4xf32>, %t: tensor<2x1x4xf32>) {
  // expected-error @below {{rotates 4 heads of 'tensor<2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t {heads = 4 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c4_negative(%x: tensor<2x3x4xf32>, %t: tensor<2x1x4xf32>) {
  // expected-error @below {{rotates -1 heads of 'tensor<2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t {heads = -1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c4_own_tables(%x: tensor<2x3x4xf32>, %t: tensor<2x3x4xf32>) {
  // expected-error @below {{rotates 2 heads of 'tensor<2x3x4xf32>' by a table of type 'tensor<2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t {heads = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rotary_embedding_c4_no_heads(%x: tensor<4xf32>, %t: tensor<4xf32>) {
  // expected-error @below {{rotates 1 heads of 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.rotary_embedding %x, %t, %t {heads = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
