// Cases of Frozen.cpp.

func.func @dequantize(%q: tensor<64xi8> {test.constant}, %a: tensor<2xf32> {test.constant}) -> tensor<2x64xf32> {
  %0 = nn.dequantize %q, %a : (tensor<64xi8>, tensor<2xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func @dequantize_nested(%q: tensor<64xi8> {test.constant}, %a: tensor<2xi8> {test.constant}, %s: tensor<2xf32> {test.constant}) -> tensor<2x64xbf16> {
  %0 = nn.dequantize %q, %a nested(%s) : (tensor<64xi8>, tensor<2xi8>, tensor<2xf32>) -> tensor<2x64xbf16>
  return %0 : tensor<2x64xbf16>
}
func.func @dequantize_rows(%q: tensor<4x6xi8> {test.constant}, %a: tensor<4xf32> {test.constant}) -> tensor<4x6xf16> {
  %0 = nn.dequantize %q, %a : (tensor<4x6xi8>, tensor<4xf32>) -> tensor<4x6xf16>
  return %0 : tensor<4x6xf16>
}
func.func @matmul_codes(%x: tensor<4x64xf32>, %q: tensor<64xi8> {test.constant}, %a: tensor<2xf32> {test.constant}) -> tensor<4x2xf32> {
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs : (tensor<4x64xf32>, tensor<64xi8>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @matmul_codes_rows(%x: tensor<4x6xbf16>, %q: tensor<6x8xi8> {test.constant}, %a: tensor<6xf32> {test.constant}, %b: tensor<8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.matmul_codes %x, %q, %a bias(%b) acc(%c) : (tensor<4x6xbf16>, tensor<6x8xi8>, tensor<6xf32>, tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @matmul_codes_summed(%x: tensor<4x2xf32>, %q: tensor<64xi8> {test.constant}, %a: tensor<2xf32> {test.constant}, %b: tensor<64xf32>) -> tensor<4x64xf32> {
  %0 = nn.matmul_codes %x, %q, %a bias(%b) : (tensor<4x2xf32>, tensor<64xi8>, tensor<2xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
func.func @matmul_codes_rows_transposed(%x: tensor<4x6xf16>, %q: tensor<8x6xi8> {test.constant}, %a: tensor<8xf32> {test.constant}) -> tensor<4x8xf16> {
  %0 = nn.matmul_codes %x, %q, %a transpose_rhs : (tensor<4x6xf16>, tensor<8x6xi8>, tensor<8xf32>) -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}
