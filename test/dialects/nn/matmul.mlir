// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn.matmul.

func.func @matmul_c1_rank(%a: tensor<4x4xf32>, %b: tensor<2x4x4xf32>) {
  // expected-error @below {{operands must share a rank of at least 2, but are 'tensor<4x4xf32>' and 'tensor<2x4x4xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<4x4xf32>, tensor<2x4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c1_vectors(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{operands must share a rank of at least 2, but are 'tensor<4xf32>' and 'tensor<4xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @matmul_c1_element(%a: tensor<4x4xbf16>, %b: tensor<4x4xf16>) {
  // expected-error @below {{element types differ: 'bf16' and 'f16'}}
  %0 = nn.matmul %a, %b : (tensor<4x4xbf16>, tensor<4x4xf16>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c1_tf32(%a: tensor<4x4xf32>, %b: tensor<4x4xf16>) {
  // expected-error @below {{rounds 'f32' and 'f16' to tf32}}
  %0 = nn.matmul %a, %b {tf32} : (tensor<4x4xf32>, tensor<4x4xf16>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c2(%a: tensor<2x4x4xf32>, %b: tensor<3x4x4xf32>) {
  // expected-error @below {{batch dimensions differ: 'tensor<2x4x4xf32>' and 'tensor<3x4x4xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<2x4x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @matmul_c3(%a: tensor<4x8xf32>, %b: tensor<16x4xf32>) {
  // expected-error @below {{contracts 8 columns of the left operand with 16 rows of the right one}}
  %0 = nn.matmul %a, %b : (tensor<4x8xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c3_transposed(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) {
  // expected-error @below {{contracts 8 columns of the left operand with 16 rows of the right one}}
  %0 = nn.matmul %a, %b transpose_lhs transpose_rhs : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c4_length(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<8xf32>) {
  // expected-error @below {{the bias is 'tensor<8xf32>' where a row of the result has 4 elements of 'f32'}}
  %0 = nn.matmul %a, %b bias(%c) : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c4_element(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4xf16>) {
  // expected-error @below {{the bias is 'tensor<4xf16>' where a row of the result has 4 elements of 'f32'}}
  %0 = nn.matmul %a, %b bias(%c) : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4xf16>) -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c5(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<2x4xf32>) {
  // expected-error @below {{accumulates a result of type 'tensor<4x2xf32>' onto 'tensor<2x4xf32>'}}
  %0 = nn.matmul %a, %b acc(%c) : (tensor<4x8xf32>, tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @matmul_c6(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @below {{has a result of type 'tensor<2x4xf32>' for 'tensor<4x8xf32>' and 'tensor<8x2xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c7_type(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %s: tensor<f32>) {
  // expected-error @below {{multiplies 'tensor<4x8xf16>' by scales of type 'tensor<f32>'}}
  %0 = nn.matmul %a, %b scales(%s, %s) : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<f32>, tensor<f32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @matmul_c7_shape(%a: tensor<4x8xf8E4M3FN>, %b: tensor<8x2xf8E4M3FN>, %s: tensor<4x1xf32>) {
  // expected-error @below {{multiplies 'tensor<8x2xf8E4M3FN>' by scales of type 'tensor<4x1xf32>'}}
  %0 = nn.matmul %a, %b scales(%s, %s) : (tensor<4x8xf8E4M3FN>, tensor<8x2xf8E4M3FN>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
  return
}

// -----

// Packed scales are those of a product that sums along the rows of both factors.
func.func @matmul_c8_order(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x8xf8E4M3FN>, %s: tensor<8xf32>, %r: tensor<16xf32>) {
  // expected-error @below {{has no product of packed scales of types 'tensor<8xf32>' and 'tensor<16xf32>'}}
  %0 = nn.matmul %a, %b scales(%s, %r) : (tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<8xf32>, tensor<16xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @matmul_c8_one(%a: tensor<8x16xf8E4M3FN>, %s: tensor<8xf32>, %r: tensor<8x1xf32>) {
  // expected-error @below {{has no product of packed scales of types 'tensor<8xf32>' and 'tensor<8x1xf32>'}}
  %0 = nn.matmul %a, %a transpose_rhs scales(%s, %r) : (tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @matmul_c8_squares(%a: tensor<8x16xf8E4M3FN>, %s: tensor<4xf32>) {
  // expected-error @below {{has no product of packed scales of types 'tensor<4xf32>' and 'tensor<4xf32>'}}
  %0 = nn.matmul %a, %a transpose_rhs scales(%s, %s) : (tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @matmul_types(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>, %bias: tensor<2xf32>,
                        %p: tensor<4x8xf8E4M3FN>, %q: tensor<8x2xf8E5M2>,
                        %s: tensor<f32>, %rows: tensor<4x1xf32>) {
  %0 = nn.matmul %a, %b bias(%bias) : (tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = nn.matmul %p, %q : (tensor<4x8xf8E4M3FN>, tensor<8x2xf8E5M2>) -> tensor<4x2xbf16>
  %2 = nn.matmul %p, %q scales(%s, %s) : (tensor<4x8xf8E4M3FN>, tensor<8x2xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<4x2xbf16>
  %3 = nn.matmul %p, %q acc(%2) scales(%rows, %s) : (tensor<4x8xf8E4M3FN>, tensor<8x2xf8E5M2>, tensor<4x2xbf16>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x2xbf16>
  return
}
