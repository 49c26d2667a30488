// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-simplify,cse,trivial-dce)' | FileCheck %s

// CHECK-LABEL: func.func @add_negative_zero
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @add_negative_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %0 = stablehlo.add %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// x + 0.0 is not x when x is -0.0.
// CHECK-LABEL: func.func @add_zero_stays
// CHECK: stablehlo.add
func.func @add_zero_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.add %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @divide_by_eight
// CHECK: %[[C:.*]] = stablehlo.constant dense<1.250000e-01>
// CHECK-NEXT: stablehlo.multiply %{{.*}}, %[[C]]
func.func @divide_by_eight(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<8.0> : tensor<4xf32>
  %0 = stablehlo.divide %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// 1/3 is rounded, so the quotient would be rounded twice.
// CHECK-LABEL: func.func @divide_by_three_stays
// CHECK: stablehlo.divide
func.func @divide_by_three_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<4xf32>
  %0 = stablehlo.divide %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @equal_integers
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<true>
// CHECK-NEXT: return %[[C]]
func.func @equal_integers(%x: tensor<4xi32>) -> tensor<4xi1> {
  %0 = stablehlo.compare EQ, %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// NaN is not equal to itself.
// CHECK-LABEL: func.func @equal_floats_stay
// CHECK: stablehlo.compare
func.func @equal_floats_stay(%x: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare EQ, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// CHECK-LABEL: func.func @wider_and_back
// CHECK-SAME: (%[[X:.*]]: tensor<4xbf16>)
// CHECK-NEXT: return %[[X]]
func.func @wider_and_back(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @narrower_and_back_stays
// CHECK-COUNT-2: stablehlo.convert
func.func @narrower_and_back_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @transposed_twice
// CHECK: stablehlo.transpose %{{.*}}, dims = [2, 0, 1]
// CHECK-NOT: stablehlo.transpose
// CHECK: return
func.func @transposed_twice(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @sliced_concatenation
// CHECK-SAME: , %[[Y:.*]]: tensor<5xf32>)
// CHECK-NEXT: %[[S:.*]] = stablehlo.slice %[[Y]] [1:3]
// CHECK-NEXT: return %[[S]]
func.func @sliced_concatenation(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<2xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [5:7] : (tensor<9xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @slice_across_parts_stays
// CHECK: stablehlo.concatenate
func.func @slice_across_parts_stays(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<2xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [3:5] : (tensor<9xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// The index is clamped, as a slice is not.
// CHECK-LABEL: func.func @known_index
// CHECK: stablehlo.slice %{{.*}} [6:9]
func.func @known_index(%x: tensor<9xf32>) -> tensor<3xf32> {
  %i = stablehlo.constant dense<100> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<9xf32>, tensor<i32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @unknown_index_stays
// CHECK: stablehlo.dynamic_slice
func.func @unknown_index_stays(%x: tensor<9xf32>, %i: tensor<i32>) -> tensor<3xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<9xf32>, tensor<i32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// A sum of one element is the element after the initial value was added.
// CHECK-LABEL: func.func @sum_of_one
// CHECK: stablehlo.add
// CHECK-NOT: stablehlo.reduce
// CHECK: return
func.func @sum_of_one(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @convolution_by_one
// CHECK: stablehlo.dot_general
// CHECK-NOT: stablehlo.convolution
// CHECK: return
func.func @convolution_by_one(%x: tensor<2x5x4x3xf32>, %w: tensor<1x1x3x6xf32>) -> tensor<2x5x4x6xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {feature_group_count = 1 : i64, batch_group_count = 1 : i64}
    : (tensor<2x5x4x3xf32>, tensor<1x1x3x6xf32>) -> tensor<2x5x4x6xf32>
  return %0 : tensor<2x5x4x6xf32>
}

// Nobody reads what %d becomes.
// CHECK-LABEL: func.func @carried_for_nobody
// CHECK: stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<f32>
// CHECK-NOT: stablehlo.multiply
// CHECK: return
func.func @carried_for_nobody(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
  %w:3 = stablehlo.while(%i = %n, %v = %x, %d = %x) : tensor<i32>, tensor<f32>, tensor<f32>
    cond {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %go = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.subtract %i, %one : tensor<i32>
      %a = stablehlo.add %v, %v : tensor<f32>
      %b = stablehlo.multiply %d, %v : tensor<f32>
      stablehlo.return %j, %a, %b : tensor<i32>, tensor<f32>, tensor<f32>
    }
  return %w#1 : tensor<f32>
}

// Three steps of one op each; what is carried beside goes with them.
// CHECK-LABEL: func.func @few_steps
// CHECK-NOT: stablehlo.while
// CHECK-COUNT-3: stablehlo.cosine
// CHECK-NOT: stablehlo.cosine
// CHECK: return
func.func @few_steps(%x: tensor<4xf32>) -> tensor<4xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %end = stablehlo.constant dense<5> : tensor<i32>
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %j = stablehlo.add %i, %two : tensor<i32>
      %a = stablehlo.cosine %v : tensor<4xf32>
      stablehlo.return %j, %a : tensor<i32>, tensor<4xf32>
    }
  return %w#1 : tensor<4xf32>
}

// A step that is a kernel of its own gains nothing beside twenty others.
// CHECK-LABEL: func.func @many_products
// CHECK: stablehlo.while
func.func @many_products(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i32>, tensor<4x4xf32>
    cond {
      %end = stablehlo.constant dense<21> : tensor<i32>
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      stablehlo.return %j, %a : tensor<i32>, tensor<4x4xf32>
    }
  return %w#1 : tensor<4x4xf32>
}

// Each step may stop the program or print: they stay in order, in the loop.
// CHECK-LABEL: func.func @steps_with_effects
// CHECK: stablehlo.while
func.func @steps_with_effects(%x: tensor<4xf32>) -> tensor<4xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %end = stablehlo.constant dense<2> : tensor<i32>
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.custom_call @outside(%v) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %j, %a : tensor<i32>, tensor<4xf32>
    }
  return %w#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @broadcast_that_repeats_nothing
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %{{.*}} : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
// CHECK-NEXT: return %[[R]]
func.func @broadcast_that_repeats_nothing(%x: tensor<3x5xf32>) -> tensor<3x1x5xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
  return %0 : tensor<3x1x5xf32>
}

// A square matrix turned over is as large as before, but in another order.
// CHECK-LABEL: func.func @broadcast_that_transposes
// CHECK-NEXT: stablehlo.broadcast_in_dim
func.func @broadcast_that_transposes(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// Sums of small floats are kept in f32; the rounding may join what follows.
// CHECK-LABEL: func.func @convolution_of_small_floats
// CHECK: %[[WIDE:.*]] = stablehlo.convolution{{.*}} (tensor<1x8x2xbf16>, tensor<3x2x4xbf16>) -> tensor<1x6x4xf32>
// CHECK: stablehlo.convert %[[WIDE]] : (tensor<1x6x4xf32>) -> tensor<1x6x4xbf16>
func.func @convolution_of_small_floats(%x: tensor<1x8x2xbf16>, %w: tensor<3x2x4xbf16>) -> tensor<1x6x4xbf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x8x2xbf16>, tensor<3x2x4xbf16>) -> tensor<1x6x4xbf16>
  return %0 : tensor<1x6x4xbf16>
}
