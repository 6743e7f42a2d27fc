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
