// RUN: stablehlo-opt %s --pass-pipeline='hlo-scalar-ops' --split-input-file | FileCheck %s

// Scalars are tensors of rank 0, an index is an i64.
// CHECK-LABEL: func.func @size
// CHECK: %[[SIZE:.*]] = stablehlo.get_dimension_size %{{.*}}, dim = 0
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[SIZE]] : (tensor<i32>) -> tensor<i64>
// CHECK: stablehlo.multiply
// CHECK: stablehlo.concatenate
// CHECK-NOT: tensor.
// CHECK-NOT: arith.
func.func @size(%x: tensor<?x4xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %m = arith.muli %d, %c4 : index
  %s = tensor.from_elements %m : tensor<1xindex>
  %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x4xf32>, tensor<1xindex>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// What is assumed of shapes is found out when they are known.
// CHECK-LABEL: func.func @assuming
// CHECK-NOT: shape.
// CHECK: stablehlo.select
// CHECK: %[[SUM:.*]] = stablehlo.dynamic_broadcast_in_dim
// CHECK-NEXT: return %[[SUM]]
func.func @assuming(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %a = shape.shape_of %x : tensor<?xf32> -> tensor<1xindex>
  %b = shape.shape_of %y : tensor<?xf32> -> tensor<1xindex>
  %w = shape.cstr_broadcastable %a, %b : tensor<1xindex>, tensor<1xindex>
  %r = shape.assuming %w -> (tensor<?xf32>) {
    %s = shape.broadcast %a, %b : tensor<1xindex>, tensor<1xindex> -> tensor<1xindex>
    %z = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0] : (tensor<?xf32>, tensor<1xindex>) -> tensor<?xf32>
    shape.assuming_yield %z : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Elements that mean nothing until they are written may be any.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: tensor.empty
// CHECK: %[[ZEROS:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: return %[[ZEROS]]
func.func @empty() -> tensor<2x3xf32> {
  %0 = tensor.empty() : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// What ops of linalg read stays with them, in their regions too.
// CHECK-LABEL: func.func @beside_linalg
// CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<3xf32>
// CHECK: linalg.generic {{.*}} outs(%[[EMPTY]] : tensor<3xf32>)
// CHECK: arith.mulf %{{.*}}, %[[TWO]] : f32
// CHECK: stablehlo.add
#map = affine_map<(d0) -> (d0)>
func.func @beside_linalg(%x: tensor<3xf32>) -> tensor<3xf32> {
  %two = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%empty : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %two : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  %2 = arith.addf %0, %x : tensor<3xf32>
  return %2 : tensor<3xf32>
}
