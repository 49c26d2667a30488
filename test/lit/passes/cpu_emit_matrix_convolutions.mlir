// RUN: stablehlo-opt %s --split-input-file --pipeline=cpu --stop-after=linalg | stablehlo-opt --split-input-file --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx512f,+avx512vl,+avx512bw,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16})' | FileCheck %s
// RUN: stablehlo-opt %s --split-input-file --pipeline=cpu --stop-after=linalg | stablehlo-opt --split-input-file --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx512f,+avx512vl,+avx512bw,+avx512vnni,+avx512bf16,-amx-tile,+amx-int8,+amx-bf16})' | FileCheck %s --check-prefix=WITHOUT

// The weights are packed once, then each step copies its rows of the image with zeros around. 16 neighbours in a row by 32
// features are two tiles of sums, each tile of the image is read once for both; the three taps of a row follow each other
// in the copy and in the weights, and are written out. Sums go to the result from the tiles.
// CHECK-LABEL: func.func public @convolution_0
// CHECK-SAME: (%{{.*}}: memref<200704xi8>, %{{.*}}: memref<36864xi8>, %{{.*}}: memref<200704xi32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK: "llvm.x86.ldtilecfg"
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK-COUNT-2: "llvm.x86.tilezero"
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK-COUNT-2: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbssd"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbssd"
// CHECK-COUNT-4: "llvm.x86.tdpbssd"
// CHECK-NEXT: }
// CHECK-COUNT-2: "llvm.x86.tilestored64"
// CHECK-NOT: vector.fma
// CHECK: "llvm.x86.tilerelease"
// WITHOUT-LABEL: func.func public @convolution_0
// WITHOUT-NOT: llvm.x86.tile
func.func @main(%x: tensor<1x56x56x64xi8>, %w: tensor<3x3x64x64xi8>) -> tensor<1x56x56x64xi32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x56x56x64xi8>, tensor<3x3x64x64xi8>) -> tensor<1x56x56x64xi32>
  return %0 : tensor<1x56x56x64xi32>
}

// -----

// Of bf16, what tiles could lose is looked for in the weights and in each step's part of the image: then sums are of vectors.
// Rows of 7 places would leave tiles half empty: places go on through their ends, and a buffer holds what is no result.
// CHECK-LABEL: func.func public @convolution_0
// CHECK: arith.minui {{.*}} : vector<32xi16>
// CHECK: scf.for
// CHECK: arith.minui {{.*}} : vector<32xi16>
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK: "llvm.x86.tilestored64"
// CHECK: } else {
// CHECK: vector.fma
// CHECK: }
// CHECK: arith.maxsi
// CHECK: llvm.store {{.*}} vector<16xf32>
func.func @main(%x: tensor<8x7x7x64xbf16>, %w: tensor<3x3x64x64xbf16>) -> tensor<8x7x7x64xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x7x7x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<8x7x7x64xf32>
  return %0 : tensor<8x7x7x64xf32>
}

// -----

// One channel a group: a tile would hold 16 products of 1,024.
// CHECK-LABEL: func.func public @convolution_0
// CHECK-NOT: llvm.x86.tile
func.func @main(%x: tensor<1x28x28x64xi8>, %w: tensor<3x3x1x64xi8>) -> tensor<1x28x28x64xi32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 64 : i64}
    : (tensor<1x28x28x64xi8>, tensor<3x3x1x64xi8>) -> tensor<1x28x28x64xi32>
  return %0 : tensor<1x28x28x64xi32>
}
