// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of attention and its gradient.

func.func @attention_c1_rank(%q: tensor<3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
  // expected-error @below {{wants q [B, T, H, D] and k, v [B, S, G, D], and has 'tensor<3x4x8xf32>', 'tensor<2x5x2x8xf32>' and 'tensor<2x5x2x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c1_depth(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x4xf32>, %v: tensor<2x5x2x4xf32>) {
  // expected-error @below {{wants q [B, T, H, D] and k, v [B, S, G, D]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c1_batch(%q: tensor<2x3x4x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x2x8xf32>) {
  // expected-error @below {{wants q [B, T, H, D] and k, v [B, S, G, D]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c1_values(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
  // expected-error @below {{and has 'tensor<2x3x4x8xf32>', 'tensor<2x5x2x8xf32>' and 'tensor<2x6x2x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x6x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c1_element(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf16>, %v: tensor<2x5x2x8xf16>) {
  // expected-error @below {{wants q [B, T, H, D] and k, v [B, S, G, D]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf16>, tensor<2x5x2x8xf16>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x3x8xf32>, %v: tensor<2x5x3x8xf32>) {
  // expected-error @below {{3 key heads don't divide 4 query heads}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c3_shape(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %m: tensor<2x4x5x3xi1>) {
  // expected-error @below {{a mask of type 'tensor<2x4x5x3xi1>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x4x5x3xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c3_keys(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %m: tensor<2x4x3x1xf32>) {
  // expected-error @below {{a mask of type 'tensor<2x4x3x1xf32>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x4x3x1xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c3_element(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %m: tensor<1x1x3x5xf16>) {
  // expected-error @below {{a mask of type 'tensor<1x1x3x5xf16>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<1x1x3x5xf16>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c4_missing(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
  // expected-error @below {{dropout of 5.000000e-01 without random operands}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0, dropout = 0.5} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c4_idle(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %s: tensor<2xi64>, %n: tensor<2xi64>) {
  // expected-error @below {{dropout of 0.000000e+00 with random operands}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v random(%s, %n) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2xi64>, tensor<2xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c4_range(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %s: tensor<2xi64>, %n: tensor<2xi64>) {
  // expected-error @below {{dropout of 1.000000e+00 with random operands}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v random(%s, %n) {scale = 1.0, dropout = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2xi64>, tensor<2xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_grad_c1(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x4xf32>, %v: tensor<2x5x2x4xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>) {
  // expected-error @below {{wants q [B, T, H, D] and k, v [B, S, G, D]}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>)
  return
}

// -----

func.func @attention_grad_c2(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x3x8xf32>, %v: tensor<2x5x3x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>) {
  // expected-error @below {{3 key heads don't divide 4 query heads}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>)
  return
}

// -----

func.func @attention_grad_c3(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>, %m: tensor<2x4x5x3xi1>) {
  // expected-error @below {{a mask of type 'tensor<2x4x5x3xi1>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g mask(%m) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>, tensor<2x4x5x3xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
  return
}

// -----

func.func @attention_grad_c4(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>) {
  // expected-error @below {{dropout of 5.000000e-01 without random operands}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0, dropout = 0.5} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
  return
}

// -----

func.func @attention_grad_c5_lse(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x3x4xf32>, %g: tensor<2x3x4x8xf32>) {
  // expected-error @below {{wants out and its gradient of type 'tensor<2x3x4x8xf32>' and lse of type 'tensor<2x4x3xf32>', and has 'tensor<2x3x4x8xf32>', 'tensor<2x3x4x8xf32>' and 'tensor<2x3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
  return
}

// -----

func.func @attention_grad_c5_grad(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x5x2x8xf32>) {
  // expected-error @below {{wants out and its gradient of type 'tensor<2x3x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %k, %v, %o, %l, %g {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
  return
}

// -----

func.func @attention_c4_seed(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %s: tensor<3xi64>, %n: tensor<2xi64>) {
  // expected-error @below {{wants a seed and a step, and has 'tensor<3xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v random(%s, %n) {scale = 1.0, dropout = 0.5} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<3xi64>, tensor<2xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c4_samples(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %s: tensor<2xi64>, %n: tensor<3xi64>) {
  // expected-error @below {{the samples 'tensor<3xi64>' don't divide the 2 rows of the batch}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v random(%s, %n) {scale = 1.0, dropout = 0.5} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2xi64>, tensor<3xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c6_cap(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
  // expected-error @below {{a soft cap of -1.000000e+00 and a window of 0}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0, softcap = -1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c6_window(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
  // expected-error @below {{a soft cap of 0.000000e+00 and a window of -2}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0, window = -2 : i64} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c6_groups(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %g: tensor<2x3xi64>) {
  // expected-error @below {{groups of type 'tensor<2x3xi64>' for 3 queries and 5 keys}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v groups(%g) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c6_prefix(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %n: tensor<2xi64>) {
  // expected-error @below {{a prefix of type 'tensor<2xi64>' without causal}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v prefix(%n) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c6_prefix_size(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %n: tensor<3xi64>) {
  // expected-error @below {{a prefix of type 'tensor<3xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v prefix(%n) {causal, scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<3xi64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c7_shape(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %x: tensor<1x2x3x5xf32>) {
  // expected-error @below {{a bias of type 'tensor<1x2x3x5xf32>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v bias(%x) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<1x2x3x5xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c7_element(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x5x2x8xbf16>, %v: tensor<2x5x2x8xbf16>, %x: tensor<1x4x3x5xbf16>) {
  // expected-error @below {{a bias of type 'tensor<1x4x3x5xbf16>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v bias(%x) {scale = 1.0} : (tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16>, tensor<1x4x3x5xbf16>) -> (tensor<2x3x4x8xbf16>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_grad_c7(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %o: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>, %x: tensor<4x3x5xf32>) {
  // expected-error @below {{a bias of type 'tensor<4x3x5xf32>' doesn't broadcast to scores of [2, 4, 3, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = nn.attention_grad %q, %k, %v, %o, %l, %g bias(%x) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>, tensor<4x3x5xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<4x3x5xf32>)
  return
}

// -----

func.func @attention_c8(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x5x2x8xbf16>, %v: tensor<2x5x2x8xbf16>) {
  // expected-error @below {{multiplies 'bf16' as tf32}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %v {scale = 1.0, tf32} : (tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16>) -> (tensor<2x3x4x8xbf16>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @packed_attention_grad_c9_keys(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %l: tensor<2x4x3xf32>) {
  // expected-error @below {{wants as many queries as keys and no bias, and has 'tensor<2x3x4x8xf32>' and 'tensor<2x5x2x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.packed_attention_grad %q, %k, %v, %q, %l, %q {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x8x8xf32>)
  return
}

// -----

func.func @packed_attention_grad_c9_bias(%q: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %b: tensor<1x4x3x3xf32>) {
  // expected-error @below {{and has 'tensor<2x3x4x8xf32>' and 'tensor<2x3x4x8xf32>' and a bias}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.packed_attention_grad %q, %q, %q, %q, %l, %q bias(%b) {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x8xf32>, tensor<1x4x3x3xf32>) -> (tensor<2x3x12x8xf32>)
  return
}

// -----

func.func @packed_attention_grad_c5(%q: tensor<2x3x4x8xf32>, %l: tensor<2x3x4xf32>) {
  // expected-error @below {{wants out and its gradient of type 'tensor<2x3x4x8xf32>' and lse of type 'tensor<2x4x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.packed_attention_grad %q, %q, %q, %q, %l, %q {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x12x8xf32>)
  return
}
