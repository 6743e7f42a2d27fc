// Cases of Attention.cpp. Nothing differentiates the log-sum-exp.

func.func @attention(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x2x4xf64>, %v: tensor<2x5x2x4xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {scale = 0.5} : (tensor<2x3x2x4xf64>, tensor<2x5x2x4xf64>, tensor<2x5x2x4xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x4xf64>, tensor<2x2x3xf64>
}
func.func @attention_causal_grouped(%q: tensor<2x3x4x2xf64>, %k: tensor<2x3x2x2xf64>, %v: tensor<2x3x2x2xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {causal, scale = 0.7} : (tensor<2x3x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)
  return %0#0, %0#1 : tensor<2x3x4x2xf64>, tensor<2x4x3xf64>
}
func.func @attention_causal_more_keys(%q: tensor<2x2x1x2xf64>, %k: tensor<2x4x1x2xf64>, %v: tensor<2x4x1x2xf64>) -> (tensor<2x2x1x2xf64>, tensor<2x1x2xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {causal, scale = 0.7} : (tensor<2x2x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>) -> (tensor<2x2x1x2xf64>, tensor<2x1x2xf64>)
  return %0#0, %0#1 : tensor<2x2x1x2xf64>, tensor<2x1x2xf64>
}
// Fewer keys than queries: the first query sees nothing, and gets zeros.
func.func @attention_causal_sees_nothing(%q: tensor<2x3x1x2xf64>, %k: tensor<2x2x1x2xf64>, %v: tensor<2x2x1x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {causal, scale = 0.7} : (tensor<2x3x1x2xf64>, tensor<2x2x1x2xf64>, tensor<2x2x1x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64>)
  return %0#0, %0#1 : tensor<2x3x1x2xf64>, tensor<2x1x3xf64>
}
// The same, and what a finite number makes of that query; -1e4 less the score
// is exact in double.
func.func @attention_fill_adds(%q: tensor<2x3x1x2xf64>, %k: tensor<2x2x1x2xf64>, %v: tensor<2x2x1x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {causal, scale = 0.7, nn.fill = -1.0e4} : (tensor<2x3x1x2xf64>, tensor<2x2x1x2xf64>, tensor<2x2x1x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64>)
  return %0#0, %0#1 : tensor<2x3x1x2xf64>, tensor<2x1x3xf64>
}
func.func @attention_fill_replaces_score(%q: tensor<2x3x2x2xf64>, %k: tensor<2x2x1x2xf64>, %v: tensor<2x2x1x2xf64>, %b: tensor<1x2x1x2xf64>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v random(%seed, %samples) bias(%b) {causal, scale = 0.7, softcap = 2.0, dropout = 0.3, nn.fill = -1.0e9, nn.fill_kind = 1 : i64} : (tensor<2x3x2x2xf64>, tensor<2x2x1x2xf64>, tensor<2x2x1x2xf64>, tensor<2xi64>, tensor<2xi64>, tensor<1x2x1x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_fill_replaces_all(%q: tensor<2x3x1x2xf64>, %k: tensor<2x2x1x2xf64>, %v: tensor<2x2x1x2xf64>, %b: tensor<2x1x3x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v bias(%b) {causal, scale = 0.7, nn.fill = -1.0e9, nn.fill_kind = 2 : i64} : (tensor<2x3x1x2xf64>, tensor<2x2x1x2xf64>, tensor<2x2x1x2xf64>, tensor<2x1x3x2xf64>) -> (tensor<2x3x1x2xf64>, tensor<2x1x3xf64>)
  return %0#0, %0#1 : tensor<2x3x1x2xf64>, tensor<2x1x3xf64>
}
func.func @attention_boolean_mask(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %m: tensor<2x1x3x4xi1>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x1x3x4xi1>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_additive_mask(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %m: tensor<1x2x1x4xf64> {test.constant}) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<1x2x1x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_dropout(%q: tensor<2x3x2x2xf64>, %k: tensor<2x3x2x2xf64>, %v: tensor<2x3x2x2xf64>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v random(%seed, %samples) {causal, scale = 1.0, dropout = 0.3, stream = 5 : i64} : (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_grad(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %m: tensor<2x1x1x5xi1>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>) {
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) random(%seed, %samples) {scale = 0.5, dropout = 0.5, stream = 1 : i64} : (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x1x1x5xi1>, tensor<2xi64>, tensor<2xi64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>
}
// Two heads of queries, one of keys: rows of four heads.
func.func @packed_attention_grad(%q: tensor<2x3x2x4xf64>, %k: tensor<2x3x1x4xf64>, %v: tensor<2x3x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %m: tensor<2x1x1x3xi1>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x3x4x4xf64> {
  %0 = nn.packed_attention_grad %q, %k, %v, %o, %l, %g mask(%m) random(%seed, %samples) {causal, scale = 0.5, dropout = 0.5, stream = 1 : i64} : (tensor<2x3x2x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x1x1x3xi1>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x3x4x4xf64>
  return %0 : tensor<2x3x4x4xf64>
}
func.func @attention_soft_cap(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>, %m: tensor<2x1x3x5xi1>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.3, softcap = 0.6} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>, tensor<2x1x3x5xi1>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_window(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {causal, scale = 1.0, window = 2 : i64} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_window_both_ways(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v {scale = 1.0, window = 2 : i64} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_groups(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>, %g: tensor<2x5xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v groups(%g) {scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_shared_groups(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>, %g: tensor<1x5xi64> {test.constant}) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v groups(%g) {causal, scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>, tensor<1x5xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_prefix(%q: tensor<2x3x2x2xf64>, %k: tensor<2x5x1x2xf64>, %v: tensor<2x5x1x2xf64>, %n: tensor<2xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v prefix(%n) {causal, scale = 1.0, softcap = 2.0} : (tensor<2x3x2x2xf64>, tensor<2x5x1x2xf64>, tensor<2x5x1x2xf64>, tensor<2xi64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_grad_with_all(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %ids: tensor<2x5xi64>, %n: tensor<2xi64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>) {
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g groups(%ids) prefix(%n) {causal, scale = 0.5, softcap = 0.8, window = 3 : i64} : (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x5xi64>, tensor<2xi64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>
}
func.func @attention_bias(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %x: tensor<1x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v bias(%x) {scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<1x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_bias_of_all(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %x: tensor<2x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v bias(%x) {scale = 0.7, softcap = 0.9} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_bias_of_keys(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %x: tensor<1x2x1x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v bias(%x) {causal, scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<1x2x1x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_bias_of_samples(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %x: tensor<2x1x1x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v bias(%x) {scale = 1.0, window = 2 : i64} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x1x1x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_bias_and_mask(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %m: tensor<2x1x1x4xi1>, %x: tensor<1x1x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v mask(%m) bias(%x) {scale = 1.0} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x1x1x4xi1>, tensor<1x1x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_bias_and_dropout(%q: tensor<2x3x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %seed: tensor<2xi64>, %samples: tensor<2xi64>, %x: tensor<1x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v random(%seed, %samples) bias(%x) {scale = 1.0, dropout = 0.3, stream = 5 : i64} : (tensor<2x3x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2xi64>, tensor<2xi64>, tensor<1x2x3x4xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1 : tensor<2x3x2x2xf64>, tensor<2x2x3xf64>
}
func.func @attention_grad_of_bias(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %m: tensor<2x1x1x5xi1>, %x: tensor<1x2x3x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x2x3x5xf64>) {
  %0:4 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) bias(%x) {scale = 0.5, softcap = 0.8} : (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x1x1x5xi1>, tensor<1x2x3x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x2x3x5xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x2x3x5xf64>
}
func.func @attention_grad_of_bias_of_samples(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %m: tensor<2x1x1x5xi1>, %x: tensor<2x2x1x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x2x1x5xf64>) {
  %0:4 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) bias(%x) {scale = 0.5, softcap = 0.8} : (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x1x1x5xi1>, tensor<2x2x1x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x2x1x5xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x2x1x5xf64>
}
func.func @attention_grad_of_bias_of_keys(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x4xf64>, %o: tensor<2x3x2x4xf64>, %l: tensor<2x2x3xf64>, %g: tensor<2x3x2x4xf64>, %m: tensor<2x1x1x5xi1>, %x: tensor<1x1x1x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x1x1x5xf64>) {
  %0:4 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) bias(%x) {scale = 0.5, softcap = 0.8} : (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<2x3x2x4xf64>, tensor<2x2x3xf64>, tensor<2x3x2x4xf64>, tensor<2x1x1x5xi1>, tensor<1x1x1x5xf64>) -> (tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x1x1x5xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x3x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x4xf64>, tensor<1x1x1x5xf64>
}
// Two heads of queries for each of keys.
func.func @attention_of_grouped_heads(%q: tensor<2x2x4x2xf64>, %k: tensor<2x3x2x2xf64>, %v: tensor<2x3x2x2xf64>, %m: tensor<2x1x2x3xi1>, %x: tensor<1x4x1x3xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x4x2xf64> {test.constant}) {
  %0:2 = nn.attention %q, %k, %v mask(%m) bias(%x) {scale = 0.7} : (tensor<2x2x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x1x2x3xi1>, tensor<1x4x1x3xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x4x2xf64>)
  return %0#0, %0#1 : tensor<2x2x4x2xf64>, tensor<2x4x2xf64>
}
func.func @attention_grad_of_grouped_heads(%q: tensor<2x2x4x2xf64>, %k: tensor<2x3x2x2xf64>, %v: tensor<2x3x2x2xf64>, %o: tensor<2x2x4x2xf64>, %l: tensor<2x4x2xf64>, %g: tensor<2x2x4x2xf64>, %m: tensor<2x1x2x3xi1>, %x: tensor<1x4x1x3xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<1x4x1x3xf64>) {
  %0:4 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) bias(%x) {scale = 0.7} : (tensor<2x2x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x2x4x2xf64>, tensor<2x4x2xf64>, tensor<2x2x4x2xf64>, tensor<2x1x2x3xi1>, tensor<1x4x1x3xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<1x4x1x3xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x2x4x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<1x4x1x3xf64>
}
