// RUN: tmc-opt %s -tmc-fold-into-kernels -split-input-file | FileCheck %s

// The second product adds onto the first one's bytes.
// CHECK-LABEL: @accumulate
// CHECK: %[[A:.*]] = nn.matmul %arg0, %arg1 :
// CHECK: nn.matmul %arg0, %arg2 acc(%[[A]])
// CHECK-NOT: arith.addf
func.func @accumulate(%x: tensor<8x4xf32>, %v: tensor<4x6xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %p = nn.matmul %x, %v : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %q = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = arith.addf %p, %q : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

// -----

// Tied tables: the lookup's gradient is added onto the head's, whichever kernel
// made that, so there is never a second one.
// CHECK-LABEL: @accumulate_onto_the_head
// CHECK: %{{.*}}, %[[T:.*]] = nn.linear_cross_entropy_grad
// CHECK: nn.embedding_grad %arg5, %arg6 acc(%[[T]])
// CHECK-NOT: arith.addf
func.func @accumulate_onto_the_head(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %l: tensor<4xf32>, %n: tensor<f32>, %i: tensor<4xi64>, %g: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<5x3xf32>) {
  %dx, %dw = nn.linear_cross_entropy_grad %x, %w, %y, %l, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
  %e = nn.embedding_grad %i, %g : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %s = arith.addf %dw, %e : tensor<5x3xf32>
  return %dx, %s : tensor<4x3xf32>, tensor<5x3xf32>
}

// -----

// A loss reads 16-bit logits as they are, and its gradient is rounded as it is
// made.
// CHECK-LABEL: @loss_of_narrow_logits
// CHECK-NEXT: %[[L:.*]], %[[E:.*]] = nn.cross_entropy %arg0, %arg1, %arg2 : (tensor<4x5xbf16>,
// CHECK-NEXT: %[[D:.*]] = nn.cross_entropy_grad %arg0, %arg1, %[[E]], %arg3 {ignore_index = 3 : i64} : {{.*}} -> tensor<4x5xbf16>
// CHECK-NEXT: return %[[L]], %[[D]], %[[D]]
func.func @loss_of_narrow_logits(%x: tensor<4x5xbf16>, %y: tensor<4xi64>, %n: tensor<f32>, %s: tensor<f32>) -> (tensor<f32>, tensor<4x5xbf16>, tensor<4x5xbf16>) {
  %w = arith.extf %x : tensor<4x5xbf16> to tensor<4x5xf32>
  %l, %e = nn.cross_entropy %w, %y, %n : (tensor<4x5xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %g = nn.cross_entropy_grad %w, %y, %e, %s {ignore_index = 3 : i64} : (tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x5xf32>
  %t = arith.truncf %g : tensor<4x5xf32> to tensor<4x5xbf16>
  %u = arith.truncf %g : tensor<4x5xf32> to tensor<4x5xbf16>
  return %l, %t, %u : tensor<f32>, tensor<4x5xbf16>, tensor<4x5xbf16>
}

// -----

// Not where the unrounded one is wanted, too,
// CHECK-LABEL: @gradient_that_is_wanted_in_f32
// CHECK: nn.cross_entropy_grad {{.*}} -> tensor<4x5xf32>
func.func @gradient_that_is_wanted_in_f32(%x: tensor<4x5xbf16>, %y: tensor<4xi64>, %e: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4x5xbf16>, tensor<4x5xf32>) {
  %w = arith.extf %x : tensor<4x5xbf16> to tensor<4x5xf32>
  %g = nn.cross_entropy_grad %w, %y, %e, %s : (tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x5xf32>
  %t = arith.truncf %g : tensor<4x5xf32> to tensor<4x5xbf16>
  return %t, %g : tensor<4x5xbf16>, tensor<4x5xf32>
}

// -----

// or another type.
// CHECK-LABEL: @gradient_in_another_type
// CHECK: nn.cross_entropy_grad {{.*}} -> tensor<4x5xf32>
func.func @gradient_in_another_type(%x: tensor<4x5xbf16>, %y: tensor<4xi64>, %e: tensor<4xf32>, %s: tensor<f32>) -> tensor<4x5xf16> {
  %w = arith.extf %x : tensor<4x5xbf16> to tensor<4x5xf32>
  %g = nn.cross_entropy_grad %w, %y, %e, %s : (tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x5xf32>
  %t = arith.truncf %g : tensor<4x5xf32> to tensor<4x5xf16>
  return %t : tensor<4x5xf16>
}

// -----

// The logits of a chunk are made once, for the loss and for its gradient.
// CHECK-LABEL: @loss_with_gradient
// CHECK-NEXT: %[[L:.*]], %[[X:.*]], %[[T:.*]], %[[B:.*]] = nn.linear_cross_entropy_with_grad %arg0, %arg1, %arg2, %arg4, %arg5 bias(%arg3) {chunk = 2 : i64, ignore_index = 3 : i64}
// CHECK-NEXT: return %[[L]], %[[X]], %[[T]], %[[B]]
func.func @loss_with_gradient(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %b: tensor<5xf32>, %n: tensor<f32>, %s: tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>) {
  %l, %e = nn.linear_cross_entropy %x, %w, %y, %n bias(%b) {chunk = 2 : i64, ignore_index = 3 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>, tensor<5xf32>) -> (tensor<f32>, tensor<4xf32>)
  %dx, %dw, %db = nn.linear_cross_entropy_grad %x, %w, %y, %e, %s bias(%b) {chunk = 2 : i64, ignore_index = 3 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>)
  return %l, %dx, %dw, %db : tensor<f32>, tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>
}

// -----

// Not where somebody else wants the log-sum-exps (what nobody wants of the
// gradient isn't made),
// CHECK-LABEL: @loss_whose_lse_is_wanted
// CHECK-NOT: with_grad
// CHECK: nn.linear_cross_entropy_grad {{.*}} unread = array<i64: 1>
func.func @loss_whose_lse_is_wanted(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %n: tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4x3xf32>) {
  %l, %e = nn.linear_cross_entropy %x, %w, %y, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %dx, %dw = nn.linear_cross_entropy_grad %x, %w, %y, %e, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
  return %l, %e, %dx : tensor<f32>, tensor<4xf32>, tensor<4x3xf32>
}

// -----

// where the gradient is scaled by something that is known after the loss,
// CHECK-LABEL: @loss_that_scales_its_gradient
// CHECK-NOT: with_grad
func.func @loss_that_scales_its_gradient(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %n: tensor<f32>) -> tensor<4x3xf32> {
  %l, %e = nn.linear_cross_entropy %x, %w, %y, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %s = arith.mulf %l, %n : tensor<f32>
  %dx, %dw = nn.linear_cross_entropy_grad %x, %w, %y, %e, %s {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
  return %dx : tensor<4x3xf32>
}

// -----

// though what is only written behind the loss moves before it,
// CHECK-LABEL: @loss_whose_scale_is_late
// CHECK-NEXT: %[[S:.*]] = arith.mulf %arg3, %arg3
// CHECK-NEXT: nn.linear_cross_entropy_with_grad %arg0, %arg1, %arg2, %arg3, %[[S]]
func.func @loss_whose_scale_is_late(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %n: tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>) {
  %l, %e = nn.linear_cross_entropy %x, %w, %y, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %s = arith.mulf %n, %n : tensor<f32>
  %dx, %dw = nn.linear_cross_entropy_grad %x, %w, %y, %e, %s {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
  return %l, %dx : tensor<f32>, tensor<4x3xf32>
}

// -----

// or where the gradient is that of other labels.
// CHECK-LABEL: @loss_of_other_labels
// CHECK-NOT: with_grad
func.func @loss_of_other_labels(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %z: tensor<4xi64>, %n: tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>) {
  %l, %e = nn.linear_cross_entropy %x, %w, %y, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %dx, %dw = nn.linear_cross_entropy_grad %x, %w, %z, %e, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
  return %l, %dx : tensor<f32>, tensor<4x3xf32>
}

// -----

// The caller keeps an argument's bytes: nothing may add onto them.
// CHECK-LABEL: @accumulate_onto_argument
// CHECK-NOT: acc
// CHECK: arith.addf
func.func @accumulate_onto_argument(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %s: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %y = arith.addf %s, %p : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// -----

// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %zeros = nn.broadcast %zero to [] : (tensor<f32>) -> tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %a = arith.addf %zeros, %x : tensor<4xf32>
  %b = arith.mulf %a, %one : tensor<4xf32>
  %c = arith.divf %b, %one : tensor<4xf32>
  %d = arith.subf %c, %zeros : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// [1, 2, 0] after [2, 0, 1] is nothing at all.
// CHECK-LABEL: @transposes
// CHECK-NEXT: return %arg0
func.func @transposes(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %a = nn.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %b = nn.transpose %a [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %b : tensor<2x3x4xf32>
}

// -----

// Each element of x stands 8 times: the sum is 8 x.
// CHECK-LABEL: @sum_of_broadcast
// CHECK: %[[C:.*]] = arith.constant dense<8.000000e+00> : tensor<4xf32>
// CHECK: arith.mulf %arg0, %[[C]]
// CHECK-NOT: nn.reduce
func.func @sum_of_broadcast(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = nn.broadcast %x to [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %s = nn.reduce sum %b over [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// A channel's sum in NCHW: rows of 5 * 7 first, then the batch.
// CHECK-LABEL: @channel_sum
// CHECK: %[[R:.*]] = nn.reduce sum %arg0 over [2, 3] : (tensor<2x3x5x7xf32>) -> tensor<2x3xf32>
// CHECK: nn.reduce sum %[[R]] over [0] : (tensor<2x3xf32>) -> tensor<3xf32>
func.func @channel_sum(%x: tensor<2x3x5x7xf32>) -> tensor<3xf32> {
  %s = nn.reduce sum %x over [0, 2, 3] : (tensor<2x3x5x7xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

// CHECK-LABEL: @powers
// CHECK: arith.mulf %arg0, %arg0
// CHECK: math.sqrt %arg0
// CHECK: math.rsqrt %arg0
// CHECK-NOT: math.powf
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %two = arith.constant dense<2.0> : tensor<4xf32>
  %half = arith.constant dense<0.5> : tensor<4xf32>
  %minus = arith.constant dense<-0.5> : tensor<4xf32>
  %a = math.powf %x, %two : tensor<4xf32>
  %b = math.powf %x, %half : tensor<4xf32>
  %c = math.powf %x, %minus : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// relu's derivative asks its result, so that its operand can go.
// CHECK-LABEL: @relu
// CHECK: %[[Y:.*]] = arith.maximumf %arg0
// CHECK: arith.cmpf ogt, %[[Y]]
func.func @relu(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %y = arith.maximumf %x, %zero : tensor<4xf32>
  %m = arith.cmpf ogt, %x, %zero : tensor<4xf32>
  return %y, %m : tensor<4xf32>, tensor<4xi1>
}

// -----

// In a loop the table's gradient is added to what the loop carries, by the
// kernel that makes the loss.
// CHECK-LABEL: @loss_that_adds_up
// CHECK: ^bb0({{.*}}%[[L:.*]]: tensor<f32>, %[[T:.*]]: tensor<5x3xf32>
// CHECK: nn.linear_cross_entropy_with_grad {{.*}} acc(%[[T]])
// CHECK-NOT: arith.addf {{.*}} tensor<5x3xf32>
train.step @loss_that_adds_up(%x: tensor<8x3xf32>, %w: tensor<5x3xf32>, %y: tensor<8xi64>, %n: tensor<f32>) -> (tensor<f32>, tensor<5x3xf32>) {
  %sums:2 = train.micro_batch 2 slices(%x, %y : tensor<8x3xf32>, tensor<8xi64>) -> tensor<f32>, tensor<5x3xf32> {
  ^bb0(%xs: tensor<4x3xf32>, %ys: tensor<4xi64>, %loss: tensor<f32>, %dtable: tensor<5x3xf32>):
    %l, %e = nn.linear_cross_entropy %xs, %w, %ys, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
    %dx, %dw = nn.linear_cross_entropy_grad %xs, %w, %ys, %e, %n {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<5x3xf32>)
    %ls = arith.addf %loss, %l : tensor<f32>
    %ts = arith.addf %dtable, %dw : tensor<5x3xf32>
    train.yield %ls, %ts : tensor<f32>, tensor<5x3xf32>
  }
  train.return %sums#0, %sums#1 : tensor<f32>, tensor<5x3xf32>
}

// -----

// Beside a bias's gradient it isn't: the kernel would add to that as well.
// CHECK-LABEL: @loss_with_a_bias_adds_nothing
// CHECK-NOT: acc(
// CHECK: arith.addf
func.func @loss_with_a_bias_adds_nothing(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %y: tensor<4xi64>, %b: tensor<5xf32>, %e: tensor<4xf32>, %n: tensor<f32>, %i: tensor<4xi64>, %g: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>) {
  %before = nn.embedding_grad %i, %g : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %dx, %dw, %db = nn.linear_cross_entropy_grad %x, %w, %y, %e, %n bias(%b) {chunk = 2 : i64} : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>)
  %s = arith.addf %before, %dw : tensor<5x3xf32>
  return %dx, %s, %db : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>
}

// -----

// The first rows of a padded table's gradient: the lookup's gradient is added
// to all rows, and the slice comes last.
// CHECK-LABEL: @lookup_onto_padded_rows
// CHECK: %[[P:.*]] = nn.matmul %arg0, %arg1 transpose_lhs : {{.*}} -> tensor<8x4xf32>
// CHECK: %[[E:.*]] = nn.embedding_grad %arg2, %arg3 acc(%[[P]]) : {{.*}} -> tensor<8x4xf32>
// CHECK: %[[S:.*]] = nn.slice %[[E]] [0, 0] step [1, 1] : (tensor<8x4xf32>) -> tensor<5x4xf32>
// CHECK: return %[[S]]
func.func @lookup_onto_padded_rows(%d: tensor<6x8xf32>, %x: tensor<6x4xf32>, %i: tensor<6xi64>, %g: tensor<6x4xf32>) -> tensor<5x4xf32> {
  %p = nn.matmul %d, %x transpose_lhs : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %s = nn.slice %p [0, 0] step [1, 1] : (tensor<8x4xf32>) -> tensor<5x4xf32>
  %e = nn.embedding_grad %i, %g : (tensor<6xi64>, tensor<6x4xf32>) -> tensor<5x4xf32>
  %a = arith.addf %s, %e : tensor<5x4xf32>
  return %a : tensor<5x4xf32>
}

// -----

// A bias's gradient reads the rounded gradient, too.
// CHECK-LABEL: @rounded_beside_a_sum
// CHECK: %[[D:.*]] = nn.cross_entropy_grad {{.*}} -> tensor<4x5xbf16>
// CHECK: %[[W:.*]] = arith.extf %[[D]]
// CHECK: nn.reduce sum %[[W]] over [0]
func.func @rounded_beside_a_sum(%x: tensor<4x5xbf16>, %y: tensor<4xi64>, %e: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4x5xbf16>, tensor<5xf32>) {
  %w = arith.extf %x : tensor<4x5xbf16> to tensor<4x5xf32>
  %g = nn.cross_entropy_grad %w, %y, %e, %s : (tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x5xf32>
  %n = arith.truncf %g : tensor<4x5xf32> to tensor<4x5xbf16>
  %r = nn.reduce sum %g over [0] : (tensor<4x5xf32>) -> tensor<5xf32>
  return %n, %r : tensor<4x5xbf16>, tensor<5xf32>
}
