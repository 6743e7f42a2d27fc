// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the train dialect.

func.func @micro_batch_c1_count(%x: tensor<4xf32>) {
  // expected-error @below {{can't cut 'tensor<4xf32>' into 3 pieces}}
  %0 = train.micro_batch 3 slices(%x : tensor<4xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<1xf32>, %acc: tensor<f32>):
    train.yield %acc : tensor<f32>
  }
  return
}

// -----

func.func @micro_batch_c1_zero(%x: tensor<4xf32>) {
  // expected-error @below {{runs 0 times}}
  %0 = train.micro_batch 0 slices(%x : tensor<4xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<4xf32>, %acc: tensor<f32>):
    train.yield %acc : tensor<f32>
  }
  return
}

// -----

func.func @micro_batch_c1_piece(%x: tensor<4xf32>) {
  // expected-error @below {{hands its region a piece of type 'tensor<4xf32>' of a slice of type 'tensor<4xf32>'}}
  %0 = train.micro_batch 2 slices(%x : tensor<4xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<4xf32>, %acc: tensor<f32>):
    train.yield %acc : tensor<f32>
  }
  return
}

// -----

func.func @micro_batch_c1_arguments(%x: tensor<4xf32>) {
  // expected-error @below {{has a region of 1 arguments for 1 slices and 1 carried values}}
  %0 = train.micro_batch 2 slices(%x : tensor<4xf32>) -> tensor<2xf32> {
  ^bb0(%p: tensor<2xf32>):
    train.yield %p : tensor<2xf32>
  }
  return
}

// -----

func.func @micro_batch_c2(%x: tensor<4xf32>) {
  // expected-error @below {{carries values of other types than it yields}}
  %0 = train.micro_batch 2 slices(%x : tensor<4xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<2xf32>, %acc: tensor<f32>):
    train.yield %p : tensor<2xf32>
  }
  return
}

// -----

func.func @grad_norm_c1_rank(%a: tensor<f32>, %b: tensor<1xf32>) {
  // expected-error @below {{sums squares of type 'tensor<1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = train.grad_norm %a, %b {max_norm = 1.0} : (tensor<f32>, tensor<1xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @grad_norm_c1_type(%a: tensor<f32>, %b: tensor<f64>) {
  // expected-error @below {{sums squares of type 'tensor<f64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = train.grad_norm %a, %b {max_norm = 1.0} : (tensor<f32>, tensor<f64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @grad_norm_c1_scale(%a: tensor<f32>, %s: tensor<1xf32>) {
  // expected-error @below {{takes 'tensor<1xf32>' for a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = train.grad_norm %a scale(%s) {max_norm = 1.0} : (tensor<f32>, tensor<1xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @loss_scale_c1(%n: tensor<f32>, %s: tensor<1xf32>, %c: tensor<i64>) {
  // expected-error @below {{takes 'tensor<1xf32>' for a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.loss_scale %n scale(%s) clean(%c) count(%c) {growth = 2.0, backoff = 0.5, interval = 1}
      : (tensor<f32>, tensor<1xf32>, tensor<i64>, tensor<i64>) -> (tensor<1xf32>, tensor<i64>, tensor<i64>, tensor<i64>)
  return
}

// -----

func.func @adamw_c1_grad(%p: tensor<4xf32>, %g: tensor<2x2xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{updates a parameter of type 'tensor<4xf32>' by a value of type 'tensor<2x2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adamw %p, %g, %p, %p lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw_c1_stream(%p: tensor<4xbf16>, %m: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps a parameter of type 'tensor<4xbf16>' in 16 bits, or its moments, without a stream of draws}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adamw %p, %m, %m, %m lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @sgd_c1_stream(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps a parameter of type 'tensor<4xf32>' and its moments in full, but has a stream of draws}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = train.sgd %p, %p lr(%lr) step(%t) {momentum = 0.0, dampening = 0.0, weight_decay = 0.0, stream = 1}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw_c1_moments(%p: tensor<4xf32>, %m: tensor<4xbf16>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps moments of types 'tensor<4xbf16>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adamw %p, %p, %m, %p lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0, stream = 1}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw8bit_c1_codes(%p: tensor<300xf32>, %m: tensor<300xi8>, %s: tensor<1xf32>, %v: tensor<300xi8>, %u: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps a moment of 'tensor<300xf32>' as 'tensor<300xi8>' and 'tensor<1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:6 = train.adamw8bit %p, %p, %m, %s, %v, %u lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<300xf32>, tensor<300xf32>, tensor<300xi8>, tensor<1xf32>, tensor<300xi8>, tensor<2xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<300xf32>, tensor<300xi8>, tensor<1xf32>, tensor<300xi8>, tensor<2xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw_c1_rate(%p: tensor<4xf32>, %t: tensor<i64>) {
  // expected-error @below {{takes 'tensor<4xf32>' for a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adamw %p, %p, %p, %p lr(%p) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw4bit_c1_blocks(%p: tensor<300xf32>, %m: tensor<150xi8>, %s: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps moments of 'tensor<300xf32>', whose elements are no multiple of 128}}
  // expected-error @below {{failed to infer returned types}}
  %0:6 = train.adamw4bit %p, %p, %m, %s, %m, %s lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<300xf32>, tensor<300xf32>, tensor<150xi8>, tensor<2xf32>, tensor<150xi8>, tensor<2xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<300xf32>, tensor<150xi8>, tensor<2xf32>, tensor<150xi8>, tensor<2xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw4bit_c1_codes(%p: tensor<256xf32>, %m: tensor<128xi8>, %w: tensor<256xi8>, %s: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps a moment of 'tensor<256xf32>' as 'tensor<256xi8>' and 'tensor<2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:6 = train.adamw4bit %p, %p, %m, %s, %w, %s lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<256xf32>, tensor<256xf32>, tensor<128xi8>, tensor<2xf32>, tensor<256xi8>, tensor<2xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<256xf32>, tensor<128xi8>, tensor<2xf32>, tensor<256xi8>, tensor<2xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw4bit_c2_copy(%p: tensor<256xf32>, %m: tensor<128xi8>, %s: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i64>, %c: tensor<255xf16>) {
  // expected-error @below {{copies a parameter of type 'tensor<256xf32>' to 'tensor<255xf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:7 = train.adamw4bit %p, %p, %m, %s, %m, %s lr(%lr) step(%t) copy(%c) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<256xf32>, tensor<256xf32>, tensor<128xi8>, tensor<2xf32>, tensor<128xi8>, tensor<2xf32>, tensor<f32>, tensor<i64>, tensor<255xf16>)
      -> (tensor<256xf32>, tensor<128xi8>, tensor<2xf32>, tensor<128xi8>, tensor<2xf32>, tensor<255xf16>, tensor<f32>)
  return
}

// -----

func.func @adafactor_c1_count(%p: tensor<8x4xf32>, %r: tensor<8x1xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps 1 moments of 'tensor<8x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = train.adafactor %p, %p moments(%r) lr(%lr) step(%t) {beta2_decay = -0.8, eps1 = 1.0e-7, eps2 = 1.0e-3, d = 1.0, weight_decay = 0.0}
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<f32>, tensor<i64>) -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<f32>)
  return
}

// -----

func.func @adafactor_c1_shape(%p: tensor<8x4xf32>, %r: tensor<8x1xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{keeps a moment of 'tensor<8x4xf32>' as 'tensor<8x1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adafactor %p, %p moments(%r, %r) lr(%lr) step(%t) {beta2_decay = -0.8, eps1 = 1.0e-7, eps2 = 1.0e-3, d = 1.0, weight_decay = 0.0}
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<f32>)
  return
}

// -----

func.func @adafactor_c2_copy(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{copies a parameter of type 'tensor<4xf32>' to 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.adafactor %p, %p moments(%p) lr(%lr) step(%t) copy(%p) {beta2_decay = -0.8, eps1 = 1.0e-7, eps2 = 1.0e-3, d = 1.0, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @lion_c1_stream(%p: tensor<4xf32>, %m: tensor<4xbf16>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{in 16 bits, or its moments, without a stream of draws}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = train.lion %p, %p, %m lr(%lr) step(%t) {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xbf16>, tensor<f32>)
  return
}

// -----

func.func @lion_c2_copy(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{copies a parameter of type 'tensor<4xf32>' to 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = train.lion %p, %p, %p lr(%lr) step(%t) copy(%p) {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @sgd_c1_buffer(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{has a momentum of 9.000000e-01 but no buffer}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = train.sgd %p, %p lr(%lr) step(%t) {momentum = 0.9, dampening = 0.0, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @sgd_c1_no_momentum(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{has a momentum of 0.000000e+00 and a buffer}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = train.sgd %p, %p momentum(%p) lr(%lr) step(%t) {momentum = 0.0, dampening = 0.0, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw_c2_type(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{copies a parameter of type 'tensor<4xf32>' to 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = train.adamw %p, %p, %p, %p lr(%lr) step(%t) copy(%p) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @adamw_c2_param(%p: tensor<4xbf16>, %m: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @below {{copies a parameter of type 'tensor<4xbf16>' to 'tensor<4xbf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:5 = train.adamw %p, %m, %m, %m lr(%lr) step(%t) copy(%p) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0, stream = 1}
      : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xbf16>)
      -> (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<f32>)
  return
}

// -----

func.func @adamw8bit_c2_shape(%p: tensor<300xf32>, %m: tensor<300xi8>, %s: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i64>, %c: tensor<299xf16>) {
  // expected-error @below {{copies a parameter of type 'tensor<300xf32>' to 'tensor<299xf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:7 = train.adamw8bit %p, %p, %m, %s, %m, %s lr(%lr) step(%t) copy(%c) {beta1 = 0.9, beta2 = 0.99, epsilon = 0.1, weight_decay = 0.0}
      : (tensor<300xf32>, tensor<300xf32>, tensor<300xi8>, tensor<2xf32>, tensor<300xi8>, tensor<2xf32>, tensor<f32>, tensor<i64>, tensor<299xf16>)
      -> (tensor<300xf32>, tensor<300xi8>, tensor<2xf32>, tensor<300xi8>, tensor<2xf32>, tensor<299xf16>, tensor<f32>)
  return
}

// -----

func.func @sgd_c2_scalar(%p: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>, %c: tensor<bf16>) {
  // expected-error @below {{copies a parameter of type 'tensor<4xf32>' to 'tensor<bf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = train.sgd %p, %p lr(%lr) step(%t) copy(%c) {momentum = 0.0, dampening = 0.0, weight_decay = 0.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<bf16>) -> (tensor<4xf32>, tensor<bf16>, tensor<f32>)
  return
}

// -----

func.func @stash_start_c1(%x: tensor<4xf32>) {
  // expected-error @below {{copies 'tensor<4xf32>' to 'tensor<4xf16, #train.space<host>>'}}
  %0 = train.stash_start %x : tensor<4xf32> to tensor<4xf16, #train.space<host>>
  return
}

// -----

func.func @stash_start_c2(%x: tensor<4xf32>) {
  // expected-error @below {{goes from the device to the file}}
  %0 = train.stash_start %x : tensor<4xf32> to tensor<4xf32, #train.space<file>>
  return
}

// -----

func.func @fetch_start_c1(%x: tensor<4xf32, #train.space<host>>) {
  // expected-error @below {{copies 'tensor<4xf32, #train.space<host>>' to 'tensor<2xf32>'}}
  %0 = train.fetch_start %x : tensor<4xf32, #train.space<host>> to tensor<2xf32>
  return
}

// -----

func.func @fetch_start_c2(%x: tensor<4xf32, #train.space<host>>) {
  // expected-error @below {{goes from the host to the file}}
  %0 = train.fetch_start %x : tensor<4xf32, #train.space<host>> to tensor<4xf32, #train.space<file>>
  return
}

// -----

func.func @stash_done_c1(%x: tensor<4xf32, #train.space<host>>) {
  // expected-error @below {{ends no stash of its block}}
  train.stash_done %x : tensor<4xf32, #train.space<host>>
  return
}

// -----

func.func @fetch_done_c1(%x: tensor<4xf32>) {
  // expected-error @below {{ends no fetch of its block}}
  train.fetch_done %x : tensor<4xf32>
  return
}

// -----

func.func @work_done_c1(%x: tensor<4xf32>) {
  // expected-error @below {{ends no work of the host or the network in its block}}
  train.work_done %x : tensor<4xf32>
  return
}
