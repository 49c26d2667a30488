// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-tiles{chip=v4},mxu-kernels' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-tiles{chip=v4},mxu-kernels,mxu-double-buffer' | FileCheck %s --check-prefix=DOUBLE
// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-tiles{chip=v4-megacore},mxu-kernels' | FileCheck %s --check-prefix=CORES
// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-tiles{chip=v6e},mxu-kernels' | FileCheck %s --check-prefix=V6E

// Whole tiles outside; inside transfers, masks of the contracted dimension, pushes and matmuls, and one store.
// CHECK-LABEL: func.func @product
// CHECK: %[[L:.*]] = "mxu.pad"{{.*}} -> tensor<1x304x512xbf16>
// CHECK: %[[R:.*]] = "mxu.pad"{{.*}} -> tensor<1x504x768xbf16>
// CHECK: "mxu.kernel"(%[[L]], %[[R]])
// CHECK: ^bb0(%[[LHS:.*]]: !mxu.ref<tensor<1x304x512xbf16>, "hbm", {{.*}}>, %[[RHS:.*]]: !mxu.ref<tensor<1x504x768xbf16>, "cmem", {{.*}}>, %[[OUT:.*]]: !mxu.ref<tensor<1x304x768xbf16>, "hbm"
// CHECK: %[[A:.*]] = "mxu.alloc"() {buffers = 1 : i64, label = "lhs", offset = 0 : i64}
// CHECK: %[[B:.*]] = "mxu.alloc"() {buffers = 1 : i64, label = "rhs"
// CHECK: %[[ACC:.*]] = "mxu.alloc"() {buffers = 1 : i64, label = "acc"{{.*}}xf32>
// CHECK: %[[O:.*]] = "mxu.alloc"() {buffers = 1 : i64, label = "out"
// CHECK: "mxu.loop"()
// CHECK: "mxu.fill"(%[[ACC]]) {value = 0.0
// CHECK: "mxu.loop"()
// CHECK: "mxu.dma_start"(%[[LHS]], %[[A]], %[[SEM:[0-9a-z]+]],
// CHECK: "mxu.dma_start"(%[[RHS]], %[[B]], %[[SEM]],
// CHECK: "mxu.dma_wait"(%[[SEM]])
// CHECK: "mxu.mask"(%[[A]], {{.*}}dim = 1 : i64, limit = 500
// CHECK: "mxu.mask"(%[[B]], {{.*}}dim = 0 : i64, limit = 500
// CHECK: "mxu.loop"()
// CHECK: %[[W:.*]] = "mxu.push"(%[[B]], %{{.*}}) {transposed = false}
// CHECK: "mxu.matmul"(%[[A]], %[[W]], %[[ACC]],
// CHECK: "mxu.pop"(%[[ACC]], %[[O]])
// CHECK: "mxu.dma_start"(%[[O]], %[[OUT]], %[[STORE:[0-9a-z]+]],
// CHECK: "mxu.dma_wait"(%[[STORE]])
// CHECK: "mxu.unpad"{{.*}} -> tensor<1x300x700xbf16>

// What transfers touch gets a second copy, and the accumulator too while there is room.
// DOUBLE-LABEL: func.func @product
// DOUBLE: buffers = 2 : i64, label = "lhs", offset = 0 : i64
// DOUBLE: buffers = 2 : i64, label = "rhs"
// DOUBLE: buffers = 2 : i64, label = "acc"
// DOUBLE: buffers = 2 : i64, label = "out"

// Two cores take halves of one dimension; the core's number goes into the map of what is split.
// CORES-DAG: affine_map<(d0, d1, d2, d3, d4) -> (d1, d0 * {{[0-9]+}} + d2, d4)>
// CORES: "mxu.core_split"() ({
// CORES: cores = 2 : i64
// CORES: "mxu.barrier"()

// Where an operand is in VMEM already, its blocks are views and nothing moves.
// V6E-LABEL: func.func @product
// V6E-NOT: label = "rhs"
// V6E: %[[V:.*]] = "mxu.view"
// V6E: "mxu.push"(%[[V]], {{.*}}!mxu.weights<tensor<128x128xbf16>>
func.func @product(%x: tensor<300x500xbf16>, %y: tensor<500x700xbf16>) -> tensor<300x700xbf16> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<300x500xbf16>, tensor<500x700xbf16>) -> tensor<300x700xbf16>
  return %r : tensor<300x700xbf16>
}

// A turned rhs is turned on its way into the unit; a turned lhs goes through the cross-lane unit first.
// CHECK-LABEL: func.func @turned
// CHECK: %[[T:.*]] = "mxu.alloc"(){{.*}}label = "lhs.t"
// CHECK: "mxu.transpose"(%{{.*}}, %[[T]])
// CHECK: "mxu.push"({{.*}}transposed = true
// CHECK: "mxu.matmul"(%[[T]],
func.func @turned(%x: tensor<128x8xbf16>, %y: tensor<128x128xbf16>) -> tensor<8x128xbf16> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [0] x [1] : (tensor<128x8xbf16>, tensor<128x128xbf16>) -> tensor<8x128xbf16>
  return %r : tensor<8x128xbf16>
}

// Whole tiles need neither padding nor masks.
// CHECK-LABEL: func.func @whole_tiles
// CHECK-NOT: mxu.pad
// CHECK-NOT: mxu.mask
// CHECK: return
func.func @whole_tiles(%x: tensor<256x256xbf16>, %y: tensor<256x256xbf16>) -> tensor<256x256xbf16> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  return %r : tensor<256x256xbf16>
}
