// RUN: tmc-opt %s -tmc-split=micro-batches=4 -split-input-file -verify-diagnostics

// expected-error @below {{a batch of 3 can't be cut into 4 micro-batches}}
func.func @forward(
    // expected-note @below {{'x' is 'tensor<3x5xf32>'}}
    %x: tensor<3x5xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.reduce sum %x over [0, 1] : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Six samples in four pieces are two in each, which three hold.

// expected-warning @below {{a batch of 6 makes 3 micro-batches of at most 2, not 4}}
func.func @forward(
    %x: tensor<6x5xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.reduce sum %x over [0, 1] : (tensor<6x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of two and of four samples: the batch is of two.

// expected-error @below {{a batch of 2 can't be cut into 4 micro-batches}}
func.func @forward(
    %x: tensor<4x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    // expected-note @below {{'y' is 'tensor<2x5xf32>'}}
    %y: tensor<2x5xf32> {train.role = #train.role<batch>, train.name = "y"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.reduce sum %x over [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{has no argument that is a batch, and can't be cut into 4 micro-batches}}
func.func @forward(
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %loss = nn.reduce sum %b over [0] : (tensor<5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
// expected-note @below {{--batchnorm=per-micro-batch takes the statistics of each micro-batch, --batchnorm=frozen the running ones}}
func.func @forward(
    %x: tensor<8x3x4x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %v: tensor<3xf32> {train.role = #train.role<param>, train.name = "v"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  // expected-error @below {{can't be computed in 4 micro-batches: its statistics are those of the whole batch}}
  %y, %nm, %nv, %m, %r = nn.batch_norm %x, %v, %v, %v, %v {epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<8x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<8x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %loss = nn.reduce sum %y over [0, 1, 2, 3] : (tensor<8x3x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The logarithm of a sum that depends on a parameter.

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<8x5xf32>
  %y = arith.mulf %x, %bb : tensor<8x5xf32>
  %s = nn.reduce sum %y over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  // expected-error @below {{can't be computed in 4 micro-batches: it isn't linear in a sum over the batch that depends on parameters}}
  %loss = math.log %s : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A loss of the largest sample.

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  // expected-error @below {{can't be computed in 4 micro-batches: it takes an extremum over the batch}}
  %loss = nn.reduce max %x over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A table of one row per sample that isn't part of the batch.

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %table: tensor<8x5xf32> {train.role = #train.role<param>, train.name = "table"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  // expected-error @below {{can't be computed in 4 micro-batches: what it takes beside the batch is one for all samples}}
  %y = arith.mulf %x, %table : tensor<8x5xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The loss of one sample counts by one fourth of it in each piece, or not at all.

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  // expected-error @below {{can't be computed in 4 micro-batches: it takes a part of the batch}}
  %y = nn.slice %x [0, 0] step [1, 1] : (tensor<8x5xf32>) -> tensor<1x5xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<1x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A running mean would be updated four times.

// expected-note @below {{--micro-batches=1 computes the whole batch at once}}
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %mean: tensor<5xf32> {train.role = #train.role<state>, train.name = "mean"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<5xf32> {train.updates = 1 : i64, train.name = "mean"}) {
  %loss = nn.reduce sum %x over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  // expected-error @below {{can't be computed in 4 micro-batches: it updates a state, once for the whole batch}}
  %new = arith.addf %mean, %mean : tensor<5xf32>
  return %loss, %new : tensor<f32>, tensor<5xf32>
}
