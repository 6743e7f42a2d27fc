// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn.dequantize and nn.matmul_codes.

func.func @dequantize_c1_half(%q: tensor<4096xi8>, %a: tensor<64xf32>) {
  // expected-error @below {{makes 4096 numbers of codes of type tensor<4096xi8>}}
  %0 = nn.dequantize %q, %a : (tensor<4096xi8>, tensor<64xf32>) -> tensor<64x64xf32>
  return
}

// -----

func.func @dequantize_c1_blocks(%q: tensor<48xi8>, %a: tensor<1xf32>) {
  // expected-error @below {{makes 96 numbers of codes of type tensor<48xi8>}}
  %0 = nn.dequantize %q, %a : (tensor<48xi8>, tensor<1xf32>) -> tensor<96xf32>
  return
}

// -----

func.func @dequantize_c1_rows(%q: tensor<4x8xi8>, %a: tensor<4xf32>) {
  // expected-error @below {{makes 32 numbers of codes of type tensor<4x8xi8>}}
  %0 = nn.dequantize %q, %a : (tensor<4x8xi8>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @dequantize_c2_count(%q: tensor<64xi8>, %a: tensor<1xf32>) {
  // expected-error @below {{has maxima of type tensor<1xf32> for 2 blocks}}
  %0 = nn.dequantize %q, %a : (tensor<64xi8>, tensor<1xf32>) -> tensor<2x64xbf16>
  return
}

// -----

func.func @dequantize_c2_type(%q: tensor<64xi8>, %a: tensor<2xi8>) {
  // expected-error @below {{has maxima of type tensor<2xi8> for 2 blocks}}
  %0 = nn.dequantize %q, %a : (tensor<64xi8>, tensor<2xi8>) -> tensor<2x64xbf16>
  return
}

// -----

// 2 blocks have one nested maximum, and the offset stands behind it.
func.func @dequantize_c2_nested(%q: tensor<64xi8>, %a: tensor<2xi8>, %s: tensor<1xf32>) {
  // expected-error @below {{has maxima of type tensor<2xi8> and tensor<1xf32> for 2 blocks}}
  %0 = nn.dequantize %q, %a nested(%s) : (tensor<64xi8>, tensor<2xi8>, tensor<1xf32>) -> tensor<2x64xbf16>
  return
}

// -----

func.func @dequantize_c3_count(%q: tensor<4x8xi8>, %a: tensor<8xf32>) {
  // expected-error @below {{has maxima of type tensor<8xf32> for rows of tensor<4x8xi8>}}
  %0 = nn.dequantize %q, %a : (tensor<4x8xi8>, tensor<8xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @dequantize_c3_nested(%q: tensor<4x8xi8>, %a: tensor<4xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{has maxima of type tensor<4xf32> for rows of tensor<4x8xi8>}}
  %0 = nn.dequantize %q, %a nested(%s) : (tensor<4x8xi8>, tensor<4xf32>, tensor<2xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @matmul_codes_c1(%x: tensor<4x64xf32>, %q: tensor<64xi8>, %a: tensor<2xf32>) {
  // expected-error @below {{makes 'tensor<5x2xf32>' of 'tensor<4x64xf32>'}}
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs : (tensor<4x64xf32>, tensor<64xi8>, tensor<2xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @matmul_codes_c2(%x: tensor<4x64xf32>, %q: tensor<64xi8>, %a: tensor<2xf32>) {
  // expected-error @below {{makes 192 numbers of codes of type tensor<64xi8>}}
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs : (tensor<4x64xf32>, tensor<64xi8>, tensor<2xf32>) -> tensor<4x3xf32>
  return
}

// -----

// The codes are those of [2, 64]; read as they lie, they would be [64, 2].
func.func @matmul_codes_c2_rows(%x: tensor<4x64xf32>, %q: tensor<2x64xi8>, %a: tensor<2xf32>) {
  // expected-error @below {{makes 128 numbers of codes of type tensor<2x64xi8>}}
  %0 = nn.matmul_codes %x, %q, %a : (tensor<4x64xf32>, tensor<2x64xi8>, tensor<2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @matmul_codes_c3(%x: tensor<4x64xf32>, %q: tensor<64xi8>, %a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{the bias is 'tensor<3xf32>' where a row of the result has 2 elements of 'f32'}}
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs bias(%b) : (tensor<4x64xf32>, tensor<64xi8>, tensor<2xf32>, tensor<3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @matmul_codes_c4(%x: tensor<4x64xf32>, %q: tensor<64xi8>, %a: tensor<2xf32>, %c: tensor<2x4xf32>) {
  // expected-error @below {{accumulates a result of type 'tensor<4x2xf32>' onto 'tensor<2x4xf32>'}}
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs acc(%c) : (tensor<4x64xf32>, tensor<64xi8>, tensor<2xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}
