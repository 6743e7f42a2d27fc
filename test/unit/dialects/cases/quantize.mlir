// Cases of Quantize.cpp.

func.func @quantize(%x: tensor<4x6xf32>) -> (tensor<4x6xf8E4M3FN>, tensor<f32>) {
  %0:2 = nn.quantize %x : (tensor<4x6xf32>) -> (tensor<4x6xf8E4M3FN>, tensor<f32>)
  return %0#0, %0#1 : tensor<4x6xf8E4M3FN>, tensor<f32>
}
func.func @quantize_rows(%x: tensor<2x4x130xbf16>) -> (tensor<2x4x130xf8E4M3FN>, tensor<2x4x2xf32>) {
  %0:2 = nn.quantize %x : (tensor<2x4x130xbf16>) -> (tensor<2x4x130xf8E4M3FN>, tensor<2x4x2xf32>)
  return %0#0, %0#1 : tensor<2x4x130xf8E4M3FN>, tensor<2x4x2xf32>
}
func.func @quantize_columns(%x: tensor<2x6xf16>) -> (tensor<2x6xf8E5M2>, tensor<1x6xf32>) {
  %0:2 = nn.quantize %x : (tensor<2x6xf16>) -> (tensor<2x6xf8E5M2>, tensor<1x6xf32>)
  return %0#0, %0#1 : tensor<2x6xf8E5M2>, tensor<1x6xf32>
}
func.func @quantize_delayed(%x: tensor<4x6xf32>, %h: tensor<16xf32>) -> (tensor<4x6xf8E5M2>, tensor<f32>, tensor<f32>, tensor<i64>) {
  %0:4 = nn.quantize %x history(%h) : (tensor<4x6xf32>, tensor<16xf32>) -> (tensor<4x6xf8E5M2>, tensor<f32>, tensor<f32>, tensor<i64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<4x6xf8E5M2>, tensor<f32>, tensor<f32>, tensor<i64>
}
func.func @quantize_both(%x: tensor<2x4x6xbf16>, %h: tensor<16xf32>) -> (tensor<2x4x6xf8E4M3FN>, tensor<f32>, tensor<2x6x4xf8E4M3FN>, tensor<f32>, tensor<i64>) {
  %0:5 = nn.quantize_both %x history(%h) : (tensor<2x4x6xbf16>, tensor<16xf32>) -> (tensor<2x4x6xf8E4M3FN>, tensor<f32>, tensor<2x6x4xf8E4M3FN>, tensor<f32>, tensor<i64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<2x4x6xf8E4M3FN>, tensor<f32>, tensor<2x6x4xf8E4M3FN>, tensor<f32>, tensor<i64>
}
func.func @matmul_of_codes(%x: tensor<4x6xf8E4M3FN> {test.constant}, %w: tensor<2x6xf8E5M2> {test.constant}, %s: tensor<f32> {test.constant}, %t: tensor<2x1xf32> {test.constant}) -> tensor<4x2xf32> {
  %0 = nn.matmul %x, %w transpose_rhs scales(%s, %t) : (tensor<4x6xf8E4M3FN>, tensor<2x6xf8E5M2>, tensor<f32>, tensor<2x1xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @quantize_blocks(%x: tensor<8x264xbf16>) -> (tensor<8x264xf8E4M3FN>, tensor<24xf32>, tensor<264x8xf8E4M3FN>, tensor<264xf32>) {
  %0:4 = nn.quantize_blocks %x : (tensor<8x264xbf16>) -> (tensor<8x264xf8E4M3FN>, tensor<24xf32>, tensor<264x8xf8E4M3FN>, tensor<264xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8x264xf8E4M3FN>, tensor<24xf32>, tensor<264x8xf8E4M3FN>, tensor<264xf32>
}
func.func @quantize_squares(%x: tensor<8x136xf32>) -> (tensor<8x136xf8E4M3FN>, tensor<4xf32>, tensor<136x8xf8E4M3FN>, tensor<8xf32>) {
  %0:4 = nn.quantize_blocks %x : (tensor<8x136xf32>) -> (tensor<8x136xf8E4M3FN>, tensor<4xf32>, tensor<136x8xf8E4M3FN>, tensor<8xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8x136xf8E4M3FN>, tensor<4xf32>, tensor<136x8xf8E4M3FN>, tensor<8xf32>
}
func.func @matmul_of_blocks(%x: tensor<8x136xf8E4M3FN> {test.constant}, %w: tensor<8x136xf8E4M3FN> {test.constant}, %s: tensor<16xf32> {test.constant}, %t: tensor<4xf32> {test.constant}) -> tensor<8x8xf32> {
  %0 = nn.matmul %x, %w transpose_rhs scales(%s, %t) : (tensor<8x136xf8E4M3FN>, tensor<8x136xf8E4M3FN>, tensor<16xf32>, tensor<4xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func @quantize_whole_blocks(%x: tensor<4x256xbf16>) -> (tensor<4x256xf8E4M3FN>, tensor<4x2xf32>) {
  %0:2 = nn.quantize %x : (tensor<4x256xbf16>) -> (tensor<4x256xf8E4M3FN>, tensor<4x2xf32>)
  return %0#0, %0#1 : tensor<4x256xf8E4M3FN>, tensor<4x2xf32>
}
func.func @matmul_of_whole_blocks(%x: tensor<4x256xf8E4M3FN> {test.constant}, %w: tensor<4x256xf8E5M2> {test.constant}, %s: tensor<4x2xf32> {test.constant}, %t: tensor<1x2xf32> {test.constant}) -> tensor<4x4xf32> {
  %0 = nn.matmul %x, %w transpose_rhs scales(%s, %t) : (tensor<4x256xf8E4M3FN>, tensor<4x256xf8E5M2>, tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
