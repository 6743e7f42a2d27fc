// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of the lookups.

func.func @embedding_c1(%t: tensor<f32>, %i: tensor<4xi64>) {
  // expected-error @below {{the table is a scalar}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.embedding %t, %i : (tensor<f32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @embedding_grad_c1(%i: tensor<4xi64>, %g: tensor<4x3xf32>) {
  // expected-error @below {{takes a gradient of type 'tensor<4x3xf32>' where 'tensor<4x2xf32>' is due}}
  %0 = nn.embedding_grad %i, %g : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @embedding_grad_c1_scalar(%i: tensor<4xi64>, %g: tensor<4xf32>) {
  // expected-error @below {{makes a scalar table}}
  %0 = nn.embedding_grad %i, %g : (tensor<4xi64>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @embedding_grad_c2(%i: tensor<4xi64>, %g: tensor<4x2xf32>, %a: tensor<2x5xf32>) {
  // expected-error @below {{accumulates a result of type 'tensor<5x2xf32>' onto 'tensor<2x5xf32>'}}
  %0 = nn.embedding_grad %i, %g acc(%a) : (tensor<4xi64>, tensor<4x2xf32>, tensor<2x5xf32>) -> tensor<5x2xf32>
  return
}
