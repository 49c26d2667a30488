// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=memref --split-input-file | FileCheck %s

// Packed panels are scratch arguments; the tile's accumulators are carried by the loop over k; no linalg op is left.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK-SAME: (%{{.*}}: memref<64x100xf32>, %{{.*}}: memref<100x96xf32>, %{{.*}}: memref<64x96xf32>, %[[PACKED:[a-z0-9]+]]: memref<{{.*}}xf32>
// CHECK-SAME: kernel.vectors
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<
// CHECK: vector.fma
// CHECK-NOT: linalg.
func.func @main(%a: tensor<64x100xf32>, %b: tensor<100x96xf32>) -> tensor<64x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x100xf32>, tensor<100x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}

// -----

// Large operands: threads pack panels together, in a launch of its own, in a buffer that they share.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK-SAME: kernel.phases = array<i64: 0, {{[0-9]+, [0-9]+, [0-9]+>}}
// CHECK-SAME: kernel.shared = array<i64: 4194304>
// CHECK: vector.fma
func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}

// -----

// One row of lhs: rhs is read once, so nothing is packed and no scratch is asked for.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK-SAME: (%{{.*}}: memref<1x100xf32>, %{{.*}}: memref<100x96xf32>, %{{.*}}: memref<1x96xf32>
// CHECK-SAME: kernel.scratch = array<i64>,
// CHECK: vector.fma
func.func @main(%a: tensor<1x100xf32>, %b: tensor<100x96xf32>) -> tensor<1x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x100xf32>, tensor<100x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// -----

// A product too small to pack stays a plain loop nest.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK: linalg.generic
// CHECK-NOT: vector.fma
func.func @main(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Rounding to bf16 is done on the rows of a tile: no loop over the product follows, and with one block of k no buffer
// holds it.
// CHECK-LABEL: func.func private @dot_general_0_rows
// CHECK-SAME: noinline
// CHECK: arith.trunci {{.*}} : vector<{{[0-9]+}}xi32> to vector<{{[0-9]+}}xi16>
// CHECK: vector.store {{.*}}xi16>
// CHECK-LABEL: func.func public @dot_general_0
// CHECK-SAME: kernel.vectors
// CHECK: call @dot_general_0_rows
// CHECK-NOT: linalg.
func.func @main(%a: tensor<64x100xbf16>, %b: tensor<100x96xbf16>) -> tensor<64x96xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x100xbf16>, tensor<100x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// -----

// So are a bias, an activation and a residual.
// CHECK-LABEL: func.func private @product_add_0_rows
// CHECK: arith.addf {{.*}} : vector<
// CHECK-LABEL: func.func public @product_add_0
// CHECK-SAME: kernel.range
// CHECK: vector.fma
// CHECK: call @product_add_0_rows
// CHECK-NOT: linalg.
func.func @main(%a: tensor<64x100xf32>, %b: tensor<100x96xf32>, %bias: tensor<96xf32>, %y: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x100xf32>, tensor<100x96xf32>) -> tensor<64x96xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
  %2 = stablehlo.add %0, %1 : tensor<64x96xf32>
  %3 = stablehlo.tanh %2 : tensor<64x96xf32>
  %4 = stablehlo.add %3, %y : tensor<64x96xf32>
  return %4 : tensor<64x96xf32>
}

// -----

// The last columns are computed by a panel that goes back over some of the one before: no edge, no mask.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK-NOT: masked
// CHECK: vector.fma
// CHECK-NOT: masked
func.func @main(%a: tensor<67x100xf32>, %b: tensor<100x101xf32>) -> tensor<67x101xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<67x100xf32>, tensor<100x101xf32>) -> tensor<67x101xf32>
  return %0 : tensor<67x101xf32>
}

// -----

// Not where the blocks of k are added up in the result: what is computed twice would be added twice.
// CHECK-LABEL: func.func public @dot_general_0
// CHECK: vector.fma
// CHECK: masked
func.func @main(%a: tensor<67x2000xf32>, %b: tensor<2000x101xf32>) -> tensor<67x101xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<67x2000xf32>, tensor<2000x101xf32>) -> tensor<67x101xf32>
  return %0 : tensor<67x101xf32>
}
