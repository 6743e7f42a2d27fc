// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the losses.

func.func @cross_entropy_c1_rank(%x: tensor<2x2x3xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{wants logits [rows, classes], and has 'tensor<2x2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy %x, %l, %w : (tensor<2x2x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_c1_labels(%x: tensor<4x3xf32>, %l: tensor<3xi64>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and labels of type 'tensor<3xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy %x, %l, %w : (tensor<4x3xf32>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_c1_weight(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %w: tensor<1xf32>) {
  // expected-error @below {{the weight of the loss is 'tensor<1xf32>', no scalar of 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy %x, %l, %w : (tensor<4x3xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_c1_weight_element(%x: tensor<4x3xf16>, %l: tensor<4xi64>, %w: tensor<f16>) {
  // expected-error @below {{the weight of the loss is 'tensor<f16>', no scalar of 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy %x, %l, %w : (tensor<4x3xf16>, tensor<4xi64>, tensor<f16>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_grad_c1_rank(%x: tensor<12xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{wants logits [rows, classes], and has 'tensor<12xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.cross_entropy_grad %x, %l, %e, %w : (tensor<12xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<12xf32>
  return
}

// -----

func.func @cross_entropy_grad_c1_lse(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %e: tensor<3xf32>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and log-sum-exps of type 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.cross_entropy_grad %x, %l, %e, %w : (tensor<4x3xf32>, tensor<4xi64>, tensor<3xf32>, tensor<f32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @cross_entropy_grad_c1_labels(%x: tensor<4x3xf32>, %l: tensor<4x1xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and labels of type 'tensor<4x1xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.cross_entropy_grad %x, %l, %e, %w : (tensor<4x3xf32>, tensor<4x1xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @linear_cross_entropy_c1_width(%x: tensor<4x2xf32>, %t: tensor<3x5xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{wants x [rows, C] and a table [classes, C], and has 'tensor<4x2xf32>' and 'tensor<3x5xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x5xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c1_element(%x: tensor<4x2xf32>, %t: tensor<3x2xf16>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{wants x [rows, C] and a table [classes, C]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf16>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c1_labels(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<3xi64>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and labels of type 'tensor<3xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c1_weight(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f64>) {
  // expected-error @below {{the weight of the loss is 'tensor<f64>', no scalar of 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f64>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c2(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{takes 0 rows at a time}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 0 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c1(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<2xf32>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and log-sum-exps of type 'tensor<2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<2xf32>, tensor<f32>) -> (tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c1_width(%x: tensor<4x2xf32>, %t: tensor<3x5xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{wants x [rows, C] and a table [classes, C]}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x2xf32>, tensor<3x5xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c2(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{takes -1 rows at a time}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w {chunk = -1 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c3(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %b: tensor<2xf32>) {
  // expected-error @below {{the bias is 'tensor<2xf32>' for 3 classes}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w bias(%b) {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<2xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c3(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>, %b: tensor<3xf64>) {
  // expected-error @below {{the bias is 'tensor<3xf64>' for 3 classes}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w bias(%b) {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<3xf64>) -> (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf64>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c1(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f64>) {
  // expected-error @below {{the weight of the loss is 'tensor<f64>', no scalar of 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f64>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c2(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f32>) {
  // expected-error @below {{takes 0 rows at a time}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s {chunk = 0 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c3(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f32>, %b: tensor<2xf32>) {
  // expected-error @below {{the bias is 'tensor<2xf32>' for 3 classes}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s bias(%b) {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>, tensor<2xf32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c4(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{leaves out result 2, which is no gradient or comes twice}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w {chunk = 2 : i64, unread = array<i64: 0, 2>} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

// The loss has to be made.
func.func @linear_cross_entropy_with_grad_c4(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f32>) {
  // expected-error @below {{leaves out result 0, which is no gradient or comes twice}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s {chunk = 2 : i64, unread = array<i64: 0>} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c4_twice(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f32>) {
  // expected-error @below {{leaves out result 1, which is no gradient or comes twice}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %s {chunk = 2 : i64, unread = array<i64: 1, 1>} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c5(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>, %a: tensor<3x4xf32>) {
  // expected-error @below {{adds a gradient of 'tensor<3x2xf32>' to 'tensor<3x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w acc(%a) {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<3x4xf32>) -> (tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c5(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>, %b: tensor<3xf32>, %a: tensor<3x2xf32>) {
  // expected-error @below {{adds to a gradient of the table, and not to that of the bias}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %w bias(%b) acc(%a) {chunk = 2 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3x2xf32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  return
}

// -----

func.func @cross_entropy_c2(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{has 4 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy %x, %l, %w {vocabulary = 4 : i64} : (tensor<4x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_grad_c2(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{has 0 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.cross_entropy_grad %x, %l, %e, %w {vocabulary = 0 : i64} : (tensor<4x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @linear_cross_entropy_c6(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{has 4 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy %x, %t, %l, %w {chunk = 2 : i64, vocabulary = 4 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_cross_entropy_grad_c6(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %e: tensor<4xf32>, %w: tensor<f32>) {
  // expected-error @below {{has -1 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.linear_cross_entropy_grad %x, %t, %l, %e, %w {chunk = 2 : i64, vocabulary = -1 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @linear_cross_entropy_with_grad_c6(%x: tensor<4x2xf32>, %t: tensor<3x2xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{has 5 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.linear_cross_entropy_with_grad %x, %t, %l, %w, %w {chunk = 2 : i64, vocabulary = 5 : i64} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @cross_entropy_with_grad_c1_scale(%x: tensor<4x3xf16>, %l: tensor<4xi64>, %w: tensor<f32>, %s: tensor<f16>) {
  // expected-error @below {{the weight of the loss is 'tensor<f16>', no scalar of 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy_with_grad %x, %l, %w, %s : (tensor<4x3xf16>, tensor<4xi64>, tensor<f32>, tensor<f16>) -> (tensor<f32>, tensor<4x3xf16>)
  return
}

// -----

func.func @cross_entropy_with_grad_c1_labels(%x: tensor<4x3xf32>, %l: tensor<3xi64>, %w: tensor<f32>) {
  // expected-error @below {{4 rows and labels of type 'tensor<3xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy_with_grad %x, %l, %w, %w : (tensor<4x3xf32>, tensor<3xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>)
  return
}

// -----

func.func @cross_entropy_with_grad_c2(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %w: tensor<f32>) {
  // expected-error @below {{has 4 classes in rows of 3}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = nn.cross_entropy_with_grad %x, %l, %w, %w {vocabulary = 4 : i64} : (tensor<4x3xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>)
  return
}
