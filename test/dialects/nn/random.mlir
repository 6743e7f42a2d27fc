// RUN: tmc-opt %s -split-input-file -verify-diagnostics

// One function for each constraint of nn.random.

func.func @random_c1_seed(%s: tensor<3xi64>, %n: tensor<4xi64>) {
  // expected-error @below {{wants a seed and a step, and has 'tensor<3xi64>'}}
  %0 = nn.random %s, %n {stream = 0 : i64} : (tensor<3xi64>, tensor<4xi64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @random_c1_samples(%s: tensor<2xi64>, %n: tensor<3xi64>) {
  // expected-error @below {{draws 'tensor<4x2xf32>' for the samples 'tensor<3xi64>', whose number doesn't divide its first dimension}}
  %0 = nn.random %s, %n {stream = 0 : i64} : (tensor<2xi64>, tensor<3xi64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @random_c1_rank(%s: tensor<2xi64>, %n: tensor<i64>) {
  // expected-error @below {{draws 'tensor<4x2xf32>' for the samples 'tensor<i64>'}}
  %0 = nn.random %s, %n {stream = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<4x2xf32>
  return
}
