// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn's ops of ranks.

func.func @sum_over_c1(%x: tensor<4xf32>) {
  // expected-error @below {{sums over 0 ranks}}
  %0 = nn.sum_over %x over dp of 0 : tensor<4xf32>
  return
}

// -----

func.func @exchange_c1_ranks(%x: tensor<4xf32>) {
  // expected-error @below {{exchanges -1 pieces}}
  %0 = nn.exchange %x over dp of -1 : tensor<4xf32>
  return
}

// -----

func.func @sum_pieces_c1_rank(%x: tensor<f32>) {
  // expected-error @below {{sums the rows of 'tensor<f32>'}}
  %0 = nn.sum_pieces %x : tensor<f32>
  return
}

// -----

func.func @sum_pieces_c1_rows(%x: tensor<0x4xf32>) {
  // expected-error @below {{sums the rows of 'tensor<0x4xf32>'}}
  %0 = nn.sum_pieces %x : tensor<0x4xf32>
  return
}

// -----

func.func @gather_c1_elements(%x: tensor<4xf32>) {
  // expected-error @below {{gathers 'tensor<4xf32>' of 2 ranks to 'tensor<9xf32>'}}
  %0 = nn.gather %x over dp of 2 : tensor<4xf32> to tensor<9xf32>
  return
}

// -----

func.func @gather_c1_type(%x: tensor<4xf32>) {
  // expected-error @below {{gathers 'tensor<4xf32>' of 2 ranks to 'tensor<8xf64>'}}
  %0 = nn.gather %x over dp of 2 : tensor<4xf32> to tensor<8xf64>
  return
}

// -----

func.func @gather_c1_ranks(%x: tensor<4xf32>) {
  // expected-error @below {{gathers 'tensor<4xf32>' of 0 ranks to 'tensor<0xf32>'}}
  %0 = nn.gather %x over dp of 0 : tensor<4xf32> to tensor<0xf32>
  return
}

// -----

func.func @shard_of_c1(%x: tensor<4xf32>) {
  // expected-error @below {{takes a shard of 0}}
  %0 = nn.shard_of %x over dp of 0 : tensor<4xf32>
  return
}

// -----

func.func @embedding_pieces_c1(%w: tensor<4096xf32>, %ids: tensor<2x3xi64>) {
  // expected-error @below {{needs a table}}
  %0 = nn.embedding_pieces %w, %ids of tensor<f32> over dp of 2 : tensor<4096xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @embedding_pieces_c2(%w: tensor<4095xf32>, %ids: tensor<2x3xi64>) {
  // expected-error @below {{takes a shard 'tensor<4095xf32>' of 'tensor<5x1000xf32>' where 'tensor<4096xf32>' is due}}
  %0 = nn.embedding_pieces %w, %ids of tensor<5x1000xf32> over dp of 2 : tensor<4095xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @embedding_pieces_c3(%w: tensor<4096xf32>, %ids: tensor<3x3xi64>) {
  // expected-error @below {{takes indices 'tensor<3x3xi64>' of 2 ranks}}
  %0 = nn.embedding_pieces %w, %ids of tensor<5x1000xf32> over dp of 2 : tensor<4096xf32>, tensor<3x3xi64>
  return
}

// -----

func.func @embedding_grad_shard_c1(%ids: tensor<2x3xi64>, %g: tensor<2x3xf32>) {
  // expected-error @below {{needs a table}}
  %0 = nn.embedding_grad_shard %ids, %g of tensor<f32> over dp of 2 : tensor<2x3xi64>, tensor<2x3xf32>
  return
}

// -----

func.func @embedding_grad_shard_c2(%ids: tensor<2x3xi64>, %g: tensor<2x3x999xf32>) {
  // expected-error @below {{takes a gradient of type 'tensor<2x3x999xf32>' where 'tensor<2x3x1000xf32>' is due}}
  %0 = nn.embedding_grad_shard %ids, %g of tensor<5x1000xf32> over dp of 2 : tensor<2x3xi64>, tensor<2x3x999xf32>
  return
}

// -----

func.func @embedding_grad_shard_c3(%ids: tensor<3xi64>, %g: tensor<3x1000xf32>) {
  // expected-error @below {{takes indices 'tensor<3xi64>' of 2 ranks}}
  %0 = nn.embedding_grad_shard %ids, %g of tensor<5x1000xf32> over dp of 2 : tensor<3xi64>, tensor<3x1000xf32>
  return
}

// -----

func.func @embedding_grad_shard_c4(%ids: tensor<2x3xi64>, %g: tensor<2x3x1000xf32>, %a: tensor<5x1000xf32>) {
  // expected-error @below {{accumulates a result of type 'tensor<4096xf32>' onto 'tensor<5x1000xf32>'}}
  %0 = nn.embedding_grad_shard %ids, %g acc(%a : tensor<5x1000xf32>) of tensor<5x1000xf32> over dp of 2 : tensor<2x3xi64>, tensor<2x3x1000xf32>
  return
}

// -----

func.func @spread_c1(%x: tensor<4xf32>) {
  // expected-error @below {{spreads over 0 ranks}}
  %0 = nn.spread %x over tp of 0 : tensor<4xf32>
  return
}
