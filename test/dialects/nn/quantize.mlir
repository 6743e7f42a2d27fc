// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn.quantize.

func.func @quantize_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{makes codes of type 'tensor<8x4xf8E4M3FN>' of 'tensor<4x8xf32>'}}
  %0:2 = nn.quantize %x : (tensor<4x8xf32>) -> (tensor<8x4xf8E4M3FN>, tensor<f32>)
  return
}

// -----

func.func @quantize_c2_rank(%x: tensor<4x8xf32>) {
  // expected-error @below {{makes scales of type 'tensor<8xf32>' of 'tensor<4x8xf32>'}}
  %0:2 = nn.quantize %x : (tensor<4x8xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<8xf32>)
  return
}

// -----

func.func @quantize_c2_vector(%x: tensor<256xf32>) {
  // expected-error @below {{makes scales of type 'tensor<2xf32>' of 'tensor<256xf32>'}}
  %0:2 = nn.quantize %x : (tensor<256xf32>) -> (tensor<256xf8E4M3FN>, tensor<2xf32>)
  return
}

// -----

func.func @quantize_c2_blocks(%x: tensor<4x300xf32>) {
  // expected-error @below {{makes scales of type 'tensor<4x2xf32>' of 'tensor<4x300xf32>'}}
  %0:2 = nn.quantize %x : (tensor<4x300xf32>) -> (tensor<4x300xf8E4M3FN>, tensor<4x2xf32>)
  return
}

// -----

func.func @quantize_c2_outer(%x: tensor<2x4x300xf32>) {
  // expected-error @below {{makes scales of type 'tensor<1x4x3xf32>' of 'tensor<2x4x300xf32>'}}
  %0:2 = nn.quantize %x : (tensor<2x4x300xf32>) -> (tensor<2x4x300xf8E4M3FN>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @quantize_c3_amax(%x: tensor<4x8xf32>, %h: tensor<16xf32>) {
  // expected-error @below {{a history goes with an amax, a count and one scale}}
  %0:2 = nn.quantize %x history(%h) : (tensor<4x8xf32>, tensor<16xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<f32>)
  return
}

// -----

func.func @quantize_c3_blocks(%x: tensor<4x8xf32>, %h: tensor<16xf32>) {
  // expected-error @below {{a history goes with an amax, a count and one scale}}
  %0:4 = nn.quantize %x history(%h) : (tensor<4x8xf32>, tensor<16xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>, tensor<f32>, tensor<i64>)
  return
}

// -----

func.func @quantize_types(%x: tensor<2x200x300xbf16>, %y: tensor<f16>, %h: tensor<16xf32>) {
  %0:2 = nn.quantize %x : (tensor<2x200x300xbf16>) -> (tensor<2x200x300xf8E4M3FN>, tensor<2x200x3xf32>)
  %1:2 = nn.quantize %x : (tensor<2x200x300xbf16>) -> (tensor<2x200x300xf8E4M3FN>, tensor<2x2x300xf32>)
  %2:2 = nn.quantize %x : (tensor<2x200x300xbf16>) -> (tensor<2x200x300xf8E5M2>, tensor<2x2x3xf32>)
  %4:4 = nn.quantize %x history(%h) : (tensor<2x200x300xbf16>, tensor<16xf32>) -> (tensor<2x200x300xf8E5M2>, tensor<f32>, tensor<f32>, tensor<i64>)
  %3:2 = nn.quantize %y : (tensor<f16>) -> (tensor<f8E5M2>, tensor<f32>)
  return
}

// -----

func.func @quantize_both_c1_shape(%x: tensor<4x8xf32>) {
  // expected-error @below {{makes codes of type 'tensor<8x4xf8E4M3FN>' of 'tensor<4x8xf32>'}}
  %0:3 = nn.quantize_both %x : (tensor<4x8xf32>) -> (tensor<8x4xf8E4M3FN>, tensor<f32>, tensor<4x8xf8E4M3FN>)
  return
}

// -----

func.func @quantize_both_c1_rank(%x: tensor<8xf32>) {
  // expected-error @below {{has no two orders of 'tensor<8xf8E4M3FN>'}}
  %0:3 = nn.quantize_both %x : (tensor<8xf32>) -> (tensor<8xf8E4M3FN>, tensor<f32>, tensor<8xf8E4M3FN>)
  return
}

// -----

func.func @quantize_both_c2(%x: tensor<4x8xf32>) {
  // expected-error @below {{result #1 must be 0D tensor of 32-bit float values}}
  %0:3 = nn.quantize_both %x : (tensor<4x8xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>, tensor<8x4xf8E4M3FN>)
  return
}

// -----

func.func @quantize_both_c3(%x: tensor<4x8xf32>, %h: tensor<16xf32>) {
  // expected-error @below {{a history goes with an amax, a count and one scale}}
  %0:3 = nn.quantize_both %x history(%h) : (tensor<4x8xf32>, tensor<16xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<8x4xf8E4M3FN>)
  return
}

// -----

func.func @quantize_both_c4(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{turns 'tensor<2x4x8xf8E4M3FN>' into 'tensor<8x4x2xf8E4M3FN>'}}
  %0:3 = nn.quantize_both %x : (tensor<2x4x8xf32>) -> (tensor<2x4x8xf8E4M3FN>, tensor<f32>, tensor<8x4x2xf8E4M3FN>)
  return
}

// -----

func.func @quantize_both_types(%x: tensor<2x4x8xf16>, %h: tensor<16xf32>) {
  %0:3 = nn.quantize_both %x : (tensor<2x4x8xf16>) -> (tensor<2x4x8xf8E5M2>, tensor<f32>, tensor<2x8x4xf8E5M2>)
  %1:5 = nn.quantize_both %x history(%h) : (tensor<2x4x8xf16>, tensor<16xf32>) -> (tensor<2x4x8xf8E5M2>, tensor<f32>, tensor<2x8x4xf8E5M2>, tensor<f32>, tensor<i64>)
  return
}

// -----

func.func @quantize_c2_packed(%x: tensor<8x256xf32>) {
  // expected-error @below {{makes scales of type 'tensor<16xf32>' of 'tensor<8x256xf32>'}}
  %0:2 = nn.quantize %x : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<16xf32>)
  return
}

// -----

func.func @quantize_blocks_c1_shape(%x: tensor<8x256xf32>) {
  // expected-error @below {{makes codes of types 'tensor<8x256xf8E4M3FN>' and 'tensor<8x256xf8E4M3FN>' of 'tensor<8x256xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<16xf32>, tensor<8x256xf8E4M3FN>, tensor<256xf32>)
  return
}

// -----

func.func @quantize_blocks_c1_rank(%x: tensor<2x8x16xf32>) {
  // expected-error @below {{makes codes of types 'tensor<2x8x16xf8E4M3FN>' and 'tensor<2x16x8xf8E4M3FN>' of 'tensor<2x8x16xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<2x8x16xf32>) -> (tensor<2x8x16xf8E4M3FN>, tensor<16xf32>, tensor<2x16x8xf8E4M3FN>, tensor<32xf32>)
  return
}

// -----

func.func @quantize_blocks_c2_matrix(%x: tensor<8x256xf32>) {
  // expected-error @below {{makes scales of types 'tensor<8x2xf32>' and 'tensor<256x1xf32>' of 'tensor<8x256xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<8x2xf32>, tensor<256x8xf8E4M3FN>, tensor<256x1xf32>)
  return
}

// -----

// Squares along a row are padded to 4.
func.func @quantize_blocks_c2_padding(%x: tensor<8x256xf32>) {
  // expected-error @below {{makes scales of types 'tensor<2xf32>' and 'tensor<8xf32>' of 'tensor<8x256xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<2xf32>, tensor<256x8xf8E4M3FN>, tensor<8xf32>)
  return
}

// -----

func.func @quantize_blocks_c2_mixed(%x: tensor<8x256xf32>) {
  // expected-error @below {{makes scales of types 'tensor<4xf32>' and 'tensor<256xf32>' of 'tensor<8x256xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<4xf32>, tensor<256x8xf8E4M3FN>, tensor<256xf32>)
  return
}

// -----

// Of 4 rows the length wouldn't tell rows from squares.
func.func @quantize_blocks_c2_rows(%x: tensor<4x128xf32>) {
  // expected-error @below {{makes scales of types 'tensor<4xf32>' and 'tensor<128xf32>' of 'tensor<4x128xf32>'}}
  %0:4 = nn.quantize_blocks %x : (tensor<4x128xf32>) -> (tensor<4x128xf8E4M3FN>, tensor<4xf32>, tensor<128x4xf8E4M3FN>, tensor<128xf32>)
  return
}

// -----

func.func @quantize_blocks_c3(%x: tensor<8x256xf32>) {
  // expected-error @below {{doesn't leave out result 1}}
  %0:4 = nn.quantize_blocks %x {unread = array<i64: 1>} : (tensor<8x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<16xf32>, tensor<256x8xf8E4M3FN>, tensor<256xf32>)
  return
}

// -----

func.func @quantize_blocks_types(%x: tensor<8x640xf16>) {
  %0:4 = nn.quantize_blocks %x : (tensor<8x640xf16>) -> (tensor<8x640xf8E4M3FN>, tensor<40xf32>, tensor<640x8xf8E4M3FN>, tensor<640xf32>)
  %1:4 = nn.quantize_blocks %x {unread = array<i64: 0, 2>} : (tensor<8x640xf16>) -> (tensor<8x640xf8E5M2>, tensor<8xf32>, tensor<640x8xf8E5M2>, tensor<20xf32>)
  return
}
