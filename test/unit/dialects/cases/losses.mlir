// Cases of Losses.cpp. The log-sum-exps carry no gradient; label 2 of
// `ignored` doesn't count.

func.func @cross_entropy(%x: tensor<4x3xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>) -> (tensor<f64>, tensor<4xf64> {test.constant}) {
  %0:2 = nn.cross_entropy %x, %l, %w : (tensor<4x3xf64>, tensor<4xi64>, tensor<f64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
func.func @cross_entropy_ignored(%x: tensor<8x3xf64>, %l: tensor<8xi32> {test.below = 3}, %w: tensor<f64>) -> (tensor<f64>, tensor<8xf64> {test.constant}) {
  %0:2 = nn.cross_entropy %x, %l, %w {ignore_index = 2 : i64} : (tensor<8x3xf64>, tensor<8xi32>, tensor<f64>) -> (tensor<f64>, tensor<8xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<8xf64>
}
func.func @cross_entropy_grad(%x: tensor<8x3xf64>, %l: tensor<8xi64> {test.below = 3}, %e: tensor<8xf64>, %s: tensor<f64>) -> tensor<8x3xf64> {
  %0 = nn.cross_entropy_grad %x, %l, %e, %s {ignore_index = 2 : i64} : (tensor<8x3xf64>, tensor<8xi64>, tensor<8xf64>, tensor<f64>) -> tensor<8x3xf64>
  return %0 : tensor<8x3xf64>
}
func.func @cross_entropy_with_grad(%x: tensor<8x4xf64>, %l: tensor<8xi64> {test.below = 3}, %w: tensor<f64>, %s: tensor<f64>) -> (tensor<f64>, tensor<8x4xf64>) {
  %0:2 = nn.cross_entropy_with_grad %x, %l, %w, %s {ignore_index = 2 : i64, vocabulary = 3 : i64} : (tensor<8x4xf64>, tensor<8xi64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<8x4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<8x4xf64>
}
func.func @linear_cross_entropy(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>) -> (tensor<f64>, tensor<4xf64> {test.constant}) {
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<f64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
func.func @linear_cross_entropy_ignored(%x: tensor<8x2xf64>, %t: tensor<3x2xf64>, %l: tensor<8xi64> {test.below = 3}, %w: tensor<f64>) -> (tensor<f64>, tensor<8xf64> {test.constant}) {
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 3 : i64, ignore_index = 2 : i64} : (tensor<8x2xf64>, tensor<3x2xf64>, tensor<8xi64>, tensor<f64>) -> (tensor<f64>, tensor<8xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<8xf64>
}
func.func @linear_cross_entropy_grad(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %e: tensor<4xf64>, %s: tensor<f64>) -> (tensor<4x2xf64>, tensor<3x2xf64>) {
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %s {chunk = 2 : i64, ignore_index = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<4xf64>, tensor<f64>) -> (tensor<4x2xf64>, tensor<3x2xf64>)
  return %0#0, %0#1 : tensor<4x2xf64>, tensor<3x2xf64>
}
func.func @linear_cross_entropy_bias(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>, %b: tensor<3xf64>) -> (tensor<f64>, tensor<4xf64> {test.constant}) {
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w bias(%b) {chunk = 3 : i64, ignore_index = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<f64>, tensor<3xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
func.func @linear_cross_entropy_grad_bias(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %e: tensor<4xf64>, %s: tensor<f64>, %b: tensor<3xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>) {
  %0:3 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %s bias(%b) {chunk = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<4xf64>, tensor<f64>, tensor<3xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2 : tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>
}
func.func @linear_cross_entropy_with_grad(%x: tensor<8x2xf64>, %t: tensor<3x2xf64>, %l: tensor<8xi64> {test.below = 3}, %w: tensor<f64>, %s: tensor<f64>) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>) {
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s {chunk = 3 : i64, ignore_index = 2 : i64} : (tensor<8x2xf64>, tensor<3x2xf64>, tensor<8xi64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>)
  return %0#0, %0#1, %0#2 : tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>
}
func.func @linear_cross_entropy_with_grad_bias(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>, %s: tensor<f64>, %b: tensor<3xf64>) -> (tensor<f64>, tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>) {
  %0:4 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s bias(%b) {chunk = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<f64>, tensor<f64>, tensor<3xf64>) -> (tensor<f64>, tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<f64>, tensor<4x2xf64>, tensor<3x2xf64>, tensor<3xf64>
}
func.func @linear_cross_entropy_grad_acc(%x: tensor<4x2xf64>, %t: tensor<3x2xf64>, %l: tensor<4xi64> {test.below = 3}, %e: tensor<4xf64>, %s: tensor<f64>, %a: tensor<3x2xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>) {
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %s acc(%a) {chunk = 2 : i64} : (tensor<4x2xf64>, tensor<3x2xf64>, tensor<4xi64>, tensor<4xf64>, tensor<f64>, tensor<3x2xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>)
  return %0#0, %0#1 : tensor<4x2xf64>, tensor<3x2xf64>
}
func.func @linear_cross_entropy_with_grad_acc(%x: tensor<8x2xf64>, %t: tensor<3x2xf64>, %l: tensor<8xi64> {test.below = 3}, %w: tensor<f64>, %s: tensor<f64>, %a: tensor<3x2xf64>) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>) {
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s acc(%a) {chunk = 3 : i64} : (tensor<8x2xf64>, tensor<3x2xf64>, tensor<8xi64>, tensor<f64>, tensor<f64>, tensor<3x2xf64>) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>)
  return %0#0, %0#1, %0#2 : tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>
}
func.func @cross_entropy_padded(%x: tensor<4x5xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>) -> (tensor<f64>, tensor<4xf64> {test.constant}) {
  %0:2 = nn.cross_entropy %x, %l, %w {vocabulary = 3 : i64} : (tensor<4x5xf64>, tensor<4xi64>, tensor<f64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
func.func @linear_cross_entropy_padded(%x: tensor<4x2xf64>, %t: tensor<4x2xf64>, %l: tensor<4xi64> {test.below = 3}, %w: tensor<f64>, %b: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64> {test.constant}) {
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w bias(%b) {chunk = 3 : i64, vocabulary = 3 : i64} : (tensor<4x2xf64>, tensor<4x2xf64>, tensor<4xi64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
